"""Hypothesis strategies for data, events and logs.

Promises:
- `json_values` and `json_objects` are what JSON can hold and writers get wrong: lone surrogates, the separators that
  split lines, integers of any size, minus zero, deep nesting.
- `foreign_rows` are events that `Log.append` accepts and that make as little sense as a foreign log may.
- `session_rows` are logs as a well-behaved live session writes them, cut after any event. The `open` and `waiting` of
  their boundaries are counted here, not by the scan, so that the two can be compared.

Needs `hypothesis`, which turnwal itself does not.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hypothesis import strategies as st

from turnwal.core.log import Log


@dataclass(frozen=True, slots=True)
class Row:
    """What one append is given."""

    type: str
    data: dict[str, Any]
    run: str = "main"
    time: int | None = None


def log_of(rows: list[Row]) -> Log:
    """A log of these rows."""
    log = Log()
    for row in rows:
        log.append(row.type, row.data, run=row.run, time=row.time)
    return log


# Data

_ODD_TEXTS = (
    "",
    "\ud83d",
    "\udc8f",
    "\ude00\ud83d",
    "\ud83d\ude00",
    "\u0085\u2028\u2029",
    "\x00\x1f\x7f",
    '"\\/',
    "é😀",
    "\ufeff",
    "1" * 30,
)
_ODD_NUMBERS = (0, -1, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**30, 10**3999, -0.0, 0.1, 1e16, 1e22, 5e-324, 1e308)


def texts() -> st.SearchStrategy[str]:
    """Any text, lone surrogates included."""
    return (
        st.sampled_from(_ODD_TEXTS)
        | st.text(st.characters(), max_size=12)
        | st.text("ab\ud83d\ude00\u2028", max_size=6)
    )


def json_values(max_leaves: int = 12) -> st.SearchStrategy[Any]:
    """Any value that JSON can hold."""
    leaves = (
        st.none()
        | st.booleans()
        | st.sampled_from(_ODD_NUMBERS)
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts()
    )
    wide = st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | _objects_of(inner), max_leaves=max_leaves)
    return wide | st.builds(_nested, leaves, st.integers(1, 190), st.booleans())


def json_objects(max_leaves: int = 12) -> st.SearchStrategy[dict[str, Any]]:
    """Any object that the data of an event can be."""
    return _objects_of(json_values(max_leaves))


def _objects_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(texts(), values, max_size=4).filter(_keys_stay_apart)


def _keys_stay_apart(value: dict[str, Any]) -> bool:
    read_back = {key.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass") for key in value}
    return len(read_back) == len(value)


def _nested(leaf: Any, depth: int, lists: bool) -> Any:  # noqa: FBT001 - drawn, never passed by hand
    for _ in range(depth):
        leaf = [leaf] if lists else {"k": leaf}
    return leaf


# Foreign logs

_IDS = st.sampled_from(["a", "a", "a", "b", "b", "", "\ud83d"])
_NAMES = st.sampled_from(["tool", "tool", "tool", "other"])
_ARGUMENTS = st.sampled_from(["{}", "{}", "{}", "{}", "", '{"x":1}', '{"x":', "\ud800", {"x": 1}])
_RUNS = st.sampled_from(["main"] * 7 + ["sub", "1.0"])
_NUMBERS = st.integers(0, 3)
_DISPATCH = st.sampled_from(["durable", "durable", "none", "sometimes"])
_HINTS = st.fixed_dictionaries(
    {},
    optional={
        "hints": st.dictionaries(
            st.sampled_from(["read_only", "idempotent", "destructive"]), st.booleans() | st.none()
        ),
        "hints_from": st.sampled_from(["declared", "confirmed", "annotated"])
        | st.just({"read_only": "declared"})
        | st.just([1]),
        "keyed": st.booleans(),
        "key": st.just("0" * 32),
        "child": st.just({"session": "child-7"}),
    },
)


def _maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object that may lack any of these fields; half of them lack none."""
    return st.fixed_dictionaries(fields) | st.fixed_dictionaries({}, optional=fields)


def _keys(last: int) -> st.SearchStrategy[str]:
    """Keys of lines before, at and after the next one, and texts that are no key."""
    named = st.builds("{}.{}".format, st.integers(0, last + 3), st.sampled_from(["0", "0", "1", "2", "d"]))
    return named | st.sampled_from(["", "x", "1", "01.0", "-1.0", "1.-1", "1.0 ", "9" * 30 + ".0", "1." + "9" * 9])


