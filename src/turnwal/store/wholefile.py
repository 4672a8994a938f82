"""A file that is made outside of a store: an export, a repaired copy.

Promises:
- Under its name stands all of it or nothing, at every moment and after every crash, and on the device once it is done.
- What has that name already is never written over. Nobody but its owner may read it.
- Whatever ends it before, Ctrl-C too, leaves neither name. Only a process that dies leaves the one that it was written
  under, beside it, which begins with a dot.

Does not: keep the promise for a crash on a file system without hard links, where the name is there first, empty.
"""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from turnwal.store.disk import NO_LINKS


@contextmanager
def whole_file(out: Path) -> Iterator[BinaryIO]:
    """A new file to write to. Raises `FileExistsError` where its name is taken, and `OSError`."""
    if os.path.lexists(out):
        raise _taken(out)
    part = out.with_name(f".turnwal-part-{secrets.token_hex(8)}")
    try:
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            # it is the other name that the caller knows
            raise OSError(error.errno, error.strerror, str(out)) from error
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _give_name(part, out)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def sync_directory(path: Path) -> None:
    """Return when the names in a directory are on the device."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _give_name(part: Path, out: Path) -> None:
    """Give the file its name, durably, or leave it without."""
    named = False
    try:
        try:
            out.hardlink_to(part)
        except FileExistsError:
            raise _taken(out) from None
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            os.close(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            named = True
            part.replace(out)
        named = True
        sync_directory(out.absolute().parent)
    except BaseException:
        if named:
            out.unlink(missing_ok=True)
        raise


def _taken(out: Path) -> FileExistsError:
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(out))
