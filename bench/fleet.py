"""What `ls --interrupted` costs by how many sessions are stored, the number of interrupted ones being equal."""

import contextlib
import io
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import psycopg

from bench.logs import crash
from bench.rows import Row, peak_mb
from tests.store.server import fresh_schema, running_server
from turnwal.core.chain import EMPTY, after
from turnwal.core.line import make
from turnwal.core.log import draft
from turnwal.session.sessions import open_store

FEW = 1_000
MANY = 1_000_000
INTERRUPTED = 300
ROUNDS = 7
_CLEAN = "clean"


def measure(folder: Path) -> Iterator[Row]:
    """The rows of this module; needs 3 GB of disk for a while."""
    files = {count: folder / f"fleet-{count}.db" for count in (FEW, MANY)}
    for count, file in files.items():
        _fill(f"sqlite:{file}", count)
        _multiply_sqlite(file, count - INTERRUPTED)
    yield from _listing("SQLite", [f"sqlite:{file}" for file in files.values()])
    for file in files.values():
        file.unlink()
    with running_server() as server, fresh_schema(server) as few, fresh_schema(server) as many:
        for count, url in ((FEW, few), (MANY, many)):
            _fill(url, count)
            _multiply_postgres(url, count - INTERRUPTED)
        yield from _listing("PostgreSQL", [few, many])


def _listing(name: str, urls: list[str]) -> Iterator[Row]:
    found = [[_child(url) for url in urls] for _ in range(ROUNDS)]
    few, many = (statistics.median(listed["ms"] for listed in column) for column in zip(*found, strict=True))
    what = f"`ls --interrupted`, {INTERRUPTED} of {MANY:,} sessions, {name}"
    beside = f"{INTERRUPTED} of {FEW:,}"
    yield Row(what, many, beside, few, "1.5 ×", many <= 1.5 * few, unit="ms")
    few, many = (statistics.median(listed["mb"] for listed in column) for column in zip(*found, strict=True))
    yield Row(f"peak memory of that, {name}", many, beside, few, "1.2 ×", many <= 1.2 * few, unit="MB")


def _child(url: str) -> dict[str, float]:
    command = [sys.executable, "-c", "import sys; from bench.fleet import child; child(*sys.argv[1:])", url]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)  # type: ignore[no-any-return]


def child(url: str) -> None:
    """Run the verb in a process of its own, twice, the first time for what it imports; print time and peak memory."""
    from turnwal.cli.app import app  # noqa: PLC0415 - the process that starts this one needs no command line

    took = 0.0
    for _ in range(2):
        out = io.StringIO()
        started = time.perf_counter()
        with contextlib.redirect_stdout(out):
            code = app(["ls", "--interrupted", "--json", "--store", url], prog_name="turnwal", standalone_mode=False)
        took = time.perf_counter() - started
        assert code == 3
        assert sum(seen["state"] == "interrupted" for seen in json.loads(out.getvalue())) == INTERRUPTED
    print(json.dumps({"ms": took * 1e3, "mb": peak_mb()}))


def _fill(url: str, count: int) -> None:
    """Store the interrupted sessions, spread over the names, and one clean one, of which the others are made."""
    with open_store(url) as sessions:
        sessions.store.put(_CLEAN, _turn(crashed=False))
        for number in range(INTERRUPTED):
            sessions.store.put(f"{number * count // INTERRUPTED:07d}-interrupted", _turn(crashed=True))


def _turn(*, crashed: bool) -> list[bytes]:
    """The lines of a session of one closed turn, and of one that a crash left open."""
    hints: dict[str, object] = {"format": 1, "turn": 1, "waiting": []}
    head, lines = EMPTY, []
    for type, data in (
        ("session_start", {"id": "s", "format": 1, "nonce": "0" * 32, "hash": "sha256"}),
        ("turn_start", hints | {"dispatch": "durable", "open": [1]}),
        ("turn_end", hints | {"steps": 0, "reason": "complete", "open": []}),
    ):
        line, event = make(draft(type, data, run="main", time=1, ignorable=False, head=head))
        head = after(line, event)
        lines.append(line)
    return lines + (crash(head) if crashed else [])


def _multiply_sqlite(file: Path, count: int) -> None:
    """Store so many copies of the clean session by copying its rows, whatever columns they have.

    The one place that knows the tables of the store: a door that stores one session after another needs minutes.
    """
    connection = apsw.Connection(str(file))
    session, line = (
        ", ".join(row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] not in own)
        for table, own in (("session", ("number", "id")), ("line", ("session",)))
    )
    (clean,) = next(connection.execute("SELECT number FROM session WHERE id = ?", (_CLEAN.encode(),)))
    (last,) = next(connection.execute("SELECT max(number) FROM session"))
    with connection:
        connection.execute(
            "WITH RECURSIVE copy (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy LIMIT ?) "  # noqa: S608 - our names
            f"INSERT INTO session (id, {session}) SELECT CAST(printf('%07d', n) AS BLOB), {session} "
            f"FROM session, copy WHERE number = ?",
            (count - 1, clean),
        )
        connection.execute(
            f"INSERT INTO line (session, {line}) SELECT s.number, {line} "  # noqa: S608 - as above
            "FROM session AS s, line WHERE s.number > ? AND session = ? ORDER BY s.number, position",
            (last, clean),
        )
    connection.close()


def _multiply_postgres(url: str, count: int) -> None:
    """As for SQLite; the server then gathers its statistics, which it would do by itself after a while."""
    with psycopg.connect(url, autocommit=True) as connection:

        def columns(table: str, *own: str) -> str:
            rows = connection.execute(
                "SELECT column_name FROM information_schema.columns "
                "WHERE table_schema = current_schema AND table_name = %s AND column_name <> ALL (%s)",
                (table, list(own)),
            )
            return ", ".join(name for (name,) in rows)

        session = columns("turnwal_session", "number", "key", "id")
        line = columns("turnwal_line", "session")
        ((clean,),) = connection.execute("SELECT number FROM turnwal_session WHERE key = %s", (_CLEAN.encode(),))
        ((last,),) = connection.execute("SELECT max(number) FROM turnwal_session")
        copied = (
            f"INSERT INTO turnwal_session (key, id, {session}) "  # noqa: S608 - our names
            f"SELECT convert_to(name, 'UTF8'), convert_to(name, 'UTF8'), {session} FROM turnwal_session, "
            "(SELECT to_char(generate_series(1, %s), 'FM0000000') AS name) AS names WHERE number = %s"
        )
        connection.execute(copied.encode(), (count - 1, clean))
        copied = (
            f"INSERT INTO turnwal_line (session, {line}) SELECT s.number, {line} "  # noqa: S608 - as above
            "FROM turnwal_session AS s, turnwal_line WHERE s.number > %s AND session = %s"
        )
        connection.execute(copied.encode(), (last, clean))
        connection.execute("VACUUM ANALYZE")
