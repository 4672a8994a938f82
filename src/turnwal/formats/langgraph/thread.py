"""Reading a thread: the newest checkpoint of each line of history, with what its tasks wrote after it.

Source: langchain-ai/langgraph at f09cfe8f (`pregel/_loop.py`, `pregel/_algo.py`, the SQLite and PostgreSQL savers), run
as langgraph 1.2.24.

Promises:
- A checkpoint holds the whole state, so only the last one of each line is read: of the thread, of each subgraph
  (namespace), and of each fork that was left.
- A call that finished beside one that was killed has its result in the writes of the last checkpoint alone, and counts
  as answered. One whose result was dropped since, because the thread went on with something else, *ran*.
- What is pickled, encrypted or kept as a difference is said to be unseen, never guessed.

Does not: see a call whose message was removed from the state.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, Final

from turnwal.formats.format import Depth
from turnwal.formats.items import About, Blind, Fault, Item, Other, Said, Sign
from turnwal.formats.langgraph.decoding import Built, Sealed
from turnwal.formats.langgraph.messages import Message, asked, message_of, said
from turnwal.formats.langgraph.rows import Checkpoint, Place, Rows, Write

VERSION_MAX: Final = 4
"""The newest form of a checkpoint that is known."""

ERROR: Final = "__error__"
INTERRUPT: Final = "__interrupt__"
RESUME: Final = "__resume__"
TASKS: Final = "__pregel_tasks"
NO_TASK: Final = "00000000-0000-0000-0000-000000000000"
"""The task of a write that is the caller's: the answer to whatever is interrupted."""

PUSH: Final = "~__pregel_push, "
"""How the path of a task begins that was sent, with its index behind it."""
SPECIAL: Final = frozenset({ERROR, INTERRUPT, RESUME, TASKS})
"""Channels that are not part of the state."""
ENTRYPOINT: Final = ("__previous__", "__end__", "__start__")
"""Where an entrypoint (the functional API) has what it saved, what it returned and what it was given."""
_DELTAS: Final = "counters_since_delta_snapshot"
_LISTED_MAX: Final = 80


class History:
    """Which checkpoints of a thread follow which."""

    def __init__(self, order: Iterable[tuple[str, str, str | None]]) -> None:
        """Take the checkpoints in the order of their ids."""
        self.parents: dict[Place, str | None] = {}
        self.children: dict[Place, list[str]] = {}
        self.newest: dict[str, str] = {}
        """The last checkpoint of each namespace: the one that the tool continues from."""
        for ns, id, parent in order:
            self.parents[ns, id] = parent
            self.newest[ns] = id
            if parent is not None:
                self.children.setdefault((ns, parent), []).append(id)

    def leaves(self) -> list[Place]:
        """The ends of all lines: that of the thread first, then those of subgraphs, then those that were left."""
        ends = [place for place in self.parents if place not in self.children]
        return sorted(ends, key=lambda end: (self.newest[end[0]] != end[1], end[0], end[1]))

    def line(self, place: Place) -> Iterator[Place]:
        """A checkpoint and those before it, newest first."""
        seen: set[str] = set()
        ns, id = place
        while (ns, id) in self.parents and id not in seen:
            seen.add(id)
            yield ns, id
            id = self.parents[ns, id] or ""

    def run(self, place: Place) -> str:
        """The run that a line of history is."""
        ns, id = place
        name = ns or "main"
        return name if self.newest[ns] == id else f"{name}@{id}"


def items(rows: Rows, thread: str, depth: Depth) -> Iterator[Item]:
    """Yield the items of a thread."""
    yield About(session=thread)
    yield from _Reader(rows, depth).items()


