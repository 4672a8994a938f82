"""The few system calls that a file store makes, each of which may fail.

Promises:
- Every refusal of the operating system becomes an error with what was attempted, on which path, and what to do next.
  Absence is an answer, not a failure: it comes back as None.
- A write writes everything or raises, and a sync has reached the device when it returns.

Does not: retry. A failed sync says nothing about what a second one would find, so nobody asks again.

A test hands in a disk of its own, or a system whose calls fail where a plan says (`turnwal.testing.faults`).
"""

# pathlib would take a quarter of the time that importing turnwal may add
# ruff: noqa: PTH100, PTH102, PTH104, PTH106, PTH108, PTH112, PTH120, PTH208

import errno
import fcntl
import os
import stat
import sys
from typing import Final

from turnwal.core.errors import StoreError, StoreFailed, StoreFull, StoreUnsupported

NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
"""What a file system says that gives no file a second name."""
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What the system says when there is no room: the device, a quota, a limit on the size of a file."""
_UNSUPPORTED: Final = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK, errno.ELOOP})
_HINTS: Final = {
    errno.EACCES: "check the owner and the mode of the file and of its directory",
    errno.EPERM: "check the owner and the mode of the file and of its directory",
    errno.EISDIR: "a session is a file; move the directory away",
    errno.ENOTDIR: "the store is a directory; what stands there is none",
    errno.EROFS: "the file system is mounted read-only",
    errno.EMFILE: "this process has too many files open",
    errno.ENFILE: "this machine has too many files open",
    errno.ENAMETOOLONG: "use a shorter path for the store",
    errno.ELOOP: "a session is never a symbolic link: another name would mean another lock; name the file itself",
}
_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700


class System:
    """The calls of the operating system that change a file or say that it is safe; what they raise is passed on."""

    def open(self, path: str, flags: int, mode: int = 0) -> int:
        """Return a descriptor."""
        return os.open(path, flags, mode)

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        """Write where the descriptor stands and return how many bytes were taken."""
        return os.write(descriptor, data)

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> int:
        """Write at an offset and return how many bytes were taken."""
        return os.pwrite(descriptor, data, offset)

    def sync(self, descriptor: int) -> None:
        """Return when content has reached the device."""
        if sys.platform == "darwin":
            # fsync there stops at the drive's cache
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(descriptor)

    def sync_names(self, descriptor: int) -> None:
        """Return when the names in a directory have reached the device."""
        os.fsync(descriptor)

    def link(self, path: str, name: str) -> None:
        """Give a file a second name."""
        os.link(path, name)

    def rename(self, path: str, name: str) -> None:
        """Give a file another name, in place of what has that name."""
        os.rename(path, name)

    def unlink(self, path: str) -> None:
        """Remove a name."""
        os.unlink(path)

    def make_directory(self, path: str, mode: int) -> None:
        """Make a directory."""
        os.mkdir(path, mode)


class Disk:
    """The real disk, or what a system of a test makes of it."""

    _system = System()

    def __init__(self, system: System | None = None) -> None:
        """A disk behind the calls of a system; those of the operating system where none is given."""
        if system is not None:
            self._system = system

    def open(self, path: str, *, write: bool = False) -> int | None:
        """Return a descriptor of the file, None when it is absent. Raises `StoreUnsupported` for a symbolic link."""
        # O_NONBLOCK, since opening a named pipe would otherwise wait for its other end
        flags = (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = self._system.open(path, flags)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(error, "open", path) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise StoreUnsupported(
                "it is no regular file", action="open", subject=path, hint="a session is a file; move this away"
            )
        return descriptor

    def create(self, path: str) -> int | None:
        """Return a descriptor of a new empty file that only its owner may read, None when the name is taken."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = self._system.open(path, flags, _FILE_MODE)
        except FileExistsError:
            return None
        except OSError as error:
            raise _failed(error, "create", path) from error
        try:
            # the mode given above is cut by the umask, which may also take the owner's own bits
            os.fchmod(descriptor, _FILE_MODE)
        except OSError as error:
            os.close(descriptor)
            raise _failed(error, "create", path) from error
        return descriptor

    def close(self, descriptor: int) -> None:
        """Close a descriptor; nothing depends on the answer, since what counts was synced before."""
        try:
            os.close(descriptor)
        except OSError:
            return

    def read_at(self, descriptor: int, length: int, offset: int, path: str) -> bytes:
        """Return up to `length` bytes from an offset, none at the end."""
        try:
            return os.pread(descriptor, length, offset)
        except OSError as error:
            raise _failed(error, "read", path) from error

    def write(self, descriptor: int, data: bytes, path: str) -> None:
        """Write all of the data at the end of an append-only descriptor, in one call where the system allows it."""
        try:
            written = self._system.write(descriptor, data)
            if written == len(data):
                return
            rest = memoryview(data)[written:]
            while rest:
                rest = rest[self._system.write(descriptor, rest) :]
        except OSError as error:
            raise _failed(error, "write", path) from error

    def write_at(self, descriptor: int, data: bytes, offset: int, path: str) -> None:
        """Write all of the data at an offset."""
        rest = memoryview(data)
        try:
            while rest:
                written = self._system.write_at(descriptor, rest, offset)
                rest, offset = rest[written:], offset + written
        except OSError as error:
            raise _failed(error, "write", path) from error

    def sync(self, descriptor: int, path: str) -> None:
        """Return when the content of a file, and what is needed to read it back, has reached the device."""
        try:
            self._system.sync(descriptor)
        except OSError as error:
            raise _failed(error, "sync", path) from error

    def sync_directory(self, path: str) -> None:
        """Return when the names in a directory have reached the device: a new file lives only from then on."""
        try:
            descriptor = self._system.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self._system.sync_names(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _failed(error, "sync", path) from error

    def append_only(self, descriptor: int, path: str) -> None:
        """Make every later `write` go to the end, so that bytes of a foreign writer are never overwritten."""
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)
        except OSError as error:
            raise _failed(error, "open", path) from error

    def status(self, descriptor: int, path: str) -> os.stat_result:
        """Return what the system knows of an open file."""
        try:
            return os.fstat(descriptor)
        except OSError as error:
            raise _failed(error, "inspect", path) from error

    def status_of(self, path: str) -> os.stat_result | None:
        """Return what the system knows of a name, None when it names nothing. A symbolic link is not followed."""
        try:
            return os.lstat(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(error, "inspect", path) from error

    def lock(self, descriptor: int, path: str, *, shared: bool = False) -> bool:
        """Take the kernel's lock of a file without waiting; False when somebody else has it."""
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise _failed(error, "lock", path) from error
        return True

    def unlock(self, descriptor: int) -> None:
        """Give the lock up, also for those who inherited the descriptor; closing it does the same, later."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        except OSError:
            return

    def link(self, path: str, name: str) -> bool:
        """Give a file a second name; False when that name is taken, whatever it leads to."""
        try:
            self._system.link(path, name)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno in NO_LINKS:
                raise StoreUnsupported(
                    f"the file system gives a file no second name ({os.strerror(error.errno or 0)})",
                    action="create",
                    subject=name,
                    hint="keep sessions on a file system with hard links",
                ) from error
            raise _failed(error, "create", name) from error
        return True

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, none when it is absent."""
        try:
            return os.listdir(path)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failed(error, "list", path) from error

    def make_directory(self, path: str) -> None:
        """Make a directory that only its owner may enter, and the ones above it; each is durable on return."""
        if os.path.isdir(path):
            return
        parent = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(parent):
            self.make_directory(parent)
        try:
            self._system.make_directory(path, _DIRECTORY_MODE)
        except FileExistsError:
            if os.path.isdir(path):
                return
            raise _failed(NotADirectoryError(errno.ENOTDIR, "Not a directory"), "make", path) from None
        except OSError as error:
            raise _failed(error, "make", path) from error
        try:
            self.sync_directory(parent)
        except StoreError:
            # whoever finds it the next time would take its name for durable
            self._remove_directory(path)
            raise

    def sync_above(self, path: str) -> None:
        """Return when the name of a directory is durable, and those of the ones above it.

        Whoever made them may have died before they were. It goes up as far as they look as if they were made here.
        """
        path = os.path.abspath(path)
        while (parent := os.path.dirname(path)) != path:
            status = self.status_of(path)
            if status is None or status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) != _DIRECTORY_MODE:
                return
            self.sync_directory(parent)
            path = parent

    def _remove_directory(self, path: str) -> None:
        try:
            os.rmdir(path)
        except OSError:
            return

    def write_whole(self, path: str, data: bytes, *, new: str) -> None:
        """Make a small file hold this: on return it does, durably; before, and after a crash, it is as it was.

        It is written under the name `new` first, in the same directory, which is written over and not left behind.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = self._system.open(new, flags, _FILE_MODE)
        except OSError as error:
            raise _failed(error, "create", new) from error
        try:
            try:
                self.write_at(descriptor, data, 0, new)
                self.sync(descriptor, new)
            finally:
                os.close(descriptor)
            self.rename(new, path)
        except BaseException:
            self.discard(new)
            raise
        self.sync_directory(os.path.dirname(path) or ".")

    def rename(self, name: str, path: str) -> None:
        """Give a file another name, in place of what has that name."""
        try:
            self._system.rename(name, path)
        except OSError as error:
            raise _failed(error, "rename", path) from error

    def replace(self, path: str, data: bytes) -> None:
        """Make a small file hold this, as well as it goes: for what only describes, so nothing is synced or raised."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = self._system.open(path, flags, _FILE_MODE)
            try:
                self._system.write(descriptor, data)
            finally:
                os.close(descriptor)
        except OSError:
            return

    def glance(self, path: str, length: int) -> bytes:
        """Return the beginning of a small file, as well as it goes: nothing where it cannot be read."""
        try:
            descriptor = self._system.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                return os.read(descriptor, length)
            finally:
                os.close(descriptor)
        except OSError:
            return b""

    def discard(self, path: str) -> None:
        """Remove a name, as well as it goes."""
        try:
            self._system.unlink(path)
        except OSError:
            return


def _failed(error: OSError, action: str, path: str) -> StoreError:
    code = error.errno or 0
    reason = os.strerror(code) if code else str(error)
    if code in FULL:
        hint = "make room, then open the session again; what was acknowledged is kept"
        return StoreFull(reason, action=action, subject=path, hint=hint)
    kind = StoreUnsupported if code in _UNSUPPORTED else StoreFailed
    return kind(reason, action=action, subject=path, hint=_HINTS.get(code, "look at the disk and the kernel's log"))
