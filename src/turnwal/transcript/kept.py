"""What each message became, kept to be handed out again and again.

Promises: what is handed out shares nothing that can be changed with what is kept, so a caller may change it; equal
neighbours are merged where the target wants that. Handing out costs a copy of the lists and objects, not of the texts
in them; merging is done once for all but the newest messages.
"""

import marshal
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import to_builtins

from turnwal.transcript.target import Target, Wire

_CHUNK: Final = 64
"""How many pieces are merged for good together."""

_NEWEST: Final = 16
"""How many stay as they are: the newest are made anew when a result arrives."""


class Kept:
    """The pieces of a request, one for each visible event."""

    def __init__(self, target: Target) -> None:
        """Begin with none."""
        self._target = target
        self._pieces: list[list[Wire]] = []
        self._merged: list[Wire] = []
        """What the pieces up to the last end became."""
        self._ends: list[tuple[int, int]] = []
        """Up to which piece, and up to which of the merged messages; nothing is merged across one."""

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
        # an end stands before a piece that begins a message of its own, and that piece may be another one now
        while self._ends and self._ends[-1][0] >= start:
            self._ends.pop()
        del self._merged[self._end[1] :]

    def messages(self) -> list[Wire]:
        """All messages, merged, as a list that is the caller's own."""
        self._settle()
        return _copied(self._merged + merged(self._pieces[self._end[0] :], self._target))

    @property
    def _end(self) -> tuple[int, int]:
        return self._ends[-1] if self._ends else (0, 0)

    def _settle(self) -> None:
        start, _ = self._end
        while len(self._pieces) - start >= _CHUNK + _NEWEST:
            end = self._boundary(start + _CHUNK)
            if end is None:
                return
            self._merged += merged(self._pieces[start:end], self._target)
            self._ends.append((end, len(self._merged)))
            start = end

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


def _copied(messages: list[Wire]) -> list[Wire]:
    """A copy at the speed of C, with lists and objects of its own."""
    copy: list[Wire]
    try:
        copy = to_builtins(messages)
    except RecursionError:  # arguments of a call are nested deeper than the stack has room
        copy = marshal.loads(marshal.dumps(messages))  # noqa: S302 - bytes that were made here
    return copy
