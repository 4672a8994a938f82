"""The SQLite file: its schema, the connections to it, and what is checked of both.

Promises:
- Every pragma is fetched and compared: a driver may swallow its failure, and a setting may not take.
- Lines are never updated or deleted: triggers refuse it, whoever asks.
- A new file, and what SQLite makes beside it, can be read by its owner alone.
- Readers are opened read-only: an ordinary one that closes last would delete the `-wal` under a live writer.
- A statement is compiled once on each connection.

Does not: open the file by path itself; closing such a descriptor would drop SQLite's locks in this process.
"""

# pathlib would take a quarter of the time that importing turnwal may add
# ruff: noqa: PTH101, PTH120

import os
import stat
from typing import Any, Final
from urllib.parse import quote

import apsw

from turnwal.core.errors import StoreFailed, StoreUnsupported, TooNew
from turnwal.store.disk import Disk
from turnwal.store.sqlite_errors import Translated
from turnwal.store.sqlite_waiting import Patience

APPLICATION_ID: Final = 0x74_77_61_6C
"""`twal`, in the header of the file."""

_WRITING: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_NOFOLLOW
_READING: Final = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI

_JOURNAL: Final = bytes.fromhex("d9d505f920a163d7")
_JOURNAL_PAGES: Final = slice(16, 20)
"""Where the header of a rollback journal says how long the database was ahead of what it undoes, in pages.

A file of ours has a journal only while it is made, and was empty ahead of it; all that follows goes through the `-wal`.
"""

SCHEMA: Final = 1
"""The schema this version writes; a newer one is refused."""

_PAGE: Final = 4096
"""What SQLite makes its pages, and so the size of a file to which nothing was ever committed."""

LEAST_SQLITE: Final = (3, 51, 3)
"""The first release without the defect that can corrupt a WAL while it is reset."""

BUSY_MS: Final = 10_000
"""How long another process's commit is waited for."""

_PRAGMAS: Final = {
    "journal_mode": "wal",
    "synchronous": 2,
    "foreign_keys": 1,
    "trusted_schema": 0,
    "mmap_size": 0,
    "wal_autocheckpoint": 1000,
}

_DDL: Final = """
CREATE TABLE session (
  number INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  epoch INTEGER NOT NULL DEFAULT 0,
  owner TEXT NOT NULL DEFAULT '',
  open_from INTEGER
) STRICT;
CREATE INDEX session_open ON session (id) WHERE open_from IS NOT NULL;
CREATE TABLE line (
  session INTEGER NOT NULL REFERENCES session (number),
  position INTEGER NOT NULL,
  line BLOB NOT NULL,
  UNIQUE (session, position)
) STRICT;
CREATE TRIGGER line_is_never_updated BEFORE UPDATE ON line BEGIN SELECT RAISE(ABORT, 'a line is never changed'); END;
CREATE TRIGGER line_is_never_deleted BEFORE DELETE ON line BEGIN SELECT RAISE(ABORT, 'a line is never deleted'); END;
"""


def check_version() -> None:
    """Return when the SQLite that came with the driver is new enough; raise `StoreUnsupported` otherwise."""
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")[:3]) < LEAST_SQLITE:
        raise StoreUnsupported(
            f"SQLite {version} can corrupt a log while its WAL is reset",
            action="open",
            subject="SQLite",
            hint=f"upgrade apsw to one that brings SQLite {'.'.join(map(str, LEAST_SQLITE))} or newer",
        )


