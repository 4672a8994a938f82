"""An owner that is stopped at some instant, and how another comes in its place.

On files and SQLite the lock of a stopped process is still held: the successor is refused, and comes once the process is
killed, or by something that loses the owner its lock behind its back. On PostgreSQL the lease ends by itself.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from tests.crash import forking, marks
from tests.races.places import Place
from turnwal.core.errors import SessionHeld, StoreFailed

T = TypeVar("T")

LEASE_WAIT_S: Final = 20.0
BEGUN_S: Final = 20.0
ENDED_S: Final = 30.0


@dataclass
class Seen:
    """What came of it."""

    rounds: int = 0
    ways: Counter[str] = field(default_factory=Counter)
    """How the successor came, and what the stopped owner heard when it went on."""
    acknowledged: int = 0
    late: int = 0
    """Lines of an old owner behind the first of its successor."""
    effects: int = 0
    effects_late: int = 0
    """Of those, how many were left by an owner that had been succeeded; each was dispatched before."""
    violations: list[str] = field(default_factory=list)


class Stopped:
    """A child that is begun, let run until its marks say so, and stopped."""

    def __init__(self, place: Place, session: str, work: Callable[[], None], begun: Callable[[], bool]) -> None:
        """Return when it has begun."""
        self.errors = place.root / f"{session}.errors"
        self.pid = forking.fork(work, self.errors)
        self.code: int | None = None
        deadline = time.monotonic() + BEGUN_S
        while not begun():
            assert time.monotonic() < deadline, marks.lines(self.errors)
            assert os.waitpid(self.pid, os.WNOHANG) == (0, 0), marks.lines(self.errors)
            time.sleep(0.001)

    def stop(self, after_s: float) -> None:
        """Stop it after a while."""
        time.sleep(after_s)
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def go_on(self) -> None:
        """Let it go on, where it was not killed."""
        if self.code is None:
            os.kill(self.pid, signal.SIGCONT)

    def end(self) -> bool:
        """Whether it ends by itself, which it must; it is killed otherwise."""
        ended = self.code is not None or (code := forking.wait_for(self.pid, ENDED_S)) is not None
        if ended and self.code is None:
            self.code = code
        self.kill()
        return ended

    def kill(self) -> None:
        """End it, stopped or not."""
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.code = forking.wait(self.pid)


def succeed(
    place: Place, session: str, owner: Stopped, enter: Callable[[float], T], seen: Seen, *, by_force: bool
) -> T:
    """What `enter`, given how long to wait for the owner, returns once the session can be had."""
    if place.wrest is None:
        seen.ways["succeeded when the lease ended"] += 1
        return enter(LEASE_WAIT_S)
    try:
        enter(0.0)
    except SessionHeld:
        seen.ways["refused while it was stopped"] += 1
    else:
        raise AssertionError("a session was had whose owner is stopped and has its lock")
    if not by_force:
        owner.kill()
        seen.ways["succeeded when it was killed"] += 1
        return enter(5.0)
    place.wrest(session)
    try:
        entered = enter(0.0)
    except StoreFailed as failed:
        if "Busy" not in failed.message:
            raise
        seen.ways["stopped inside a commit, which holds up every other"] += 1
        owner.go_on()
        return _at_last(enter)
    seen.ways["succeeded when its lock was lost"] += 1
    return entered


def _at_last(enter: Callable[[float], T]) -> T:
    """As soon as the owner, which commits without a pause, leaves a moment between two commits to another."""
    deadline = time.monotonic() + LEASE_WAIT_S
    while True:
        try:
            return enter(0.0)
        except StoreFailed as failed:
            if "Busy" not in failed.message or time.monotonic() > deadline:
                raise
