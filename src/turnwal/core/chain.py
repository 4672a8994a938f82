"""The chain: what the next line must be, and the head that commits to everything before it.

A line is the next one when it is readable, carries the next seq, and its `prev` is the SHA-256 of the line before.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Self

import msgspec

from turnwal.core.errors import HeadMismatch, InvalidName
from turnwal.core.line import GENESIS, Event, Unreadable, read
from turnwal.core.types import newer


class Head(msgspec.Struct, frozen=True, gc=False):
    """Event count and hash of the last line: a commitment to the whole history."""

    count: int
    """The seq that the next event gets; the number of events where no bytes were lost."""
    hash: str
    """SHA-256 of the last line in hex; `GENESIS` where there is none."""

    def __str__(self) -> str:
        """The form that people keep: `count:hash`."""
        return f"{self.count}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        """Read `count:hash`; raises `InvalidName` for anything else."""
        count, _, digest = text.partition(":")
        if (
            count.isascii()
            and count.isdecimal()
            and len(count) <= _COUNT_DIGITS_MAX
            and len(digest) == len(GENESIS)
            and not set(digest) - set("0123456789abcdef")
        ):
            return cls(int(count), digest)
        message = f"{text!r} is no head"
        raise InvalidName(
            message, action="read", subject="head", hint="a head is COUNT:HASH, as `turnwal head` prints it"
        )


_COUNT_DIGITS_MAX = 18

EMPTY = Head(0, GENESIS)
"""The head of a log that has no line."""


def digest(line: bytes) -> str:
    """The hash of a line: SHA-256 of its bytes without the newline, in hex."""
    return sha256(line).hexdigest()


def after(line: bytes, event: Event) -> Head:
    """The head of a log whose last line is this one."""
    return Head(event.seq + 1, sha256(line).hexdigest())


class Chained(bytes):
    """A line that `make` returned, with what is known of it: whoever gets it need not read and hash it again."""

    event: Event
    head: Head
    """The head of a log whose last line this is."""

    @classmethod
    def of(cls, line: bytes, event: Event) -> Self:
        """The line of an event."""
        chained = cls(line)
        chained.event = event
        chained.head = Head(event.seq + 1, sha256(line).hexdigest())
        return chained


def follows(event: Event, head: Head) -> bool:
    """Whether an event is the next one after a head; a `damage` event of kind `lost` may leave seqs out."""
    return event.prev == head.hash and (
        event.seq == head.count
        or (event.seq > head.count and event.type == "damage" and event.data.get("kind") == "lost")
    )


def admit(line: bytes, head: Head) -> Event:
    """Return the event of a line that is the next one after `head`.

    Raises `Unreadable` when it is not, and `TooNew` when it is the next one of a newer turnwal.
    """
    try:
        event = read(line)
    except Unreadable as error:
        if error.newer is not None and follows(error.newer, head):
            raise newer(f"line {error.newer.seq} {error.reason}") from None
        raise
    if follows(event, head):
        return event
    if event.seq != head.count:
        raise Unreadable(f"has seq {event.seq} where {head.count} comes next")
    raise Unreadable(f"has a prev that is not the hash of line {head.count - 1}")


def check_expected(expected: Head, reached: Iterator[Head] | list[Head]) -> None:
    """Raise `HeadMismatch` unless one of the heads that a log went through is the expected one."""
    last = EMPTY
    if expected == EMPTY:
        return
    for last in reached:
        if last.count == expected.count:
            if last.hash == expected.hash:
                return
            message = f"line {expected.count - 1} has the hash {last.hash}, {expected.hash} was expected"
            raise HeadMismatch(message, hint="this is not the history that the head was taken from")
    message = f"the log has {last.count} events, the expected head counts {expected.count}"
    raise HeadMismatch(message, hint="events are missing at the end, or this is another session")
