"""Where the frames of a Zstandard file begin and end, found without expanding a byte (RFC 8878, section 3.1).

Promises: a frame that the file ends inside of is told from one that is whole; bytes that begin no frame are given as
such, up to the next that do.

Does not: look at checksums, which reading a frame does.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple

from zstandard import ZstdError

from turnwal.formats.zstd import MAGIC, Bomb, opened

_SKIPPABLE: Final = b"\x2a\x4d\x18"
"""What stands behind the first byte, 0x50 to 0x5F, of a frame that holds no data."""
_RLE: Final = 1
_RESERVED: Final = 3
_CHUNK: Final = 1 << 20
_SMALL: Final = 1 << 14


class Frame(NamedTuple):
    """A frame, or bytes that are none."""

    start: int
    end: int
    state: Literal["whole", "torn", "corrupt"]


def frames(path: Path) -> Iterator[Frame]:
    """Yield the frames of a file in order, those without data left out. Raises `OSError`."""
    size = path.stat().st_size
    with path.open("rb") as file:
        at = 0
        while at < size:
            file.seek(at)
            magic = file.read(4)
            if magic == MAGIC:
                end = _end(file)
            elif len(magic) == 4 and 0x50 <= magic[0] <= 0x5F and magic[1:] == _SKIPPABLE:  # noqa: PLR2004
                at = file.tell() + 4 + int.from_bytes(file.read(4), "little")
                continue
            else:
                end = None if len(magic) == 4 or not MAGIC.startswith(magic) else size + 1  # noqa: PLR2004
            if end is None:
                found = _next(file, at + 1, size)
                yield Frame(at, found, "corrupt")
                at = found
            elif end > size:
                yield Frame(at, size, "torn")
                return
            else:
                yield Frame(at, end, "whole")
                at = end


def head(path: Path, size: int) -> bytes:
    """The first expanded bytes of a file, as far as its frames are sound."""
    taken = bytearray()
    for frame in frames(path):
        if frame.state == "corrupt":
            continue
        try:
            with opened(path, frame.start, frame.end) as file:
                # small reads, so that a broken frame still gives what stands before the break
                while len(taken) < size and (more := file.read1(min(size - len(taken), _SMALL))):  # type: ignore[attr-defined]
                    taken += more
        except (ZstdError, Bomb):
            pass
        if len(taken) >= size:
            break
    return bytes(taken)


def _end(file: BinaryIO) -> int | None:
    """Where the frame ends whose magic was read, which may be behind the end of the file; None for what is no frame."""
    descriptor = file.read(1)
    if not descriptor:
        return _behind(file, 1)
    flags = descriptor[0]
    single = bool(flags & 0x20)
    size_field = (1 if single else 0, 2, 4, 8)[flags >> 6]
    header = (0 if single else 1) + (0, 1, 2, 4)[flags & 3] + size_field
    if flags & 0x08:
        return None  # reserved: no encoder sets it
    if len(file.read(header)) < header:
        return _behind(file, 1)
    while True:
        block = file.read(3)
        if len(block) < 3:  # noqa: PLR2004
            return _behind(file, 1)
        value = int.from_bytes(block, "little")
        kind, length = value >> 1 & 3, value >> 3
        if kind == _RESERVED:
            return None
        end = file.seek(1 if kind == _RLE else length, 1)
        if value & 1:
            return end + (4 if flags & 0x04 else 0)


def _behind(file: BinaryIO, more: int) -> int:
    return file.seek(0, 2) + more


def _next(file: BinaryIO, start: int, size: int) -> int:
    """Where the next frame seems to begin, or the end of the file."""
    file.seek(start)
    kept, at = b"", start
    while data := file.read(_CHUNK):
        found = (kept + data).find(MAGIC)
        if found >= 0:
            return at - len(kept) + found
        at += len(data)
        kept = (kept + data)[-3:]
    return size
