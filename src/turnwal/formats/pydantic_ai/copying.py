"""A repaired copy of a history: the truth about each open call, as a tool-return in the request behind its response.

Source: `messages.py` of pydantic/pydantic-ai at 4fda3898: all results of a response stand in one request, ahead of what
the user says in it. `outcome` is recent: it is written only where the history itself has it, or `state`, as new as it.
"""

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from turnwal.core.rules import Risk
from turnwal.formats.arrays import elements
from turnwal.formats.diagnosis import Diagnosis
from turnwal.formats.format import Found
from turnwal.formats.items import TURNWAL, Fault
from turnwal.formats.lenient import laid_out
from turnwal.formats.pydantic_ai.history import Entry, around, is_entry, is_store, key_of, messages, store_of
from turnwal.formats.pydantic_ai.messages import answered_by, calls_of, invented_by, is_message, text_of
from turnwal.formats.repairing import fresh, uuid_of
from turnwal.formats.wording import MARK, text_for

_NAMESPACE: Final = uuid.UUID("0f9ad3c1-53a5-5a0b-8a4e-2e5c7a6b9d10")


def repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Write the copy. Raises `Refused` for a path that is there, and `OSError`."""
    risks = {call.id: call.risk for call in diagnosis.open if call.evidence != "waiting"}
    whole = around(found.path)
    if is_store(found.path):
        value: Any = _store(found.path, risks, dict(whole))
    else:
        listed = [item[1] for item in messages(found.path) if not isinstance(item, Fault)]
        answered = [message for message, _ in answer(listed, risks)]
        value = answered if key_of(found.path) is None else {**whole, "messages": answered}
    with fresh(out) as file:
        file.write(laid_out(value, 1))


def answer(listed: list[Any], risks: Mapping[str, Risk | None]) -> Iterator[tuple[Any, int | None]]:
    """Yield the messages with every call of these ids answered, each with its index; None for one that is new."""
    missing = _missing(listed)
    is_recent = any(_is_recent(message) for message in listed)
    index = 0
    while index < len(listed):
        message, at = listed[index], index
        index += 1
        yield _without_inventions(message, risks), at
        calls = calls_of(message) if is_message(message) else []
        open_calls = [n for n, call in enumerate(calls) if (at, n) in missing and _id(call) in risks]
        if not open_calls:
            continue
        behind = listed[index] if index < len(listed) else None
        made = {n: _return(calls[n], message, risks[_id(calls[n])], is_recent=is_recent) for n in open_calls}
        if isinstance(behind, dict) and behind.get("kind") == "request":
            yield {**behind, "parts": _merged(calls, _without_inventions(behind, risks)["parts"], made)}, index
            index += 1
        else:
            yield {"parts": list(made.values()), **_kept(message), "kind": "request"}, None


def _merged(calls: list[dict[str, Any]], parts: list[Any], made: Mapping[int, Any]) -> list[Any]:
    """The parts of a request with new results among the old ones, in the order of the calls, ahead of the rest."""
    left = list(parts)
    results: list[Any] = []
    for number, call in enumerate(calls):
        if number in made:
            results.append(made[number])
            continue
        there = next((part for part in left if answered_by(part) == _id(call)), None)
        if there is not None:
            left.remove(there)
            results.append(there)
    return results + left


def _missing(listed: list[Any]) -> set[tuple[int, int]]:
    """The calls without a result: the index of the message and the number of the call in it.

    As the library has it, a result answers the newest response that has its id, and there the first call.
    """
    waiting: dict[str, list[tuple[int, int]]] = {}
    lost: set[tuple[int, int]] = set()
    for index, message in enumerate(listed):
        if not is_message(message):
            continue
        for number, call in enumerate(calls_of(message)):
            same = waiting.setdefault(_id(call), [])
            if same and same[0][0] != index:
                lost.update(same)
                same.clear()
            same.append((index, number))
        if message["kind"] == "request":
            for part in message["parts"]:
                id = answered_by(part)
                if id is not None and waiting.get(id):
                    waiting[id].pop(0)
    return lost.union(*waiting.values())


def _without_inventions(message: Any, risks: Mapping[str, Risk | None]) -> Any:
    """A request with the truth in place of what `repair_messages` said of these calls."""
    if not is_message(message) or message["kind"] != "request":
        return message
    return {**message, "parts": [_told_truly(part, risks) for part in message["parts"]]}


def _told_truly(part: dict[str, Any], risks: Mapping[str, Risk | None]) -> dict[str, Any]:
    id = answered_by(part)
    if id not in risks or id is None or invented_by(part) in (None, TURNWAL):
        return part
    return {**part, "content": text_for(risks[id]), "metadata": {MARK: "unknown"}}


def _return(
    call: Mapping[str, Any], response: Mapping[str, Any], risk: Risk | None, *, is_recent: bool
) -> dict[str, Any]:
    made: dict[str, Any] = {"tool_name": call.get("tool_name"), "content": text_for(risk), "tool_call_id": _id(call)}
    made["metadata"] = {MARK: "unknown"}
    if isinstance(response.get("timestamp"), str):
        made["timestamp"] = response["timestamp"]
    if is_recent:
        made["outcome"] = "interrupted"
    return {**made, "part_kind": "tool-return"}


def _kept(response: Mapping[str, Any]) -> dict[str, Any]:
    """What a new request has in common with the response that it is behind."""
    return {name: response[name] for name in ("timestamp", "run_id", "conversation_id") if name in response}


def _is_recent(message: Any) -> bool:
    return is_message(message) and ("state" in message or any("outcome" in part for part in message["parts"]))


def _id(call: Mapping[str, Any]) -> str:
    return text_of(call.get("tool_call_id"))


def _store(path: Path, risks: Mapping[str, Risk | None], whole: dict[str, Any]) -> Any:
    """A store with its entries answered: a new request is a new entry between its response and what is behind that."""
    store = store_of(path)
    changes = _Changes()
    for tip in store.tips():
        changes.take(tip, store.line(tip), risks)
    entries = [item for item in _entries(path) if is_entry(item)]
    for item in entries:
        item["message"] = changes.messages.get(item["id"], item["message"])
        item["parent_id"] = changes.parents.get(item["id"], item["parent_id"])
    kind = {"kind": entries[0]["kind"]} if entries and "kind" in entries[0] else {}
    entries += [
        {"id": new.id, "parent_id": new.parent, "message": new.message, **kind} for new in changes.added.values()
    ]
    if not whole:
        return entries
    record = whole["record"] if isinstance(whole.get("record"), dict) else whole
    record["head_id"] = changes.tips.get(record.get("head_id", ""), record.get("head_id"))
    if isinstance(record.get("branches"), list):
        record["branches"] = [changes.tips.get(tip, tip) for tip in record["branches"]]
    if isinstance(record.get("revision"), str) and (changes.added or changes.messages):
        record["revision"] = str(uuid_of(_NAMESPACE, record["revision"]))
    return {**whole, "entries": entries}


class _Changes:
    """What a repair changes in a store."""

    def __init__(self) -> None:
        self.messages: dict[str, Any] = {}
        """By entry: its message, where that is another one now."""
        self.parents: dict[str, str] = {}
        """By entry: its parent, where a new entry stands before it now."""
        self.added: dict[str, Entry] = {}
        self.tips: dict[str, str] = {}
        """By tip: the new entry behind it."""

    def take(self, tip: str, line: list[Entry], risks: Mapping[str, Risk | None]) -> None:
        """Answer the open calls of a line."""
        before: str | None = None
        for message, index in answer([entry.message for entry in line], risks):
            if index is None:
                id = str(uuid_of(_NAMESPACE, before or ""))
                self.added[id] = Entry(id, before, message)
                before = id
                continue
            entry = line[index]
            if before in self.added and before is not None:
                self.parents[entry.id] = before
            if message != entry.message:
                self.messages[entry.id] = message
            before = entry.id
        if before is not None and before != tip:
            self.tips[tip] = before


def _entries(path: Path) -> Iterator[Any]:
    for item in elements(path, key_of(path)):
        if not isinstance(item, Fault):
            yield item[1]
