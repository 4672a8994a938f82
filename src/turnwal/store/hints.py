"""What a batch of lines says about what is open after it: the least a store needs to index interrupted sessions.

Promises: a session whose boundaries say what is open is indexed exactly. One whose lines do not say (a bare log, or one
that another tool wrote) is indexed as soon as anything of it could be open, so the index never leaves one out.

Does not: scan. Whoever reads the index looks at the session itself before acting.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from turnwal.core.chain import Chained
from turnwal.core.line import Unreadable, read
from turnwal.core.types import BOUNDARIES, is_seqs

_LEAD: Final = re.compile(rb'\{"seq":(\d{1,18}),"prev":"[0-9a-f]{64}","time":-?\d+,"type":"([^"\\]+)"')
"""How a line of the one producer begins, which tells most of them apart. One that begins otherwise is decoded."""
_OPENING: Final = frozenset({"turn_start", "step_start", "assistant_message", "tool_call"})
_BOUNDARIES: Final = frozenset(type.encode() for type in BOUNDARIES)
_OPENING_BYTES: Final = frozenset(type.encode() for type in _OPENING)


def open_from(lines: Sequence[bytes], before: int | None) -> int | None:
    """The seq of the oldest turn that is open after these lines, None where none is; `before` is the same before them.

    Taken from the last boundary that says; of the lines behind it, the first that may leave something open counts
    where nothing else is open.
    """
    opened, opening = before, None
    for line in reversed(lines):
        if line.__class__ is Chained and line.event.type not in BOUNDARIES:
            if line.event.type in _OPENING:
                opening = line.event.seq
            continue
        lead = _LEAD.match(line)
        if lead is not None and lead[2] not in _BOUNDARIES:
            # however the rest is spelt: no line that is read names its type or its number twice
            if lead[2] in _OPENING_BYTES:
                opening = int(lead[1])
            continue
        try:
            event = read(line)
        except Unreadable:
            continue
        said: Any = event.data.get("open") if event.type in BOUNDARIES else None
        if is_seqs(said):
            opened = min(said, default=None)
            break
        if event.type in _OPENING:
            opening = event.seq
    return opened if opened is not None else opening
