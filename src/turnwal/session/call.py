"""A live call: dispatched, answered, approved, suspended or repeated through this handle.

The write order is the product (F14): the dispatch is durable before the body runs, the result when it arrives. What
happened to the call is read from the session's scan, so a handle is never out of step with the log.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

from turnwal.core import calls, keys, values
from turnwal.core.errors import Refused, TurnwalError
from turnwal.core.line import Event
from turnwal.core.recovery import answer
from turnwal.session.body import Outcome, execute, execute_async
from turnwal.session.lookup import Found
from turnwal.session.tools import Hints, Parts, Ready, Tools, is_async, parts_of, prepare

if TYPE_CHECKING:
    from turnwal.session.session import Session
    from turnwal.session.sessions import Sessions
    from turnwal.session.turn import Turn

_NO_HINTS: Final = Hints({}, None)
OutcomeWord = Literal["happened", "did_not_happen", "unknown"]


class Call:
    """One tool call of a session that is open for writing."""

    def __init__(self, session: "Session", found: Found) -> None:
        """A handle; made by `step.assistant` and `session.call`."""
        self._session = session
        self._key = found.key
        self._attempts = max(found.attempts, 1)
        self._result = found.result
        self._asked_before = found.question
        self._dispatched_before = found.attempts > 0
        self._learnt = found.outcomes[-1].data.get("outcome") if found.outcomes else None
        self._child: dict[str, Any] | None = None
        self.run_name = found.run
        """The run the call belongs to."""
        self.id = found.id
        """The provider's id; may repeat or be empty."""
        self.name = found.name
        self.arguments = found.arguments
        """The arguments as the model wrote them, blank ones as `{}`."""
        self.free_text = found.free_text
        """The arguments are not meant to be JSON."""
        self.key = found.idempotency_key
        """The idempotency key: equal where the history up to the request is equal; pass it to whoever does the work."""

    @property
    def call_key(self) -> str:
        """What names the call in the log: `"12.1"`."""
        return keys.text(self._key)

    @property
    def args(self) -> dict[str, Any] | None:
        """The arguments as an object, or None when they do not parse to one (F30)."""
        return values.parse_arguments(self.arguments)

    @property
    def answered(self) -> bool:
        """Whether the call has a result."""
        return self._result is not None or self._session._scan.run(self.run_name).known.get(self._key, 0) != 0  # noqa: SLF001

    @property
    def dispatched(self) -> bool:
        """Whether the unanswered call was handed to its tool."""
        state = self._state
        return state is not None and state.dispatched is not None

    @property
    def waiting(self) -> bool:
        """Whether the call is meant to be answered later."""
        state = self._state
        return state is not None and state.waiting is not None

    def __repr__(self) -> str:
        """Key and tool."""
        return f"<Call {self.call_key} {self.name}>"

    # Running a tool

    def run(self, tools: Tools) -> Event:
        """Dispatch durably, call the tool, record what came of it durably; returns the `tool_result`.

        An unknown tool, or arguments that do not fit it, is a result without a dispatch. An exception of the tool is a
        result with `is_error`; `OutcomeUnknown`, an interrupt or a cancellation is one of the class *outcome unknown*.
        """
        ready = self.prepare(tools)
        if isinstance(ready, str):
            return self.reject(ready)
        if is_async(ready.function):
            raise self._refusal("its tool is asynchronous", "await `call.arun` or `step.arun`")
        self._session.durably(self.note_dispatch, ready.hints)
        started = time.monotonic()
        try:
            outcome = execute(ready, self.key)
        except BaseException:
            self.record_interruption()
            raise
        return self._session.durably(self.record, outcome, started)

    async def arun(self, tools: Tools) -> Event:
        """As `run`, for tools of both kinds; a synchronous one runs in a thread of the loop's own pool."""
        ready = self.prepare(tools)
        if isinstance(ready, str):
            return await self.areject(ready)
        self.note_dispatch(ready.hints)
        await self._session.aflush()
        started = time.monotonic()
        try:
            outcome = await execute_async(ready, self.key)
        except BaseException:
            self.note_interruption()
            raise
        event = self.record(outcome, started)
        await self._session.aflush()
        return event

    def prepare(self, tools: Tools) -> Ready | str:
        """Find the tool and fit the arguments to it; text for the model where that fails. Nothing is written."""
        self._check_dispatchable()
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
        event = self.note_rejection(text)
        await self._session.aflush()
        return event

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
            state = self._check_unanswered()
            turn = state.turn
            durable = turn is None or turn.seq < 0 or turn.dispatch == "durable"
            weak = state.step is not None and state.step.weak
            if durable and not weak and not self._was_dispatched(state):
                raise self._refusal("it was never dispatched", "`call.dispatch()` first, or `call.reject(text)`")
            return self._note_answer(parts, is_error=is_error, duration_ms=duration_ms, metadata=metadata)

    def note_rejection(self, text: str) -> Event:
        """Append an answer without a dispatch; the caller waits for the barrier."""
        with self._session.order:
            state = self._check_unanswered()
            if self._was_dispatched(state):
                raise self._refusal("it was dispatched, so it may have run", "record its result")
            return self._note_answer(text, is_error=True, metadata={"rejected": True})

    def record(self, outcome: Outcome, started: float) -> Event:
        """Append what a body came to; `started` is the monotonic time it began at."""
        duration_ms = round((time.monotonic() - started) * 1000)
        if outcome.unknown is not None:
            return self._note_unknown(str(outcome.unknown))
        if outcome.error is not None:
            text = f"{type(outcome.error).__name__}: {outcome.error}"
            return self.note_result(text, is_error=True, duration_ms=duration_ms)
        try:
            return self.note_result(parts_of(outcome.value), duration_ms=duration_ms)
        except TurnwalError as problem:
            if self.answered or self._session.closed:
                raise
            text = f"The tool ran and returned, but its value could not be recorded: {problem.message}."
            return self.note_result(text, duration_ms=duration_ms, metadata={"unrecorded": problem.code})

    def record_interruption(self) -> None:
        """Record durably that a dispatched call was cut short: its outcome is unknown. Does nothing where it cannot."""
        self.note_interruption()
        with suppress(TurnwalError):
            self._session.flush()

    def note_interruption(self) -> None:
        """As `record_interruption`; the caller waits for the barrier."""
        with suppress(TurnwalError), self._session.order:
            if not self.answered and self.dispatched:
                self._note_unknown("")

    # A person, or a later answer

    def ask(self, question: object) -> None:
        """Ask a person, durably: request and suspension in one batch. The call waits; leave the step, and the turn ends
        `suspended`. `question` is any JSON value.
        """
        self._session.durably(self.note_question, question)

    async def aask(self, question: object) -> None:
        """As `ask`, without stopping the event loop."""
        self.note_question(question)
        await self._session.aflush()

    def note_question(self, question: object) -> None:
        """Append request and suspension; the caller waits for the barrier."""
        with self._session.order:
            state = self._check_unanswered()
            if state.dispatched is not None:
                raise self._refusal("it was dispatched already", "ask before the call is handed to its tool")
            if self._question(state) == "pending":
                raise self._refusal("its question is open already", "grant or deny it")
            self._session.note("approval_request", self._named() | {"question": question}, run=self.run_name)
            self._session.note("tool_suspended", self._named(), run=self.run_name)

    def suspend(self) -> Event:
        """Record durably that the answer comes later; `session.call(key).result(…)` gives it, in any process."""
        with self._session.order:
            self._check_unanswered()
            event = self._session.note("tool_suspended", self._named(), run=self.run_name)
        self._session.flush()
        return event

    def grant(self, *, by: str = "") -> Event:
        """Record durably that the call may run; then `session.turn(resumes=…)` and run it.

        Refused for a call that is answered, or whose question was voided or never asked (F28).
        """
        return self._session.durably(self._note_decision, "granted", by)

    def deny(self, *, by: str = "", text: str = "The request to run this call was denied.") -> Event:
        """Record durably that the call may not run, and answer it with `text`; returns the `tool_result`."""
        with self._session.order:
            self._note_decision("denied", by)
            event = self._note_answer(text, is_error=True, metadata={"rejected": True})
        self._session.flush()
        return event

    def _note_decision(self, decision: str, by: str) -> Event:
        with self._session.order:
            state = self._check_unanswered()
            question = self._question(state)
            if question != "pending":
                asked = {None: "was never asked", "void": "was voided"}.get(question, "was answered")
                raise self._refusal(f"its question {asked}", "a decision needs a question that is open")
            data = self._named() | {"decision": decision, "by": by}
            return self._session.note("approval_response", data, run=self.run_name)

    # After a result that stands in for a lost one

    def retry(self, tools: Tools) -> Event:
        """Run the call again with the same idempotency key, as its next attempt; returns the `tool_outcome`.

        Only for a call whose result is synthetic or of a risk class. Runs in the open turn of its run, else in a turn
        of its own.
        """
        self._check_repeatable()
        ready = prepare(tools, self.name, self.arguments, free_text=self.free_text)
        if isinstance(ready, str):
            raise self._refusal(ready, "pass the tool that the call names")
        if is_async(ready.function):
            raise self._refusal("its tool is asynchronous", "pass a synchronous one")
        if self._session.has_open_turn(self.run_name):
            return self._attempt(ready)
        with self._session.turn(resumes=self.call_key, run=self.run_name):
            return self._attempt(ready)

    def settle(
        self, outcome: OutcomeWord, *, evidence: object = None, by: str = "", parts: Parts | None = None
    ) -> Event:
        """Record durably what was learnt about the call since: `happened`, `did_not_happen` or `unknown`.

        `evidence` is any JSON value, `by` says who found out. Refused for a call without a result.
        """
        if outcome not in ("happened", "did_not_happen", "unknown"):
            raise self._refusal(f"{outcome!r} is no outcome", "say happened, did_not_happen or unknown")
        with self._session.order:
            self._session.check_open()
            if not self.answered:
                raise self._refusal("it has no result yet", "record its result instead")
            data = self._named() | {"outcome": outcome, "by": by}
            data |= ({} if evidence is None else {"evidence": evidence}) | ({} if parts is None else {"parts": parts})
            event = self._session.note("tool_outcome", data, run=self.run_name)
            self._learnt = outcome
        self._session.flush()
        return event

    def _attempt(self, ready: Ready) -> Event:
        with self._session.order:
            number = self._attempts + 1
            named = self._named() | {"attempt": number}
            dispatch = named | {"arguments": self.arguments or "{}", "key": self.key} | ready.hints.recorded()
            self._session.note("tool_call", dispatch, run=self.run_name)
            self._attempts = number
        self._session.flush()
        try:
            outcome = execute(ready, self.key)
        except BaseException:
            with suppress(TurnwalError):
                self._note_attempt(named, Outcome(unknown=InterruptedError("the attempt was interrupted")))
            raise
        return self._session.durably(self._note_attempt, named, outcome)

    def _note_attempt(self, named: dict[str, Any], outcome: Outcome) -> Event:
        data = dict(named)
        problem = outcome.unknown or outcome.error
        if problem is None:
            data |= {"outcome": "happened", "parts": parts_of(outcome.value)}
        else:
            data |= {"outcome": "unknown", "parts": parts_of(f"{type(problem).__name__}: {problem}")}
        self._learnt = data["outcome"]
        return self._session.note("tool_outcome", data, run=self.run_name)

    # Sub-agents

    def sub(self, label: str = "", *, user: Parts | str | None = None) -> "Turn":
        """A turn of the sub-agent that serves this call, in the same log; the run is named by the call."""
        return self._session.turn(user=user, run=self.call_key, serves=self, label=label)

    def child(self, store: "Sessions", id: str, **options: Any) -> "Session":
        """The session of a sub-agent with a log of its own; enter it to create it.

        Dispatches the call with the child's id, and entering waits until that is durable, so a lost parent always
        says which child it had (F33). Answer the call with `result` when the child is done.
        """
        self._child = {"session": id}
        self.note_dispatch()
        head = self._session.head
        parent = {"session": self._session.id, "seq": head.count - 1, "head": head.hash}
        return store.session(id, parent=parent, after=self._session, **options)

    # Inside

    @property
    def _state(self) -> calls.Call | None:
        return self._session._scan.run(self.run_name).find(self._key)  # noqa: SLF001

    def _question(self, state: calls.Call) -> values.Question | None:
        """What became of its approval; a scan of the open part may have begun after it was asked for."""
        return state.question if state.question is not None else self._asked_before

    def _was_dispatched(self, state: calls.Call) -> bool:
        """Whether it was handed to its tool; a scan of the open part may have begun after that."""
        return state.dispatched is not None or self._dispatched_before

    def _named(self) -> dict[str, Any]:
        named: dict[str, Any] = {"call": self.call_key, "id": self.id}
        return named if self.name is None else named | {"name": self.name}

    def _check_unanswered(self) -> calls.Call:
        self._session.check_open()
        state = self._state
        if state is None:
            why = "it has a result already" if self.answered else "its turn has ended"
            raise self._refusal(why, "a call gets one result; `settle` records what is learnt later")
        return state

    def _check_dispatchable(self) -> None:
        state = self._check_unanswered()
        if not self._session.has_open_turn(self.run_name):
            raise self._refusal("no turn is open in its run", f'open one: `session.turn(resumes="{self.call_key}")`')
        question = self._question(state)
        if question in ("pending", "denied", "void"):
            raise self._refusal(f"its approval is {question}", "only a granted call may run")
        if self._was_dispatched(state):
            raise self._refusal(
                "it was dispatched already", "a call runs once; `retry` repeats one whose answer was lost"
            )

    @property
    def repeatable(self) -> bool:
        """Whether the call has a result that only stands in for a lost one."""
        if self._result is None:
            return False
        metadata = values.object_of(self._result.data, "metadata") or {}
        return metadata.get("synthetic") is True or "risk" in metadata

    def _check_repeatable(self) -> None:
        self._session.check_open()
        if not self.answered:
            raise self._refusal("it has no result yet", "only a call whose answer was lost is repeated")
        if not self.repeatable:
            raise self._refusal("its result is a real one", "a call that was answered is not repeated")
        if self._learnt == "happened":
            raise self._refusal("it is known to have happened", "repeating it would do it twice")

    def _note_answer(
        self,
        parts: Parts | str,
        *,
        is_error: bool,
        duration_ms: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Event:
        data = self._named() | {"parts": parts_of(parts), "is_error": is_error}
        data |= {} if duration_ms is None else {"duration_ms": duration_ms}
        data |= {} if metadata is None else {"metadata": dict(metadata)}
        self._result = self._session.note("tool_result", data, run=self.run_name)
        return self._result

    def _note_unknown(self, detail: str) -> Event:
        with self._session.order:
            scan = self._session._scan  # noqa: SLF001
            run = scan.run(self.run_name)
            state = self._check_unanswered()
            repair = answer(scan, run, state.turn or run.outside, state, interrupted=False)
            data = dict(repair.data)
            if detail:
                data["parts"] = [*data["parts"], {"type": "text", "content": detail}]
            self._result = self._session.note("tool_result", data, run=self.run_name)
            return self._result

    def _refusal(self, why: str, hint: str) -> Refused:
        return Refused(why, action="write", subject=f"call {self.call_key}", hint=hint)
