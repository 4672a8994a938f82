"""Time and ids that repeat, for what a session takes from outside itself.

    sessions = Sessions(MemoryStore(), clock=FakeClock(), nonce=FakeIds())

Promises: what is written with them has the same bytes each time. Both may be asked from any thread.
Does not: move the time of the process. A store's waits, and the lease of PostgreSQL, go by their own clocks.
"""

import threading
from hashlib import sha256
from typing import Final

START: Final = 1_764_500_000_000
"""A moment as good as any, in Unix milliseconds."""


class FakeClock:
    """A clock that goes on by itself, a step each time it is asked, and wherever a test moves it."""

    def __init__(self, now: int = START, *, step: int = 1) -> None:
        """Stand at a moment, in Unix milliseconds; a step of 0 stands still, one below runs backwards."""
        self._now = now
        self._step = step
        self._mutex = threading.Lock()

    def __call__(self) -> int:
        """The time now; the next one to ask hears a step more."""
        with self._mutex:
            now = self._now
            self._now += self._step
            return now

    def move(self, milliseconds: int) -> None:
        """Go forward, or back."""
        with self._mutex:
            self._now += milliseconds


class FakeIds:
    """A source of nonces: 128 bits in hex, each another one, the same ones for the same seed."""

    def __init__(self, seed: object = 0) -> None:
        """Begin with a seed; its text counts."""
        self._seed = seed
        self._given = 0
        self._mutex = threading.Lock()

    def __call__(self) -> str:
        """The next one."""
        with self._mutex:
            self._given += 1
            return sha256(f"turnwal id\n{self._seed}\n{self._given}".encode()).hexdigest()[:32]
