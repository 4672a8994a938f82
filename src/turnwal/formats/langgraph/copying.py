"""A repaired copy of a SQLite database: one more checkpoint for each line of history whose calls are open.

The checkpoint is what `update_state(config, {"messages": …}, as_node=…)` with one ToolMessage a call leaves
(langchain-ai/langgraph at f09cfe8f, `pregel/main.py`): the result that a finished sibling left in the writes is taken
up, the tasks that ran the calls are gone, and the node that their results go to is next.

Promises:
- The rows that are there stay as they are; one checkpoint a line is added, right behind the one that it repairs. Its id
  and those of its messages come from what is there, so that the same bytes come out again.
- What would need the graph itself is refused: a state channel that a finished sibling wrote, a sibling that waits,
  messages of an entrypoint.
"""

import shutil
import tempfile
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec

from turnwal.core.errors import Refused
from turnwal.formats.database import reading
from turnwal.formats.diagnosis import Diagnosis
from turnwal.formats.format import Found
from turnwal.formats.langgraph.answering import Held, answer
from turnwal.formats.langgraph.decoding import Sealed, opened, raw_value_of
from turnwal.formats.langgraph.messages import is_invented, message_of
from turnwal.formats.langgraph.rows import Place, SqliteRows, Write
from turnwal.formats.langgraph.state import BRANCH, State
from turnwal.formats.langgraph.thread import PUSH, SPECIAL, TASKS, History, dropped
from turnwal.formats.lenient import encoded, value_of
from turnwal.formats.repairing import fresh, uuid_of
from turnwal.formats.wording import MARK, text_for

_NAMESPACE: Final = uuid.UUID("6f1c5e0e-5d0a-5c55-9f0c-7a1f5d2b8a11")
_UUID6: Final = 6
_PULL: Final = "~__pregel_pull, "
_RESERVED: Final = "__"
"""How the channels begin that are no part of a graph's state: an entrypoint and its tasks keep theirs there."""
_BY_HAND: Final = "answer the calls with update_state, as docs/formats/langgraph.md says"

