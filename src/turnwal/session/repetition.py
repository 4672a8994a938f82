"""What may be done about a call whose answer was lost: repeat it, or record what was learnt."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Literal, get_args

from turnwal.core import calls
from turnwal.core.errors import TurnwalError
from turnwal.core.line import Event
from turnwal.core.recovery import answer, void
from turnwal.session.attempt import Attempt
from turnwal.session.body import Outcome, Told, execute, execute_async, not_kept, said, tell
from turnwal.session.handle import Handle
from turnwal.session.tools import Parts, Ready, Tools, is_async, parts_of, prepare

OutcomeWord = Literal["happened", "did_not_happen", "unknown"]


class Repetition(Handle):
    """The verbs of a call whose result only stands in for a lost one."""

    def retry(self, tools: Tools) -> Event:
        """Run the call again with the same idempotency key, as its next attempt; returns the `tool_outcome`.

        Only for a call whose result stands in for a lost one and that is not known to have happened, or whose result is
        itself among lost bytes and that is known not to have happened. Runs in the open
        turn of its run, else in a turn of its own, which attempts of other calls share that run at the same time.
        """
        ready = self._prepare_again(tools)
        if is_async(ready.function):
            raise self._refusal("its tool is asynchronous", "await `call.aretry`")
        with self._alone(), self._attempt() as attempt:
            number = self._session.durably(self._note_attempt, attempt, ready)
            try:
                outcome = execute(ready, self)
            except BaseException:
                self._note_cut_short(number)
                raise
            return self._session.durably(self._note_outcome, number, outcome)

    async def aretry(self, tools: Tools) -> Event:
        """As `retry`, for tools of both kinds, without stopping the event loop."""
        ready = self._prepare_again(tools)
        with self._alone():
            async with self._attempt() as attempt:
                number = await self._session.adurably(self._note_attempt, attempt, ready)
                try:
                    outcome = await execute_async(ready, self)
                except BaseException:
                    self._note_cut_short(number)
                    raise
                return await self._session.adurably(self._note_outcome, number, outcome)

    def settle(
        self, outcome: OutcomeWord, *, evidence: object = None, by: str = "", parts: Parts | None = None
    ) -> Event:
        """Record durably what was learnt about the call since: `happened`, `did_not_happen` or `unknown`.

        `evidence` is any JSON value, `by` says who found out. Refused for a call without a result, unless that may be
        lost. Then `did_not_happen` lets a call that waits be decided and run, and the other two close it.
        """
        return self._session.durably(self._note_settled, outcome, evidence, by, parts)

    async def asettle(
        self, outcome: OutcomeWord, *, evidence: object = None, by: str = "", parts: Parts | None = None
    ) -> Event:
        """As `settle`, without stopping the event loop."""
        return await self._session.adurably(self._note_settled, outcome, evidence, by, parts)

    def _note_settled(self, outcome: str, evidence: object, by: str, parts: Parts | None) -> Event:
        with self._session.order:
            self._session.check_open()
            if outcome not in get_args(OutcomeWord):
                raise self._refusal(f"{outcome!r} is no outcome", f"say one of: {', '.join(get_args(OutcomeWord))}")
            # of a call that is not open, its result may be what is lost
            state = self._state
            if not self.answered and (not self.doubtful or (state is not None and self._handed_out)):
                raise self._refusal("it has no result yet", "record its result instead")
            data = self._named() | {"outcome": outcome, "by": by}
            data |= ({} if evidence is None else {"evidence": evidence}) | ({} if parts is None else {"parts": parts})
            if state is not None and outcome != "did_not_happen":
                self._session.check("tool_outcome", data, run=self.run_name)
                self._note_closed(state)
            return self._session.note("tool_outcome", data, run=self.run_name)

    def _note_closed(self, state: calls.Call) -> None:
        """Answer a call that may have run in what is lost, as recovery answers one that was open across it."""
        run = self._session.scan.run(self.run_name)
        repairs = [answer(self._session.scan, run, state.turn or run.outside, state, interrupted=False)]
        repairs += [void(run, state)] if state.question == "pending" else []
        for repair in repairs:
            self._session.note(repair.type, repair.data, run=repair.run, redact=False)

    def _prepare_again(self, tools: Tools) -> Ready:
        self._check_repeatable()
        self._check_arguments()
        ready = prepare(tools, self.name, self.arguments, free_text=self.free_text)
        if isinstance(ready, str):
            raise self._refusal(ready, "pass the tool that the call names")
        return ready

    def _attempt(self) -> Attempt:
        call: Any = self
        return Attempt(self._session, self.run_name, lambda: self._session.turn(resumes=call))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A block with all of an attempt, from before its dispatch until its outcome is durable; one at a time.

        The log cannot say whether one runs: the turn it was dispatched in may end, and close it there, meanwhile.
        """
        with ExitStack() as block:
            with self._session.order:
                self._check_repeatable()
                block.enter_context(self.running())
            yield

    def _note_attempt(self, attempt: Attempt, ready: Ready) -> int:
        with self._session.order:
            attempt.enter_turn()
            number = max(self._found.attempts, 1) + 1
            data = self._named() | {"attempt": number, "arguments": self.arguments or "{}", "key": self.key}
            self._session.note("tool_call", data | ready.hints.recorded(), run=self.run_name)
            return number

    def _note_outcome(self, number: int, outcome: Outcome) -> Event:
        data = self._named() | {"attempt": number}
        if outcome.unknown is not None or outcome.error is not None:
            told = Told(parts_of(said(outcome.unknown or outcome.error or RuntimeError())), is_error=True)
        else:
            told = tell(outcome)
        data |= {"outcome": "unknown" if told.is_error else "happened", "parts": told.parts}
        data |= {} if told.metadata is None else {"metadata": told.metadata}
        with self._session.order:
            try:
                self._session.check("tool_outcome", data, run=self.run_name)
            except Exception as problem:  # noqa: BLE001 - the application's `redact` runs here
                told = not_kept(outcome, problem)
                data |= {"parts": told.parts, "metadata": told.metadata}
            return self._session.note("tool_outcome", data, run=self.run_name)

    def _note_cut_short(self, number: int) -> None:
        """Record that an attempt was interrupted; does nothing where it cannot."""
        with suppress(TurnwalError):
            self._note_outcome(number, Outcome(unknown=InterruptedError("the attempt was interrupted")))

    def _check_repeatable(self) -> None:
        self._session.check_open()
        if self._found.learnt == "happened":
            raise self._refusal("it is known to have happened", "repeating it would do it twice")
        if not self.answered:
            if self._state is None:
                self._check_sure()  # its result may be what is lost
            if self._state is not None or self._found.learnt != "did_not_happen":
                raise self._refusal("it has no result yet", "only a call whose answer was lost is repeated")
        elif not self.repeatable:
            raise self._refusal("its result is a real one", "a call that was answered is not repeated")
        self._check_known()
        if self._question in ("pending", "denied", "void") and self._found.learnt != "did_not_happen":
            hint = "only a granted call may run; a person who settles it as `did_not_happen` lets it be repeated"
            raise self._refusal(f"its approval is {self._question}", hint)
        if self._running:
            raise self._refusal("an attempt of it is running", "wait for its outcome")
