"""Group commit: appends that wait at the same time share one transaction.

Promises:
- A lone append is written at once by the caller that waits; nobody waits for company.
- What one append is refused for does not touch the others of its group.
- When the commit itself fails, every append of the group hears that its outcome is unknown, each with an error of its
  own; an interrupt of the thread that commits interrupts no other.
- An append whose caller gave up before its commit began is never written later.
- An interrupt leaves the turn to the others, wherever it comes. An append from inside the commit of the same thread, as
  a signal handler may try it, is refused: it would wait for itself.

Does not: know what is appended or how.
"""

import copy
import threading
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from turnwal.core.errors import StoreFailed, TurnwalError

T = TypeVar("T")


_AGAIN_S: Final = 1.0
"""How long somebody who waits believes that whoever leads will wake it."""


class Pending(Generic[T]):
    """One append that waits, and what came of it."""

    __slots__ = ("bell", "committed", "error", "work")
    bell: "threading.Lock | None"
    """What whoever waits in the queue sleeps on."""

    def __init__(self, work: T) -> None:
        """Hold what is to be appended."""
        self.work = work
        self.committed = False
        self.error: BaseException | None = None
        self.bell = None

    @property
    def settled(self) -> bool:
        """Whether something came of it."""
        return self.committed or self.error is not None


class GroupCommit(Generic[T]):
    """Gathers appends and has one caller commit them all."""

    def __init__(self, commit: Callable[[Sequence[Pending[T]]], None]) -> None:
        """`commit` makes all durable or raises; it sets `error` of each that is refused on its own."""
        self._commit = commit
        self._mutex = threading.Lock()
        # a lock that knows its owner: who was interrupted behind the taking of it need not know that it was taken
        self._turn = threading.RLock()
        self._leader: int | None = None
        self._waiting: list[Pending[T]] = []

    def append(self, work: T) -> None:
        """Return when the work is durable; raise what it was refused for, or what the commit failed with."""
        if self._leader == threading.get_ident():
            hint = "append nothing from a signal handler or a finalizer"
            raise StoreFailed("this thread is in the middle of a commit", action="append", hint=hint)
        pending = Pending(work)
        # the usual case first: nobody commits, so this caller leads at once and waits in no queue
        if not self._try_to_lead(pending, self._lead_with):
            self._queue(pending)
        if pending.error is not None:
            raise pending.error

    def _try_to_lead(self, own: Pending[T], lead: Callable[[Pending[T]], None]) -> bool:
        """Have the turn for as long as `lead` runs; False where another has it."""
        me = threading.get_ident()
        try:
            if not self._turn.acquire(blocking=False):
                return False
            self._leader = me
            lead(own)
        finally:
            # nothing is called before the release: an interrupt is raised where a call begins or has returned
            if self._leader == me:
                self._leader = None
            try:
                self._turn.release()
            except RuntimeError:
                pass  # it is another's
            else:
                self._wake_next()
        return True

    def _queue(self, pending: Pending[T]) -> None:
        """Wait until somebody has committed the work, or lead."""
        bell = pending.bell = threading.Lock()
        bell.acquire()
        try:
            with self._mutex:
                self._waiting.append(pending)
            while not pending.settled:
                # whoever gets the turn leads; the others sleep each on its own, so that a group wakes all at once
                if not self._try_to_lead(pending, self._lead_waiting):
                    bell.acquire(timeout=_AGAIN_S)
        except BaseException:
            self._withdraw(pending)
            self._wake_next()
            raise

    def _lead_with(self, own: Pending[T]) -> None:
        """Commit everything that waits, and what waits nowhere yet."""
        with self._mutex:
            group, self._waiting = [*self._waiting, own], []
        self._lead(group, own)

    def _lead_waiting(self, own: Pending[T]) -> None:
        """Commit everything that waits, unless another did it for this caller in the meantime."""
        if own.settled:
            return
        with self._mutex:
            if own not in self._waiting:
                # who had taken it was interrupted before it began: what became of it nobody knows
                raise _broken_off("it was left behind")
            group, self._waiting = self._waiting, []
        self._lead(group, own)

    def _lead(self, group: Sequence[Pending[T]], own: Pending[T]) -> None:
        try:
            self._commit(group)
        except BaseException as error:
            for pending in group:
                if pending is not own and pending.error is None:
                    pending.error = _shared(error)
            raise
        else:
            for pending in group:
                pending.committed = True
        finally:
            for pending in group:
                _ring(pending)

    def _wake_next(self) -> None:
        """Have the first of those who came meanwhile lead."""
        # whoever joins the queue does so before it tries for the turn, which is free by now: none is overlooked
        if self._waiting:
            with self._mutex:
                if self._waiting:
                    _ring(self._waiting[0])

    def _withdraw(self, pending: Pending[T]) -> None:
        with self._mutex:
            self._waiting = [other for other in self._waiting if other is not pending]


def _ring(pending: Pending[T]) -> None:
    """Wake whoever waits for this."""
    if pending.bell is not None and pending.bell.locked():
        pending.bell.release()


def _shared(error: BaseException) -> BaseException:
    """The same failure for another thread: one exception raised in two would mix their tracebacks."""
    return copy.copy(error) if isinstance(error, TurnwalError) else _broken_off(type(error).__name__)


def _broken_off(reason: str) -> StoreFailed:
    return StoreFailed(
        f"the commit that it shared with others was broken off ({reason})",
        action="append",
        hint="open the session anew; recovery describes what is there",
    )
