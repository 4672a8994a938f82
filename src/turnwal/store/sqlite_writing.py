"""Writing a SQLite file: the one connection of a process that writes it.

Promises:
- What runs in a transaction is durable, in the file and the `-wal` that the path names, when it returns.
- After any failure the connection is dropped: what it believes may not be what the disk has.
- A forked child never touches the connection of its parent.
- A clean close leaves nothing in the `-wal`.

Does not: retry.
"""

# pathlib would take a quarter of the time that importing turnwal may add
# ruff: noqa: PTH120

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Final, TypeVar

import apsw

from turnwal.core.errors import OwnershipLost, StoreFailed
from turnwal.store import forks
from turnwal.store.disk import Disk
from turnwal.store.inodes import Inode, Names
from turnwal.store.sqlite_errors import failure
from turnwal.store.sqlite_file import connect_to_write

T = TypeVar("T")

_CLOSING_MS: Final = 100
"""How long a clean close waits for readers, to leave the `-wal` empty."""


class Writer:
    """The writing connection of a store, opened when it is needed."""

    def __init__(self, path: str, disk: Disk) -> None:
        """Stand for the file at a path, which the first transaction makes."""
        self._path = path
        self._names = Names(path, f"{path}-wal")
        self._disk = disk
        self._mutex = threading.RLock()
        self._connection: apsw.Connection | None = None
        self._identity: list[Inode | None] = [None, None]
        self.generation = 0
        """Raised when the path was found to name another file or `-wal` than the one that was written."""
        self._pid = os.getpid()
        forks.enter(self)

    def check_process(self) -> None:
        """Return in the process that opened the store; raise `OwnershipLost` in a forked child."""
        if self._pid != os.getpid():
            raise OwnershipLost(
                "this store was opened by the parent of this process",
                action="open",
                subject=self._path,
                hint="open the store again in the child",
            )

    def run(self, action: str, body: Callable[[apsw.Connection], T]) -> T:
        """Return what a body comes to inside one transaction, once that is durable; whatever it raises undoes it."""

        def whole(connection: apsw.Connection) -> T:
            connection.execute("BEGIN IMMEDIATE")
            result = body(connection)
            connection.execute("COMMIT")
            return result

        return self.run_alone(action, whole)

    def run_alone(self, action: str, body: Callable[[apsw.Connection], T]) -> T:
        """As `run`, for a body that writes with one statement, which is a transaction by itself and costs less."""
        self.check_process()
        with self._mutex:
            connection = self._opened()
            try:
                result = body(connection)
                self._check_identity(action)
            except apsw.Error as error:
                # none is left where a fork in the middle, by a signal handler, closed it
                code = connection.system_errno if self._connection is connection else 0
                found = failure(error, action, self._path, code=code)
                self._drop()
                raise found from error
            except BaseException:
                self._drop()
                raise
        return result

    def close(self) -> None:
        """Empty the `-wal` and close the connection; the next transaction makes another."""
        if self._pid != os.getpid():
            return
        with self._mutex:
            if self._connection is None:
                return
            try:
                self._connection.set_busy_timeout(_CLOSING_MS)
                if self._found() == self._identity:
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get  # noqa: B018 - fetched on purpose
            except (apsw.Error, StoreFailed):
                pass
            finally:
                self._drop()

    def before_fork(self) -> None:
        """Close the connection and let nobody open one."""
        self._mutex.acquire()
        self._drop()

    def after_fork(self) -> None:
        """Let others in again."""
        self._mutex.release()

    def _opened(self) -> apsw.Connection:
        if self._connection is None:
            connection = connect_to_write(self._path, self._disk)
            found = self._found()
            # the -wal comes and goes with connections, the file stays
            if self._identity[0] not in (None, found[0]):
                self.generation += 1
            self._identity = found
            self._connection = connection
            self._disk.sync_directory(os.path.dirname(self._path))
        return self._connection

    def _found(self) -> list[Inode | None]:
        try:
            return self._names.inodes()
        except OSError as error:
            hint = "check the mode of the directory"
            raise StoreFailed(str(error.strerror), action="inspect", subject=self._path, hint=hint) from error

    def _check_identity(self, action: str) -> None:
        """Return if the path still names the file and the `-wal` that were written; raise `StoreFailed` otherwise."""
        found = self._found()
        if found == self._identity and None not in found:
            return
        self.generation += 1
        what = "it" if found[0] != self._identity[0] else "its -wal"
        raise StoreFailed(
            f"{what} was removed or replaced while it was open for writing",
            action=action,
            subject=self._path,
            hint="open the session anew, and find out what moves or deletes the database or files beside it",
        )

    def _drop(self) -> None:
        """Close the connection. What was committed is copied into the file that it has open, whatever its name now.

        SQLite deletes the `-wal` by its name, which may be that of another database by now: it is told not to.
        """
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            found = self._found()
            if found != self._identity:
                # SQLite does not do it at the close of a file that was moved, nor while a reader has it open
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").get  # noqa: B018 - fetched on purpose
                keep = ctypes.c_int(1)
                connection.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, ctypes.addressof(keep))
        except (apsw.Error, StoreFailed):
            pass
        finally:
            self._shut(connection)

    def _shut(self, connection: apsw.Connection) -> None:
        try:
            connection.close(True)  # noqa: FBT003 - the driver's own parameter
        except apsw.Error:
            return
