"""Bytes as a row of decisions, so that what finds bytes finds edits: a fuzzer that is guided by coverage, or a seed."""

from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

_BYTE: Final = 256


class Choices:
    """Decisions that bytes make. Once they are used up every decision is the first one."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self._at

    def below(self, end: int) -> int:
        """A number from 0 on; it takes as many bytes as the end needs."""
        number, size = 0, 1
        while size < end:
            number, size = number * _BYTE + self._byte(), size * _BYTE
        return number % end if end else 0

    def pick(self, values: Sequence[T]) -> T:
        return values[self.below(len(values))]

    def often(self, of: int = 4) -> bool:
        """False one time in so many, and where the bytes are used up."""
        return self.below(of) != 0

    def bytes(self, count: int) -> bytes:
        return bytes(self._byte() for _ in range(count))

    def _byte(self) -> int:
        if self._at == len(self._data):
            return 0
        self._at += 1
        return self._data[self._at - 1]