class _Reader:
    """Where reading is."""

    def __init__(self, rows: Rows, depth: Depth) -> None:
        self._rows = rows
        self._depth = depth
        self._history = History(rows.order())
        self._open: Counter[str] = Counter()
        self._told: set[tuple[str, str, object]] = set()
        """What was given once, by kind, id and calls: the state of a subgraph goes into that of its graph, and a fork
        begins with what it was forked from. An edited message keeps its id, and its calls are others."""

    def items(self) -> Iterator[Item]:
        for leaf in self._history.leaves():
            yield from self._line(leaf)
        if +self._open:
            yield from self._dropped()

    def _line(self, leaf: Place) -> Iterator[Item]:
        """One line of history: the last checkpoint that can be read, and the writes after it."""
        run = self._history.run(leaf)
        for place in self._history.line(leaf):
            try:
                checkpoint = self._rows.checkpoint(place)
            except Sealed as why:
                yield _sealed(f"checkpoint {place[1]}", why)
                continue
            yield About(version=str(checkpoint.version))
            if checkpoint.version > VERSION_MAX:
                what = f"it is of version {checkpoint.version}, and {VERSION_MAX} is the newest that is known"
                yield Fault("too_new", f"checkpoint {place[1]}", what)
            last = yield from self._state(place, checkpoint, run)
            yield from self._writes(place, checkpoint, run, last)
            yield from self._unseen(place, checkpoint)
            return

    def _state(self, place: Place, checkpoint: Checkpoint, run: str) -> Generator[Item, None, Message | None]:
        """The messages of a state. Returns the last of them."""
        where = f"checkpoint {place[1]}"
        for channel, why in checkpoint.sealed.items():
            yield _sealed(f"channel {channel} of {where}", why)
        last: Message | None = None
        for index, (channel, found) in enumerate(channels_of(checkpoint.channels)):
            name = run if index == 0 else f"{run}/{channel}"
            for number, message in enumerate(found):
                yield from self._message(f"{channel}[{number}] of {where}", message, name)
            last = last or found[-1]
        return last

    def _message(self, place: str, message: Message, run: str) -> Iterator[Item]:
        if self._depth == "calls" and message.kind in ("human", "system"):
            return
        asks, answers = message.calls, message.answers
        if message.id is not None and (asks or answers is not None):
            calls = tuple((part["id"], part["name"], part["arguments"]) for part in asks)
            told = (message.kind, message.id, calls or answers)
            if told in self._told:
                return
            self._told.add(told)
        if self._depth == "calls" and not asks and answers is None:
            return
        event = asked(asks) if self._depth == "calls" and asks else said(message, whole=self._depth == "whole")
        if event is None:
            if message.kind != "remove":
                yield Other(place, f"{message.kind} message")
            return
        for part in asks:
            self._open[part["id"]] += 1
        if answers is not None:
            self._open[answers] -= 1
        yield Said(place, event[0], event[1], run)

    def _writes(self, place: Place, checkpoint: Checkpoint, run: str, last: Message | None) -> Iterator[Item]:
        """What tasks wrote after the last checkpoint, which `invoke` would go on from."""
        where = f"writes of checkpoint {place[1]}"
        signs: dict[str, Sign] = {}
        tasks = _Tasks(checkpoint.channels.get(TASKS), last)
        special: list[Write] = []
        for write in self._rows.writes(place):
            if write.channel in (ERROR, INTERRUPT, RESUME):
                special.append(write)
            elif write.channel != TASKS:
                try:
                    messages = _messages(write.value())
                except Sealed as why:
                    yield _sealed(where, why)
                    continue
                for message in messages:
                    yield from self._message(f"{where}, {write.channel}", message, run)
        for write in special:
            for id in tasks.calls(write, special):
                sign = _sign(where, id, write)
                if sign is not None:
                    signs[id] = sign
        yield from (sign for id, sign in signs.items() if self._open[id] > 0)

    def _unseen(self, place: Place, checkpoint: Checkpoint) -> Iterator[Item]:
        """Where the end of a line does not show what was in flight."""
        where = f"checkpoint {place[1]}"
        if _DELTAS in checkpoint.metadata:
            counters = checkpoint.metadata[_DELTAS]
            names = [name for name in counters if name not in checkpoint.channels] if isinstance(counters, dict) else []
            if names:
                what = f"the channel {', '.join(map(str, names))} is kept as differences, which are not put together"
                yield Blind(where, f"{what}: calls in it cannot be seen")
        parent = self._history.parents[place]
        if parent is None or (place[0], parent) not in self._history.parents:
            return
        source, step = self._rows.step(place)
        before = self._rows.step((place[0], parent))[1]
        if source == "loop" and step is not None and before is not None and step > before + 1:
            yield Blind(
                where, 'it is saved at the end of a run only (durability="exit"): a call in flight leaves nothing'
            )

    def _dropped(self) -> Iterator[Item]:
        """The results that no checkpoint took up, of calls that are still open."""
        for place, id, message in dropped(self._rows, self._history, set(+self._open)):
            text = " ".join(str(message.fields.get("content")).split())[:_LISTED_MAX]
            what = f"a result that was dropped when the thread went on: {text}"
            yield Sign(f"writes of checkpoint {place[1]}", id, "ran", what)


