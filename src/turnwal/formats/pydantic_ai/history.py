"""Where the messages of a history stand: in an array, in a conversation, or in the entries of a conversation store.

Source: `conversation.py` and `conversation_store.py` of pydantic/pydantic-ai at 4fda3898: a conversation has messages
and the requests that it waits for; a store has a record with the head of the history and the heads of those that were
left, and entries that point to the one before.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from turnwal.formats.arrays import WHOLE_MAX, elements
from turnwal.formats.items import Fault
from turnwal.formats.pydantic_ai.messages import is_message

VERSION: Final = 1
"""The form of a store that is known."""

_HEAD: Final = 256 * 1024
_STORE_MAX: Final = 512 * 1024 * 1024


class Entry(NamedTuple):
    """A message with the name of its entry; in an array that is its index."""

    id: str
    parent: str | None
    message: Any


@dataclass(slots=True)
class Store:
    """The entries of a store."""

    entries: dict[str, Entry] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def tips(self) -> list[str]:
        """The ends of all lines: the head of the history first, then those that were left."""
        parents = {entry.parent for entry in self.entries.values()}
        ends = [id for id in self.entries if id not in parents]
        head = self.record.get("head_id")
        if head not in self.entries:
            head = ends[-1] if ends else None
        return [head, *(id for id in ends if id != head)] if isinstance(head, str) else ends

    def line(self, tip: str) -> list[Entry]:
        """The entries up to a tip, oldest first."""
        found: dict[str, Entry] = {}
        id: str | None = tip
        while id is not None and id in self.entries and id not in found:
            found[id] = self.entries[id]
            id = self.entries[id].parent
        return list(found.values())[::-1]


def is_entry(value: object) -> bool:
    """Whether a value is an entry of a store."""
    return isinstance(value, dict) and isinstance(value.get("id"), str) and "parent_id" in value and "message" in value


def key_of(path: Path) -> str | None:
    """The key under which the messages or entries stand, or None where the file is an array."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        return None
    return "entries" if b'"entries"' in head else "messages"


def is_store(path: Path) -> bool:
    """Whether the messages of a file stand in entries."""
    with path.open("rb") as file:
        return b'"parent_id"' in file.read(_HEAD)


def store_of(path: Path) -> Store:
    """The store in a file, with what is wrong with it."""
    found = Store()
    if path.stat().st_size > _STORE_MAX:
        found.faults.append(Fault("too_long", "the file", f"it is longer than {_STORE_MAX:,} bytes"))
        return found
    found.record = around(path)
    if isinstance(found.record.get("record"), dict):
        found.record = found.record["record"]
    for item in elements(path, key_of(path)):
        if isinstance(item, Fault):
            found.faults.append(item)
        elif not is_entry(item[1]):
            found.faults.append(Fault("corrupt", f"entries[{item[0]}]", "it is no entry"))
        else:
            value = item[1]
            parent = value["parent_id"] if isinstance(value["parent_id"], str) else None
            found.entries[value["id"]] = Entry(value["id"], parent, value["message"])
    for entry in found.entries.values():
        if entry.parent is not None and entry.parent not in found.entries:
            found.faults.append(Fault("missing_parent", f"entry {entry.id}", f"entry {entry.parent} is not there"))
    return found


def around(path: Path) -> Mapping[str, Any]:
    """What a file has beside its messages; nothing for one that is an array, is torn, or is too long to hold."""
    if path.stat().st_size > _STORE_MAX or key_of(path) is None:
        return {}
    try:
        value = msgspec.json.decode(path.read_bytes())
    except (msgspec.MsgspecError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class _Part(msgspec.Struct):
    """As much of a part as says which call it is about."""

    part_kind: str
    tool_call_id: str | None = None
    tool_name: str | None = None
    outcome: str | None = None
    args: msgspec.Raw = msgspec.Raw()
    metadata: msgspec.Raw = msgspec.Raw()

    def plain(self) -> dict[str, Any]:
        """The part as the file has it, without its content."""
        made: dict[str, Any] = {"part_kind": self.part_kind}
        if self.tool_call_id is not None:
            made |= {"tool_call_id": self.tool_call_id, "tool_name": self.tool_name, "outcome": self.outcome}
            for name, raw in (("args", self.args), ("metadata", self.metadata)):
                if raw:
                    made[name] = msgspec.json.decode(raw)
        return made


class _Message(msgspec.Struct):
    """As much of a message as says which calls it is about."""

    kind: Literal["request", "response"]
    parts: list[_Part]


_quick: Final = msgspec.json.Decoder(list[_Message])


def calls(path: Path) -> Iterator[tuple[int, Any] | Fault]:
    """The messages of an array or a conversation without their content, with their index."""
    if path.stat().st_size <= WHOLE_MAX and key_of(path) is None:
        try:
            found = _quick.decode(path.read_bytes())
        except (msgspec.MsgspecError, RecursionError):
            pass  # told piece by piece
        else:
            for index, message in enumerate(found):
                yield index, {"kind": message.kind, "parts": [part.plain() for part in message.parts]}
            return
    yield from messages(path)


def messages(path: Path) -> Iterator[tuple[int, Any] | Fault]:
    """The messages of an array or a conversation, with their index."""
    for item in elements(path, key_of(path)):
        if isinstance(item, Fault) or is_message(item[1]):
            yield item
        else:
            yield Fault("corrupt", f"messages[{item[0]}]", "it is neither a request nor a response")


def deferred_ids(record: Mapping[str, Any]) -> set[str]:
    """The ids of the calls that a conversation waits for."""
    told = record.get("deferred_tool_requests")
    listed = (
        [call for name in ("calls", "approvals") for call in told.get(name) or ()] if isinstance(told, dict) else []
    )
    return {call["tool_call_id"] for call in listed if isinstance(call, dict) and "tool_call_id" in call}
