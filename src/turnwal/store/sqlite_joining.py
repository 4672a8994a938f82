"""Who writes a SQLite file together: only those that have the same file, `-wal` and `-shm` open.

SQLite finds what stands beside a file by its name. When that was deleted under a writer, the next one to open the file
makes another, and the two write histories that exclude each other into one file.

Promises: as long as one connection for writing is open on a file, another is opened only where the path still names all
that the first has open. Each of them holds a shared lock on byte 0 of `<file>-owners`, where no session has a byte, and
on a byte that is drawn from the identity of the three files. Who comes first holds byte 0 alone until it holds both.

Does not: hold up a reader, or another program.
"""

import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final

import apsw

from turnwal.core.errors import StoreFailed
from turnwal.store.inodes import Inode
from turnwal.store.lifelock import LifeLock, is_held
from turnwal.store.sqlite_file import BUSY_MS, connect_to_write

COMMON: Final = 0
"""The byte that all hold; sessions have theirs from 1 on."""

_MARKS: Final = 1 << 62
"""Behind every session's byte."""
_SETTLING_S: Final = 1.0
"""How long those who leave may take to remove what they had open, before it counts as gone under them."""
_POLL_S: Final = 0.01


Identity = Sequence[Inode | None]
"""The files that a path names now: the database, its `-wal` and its `-shm`."""


def join(path: str, lock: LifeLock, found: Callable[[], Identity]) -> tuple[apsw.Connection, Identity]:
    """Return a connection for writing, and the files that it writes; the lock is held with the others from then on.

    Raises `StoreFailed` where somebody writes other files under this path.
    """
    started = time.monotonic()
    settling = None
    while True:
        if lock.hold(COMMON):
            connection = connect_to_write(path)
            identity = found()
            lock.hold(_mark(identity), shared=True)
            lock.hold(COMMON, shared=True)
            return connection, identity
        if lock.hold(COMMON, shared=True):
            identity = found()
            if is_held(f"{path}-owners", _mark(identity)):
                connection = connect_to_write(path)
                if found() == identity:
                    lock.hold(_mark(identity), shared=True)
                    return connection, identity
                connection.close()
            lock.leave(COMMON)
            settling = settling or time.monotonic()
        else:
            settling = None
        if settling is not None and time.monotonic() - settling > _SETTLING_S:
            raise StoreFailed(
                "it, its -wal or its -shm was removed or replaced while another process has it open for writing",
                action="open",
                subject=path,
                hint="end the other process, or have it write and find out; what it wrote is then in its file",
            )
        if time.monotonic() - started > BUSY_MS / 1000:
            hint = "look for a process that was stopped in the middle of opening it; try again"
            raise StoreFailed("another process is opening it for writing", action="open", subject=path, hint=hint)
        time.sleep(_POLL_S)


def _mark(identity: Identity) -> int:
    return _MARKS + int.from_bytes(sha256(repr(identity).encode()).digest()[:7], "big")
