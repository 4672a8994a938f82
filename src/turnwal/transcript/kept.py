"""What each message became, kept to be handed out again and again.

Promises: what is handed out shares nothing with what is kept, so a caller may change it; equal neighbours are merged
where the target wants that. Handing out costs a copy at the speed of the interpreter's loader: all but the newest
messages are kept as the bytes that it reads, some at a time.
"""

import marshal
from collections.abc import Iterable, Sequence
from typing import Final

from turnwal.transcript.target import Target, Wire

_CHUNK: Final = 64
"""How many messages are turned into bytes together."""

_NEWEST: Final = 16
"""How many stay as they are: the newest are made anew when a result arrives."""


class Kept:
    """The pieces of a request, one for each visible event."""

    def __init__(self, target: Target) -> None:
        """Begin with none."""
        self._target = target
        self._pieces: list[list[Wire]] = []
        self._chunks: list[tuple[int, bytes]] = []
        """Up to which piece, and the merged messages since the chunk before."""

    def __len__(self) -> int:
        """How many pieces there are."""
        return len(self._pieces)

    def append(self, piece: list[Wire]) -> None:
        """Keep what the next visible event became."""
        self._pieces.append(piece)

    def forget(self, start: int) -> None:
        """Forget the pieces from an index on."""
        if start >= len(self._pieces):
            return
        del self._pieces[start:]
        # a chunk ends before a piece that begins a message of its own, and that piece may be another one now
        while self._chunks and self._chunks[-1][0] >= start:
            self._chunks.pop()

    def messages(self) -> list[Wire]:
        """All messages, merged, as a list that is the caller's own."""
        self._freeze()
        handed: list[Wire] = []
        for _, chunk in self._chunks:
            handed += marshal.loads(chunk)  # noqa: S302 - bytes that were made here
        handed += marshal.loads(marshal.dumps(merged(self._pieces[self._end :], self._target)))  # noqa: S302 - the same
        return handed

    @property
    def _end(self) -> int:
        return self._chunks[-1][0] if self._chunks else 0

    def _freeze(self) -> None:
        while len(self._pieces) - self._end >= _CHUNK + _NEWEST:
            end = self._boundary(self._end + _CHUNK)
            if end is None:
                return
            self._chunks.append((end, marshal.dumps(merged(self._pieces[self._end : end], self._target))))

    def _boundary(self, index: int) -> int | None:
        """The first piece from an index on that begins a message of its own, well before the newest."""
        for at in range(index, len(self._pieces) - _NEWEST):
            before, piece = self._pieces[at - 1], self._pieces[at]
            if before and piece and (self._target.body is None or before[-1]["role"] != piece[0]["role"]):
                return at
        return None


def merged(pieces: Iterable[Sequence[Wire]], target: Target) -> list[Wire]:
    """All messages in one list, equal neighbours merged where the target wants that; for reading alone."""
    body = target.body
    if body is None:
        return [message for piece in pieces for message in piece]
    joined: list[Wire] = []
    for piece in pieces:
        for message in piece:
            last = joined[-1] if joined else None
            if last is None or last["role"] != message["role"] or not target.merges(last, message):
                joined.append(message)
            else:
                joined[-1] = {**last, body: [*_blocks(last[body], target), *_blocks(message[body], target)]}
    return joined


def _blocks(body: list[Wire] | str, target: Target) -> list[Wire]:
    return [target.text_block(body)] if isinstance(body, str) else body
