"""SQLite files: every bit and every length of a database at rest, and of the `-wal` of one whose writer died."""

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import apsw

from tests.corrupt.histories import ID, Quick
from tests.corrupt.judging import Seen, Verdict, verdict_of
from tests.corrupt.logs import folders
from turnwal.core.errors import TurnwalError
from turnwal.session.sessions import Sessions
from turnwal.store.protocol import Record
from turnwal.store.sqlite import SqliteStore

NAME: Final = "agents.db"
PAGE: Final = 512
"""The least that SQLite has: there is less to change."""

SESSIONS: Final = (ID, "other")

_WRITER: Final = """
import os, sys
from tests.corrupt.databases import grow
store, session = grow(sys.argv[1])
session.append("user_message", {"parts": [{"type": "text", "content": "the newest"}]})
session.flush()
os._exit(0)
"""


class Stored(NamedTuple):
    """A database, its `-wal`, the heads, and the lines that are in it."""

    database: bytes
    wal: bytes
    heads: dict[str, bytes]
    lines: list[bytes]


def grow(path: str) -> tuple[Sessions, "object"]:
    """Go on with the session, and leave it open."""
    sessions = Sessions(SqliteStore(path, disk=Quick(), heads=True))
    session = sessions.session(ID).open()
    for number in range(2):
        with session.turn(user=f"question {number}"):
            pass
        session.flush()
    return sessions, session


def stored(folder: Path, *, at_rest: bool) -> Stored:
    """A small database: closed in order, or as its writer's death left it, the newest events in the `-wal` alone."""
    path = folder / NAME
    with Sessions(SqliteStore(path, disk=Quick(), heads=True)).session("other") as session, session.turn(user="x"):
        pass
    session._store.close()
    _shrink(path)
    subprocess.run([sys.executable, "-c", _WRITER, str(path)], check=True)
    if at_rest:
        sessions = Sessions(SqliteStore(path, heads=True))
        with sessions.session(ID):
            pass
        sessions.close()
    wal = folder / f"{NAME}-wal"
    database, log = path.read_bytes(), wal.read_bytes() if wal.exists() else b""
    heads = {head.name: head.read_bytes() for head in (folder / f"{NAME}-heads").iterdir()}
    return Stored(database, log, heads, lines_in(path))


def flips(seed: int, stride: int) -> Seen:
    """Flip every bit of a database at rest, or every so many."""
    return _changed(seed, at_rest=True, stride=stride, cut=stride, part="database")


def wal(seed: int, stride: int) -> Seen:
    """Flip every bit of a `-wal` that holds the newest events, or every so many, and cut it at every so many bytes."""
    return _changed(seed, at_rest=False, stride=stride, cut=max(1, stride // 8), part="wal")


def _changed(seed: int, *, at_rest: bool, stride: int, cut: int, part: str) -> Seen:
    seen = Seen()
    with folders("made", "judged", "alone") as (made, judged, alone):
        found = stored(made, at_rest=at_rest)
        (judged / f"{NAME}-heads").mkdir()
        for name, content in found.heads.items():
            (judged / f"{NAME}-heads" / name).write_bytes(content)
        verdict = _put(judged, found.database, found.wal)
        if verdict.word != "intact":
            seen.violations.append(f"a database that nobody changed is called {verdict.word}")
        good = found.database if part == "database" else found.wal
        for what, content in _changes(good, random.Random(f"{part} {seed}"), stride, cut):
            pair = (content, found.wal) if part == "database" else (found.database, content)
            verdict = _put(judged, *pair)
            same = not verdict.told and lines_in(judged / NAME) == found.lines
            seen.take(f"{what} of the {part}", verdict, same=same)
            if not verdict.told and _put(alone, *pair).word == "intact":
                seen.violations.append(f"{what} of the {part}: called intact without a kept head")
    return seen


def _changes(good: bytes, chance: random.Random, stride: int, cut: int) -> Iterator[tuple[str, bytes]]:
    for bit in range(chance.randrange(stride), 8 * len(good), stride):
        changed = bytearray(good)
        changed[bit // 8] ^= 1 << bit % 8
        yield f"bit {bit}", bytes(changed)
    for length in range(0, len(good), cut):
        yield f"cut at {length}", good[:length]


def _put(folder: Path, database: bytes, log: bytes) -> Verdict:
    """Put a database there as if nobody had it open, and have it judged."""
    path = folder / NAME
    (folder / f"{NAME}-shm").unlink(missing_ok=True)
    path.write_bytes(database)
    (folder / f"{NAME}-wal").write_bytes(log)
    try:
        store = SqliteStore(path, disk=Quick())
        try:
            verdicts = [verdict_of(store, name) for name in SESSIONS]
        finally:
            store.close()
        return max(verdicts, key=lambda verdict: (verdict.told, verdict.word != "intact"))
    except TurnwalError as error:
        return Verdict(error.code)


def lines_in(path: Path) -> list[bytes]:
    """The lines of all sessions, as the store reads them."""
    store = SqliteStore(path, disk=Quick())
    try:
        return [item.line for name in SESSIONS for item in store.read(name) if isinstance(item, Record)]
    finally:
        store.close()


def _shrink(path: Path) -> None:
    connection = apsw.Connection(str(path))
    for statement in ("PRAGMA journal_mode=DELETE", f"PRAGMA page_size={PAGE}", "VACUUM", "PRAGMA journal_mode=WAL"):
        connection.execute(statement).fetchall()
    connection.close()
