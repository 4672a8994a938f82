"""Framing: which bytes of a session file are records, and what the other bytes are.

A record ends at byte 0x0A and nowhere else (F19, F20). Verifying, opening and recovering all read through here, so they
cannot disagree about where a log ends (F23).

Promises:
- Every byte is accounted for: it belongs to a record, is covered by a `damage` event, or is inside a `Gap`.
- A record that follows from the ones before it is never stepped over, whatever a `damage` event says; only
  `damage {kind: lost}`, a person's word, goes on behind readable records.
- Memory is bounded by the longest line, however long the damage is.

Does not: open files, judge types and data, or know who owns what.
"""

from collections.abc import Callable, Iterable, Iterator

from turnwal.core.chain import EMPTY, Head, admit, after, follows
from turnwal.core.errors import DamagedStart, OverLimit, Refused
from turnwal.core.limits import LINE_BYTES_MAX
from turnwal.core.line import Event, Unreadable, read
from turnwal.core.types import newer
from turnwal.store.protocol import Gap, Record
from turnwal.store.region import Region, explains

Source = Callable[[int], Iterable[bytes]]
"""Gives the bytes of a session from an offset on, in chunks of any size."""


class _Run:
    """Part of a segment that can be no line whatever follows, so that nobody has to hold all of it."""

    __slots__ = ("data", "ends")

    def __init__(self, data: bytes, *, ends: bool) -> None:
        self.data = data
        self.ends = ends


