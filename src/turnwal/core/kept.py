"""A head that is kept apart from its log: the bytes it is kept as, and whether a log has it in its past.

A shorter chain is a valid chain, so a log alone cannot say that its newest events are missing. A head that is kept
elsewhere can, as long as it is never ahead of the log: it is written behind the sync of what it counts.

Promises:
- A file of heads holds two slots, a page each, written in turn. Whatever ends a write in the middle leaves the other
  slot, and a slot whose bytes changed is not read as another head.
- A head is in the past of a log where the line it names stands in its place, or where a `damage` event of kind `lost`
  names it: then a person has said that it is known to be gone.

Does not: read or write a file.
"""

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from turnwal.core.chain import Head, digest
from turnwal.core.errors import InvalidName
from turnwal.core.line import Event

SLOT_BYTES: Final = 4096
"""A device writes a sector whole or not at all; none in use has a longer one."""

SLOTS: Final = 2

_LABEL: Final = b"turnwal head "
_SLOT: Final = re.compile(_LABEL + rb"([0-9]+:[0-9a-f]{64}) ([0-9a-f]{16})")


def sentence(head: Head) -> bytes:
    """A head as one line of text with a check, without a newline: what a file of heads holds."""
    named = _LABEL + str(head).encode()
    return named + b" " + _check(named)


def slot(head: Head) -> bytes:
    """The line of a head, padded to the size of a slot, newline included."""
    return sentence(head).ljust(SLOT_BYTES - 1) + b"\n"


def slots_of(content: bytes) -> list[Head | None]:
    """The head in each slot of a file, None for one that holds none."""
    pieces = (content[at : at + SLOT_BYTES] for at in range(0, SLOTS * SLOT_BYTES, SLOT_BYTES))
    return [_head_of(piece.strip(b" \n")) for piece in pieces]


def heads_in(content: bytes) -> list[Head]:
    """Every head that a text holds, with its check or as the bare `COUNT:HASH` that `turnwal head` prints."""
    found = []
    for line in content.split(b"\n"):
        head = _head_of(line.strip()) or _bare(line.strip())
        if head is not None:
            found.append(head)
    return found


def newest(heads: Iterable[Head | None]) -> Head | None:
    """The head that counts most; None where there is none."""
    return max((head for head in heads if head is not None), key=lambda head: head.count, default=None)


def has(event: Event, line: bytes, kept: Head) -> bool:
    """Whether a line of a log shows that a kept head is in its past."""
    if event.seq == kept.count - 1:
        return digest(line) == kept.hash
    return gives_up(event, kept)


def gives_up(event: Event, kept: Head) -> bool:
    """Whether an event is the word of a person that a kept head is known to be gone."""
    return event.type == "damage" and event.data.get("kind") == "lost" and event.data.get("head") == str(kept)


def lacks(count: int, kept: Head) -> str:
    """What is wrong with a log of so many events that has a kept head not in its past, as half a sentence about it."""
    missing = kept.count - count
    if missing > 0:
        events = "1 is" if missing == 1 else f"{missing:,} are"
        return f"ends at {count:,} events where its kept head counts {kept.count:,}: at least {events} missing"
    return f"has another line {kept.count - 1} than its kept head names: this is not the history that it was taken from"


def _head_of(line: bytes) -> Head | None:
    found = _SLOT.fullmatch(line)
    if found is None or _check(_LABEL + found[1]) != found[2]:
        return None
    return _bare(found[1])


def _bare(text: bytes) -> Head | None:
    try:
        return Head.parse(text.decode("ascii"))
    except (InvalidName, UnicodeDecodeError):
        return None


def _check(named: bytes) -> bytes:
    return sha256(named).hexdigest()[:16].encode()
