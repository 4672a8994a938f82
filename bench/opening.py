"""What opening and recovering a crashed session of a database costs, by what is stored before its open turn."""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from bench.logs import TURN, crash, write
from bench.rows import Row
from tests.store.server import fresh_schema, running_server
from turnwal.core.chain import after
from turnwal.session.sessions import open_store

FEW = 1_000
MANY = 1_000_000
ROUNDS = 15


def measure(folder: Path) -> Iterator[Row]:
    """The rows of this module; needs 4 GB of disk for a while."""
    logs = {count: folder / f"{count}.jsonl" for count in (FEW, MANY)}
    for count, log in logs.items():
        write(log, count // TURN)
    yield _opening("SQLite", {count: f"sqlite:{folder / f'{count}.db'}" for count in logs}, logs)
    (folder / f"{MANY}.db").unlink()
    with running_server() as server, fresh_schema(server) as few, fresh_schema(server) as many:
        yield _opening("PostgreSQL", {FEW: few, MANY: many}, logs)
    for log in logs.values():
        log.unlink()


def _opening(name: str, urls: dict[int, str], logs: dict[int, Path]) -> Row:
    for count, url in urls.items():
        with open_store(url) as sessions, logs[count].open("rb") as log:
            sessions.store.put("s", (line[:-1] for line in log))
    found = [[_recovered_us(url) for url in urls.values()] for _ in range(ROUNDS)]
    few, many = (statistics.median(column) for column in zip(*found, strict=True))
    what = f"open and recover behind {MANY:,} closed events, {name}"
    return Row(what, many, f"behind {FEW:,}", few, "1.2 ×", many <= 1.2 * few)


def _recovered_us(url: str) -> float:
    """Crash the session in a new turn, then open it by a store that is connected and has read nothing of it."""
    with open_store(url) as sessions:
        last = next(sessions.store.newest("s"))
        assert last is not None
        head = after(last.line, last.event)
        claim = sessions.store.claim("s")
        claim.append(crash(head), head)
        claim.release()
    with open_store(url) as sessions:
        sessions.store.probe("s")
        started = time.perf_counter()
        with sessions.session("s") as session:
            took = time.perf_counter() - started
            assert session.recovered
    return took * 1e6
