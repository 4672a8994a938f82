"""What may be done about a call whose answer was lost: repeat it, or record what was learnt."""

from contextlib import suppress
from typing import Any, Literal

from turnwal.core.errors import TurnwalError
from turnwal.core.line import Event
from turnwal.session.body import Outcome, execute
from turnwal.session.handle import Handle
from turnwal.session.tools import Parts, Ready, Tools, is_async, parts_of, prepare

OutcomeWord = Literal["happened", "did_not_happen", "unknown"]


class Repetition(Handle):
    """The verbs of a call whose result only stands in for a lost one."""

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

    def _check_repeatable(self) -> None:
        self._session.check_open()
        if not self.answered:
            raise self._refusal("it has no result yet", "only a call whose answer was lost is repeated")
        if not self.repeatable:
            raise self._refusal("its result is a real one", "a call that was answered is not repeated")
        if self._learnt == "happened":
            raise self._refusal("it is known to have happened", "repeating it would do it twice")
