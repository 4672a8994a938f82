"""What SQLite says, as errors of ours.

Promises: every error of the driver becomes one with what was attempted, on which file, and what to do next. A disk that
is full is said to be full, whichever of its ways SQLite has of saying it.

Does not: retry.
"""

import errno
from typing import Final

import apsw

from turnwal.core.errors import StoreError, StoreFailed, StoreFull, StoreUnsupported

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Translated:
    """A block in which what SQLite says becomes an error of ours."""

    def __init__(self, action: str, path: str) -> None:
        """Name what is attempted, and on which file."""
        self._action = action
        self._path = path

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Raise the error of ours for one of SQLite."""
        if isinstance(error, apsw.Error):
            raise failure(error, self._action, self._path) from error
        if isinstance(error, UnicodeDecodeError):
            raise no_text(error, self._action, self._path) from error


def failure(error: apsw.Error, action: str, path: str, *, code: int = 0) -> StoreError:
    """The error of ours for one of SQLite; `code` is the system's own number, which tells why a write failed."""
    reason = f"{type(error).__name__.removesuffix('Error')}: {error}"
    if isinstance(error, apsw.FullError) or (isinstance(error, apsw.IOError) and code in _FULL):
        hint = "make room, then open the session again; what was acknowledged is kept"
        return StoreFull(reason, action=action, subject=path, hint=hint)
    kind = StoreUnsupported if isinstance(error, apsw.NotADBError) else StoreFailed
    return kind(reason, action=action, subject=path, hint=_hint(error))


def no_text(error: UnicodeDecodeError, action: str, path: str) -> StoreFailed:
    """The error for text that SQLite hands over as it found it, and that is none: bytes that went bad on the disk."""
    hint = "restore the file from a copy; SQLite's .recover may read what is left"
    return StoreFailed(f"text in it is no UTF-8 ({error.reason})", action=action, subject=path, hint=hint)


def _hint(error: apsw.Error) -> str:
    match error:
        case apsw.NotADBError():
            return "it is something else; name another file"
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError():
            return "check the mode of the file and of its directory, which must be writable, to read too"
        case apsw.BusyError() | apsw.LockedError():
            return "another process is in the middle of a long write; try again"
        case apsw.CorruptError():
            return "restore the file from a copy; SQLite's .recover may read what is left"
        case _:
            return "look at the disk and the kernel's log"
