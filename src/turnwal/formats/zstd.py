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


def opened(path: Path, start: int = 0, end: int | None = None) -> BinaryIO:
    """The expanded bytes of a file, or of its frames between two offsets, to read.

    Reading raises `Bomb`, `zstandard.ZstdError` and `OSError`.
    """
    return cast("BinaryIO", io.BufferedReader(_Expanded(path, start, end), buffer_size=1 << 20))


class _Part:
    """The next bytes of a file, and no more."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int) -> bytes:
        """Some of them, none at the end."""
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        return data


class _Expanded(io.RawIOBase):
    """The expanded bytes, counted."""

    def __init__(self, path: Path, start: int, end: int | None) -> None:
        self._file = path.open("rb")
        size = (path.stat().st_size if end is None else end) - start
        self._limit = min(EXPANDED_MAX, max(size * RATIO_MAX, 1 << 20))
        source: BinaryIO = self._file if end is None else cast("BinaryIO", _Part(self._file, size))
        self._file.seek(start)
        decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX)
        self._reader = decompressor.stream_reader(source, read_across_frames=True, closefd=False)
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
