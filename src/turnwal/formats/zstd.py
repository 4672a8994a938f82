"""Zstandard files, one frame behind the other, without letting a small file become a large one in memory."""

import io
from pathlib import Path
from typing import BinaryIO, Final, cast

import zstandard

MAGIC: Final = b"\x28\xb5\x2f\xfd"
EXPANDED_MAX: Final = 4 * 1024 * 1024 * 1024
"""Bytes that a file may expand to."""
RATIO_MAX: Final = 2_000
"""How many times its size a file may expand to. Text of agents comes to about ten; a bomb to many thousands."""
WINDOW_MAX: Final = 128 * 1024 * 1024
"""Memory that one frame may ask for."""


class Bomb(Exception):
    """The file expands to more than a session does."""


def opened(path: Path) -> BinaryIO:
    """The expanded bytes of a file, to read. Reading raises `Bomb`, `zstandard.ZstdError` and `OSError`."""
    return cast("BinaryIO", io.BufferedReader(_Expanded(path), buffer_size=1 << 20))


def head(path: Path, size: int) -> bytes:
    """The first expanded bytes of a file, as far as it is sound."""
    taken = b""
    try:
        with opened(path) as file:
            while len(taken) < size and (more := file.read1(size - len(taken))):  # type: ignore[attr-defined]
                taken += more
    except (zstandard.ZstdError, Bomb):
        pass
    return taken


class _Expanded(io.RawIOBase):
    """The expanded bytes, counted."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._limit = min(EXPANDED_MAX, max(path.stat().st_size * RATIO_MAX, 1 << 20))
        decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX)
        self._reader = decompressor.stream_reader(self._file, read_across_frames=True, closefd=False)
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        data = self._reader.read(len(view))
        self._count += len(data)
        if self._count > self._limit:
            raise Bomb(f"it expands to more than {self._limit:,} bytes")
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()
