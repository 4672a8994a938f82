"""Ownership of one log file: the lock, the tail that is adopted, and the append.

Promises:
- What another owner left behind is made durable again, same bytes, before it is believed: a failed sync is never
  retried, since the system may have dropped what it could not write and call it clean.
- An append is one write at the end, behind the head that it names, and is acknowledged when it is on the device and the
  path still leads to it. The tail is never cut, not even when the append fails.
- From the first byte of a write until its acknowledgement the claim is in doubt; whatever ends it there, even Ctrl-C,
  leaves it closed to writes.
- A head that is kept beside the log is renewed before the acknowledgement, and never before the log's sync.

Does not: cover damage by itself. A batch that does not begin with the `damage` event of a tail that needs one is
refused.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from turnwal.core.chain import EMPTY, Head, digest
from turnwal.core.chain import after as after_line
from turnwal.core.errors import (
    DamagedStart,
    OverLimit,
    TooNew,
    TurnwalError,
)
from turnwal.core.limits import READ_BYTES
from turnwal.core.line import GENESIS, Event
from turnwal.store.backwards import FIRST_BYTES, newest_records
from turnwal.store.batch import check_batch, check_head
from turnwal.store.claiming import Standing
from turnwal.store.covering import check_covered
from turnwal.store.disk import Disk
from turnwal.store.frames import frames
from turnwal.store.heads import HeadFile, outstanding
from turnwal.store.owner import Description, Inode, leave
from turnwal.store.protocol import Gap, Record


class Paths(NamedTuple):
    """Where a session and the description of its owner lie."""

    log: str
    owner: str


class FileClaim:
    """Ownership of one session file. It ends with `release`, or with the process."""

    def __init__(
        self,
        disk: Disk,
        descriptor: int,
        paths: Paths,
        session: str,
        description: Description,
        kept: HeadFile | None = None,
    ) -> None:
        """Hold a descriptor that is locked."""
        self._disk = disk
        self._descriptor = descriptor
        self._path = paths.log
        self._owner_path = paths.owner
        self._standing = Standing(session)
        self._description = description
        self._turn = threading.Lock()
        status = disk.status(descriptor, paths.log)
        self._inode: Inode = (status.st_dev, status.st_ino)
        self._size = status.st_size
        self._named_twice = status.st_nlink > 1
        self._head: Head | None = None
        self._kept = kept
        self._refusal: TurnwalError | None = None
        self._newline_due = False

    @property
    def session(self) -> str:
        """The id of the session that is owned."""
        return self._standing.session

    @property
    def inode(self) -> Inode:
        """Which file is owned."""
        return self._inode

    @property
    def size(self) -> int:
        """How many bytes were there when the claim began or were acknowledged since."""
        return self._size

    @property
    def named_twice(self) -> bool:
        """Whether the file had a second name: whoever stored it may have died before its first one was durable."""
        return self._named_twice

    @property
    def description(self) -> Description:
        """What the claim says of its owner."""
        return self._description

    @property
    def released(self) -> bool:
        """Whether the session was given up."""
        return self._standing.released

    def adopt(self) -> None:
        """Write the last batch and all behind it once more, and sync. A damaged first line is never written to."""
        if self._size:
            try:
                next(frames(self._chunks, subject=self._path), None)
            except (DamagedStart, TooNew, OverLimit) as error:
                self._refusal = error
            else:
                self._rewrite(self._last_batch())
                self._newline_due = self._read_at(1, self._size - 1) != b"\n"
        self._disk.append_only(self._descriptor, self._path)

    def append(self, lines: Sequence[bytes], after: Head) -> None:
        """Make a batch of lines durable; see `Claim.append`.

        Raises `Damaged` too: bytes behind `after` are no record, and the batch does not begin with the `damage` event
        that describes them.
        """
        standing = self._standing
        standing.check_process()
        with self._turn:
            standing.check()
            if self._refusal is not None:
                raise self._refusal
            if self._head is not None:
                check_head(after, self._head, session=standing.session)
            head = check_batch(lines, after, session=standing.session)
            if not lines:
                return
            self._check_file(self._size)
            if self._head is None:
                self._check_tail(lines[0], after)
                self._head = after
            data = b"\n" * self._newline_due + b"\n".join(lines) + b"\n"
            standing.in_doubt = True
            self._disk.write(self._descriptor, data, self._path)
            self._disk.sync(self._descriptor, self._path)
            self._check_file(self._size + len(data))
            self._size += len(data)
            self._newline_due = False
            self._head = head
            if self._kept is not None:
                self._kept.keep(head)
            standing.in_doubt = False

    def release(self) -> None:
        """Give the session up; idempotent."""
        if self._standing.inherited:
            return
        with self._turn:
            self._standing.released = True
            if self._kept is not None:
                self._kept.close()
            if self._descriptor >= 0:
                # in this order a release that was interrupted can be repeated
                self._disk.discard(self._owner_path)
                leave(self._inode)
                self._disk.unlock(self._descriptor)
                descriptor, self._descriptor = self._descriptor, -1
                self._disk.close(descriptor)

    def disown(self) -> None:
        """Close the inherited descriptor without unlocking, which would take the lock from the parent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            self._disk.close(descriptor)
        if self._kept is not None:
            self._kept.close()

    def _check_file(self, size: int) -> None:
        """Return if the path still names this file and nobody else has written to it."""
        status = self._disk.status_of(self._path)
        if status is None or (status.st_dev, status.st_ino) != self._inode:
            reason = "the file was replaced or removed under its owner"
        elif status.st_size != size:
            reason = f"the file has {status.st_size:,} bytes where its owner knows of {size:,}: somebody else wrote"
        else:
            return
        raise self._standing.lose(reason, "open the session anew, and find out who else writes to it")

    def _check_tail(self, first: bytes, after: Head) -> None:
        """Return if `after` is the head of the file, and the batch covers what stands behind it."""
        position, reached = self._before(after)
        gap: Gap | None = None
        known = None if self._kept is None else outstanding(self._kept.kept(), reached, self._newest)
        for found in frames(self._chunks, position, after=reached, kept=known, subject=self._path):
            if isinstance(found, Gap):
                gap = found
                break
            passed = reached == after
            reached = after_line(found.line, found.event)
            if passed:
                break
        check_head(after, reached, session=self._standing.session)
        if gap is not None:
            check_covered(first, gap, session=self._standing.session)

    def _before(self, head: Head) -> tuple[int, Head]:
        """Where the newest line that `head` names begins, found by its hash and that of the line before it."""
        wanted = head.hash
        named: Event | None = None
        for record in self._newest():
            if wanted == GENESIS:
                break
            if record is None or digest(record.line) != wanted:
                continue
            if named is not None:
                return record.position + len(record.line) + 1, after_line(record.line, record.event)
            named, wanted = record.event, record.event.prev
        return 0, EMPTY

    def _last_batch(self) -> int:
        """Where the last batch begins: its first line is the only one that does not name it."""
        begins: int | None = None
        for record in self._newest():
            if record is not None:
                batch = record.event.batch
                if begins is None:
                    begins = record.event.seq if not isinstance(batch, int) else batch
                if record.event.seq <= begins:
                    return record.position
        return 0

    def _rewrite(self, position: int) -> None:
        for chunk in self._chunks(position):
            self._disk.write_at(self._descriptor, chunk, position, self._path)
            position += len(chunk)
        self._disk.sync(self._descriptor, self._path)

    def _newest(self) -> Iterator[Record | None]:
        return newest_records(self._read_at, self._size)

    def _chunks(self, position: int) -> Iterator[bytes]:
        length = FIRST_BYTES
        while position < self._size:
            chunk = self._read_at(min(length, self._size - position), position)
            if not chunk:
                return
            yield chunk
            position += len(chunk)
            length = min(2 * length, READ_BYTES)

    def _read_at(self, length: int, offset: int) -> bytes:
        return self._disk.read_at(self._descriptor, length, offset, self._path)
