"""Reading the SQLite database of another tool, which may be running, without changing a byte of it.

Promises:
- Nothing beside the database is made, and nothing in it or beside it is written: a database in WAL mode without a
  `-wal` is read as unchanging, a `-shm` is read only, and what would need one that is not there is read from a copy.
- A database that its tool holds is `StoreFailed` with the code of a busy one, never waited for longer than `WAIT_MS`.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

import apsw

from turnwal.formats.copies import Unsteady, copied
from turnwal.formats.repairing import fresh

WAIT_MS: Final = 2_000
"""How long a lock of the tool is waited for."""

_TRIES: Final = 10
_PAUSE_S: Final = 0.05
"""How often and how soon a database is tried anew whose files were written to while it was opened."""

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
            yield _opened(path, stack)
        except (apsw.BusyError, apsw.LockedError, apsw.ReadOnlyError) as error:
            # read only: a tool at work has not yet marked in its `-shm` from where to read
            raise DatabaseBusy(f"the database is locked by its tool ({error})") from error


def _opened(path: Path, stack: ExitStack) -> apsw.Connection:
    """A connection, also where the files beside the database come and go meanwhile."""
    for _ in range(_TRIES):
        with suppress(Unsteady):
            return _tried(path, stack)
        time.sleep(_PAUSE_S)
    raise DatabaseBusy("the database is written to by its tool all the time")


def _tried(path: Path, stack: ExitStack) -> apsw.Connection:
    if _in_wal_mode(path):
        if not _beside(path, "-wal"):
            return _connected(path, "immutable=1", stack)
        if Path(f"{path}-shm").exists():
            # a killed tool leaves an index that SQLite would write anew: so it keeps its own in memory
            return _connected(path, "mode=ro&readonly_shm=1", stack)
        return _connected(stack.enter_context(copied(path, "-wal")), "mode=ro", stack)
    try:
        return _connected(path, "mode=ro", stack)
    except (apsw.BusyError, apsw.ReadOnlyError):
        if not _beside(path, "-journal"):
            raise
    # its writer died, or is in the middle of a change for longer: a copy can be rolled back
    return _connected(stack.enter_context(copied(path, "-journal")), "mode=rw", stack)


def _connected(path: Path, how: str, stack: ExitStack) -> apsw.Connection:
    """A connection that holds one state of a database as long as the stack is not closed."""
    writable = apsw.SQLITE_OPEN_READWRITE if how == "mode=rw" else apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(f"file:{quote(str(path.absolute()))}?{how}", flags=writable | apsw.SQLITE_OPEN_URI)
    stack.callback(connection.close)
    connection.set_busy_timeout(WAIT_MS)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    return connection


def _in_wal_mode(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(_WAL_AT + 1)[_WAL_AT:] == b"\x02"


def _beside(path: Path, suffix: str) -> bool:
    """Whether a file beside the database has something in it."""
    try:
        return Path(f"{path}{suffix}").stat().st_size > 0
    except FileNotFoundError:
        return False


def copied_to(path: Path, out: Path, change: Callable[[apsw.Connection], None] | None) -> None:
    """Write a copy of a database with a change made in it: whole or not there, the original untouched.

    Without a change it is the same bytes, where they are all in one file that can be held meanwhile. Raises `Refused`
    where something is there already, and what `reading` and the change raise.
    """
    in_wal_mode = _in_wal_mode(path)  # before it is held: closing a file gives up its locks
    with fresh(out) as file, tempfile.TemporaryDirectory(prefix="turnwal-") as directory, reading(path) as source:
        made = path
        if change is not None or in_wal_mode or _beside(path, "-journal"):
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
