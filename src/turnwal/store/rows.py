"""Lines that are kept as rows, read as the bytes of one file.

Each row says at which byte its line begins. Promises: every byte from the first line to the end of the last is given
once, at its place, also where rows are missing or their lines do not fit: what is missing reads as NUL bytes and a
newline; a line that reaches over the next one is cut off before it and ends with a NUL, so that nobody takes what is
left for the line that was written. So positions and lengths are those of a file whose bytes went bad, and damage is
described and covered in the same way in every store.

Does not: ask a database anything.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from turnwal.core.limits import READ_BYTES
from turnwal.core.line import Unreadable, read
from turnwal.store.protocol import Record

ROWS: Final = 256
"""Rows read at a time; between two reads nobody is held up."""

Row = tuple[int, bytes]
"""Where a line begins, and the line."""


def end_of(place: int, length: int) -> int:
    """Where the line behind a line begins."""
    return place + length + 1


def bytes_of(rows: Iterable[Row], start: int, end: int) -> Iterator[bytes]:
    """The bytes from `start` to `end`; the rows are in order, and the first may begin before `start`."""
    at = start
    held: Row | None = None
    for row in rows:
        if held is not None:
            yield from _filled(held, at, row[0])
            at = max(at, row[0])
        elif row[0] > at:
            yield from _missing(row[0] - at)
            at = row[0]
        held = row
    if held is None:
        yield from _missing(end - at)
    else:
        yield from _filled(held, at, end)


def newest_records(fetch: Callable[[int, int], list[Row]], size: int) -> Iterator[Record | None]:
    """The lines from the newest to the oldest, None for each that is no readable event.

    `fetch` returns the last rows before a place, newest first, as many as it is asked for or fewer.
    """
    reach = 4
    while size > 0:
        rows = fetch(size, reach)
        if not rows:
            return
        for place, line in rows:
            size = place
            try:
                yield Record(place, line, read(line))
            except Unreadable:
                yield None
        reach = min(2 * reach, ROWS)


def _filled(row: Row, start: int, end: int) -> Iterator[bytes]:
    """The bytes from `start` to where the next row begins; no more of the line than there is room for."""
    place, line = row
    behind = end_of(place, len(line))
    whole = line + b"\n" if behind <= end else _cut(line, end - place)
    if start < min(behind, end):
        yield whole[start - place :]
    yield from _missing(end - max(behind, start))


def _cut(line: bytes, room: int) -> bytes:
    return line[: max(room - 2, 0)] + b"\0\n"[-room:]


def _missing(length: int) -> Iterator[bytes]:
    while length > READ_BYTES:
        yield bytes(READ_BYTES)
        length -= READ_BYTES
    if length > 0:
        yield bytes(length - 1) + b"\n"