def _call_parts() -> st.SearchStrategy[dict[str, Any]]:
    fields = {"id": _IDS, "name": _NAMES, "arguments": _ARGUMENTS, "format": st.sampled_from(["text", "json"])}
    return st.builds(lambda more: {"type": "tool_call", **more}, _maybe(**fields))


def _other_parts() -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(
        [
            {"type": "text", "content": "ab\ud83d"},
            {"type": "server_tool_call", "id": "a", "name": "search"},
            {"type": "reasoning", "content": "\u2028"},
            {"type": "of_tomorrow", "v": [1, {"x": 10**3000}]},
        ]
    )


@cache
def foreign_row(last: int) -> st.SearchStrategy[Row]:
    """One event of a foreign log whose last seq is `last`."""
    seqs = st.integers(0, last + 2)
    waiting = st.lists(
        _maybe(call=_keys(last) | st.none(), id=_IDS | st.integers(), name=_NAMES, run=_RUNS), max_size=2
    )
    hint = {"open": st.lists(seqs, max_size=2), "waiting": waiting}
    call = {"call": _keys(last), "id": _IDS, "name": _NAMES}
    bare = {"id": _IDS, "name": _NAMES}
    parts = st.lists(_call_parts() | _call_parts() | _other_parts(), max_size=3)
    said = st.lists(_other_parts(), max_size=2)
    synthetic = st.sampled_from([{}, {"synthetic": True}, {"synthetic": True, "risk": "tool_outcome_unknown"}])
    dispatched = {"arguments": _ARGUMENTS, "attempt": st.sampled_from([1, 1, 1, 0, 2, 3])}
    decisions = st.sampled_from(["granted", "denied", "void", "maybe"])
    kinds = st.sampled_from(["torn", "nul", "corrupt", "lost", "of_tomorrow"])

    def both(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
        return _maybe(**bare, **more) | _maybe(**call, **more)

    data: dict[str, st.SearchStrategy[dict[str, Any]]] = {
        "turn_start": _maybe(turn=_NUMBERS, dispatch=_DISPATCH, **hint),
        "turn_end": _maybe(turn=_NUMBERS, steps=_NUMBERS, reason=st.just("complete"), **hint),
        "step_start": _maybe(turn=_NUMBERS, step=_NUMBERS, dispatch=_DISPATCH),
        "step_end": _maybe(step=_NUMBERS, outcome=st.sampled_from(["ok", "interrupted"])),
        "assistant_message": _maybe(parts=parts, complete=st.booleans(), completes=seqs),
        "assistant_delta": _maybe(step=_NUMBERS, index=_NUMBERS, text=texts()),
        "user_message": _maybe(parts=said),
        "tool_call": st.builds(
            lambda one, two: one | two,
            both(**dispatched),
            _HINTS,
        ),
        "tool_result": both(parts=said, is_error=st.booleans(), metadata=synthetic),
        "tool_outcome": both(attempt=_NUMBERS, outcome=st.sampled_from(["happened", "unknown"])),
        "tool_suspended": both(),
        "approval_request": both(question=st.just("Really?")),
        "approval_response": both(decision=decisions),
        "damage": _maybe(after=st.integers(-1, last + 2), length=seqs, kind=kinds),
        "session_resume": _maybe(format=st.sampled_from([0, 1]), **hint),
        "session_copied": st.just({}),
        "x.note": json_objects(3),
    }
    often = ["turn_start", "step_start", *["assistant_message"] * 5, *["tool_call"] * 5, *["tool_result"] * 3]
    often += ["approval_request", "approval_response", "tool_suspended"]
    types = st.sampled_from([*data, *often])
    return types.flatmap(
        lambda drawn: st.builds(Row, st.just(drawn), data[drawn], _RUNS, st.none() | st.integers(-10, 10))
    )


_ASKING = {"parts": [{"type": "tool_call", "id": "a", "name": "tool", "arguments": "{}"}] * 2}
_BEGINNINGS: tuple[tuple[Row, ...], ...] = (
    (),
    (Row("turn_start", {}),),
    (Row("turn_start", {"turn": 1, "dispatch": "durable"}), Row("assistant_message", _ASKING)),
    (Row("turn_start", {"turn": 1}), Row("step_start", {}), Row("assistant_message", _ASKING)),
    (Row("turn_start", {"dispatch": "durable"}), Row("step_start", {}), Row("assistant_message", _ASKING)),
)


@st.composite
def foreign_rows(draw: st.DrawFn, max_size: int = 16) -> list[Row]:
    """The events of a foreign log."""
    size = draw(st.integers(0, max_size))
    rows = list(draw(st.sampled_from(_BEGINNINGS)))
    return rows + [draw(foreign_row(seq - 1)) for seq in range(len(rows), size)]


# Logs that a session wrote


@dataclass(slots=True, eq=False)
class _Call:
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
class _Turn:
    seq: int
    number: int
    run: str
    serves: str | None = None
    step: int | None = None
    steps: int = 0
    calls: list[_Call] = field(default_factory=list)
    weak: bool = False


_STACK_MAX = 4
"""Open turns of all runs at once."""


def _hints(calls: list[_Call]) -> list[dict[str, Any]]:
    """How a boundary names calls."""
    calls.sort(key=lambda call: tuple(map(int, call.key.split("."))))
    return [
        {"call": call.key, "id": call.id, "name": call.name}
        | ({} if call.run == "main" else {"run": call.run})
        | ({} if call.question is None else {"question": call.question})
        | ({"doubt": True} if call.doubt else {})
        for call in calls
    ]


class Session:
    """A live session in miniature. It keeps the books that boundaries record, and writes rows as it goes."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], *, dispatch: str | None) -> None:
        self.draw = draw
        self.dispatch = dispatch
        self.rows: list[Row] = []
        self.stack: list[_Turn] = []
        """Open turns of all runs, the one that is being worked on last."""
        self.calls: list[_Call] = []
        self.numbers: dict[str, int] = {}
        self.clock = 1_764_500_000_000
        self.plot: str | None = draw(st.sampled_from([None, "suspend", "lose", "delegate", "power"]))
        """What is sure to happen once, so that a log of it is not left to chance."""

    @property
    def turn(self) -> _Turn:
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
        self.stack.append(_Turn(seq, number, run, serves=more.get("serves")))

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

    def called(self, seq: int, index: int, part: dict[str, Any]) -> _Call:
        """Keep the books of a call that a message asks for."""
        call = _Call(f"{seq}.{index}", part["id"], part["name"], part["arguments"], self.turn.run)
        self.turn.calls.append(call)
        self.calls.append(call)
        return call

    def dispatch_call(self, call: _Call) -> None:
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

    def answer(self, call: _Call, run: str | None = None) -> None:
        """Record the result of a call."""
        data: dict[str, Any] = {"call": call.key, "id": call.id, "name": call.name}
        data["parts"] = self.given()
        call.lost = self.happens("lose", 6)
        if call.lost:
            data |= {"is_error": True, "metadata": {"synthetic": True, "risk": "tool_outcome_unknown"}}
        self.write("tool_result", data, run or self.turn.run)
        call.state = "answered"

    def run_call(self, call: _Call) -> None:
        """Hand a call over and record its result, maybe with a sub-agent at work between them."""
        self.dispatch_call(call)
        if len(self.stack) < _STACK_MAX and self.happens("delegate", 6):
            self.sub_run(call)
        self.answer(call)

    def sub_run(self, call: _Call) -> None:
        """What a sub-agent does that serves a call."""
        self.open_turn(call.key, serves=call.key, label="helper")
        self.work(2)

    def suspend(self, call: _Call) -> None:
        """Ask a person, and let the call wait."""
        about = {"call": call.key, "id": call.id}
        call.question = self.write("approval_request", about | {"question": "Really?"}, call.run)
        self.write("tool_suspended", about, call.run)
        call.state = "waiting"

    def ask_first(self, call: _Call) -> None:
        """A person decides while the turn waits for it."""
        about = {"call": call.key, "id": call.id}
        self.write("approval_request", about | {"question": "Really?"}, call.run)
        granted = self.draw(st.booleans())
        self.write("approval_response", about | {"decision": "granted" if granted else "denied"}, call.run)
        if granted:
            self.run_call(call)
        else:
            self.answer(call)

    def decide(self, call: _Call) -> None:
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

    def settle(self, call: _Call) -> None:
        """A person says that a call whose dispatch may be lost did not happen."""
        data = {"call": call.key, "id": call.id, "outcome": "did_not_happen", "by": "ada"}
        self.write("tool_outcome", data, call.run)
        call.doubt = False

    def retry(self, call: _Call) -> None:
        """The next attempt of a call whose result is synthetic."""
        call.attempt += 1
        self.dispatch_call(call)
        if self.draw(st.integers(0, 3)) > 0:
            data = {"call": call.key, "id": call.id, "attempt": call.attempt, "outcome": "happened"}
            self.write("tool_outcome", data, self.turn.run)
        call.state = "answered"

    # Stories

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

    def resume(self, call: _Call) -> None:
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


_BUSY = ("assistant_message", "tool_call", "approval_request", "approval_response", "tool_suspended")
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
