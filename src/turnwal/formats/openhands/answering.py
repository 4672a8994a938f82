"""A repaired copy of a conversation of OpenHands: an error event for each call that has no answer.

The answers of a reply stand directly behind its calls, each the child of the one before; what was a child of the last
call is one of the last answer, and the events behind move on by so many numbers. The leaf moves to the last answer
where it was before the calls, as a killed process leaves it; a branch that was left stays left. Files that are no
events are left out, and the numbers closed, since the tool sees nothing behind a gap.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from turnwal.formats.diagnosis import Diagnosis, OpenCall
from turnwal.formats.format import Found
from turnwal.formats.lenient import encoded
from turnwal.formats.numbered import found_in, numbered
from turnwal.formats.openhands.reading import ANSWERS, FILE, ROOT, STATE, Event, call_id, is_invented
from turnwal.formats.repairing import fresh_directory
from turnwal.formats.wording import MARK, text_for

_BESIDE: Final = frozenset({"HookExecutionEvent", "ConversationStateUpdateEvent", "ConversationErrorEvent"})
"""Events that hang in the tree, but that no other follows."""


@dataclass(slots=True)
class _Node:
    """An event in the order of the copy."""

    id: str
    path: Path
    kind: str
    call: str
    reply: str
    parent: str | None
    """None for one that follows the one before it, as older events do."""
    changed: Event = field(default_factory=dict)
    """What the copy says otherwise; all of it for an event that is not in the original."""
    made: bool = False


def repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Write the copy."""
    invented = {call.id: call for call in diagnosis.open if call.evidence == "answered_synthetic"}
    asked: dict[str, OpenCall] = {
        call.place: call for call in diagnosis.open if call.evidence in ("requested", "dispatched", "ran")
    }
    state = found_in(found.path / STATE)
    nodes = list(_nodes(found.path / "events", invented))
    count = len(numbered(found.path / "events", FILE))
    leaf = state.get("leaf_event_id") if state is not None else None
    if leaf is not None and leaf not in {node.id for node in nodes}:
        leaf = next((node.id for node in reversed(nodes) if node.kind not in _BESIDE), None)
    for index in range(len(nodes) - 1, -1, -1):
        if nodes[index].path.name in asked:
            leaf = _answer(nodes, index, asked, leaf)
    with fresh_directory(out) as copy:
        shutil.copytree(found.path, copy, dirs_exist_ok=True, symlinks=True, ignore=_events_of(found.path))
        _write(copy / "events", nodes)
        for marker in (copy / "events").glob(".eventlog-len-*.marker") if len(nodes) != count else ():
            marker.unlink()  # it names the count, and the tool counts where there is none
        if state is not None and leaf != state.get("leaf_event_id"):
            (copy / STATE).write_bytes(encoded({**state, "leaf_event_id": leaf}))


def _events_of(session: Path) -> Any:
    """What a copy of the folder leaves out at first."""
    folder = str(session / "events")
    return lambda directory, names: [name for name in names if directory == folder and FILE.fullmatch(name)]


def _nodes(folder: Path, invented: Mapping[str, OpenCall]) -> Iterator[_Node]:
    seen: set[str] = set()
    before: str | None = None
    for _, path in numbered(folder, FILE):
        event = found_in(path)
        if event is None:
            continue
        parent = event.get("parent_id")
        node = _Node(
            id=str(event.get("id")),
            path=path,
            kind=str(event.get("kind")),
            call=call_id(event),
            reply=str(event.get("llm_response_id") or ""),
            parent=parent if isinstance(parent, str) else None,
        )
        if node.parent is not None and node.parent != ROOT and node.parent not in seen:
            node.parent = before
            node.changed["parent_id"] = before
        if node.call in invented and is_invented(event):
            node.changed["error"] = text_for(invented[node.call].risk)
        seen.add(node.id)
        if node.kind not in _BESIDE:
            before = node.id
        yield node


def _answer(nodes: list[_Node], index: int, asked: dict[str, OpenCall], leaf: Any) -> Any:
    """Put the answers of the reply that a call belongs to behind it, and return the leaf that comes of it."""
    parents = _parents(nodes)
    batch = [node for node in nodes[: index + 1] if _is_action(node, nodes[index])]
    while not _is_chain(batch, parents):
        batch.pop(0)
    tip = index
    for at in range(index + 1, len(nodes)):
        if parents[nodes[at].id] != nodes[tip].id:
            continue
        if _is_action(nodes[at], nodes[index]):
            batch.append(nodes[at])
            tip = at
        elif nodes[at].kind in ANSWERS and nodes[at].call in {node.call for node in batch}:
            tip = at
    last = nodes[tip]
    made: list[_Node] = []
    for node in batch:
        call = asked.pop(node.path.name, None)
        if call is not None:
            made.append(_made(node, call, found_in(last.path) or {}, made[-1].id if made else last.id, last.parent))
    for node in nodes:
        if node.parent == last.id and node.kind not in _BESIDE:
            node.parent = node.changed["parent_id"] = made[-1].id
    nodes[tip + 1 : tip + 1] = made
    return made[-1].id if leaf is not None and leaf in _line(last.id, parents) else leaf


def _is_action(node: _Node, other: _Node) -> bool:
    """Whether an event is an action of the reply that another is one of."""
    return node.id == other.id or (node.kind == "ActionEvent" and node.reply != "" and node.reply == other.reply)


def _is_chain(batch: list[_Node], parents: Mapping[str, str | None]) -> bool:
    return all(parents[after.id] == before.id for before, after in pairwise(batch))


def _parents(nodes: list[_Node]) -> dict[str, str | None]:
    """The parent of each event, as the tool finds it."""
    found: dict[str, str | None] = {}
    before: str | None = None
    for node in nodes:
        found[node.id] = before if node.parent is None else node.parent
        before = node.id
    return found


def _line(id: str | None, parents: Mapping[str, str | None]) -> set[str]:
    """An event and those it descends from."""
    found: set[str] = set()
    while id is not None and id not in found:
        found.add(id)
        id = parents.get(id)
    return found


def _made(asking: _Node, call: OpenCall, before: Event, parent: str, linear: str | None) -> _Node:
    named = f"{MARK}\n{asking.id}\n{call.id}".encode("utf-8", "surrogatepass")
    id = str(UUID(bytes=sha256(named).digest()[:16]))
    event: Event = {"id": id, "timestamp": before.get("timestamp"), "source": "agent"}
    if linear is not None:
        event["parent_id"] = parent
    event |= {"tool_name": call.name or "", "tool_call_id": call.id, "error": text_for(call.risk)}
    event["kind"] = "AgentErrorEvent"
    return _Node(id, asking.path, event["kind"], call.id, "", event.get("parent_id"), event, made=True)


def _write(folder: Path, nodes: list[_Node]) -> None:
    for number, node in enumerate(nodes):
        path = folder / f"event-{number:05}-{node.id}.json"
        if node.made:
            path.write_bytes(encoded(node.changed))
        elif node.changed:
            path.write_bytes(encoded({**(found_in(node.path) or {}), **node.changed}))
        else:
            shutil.copy2(node.path, path)
