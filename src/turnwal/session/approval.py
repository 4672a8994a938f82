"""Asking a person about a call, and answers that come later."""

from turnwal.core.line import Event
from turnwal.session.handle import Handle


class Approval(Handle):
    """The verbs of a call that waits."""

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
