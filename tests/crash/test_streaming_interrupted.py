"""An interrupt at any line of asking, streaming and rendering: one message or none, and a session that goes on."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import turnwal
from tests.session.replies import REPLIES, TEXT
from turnwal.core.line import Event
from turnwal.session import exchange, streaming, transcripts
from turnwal.session.sessions import Sessions
from turnwal.session.verifying import verify
from turnwal.store.memory import MemoryStore
from turnwal.store.protocol import Record

_FILES = {exchange.__file__, streaming.__file__, transcripts.__file__}
_SAID = REPLIES["anthropic"]


class Interruption:
    """Raises `KeyboardInterrupt` at the line of a number, of those that are run in the modules looked at."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.where = ""

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        del arg
        if frame.f_code.co_filename not in _FILES:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                self.where = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self


def converse(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="pay 7") as turn, turn.step() as step:
        step.request("anthropic", model="claude-x", tools=[{"name": "pay"}])
        with step.stream(_SAID.chunks, deltas=True) as stream:
            for _ in stream:
                pass
        step.run(step.calls, {"pay": lambda order: order})
        session.render("anthropic", partial=True)


def stored(sessions: Sessions) -> list[Event]:
    return [item.event for item in sessions.store.read("s") if isinstance(item, Record)]


def test_an_interrupt_at_any_line_leaves_one_message_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "_DELTA_CHARS", 1)
    number, messages, before = 0, set(), sys.gettrace()
    while True:
        number += 1
        sessions = Sessions(MemoryStore())
        interruption = Interruption(number)
        sys.settrace(interruption)
        try:
            converse(sessions)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        if not interruption.where:
            break
        with sessions.session("s") as session:
            asking = [event for event in session if event.type == "assistant_message"]
            assert len(asking) <= 1, interruption.where
            texts = [part["content"] for event in asking for part in event.data["parts"] if part["type"] == "text"]
            assert TEXT.startswith("".join(texts)), interruption.where
            made = session.render("anthropic", partial=True)
            assert not made.messages or turnwal.check("anthropic", made.messages) == [], interruption.where
            assert made == turnwal.render(stored(sessions), "anthropic", partial=True), interruption.where
        assert not turnwal.plan(stored(sessions)), interruption.where
        assert verify(sessions.store, "s").sound, interruption.where
        messages.add((len(asking), asking[0].data.get("complete", True) if asking else None))
    assert number > 100
    assert messages == {(0, None), (1, False), (1, True)}
