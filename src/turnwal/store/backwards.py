"""A file from its end: segments between newlines, the newest first.

Promises: costs what is consumed, and a long line is joined once; a segment too long to be a line is passed over without
being held.
Does not: check the chain, or know what is still being written.
"""

from collections.abc import Callable, Iterator
from typing import Final

from turnwal.core.limits import LINE_BYTES_MAX, READ_BYTES
from turnwal.core.line import Unreadable, read
from turnwal.store.protocol import Record

FIRST_BYTES: Final = 16 * 1024
"""Most readers want a line or two."""


def backwards(read_at: Callable[[int, int], bytes], size: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield the offset and the bytes of each segment of the first `size` bytes; None for one too long to be a line.

    `read_at` gives a length from an offset. A newline at the very end closes the last segment and begins none.
    """
    parts: list[bytes] = []
    held = 0
    end = start = size
    length = FIRST_BYTES
    while start > 0:
        start, until = max(0, start - length), start
        length = min(2 * length, READ_BYTES)
        pieces = read_at(until - start, start).split(b"\n")
        while pieces:
            piece = pieces.pop()
            held += len(piece)
            parts.append(piece)
            if held > LINE_BYTES_MAX:
                parts.clear()
            if pieces or start == 0:
                begin = end - held
                if not (begin == size and held == 0):
                    yield begin, b"".join(reversed(parts)) if held <= LINE_BYTES_MAX else None
                parts, held, end = [], 0, begin - 1


def newest_records(read_at: Callable[[int, int], bytes], size: int) -> Iterator[Record | None]:
    """Yield the lines of the first `size` bytes, the newest first, None for each that is not a readable event."""
    for position, line in backwards(read_at, size):
        try:
            yield None if line is None else Record(position, line, read(line))
        except Unreadable:
            yield None
