"""What SQLite costs beside a bare commit of one row by the same driver, with the same settings."""

from collections.abc import Iterator
from pathlib import Path

import apsw

from bench.databases import LINE, durable, together
from bench.rows import Row
from turnwal.session.sessions import open_store


def measure(folder: Path) -> Iterator[Row]:
    """The rows of this module."""
    bare = _bare(folder / "bare.db")
    with open_store(f"sqlite:{folder / 'agents.db'}") as sessions:
        yield from durable(sessions, lambda: bare.execute("INSERT INTO line (line) VALUES (?)", (LINE,)), "SQLite")
        yield together(sessions, "SQLite")
    bare.close()


def _bare(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    assert connection.execute("PRAGMA journal_mode = wal").get == "wal"
    connection.execute("PRAGMA synchronous = full")
    assert connection.execute("PRAGMA synchronous").get == 2
    connection.execute("CREATE TABLE line (number INTEGER PRIMARY KEY, line BLOB NOT NULL) STRICT")
    return connection
