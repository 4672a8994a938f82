"""A turn: from an input to the answer the agent stops at.

A live turn never ends owing: leaving the block runs the same closers as recovery, with the true reason.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, get_args

from turnwal.core import calls
from turnwal.core.errors import Refused, SessionClosed, TurnwalError
from turnwal.core.line import Event
from turnwal.core.recovery import close_turn
from turnwal.core.types import FORMAT
from turnwal.session.reason import TurnReason, reason_of
from turnwal.session.step import Step
from turnwal.session.tools import Parts, given_parts

if TYPE_CHECKING:
    from turnwal.session.call import Call
    from turnwal.session.session import Session

_OUTCOMES: Final[dict[str, str]] = {"error": "error", "cancelled": "cancelled"}


class Turn:
    """A block, sync and async; `begin` and `close` are its plain verbs."""

    def __init__(
        self,
        session: "Session",
        *,
        user: Parts | str | None,
        run: str,
        resumes: "Call | None" = None,
        serves: "Call | None" = None,
        label: str = "",
        dispatch: str = "durable",
    ) -> None:
        """Prepare a turn; nothing is written until it begins."""
        self._session = session
        self._user = user
        self._serves = serves
        self._label = label
        self._dispatch = dispatch
        self._seq = -1
        self._more = True
        self._closed = False
        self._step: Step | None = None
        """The newest one."""
        self.run_name = run
        self.number = 0
        """Counts the turns of the run, from 1."""
        self.resumed = resumes
        """The waiting call that this turn goes on with."""

    @classmethod
    def found(cls, session: "Session", run: str, state: calls.Turn) -> Self:
        """A handle of a turn that is open in the log."""
        turn = cls(session, user=None, run=run)
        turn._seq, turn.number = state.seq, state.number or 0
        return turn

    @property
    def open(self) -> bool:
        """Whether the model is to be asked again: false after a reply that asks for nothing and is no pause."""
        return self._more and not self._closed and self._seq >= 0

    @property
    def state(self) -> calls.Turn | None:
        """The turn as the log has it, or None when it is not open there."""
        turns = self._session.scan.run(self.run_name).turns
        return next((turn for turn in turns if turn.seq == self._seq), None)

    def begin(self) -> Self:
        """Append the turn's start, then the user's message. The first step makes them durable."""
        begun = self._seq >= 0
        try:
            self._note_begin()
        except BaseException as error:
            reason = reason_of(type(error))
            if not begun:
                self._session.close_orphan(lambda: self.note_close(reason), error)
            raise
        return self

    def _note_begin(self) -> None:
        with self._session.order:
            self._session.check_open()
            if self._seq >= 0:
                raise self._refusal("it has begun before", "a turn begins once; make another")
            if self._session.has_open_turn(self.run_name):
                raise self._refusal("another turn of its run is open", "close that one first")
            said = None if self._user is None else {"parts": given_parts(self._user)}
            if said is not None:  # what is refused leaves no turn behind
                self._session.check("user_message", said, run=self.run_name)
            scan = self._session.scan
            self.number = self._session.next_turn_number(self.run_name)
            data: dict[str, Any] = {"format": FORMAT, "turn": self.number, "dispatch": self._dispatch}
            if self.resumed is not None:
                data["resumes"] = self.resumed.call_key
            if self._serves is not None:
                data |= {"serves": self._serves.call_key, "label": self._label}
            self._session.make_resumed()
            data |= scan.boundary(sorted([*scan.open_seqs(), self._session.next_seq]))
            self._seq = self._session.next_seq
            self._session.note("turn_start", data, run=self.run_name)
            if said is not None:
                self._session.note("user_message", said, run=self.run_name)

    def step(self, *, dispatch: str | None = None) -> Step:
        """The next step. Entering it waits until the input is durable, before the model is asked (F14)."""
        check_dispatch(dispatch)
        if self._seq < 0 or self._closed:
            raise SessionClosed("the turn is not open", action="step", subject=self._name, hint="open another turn")
        self._step = Step(self._session, self, dispatch=dispatch)
        return self._step

    def append(self, type: str, data: Mapping[str, Any], *, ignorable: bool = False) -> Event:
        """Append an event of any type to the run of the turn."""
        return self._session.append(type, data, run=self.run_name, ignorable=ignorable)

    def stop(self) -> None:
        """Say that the model is not asked again in this turn."""
        self._more = False

    def close(self, reason: TurnReason = "complete") -> None:
        """End the turn durably, answering what is owed; idempotent. A turn with waiting calls ends `suspended`.

        Raises `Refused` for a reason that no live turn ends with.
        """
        self.note_close(reason)
        self._session.flush()

    async def aclose(self, reason: TurnReason = "complete") -> None:
        """As `close`, without stopping the event loop."""
        self.note_close(reason)
        await self._session.aflush()

    def note_close(self, reason: TurnReason) -> None:
        """Append what closes the turn, the turns of its sub-agents first; the caller waits for the barrier."""
        if reason not in get_args(TurnReason):
            raise self._refusal(
                f"{reason!r} is no reason", f"say one of: {', '.join(get_args(TurnReason))}", action="close"
            )
        self._session.leave_streams(self.run_name)
        with self._session.order:
            state = self.state
            if self._closed or state is None:
                self._closed = True
                return
            scan = self._session.scan
            for run, inner in scan.open_turns():
                if inner is not state and inner.seq > state.seq and self._session.serves(run.name, self.run_name):
                    self._session.leave_streams(run.name)
                    self._note_closers(run, inner, "cancelled")
            waits = any(call.waiting is not None for call in state.calls.values())
            self._note_closers(
                scan.run(self.run_name), state, "suspended" if reason == "complete" and waits else reason
            )
            self._closed = True

    def _note_closers(self, run: calls.Run, state: calls.Turn, reason: TurnReason) -> None:
        scan = self._session.scan
        after = scan.boundary([seq for seq in scan.open_seqs() if seq != state.seq])
        outcome = _OUTCOMES.get(reason, "ok")
        repairs = close_turn(scan, run, state, after=after, reason=reason, outcome=outcome)
        for repair in repairs:
            data = repair.data | ({"format": FORMAT} if repair.type == "turn_end" else {})
            self._session.note(repair.type, data, run=repair.run, redact=False)

    def __enter__(self) -> Self:
        """Begin the turn."""
        self._session.make_room()
        return self.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the turn with the true reason. A failing store does not hide the exception that ended the block."""
        try:
            self.close(reason_of(kind))
        except TurnwalError:
            if kind is None:
                raise
        except BaseException as interrupt:
            self._session.close_orphan(lambda: self.note_close("cancelled"), interrupt)
            raise

    async def __aenter__(self) -> Self:
        """Begin the turn."""
        self._session.make_room()
        return self.begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the turn with the true reason."""
        try:
            await self.aclose(reason_of(kind))
        except TurnwalError:
            if kind is None:
                raise
        except (KeyboardInterrupt, SystemExit) as interrupt:
            self._session.close_orphan(lambda: self.note_close("cancelled"), interrupt)
            raise

    @property
    def _name(self) -> str:
        return f"turn {self.number} of run {self.run_name!r}" if self.number else f"a turn of run {self.run_name!r}"

    def _refusal(self, why: str, hint: str, *, action: str = "begin") -> Refused:
        return Refused(why, action=action, subject=self._name, hint=hint)


def check_dispatch(dispatch: str | None) -> None:
    """Return when a turn or step may declare that; raise `Refused` otherwise."""
    if dispatch not in (None, "durable", "none"):
        raise Refused(f"dispatch={dispatch!r} is unknown", action="begin", hint='say "durable" or "none"')