_TAKEN: Final = (
    "SELECT type, checkpoint, metadata FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
)
_ADD: Final = (
    "INSERT INTO checkpoints "
    "(thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)


def repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Write the copy. Raises `Refused` for what it cannot repair truthfully, and for a path that is there."""
    if found.url is not None:
        raise Refused("a database on a server is not copied", action="repair", subject=found.name, hint=_BY_HAND)
    with fresh(out) as file, tempfile.TemporaryDirectory(prefix="turnwal-") as directory:
        copy = Path(directory, "copy.db")
        with reading(found.path) as source:
            connection = apsw.Connection(str(copy))
            try:
                with connection.backup("main", source, "main") as backup:
                    backup.step()
                connection.pragma("journal_mode", "delete")
                with connection:
                    _Repair(found, diagnosis, connection).all()
            finally:
                connection.close()
        with copy.open("rb") as made:
            shutil.copyfileobj(made, file)


class _Repair:
    """Where repairing a thread is."""

    def __init__(self, found: Found, diagnosis: Diagnosis, connection: apsw.Connection) -> None:
        self._name = found.name
        self._thread = found.session or ""
        self._connection = connection
        self._rows = SqliteRows(connection, self._thread)
        self._history = History(self._rows.order())
        self._risks = {call.id: call.risk for call in diagnosis.open if call.evidence != "waiting"}
        self._waiting = {call.id for call in diagnosis.open if call.evidence == "waiting"}
        self._late = {id: message.fields for _, id, message in dropped(self._rows, self._history, set(self._risks))}

    def all(self) -> None:
        """Answer the open calls of every line."""
        for leaf in self._history.leaves() if self._risks else ():
            try:
                self._line(leaf)
            except Sealed as why:
                raise self._refused(f"checkpoint {leaf[1]} cannot be written again: {why}") from why

    def _refused(self, why: str) -> Refused:
        return Refused(why, action="repair", subject=self._name, hint=_BY_HAND)

    def _line(self, leaf: Place) -> None:
        taken = self._connection.execute(_TAKEN, (self._thread, *leaf)).fetchone()
        if taken is None:
            raise self._refused(f"checkpoint {leaf[1]} is named, and is not there")
        type, blob, metadata = taken
        state = State(type, raw_value_of(type, blob))
        pending = _Pending(self._rows.writes(leaf))
        answered: set[str] = set()
        channels = sorted(state.values.keys() | pending.asking, key=lambda name: (name.startswith(_RESERVED), name))
        for channel in channels:
            answered |= self._answer(leaf, state, channel, pending, answered)
        if not answered:
            return
        if pending.others:
            raise self._refused(
                f"a finished task wrote {', '.join(sorted(pending.others))}, which only the graph can merge"
            )
        self._go_on(leaf, state, pending, answered)
        id = _behind(leaf[1])
        if id is None or (leaf[0], id) in self._history.parents:
            raise self._refused(f"{leaf[1]} is no checkpoint id of LangGraph's own")
        state.checkpoint["id"] = id
        told = _metadata(metadata)
        step = told.get("step")
        told |= {"source": "update", "step": step + 1 if isinstance(step, int) else 0, MARK: "repair"}
        row = (self._thread, leaf[0], id, leaf[1], type, state.encoded(), encoded(told))
        self._connection.execute(_ADD, row)

    def _answer(self, leaf: Place, state: State, channel: str, pending: "_Pending", before: set[str]) -> set[str]:
        """Answer the open calls of a channel; the ids of the calls of all messages that got a result.

        Those that another channel had before are left.
        """
        held = [*state.messages(channel), *pending.asking.get(channel, ())]

        def result_for(call: Mapping[str, Any], like: Any) -> Any:
            id = call["id"]
            if id in pending.results:
                return pending.results[id]
            if id not in self._risks:
                return None
            usual = self._result(leaf, call)
            if id in self._late:
                return state.result(usual | dict(self._late[id]), like)
            return state.result(usual | _unknown(text_for(self._risks[id])), like)

        def better(result: Held) -> Any:
            id, message = result.answers or "", result.message
            if id not in self._risks or message is None or not is_invented(message.fields.get("content")):
                return None
            return state.result({**message.fields, **_unknown(text_for(self._risks[id]))}, result.value)

        made, touched = answer(held, result_for, better)
        if touched & self._waiting:
            raise self._refused("a call beside the open ones waits for an answer, which has to be given first")
        if channel.startswith(_RESERVED):
            self._hold_back(channel, touched & self._risks.keys() - before)
            return set()
        if touched & self._risks.keys():
            state.put(channel, made)
            return touched
        return set()

    def _hold_back(self, channel: str, calls: set[str]) -> None:
        """Refuse where calls are asked for in a channel alone that is no part of a graph's state."""
        if calls:
            raise Refused(
                f"what asks for the calls stands in {channel} alone, which the code of the application reads",
                action="repair",
                subject=self._name,
                hint="`turnwal import` takes it over",
            )

    def _result(self, leaf: Place, call: Mapping[str, Any]) -> dict[str, Any]:
        id = uuid_of(_NAMESPACE, "\n".join((self._thread, *leaf, call["id"])))
        return {
            "content": "",
            "additional_kwargs": {},
            "response_metadata": {},
            "type": "tool",
            "name": call["name"] or None,
            "id": str(id),
            "tool_call_id": call["id"],
            "artifact": None,
            "status": "success",
        }

    def _go_on(self, leaf: Place, state: State, pending: "_Pending", answered: set[str]) -> None:
        """Take away the tasks that ran the calls, and trigger the node that their results go to."""
        for node in pending.done:
            state.end_node(node)
        if not state.end_sent(answered) and not pending.sent:
            due = state.due()
            if len(due) > 1 and "tools" not in due:
                raise self._refused(f"which of the nodes {', '.join(sorted(due))} ran the calls is not recorded")
            if not due or not self._is_last(state, answered):
                return
            state.end_node("tools" if "tools" in due else due[0])
        for channel in sorted(pending.leads_to or self._led_to(leaf) or self._asker(leaf, state, pending)):
            state.put(channel, None)

    def _is_last(self, state: State, answered: set[str]) -> bool:
        """Whether the newest messages of a channel are those that were answered, so that a node was at work on them."""
        for channel in state.values:
            held = state.messages(channel)
            if held and held[-1].answers in answered:
                return True
        return False

    def _led_to(self, leaf: Place) -> set[str]:
        """The triggers that earlier calls of this graph set when they ended."""
        found: set[str] = set()
        for place in self._history.line(leaf):
            found = {
                write.channel
                for write in self._rows.writes(place)
                if write.path.startswith(PUSH) and write.channel.startswith(BRANCH)
            }
            if found:
                break
        return found

    def _asker(self, leaf: Place, state: State, pending: "_Pending") -> set[str]:
        """The trigger of the node that wrote the message with the calls: agents go back to it."""
        nodes = set(pending.done)
        parent = self._history.parents[leaf]
        if not nodes and parent is not None:
            before = _Pending(self._rows.writes((leaf[0], parent)))
            nodes = set(before.done)
        return {BRANCH + node for node in nodes if BRANCH + node in state.versions}


class _Pending:
    """What tasks wrote after a checkpoint."""

    def __init__(self, writes: Iterable[Write]) -> None:
        self.results: dict[str, Any] = {}
        """By call id: the results of finished calls."""
        self.asking: dict[str, list[Held]] = {}
        """By channel: messages with calls that no checkpoint has taken up yet."""
        self.done: list[str] = []
        """The nodes that wrote those."""
        self.sent = False
        """Whether the tasks for those calls were sent."""
        self.leads_to: set[str] = set()
        """The triggers that finished calls set."""
        self.others: set[str] = set()
        """Channels that were written and that cannot be merged here."""
        for write in writes:
            self._take(write)

    def _take(self, write: Write) -> None:
        pulled = write.path.startswith(_PULL)
        if write.channel in SPECIAL:
            self.sent = self.sent or write.channel == TASKS
        elif write.channel.startswith(BRANCH):
            if not pulled:
                self.leads_to.add(write.channel)
        else:
            value = raw_value_of(write.type, write.blob)
            for inner in value if isinstance(value, list) else [value]:
                held = Held(inner, message_of(opened(inner)))
                if held.answers is not None:
                    self.results[held.answers] = inner
                elif held.calls:
                    self.asking.setdefault(write.channel, []).append(held)
                    if pulled:
                        self.done.append(write.path.removeprefix(_PULL))
                else:
                    self.others.add(write.channel)


def _unknown(text: str) -> dict[str, Any]:
    return {"content": text, "status": "error", "additional_kwargs": {MARK: "unknown"}}


def _behind(id: str) -> str | None:
    """The id of a checkpoint right behind one, by LangGraph's uuid6: a tenth of a microsecond later."""
    try:
        found = uuid.UUID(id)
    except ValueError:
        return None
    if found.version != _UUID6 or str(found) != id:
        return None
    value = found.int
    time = (value >> 80 << 12 | (value >> 64) & 0xFFF) + 1
    return str(uuid.UUID(int=(time >> 12 << 80) | (_UUID6 << 76) | (time & 0xFFF) << 64 | value & (1 << 64) - 1))


def _metadata(stored: Any) -> dict[str, Any]:
    """What a checkpoint says of itself; nothing where that is of another form."""
    try:
        told = value_of(stored) if stored else None
    except (msgspec.MsgspecError, TypeError):
        return {}
    return told if isinstance(told, dict) else {}
