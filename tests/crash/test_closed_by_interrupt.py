"""A session that an interrupt closed says so, whatever is asked of it next."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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


class Scene(NamedTuple):
    """An open session with an unanswered call."""

    session: Session
    turn: Turn
    step: Step
    call: Call


VERBS: dict[str, Callable[[Scene], Any]] = {
    "turn": lambda at: at.session.open_turn("again"),
    "step": lambda at: at.turn.step().begin(),
    "assistant": lambda at: at.step.assistant(ASKING),
    "dispatch": lambda at: at.call.dispatch(),
    "result": lambda at: at.call.result("done"),
    "reject": lambda at: at.call.reject("no"),
    "ask": lambda at: at.call.ask("may I?"),
    "suspend": lambda at: at.call.suspend(),
    "run": lambda at: at.call.run({"act": lambda: None}),
    "step.run": lambda at: at.step.run([at.call], {"act": lambda: None}),
    "grant": lambda at: at.call.grant(),
    "deny": lambda at: at.call.deny(),
    "settle": lambda at: at.call.settle("happened"),
    "append": lambda at: at.session.append("step_end", {}, run="other"),
    "flush": lambda at: at.session.flush(),
    "close the turn": lambda at: at.turn.close(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_of_a_session_that_an_interrupt_closed_says_so(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
            VERBS[verb](Scene(session, turn, step, call))
