"""What a scan holds of one call, step, turn and run while they are open.

Plain records: the scan changes them, the rules read them, nobody else holds them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from turnwal.core import keys
from turnwal.core.values import Dispatch, Question


class Step(Struct, eq=False):
    """One model reply and the calls it asked for."""

    seq: int
    number: int | None
    weak: bool
    """The step says that its dispatches are not recorded durably."""
    closed: bool = False
    calls: list["Call"] = []
    """Every call asked for or first dispatched here, answered ones too: an equal one in this step is the same (F07)."""
    answered: dict[str, tuple[int, int]] = {}
    """By provider id: the seq and the content of the last result."""

    def close(self) -> None:
        """End the step. A call that waits on may hold it for long, so it lets go of the others."""
        self.closed = True
        self.calls = []
        self.answered = {}


@dataclass(slots=True, eq=False)
class Attempt:
    """A second or later dispatch of a call, open until its outcome is recorded."""

    key: int
    id: str
    name: str | None
    number: int
    seq: int


@dataclass(slots=True, eq=False)
class Turn:
    """From an input to the answer the agent stops at; also, with seq -1, what stands outside any turn."""

    seq: int
    number: int | None
    dispatch: Dispatch | None
    """None when the writer declares nothing."""
    steps: list[Step] = field(default_factory=list)
    step_count: int = 0
    calls: dict[int, "Call"] = field(default_factory=dict)
    """The unanswered calls, by packed key."""
    by_id: dict[str, dict[int, "Call"]] = field(default_factory=dict)
    first_dispatch: int | None = None
    dispatched: set[int] = field(default_factory=set)
    """Hashes of id, name and arguments of everything dispatched here."""
    blind: int | None = None
    """Seq of a real result of a call that was never seen dispatched: this writer does not log dispatches."""
    unrequested: dict[int, int] = field(default_factory=dict)
    """Calls dispatched here that no message asked for yet, with the seq of the dispatch."""
    attempts: dict[tuple[int, int], Attempt] = field(default_factory=dict)
    messages: dict[int, dict[int, int]] = field(default_factory=dict)
    """Of messages whose parts have keys of an earlier message: part index to packed key."""

    @property
    def step(self) -> Step | None:
        """The innermost open step."""
        return self.steps[-1] if self.steps else None

    @property
    def weak(self) -> bool:
        """Whether the innermost open step takes back that dispatches are durable."""
        return bool(self.steps) and self.steps[-1].weak

    def add(self, call: "Call") -> None:
        """Take an unanswered call in."""
        self.calls[call.key] = call
        self.by_id.setdefault(call.id, {})[call.key] = call
        call.turn = self

    def remove(self, call: "Call") -> None:
        """Let a call go."""
        del self.calls[call.key]
        same = self.by_id[call.id]
        del same[call.key]
        if not same:
            del self.by_id[call.id]


class Call(Struct, eq=False):
    """A tool call that has no result yet."""

    key: int
    id: str
    name: str | None
    arguments: str | None
    free_text: bool = False
    """The arguments are not meant to be JSON."""
    redacted: bool = False
    """The arguments are not those that the model wrote, so they say nothing about them."""
    asked: bool = False
    """A complete message asks for it."""
    requested: bool = False
    """Some message asks for it, complete or not."""
    asked_at: int = -1
    """Seq of the first line that names it."""
    turn: Turn | None = None
    step: Step | None = None
    dispatched: int | None = None
    maybe: int | None = None
    """Seq of a dispatch that may have been this call's."""
    waiting: int | None = None
    question: Question | None = None
    question_seq: int | None = None
    granted: bool = False
    """A grant was recorded, whatever came after it."""
    doubt: bool = False
    """A dispatch of it, or its answer, may be among bytes that were lost while it waited or was granted."""
    answered: bool = False
    hints: Mapping[str, Any] | None = None
    hints_from: object = None
    keyed: bool = False
    """The tool passes our idempotency key on."""
    idempotency_key: str | None = None
    child: Mapping[str, Any] | None = None

    @property
    def stays(self) -> bool:
        """Whether the end of its turn leaves it answerable: it waits, or was granted and not yet dispatched."""
        return self.waiting is not None or (self.granted and self.dispatched is None)

    @property
    def owed(self) -> bool:
        """Whether a result is due, in a turn that is still open."""
        return (self.asked or self.dispatched is not None) and self.waiting is None

    def named(self) -> dict[str, Any]:
        """`call`, `id` and `name` as the data of an event about it has them."""
        data: dict[str, Any] = {"call": keys.text(self.key), "id": self.id}
        if self.name is not None:
            data["name"] = self.name
        return data

    def same(self, id: str, name: str | None, arguments: str | None) -> bool:
        """Whether id, name and arguments are equal; what a dispatch before its request left out counts as equal."""
        if self.id != id:
            return False
        if self.requested:
            return self.name == name and self.arguments == arguments
        return self.name in (None, name) and self.arguments in (None, arguments)

    def fingerprint(self) -> int:
        """A hash of id, name and arguments."""
        return hash((self.id, self.name, self.arguments))

    def fingerprints(self) -> tuple[int, ...]:
        """The fingerprints of every dispatch that may be equal: what one left out counts as equal."""
        names, arguments = {self.name, None}, {self.arguments, None}
        return tuple(hash((self.id, name, text)) for name in names for text in arguments)


@dataclass(slots=True, eq=False)
class Run:
    """One lane of a session."""

    name: str
    turns: list[Turn] = field(default_factory=list)
    """The open turns, outermost first."""
    outside: Turn = field(default_factory=lambda: Turn(-1, None, None))
    kept: dict[int, Call] = field(default_factory=dict)
    """Unanswered calls of no open turn that are still known: waiting, granted, or named by key only."""
    known: dict[int, int] = field(default_factory=dict)
    """Every key of the run: 0, or a hash of the content of its result."""
    shown: tuple[int, int] | None = None
    """Seqs of the first and the last delta of a message that has not come."""

    @property
    def turn(self) -> Turn:
        """The innermost open turn, or what stands outside any."""
        return self.turns[-1] if self.turns else self.outside

    def scope(self) -> Iterator[Turn]:
        """The turns whose calls a record without a key may mean, innermost first."""
        return reversed(self.turns) if self.turns else iter((self.outside,))

    def find(self, key: int) -> Call | None:
        """The unanswered call of a key."""
        for turn in self.turns:
            if key in turn.calls:
                return turn.calls[key]
        found = self.outside.calls.get(key)
        return self.kept.get(key) if found is None else found

    def drop(self, call: Call) -> None:
        """Let an unanswered call go, wherever it is held."""
        if call.turn is not None and call.key in call.turn.calls:
            call.turn.remove(call)
        self.kept.pop(call.key, None)

    def unanswered(self) -> Iterator[Call]:
        """Every unanswered call that is still known."""
        for turn in self.turns:
            yield from turn.calls.values()
        yield from self.outside.calls.values()
        yield from self.kept.values()
