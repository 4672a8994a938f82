"""A live call: dispatched, answered, approved, suspended or repeated through this handle.

The write order is the product (F14): the dispatch is durable before the body runs, the result when it arrives.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from turnwal.core.errors import TurnwalError
from turnwal.core.line import Event
from turnwal.core.recovery import answer
from turnwal.session.approval import Approval
from turnwal.session.body import Outcome, not_kept, said, tell
from turnwal.session.guard import needs_dispatch
from turnwal.session.parallel import arun_calls, run_calls
from turnwal.session.repetition import Repetition
from turnwal.session.tools import Hints, Parts, Ready, Tools, parts_of, prepare
from turnwal.store.names import check_id

if TYPE_CHECKING:
    from turnwal.session.session import Session
    from turnwal.session.sessions import Sessions
    from turnwal.session.turn import Turn

_NO_HINTS: Final = Hints({}, None)


class Call(Approval, Repetition):
    """One tool call of a session that is open for writing."""

    # Running a tool

    def run(self, tools: Tools) -> Event:
        """Dispatch durably, call the tool, record what came of it durably; returns the `tool_result`.

        An unknown tool, or arguments that do not fit it, is a result without a dispatch. An exception of the tool is a
        result with `is_error`; `OutcomeUnknown`, an interrupt or a cancellation is one of the class *outcome unknown*.
        """
        return run_calls(self._session, [self], tools, parallel=False)[0]

    async def arun(self, tools: Tools) -> Event:
        """As `run`, for tools of both kinds; a synchronous one runs in a thread of the loop's own pool."""
        return (await arun_calls(self._session, [self], tools, parallel=False, limit=None))[0]

    def prepare(self, tools: Tools) -> Ready | str:
        """Find the tool and fit the arguments to it; text for the model where that fails. Nothing is written."""
        self._check_dispatchable()
        self._check_arguments()
        return prepare(tools, self.name, self.arguments, free_text=self.free_text)

    # The two halves, for adapters

    def dispatch(self) -> Event:
        """Record durably that the call is handed to its tool; run the body after this has returned."""
        return self._session.durably(self.note_dispatch)

    def result(
        self,
        parts: Parts | str,
        *,
        is_error: bool = False,
        duration_ms: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Event:
        """Record the result durably. Refused for an answered call, and in a durable turn for one never dispatched."""
        return self._session.durably(
            self.note_result, parts, is_error=is_error, duration_ms=duration_ms, metadata=metadata
        )

    def reject(self, text: str) -> Event:
        """Answer the call without a dispatch, durably: the tool was not run, and `text` says why."""
        return self._session.durably(self.note_rejection, text)

    async def areject(self, text: str) -> Event:
        """As `reject`, without stopping the event loop."""
        return await self._session.adurably(self.note_rejection, text)

    def note_dispatch(self, hints: Hints = _NO_HINTS) -> Event:
        """Append the dispatch; the caller waits for the barrier before it runs the body."""
        with self._session.order:
            self._check_dispatchable()
            data = self._named() | {"arguments": self.arguments or "{}", "key": self.key} | hints.recorded()
            if self._child is not None:
                data["child"] = self._child
            return self._session.note("tool_call", data, run=self.run_name)

    def note_result(
        self,
        parts: Parts | str,
        *,
        is_error: bool = False,
        duration_ms: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Event:
        """Append the result; the caller waits for the barrier."""
        with self._session.order:
            if metadata is not None and metadata.get("synthetic") is True:
                raise self._refusal("it is a real one", "only turnwal marks a result as synthetic")
            if needs_dispatch(self._check_unanswered()) and not (self._handed_out or self.doubtful):
                raise self._refusal("it was never dispatched", "`call.dispatch()` first, or `call.reject(text)`")
            data = self._answer(parts, is_error=is_error, duration_ms=duration_ms, metadata=metadata)
            return self._session.note("tool_result", data, run=self.run_name)

    def note_rejection(self, text: str) -> Event:
        """Append an answer without a dispatch; the caller waits for the barrier."""
        with self._session.order:
            self._check_unanswered()
            if self._handed_out:
                raise self._refusal("it was dispatched, so it may have run", "record its result")
            self._check_sure()
            data = self._answer(text, is_error=True, metadata={"rejected": True})
            return self._session.note("tool_result", data, run=self.run_name)

    def record(self, outcome: Outcome, started: float) -> Event:
        """Append what a body came to; `started` is the monotonic time it began at."""
        if outcome.unknown is not None:
            return self._note_unknown(outcome)
        told = tell(outcome)
        duration_ms = round((time.monotonic() - started) * 1000)
        with self._session.order:
            data = self._answer(told.parts, is_error=told.is_error, duration_ms=duration_ms, metadata=told.metadata)
            try:
                self._session.check("tool_result", data, run=self.run_name)
            except Exception as problem:  # noqa: BLE001 - the application's `redact` runs here
                told = not_kept(outcome, problem)
            return self.note_result(told.parts, is_error=told.is_error, duration_ms=duration_ms, metadata=told.metadata)

    def record_interruption(self) -> None:
        """Record durably that a dispatched call was cut short: its outcome is unknown. Does nothing where it cannot."""
        self.note_interruption()
        with suppress(TurnwalError):
            self._session.flush()

    def note_interruption(self) -> None:
        """As `record_interruption`; the caller waits for the barrier."""
        with suppress(TurnwalError), self._session.order:
            if not self.answered and self.dispatched:
                self._note_unknown(Outcome())

    # Sub-agents

    def sub(self, label: str = "", *, user: Parts | str | None = None) -> "Turn":
        """A turn of the sub-agent that serves this call, in the same log; the run is named by the call.

        Records the dispatch of the call where that was not done: the sub-agent's work is the call's. Answer it with
        `result` when the sub-agent is done.
        """
        if not self.dispatched:
            self.note_dispatch()
        return self._session.turn(user=user, run=self.call_key, serves=self, label=label)

    def child(self, store: "Sessions", id: str, **options: Any) -> "Session":
        """The session of a sub-agent with a log of its own; enter it to create it.

        Dispatches the call with the child's id, and entering waits until that is durable, so a lost parent always
        says which child it had (F33). Answer the call with `result` when the child is done.
        """
        check_id(id)
        with self._session.order:
            self._child = {"session": id}
            try:
                self.note_dispatch()
            finally:
                self._child = None
        head = self._session.head
        parent = {"session": self._session.id, "seq": head.count - 1, "head": head.hash}
        return store.session(id, parent=parent, after=self._session, **options)

    def _note_unknown(self, outcome: Outcome) -> Event:
        with self._session.order:
            scan = self._session.scan
            run = scan.run(self.run_name)
            state = self._check_unanswered()
            plain = answer(scan, run, state.turn or run.outside, state, interrupted=False).data
            told: Parts = []
            if outcome.unknown is not None:
                told = parts_of(said(outcome.unknown))
                data = plain | {"parts": [*plain["parts"], *told]}
                try:
                    self._session.check("tool_result", data, run=self.run_name)
                    return self._session.note("tool_result", data, run=self.run_name)
                except Exception as problem:
                    if self.answered or self._session.closed:
                        raise
                    told = not_kept(outcome, problem).parts
            # every word left is ours, and must be recorded whatever the application's `redact` thinks of it
            data = plain | {"parts": [*plain["parts"], *told]}
            return self._session.note("tool_result", data, run=self.run_name, redact=False)
