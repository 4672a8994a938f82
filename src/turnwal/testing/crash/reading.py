"""What is left of a run: the sessions of its store, the marks of its lives, and what the world shows."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from turnwal.core import keys
from turnwal.core.chain import digest
from turnwal.core.line import Event
from turnwal.session.inspection import Inspection
from turnwal.store.protocol import Record, Store
from turnwal.testing.crash.marks import Mark, read_marks


class Effect(NamedTuple):
    """One thing that the world shows."""

    what: str
    """Equal texts are the same effect, done again; leave out what differs from run to run."""
    key: str | None = None
    """The idempotency key of the call that did it, where the tool passes that on."""


Shown = Iterable[str | Effect]
"""What an application says that its world shows: effects, or their texts alone."""


def effects_in(shown: Shown) -> list[Effect]:
    """The effects, in order."""
    return [each if isinstance(each, Effect) else Effect(each) for each in shown]


class Request(NamedTuple):
    """One request that was sent to a model."""

    messages: Any
    system: Any = None
    model: str | None = None


def request_of(sent: Any) -> Request:
    """The request in what an application kept of it: its list of messages, or all of its arguments."""
    if not isinstance(sent, Mapping):
        return Request(sent)
    messages = next((sent[name] for name in ("messages", "input", "contents") if name in sent), None)
    system = next((sent[name] for name in ("system", "instructions") if name in sent), None)
    config = sent.get("config")
    if system is None and isinstance(config, Mapping):
        system = config.get("system_instruction")
    return Request(messages, system, next((sent[name] for name in ("model", "modelId") if name in sent), None))


@dataclass
class Left:
    """What is left of one session."""

    id: str
    inspection: Inspection | None
    """None where it never began."""
    lines: list[bytes]
    events: list[Event]
    dispatched: set[str] = field(default_factory=set)
    """The idempotency keys of its dispatches."""
    attempted: set[str] = field(default_factory=set)
    """The calls that were dispatched again."""
    settled: set[str] = field(default_factory=set)
    """The calls of which somebody found that they did not happen."""

    def __post_init__(self) -> None:
        """Read what the events say of calls."""
        for event in self.events:
            call = event.data.get("call", "")
            if event.type == "tool_call":
                self.dispatched.add(event.data.get("key", ""))
                if event.data.get("attempt", 1) > 1:
                    self.attempted.add(call)
            elif event.type == "tool_outcome" and event.data.get("outcome") == "did_not_happen":
                self.settled.add(call)

    def runs(self) -> set[str]:
        """The runs that have something to show."""
        return {event.run for event in self.events if event.type == "assistant_message"}

    def idempotency_key(self, call: str) -> str | None:
        """The key that the call has, whether or not it was dispatched; None where its line is not there."""
        packed = keys.parse(call)
        if packed is None:
            return None
        seq, index = keys.seq_of(packed), keys.index_of(packed)
        at = next((at for at, event in enumerate(self.events) if event.seq == seq), None)
        if at is None:
            return None
        return keys.idempotency_key(digest(self.lines[at - (index == keys.DISPATCH_INDEX)]), index)

    def asked(self, call: str) -> str:
        """What the call is, for a person."""
        return f"call {call} of {self.id!r}"


@dataclass
class Traces:
    """All that is left."""

    sessions: dict[str, Left]
    marks: list[Mark]
    effects: list[Effect]

    def of_bodies(self, *what: str) -> list[Mark]:
        """The marks of bodies, of some kinds."""
        return [mark for mark in self.marks if mark.what in what]

    def ran(self, session: str, call: str) -> int:
        """How many bodies of a call were entered."""
        return sum((mark.session, mark.call) == (session, call) for mark in self.of_bodies("enter"))

    def clean(self) -> "Clean":
        """What later runs are held against, when nobody was killed here."""
        done = Counter(invoked(mark) for mark in self.of_bodies("leave") if is_irreversible(mark))
        return Clean(dict(done), dict(Counter(effect.what for effect in self.effects)))


class Clean(msgspec.Struct):
    """What a run did in all."""

    done: dict[str, int]
    """How often each irreversible tool was done with each arguments, whatever calls asked for it."""
    shown: dict[str, int]
    """How often the world shows each effect."""


def invoked(mark: Mark) -> str:
    """A tool with its arguments."""
    return f"{mark.tool}({mark.arguments})"


def is_irreversible(mark: Mark) -> bool:
    """Whether nothing is declared that would let the tool be done again with the same arguments."""
    return not mark.read_only and not mark.idempotent


def traces_of(store: Store, marks: Path, effects: Callable[[], Shown]) -> Traces:
    """Read what is left. Nothing is written."""
    sessions = {}
    for id in store.sessions():
        records = [item for item in store.read(id) if isinstance(item, Record)]
        inspection = Inspection(store, id) if records else None
        lines, events = [record.line for record in records], [record.event for record in records]
        sessions[id] = Left(id, inspection, lines, events)
    return Traces(sessions, read_marks(marks), effects_in(effects()))
