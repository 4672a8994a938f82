"""A whole history becomes a session: written under a name that nobody reads, and named when all of it is on the device.

Promises:
- Under the session's own name stands all of it or nothing, at every moment and after every crash.
- Whatever ends it before the session is durable, Ctrl-C too, leaves neither name. Only a process that dies leaves the
  one that nobody reads; the next history that is stored in that directory removes it.
- The file is locked by its writer as it would be by an owner, so that nobody builds on it before its name is durable,
  and a file that is still being written is never taken for a leftover. A forked child is no writer.

Does not: hold more of the history than one piece.
"""

# pathlib would take a quarter of the time that importing turnwal may add
# ruff: noqa: PTH118, PTH120

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from turnwal.core.chain import EMPTY, Head
from turnwal.core.errors import OwnershipLost, StoreError, StoreFull
from turnwal.store import owner as owners
from turnwal.store.batch import check_history, taken
from turnwal.store.disk import Disk

_LEFTOVER: Final = re.compile(r"\.turnwal-part-[0-9]+-[0-9a-f]{16}")
"""The names that nobody reads: they begin with a dot and end without the suffix of a session."""


def put(disk: Disk, path: str, lines: Iterable[bytes], *, session: str) -> Head:
    """Store a history under a path that names nothing yet; see `Store.put`. Its directory is there already."""
    if disk.status_of(path) is not None:
        raise taken(session)
    _sweep(disk, os.path.dirname(path))
    part = _Part(disk, path, session)
    head = EMPTY
    try:
        with _told_of_a_full_disk():
            part.begin()
        for piece, reached in check_history(lines, session=session):
            with _told_of_a_full_disk():
                part.write(piece)
            head = reached
        with _told_of_a_full_disk():
            part.publish()
    except BaseException:
        part.abandon()
        raise
    part.release()
    return head


class _Part:
    """A history that is being stored: a file under a name that nobody reads, and the lock of it."""

    def __init__(self, disk: Disk, path: str, session: str) -> None:
        """Name the path that it is to have; nothing is touched yet."""
        self.size = 0
        self.description = owners.describe()
        self._disk = disk
        self._path = path
        self._session = session
        self._directory = os.path.dirname(path)
        self._pid = os.getpid()
        self._name = ""
        self._descriptor = -1
        self._inode: owners.Inode = (-1, -1)
        self._stored = False

    def begin(self) -> None:
        """Make the file and lock it; whoever sweeps may be quicker than the lock, and then it is made again."""
        while not self._name:
            name = os.path.join(self._directory, f".turnwal-part-{self._pid}-{os.urandom(8).hex()}")
            # a child that is forked later finds it among the live claims, and closes what it inherited
            with owners.claiming:
                descriptor = self._disk.create(name)
                if descriptor is None:
                    continue
                self._name, self._descriptor = name, descriptor
                status = self._disk.status(descriptor, name)
                if self._disk.lock(descriptor, name) and self._disk.status_of(name) is not None:
                    self._inode = (status.st_dev, status.st_ino)
                    owners.enter(self._inode, self)
                else:
                    self._name = ""
                    self.disown()

    def write(self, lines: Sequence[bytes]) -> None:
        """Write lines behind the ones before."""
        self._check_process()
        data = b"\n".join(lines) + b"\n"
        self._disk.write_at(self._descriptor, data, self.size, self._path)
        self.size += len(data)

    def publish(self) -> None:
        """Make what was written durable and then a session. Raises `SessionExists` when the path names something."""
        self._check_process()
        self._disk.sync(self._descriptor, self._path)
        if not self._disk.link(self._name, self._path):
            raise taken(self._session)
        self._disk.sync_directory(self._directory)
        self._stored = True

    def abandon(self) -> None:
        """Leave nothing, unless it is a session already; never raises for a disk that refuses."""
        if self._pid != os.getpid():
            return
        if not self._stored:
            # asked of the disk, since an interrupt may have come between the naming and its answer
            with suppress(StoreError):
                named = self._disk.status_of(self._path)
                if named is not None and (named.st_dev, named.st_ino) == self._inode:
                    self._disk.discard(self._path)
        self.release()

    def release(self) -> None:
        """Drop the name that nobody reads, and the lock."""
        if self._descriptor >= 0:
            # not before: until the session's own name is durable, the second one tells an owner that it may not be
            self._disk.discard(self._name)
            owners.leave(self._inode)
            self._disk.unlock(self._descriptor)
            self.disown()

    def disown(self) -> None:
        """Close the descriptor without unlocking, which a forked child must not."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            self._disk.close(descriptor)

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise OwnershipLost(
                "this process was forked from the one that stores it",
                action="create",
                subject=self._session,
                hint="store the history in one process",
            )


@contextmanager
def _told_of_a_full_disk() -> Iterator[None]:
    try:
        yield
    except StoreFull as error:
        error.hint = "make room and try again; nothing of it is stored"
        raise


def _sweep(disk: Disk, directory: str) -> None:
    """Remove what processes that died have left of their histories, as well as it goes."""
    with suppress(StoreError):
        for name in filter(_LEFTOVER.fullmatch, disk.names(directory)):
            with suppress(StoreError), owners.claiming:
                _remove(disk, os.path.join(directory, name))


def _remove(disk: Disk, path: str) -> None:
    """Remove a leftover unless its writer lives; the caller sees to it that no child inherits the lock meanwhile."""
    descriptor = disk.open(path, write=True)
    if descriptor is None:
        return
    try:
        if disk.lock(descriptor, path):
            try:
                if disk.status(descriptor, path).st_nlink > 1:
                    # it became a session whose name may not be durable, which nobody could tell from one name
                    disk.sync_directory(os.path.dirname(path))
                disk.discard(path)
            finally:
                disk.unlock(descriptor)
    finally:
        disk.close(descriptor)
