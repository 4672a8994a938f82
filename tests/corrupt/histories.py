"""Random histories, made by sessions that crash, recover and go on behind accepted losses, with their heads kept."""

import random
from pathlib import Path
from typing import NamedTuple

from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.store.disk import Disk
from turnwal.store.file import FileStore

ID = "s"


class Quick(Disk):
    """A disk that syncs nothing: no power is lost here."""

    def sync(self, descriptor: int, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...


class History(NamedTuple):
    """A session as it was stored, and the head that was kept of it."""

    content: bytes
    kept: bytes
    """The bytes of the file of its head."""
    head: str
    copies: list[bytes]
    """What the log was at the end of each life, the oldest first."""

    @property
    def lines(self) -> list[bytes]:
        """The lines, each with its newline."""
        return self.content.splitlines(keepends=True)


def sessions_in(folder: Path) -> Sessions:
    """The sessions of a directory that keeps heads."""
    return Sessions(FileStore(folder, disk=Quick(), heads=True))


def plain(chance: random.Random, folder: Path, lives: int = 1, turns: int = 2) -> History:
    """A history without damage."""
    return _grown(chance, folder, lives=lives, turns=turns, harm=0.0)


def any_history(chance: random.Random, folder: Path) -> History:
    """A history of a few lives, some of which ended in the middle of a line or lost some."""
    return _grown(chance, folder, lives=chance.randint(1, 4), turns=2, harm=0.5)


def branched(chance: random.Random, folder: Path, history: History, at: int) -> bytes:
    """Another history that has the first `at` lines of this one."""
    path = folder / f"{ID}.jsonl"
    path.write_bytes(b"".join(history.lines[:at]))
    with Sessions(FileStore(folder, disk=Quick())).session(ID, accept_loss=True) as session:
        for _ in range(chance.randint(1, 3)):
            _turn(chance, session)
    return path.read_bytes()


def _grown(chance: random.Random, folder: Path, *, lives: int, turns: int, harm: float) -> History:
    sessions = sessions_in(folder)
    path, kept = folder / f"{ID}.jsonl", folder / f"{ID}.head"
    copies: list[bytes] = []
    for life in range(lives):
        if life and chance.random() < harm:
            _harm(chance, path)
        with sessions.session(ID, accept_loss=True) as session:
            for _ in range(chance.randint(1, turns)):
                _turn(chance, session)
        copies.append(path.read_bytes())
    known = sessions.store.kept(ID)
    assert known is not None
    return History(path.read_bytes(), kept.read_bytes(), str(known.head), copies)


def _harm(chance: random.Random, path: Path) -> None:
    """A write that was cut off, NULs, or the newest lines lost, some of them still readable."""
    content = path.read_bytes()
    match chance.randrange(4):
        case 0:
            content += content[content[:-1].rfind(b"\n") + 1 :][: chance.randint(1, 30)]
        case 1:
            content += b"\0" * chance.randint(1, 40)
        case 2:
            content = content[: content[:-1].rfind(b"\n") + 1]
        case _:
            lines = content.splitlines(keepends=True)
            at = chance.randrange(max(1, len(lines) - 3), len(lines))
            lines[at] = lines[at][:20] + b"#" + lines[at][21:]
            content = b"".join(lines)
    path.write_bytes(content)


def _turn(chance: random.Random, session: Session) -> None:
    with session.turn(
        user=chance.choice(["Refund order 7", "x", "Grüße 🙂", "a \u2028 b"]) + str(chance.random())
    ) as turn:
        for _ in range(chance.randint(0, 2)):
            with turn.step() as step:
                parts: list[dict[str, object]] = [{"type": "text", "content": "…" * chance.randint(1, 5)}]
                if chance.random() < 0.6:
                    parts.append({"type": "tool_call", "id": "t", "name": "pay", "arguments": '{"n":1}'})
                calls = step.assistant({"parts": parts})
                step.run(calls, {"pay": lambda n: n})
            if chance.random() < 0.3:
                session.flush()
