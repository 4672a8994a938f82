"""Names of calls: our key, which never repeats, and the idempotency key that a tool may pass on.

Provider ids repeat, are constant, or are empty (F08), so a call is named by where it was asked for.
"""

import re
from functools import lru_cache
from hashlib import sha256
from typing import Final

DISPATCH_INDEX: Final = -1
"""The part index of a call that no message asked for."""

_INDEX_BITS: Final = 24
_KEY: Final = re.compile(r"(0|[1-9][0-9]{0,17})\.(?:(0|[1-9][0-9]{0,6})|d)")


def pack(seq: int, index: int) -> int:
    """A key as one integer that sorts by seq, then by part index."""
    return (seq << _INDEX_BITS) | (index + 1)


def text(packed: int) -> str:
    """The key as it stands in the log: `"12.1"`, or `"12.d"` for a dispatch that no message asked for."""
    index = (packed & ((1 << _INDEX_BITS) - 1)) - 1
    return f"{packed >> _INDEX_BITS}.{'d' if index == DISPATCH_INDEX else index}"


def parse(key: object) -> int | None:
    """The packed form of a key, or None when the value is no key."""
    return _parse(key) if isinstance(key, str) else None


@lru_cache(maxsize=1024)
def _parse(key: str) -> int | None:
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    return pack(int(match[1]), DISPATCH_INDEX if match[2] is None else int(match[2]))


def seq_of(packed: int) -> int:
    """The seq of the line that asks."""
    return packed >> _INDEX_BITS


def index_of(packed: int) -> int:
    """The index of the part that asks, or `DISPATCH_INDEX`."""
    return (packed & ((1 << _INDEX_BITS) - 1)) - 1


def idempotency_key(line_hash: str, index: int) -> str:
    """32 hex digits that are equal where the history up to the asking line is equal.

    `line_hash` is the hash of the line that asks. A dispatch that no message asked for passes the hash of the line
    before it, since its own line contains the key.
    """
    part = "d" if index == DISPATCH_INDEX else str(index)
    return sha256(f"turnwal key\n{line_hash}\n{part}".encode()).hexdigest()[:32]
