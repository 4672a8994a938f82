"""The stores that processes fight over, and how each of them is taken from a stopped owner by force."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple
from unittest import mock

from tests.store.server import fresh_schema
from turnwal.store import sqlite_file
from turnwal.store.file import FileStore
from turnwal.store.memory import MemoryStore
from turnwal.store.postgres import PostgresStore
from turnwal.store.protocol import Record, Store
from turnwal.store.sqlite import SqliteStore

LEASE_S: Final = 0.5
"""So short that a stopped owner is succeeded soon; so long that a machine that is busy renews in time."""
BUSY_MS: Final = 400
"""How long somebody waits for a process that was stopped in the middle of a commit to SQLite; less than the product."""


class Place(NamedTuple):
    """One store, empty at first."""

    name: str
    root: Path
    """A directory for what a campaign keeps outside the store."""
    url: str
    """What the command line calls the store; empty where only one process can see it."""
    open: Callable[[], Store]
    wrest: Callable[[str], None] | None = None
    """Do what loses a living owner its lock, None where the lease ends by itself."""

    def lines(self, session: str) -> list[bytes]:
        """What is stored, line by line. Whatever is no record that follows is an error."""
        with closing(self.open()) as store:
            found = list(store.read(session))
        assert all(isinstance(each, Record) and each.sound for each in found), f"{session} does not chain"
        return [each.line for each in found if isinstance(each, Record)]


@contextmanager
def memory() -> Iterator[Place]:
    first = MemoryStore()
    with _root() as root:
        yield Place("memory", root, "", lambda: MemoryStore(beside=first))


@contextmanager
def files() -> Iterator[Place]:
    with _root() as root:
        path = root / "sessions"

        def restored(session: str) -> None:
            """As a copy that is put back from a backup: the lock stays with the file that has no name any more."""
            log = path / f"{session}.jsonl"
            copy = path / "copy"
            shutil.copyfile(log, copy)
            copy.rename(log)

        yield Place("file", root, str(path), lambda: FileStore(path), restored)


@contextmanager
def sqlite() -> Iterator[Place]:
    with _root() as root:
        path = root / "agents.db"

        def without_locks(session: str) -> None:
            """As somebody who tidies up: the next owner makes a new lock file."""
            del session
            Path(f"{path}-owners").unlink()

        with mock.patch.object(sqlite_file, "BUSY_MS", BUSY_MS):
            yield Place("sqlite", root, f"sqlite:{path}", lambda: SqliteStore(path), without_locks)


@contextmanager
def postgres() -> Iterator[Place]:
    with _root() as root, fresh_schema() as url:
        yield Place("postgres", root, url, lambda: PostgresStore(url, lease_s=LEASE_S, timeout_s=5))


@contextmanager
def _root() -> Iterator[Path]:
    with TemporaryDirectory(prefix="turnwal-races-") as directory:
        yield Path(directory)


PLACES: Final[Mapping[str, Callable[[], AbstractContextManager[Place]]]] = {
    "memory": memory,
    "file": files,
    "sqlite": sqlite,
    "postgres": postgres,
}
