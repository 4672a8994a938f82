"""A history that is gathered before it is stored, so that a database is written to only while it is inserted.

Promises: the lines are checked on the way, little of them is in memory, and nothing of them is on the disk afterwards.
A disk that cannot hold them, or give them back, is named as what it is, not as the store's.

Does not: store anything.
"""

import errno
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from turnwal.core.chain import EMPTY, Head
from turnwal.core.errors import StoreFailed, StoreFull
from turnwal.core.limits import PENDING_BYTES_MAX
from turnwal.store.batch import check_history


@contextmanager
def gathered(lines: Iterable[bytes], *, session: str, subject: str) -> Iterator[tuple[Iterator[bytes], Head]]:
    """The lines of a history, each with its newline, and the head that they reach, for the length of a block.

    Raises what `check_history` and the iterator raise, and `StoreFull` or `StoreFailed` for the disk.
    """
    file = tempfile.SpooledTemporaryFile(max_size=PENDING_BYTES_MAX)  # noqa: SIM115 - closing may fail
    try:
        head = EMPTY
        for piece, reached in check_history(lines, session=session):
            with _told(subject):
                file.write(b"".join(line + b"\n" for line in piece))
            head = reached
        with _told(subject):
            file.seek(0)
        yield _rows(file, subject), head
    finally:
        # what could not be written is tried again here
        with suppress(OSError):
            file.close()


def _rows(file: IO[bytes], subject: str) -> Iterator[bytes]:
    with _told(subject):
        yield from file


@contextmanager
def _told(subject: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = f"the history cannot be gathered in {tempfile.gettempdir()} ({error.strerror})"
        kind = StoreFull if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else StoreFailed
        raise kind(reason, action="put", subject=subject, hint="make room there, or set TMPDIR") from error
