"""A handle of one call: what it is, what the log says of it now, and what is refused.

What happened to the call is read from the session's scan, so a handle is never out of step with the log.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnwal.core import calls, keys, values
from turnwal.core.errors import Refused
from turnwal.core.line import Event
from turnwal.session.lookup import Found
from turnwal.session.tools import Parts, parts_of

if TYPE_CHECKING:
    from turnwal.session.session import Session


class Handle:
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
        return self._result is not None or self._session.scan.run(self.run_name).known.get(self._key, 0) != 0

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

    @property
    def repeatable(self) -> bool:
        """Whether the call has a result that only stands in for a lost one."""
        if self._result is None:
            return False
        metadata = values.object_of(self._result.data, "metadata") or {}
        return metadata.get("synthetic") is True or "risk" in metadata

    def __repr__(self) -> str:
        """Key and tool."""
        return f"<Call {self.call_key} {self.name}>"

    # Inside

    @property
    def _state(self) -> calls.Call | None:
        return self._session.scan.run(self.run_name).find(self._key)

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

    def _refusal(self, why: str, hint: str) -> Refused:
        return Refused(why, action="write", subject=f"call {self.call_key}", hint=hint)
