"""The points of a life at which it can be killed, each with a name that a run after it has too.

`write#3:before` and `write#3:after` stand around the third time that events become durable; `refund#1:before` and
`refund#1:after` inside the first body of `refund`: entered, but for its effect, and done, but for its return.
"""

import os
import signal
import threading
from collections import Counter


class Points:
    """Counts what is passed, and kills the process at one of them."""

    def __init__(self, target: str | None = None) -> None:
        """Kill at the point of that name; never where it is None."""
        self._target = target
        self._counts: Counter[str] = Counter()
        self._mutex = threading.Lock()
        self.names: list[str] = []
        """What was passed, in order."""

    def enter(self, what: str) -> str:
        """Pass the point before something, and return the name that this time has."""
        with self._mutex:
            self._counts[what] += 1
            name = f"{what}#{self._counts[what]}"
        self._at(f"{name}:before")
        return name

    def leave(self, name: str) -> None:
        """Pass the point after it."""
        self._at(f"{name}:after")

    def _at(self, name: str) -> None:
        with self._mutex:
            self.names.append(name)
        if name == self._target:
            os.kill(os.getpid(), signal.SIGKILL)
