"""A session that an interrupt closed says so, whatever is asked of it next."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.crash.planted import WrappedClaim, WrappedStore
from turnwal.core.chain import Head
from turnwal.core.errors import ClosedAfterFailure
from turnwal.session.call import Call
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.session.step import Step
from turnwal.session.turn import Turn
from turnwal.store.fileclaim import FileClaim
from turnwal.store.protocol import Claim

ASKING = {"parts": [{"type": "tool_call", "id": "a", "name": "act", "arguments": {}}]}


class InterruptedClaim(WrappedClaim):
    """A claim whose write is interrupted when that is armed."""

    armed = False

    def append(self, lines: Sequence[bytes], after: Head) -> None:
        if InterruptedClaim.armed:
            raise KeyboardInterrupt
        super().append(lines, after)


class InterruptedStore(WrappedStore):
    def wrap(self, claim: FileClaim) -> Claim:
        return InterruptedClaim(claim)


VERBS: dict[str, Callable[[Session, Turn, Step, Call], Any]] = {
    "turn": lambda session, turn, step, call: session.open_turn("again"),
    "step": lambda session, turn, step, call: turn.step().begin(),
    "assistant": lambda session, turn, step, call: step.assistant(ASKING),
    "dispatch": lambda session, turn, step, call: call.dispatch(),
    "result": lambda session, turn, step, call: call.result("done"),
    "reject": lambda session, turn, step, call: call.reject("no"),
    "ask": lambda session, turn, step, call: call.ask("may I?"),
    "suspend": lambda session, turn, step, call: call.suspend(),
    "run": lambda session, turn, step, call: call.run({"act": lambda: None}),
    "step.run": lambda session, turn, step, call: step.run([call], {"act": lambda: None}),
    "grant": lambda session, turn, step, call: call.grant(),
    "deny": lambda session, turn, step, call: call.deny(),
    "settle": lambda session, turn, step, call: call.settle("happened"),
    "append": lambda session, turn, step, call: session.append("step_end", {}, run="other"),
    "flush": lambda session, turn, step, call: session.flush(),
    "close the turn": lambda session, turn, step, call: turn.close(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_of_a_session_that_an_interrupt_closed_says_so(
    verb: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sessions(InterruptedStore(tmp_path)).session("s") as session:
        turn = session.open_turn("go")
        step = turn.step().begin()
        (call,) = step.assistant(ASKING)
        monkeypatch.setattr(InterruptedClaim, "armed", True)
        with pytest.raises(KeyboardInterrupt):
            session.flush()
        monkeypatch.setattr(InterruptedClaim, "armed", False)

        with pytest.raises(ClosedAfterFailure):
            VERBS[verb](session, turn, step, call)
