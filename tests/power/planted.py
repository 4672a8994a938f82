"""Defects that the explorer has to catch, each planted into the code of a workload's process."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from tests.crash.planted import EagerClaim
from turnwal.cli import export
from turnwal.core.errors import StoreFailed
from turnwal.formats import repairing
from turnwal.session.sessions import Sessions
from turnwal.store import sqlite_file
from turnwal.store.disk import Disk
from turnwal.store.file import FileStore
from turnwal.store.fileclaim import FileClaim
from turnwal.store.sqlite import SqliteClaim, SqliteStore
from turnwal.store.wholefile import sync_directory

_stores: dict[str, Callable[[str], Any]] = {}


def opened(root: Path, name: str) -> Sessions | None:
    """The sessions of a store with a planted defect, None where none is planted."""
    kind = "sqlite" if name.endswith(".db") else "file"
    return Sessions(_stores[kind](str(root / name))) if kind in _stores else None


def _nothing(*_: object) -> None:
    """What is done instead."""


def normal() -> None:
    """SQLite with `synchronous=NORMAL`."""
    sqlite_file._PRAGMAS["synchronous"] = 1


def no_directory_sync() -> None:
    """A disk of ours that syncs no directory."""
    Disk.sync_directory = _nothing  # type: ignore[assignment]


def no_sync() -> None:
    """A disk of ours that syncs no file."""
    Disk.sync = _nothing  # type: ignore[assignment]


def retried() -> None:
    """A disk that asks again where a sync fails, and believes the second answer."""
    once = Disk.sync

    def sync(self: Disk, descriptor: int, path: str) -> None:
        try:
            once(self, descriptor, path)
        except StoreFailed:
            once(self, descriptor, path)

    Disk.sync = sync  # type: ignore[method-assign]


class EagerFiles(FileStore):
    """Acknowledges before it writes and syncs."""

    def claim(self, session: str, **options: Any) -> FileClaim:
        return cast("FileClaim", EagerClaim(super().claim(session, **options)))


class EagerRows(SqliteStore):
    """Acknowledges before it commits."""

    def claim(self, session: str, **options: Any) -> SqliteClaim:
        return cast("SqliteClaim", EagerClaim(cast("FileClaim", super().claim(session, **options))))


def eager() -> None:
    """Stores that acknowledge before the sync."""
    _stores.update(file=EagerFiles, sqlite=EagerRows)


def in_place() -> None:
    """Files that are written under their own name."""

    @contextmanager
    def whole_file(out: Path) -> Iterator[BinaryIO]:
        with out.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        sync_directory(out.parent)

    for module in (export, repairing):
        vars(module)["whole_file"] = whole_file


PLANTED: Final[Mapping[str, Callable[[], None]]] = {
    "normal": normal,
    "no_directory_sync": no_directory_sync,
    "no_sync": no_sync,
    "retried": retried,
    "eager": eager,
    "in_place": in_place,
}
