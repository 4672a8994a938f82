"""Reading the SQLite database of another tool, which may be running, without changing a byte of it.

Promises:
- Nothing beside the database is made, and nothing in it or beside it is written: a database in WAL mode without a
  `-wal` is read as unchanging, a `-shm` is read only, and what would need one that is not there is read from a copy.
- A database that its tool holds is `StoreFailed` with the code of a busy one, never waited for longer than `WAIT_MS`.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

import apsw

from turnwal.formats.repairing import fresh

WAIT_MS: Final = 2_000
"""How long a lock of the tool is waited for."""

MAGIC: Final = b"SQLite format 3\0"
_WAL_AT: Final = 18
"""Where the header says which journal mode the file is in: 2 is WAL."""


class DatabaseBusy(Exception):
    """The tool holds the database, so that it cannot be read now."""


class Unreachable(OSError):
    """The server of a database did not answer, or refused what was asked."""


@contextmanager
def reading(path: Path) -> Iterator[apsw.Connection]:
    """A connection that reads one unchanging state of the database.

    Raises `DatabaseBusy`, `apsw.Error` for what is no database or is damaged, and `OSError`.
    """
    with ExitStack() as stack:
        try:
            connection = _opened(path, stack)
            connection.set_busy_timeout(WAIT_MS)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            yield connection
        except (apsw.BusyError, apsw.LockedError, apsw.ReadOnlyError) as error:
            # read only: a tool at work has not yet marked in its `-shm` from where to read
            raise DatabaseBusy(f"the database is locked by its tool ({error})") from error


def _opened(path: Path, stack: ExitStack) -> apsw.Connection:
    wal, journal = _beside(path, "-wal"), _beside(path, "-journal")
    if _in_wal_mode(path):
        if not wal:
            return stack.enter_context(_connected(path, "immutable=1"))
        if Path(f"{path}-shm").exists():
            # a killed tool leaves an index that SQLite would write anew: so it keeps its own in memory
            return stack.enter_context(_connected(path, "mode=ro&readonly_shm=1"))
        path = _copied(path, "-wal", stack)
    elif journal:
        # a journal that is left is of a writer at work, or of one that died: only a copy can be rolled back
        path = _copied(path, "-journal", stack)
        return stack.enter_context(_connected(path, "mode=rw"))
    return stack.enter_context(_connected(path, "mode=ro"))


@contextmanager
def _connected(path: Path, how: str) -> Iterator[apsw.Connection]:
    writable = apsw.SQLITE_OPEN_READWRITE if how == "mode=rw" else apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(f"file:{quote(str(path.absolute()))}?{how}", flags=writable | apsw.SQLITE_OPEN_URI)
    try:
        yield connection
    finally:
        connection.close()


def _copied(path: Path, suffix: str, stack: ExitStack) -> Path:
    directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="turnwal-"))
    copy = Path(directory, "copy.db")
    shutil.copyfile(path, copy)
    shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
    return copy


def _in_wal_mode(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(_WAL_AT + 1)[_WAL_AT:] == b"\x02"


def _beside(path: Path, suffix: str) -> bool:
    """Whether a file beside the database has something in it."""
    beside = Path(f"{path}{suffix}")
    return beside.exists() and beside.stat().st_size > 0


def copied_to(path: Path, out: Path, change: Callable[[apsw.Connection], None] | None) -> None:
    """Write a copy of a database with a change made in it: whole or not there, the original untouched.

    Without a change it is the same bytes, where they are all in one file that can be held meanwhile. Raises `Refused`
    where something is there already, and what `reading` and the change raise.
    """
    with fresh(out) as file, tempfile.TemporaryDirectory(prefix="turnwal-") as directory, reading(path) as source:
        made = path
        if change is not None or _in_wal_mode(path) or _beside(path, "-journal"):
            made = Path(directory, "copy.db")
            _changed(source, made, change)
        with made.open("rb") as whole:
            shutil.copyfileobj(whole, file)


def _changed(source: apsw.Connection, copy: Path, change: Callable[[apsw.Connection], None] | None) -> None:
    target = apsw.Connection(str(copy))
    try:
        with target.backup("main", source, "main") as backup:
            backup.step()
        target.pragma("journal_mode", "delete")
        if change is not None:
            with target:
                change(target)
    finally:
        target.close()
