"""A step: one model reply and the tool calls it asked for."""

from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from turnwal.core.calls import Step as OpenStep
from turnwal.core.errors import Refused, SessionClosed, TurnwalError
from turnwal.core.line import Event
from turnwal.core.recovery import answer, void
from turnwal.session.call import Call
from turnwal.session.exchange import Exchange
from turnwal.session.parallel import Parallel, arun_calls, run_calls
from turnwal.session.tools import Tools

if TYPE_CHECKING:
    from turnwal.session.session import Session
    from turnwal.session.turn import Turn

_STEP_OUTCOMES: Final = ("ok", "error", "cancelled")
"""What a live step ends with; `interrupted` is recovery's word."""


class Step(Exchange):
    """A block, sync and async; `begin` and `close` are its plain verbs."""

    def __init__(self, session: "Session", turn: "Turn", *, dispatch: str | None) -> None:
        """Prepare a step; nothing is written until it begins. `dispatch="none"` weakens what the turn declares."""
        super().__init__(session, turn)
        self._dispatch = dispatch
        self._seq = -1
        self._closed = False

    @property
    def state(self) -> OpenStep | None:
        """The step as the log has it, or None when it is not open there."""
        turn = self.turn.state
        steps = turn.steps if turn is not None else []
        return next((step for step in steps if step.seq == self._seq), None)

    def begin(self) -> Self:
        """Record the step's start and wait until all input is durable; ask the model after this has returned."""
        begun = self._seq >= 0
        try:
            self.note_begin()
            self._session.flush()
        except BaseException as error:
            self._not_begun(error, begun=begun)
            raise
        return self

    def _not_begun(self, error: BaseException, *, begun: bool) -> None:
        """End a step whose beginning failed, unless it was begun before."""
        outcome = outcome_of(type(error))
        if not begun:
            self._session.close_orphan(lambda: self.close(outcome), error)

    def note_begin(self) -> None:
        """Append the step's start; the caller waits for the barrier."""
        with self._session.order:
            self._session.check_open()
            turn = self.turn.state
            if turn is None:
                raise SessionClosed("the turn is not open", action="step", hint="open another turn")
            if self._seq >= 0 or turn.steps:
                raise Refused("another step of the turn is open", action="step", hint="close that one first")
            self.number = turn.step_count + 1
            data: dict[str, Any] = {"turn": self.turn.number, "step": self.number}
            if self._dispatch is not None:
                data["dispatch"] = self._dispatch
            self._seq = self._session.next_seq
            self._session.note("step_start", data, run=self.turn.run_name)

    def run(self, calls: Sequence[Call], tools: Tools, *, parallel: Parallel = None) -> list[Event]:
        """Run calls and return their results in call order.

        Consecutive calls of read-only tools run side by side, with one barrier for their dispatches; the others run
        one after another. `parallel=True` runs all side by side, a number at most so many, `False` none. Each result
        is durable as it comes.
        """
        return run_calls(self._session, calls, tools, parallel)

    async def arun(
        self, calls: Sequence[Call], tools: Tools, *, parallel: Parallel = None, limit: int | None = None
    ) -> list[Event]:
        """As `run`, for tools of both kinds; at most `limit` bodies at a time."""
        return await arun_calls(self._session, calls, tools, parallel, limit)

    def close(self, outcome: str = "ok") -> None:
        """End the step, answering the calls it asked for that were not run; idempotent. The next barrier is durable.

        Raises `Refused` for an outcome that no live step ends with.
        """
        if outcome not in _STEP_OUTCOMES:
            hint = f"say one of: {', '.join(_STEP_OUTCOMES)}"
            raise Refused(f"{outcome!r} is no outcome", action="close", subject="step", hint=hint)
        with suppress(Exception):  # what was streamed and cannot be recorded must not leave the step open
            self.settle()
        with self._session.order:
            state = self.state
            if self._closed or state is None:
                self._closed = True
                return
            scan = self._session.scan
            run, turn = scan.run(self.turn.run_name), self.turn.state
            if turn is None:
                return
            owed = [call for key, call in sorted(turn.calls.items()) if call.step is state and call.owed]
            repairs = [answer(scan, run, turn, call, interrupted=outcome != "ok") for call in owed]
            repairs += [void(run, call) for call in owed if call.question == "pending"]
            waits = any(call.waiting is not None and call.step is state for call in turn.calls.values())
            for repair in repairs:
                self._session.note(repair.type, repair.data, run=repair.run, redact=False)
            data = {"turn": self.turn.number, "step": self.number, "outcome": outcome}
            self._session.note("step_end", data, run=self.turn.run_name)
            self._closed = True
            if waits:
                self.turn.stop()

    def __enter__(self) -> Self:
        """Begin the step."""
        self._session.make_room()
        return self.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the step with the true outcome. A failing store does not hide the exception that ended the block."""
        self._leave(kind)

    async def __aenter__(self) -> Self:
        """Begin the step."""
        self._session.make_room()
        begun = self._seq >= 0
        try:
            self.note_begin()
            await self._session.aflush()
        except BaseException as error:
            self._not_begun(error, begun=begun)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the step with the true outcome."""
        self._leave(kind)

    def _leave(self, kind: type[BaseException] | None) -> None:
        try:
            self.close("ok" if kind is None else outcome_of(kind))
        except TurnwalError:
            if kind is None:
                raise
        except BaseException as interrupt:
            self._session.close_orphan(lambda: self.close("cancelled"), interrupt)
            raise


def outcome_of(kind: type[BaseException]) -> str:
    """What a step that ends with such an exception records."""
    return "error" if issubclass(kind, Exception) else "cancelled"
