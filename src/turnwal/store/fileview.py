"""An open session file as a reader sees it, whoever owns it.

Promises:
- Asking whether an owner lives holds a shared lock for a moment and writes nothing.
- Whether an owner is still writing is asked after the last byte was read, and the file is read once more before the
  answer "no" is believed.

Does not: frame; see `frames.py`.
"""

from collections.abc import Iterator
from types import TracebackType
from typing import Self

from turnwal.core.limits import READ_BYTES
from turnwal.store.backwards import FIRST_BYTES, newest_records
from turnwal.store.disk import Disk
from turnwal.store.owner import own
from turnwal.store.protocol import Record


class FileView:
    """A descriptor for reading, closed with the `with` block."""

    def __init__(self, disk: Disk, descriptor: int, path: str) -> None:
        """Take the descriptor over."""
        self.path = path
        self._disk = disk
        self._descriptor = descriptor
        status = disk.status(descriptor, path)
        self._inode = (status.st_dev, status.st_ino)
        self._unfinished = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._disk.close(self._descriptor)

    def held(self) -> bool:
        """Whether somebody owns the session now."""
        if own(self._inode) is not None:
            return True
        if not self._disk.lock(self._descriptor, self.path, shared=True):
            return True
        self._disk.unlock(self._descriptor)
        return False

    def empty(self) -> bool:
        """Whether the file holds no byte."""
        return not self._size()

    def chunks(self, position: int) -> Iterator[bytes]:
        """The bytes from a position to the end: of what was acknowledged, if this process owns the session."""
        most = FIRST_BYTES
        while True:
            claim = own(self._inode)
            length = most if claim is None else min(most, claim.size - position)
            chunk = self._read_at(length, position) if length > 0 else b""
            if not chunk and claim is None:
                self._unfinished = self.held()
                # an owner that ended between the two has written all it will write
                chunk = b"" if self._unfinished else self._read_at(READ_BYTES, position)
            if not chunk:
                return
            yield chunk
            position += len(chunk)
            most = min(2 * most, READ_BYTES)

    def unfinished(self) -> bool:
        """Whether an owner may still be writing what stood behind the last newline when `chunks` ended."""
        return self._unfinished

    def newest(self) -> Iterator[Record | None]:
        """The lines from the newest to the oldest, without one that its owner is still writing."""
        return newest_records(self._read_at, self._settled())

    def _settled(self) -> int:
        """How much of the file may be judged."""
        while True:
            claim = own(self._inode)
            if claim is not None:
                return claim.size
            size = self._size()
            if not size or self._read_at(1, size - 1) == b"\n":
                return size
            if self.held():
                return self._behind_last_newline(size)
            if self._size() == size:
                return size

    def _behind_last_newline(self, size: int) -> int:
        while size:
            start = max(0, size - READ_BYTES)
            found = self._read_at(size - start, start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            size = start
        return 0

    def _size(self) -> int:
        return self._disk.status(self._descriptor, self.path).st_size

    def _read_at(self, length: int, offset: int) -> bytes:
        return self._disk.read_at(self._descriptor, length, offset, self.path)
