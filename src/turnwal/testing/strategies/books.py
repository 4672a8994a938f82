"""A live session in miniature: the verbs by which it writes, and the books that its boundaries record.

The `open` and `waiting` of boundaries are counted here, not by the scan, so that the two can be compared.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st

from turnwal.testing.strategies.rows import Row


@dataclass(slots=True, eq=False)
class Call:
    """A call, as the session knows it."""

    key: str
    id: str
    name: str
    arguments: str
    run: str
    state: str = "asked"
    """asked, dispatched, waiting, granted, answered"""
    attempt: int = 1
    attempt_open: bool = False
    question: int | None = None
    """Seq of its open question."""
    lost: bool = False
    """Its result is synthetic, so it may be attempted again."""
    doubt: bool = False
    """Its dispatch may be among lost bytes, so nothing is done about it until it is settled."""


@dataclass(slots=True)
class Turn:
    """An open turn."""

    seq: int
    number: int
    run: str
    serves: str | None = None
    step: int | None = None
    steps: int = 0
    calls: list[Call] = field(default_factory=list)
    weak: bool = False


STACK_MAX: Final = 4
"""Open turns of all runs at once."""


def _hints(calls: list[Call]) -> list[dict[str, Any]]:
    """How a boundary names calls."""
    calls.sort(key=lambda call: tuple(map(int, call.key.split("."))))
    return [
        {"call": call.key, "id": call.id, "name": call.name}
        | ({} if call.run == "main" else {"run": call.run})
        | ({} if call.question is None else {"question": call.question})
        | ({"doubt": True} if call.doubt else {})
        for call in calls
    ]


class Books:
    """A live session in miniature. It keeps the books that boundaries record, and writes rows as it goes."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], *, dispatch: str | None) -> None:
        self.draw = draw
        self.dispatch = dispatch
        self.rows: list[Row] = []
        self.stack: list[Turn] = []
        """Open turns of all runs, the one that is being worked on last."""
        self.calls: list[Call] = []
        self.numbers: dict[str, int] = {}
        self.clock = 1_764_500_000_000
        self.plot: str | None = draw(st.sampled_from([None, "suspend", "lose", "delegate", "power"]))
        """What is sure to happen once, so that a log of it is not left to chance."""

    @property
    def turn(self) -> Turn:
        """The open turn that is being worked on."""
        return self.stack[-1]

    def happens(self, plot: str, one_in: int) -> bool:
        """Whether something happens here: the plot says so, or chance does."""
        if self.plot == plot:
            self.plot = None
            return True
        return bool(self.draw(st.integers(1, one_in)) == 1)

    def write(self, type: str, data: dict[str, Any], run: str = "main") -> int:
        """Append an event; returns its seq."""
        self.clock += self.draw(st.sampled_from([0, 1, 5, -3]))
        self.rows.append(Row(type, data, run, self.clock))
        return len(self.rows) - 1

    def boundary(self, *, opens: bool = False) -> dict[str, Any]:
        """What a boundary says is open after it."""
        held = [call for turn in self.stack for call in turn.calls]
        waiting = [call for call in self.calls if call.state == "waiting"]
        granted = [call for call in self.calls if call.state == "granted" and call not in held]
        still_open = [turn.seq for turn in self.stack] + ([len(self.rows)] if opens else [])
        hints = {"open": sorted(still_open), "waiting": _hints(waiting)}
        return hints | ({"granted": _hints(granted)} if granted else {})

    # Verbs

    def open_turn(self, run: str = "main", **more: Any) -> None:
        """Open a turn."""
        self.numbers[run] = number = self.numbers.get(run, 0) + 1
        data: dict[str, Any] = {"format": 1, "turn": number} | more
        if self.dispatch is not None:
            data["dispatch"] = self.dispatch
        seq = self.write("turn_start", data | self.boundary(opens=True), run)
        self.stack.append(Turn(seq, number, run, serves=more.get("serves")))

    def close_turn(self, reason: str) -> None:
        """End the innermost turn."""
        turn = self.stack.pop()
        data = {"turn": turn.number, "steps": turn.steps, "reason": reason}
        self.write("turn_end", data | self.boundary(), turn.run)

    def open_step(self) -> None:
        """Open a step of the innermost turn."""
        turn = self.turn
        turn.steps += 1
        turn.step = turn.steps
        turn.calls = []
        data: dict[str, Any] = {"turn": turn.number, "step": turn.step}
        if self.draw(st.integers(0, 9)) == 0:
            data["dispatch"] = "none"
        self.write("step_start", data, turn.run)

    def close_step(self) -> None:
        """End the open step."""
        turn = self.turn
        self.write("step_end", {"turn": turn.number, "step": turn.step, "outcome": "ok"}, turn.run)
        turn.step = None

    def id(self) -> str:
        """The id that the provider gives a call."""
        return str(self.draw(st.sampled_from(["a", "b", "call_0", "", "k"])))

    def name(self) -> str:
        """The name of the tool that a call is for."""
        return str(self.draw(st.sampled_from(["pay", "look"])))

    def arguments(self, number: int) -> str:
        """The arguments of a call, as the model wrote them."""
        return str(self.draw(st.sampled_from(["{}", f'{{"n":{len(self.rows)}{number}}}', '{"cut":'])))

    def given(self) -> list[dict[str, Any]]:
        """What a tool returns."""
        return [{"type": "text", "content": self.draw(st.sampled_from(["done", "\ud83d", "no\u2028"]))}]

    def reply(self) -> dict[str, Any]:
        """The data of a whole reply."""
        count = self.draw(st.sampled_from([0, 1, 1, 2, 2, 3]))
        ids = [self.id() for _ in range(count)]
        parts: list[dict[str, Any]] = [{"type": "text", "content": "ok"}] if self.draw(st.booleans()) else []
        for index, id in enumerate(ids):
            part = {"type": "tool_call", "id": id, "name": self.name()}
            part["arguments"] = self.arguments(index)
            parts.append(part)
        return {"parts": parts}

    def ask(self) -> None:
        """One reply; with its text as it streamed in, and with a first, incomplete version of it, now and then."""
        turn = self.turn
        if self.draw(st.integers(0, 5)) == 0:
            for text in self.draw(st.sampled_from([["o"], ["o", "k\ud83d"], [""]])):
                self.write("assistant_delta", {"step": turn.step, "index": 0, "text": text}, turn.run)
        reply = self.reply()
        parts = reply["parts"]
        wanted = [(index, part) for index, part in enumerate(parts) if part["type"] == "tool_call"]
        first = None
        if self.draw(st.integers(0, 5)) == 0:
            shown = parts[: self.draw(st.integers(0, len(parts)))]
            first = self.write("assistant_message", {"parts": shown, "complete": False}, turn.run)
            early = [entry for entry in wanted if entry[0] < len(shown)]
            for index, part in early:
                call = self.called(first, index, part)
                if self.draw(st.integers(0, 3)) == 0:
                    self.run_call(call)
        data: dict[str, Any] = reply | ({} if first is None else {"completes": first})
        seq = self.write("assistant_message", data, turn.run)
        known = {call.key for call in turn.calls}
        for index, part in wanted:
            if first is None or f"{first}.{index}" not in known:
                self.called(seq, index, part)

    def called(self, seq: int, index: int, part: dict[str, Any]) -> Call:
        """Keep the books of a call that a message asks for."""
        call = Call(f"{seq}.{index}", part["id"], part["name"], part["arguments"], self.turn.run)
        self.turn.calls.append(call)
        self.calls.append(call)
        return call

    def dispatch_call(self, call: Call) -> None:
        """Hand a call over."""
        data: dict[str, Any] = {"call": call.key, "id": call.id, "name": call.name, "arguments": call.arguments}
        data |= {"key": f"{len(self.rows):032x}", "keyed": self.draw(st.booleans())}
        hints = self.draw(st.sampled_from([None, {"read_only": True}, {"idempotent": True}, {"read_only": False}]))
        if hints is not None:
            data |= {"hints": hints, "hints_from": self.draw(st.sampled_from(["declared", "server"]))}
        if self.draw(st.integers(0, 7)) == 0:
            data["child"] = {"session": f"child-{len(self.rows)}"}
        if call.attempt > 1:
            data["attempt"] = call.attempt
        self.write("tool_call", data, self.turn.run)
        call.state = "dispatched"

    def answer(self, call: Call, run: str | None = None) -> None:
        """Record the result of a call."""
        data: dict[str, Any] = {"call": call.key, "id": call.id, "name": call.name}
        data["parts"] = self.given()
        call.lost = self.happens("lose", 6)
        if call.lost:
            data |= {"is_error": True, "metadata": {"synthetic": True, "risk": "tool_outcome_unknown"}}
        self.write("tool_result", data, run or self.turn.run)
        call.state = "answered"

    def run_call(self, call: Call) -> None:
        """Hand a call over and record its result, maybe with a sub-agent at work between them."""
        self.dispatch_call(call)
        if len(self.stack) < STACK_MAX and self.happens("delegate", 6):
            self.sub_run(call)
        self.answer(call)

    def sub_run(self, call: Call) -> None:
        """What a sub-agent does that serves a call."""
        self.open_turn(call.key, serves=call.key, label="helper")
        self.work(2)

    def work(self, steps: int) -> None:
        """What happens in a turn, up to its end."""
        raise NotImplementedError

    def suspend(self, call: Call) -> None:
        """Ask a person, and let the call wait."""
        about = {"call": call.key, "id": call.id}
        call.question = self.write("approval_request", about | {"question": "Really?"}, call.run)
        self.write("tool_suspended", about, call.run)
        call.state = "waiting"

    def ask_first(self, call: Call) -> None:
        """A person decides while the turn waits for it."""
        about = {"call": call.key, "id": call.id}
        self.write("approval_request", about | {"question": "Really?"}, call.run)
        granted = self.draw(st.booleans())
        self.write("approval_response", about | {"decision": "granted" if granted else "denied"}, call.run)
        if granted:
            self.run_call(call)
        else:
            self.answer(call)

    def decide(self, call: Call) -> None:
        """A person decides about a call that waits."""
        granted = self.draw(st.booleans())
        decision = "granted" if granted else "denied"
        self.write("approval_response", {"call": call.key, "id": call.id, "decision": decision, "by": "ada"}, call.run)
        call.question = None
        if granted:
            call.state = "granted"
        else:
            self.answer(call, call.run)

    def lose_power(self) -> None:
        """The end of the log is no record any more, and the next owner covers it."""
        kind = self.draw(st.sampled_from(["torn", "nul", "corrupt"]))
        self.write("damage", {"after": len(self.rows) - 1, "length": 3, "kind": kind})
        for call in self.calls:
            call.doubt = call.doubt or (kind != "torn" and call.state in ("waiting", "granted"))
        self.write("session_resume", {"format": 1, "writer": {"name": "turnwal"}, "owner": {}} | self.boundary())

    def settle(self, call: Call) -> None:
        """A person says that a call whose dispatch may be lost did not happen."""
        data = {"call": call.key, "id": call.id, "outcome": "did_not_happen", "by": "ada"}
        self.write("tool_outcome", data, call.run)
        call.doubt = False

    def retry(self, call: Call) -> None:
        """The next attempt of a call whose result is synthetic."""
        call.attempt += 1
        self.dispatch_call(call)
        if self.draw(st.integers(0, 3)) > 0:
            data = {"call": call.key, "id": call.id, "attempt": call.attempt, "outcome": "happened"}
            self.write("tool_outcome", data, self.turn.run)
        call.state = "answered"
