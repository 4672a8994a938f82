"""Framing: which bytes of a session file are records, and what the other bytes are.

A record ends at byte 0x0A and nowhere else (F19, F20). Verifying, opening and recovering all read through here, so they
cannot disagree about where a log ends (F23).

Promises:
- Every byte is accounted for: it belongs to a record, is covered by a `damage` event, or is inside a `Gap`.
- A record that follows from the ones before it is never stepped over, whatever a `damage` event says; only
  `damage {kind: lost}`, a person's word, goes on behind readable records.
- A log that has a kept head not in its past ends with a gap, also where every byte is a record.
- Memory is bounded by the longest line, however long the damage is.

Does not: open files, judge types and data, or know who owns what.
"""

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import Final

from msgspec import structs

from turnwal.core.chain import EMPTY, Head, admit, after, follows
from turnwal.core.errors import DamagedStart, Refused
from turnwal.core.kept import gives_up, has
from turnwal.core.limits import LOST_SEQS_MAX
from turnwal.core.line import Event, Unreadable, read, read_many
from turnwal.core.types import newer
from turnwal.store.protocol import Gap, Record
from turnwal.store.region import Region, explains
from turnwal.store.segments import Rest, Run, segments

Source = Callable[[int], Iterable[bytes]]
"""Gives the bytes of a session from an offset on, in chunks of any size."""

_AT_ONCE: Final = 128
"""Lines read before they are passed on: more would not stay in the processor's caches."""


def frames(
    source: Source,
    position: int = 0,
    *,
    after: Head | None = None,
    past_damage: bool = False,
    kept: Head | None = None,
    unfinished: Callable[[], bool] = lambda: False,
    subject: str = "",
) -> Iterator[Record | Gap]:
    """Yield the records of a session from a position on, and a `Gap` for bytes that are none and that nothing covers.

    `after` is the head before the first record; None at position 0. Reading ends after a gap, which reaches to the end
    of the session. With `past_damage` the gap is told piece by piece instead: a `Gap` wherever the chain breaks (its
    length is 0 where no bytes stand between two records, its `readable` counts the records behind it), and every
    readable line as a record that is not sound, also behind a first line that is none. `unfinished` is asked at the
    end, once: whether what stands behind the last newline is a line that its owner is still writing, which is then left
    out. `kept` is a head that reading from here has to meet; where it does not, a gap at the end names it.

    Raises `DamagedStart` when the first line is not one and nobody asked to read past damage, `TooNew` for a record of
    a newer turnwal, and `OverLimit` naming the offset of a line that is too long (F26).
    """
    if after is None and position:
        raise Refused(
            f"reading from {position} needs the head before it", action="read", subject=subject, hint="pass `after`"
        )
    framer = _Framer(source, position, EMPTY if after is None else after, subject, past_damage=past_damage)
    framer.kept = kept
    yield from framer.records(unfinished)
    gap = None if framer.region is None else framer.region.gap(acknowledged=framer.kept_behind)
    if past_damage and gap is not None:
        yield from _salvage(source, gap, framer.head, subject)
        gap = None
    if framer.kept is not None and not framer.kept_behind:
        gap = _of_kept(framer.kept, framer, gap)
    if gap is not None:
        yield gap


