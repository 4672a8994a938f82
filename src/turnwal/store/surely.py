"""Finishing what has to be finished although somebody presses Ctrl-C again.

Promises: an action that can be repeated is repeated until it came to its end; the interrupt is raised after that.
"""

from collections.abc import Callable
from typing import Final

_TRIES_MAX: Final = 16
"""Whoever interrupts more often than this wants out."""


def surely(action: Callable[[], None]) -> None:
    """Do an action that may be repeated to its end; raise the last interrupt that came meanwhile.

    Raises what else the action raises, at once.
    """
    interrupt: BaseException | None = None
    for _ in range(_TRIES_MAX):
        try:
            action()
            break
        except (KeyboardInterrupt, SystemExit) as again:
            interrupt = again
    if interrupt is not None:
        raise interrupt
