"""Connections and forks: SQLite keeps state of a process that a forked child must not inherit.

Promises: every connection that is entered here is closed before the process forks, so that parent and child each open
their own; a fork waits for the transaction that runs.

Does not: reopen. Whoever needs a connection next makes one.
"""

import os
import threading
import weakref
from typing import Final, Protocol


class Connected(Protocol):
    """Something that may have a connection open."""

    def before_fork(self) -> None:
        """Close it and keep others from opening one."""
        ...

    def after_fork(self) -> None:
        """Let others in again, in the parent and in the child."""
        ...


_forking: Final = threading.RLock()
_known: Final[list["weakref.ref[Connected]"]] = []
_held: Final[list[Connected]] = []


def enter(connected: Connected) -> None:
    """Make something known for as long as it lives."""
    with _forking:
        _known[:] = [each for each in _known if each() is not None]
        _known.append(weakref.ref(connected))


def _before() -> None:
    _forking.acquire()
    for each in _known:
        connected = each()
        if connected is not None:
            connected.before_fork()
            _held.append(connected)


def _after() -> None:
    while _held:
        _held.pop().after_fork()
    _forking.release()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
