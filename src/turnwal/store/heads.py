"""Heads that are kept in files of their own, one a session, so that a missing end of a log is found.

Promises:
- A head is written when what it counts is on the device, and is on the device itself on return: after a crash the file
  may be behind its log, never ahead of it.
- A file of heads appears under its name whole or not at all, and is then written in place, one slot after the other:
  one write and one sync for each head.
- A file that is there is heeded and kept on, whether it was asked for or not.

Does not: know what is in a log; `frames` looks for the head in what it reads, and `outstanding` behind that. Whoever
can write both files can make them agree.
"""

# pathlib would take a quarter of the time that importing turnwal may add
# ruff: noqa: PTH100, PTH118, PTH120

import os
from collections.abc import Callable, Iterable
from typing import Final

from turnwal.core import kept as kept_heads
from turnwal.core.chain import EMPTY, Head
from turnwal.core.errors import HeadMismatch, OwnershipLost
from turnwal.core.kept import SLOT_BYTES, SLOTS
from turnwal.store.disk import Disk
from turnwal.store.names import file_stem
from turnwal.store.protocol import Kept, Record

HEAD_SUFFIX: Final = ".head"


Option = bool | str | os.PathLike[str]
"""What a store is told of heads: whether they are kept, or in which directory."""

Stem = Callable[[str], str]
"""Gives the path of a session's files, without a suffix."""


class Heads:
    """Where the heads of a store are kept."""

    def __init__(self, disk: Disk, option: Option, beside: Stem | None) -> None:
        """Take the option of a store: a directory; or whether heads are begun where the store has a place for them.

        Without the option, those that are at that place are heeded and kept on all the same.
        """
        self._disk = disk
        self._keep = bool(option)
        self._stem = beside
        if not isinstance(option, bool):
            self._stem = in_directory(os.path.abspath(os.fspath(option)))

    def path(self, session: str) -> str | None:
        """Where the head of a session is kept, None for nowhere."""
        return None if self._stem is None else self._stem(session) + HEAD_SUFFIX

    def kept(self, session: str) -> Kept | None:
        """The head that is kept of a session, None where there is none. Raises `HeadMismatch` for an unreadable one."""
        path = self.path(session)
        return None if path is None else read(self._disk, path)

    def file(self, session: str) -> "HeadFile | None":
        """The file of a session's head, for its owner; None where none is kept."""
        path = self.path(session)
        if path is None or not (self._keep or self._disk.status_of(path) is not None):
            return None
        return HeadFile(self._disk, path)

    def stored(self, session: str, head: Head) -> None:
        """Keep the head of a history that was stored whole; one that is kept already stays."""
        file = self.file(session) if self._keep else None
        if file is not None and file.kept() is None:
            try:
                file.keep(head)
            finally:
                file.close()


class HeadFile:
    """The file of one session's head, in the hands of its owner."""

    def __init__(self, disk: Disk, path: str) -> None:
        """Name the file; nothing is touched yet."""
        self._disk = disk
        self._path = path
        self._descriptor = -1
        self._inode = (-1, -1)
        self._next = 0

    def kept(self) -> Kept | None:
        """The head that is kept; see `Heads.kept`."""
        return read(self._disk, self._path)

    def keep(self, head: Head) -> None:
        """Return when the head is on the device. Raises `StoreFailed` or `StoreFull`, and `OwnershipLost` where the
        file was replaced: what it counts is durable all the same.
        """
        if self._descriptor < 0 and not self._open():
            self._disk.make_directory(os.path.dirname(self._path))
            self._disk.write_whole(self._path, kept_heads.slot(head) * SLOTS, new=f"{self._path}.new")
            self._open()
            return
        self._check_name()
        self._disk.write_at(self._descriptor, kept_heads.slot(head), self._next * SLOT_BYTES, self._path)
        self._disk.sync(self._descriptor, self._path)
        self._next = (self._next + 1) % SLOTS

    def close(self) -> None:
        """Close the file; may be repeated."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            self._disk.close(descriptor)

    def _open(self) -> bool:
        """Open the file that is there, and find the slot to write next: the one that does not hold the newest head."""
        descriptor = self._disk.open(self._path, write=True)
        if descriptor is None:
            return False
        self._descriptor = descriptor
        status = self._disk.status(descriptor, self._path)
        self._inode = (status.st_dev, status.st_ino)
        slots = kept_heads.slots_of(self._disk.read_at(descriptor, SLOTS * SLOT_BYTES, 0, self._path))
        found = kept_heads.newest(slots)
        self._next = 1 if found is not None and slots[0] == found else 0
        return True

    def _check_name(self) -> None:
        status = self._disk.status_of(self._path)
        if status is None or (status.st_dev, status.st_ino) != self._inode:
            raise OwnershipLost(
                "the file of its kept head was replaced or removed under its owner",
                action="keep the head in",
                subject=self._path,
                hint="open the session anew, and find out what moves or deletes the files",
            )


def in_directory(directory: str) -> Stem:
    """The stems of files in a directory of their own."""
    return lambda session: os.path.join(directory, file_stem(session))


def read(disk: Disk, path: str) -> Kept | None:
    """The head in a file, None where there is no file. Raises `HeadMismatch` for a file that holds none."""
    descriptor = disk.open(path)
    if descriptor is None:
        return None
    try:
        content = disk.read_at(descriptor, SLOTS * SLOT_BYTES, 0, path)
    finally:
        disk.close(descriptor)
    slots = kept_heads.slots_of(content)
    found = kept_heads.newest(slots)
    if found is None:
        raise HeadMismatch(
            "the file holds no head",
            action="read the kept head in",
            subject=path,
            hint="the log may be whole: `turnwal verify --expect` with a head from elsewhere tells; move this file "
            "away to go on without it",
        )
    return Kept(found, certain=None not in slots)


def outstanding(known: Kept | None, after: Head | None, newest: Callable[[], Iterable[Record | None]]) -> Head | None:
    """The known head that reading behind `after` has yet to meet; None where nothing is kept, or it is met already.

    `newest` gives the lines from the end backwards. It is asked only where the kept head is before `after`, as it is
    when its owner died between the two syncs.
    """
    kept = None if known is None else known.head
    if kept is None or kept in (EMPTY, after):
        return None
    if after is None or kept.count > after.count:
        return kept
    met = any(record is not None and kept_heads.has(record.event, record.line, kept) for record in newest())
    return None if met else kept
