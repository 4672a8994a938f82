"""One more attempt of a call, in a turn of its run.

Promises:
- The attempt is dispatched in an open turn: which one is decided, and where none is open one is begun, in the same hold
  of the order that gives the dispatch its place.
- A turn that attempts began for themselves ends with the last of them, however many run side by side.

Does not: run a body, or decide whether the call may be repeated; see `repetition.py`.
"""

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from turnwal.core.errors import TurnwalError
from turnwal.session.reason import TurnReason, reason_of

if TYPE_CHECKING:
    from turnwal.session.session import Session
    from turnwal.session.turn import Turn


class OwnTurn:
    """A turn that nobody but attempts asked for."""

    def __init__(self, turn: "Turn") -> None:
        """A turn that has not begun, and nobody in it."""
        self.turn = turn
        self.users: set[Attempt] = set()


class Attempt:
    """A block, sync and async, around an attempt, from before its dispatch until its outcome is recorded."""

    def __init__(self, session: "Session", run: str, make_turn: "Callable[[], Turn]") -> None:
        """Prepare; nothing is written. `make_turn` returns a turn of the run, for where none is open."""
        self._session = session
        self._run = run
        self._make_turn = make_turn
        self._own: OwnTurn | None = None

    def enter_turn(self) -> None:
        """Make sure that a turn of the run is open, and stays open where it is of attempts; the caller has the order
        and appends the dispatch before it gives that up.
        """
        turns = self._session.own_turns
        own = turns.get(self._run)
        if own is None or own.turn.state is None:
            if self._session.has_open_turn(self._run):
                return
            own = turns[self._run] = OwnTurn(self._make_turn())
        self._own = own
        own.users.add(self)
        if own.turn.state is None:
            own.turn.begin()

    def _leave(self, reason: TurnReason) -> None:
        own = self._own
        if own is None:
            return
        with self._session.order:
            own.users.discard(self)
            if own.users:
                return
            if self._session.own_turns.get(self._run) is own:
                del self._session.own_turns[self._run]
            own.turn.note_close(reason)

    def __enter__(self) -> Self:
        """Begin; the turn comes with the dispatch."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the turn with the last attempt in it. A failing store does not hide what ended the block."""
        try:
            self._leave(reason_of(kind))
            if self._own is not None:
                self._session.flush()
        except TurnwalError:
            if kind is None:
                raise
        except BaseException as interrupt:
            self._session.close_orphan(lambda: self._leave("cancelled"), interrupt)
            raise

    async def __aenter__(self) -> Self:
        """Begin; the turn comes with the dispatch."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the turn with the last attempt in it."""
        try:
            self._leave(reason_of(kind))
            if self._own is not None:
                await self._session.aflush()
        except TurnwalError:
            if kind is None:
                raise
        except (KeyboardInterrupt, SystemExit) as interrupt:
            self._session.close_orphan(lambda: self._leave("cancelled"), interrupt)
            raise
