"""Bytes cut at 0x0A, and at nothing else.

Promises: memory is bounded by the longest line that may be one, and by the chunks; a run of NULs as long as the disk
passes through in pieces.
Does not: read events.
"""

from collections.abc import Iterable, Iterator

from turnwal.core.errors import OverLimit
from turnwal.core.limits import LINE_BYTES_MAX


class Run:
    """Part of a segment that can be no line whatever follows, so that nobody has to hold all of it."""

    __slots__ = ("data", "ends")

    def __init__(self, data: bytes, *, ends: bool) -> None:
        """Hold a part; a newline follows it if `ends`."""
        self.data = data
        self.ends = ends


class Rest:
    """The last segment, which has no newline."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        """Hold the bytes behind the last newline."""
        self.data = data


Item = list[bytes] | Run | Rest
"""Whole segments without their newlines, part of one that is no line, or what stands last."""


def segments(chunks: Iterable[bytes], position: int, subject: str) -> Iterator[Item]:
    """Yield the segments of bytes that begin at `position`.

    Raises `OverLimit` naming the offset of a segment that begins like a line and is longer than one may be (F26).
    """
    cutter = _Cutter(position, subject)
    for chunk in chunks:
        whole = chunk.split(b"\n")
        rest = whole.pop()
        if whole:
            yield from cutter.end(whole)
        if rest:
            yield from cutter.go_on(rest)
    if cutter.held:
        yield Rest(b"".join(cutter.held))


class _Cutter:
    """The segment that no newline has ended yet: held as long as it may become a line, else passed on at once."""

    def __init__(self, position: int, subject: str) -> None:
        self.held: list[bytes] = []
        self._size = 0
        self._running = False
        self._position = position
        self._subject = subject

    def end(self, whole: list[bytes]) -> Iterator[Item]:
        """The segment ends with the first of these, and the others are whole."""
        if self._running:
            self._running = False
            first = whole.pop(0)
            self._position += len(first) + 1
            yield Run(first, ends=True)
        elif self.held:
            whole[0] = self._joined(whole[0])
        if whole:
            length = sum(map(len, whole)) + len(whole)
            if length > LINE_BYTES_MAX:
                self._check_lengths(whole)
            self._position += length
            yield whole

    def go_on(self, part: bytes) -> Iterator[Item]:
        """The segment goes on with these bytes, and has not ended."""
        if not self._running:
            hopeless = b"\0" in part or not (self.held or _may_be_line(part))
            self.held.append(part)
            self._size += len(part)
            if not hopeless and self._size <= LINE_BYTES_MAX:
                return
            part = self._joined(b"")
            self._check_lengths([part])
            self._running = True
        self._position += len(part)
        yield Run(part, ends=False)

    def _joined(self, last: bytes) -> bytes:
        segment = b"".join((*self.held, last))
        self.held, self._size = [], 0
        return segment

    def _check_lengths(self, parts: list[bytes]) -> None:
        position = self._position
        for part in parts:
            if len(part) > LINE_BYTES_MAX and part.strip() and _may_be_line(part):
                raise OverLimit(
                    f"the line at offset {position:,} is longer than {LINE_BYTES_MAX:,} bytes",
                    action="read",
                    subject=self._subject,
                    hint="turnwal writes no such line; look at the file itself",
                )
            position += len(part) + 1


def _may_be_line(segment: bytes) -> bool:
    """Whether a segment may be, or begin, a JSON object; white space may stand before it, and NUL in none."""
    start = segment.lstrip()[:1] if segment[:1].isspace() else segment[:1]
    return start in (b"", b"{") and b"\0" not in segment
