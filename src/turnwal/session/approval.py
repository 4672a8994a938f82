"""Asking a person about a call, and answers that come later."""

from typing import Any, Final

from turnwal.core.line import Event
from turnwal.session.handle import Handle

_DENIED: Final = "The request to run this call was denied."


class Approval(Handle):
    """The verbs of a call that waits."""

    def ask(self, question: object) -> None:
        """Ask a person, durably: request and suspension in one batch. The call waits; leave the step, and the turn ends
        `suspended`. `question` is any JSON value.
        """
        self._session.durably(self.note_question, question)

    async def aask(self, question: object) -> None:
        """As `ask`, without stopping the event loop."""
        await self._session.adurably(self.note_question, question)

    def note_question(self, question: object) -> None:
        """Append request and suspension; the caller waits for the barrier."""
        with self._session.order:
            self._check_unanswered()
            if self._handed_out:
                raise self._refusal("it was dispatched already", "ask before the call is handed to its tool")
            if self._question == "pending":
                raise self._refusal("its question is open already", "grant or deny it")
            self._session.note("approval_request", self._named() | {"question": question}, run=self.run_name)
            self._session.note("tool_suspended", self._named(), run=self.run_name)

    def suspend(self) -> Event:
        """Record durably that the answer of a dispatched call comes later, by `session.call(key).result(…)`."""
        return self._session.durably(self._note_suspension)

    async def asuspend(self) -> Event:
        """As `suspend`, without stopping the event loop."""
        return await self._session.adurably(self._note_suspension)

    def grant(self, *, by: str = "") -> Event:
        """Record durably that the call may run; then `session.turn(resumes=…)` and run it.

        Refused for a call that is answered, or whose question was voided or never asked (F28).
        """
        return self._session.durably(self._note_grant, by)

    async def agrant(self, *, by: str = "") -> Event:
        """As `grant`, without stopping the event loop."""
        return await self._session.adurably(self._note_grant, by)

    def deny(self, *, by: str = "", text: str = _DENIED) -> Event:
        """Record durably that the call may not run, and answer it with `text`; returns the `tool_result`."""
        return self._session.durably(self._note_denial, by, text)

    async def adeny(self, *, by: str = "", text: str = _DENIED) -> Event:
        """As `deny`, without stopping the event loop."""
        return await self._session.adurably(self._note_denial, by, text)

    def _note_suspension(self) -> Event:
        with self._session.order:
            self._check_unanswered()
            if not self._handed_out:
                raise self._refusal("it was never dispatched", "`call.dispatch()` first, or `call.ask(question)`")
            return self._session.note("tool_suspended", self._named(), run=self.run_name)

    def _note_grant(self, by: str) -> Event:
        with self._session.order:
            return self._session.note("approval_response", self._decided("granted", by), run=self.run_name)

    def _note_denial(self, by: str, text: str) -> Event:
        with self._session.order:
            decided = self._decided("denied", by)
            answer = self._answer(text, is_error=True, metadata={"rejected": True})
            self._session.check("tool_result", answer, run=self.run_name)
            self._session.note("approval_response", decided, run=self.run_name)
            return self._session.note("tool_result", answer, run=self.run_name)

    def _decided(self, decision: str, by: str) -> dict[str, Any]:
        self._check_unanswered()
        if self._question != "pending":
            asked = {None: "was never asked", "void": "was voided"}.get(self._question, "was answered")
            raise self._refusal(f"its question {asked}", "a decision needs a question that is open")
        self._check_sure()
        return self._named() | {"decision": decision, "by": by}
