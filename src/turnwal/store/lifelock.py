"""Proof of life for sessions that share one file: a kernel lock on one byte each of a lock file beside it.

Promises:
- The lock dies with the process and with nothing else: not with a pid, an age, or another descriptor being closed.
- Looking whether a session is owned disturbs nobody, and needs no right to write.
- A forked child holds nothing: its inherited descriptors are closed before it runs.

Does not: fence. What counts is the epoch, which the store checks inside the transaction.
"""

import fcntl
import os
import struct
import sys
import threading
from contextlib import suppress
from typing import Final

from turnwal.core.errors import StoreFailed, StoreUnsupported

# struct flock with 64-bit offsets, as Linux has it on every architecture: type, whence, start, length, pid
_FLOCK: Final = struct.Struct("@hhqqi4x")

_forking: Final = threading.RLock()
"""Held while a descriptor is made and entered here, and while the process forks: a child inherits no unknown one."""

_live: Final[set["LifeLock"]] = set()
"""Every descriptor that is open. Not weak: a lock that was forgotten is still held, by a forked child too."""


class LifeLock:
    """The lock of one session, held or not."""

    def __init__(self, path: str, number: int, *, new: bool = False) -> None:
        """Stand for byte `number` of the lock file, which is made where it is missing, or has to be `new`.

        Raises `StoreFailed` where it cannot be opened, or is there and should be new.
        """
        check_supported(path)
        self._path = path
        self._number = number
        self._pid = os.getpid()
        with _forking:
            try:
                made = os.O_CREAT | os.O_EXCL if new else os.O_CREAT
                self._descriptor = os.open(path, os.O_RDWR | made | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except OSError as error:
                message = f"the lock file cannot be opened ({error.strerror})"
                hint = "the directory must be writable for whoever owns a session"
                raise StoreFailed(message, action="claim", subject=path, hint=hint) from error
            _live.add(self)

    def take(self) -> bool:
        """Take the lock without waiting; False when another holds it."""
        return self.hold(self._number)

    def hold(self, number: int, *, shared: bool = False) -> bool:
        """Hold any byte alone or together with others, without waiting; False when that cannot be now."""
        return self._set(fcntl.F_RDLCK if shared else fcntl.F_WRLCK, number)

    def leave(self, number: int) -> None:
        """Hold a byte no more."""
        self._set(fcntl.F_UNLCK, number)

    @property
    def is_named(self) -> bool:
        """Whether the path still names the file in which this lock is."""
        try:
            return os.path.samestat(os.lstat(self._path), os.fstat(self._descriptor))
        except OSError:
            return False

    def _set(self, kind: int, number: int) -> bool:
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _request(kind, number))
        except (BlockingIOError, PermissionError):
            return False
        except OSError as error:
            hint = "keep the file on a local file system"
            raise StoreUnsupported(
                f"no lock can be taken ({error.strerror})", action="claim", subject="its lock file", hint=hint
            ) from error
        return True

    def close(self) -> None:
        """Let the lock go, also for a child that was forked past Python and still has the descriptor; idempotent."""
        with _forking:
            # in this order it can be repeated when an interrupt ended it
            if self._descriptor < 0:
                return
            if self._pid == os.getpid():
                with suppress(OSError):
                    fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _EVERY_BYTE)
            _live.discard(self)
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


def is_held(path: str, number: int) -> bool:
    """Whether somebody holds the lock of a session, this process included."""
    check_supported(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError as error:
        message = f"the lock file cannot be opened ({error.strerror})"
        hint = "check the mode of the file and its directory"
        raise StoreFailed(message, action="inspect", subject=path, hint=hint) from error
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _request(fcntl.F_WRLCK, number))
    finally:
        os.close(descriptor)
    kind: int = _FLOCK.unpack(answer)[0]
    return kind != fcntl.F_UNLCK


def check_supported(path: str) -> None:
    """Return where the kernel has locks that belong to an open file; raise `StoreUnsupported` elsewhere."""
    if sys.platform != "linux" or not hasattr(fcntl, "F_OFD_SETLK"):
        raise StoreUnsupported(
            "this system has no locks that belong to an open file (Linux has them)",
            action="open",
            subject=path,
            hint="keep sessions in a directory instead: file:PATH",
        )


def _request(kind: int, number: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, number, 1, 0)


_EVERY_BYTE: Final = _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0)


def _in_child() -> None:
    for lock in list(_live):
        lock.close()
    _forking.release()


os.register_at_fork(before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_in_child)
