"""Logs as a well-behaved live session writes them, cut after any event."""

from typing import Final

from hypothesis import strategies as st

from turnwal.testing.strategies.books import Books, Call
from turnwal.testing.strategies.rows import Row


class Session(Books):
    """A live session in miniature, and what happens in it."""

    def step(self) -> None:
        """One step: a reply, and what becomes of its calls."""
        self.open_step()
        turn = self.turn
        self.ask()
        todo = [call for call in turn.calls if call.state == "asked"]
        if self.dispatch is None and self.draw(st.integers(0, 3)) == 0:
            todo = []  # such a writer is not held to closing what it leaves
        if self.plot != "suspend" and len(todo) > 1 and self.draw(st.booleans()):
            for call in todo:
                self.dispatch_call(call)
            for call in self.draw(st.permutations(todo)):
                self.answer(call)
        else:
            for call in todo:
                if self.happens("suspend", 8):
                    self.suspend(call)
                    continue
                match self.draw(st.integers(1, 7)):
                    case 1:
                        self.answer(call)  # rejected before its dispatch
                    case 2:
                        self.ask_first(call)
                    case _:
                        self.run_call(call)
        self.close_step()

    def work(self, steps: int) -> None:
        """A number of steps, and the end of the turn."""
        turn = self.turn
        for _ in range(self.draw(st.integers(min(steps, 1), steps))):
            self.step()
            if any(call.state == "waiting" for call in turn.calls):
                self.close_turn("suspended")
                return
        self.close_turn("complete")

    def resume(self, call: Call) -> None:
        """A turn that goes on with a call that waited."""
        self.open_turn(call.run, resumes=call.key)
        if call.state == "waiting" and self.draw(st.booleans()):
            self.decide(call)
        if call.state == "granted":
            self.turn.calls = [call]
            self.run_call(call)
        self.work(1)

    def between(self) -> None:
        """What happens between turns."""
        for call in self.calls:
            if call.doubt and call.state != "answered" and self.draw(st.integers(0, 2)) == 0:
                self.settle(call)
            if call.state == "waiting" and not call.doubt and self.draw(st.integers(0, 2)) == 0:
                self.decide(call)
        if self.happens("power", 16):
            self.lose_power()
        if self.draw(st.integers(0, 3)) == 0:
            self.write("x.note", {"about": "nothing"})
        if self.draw(st.integers(0, 4)) == 0:
            data = {"format": 1, "writer": {"name": "turnwal"}, "owner": {}}
            self.write("session_resume", data | self.boundary())
            self.write("user_message", {"parts": []})

    def tell(self, turns: int) -> None:
        """The whole session."""
        start = {"id": "s", "nonce": "0" * 32, "format": 1, "hash": "sha256"}
        self.write("session_start", start)
        for _ in range(self.draw(st.integers(1 if self.plot is None else 2, turns))):
            self.between()
            ready = [call for call in self.calls if call.state in ("waiting", "granted") and not call.doubt]
            lost = [call for call in self.calls if call.lost and call.run == "main"]
            if ready and self.draw(st.integers(0, 3)) > 0:
                self.resume(self.draw(st.sampled_from(ready)))
                continue
            self.open_turn()
            self.write("user_message", {"parts": [{"type": "text", "content": "go"}]})
            if lost and self.draw(st.integers(0, 3)) > 0:
                self.retry(self.draw(st.sampled_from(lost)))
            self.work(3)


_BUSY: Final = ("assistant_message", "tool_call", "approval_request", "approval_response", "tool_suspended")
"""Types after which something is usually open: a process dies there as often as anywhere else together."""


@st.composite
def session_rows(draw: st.DrawFn, turns: int = 4, dispatch: str | None = "durable") -> list[Row]:
    """What a live session wrote until its process died, after any event."""
    session = Session(draw, dispatch=dispatch)
    session.tell(turns)
    return draw(cut_anywhere(session.rows))


def cut_anywhere(rows: list[Row]) -> st.SearchStrategy[list[Row]]:
    """The rows up to any of them, as a process leaves them that dies."""
    busy = [at for at, row in enumerate(rows) if row.type in _BUSY]
    anywhere = st.integers(0, len(rows) - 1)
    cut = st.sampled_from(busy[len(busy) // 2 :]) | anywhere if busy else anywhere
    return cut.map(lambda last: rows[: last + 1])
