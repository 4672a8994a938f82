"""Waiting for another process's commit to a SQLite file: in short, even pauses, so that each gets its turn.

SQLite's own timeout sleeps ever longer, up to a tenth of a second, while those who came later take the lock. Of twenty
processes that appended without a pause for six seconds, one got three appends through, and another three hundred.

Promises: gives up after the time that it was given; an interrupt ends the wait.
Does not: queue. Who waits longer has no better chance, and no worse one.
"""

import time
from typing import Final

_PAUSE_S: Final = 0.0007
"""About as long as a commit takes."""
_LONG_PAUSE_S: Final = 0.01
_SHORT_PAUSES: Final = 300
"""After so many it is no commit that is waited for, but something long: a whole history that is put."""


class Patience:
    """What SQLite asks whether to try again."""

    def __init__(self, timeout_ms: int) -> None:
        """Wait so long for one lock."""
        self._timeout_s = timeout_ms / 1000
        self._until = 0.0

    def __call__(self, tries: int) -> bool:
        """Pause and say yes, or say no once the time is up; `tries` counts those for the same lock before."""
        now = time.monotonic()
        if tries == 0:
            self._until = now + self._timeout_s
        if now >= self._until:
            return False
        time.sleep(_PAUSE_S if tries < _SHORT_PAUSES else _LONG_PAUSE_S)
        return True
