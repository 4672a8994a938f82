"""What a batch of lines says about what is open after it: the least a store needs to index interrupted sessions.

Promises: a session whose boundaries say what is open is indexed exactly. One whose lines do not say (a bare log, or one
that another tool wrote) is indexed as soon as anything of it could be open, so the index never leaves one out.

Does not: scan. Whoever reads the index looks at the session itself before acting.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from turnwal.core.line import Unreadable, read
from turnwal.core.types import BOUNDARIES, is_seqs

_LEAD: Final = re.compile(rb'\{"seq":\d+,"prev":"[0-9a-f]{64}","time":-?\d+,"type":"([^"\\]+)"')
"""How a line of the one producer begins. One that begins otherwise is looked at whole."""
_TELLING: Final = frozenset(
    type.encode() for type in (*BOUNDARIES, "turn_start", "step_start", "assistant_message", "tool_call")
)
_OPEN: Final = b'"open":['
_OPENING: Final = (b'"type":"turn_start"', b'"type":"step_start"', b'"type":"assistant_message"', b'"type":"tool_call"')


def open_from(lines: Sequence[bytes], before: int | None) -> int | None:
    """The seq of the oldest turn that is open after these lines, None where none is; `before` is the same before them.

    Taken from the last boundary that says; of the lines behind it, the first that may leave something open counts
    where nothing else is open.
    """
    lines = [line for line in lines if _may_tell(line)]
    opened = before
    start = 0
    for index in range(len(lines) - 1, -1, -1):
        if _OPEN in lines[index]:
            said = _said(lines[index])
            if said is not None:
                opened, start = min(said, default=None), index + 1
                break
    if opened is not None:
        return opened
    for line in lines[start:]:
        if any(mark in line for mark in _OPENING):
            try:
                return read(line).seq
            except Unreadable:
                continue
    return None


def _may_tell(line: bytes) -> bool:
    """Whether a line may say what is open, or leave something open; most cannot, as their type shows."""
    lead = _LEAD.match(line)
    return lead is None or lead[1] in _TELLING


def _said(line: bytes) -> list[int] | None:
    try:
        event = read(line)
    except Unreadable:
        return None
    opened: Any = event.data.get("open")
    return opened if event.type in BOUNDARIES and is_seqs(opened) else None
