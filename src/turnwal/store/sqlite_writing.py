"""Writing a SQLite file: the one connection of a process that writes it.

Promises:
- What runs in a transaction is durable, in the file and the `-wal` that the path names, when it returns.
- It is open together with those alone that have the same files open (see `sqlite_joining`); once they were taken away,
  what was committed is copied into the database, which nobody else can have written since.
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
from turnwal.store.inodes import Names
from turnwal.store.lifelock import LifeLock
from turnwal.store.sqlite_errors import failure
from turnwal.store.sqlite_file import check_whole, prepare
from turnwal.store.sqlite_joining import COMMON, Identity, join
from turnwal.store.surely import surely

T = TypeVar("T")

_CLOSING_MS: Final = 100
"""How long a clean close waits for readers, to leave the `-wal` empty."""


class Writer:
    """The writing connection of a store, opened when it is needed."""

    def __init__(self, path: str, disk: Disk) -> None:
        """Stand for the file at a path, which the first transaction makes."""
        self._path = path
        self._names = Names(path, f"{path}-wal", f"{path}-shm")
        self._disk = disk
        self._mutex = threading.RLock()
        self._connection: apsw.Connection | None = None
        self._lock: LifeLock | None = None
        self._identity: Identity = [None, None, None]
        self._size = 0
        """The least that the file has: nothing that is written here makes it shorter."""
        self._overwritten = False
        self.generation = 0
        """Raised when the path was found to name another file, `-wal` or `-shm` than the one that was written."""
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
                # before as well: nothing is written that only the check behind it would find out
                self._check_identity(action)
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

    def check(self, action: str) -> None:
        """Return if the path names what is open for writing, if anything is; raise `StoreFailed` otherwise."""
        with self._mutex:
            if self._connection is not None:
                try:
                    self._check_identity(action)
                except BaseException:
                    self._drop()
                    raise

    def close(self) -> None:
        """Empty the `-wal` and close the connection; the next transaction makes another."""
        if self._pid != os.getpid():
            return
        with self._mutex:
            if self._connection is None:
                self._drop()
                return
            try:
                self._connection.set_busy_timeout(_CLOSING_MS)
                if (found := self._found()) == self._identity and not self._is_shorter(found):
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
        if self._connection is not None:
            return self._connection
        self._drop()  # what an interrupt left
        if self._overwritten:
            check_whole(self._path)
            self._overwritten = False
        prepare(self._path, self._disk)
        self._lock = LifeLock(f"{self._path}-owners", COMMON)
        try:
            connection, found = join(self._path, self._lock, self._found)
            # what stands beside the file comes and goes with connections, the file stays
            if self._identity[0] not in (None, found[0]):
                self.generation += 1
            self._identity = found
            self._size = self._names.size
            self._connection = connection
            self._disk.sync_directory(os.path.dirname(self._path))
        except BaseException:
            self._drop()
            raise
        return connection

    def _found(self) -> Identity:
        try:
            return self._names.inodes()
        except OSError as error:
            hint = "check the mode of the directory"
            raise StoreFailed(str(error.strerror), action="inspect", subject=self._path, hint=hint) from error

    def _check_identity(self, action: str) -> None:
        """Return if the path still names the file and the `-wal` that were written; raise `StoreFailed` otherwise.

        So it is where the file is shorter than before: a backup was copied over it.
        """
        found = self._found()
        if found == self._identity and None not in found and self._names.size >= self._size:
            self._size = self._names.size
            return
        self.generation += 1
        if self._is_shorter(found):
            raise StoreFailed(
                "it was overwritten with something shorter while it was open for writing",
                action=action,
                subject=self._path,
                hint="never restore a backup in place: docs/stores.md says how",
            )
        names = ("it", "its -wal", "its -shm")
        changed = (name for name, now, was in zip(names, found, self._identity, strict=True) if now != was or not now)
        what = next(changed)
        raise StoreFailed(
            f"{what} was removed or replaced while it was open for writing",
            action=action,
            subject=self._path,
            hint="open the session anew, and find out what moves or deletes the database or files beside it",
        )

    def _is_shorter(self, found: Identity) -> bool:
        """Whether the file that is open lost its end, as of when the names were found."""
        return found[0] == self._identity[0] and self._names.size < self._size

    def _drop(self) -> None:
        """Close the connection. What was committed is copied into the file that it has open, whatever its name now.

        SQLite deletes the `-wal` by its name, which may be that of another database by now: it is told not to.
        """
        connection, self._connection = self._connection, None
        try:
            if connection is not None:
                self._end(connection)
        finally:
            if self._lock is not None:
                surely(self._lock.close)

    def _end(self, connection: apsw.Connection) -> None:
        try:
            found = self._found()
            self._overwritten = self._is_shorter(found)
            if found != self._identity or self._overwritten:
                keep = ctypes.c_int(1)
                connection.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, ctypes.addressof(keep))
                if not self._overwritten and self._is_alone():
                    # SQLite does not do it at the close of a file that was moved, nor while a reader has it open
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").get  # noqa: B018 - fetched on purpose
                else:
                    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        except (apsw.Error, StoreFailed):
            pass
        finally:
            self._shut(connection)

    def _is_alone(self) -> bool:
        """Whether nobody but those who share what this connection has open can have written the file.

        Others were kept out by the lock where its file is still in its place, or nobody has made another.
        A program that does not ask for it has written where another `-wal` holds something; an empty one is what a
        reader leaves.
        """
        if self._lock is None or not (self._lock.is_named or self._keeps_out(self._lock)):
            return False
        status = self._disk.status_of(f"{self._path}-wal")
        return status is None or status.st_size == 0 or self._found()[1] == self._identity[1]

    def _keeps_out(self, gone: LifeLock) -> bool:
        """Have a new lock in the place of one whose file was deleted, alone; False where somebody came since.

        Whoever comes makes that file before it opens the database.
        """
        surely(gone.close)
        try:
            self._lock = LifeLock(f"{self._path}-owners", COMMON, new=True)
        except StoreFailed:
            return False
        return self._lock.hold(COMMON)

    def _shut(self, connection: apsw.Connection) -> None:
        try:
            connection.close(True)  # noqa: FBT003 - the driver's own parameter
        except apsw.Error:
            return
