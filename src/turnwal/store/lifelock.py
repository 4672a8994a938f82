"""Proof of life for sessions that share one file: a kernel lock on one byte each of a lock file beside it.

Promises:
- The lock dies with the process and with nothing else: not with a pid, an age, or another descriptor being closed.
- Looking whether a session is owned disturbs nobody.
- A forked child holds nothing: its inherited descriptors are closed before it runs.

Does not: fence. What counts is the epoch, which the store checks inside the transaction.
"""

import fcntl
import os
import struct
import weakref

from turnwal.core.errors import StoreFailed

_FLOCK = struct.Struct("hhqqi4x")
_LIVE: "weakref.WeakSet[LifeLock]" = weakref.WeakSet()


class LifeLock:
    """The lock of one session, held or not."""

    def __init__(self, path: str, number: int) -> None:
        """Stand for byte `number` of the lock file, which is made where it is missing."""
        self._path = path
        self._number = number
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            message = f"the lock file cannot be opened ({error.strerror})"
            hint = "the directory must be writable for whoever owns a session"
            raise StoreFailed(message, action="claim", subject=path, hint=hint) from error
        _LIVE.add(self)

    def take(self) -> bool:
        """Take the lock without waiting; False when another holds it."""
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, self._request(fcntl.F_WRLCK))
        except (BlockingIOError, PermissionError):
            return False
        return True

    def is_held(self) -> bool:
        """Whether somebody holds the lock, this process included."""
        answer = fcntl.fcntl(self._descriptor, fcntl.F_OFD_GETLK, self._request(fcntl.F_WRLCK))
        kind: int = _FLOCK.unpack(answer)[0]
        return kind != fcntl.F_UNLCK

    def close(self) -> None:
        """Let the lock go; idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        _LIVE.discard(self)
        if descriptor >= 0:
            os.close(descriptor)

    def _request(self, kind: int) -> bytes:
        return _FLOCK.pack(kind, os.SEEK_SET, self._number, 1, 0)


def _close_inherited() -> None:
    for lock in list(_LIVE):
        lock.close()


os.register_at_fork(after_in_child=_close_inherited)
