"""Group commit: appends that wait at the same time share one transaction.

Promises:
- A lone append is written at once by the caller that waits; nobody waits for company.
- What one append is refused for does not touch the others of its group.
- When the commit itself fails, every append of the group hears that its outcome is unknown.

Does not: know what is appended or how.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Pending(Generic[T]):
    """One append that waits, and what came of it."""

    __slots__ = ("done", "error", "work")

    def __init__(self, work: T) -> None:
        """Hold what is to be appended."""
        self.work = work
        self.done = False
        self.error: BaseException | None = None


class GroupCommit(Generic[T]):
    """Gathers appends and has one caller commit them all."""

    def __init__(self, commit: Callable[[Sequence[Pending[T]]], None]) -> None:
        """`commit` makes all durable or raises; it sets `error` of each that is refused on its own."""
        self._commit = commit
        self._mutex = threading.Lock()
        self._turn = threading.Lock()
        self._waiting: list[Pending[T]] = []

    def append(self, work: T) -> None:
        """Return when the work is durable; raise what it was refused for, or what the commit failed with."""
        pending = Pending(work)
        with self._mutex:
            self._waiting.append(pending)
        with self._turn:
            if not pending.done:
                self._commit_all()
        if pending.error is not None:
            raise pending.error

    def _commit_all(self) -> None:
        with self._mutex:
            group, self._waiting = self._waiting, []
        try:
            self._commit(group)
        except BaseException as error:
            for pending in group:
                pending.error = pending.error or error
            raise
        finally:
            for pending in group:
                pending.done = True