class _Framer:
    """Where reading is: the head reached, and the region behind it while there is one."""

    def __init__(self, source: Source, position: int, head: Head, subject: str, *, past_damage: bool) -> None:
        self.head = head
        self.region: Region | None = None
        self.kept: Head | None = None
        """A head that is still to be met."""
        self.kept_behind = False
        """Its line stands in the region, or stood in one that a `damage` event covers."""
        self._source = source
        self.position = position
        self._lines = 0
        self._from_start = not position
        self._past_damage = past_damage
        self._subject = subject

    def records(self, unfinished: Callable[[], bool]) -> Iterator[Record]:
        """The sound records; what is left in `region` then is the gap."""
        for item in segments(self._source(self.position), self.position, self._subject):
            if isinstance(item, list):
                known = self._lines
                if self.region is None:
                    yield from self._sound(item)
                for line in item[self._lines - known :]:
                    yield from self._judge(line, ends=True)
            elif isinstance(item, Run):
                self._region_of(_reason(item.data)).add(item.data, ends=item.ends)
            elif not unfinished():
                yield from self._judge(item.data, ends=False)

    def _sound(self, lines: list[bytes]) -> Iterator[Record]:
        """The records that these lines begin with: what reading a whole log spends its time in.

        Some lines are read at once, and passed on then: whoever gets them does other work, and to change from one to
        the other for every line costs a fifth more.
        """
        for start in range(0, len(lines), _AT_ONCE):
            some = lines[start : start + _AT_ONCE]
            records = self._read(some)
            yield from records
            if len(records) < len(some):
                return

    def _read(self, lines: list[bytes]) -> list[Record]:
        records: list[Record] = []
        add, new = records.append, tuple.__new__
        position, count, prev = self.position, self.head.count, self.head.hash
        for line, event in zip(lines, read_many(lines), strict=False):
            if event.seq != count or event.prev != prev:
                break
            # as Record(position, line, event) does, without the call that fills in the default
            add(new(Record, (position, line, event, True)))
            prev = sha256(line).hexdigest()
            count += 1
            position += len(line) + 1
        self.position, self._lines, self.head = position, self._lines + len(records), Head(count, prev)
        if self.kept is not None and records:
            self._meet(self.kept, records)
        return records

    def _meet(self, kept: Head, records: list[Record]) -> None:
        """Look for the kept head in records that follow each other."""
        at = kept.count - 1 - records[0].event.seq
        met = 0 <= at < len(records) and has(records[at].event, records[at].line, kept)
        if met or any(gives_up(record.event, kept) for record in records):
            self.kept = None

    def _judge(self, line: bytes, *, ends: bool) -> Iterator[Record]:
        """The record of a line that comes next, or that covers the region before it; else it joins the region."""
        if self.region is None:
            try:
                record = Record(self.position, line, admit(line, self.head))
            except Unreadable as error:
                event, reason = _event_of(line)
                self._look_behind(line, event)
                self._region_of(reason or error.reason).take(line, event, ends=ends)
                return
        else:
            event, reason = _event_of(line)
            if event is None or not follows(event, self.head) or not self.region.covered_by(event):
                self._look_behind(line, event)
                self.region.take(line, event, ends=ends)
                return
            if reason:
                raise newer(f"line {event.seq} {reason}")
            self.position += self.region.length
            self._lines += self.region.lines
            self.region = None
            record = Record(self.position, line, event)
        if self.kept_behind or (self.kept is not None and has(record.event, line, self.kept)):
            self.kept = None
        yield record
        self.head = after(line, record.event)
        self.position += len(line) + ends
        self._lines += 1

    def _look_behind(self, line: bytes, event: Event | None) -> None:
        if self.kept is not None and event is not None and has(event, line, self.kept):
            self.kept_behind = True

    def _region_of(self, reason: str) -> Region:
        """The region that a bad line belongs to, or begins; raises `DamagedStart` where nothing sound is before it."""
        if self._from_start and not self._lines and not self._past_damage:
            raise DamagedStart(
                f"the first line {reason}",
                action="read",
                subject=self._subject,
                hint="it is never written to; restore a copy, or look at what is readable with `turnwal show` and "
                "take it out with `turnwal export --salvage`",
            )
        if self.region is None:
            self.region = Region(self.position, self._lines + 1 if self._from_start else 0, self.head, reason)
        return self.region


def _of_kept(kept: Head, framer: _Framer, gap: Gap | None) -> Gap:
    """The gap at the end of a log that lacks its kept head: of the bytes there that are no record, or of none."""
    head, region = framer.head, framer.region
    if gap is None:
        gap = Gap(
            position=framer.position if region is None else region.position + region.length,
            after=head.count - 1,
            length=0,
            sha256=sha256().hexdigest(),
            kind="lost",
            raw=b"",
            line_number=0,
            reason="",
            readable=0,
        )
    seqs = range(head.count, kept.count)[:LOST_SEQS_MAX] or (kept.count - 1,)
    return structs.replace(
        gap,
        kept=kept,
        seqs=tuple(sorted({*gap.seqs, *seqs})[:LOST_SEQS_MAX]),
        seq_max=max(gap.seq_max, kept.count - 1),
    )


def _salvage(source: Source, gap: Gap, sound: Head, subject: str) -> Iterator[Record | Gap]:
    """What can be read of a gap and behind it, nothing of it sound."""
    head, position, number, behind = sound, gap.position, gap.line_number, gap.readable
    region: Region | None = None
    for line, event, reason, ends in _judged(source, gap, subject):
        comes_next = event is not None and follows(event, head)
        if region is None and not comes_next:
            region = Region(position, number, head, reason or _why(event, head))
        if event is not None:
            if region is not None and not (comes_next and region.covered_by(event)):
                yield region.gap(readable=behind)
            region = None
            yield Record(position, line, event, sound=False)
            behind -= not explains(event, sound)
            head = after(line, event)
        elif region is not None:
            region.take(line, None, ends=ends)
        position += len(line) + ends
        number += ends and gap.line_number > 0
    if region is not None:
        yield region.gap(readable=behind)


def _judged(source: Source, gap: Gap, subject: str) -> Iterator[tuple[bytes, Event | None, str, bool]]:
    """The segments of a gap: bytes, the event they are, what speaks against it, and whether a newline follows."""
    for item in segments(_clipped(source(gap.position), gap.length), gap.position, subject):
        if isinstance(item, Run):
            yield item.data, None, _reason(item.data), item.ends
        elif isinstance(item, Rest):
            yield item.data, *_event_of(item.data), False
        else:
            for line in item:
                yield line, *_event_of(line), True


def _event_of(line: bytes) -> tuple[Event | None, str]:
    """The event that a segment would be on its own, and what speaks against it."""
    reason = _reason(line)
    if reason:
        return None, reason
    try:
        return read(line), ""
    except Unreadable as error:
        return error.newer, error.reason


def _reason(line: bytes) -> str:
    """Why a segment is plainly no line, as it begins; nothing where it may be one."""
    if line[:1] == b"{":
        return "holds NUL bytes" if b"\0" in line else ""
    start = line.lstrip()[:1]
    if start == b"{" and b"\0" not in line:
        return ""
    return "begins with NUL bytes" if start == b"\0" else "is no JSON object" if start else "is blank"


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
