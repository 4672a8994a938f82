"""Group commit: appends that wait at the same time share one transaction.

Promises:
- A lone append is written at once by the caller that waits; nobody waits for company.
- What one append is refused for does not touch the others of its group.
- When the commit itself fails, every append of the group hears that its outcome is unknown, each with an error of its
  own; an interrupt of the thread that commits interrupts no other.
- An append whose caller gave up before its commit began is never written later.

Does not: know what is appended or how.
"""

import copy
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from turnwal.core.errors import StoreFailed, TurnwalError

T = TypeVar("T")


class Pending(Generic[T]):
    """One append that waits, and what came of it."""

    __slots__ = ("committed", "error", "work")

    def __init__(self, work: T) -> None:
        """Hold what is to be appended."""
        self.work = work
        self.committed = False
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
        try:
            with self._mutex:
                self._waiting.append(pending)
            with self._turn:
                if not pending.committed and pending.error is None:
                    self._commit_all(pending)
        except BaseException:
            self._withdraw(pending)
            raise
        if pending.error is not None:
            raise pending.error
        if not pending.committed:
            raise _broken_off("it was left behind")

    def _commit_all(self, own: Pending[T]) -> None:
        with self._mutex:
            group, self._waiting = self._waiting, []
        try:
            self._commit(group)
        except BaseException as error:
            for pending in group:
                if pending is not own and pending.error is None:
                    pending.error = _shared(error)
            raise
        for pending in group:
            pending.committed = True

    def _withdraw(self, pending: Pending[T]) -> None:
        with self._mutex:
            self._waiting = [other for other in self._waiting if other is not pending]


def _shared(error: BaseException) -> BaseException:
    """The same failure for another thread: one exception raised in two would mix their tracebacks."""
    return copy.copy(error) if isinstance(error, TurnwalError) else _broken_off(type(error).__name__)


def _broken_off(reason: str) -> StoreFailed:
    return StoreFailed(
        f"the commit that it shared with others was broken off ({reason})",
        action="append",
        hint="open the session anew; recovery describes what is there",
    )
