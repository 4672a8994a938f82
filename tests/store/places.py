"""Storages for the conformance suite and the tests that share it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.store.server import fresh_schema
from turnwal.store.file import FileStore
from turnwal.store.memory import MemoryStore
from turnwal.store.postgres import PostgresStore
from turnwal.store.protocol import Store
from turnwal.store.sqlite import SqliteStore
from turnwal.testing.conformance import Storage


class MemoryPlace:
    def __init__(self) -> None:
        self._first = MemoryStore()

    def open(self) -> Store:
        return MemoryStore(beside=self._first)


class FilePlace:
    def __init__(self, root: Path) -> None:
        self.root = root

    def open(self) -> Store:
        return FileStore(self.root)


class SqlitePlace:
    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self) -> Store:
        return SqliteStore(self.path)


class PostgresPlace:
    def __init__(self, url: str) -> None:
        self.url = url

    def open(self) -> Store:
        return PostgresStore(self.url)


@contextmanager
def memory() -> Iterator[Storage]:
    yield MemoryPlace()


@contextmanager
def files() -> Iterator[Storage]:
    with TemporaryDirectory() as directory:
        yield FilePlace(Path(directory) / "sessions")


@contextmanager
def sqlite() -> Iterator[Storage]:
    with TemporaryDirectory() as directory:
        yield SqlitePlace(Path(directory) / "agents.db")


@contextmanager
def postgres() -> Iterator[Storage]:
    with fresh_schema() as url:
        yield PostgresPlace(url)
