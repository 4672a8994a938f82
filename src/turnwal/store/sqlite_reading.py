"""Reading a SQLite file: one read-only connection, shared by the threads of a process.

Promises:
- A reader never checkpoints, so it never deletes the `-wal` of a live writer.
- Between two calls no transaction is open: nobody is held up, and the next call sees what was committed since.
- Once the path, or that of the `-wal` or `-shm`, names another file, that one is read.

Does not: hold more than about a megabyte of lines at a time.
"""

import threading
from typing import Any

import apsw

from turnwal.core.errors import StoreFailed
from turnwal.core.limits import READ_BYTES
from turnwal.store import forks
from turnwal.store.inodes import Inode, Names
from turnwal.store.sqlite_errors import failure, no_text
from turnwal.store.sqlite_file import connect_to_read


class Reader:
    """The read-only connection of a store, opened when it is needed."""

    def __init__(self, path: str) -> None:
        """Stand for the file at a path."""
        self._path = path
        self._names = Names(path, f"{path}-wal", f"{path}-shm")
        self._mutex = threading.RLock()
        self._connection: apsw.Connection | None = None
        self._inodes: list[Inode | None] = []
        forks.enter(self)

    def rows(self, statement: str, values: tuple[object, ...], action: str = "read") -> list[Any]:
        """Return the first rows of a query, until their last columns make a megabyte; none where there is no file."""
        with self._mutex:
            connection = self._current()
            if connection is None:
                return []
            found: list[Any] = []
            size = 0
            cursor = connection.cursor()
            try:
                for row in cursor.execute(statement, values):
                    found.append(row)
                    size += len(row[-1]) if isinstance(row[-1], bytes) else 0
                    if size >= READ_BYTES:
                        break
                cursor.close(True)  # noqa: FBT003 - the driver's own parameter
            except apsw.Error as error:
                code = connection.system_errno if self._connection is connection else 0
                self.close()
                raise failure(error, action, self._path, code=code) from error
            except UnicodeDecodeError as error:
                self.close()
                raise no_text(error, action, self._path) from error
            except BaseException:
                self.close()
                raise
        return found

    def broken(self, reason: str) -> StoreFailed:
        """The error for a file that SQLite reads without a word, and that cannot be as it was written."""
        hint = "restore the file from a copy; SQLite's .recover may read what is left"
        return StoreFailed(reason, action="read", subject=self._path, hint=hint)

    def close(self) -> None:
        """Close the connection; the next query makes another."""
        with self._mutex:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close(True)  # noqa: FBT003 - as above

    def before_fork(self) -> None:
        """Close the connection and let nobody open one."""
        self._mutex.acquire()
        self.close()

    def after_fork(self) -> None:
        """Let others in again."""
        self._mutex.release()

    def _current(self) -> apsw.Connection | None:
        try:
            inodes = self._names.inodes()
        except OSError as error:
            hint = "check the mode of the directory"
            raise StoreFailed(str(error.strerror), action="inspect", subject=self._path, hint=hint) from error
        if self._connection is not None and inodes == self._inodes:
            return self._connection
        self.close()
        self._inodes = inodes
        self._connection = connect_to_read(self._path)
        return self._connection