def check_path(path: str) -> None:
    """Return for a path that SQLite can be told; raise `StoreUnsupported` for one that is no UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError as error:
        hint = "SQLite names files in UTF-8 alone; choose another path"
        raise StoreUnsupported("it is not UTF-8", action="open", subject=ascii(path), hint=hint) from error


def prepare(path: str, disk: Disk) -> None:
    """Have a file that is ours or empty, made where it is missing; raise for any other."""
    if not _is_made(path, disk):
        _make(path, disk)
    else:
        # first without the right to write: what another program left in its journal is not ours to settle
        reader = connect_to_read(path)
        if reader is not None:
            reader.close()


def connect_to_write(path: str) -> apsw.Connection:
    """Return a connection that writes a file that was prepared.

    What an earlier owner left in the `-wal` is copied into the file, so that it is durable again before it is believed.
    """
    with Translated("open", path):
        connection = apsw.Connection(path, flags=_WRITING)
        try:
            _settle(connection)
            _check_ours(connection, path)
            _apply_pragmas(connection, path)
            _make_schema(connection)
            _check_schema(connection, path)
            _value(connection, "PRAGMA wal_checkpoint(PASSIVE)")
        except BaseException:
            connection.close()
            raise
    return connection


def connect_to_read(path: str) -> apsw.Connection | None:
    """Return a read-only connection, or None when the file is absent, empty, or was left in the middle of its making.

    Raises as `connect_to_write` does.
    """
    try:
        if os.lstat(path).st_size == 0:
            return None
    except (FileNotFoundError, NotADirectoryError):
        return None
    with Translated("open", path):
        try:
            return _connected_to_read(path)
        except apsw.ReadOnlyError as error:
            # a death left a journal that has to be undone first, which a reader may not do
            journal = Disk().glance(f"{path}-journal", _JOURNAL_PAGES.stop)
            undone_is_empty = journal.startswith(_JOURNAL) and journal[_JOURNAL_PAGES] == bytes(4)
            waits_for_undoing = getattr(error, "extendedresult", 0) == apsw.SQLITE_READONLY_ROLLBACK
            if not waits_for_undoing or (journal and not undone_is_empty):
                raise
    # undone, it is an empty file; without a journal, another process has undone it by now
    return None if journal else connect_to_read(path)


def _connected_to_read(path: str) -> apsw.Connection | None:
    connection = apsw.Connection(f"file:{quote(os.fsencode(path))}?mode=ro", flags=_READING)
    try:
        _settle(connection)
        _check_ours(connection, path)
        if _value(connection, "PRAGMA application_id") == 0:
            connection.close()
            return None
        _check_schema(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def check_whole(path: str) -> None:
    """Return if a file that was overwritten, together with its `-wal`, is a database all the same.

    Raises `StoreFailed` otherwise. Nothing is written.
    """
    reader = connect_to_read(path)
    with Translated("open", path):
        try:
            fits = reader is not None and _value(reader, "PRAGMA integrity_check(1)") == "ok"
        except apsw.CorruptError:
            fits = False
        finally:
            if reader is not None:
                reader.close()
    if not fits:
        raise StoreFailed(
            "another file was copied over it while it was open, and does not fit to its -wal",
            action="open",
            subject=path,
            hint="end every process that has it open, move its -wal and -shm away, then restore the backup once more",
        )


def _is_made(path: str, disk: Disk) -> bool:
    """Whether there is a file. Raises `StoreUnsupported` for what is no regular file, or one with a second name."""
    status = disk.status_of(path)
    if status is None:
        return False
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        reason = "it has a second name" if stat.S_ISREG(status.st_mode) else "it is no regular file"
        hint = "each name would have a -wal of its own, and the database would be damaged; name the one file itself"
        raise StoreUnsupported(reason, action="open", subject=path, hint=hint)
    return True


def _make(path: str, disk: Disk) -> None:
    """Make an empty file that only its owner may read, as SQLite will make those beside it after its pattern."""
    disk.make_directory(os.path.dirname(path))
    disk.sync_above(os.path.dirname(path))
    try:
        os.mknod(path, stat.S_IFREG | 0o600)  # makes it without opening it
        os.chmod(path, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        hint = "check the owner and the mode of the directory"
        raise StoreFailed(str(error.strerror), action="make", subject=path, hint=hint) from error


def _settle(connection: apsw.Connection) -> None:
    connection.set_busy_handler(Patience(BUSY_MS))
    # else it compiles a statement again for each value that it looks for in an index, which took half of an append
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def _check_ours(connection: apsw.Connection, path: str) -> None:
    """Refuse a database of another program; a new one is nobody's."""
    connection.execute("BEGIN")  # both from one snapshot: another process may be making the schema
    found = _value(connection, "PRAGMA application_id")
    tables = _value(connection, "SELECT count(*) FROM sqlite_schema")
    connection.execute("COMMIT")
    if found == APPLICATION_ID or (found == 0 and tables == 0):
        return
    raise StoreUnsupported(
        f"it is a database of another program (application id {found})",
        action="open",
        subject=path,
        hint="name a file of its own for turnwal",
    )


def _check_schema(connection: apsw.Connection, path: str) -> None:
    found = _value(connection, "PRAGMA user_version")
    if found > SCHEMA:
        raise TooNew(
            f"its schema is {found}, this version knows up to {SCHEMA}",
            action="open",
            subject=path,
            hint="upgrade turnwal",
        )


def _apply_pragmas(connection: apsw.Connection, path: str) -> None:
    for name, wanted in _PRAGMAS.items():
        _value(connection, f"PRAGMA {name} = {wanted}")
        found = _value(connection, f"PRAGMA {name}")
        if found != wanted:
            raise StoreUnsupported(
                f"PRAGMA {name} is {found!r} where {wanted!r} was asked for",
                action="open",
                subject=path,
                hint="the file system must allow shared memory and locks: no network file system",
            )


def _make_schema(connection: apsw.Connection) -> None:
    """Make the tables where there are none; safe from two processes at once."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _value(connection, "PRAGMA application_id") == 0:
            connection.execute(_DDL)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _value(connection: apsw.Connection, statement: str) -> Any:
    """The one value of a statement, fetched, so that its failure is heard of."""
    return connection.execute(statement).get