class _Tasks:
    """Which calls each task runs."""

    def __init__(self, sends: object, last: Message | None) -> None:
        """Take the tasks that a checkpoint sends, and the last message of its state."""
        self._sent = [[*call_ids(send)] for send in sends] if isinstance(sends, (list, tuple)) else []
        self._asked = [part["id"] for part in last.calls] if last is not None else []

    def calls(self, write: Write, special: list[Write]) -> list[str]:
        """The ids of the calls that a special write is about."""
        if write.task == NO_TASK:  # the caller's answer goes to what was interrupted before it
            earlier = [other for other in special[: special.index(write)] if other.channel == INTERRUPT]
            return [id for other in earlier for id in self.calls(other, special)]
        if write.path.startswith(PUSH):
            number = write.path.removeprefix(PUSH).partition(",")[0]
            index = int(number) if number.isdecimal() else len(self._sent)
            return self._sent[index] if index < len(self._sent) else []
        if not write.path and self._sent:  # an older version does not say which task it is
            tasks = {other.task for other in special if other.channel == write.channel}
            return [id for sent in self._sent for id in sent] if len(tasks) == len(self._sent) else []
        return self._asked


def channels_of(channels: Mapping[str, Any]) -> list[tuple[str, list[Message]]]:
    """The channels that hold messages: `messages` first, then the longest; else what an entrypoint keeps."""
    found = [(name, _messages(value)) for name, value in channels.items() if not name.startswith(("__", "branch:"))]
    held = [(name, messages) for name, messages in found if messages]
    if not held:
        kept = [(name, _messages(channels.get(name))) for name in ENTRYPOINT]
        return [channel for channel in kept if channel[1]][:1]
    return sorted(held, key=lambda channel: (channel[0] != "messages", -len(channel[1]), channel[0]))


def dropped(rows: Rows, history: History, ids: set[str]) -> Iterator[tuple[Place, str, Message]]:
    """The results of these calls in the writes of a checkpoint from which the thread went on without them."""
    for place in reversed(history.parents):
        children = [(place[0], child) for child in history.children.get(place, ())]
        if not children or any(rows.step(child)[0] == "loop" for child in children):
            continue
        for write in rows.writes(place):
            try:
                messages = [] if write.channel.startswith("__") else _messages(write.value())
            except Sealed:
                continue
            for message in messages:
                if message.answers in ids and message.answers is not None:
                    ids.discard(message.answers)
                    yield place, message.answers, message


def _messages(value: object) -> list[Message]:
    """The messages that a channel holds, or one that was written to it."""
    if isinstance(value, Built) and value.name == "Overwrite" and isinstance(value.value, dict):
        value = value.value.get("value")
    listed = value if isinstance(value, (list, tuple)) and not isinstance(value, Built) else [value]
    return [message for message in map(message_of, listed) if message is not None]


def call_ids(value: Any) -> Iterator[str]:
    """The ids of the calls in what a task was sent: a call, a list of them, or a state with one."""
    if isinstance(value, Built):
        if value.name == "Send" and isinstance(value.value, (list, tuple)) and len(value.value) > 1:
            yield from call_ids(value.value[1])
    elif isinstance(value, dict):
        if value.get("type") == "tool_call" and isinstance(value.get("id"), str):
            yield value["id"]
        elif isinstance(value.get("tool_call"), dict):
            yield from call_ids(value["tool_call"])
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from call_ids(inner)


def _sign(place: str, id: str, write: Write) -> Sign | None:
    if write.channel == RESUME:
        return Sign(place, id, "dispatched", "the tool was resumed with an answer")
    if write.channel == INTERRUPT:
        return Sign(place, id, "waiting", "the tool waits for an answer (interrupt)")
    try:
        error = str(write.value())[:_LISTED_MAX]
    except Sealed:
        error = "an error"
    evidence: Any = "ran" if write.path.startswith(PUSH) else "dispatched"
    return Sign(place, id, evidence, f"the task failed: {error}")


def _sealed(place: str, why: Sealed) -> Item:
    if why.fault is not None:
        return Fault(why.fault, place, str(why))
    return Blind(place, f"{place}: {why}; a call in it cannot be seen")
