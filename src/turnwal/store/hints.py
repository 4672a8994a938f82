"""What a batch of lines says about what is open after it: the least a store needs to index interrupted sessions."""

from collections.abc import Sequence
from typing import Any

from turnwal.core.line import Unreadable, read
from turnwal.core.types import BOUNDARIES, is_seqs

_OPEN = b'"open":['


def open_from(lines: Sequence[bytes], before: int | None) -> int | None:
    """The seq of the oldest turn that is open after these lines, None where none is; `before` is the same before them.

    Taken from the last boundary that says; a batch without one changes nothing.
    """
    for line in reversed(lines):
        if _OPEN in line:
            try:
                event = read(line)
            except Unreadable:
                continue
            opened: Any = event.data.get("open")
            if event.type in BOUNDARIES and is_seqs(opened):
                return min(opened, default=None)
    return before
