"""What the place looks like where a chain breaks: which kind of change of the log explains it.

Promises: one word for what is seen at the break, by the seqs and hashes of what stands there. It is an inference for
the person who decides, and nothing rests on it.

Does not: say who changed a log or why, or see more than one change: what stands behind the first is not judged.
"""

from collections.abc import Sequence
from typing import Final, Literal

from turnwal.core.chain import Head, after, digest, follows
from turnwal.core.line import Event

Look = Literal[
    "unreadable",
    "changed",
    "missing",
    "inserted",
    "repeated",
    "reordered",
    "renumbered",
    "end_missing",
    "another_history",
]

SENTENCES: Final[dict[Look, str]] = {
    "unreadable": "bytes there are no line any more",
    "changed": "the line there, or the one before it, is not the one that was written",
    "missing": "one or more lines were taken out there",
    "inserted": "lines that belong elsewhere stand there, and the log goes on behind them",
    "repeated": "a line that the log has already stands there again",
    "reordered": "lines stand there in another order",
    "renumbered": "the line there has another seq than it had",
    "end_missing": "the log was cut off there, or an earlier copy of it was put in its place",
    "another_history": "from there on, or earlier, it is another history than the one the kept head was taken from",
}
"""What each word means, as half a sentence about the place."""

Piece = tuple[bytes, Event] | None
"""A readable line, or bytes that are none."""

PIECES_MAX: Final = 256
"""How much of what stands behind a break is looked at."""


def look(before: Event | None, head: Head, behind: Sequence[Piece], *, lacks_kept: bool) -> Look:
    """What a break looks like, given the event before it, its head, and what stands behind it, in order."""
    first = behind[0] if behind else None
    if first is None:
        return "unreadable"
    line, event = first
    goes_on = any(piece is not None and follows(piece[1], head) for piece in behind[1:])
    if goes_on:
        return "reordered" if event.seq > head.count else "inserted" if event.seq == head.count else "repeated"
    if event.prev == head.hash:
        return "renumbered"
    if before is not None and (event.seq, event.prev) == (before.seq, before.prev) and digest(line) != head.hash:
        return "inserted"  # two lines for one place, of which the first was believed
    if event.seq != head.count:
        return "missing" if event.seq > head.count else "repeated"
    return "another_history" if lacks_kept and _is_chain(behind) else "changed"


def _is_chain(pieces: Sequence[Piece]) -> bool:
    """Whether each piece follows the one before it: a whole end of some other log."""
    reached: Head | None = None
    for piece in pieces:
        if piece is None or (reached is not None and not follows(piece[1], reached)):
            return False
        reached = after(*piece)
    return True