class _Rest:
    """The last segment, which has no newline."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


def frames(
    source: Source,
    position: int = 0,
    *,
    after: Head | None = None,
    past_damage: bool = False,
    unfinished: Callable[[], bool] = lambda: False,
    subject: str = "",
) -> Iterator[Record | Gap]:
    """Yield the records of a session from a position on, and a `Gap` for bytes that are none and that nothing covers.

    `after` is the head before the first record; None at position 0. Reading ends after a gap, which reaches to the end
    of the session. With `past_damage` the gap is told piece by piece instead: a `Gap` wherever the chain breaks (its
    length is 0 where no bytes stand between two records, its `readable` counts the records behind it), and every
    readable line as a record that is not sound. `unfinished` is asked at the end, once: whether what stands behind the
    last newline is a line that its owner is still writing, which is then left out.

    Raises `DamagedStart` when the first line is not one, `TooNew` for a record of a newer turnwal, and `OverLimit`
    naming the offset of a line that is too long (F26).
    """
    if after is None and position:
        raise Refused(
            f"reading from {position} needs the head before it", action="read", subject=subject, hint="pass `after`"
        )
    framer = _Framer(source, position, EMPTY if after is None else after, unfinished, subject)
    for found in framer.records():
        if past_damage and isinstance(found, Gap):
            yield from framer.salvage(found)
        else:
            yield found


class _Framer:
    def __init__(self, source: Source, position: int, head: Head, unfinished: Callable[[], bool], subject: str) -> None:
        self._source = source
        self._position = position
        self._head = head
        self._from_start = not position
        self._lines = 0
        self._unfinished = unfinished
        self._subject = subject

    def records(self) -> Iterator[Record | Gap]:
        """The sound records, then the gap if there is one."""
        region: Region | None = None
        for item in _segments(self._source(self._position), self._position, self._subject):
            if isinstance(item, _Run):
                if region is None:
                    region = self._break(item.data, "holds bytes that are no text")
                region.add(item.data, ends=item.ends)
                continue
            if isinstance(item, _Rest) and self._unfinished():
                break
            ends = isinstance(item, list)
            for line in item if isinstance(item, list) else (item.data,):
                if region is None:
                    try:
                        record = Record(self._position, line, admit(line, self._head))
                    except Unreadable as error:
                        region = self._break(line, error.reason)
                        region.take(line, _event_of(line)[0], ends=ends)
                    else:
                        yield record
                        self._advance(record, ends=ends)
                    continue
                event, unknown = _event_of(line)
                if event is not None and follows(event, self._head) and region.covered_by(event):
                    if unknown:
                        raise newer(f"line {event.seq} {unknown}")
                    self._position += region.length
                    self._lines += region.lines
                    region = None
                    record = Record(self._position, line, event)
                    yield record
                    self._advance(record, ends=ends)
                else:
                    region.take(line, event, ends=ends)
        if region is not None:
            yield region.gap()

    def _advance(self, record: Record, *, ends: bool) -> None:
        self._head = after(record.line, record.event)
        self._position += len(record.line) + ends
        self._lines += 1

    def _break(self, line: bytes, reason: str) -> Region:
        """The region that begins with this line; raises `DamagedStart` where nothing sound stands before it."""
        reason = _named(line, reason)
        if self._from_start and not self._lines:
            raise DamagedStart(
                f"the first line {reason}",
                action="read",
                subject=self._subject,
                hint="it is never written to; look at the file itself, and restore it from a copy if there is one",
            )
        return Region(self._position, self._lines + 1 if self._from_start else 0, self._head, reason)

    def salvage(self, gap: Gap) -> Iterator[Record | Gap]:
        """What can be read of a gap and behind it, nothing of it sound."""
        behind, position, number, head = gap.readable, gap.position, gap.line_number, self._head
        region: Region | None = None
        chunks = _clipped(self._source(position), gap.length)
        for item in _segments(chunks, position, self._subject):
            ends = item.ends if isinstance(item, _Run) else isinstance(item, list)
            for line in item if isinstance(item, list) else (item.data,):
                event, reason = (None, "") if isinstance(item, _Run) else _event_of(line)
                sound = event is not None and follows(event, head)
                if region is None and not sound:
                    region = Region(position, number, self._head, _named(line, reason or _why(event, head)))
                if event is None and region is not None:
                    (region.add(line, ends=ends) if isinstance(item, _Run) else region.take(line, None, ends=ends))
                elif event is not None:
                    if region is not None and not (sound and region.covered_by(event)):
                        yield region.gap(readable=behind)
                    region = None
                    yield Record(position, line, event, sound=False)
                    behind -= not explains(event, self._head)
                    head = after(line, event)
                position += len(line) + ends
                number += ends if self._from_start else 0
        if region is not None:
            yield region.gap(readable=behind)


def _event_of(line: bytes) -> tuple[Event | None, str]:
    """The event that a segment would be on its own, and what speaks against it."""
    try:
        return read(line), ""
    except Unreadable as error:
        return error.newer, error.reason


def _named(line: bytes, reason: str) -> str:
    """The reason in the words of what most often is there instead of a line."""
    if b"\0" in line:
        return "holds NUL bytes"
    return reason if line.strip() else "is blank"


def _why(event: Event | None, head: Head) -> str:
    if event is None or event.seq == head.count:
        return f"has a prev that is not the hash of line {head.count - 1}"
    return f"has seq {event.seq} where {head.count} comes next"


def _clipped(chunks: Iterable[bytes], length: int) -> Iterator[bytes]:
    for chunk in chunks:
        if length <= 0:
            return
        yield chunk[:length]
        length -= len(chunk)


def _segments(chunks: Iterable[bytes], position: int, subject: str) -> Iterator[list[bytes] | _Run | _Rest]:
    """Cut chunks into lists of whole segments, parts of segments that can be no line, and what stands last."""
    held: list[bytes] = []
    size = 0
    running = False
    for chunk in chunks:
        whole = chunk.split(b"\n")
        rest = whole.pop()
        if whole:
            if running:
                yield _Run(whole[0], ends=True)
                position += len(whole.pop(0)) + 1
                running = False
            elif held:
                whole[0] = b"".join((*held, whole[0]))
                held, size = [], 0
                if len(whole[0]) > LINE_BYTES_MAX and _may_be_line(whole[0]):
                    raise _too_long(position, subject)
            if whole:
                yield whole
                position += sum(map(len, whole)) + len(whole)
        if running or not _may_go_on(held, rest):
            rest = b"".join((*held, rest))
            held, size, running = [], 0, True
            yield _Run(rest, ends=False)
            position += len(rest)
        elif rest:
            held.append(rest)
            size += len(rest)
            if size > LINE_BYTES_MAX:
                rest = b"".join(held)
                if _may_be_line(rest):
                    raise _too_long(position, subject)
                held, size, running = [], 0, True
                yield _Run(rest, ends=False)
                position += len(rest)
    if held:
        yield _Rest(b"".join(held))


def _may_go_on(held: list[bytes], part: bytes) -> bool:
    """Whether a line may go on with this part; the parts held may be its beginning."""
    return b"\0" not in part and (bool(held) or part.lstrip()[:1] in (b"", b"{"))


def _may_be_line(segment: bytes) -> bool:
    return b"\0" not in segment and segment.lstrip()[:1] == b"{"


def _too_long(position: int, subject: str) -> OverLimit:
    return OverLimit(
        f"the line at offset {position:,} is longer than {LINE_BYTES_MAX:,} bytes",
        action="read",
        subject=subject,
        hint="turnwal writes no such line; look at the file itself",
    )
