"""A handle of one call: what it is, what the log says of it now, and what is refused.

What happened to the call comes from the log: from the session's scan while it is open, and from every event that a scan
says is about it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from turnwal.core import calls, keys, values
from turnwal.core.errors import Refused
from turnwal.core.line import Event
from turnwal.session.lookup import Found
from turnwal.session.tools import Parts, Ready, parts_of

if TYPE_CHECKING:
    from turnwal.session.session import Session


class Handle:
    """One tool call of a session that is open for writing."""

    def __init__(self, session: "Session", found: Found) -> None:
        """A handle; a session has one for each call, made by `step.assistant` and `session.call`."""
        self._session = session
        self._found = found
        self._child: dict[str, Any] | None = None
        self._running: set[object] = set()
        """One for each body of the call that runs, whatever the log says of it meanwhile."""

    @property
    def session_id(self) -> str:
        """The id of the session that the call belongs to."""
        return self._session.id

    @property
    def run_name(self) -> str:
        """The run the call belongs to."""
        return self._found.run

    @property
    def id(self) -> str:
        """The provider's id; may repeat or be empty."""
        return self._found.id

    @property
    def name(self) -> str | None:
        """The tool that the call names."""
        return self._found.name

    @property
    def arguments(self) -> str | None:
        """The arguments as the model wrote them, blank ones as `{}`."""
        return self._found.arguments

    @property
    def free_text(self) -> bool:
        """Whether the arguments are not meant to be JSON."""
        return self._found.free_text

    @property
    def redacted(self) -> bool:
        """Whether the arguments are not those that the model wrote; no tool is given them."""
        return self._found.redacted

    @property
    def key(self) -> str:
        """The idempotency key: equal where the history up to the request is equal; pass it to whoever does the work."""
        return self._found.idempotency_key

    def asked_anew(self, found: Found) -> None:
        """Take in that another version of the message asks for the call, with what it says now."""
        if not self._handed_out:
            mine = self._found
            mine.id, mine.name, mine.arguments = found.id, found.name, found.arguments
            mine.free_text, mine.redacted = found.free_text, found.redacted

    @contextmanager
    def running(self) -> Iterator[None]:
        """A block in which a body of the call runs; whoever runs one holds the handle, so there is no second handle."""
        body = object()
        try:
            self._running.add(body)
            yield
        finally:
            self._running.discard(body)

    def body(self, ready: Ready) -> Callable[..., Any]:
        """What runs as a body of the call: the tool, or what a test has put around it."""
        watch = self._session.watch
        return ready.function if watch is None else watch(self, ready)

    def take(self, event: Event) -> None:
        """Take in an event about the call; the session hands in each as it gets its place."""
        self._found.take(event)

    @property
    def call_key(self) -> str:
        """What names the call in the log: `"12.1"`."""
        return keys.text(self._found.key)

    @property
    def args(self) -> dict[str, Any] | None:
        """The arguments as an object, or None when they do not parse to one (F30)."""
        return values.parse_arguments(self.arguments)

    @property
    def answered(self) -> bool:
        """Whether the call has a result."""
        with self._session.order:
            known = self._session.scan.run(self.run_name).known
            return self._found.result is not None or known.get(self._found.key, 0) != 0

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
        return self._found.lost

    @property
    def doubtful(self) -> bool:
        """Whether a dispatch or an outcome of the call may be among lost bytes, so that nothing runs it.

        Bytes that a `damage` event covers are in doubt until somebody settles the call; boundaries carry that on. Of
        bytes that went bad later, every turn behind them says which questions are open and which grants were not used,
        so these prove that the call was not dispatched there.
        """
        state = self._state
        if self._found.hidden or (state is not None and state.doubt):
            return True
        proven = state is not None and (state.granted or state.question == "pending")
        return self._found.doubtful and not proven

    def __repr__(self) -> str:
        """Key and tool."""
        return f"<Call {self.call_key} {self.name}>"

    # Inside

    @property
    def _state(self) -> calls.Call | None:
        with self._session.order:
            return self._session.scan.run(self.run_name).find(self._found.key)

    @property
    def _handed_out(self) -> bool:
        """Whether a dispatch of the call is recorded, be it in a turn that has ended."""
        return self._found.attempts > 0 or self.dispatched

    @property
    def _question(self) -> values.Question | None:
        """What became of its approval: what the scan says while the call is open, else what is known of it."""
        state = self._state
        return self._found.question if state is None or state.question is None else state.question

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

    def _check_known(self) -> None:
        """Refuse to run what may have run, and what is not known well enough to be run."""
        if not self.key:
            raise self._refusal("the line that asks for it is lost", "deny or reject it, and have the model ask again")
        self._check_sure()

    def _check_sure(self) -> None:
        if self.doubtful:
            hint = (
                "look where it acts, then `settle` it: as `did_not_happen` it may be decided and run, as `happened` it "
                "is closed"
            )
            raise self._refusal("what is lost of the log may be a dispatch of it", hint)

    def _check_arguments(self) -> None:
        if self.redacted:
            hint = "what the model wrote is known only to the process that recorded it"
            raise self._refusal("its arguments are redacted in the log, so no tool may be given them", hint)

    def _check_dispatchable(self) -> None:
        self._check_unanswered()
        if not self._session.has_open_turn(self.run_name):
            raise self._refusal("no turn is open in its run", f'open one: `session.turn(resumes="{self.call_key}")`')
        question = self._question
        if question in ("pending", "denied", "void"):
            raise self._refusal(f"its approval is {question}", "only a granted call may run")
        if self._handed_out:
            raise self._refusal(
                "it was dispatched already", "a call runs once; `retry` repeats one whose answer was lost"
            )
        self._check_known()

    def _answer(
        self,
        parts: Parts | str,
        *,
        is_error: bool,
        duration_ms: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The data of a result."""
        data = self._named() | {"parts": parts_of(parts), "is_error": is_error}
        data |= {} if duration_ms is None else {"duration_ms": duration_ms}
        return data | ({} if metadata is None else {"metadata": dict(metadata)})

    def _refusal(self, why: str, hint: str) -> Refused:
        return Refused(why, action="write", subject=f"call {self.call_key}", hint=hint)
