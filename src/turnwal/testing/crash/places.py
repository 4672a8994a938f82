"""Where the sessions of one run of an agent are kept: a storage of its own, and gone afterwards."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from turnwal.store.file import FileStore
from turnwal.store.protocol import Store
from turnwal.testing.conformance import Factory


class Place(Protocol):
    """A storage whose owners die."""

    def open(self) -> Store:
        """Return a new store over this storage."""
        ...

    def bury(self) -> None:
        """Let the sessions be free of an owner that is dead, where the store would need a while to see that."""
        ...


def factory_of(store: "str | Factory") -> Callable[[], AbstractContextManager[Place]]:
    """What gives a place at each call: `file`, `sqlite`, the URL of a PostgreSQL database, or a factory of storages.

    Raises `ValueError` for text that is none of these.
    """
    if not isinstance(store, str):
        return lambda: _given(store)
    if store in ("file", "file:"):
        return _files
    if store in ("sqlite", "sqlite:"):
        return _sqlite
    if store.startswith(("postgresql:", "postgres:")):
        return lambda: _postgres(store)
    raise ValueError(
        f"{store!r} is no store that outlives a process; say file, sqlite or postgresql://…, or pass a context manager "
        "that gives a storage"
    )


class _Kept:
    """A place whose store sees by itself that an owner is dead."""

    def __init__(self, open: Callable[[], Store]) -> None:
        self.open = open

    def bury(self) -> None:
        """Nothing: the kernel's locks died with their process."""


@contextmanager
def _given(factory: Factory) -> Iterator[Place]:
    with factory() as storage:
        yield _Kept(storage.open)


@contextmanager
def _files() -> Iterator[Place]:
    with TemporaryDirectory(prefix="turnwal-crash-") as root:
        yield _Kept(lambda: FileStore(Path(root) / "sessions"))


@contextmanager
def _sqlite() -> Iterator[Place]:
    from turnwal.store.sqlite import SqliteStore  # noqa: PLC0415 - only who uses it pays for the driver

    with TemporaryDirectory(prefix="turnwal-crash-") as root:
        yield _Kept(lambda: SqliteStore(Path(root) / "agents.db"))


class _Schema:
    """A schema of its own in a PostgreSQL database."""

    def __init__(self, dsn: str, name: str) -> None:
        from psycopg.conninfo import conninfo_to_dict, make_conninfo  # noqa: PLC0415 - as in `_sqlite`

        self._given = dsn
        self._name = name
        options = str(conninfo_to_dict(dsn).get("options") or "")
        self._dsn = make_conninfo(dsn, options=f"{options} -csearch_path={name}".strip())

    def open(self) -> Store:
        from turnwal.store.postgres import PostgresStore  # noqa: PLC0415 - as in `_sqlite`

        return PostgresStore(self._dsn)

    def bury(self) -> None:
        """End the leases: nobody who had one is alive."""
        self._execute(f"DELETE FROM {self._name}.turnwal_lease")  # noqa: S608 - the name is made above

    def make(self) -> None:
        from turnwal.store.postgres_schema import migrate  # noqa: PLC0415 - as in `_sqlite`

        self._execute(f"CREATE SCHEMA {self._name}")
        migrate(self._dsn)

    def drop(self) -> None:
        self._execute(f"DROP SCHEMA {self._name} CASCADE")

    def _execute(self, statement: str) -> None:
        import psycopg  # noqa: PLC0415 - as in `_sqlite`

        with psycopg.connect(self._given, autocommit=True) as connection:
            connection.execute(statement.encode())


@contextmanager
def _postgres(url: str) -> Iterator[Place]:
    schema = _Schema(url, f"turnwal_crash_{secrets.token_hex(8)}")
    schema.make()
    try:
        yield schema
    finally:
        schema.drop()
