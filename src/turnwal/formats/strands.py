"""Strands Agents (strands-agents/sdk-python at 1232230d, and 1.62.0 as it runs): folders of its `FileSessionManager`.

A message is a file of its own, written whole, in the order of the number in its name; its content is that of Bedrock's
Converse. The assistant's message is stored before its tools run, and their results after all of them, so a call that
had finished beside the one that was killed has no result either. With the next prompt the SDK answers every call
without a result by an error "Tool was interrupted.", which says nothing of what happened.

`agent.json` says what waits for a person, with the results of the siblings that ran, and counts the messages that left
the context of the model; those are read all the same.
"""

import re
import shutil
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from turnwal.formats.diagnosis import Diagnosis, OpenCall
from turnwal.formats.format import Depth, Format, Found, Sample
from turnwal.formats.items import TURNWAL, About, Fault, Item, Other, Said, Sign
from turnwal.formats.lenient import compact_text, laid_out
from turnwal.formats.numbered import found_in, numbered, record
from turnwal.formats.parts import part_or_text
from turnwal.formats.repairing import fresh_directory
from turnwal.formats.stamps import milliseconds
from turnwal.formats.wording import OR_KILLED, is_ours, text_for
from turnwal.transcript.bedrock.parse import part_of

Block = Mapping[str, Any]

_MESSAGE: Final = re.compile(r"message_(\d+)\.json")
_UNFINISHED: Final = re.compile(r"\.strands_(.*)\.tmp")
"""What the SDK writes a file as before it gives it its name."""
_INVENTED: Final = "Tool was interrupted."
_BYTES: Final = "__bytes_encoded__"
_KNOWN: Final = frozenset(
    {"text", "toolUse", "toolResult", "image", "document", "video", "reasoningContent", "cachePoint", "guardContent"}
    | {"citationsContent", "json"}
)


def _recognises(sample: Sample) -> bool:
    return sample.kind == "directory" and {"session.json", "agents"} <= sample.names


def _sessions(sample: Sample) -> Iterator[Found]:
    for agent in sorted((sample.path / "agents").glob("agent_*")):
        if agent.is_dir():
            yield Found(FORMAT, sample.path, agent.name.removeprefix("agent_"))


def _read(found: Found, depth: Depth) -> Iterator[Item]:
    yield About(session=found.session)
    folder = _folder(found.path, found)
    expected = 0
    last: list[Block] = []
    for number, path in numbered(folder / "messages", _MESSAGE):
        if number > expected:
            yield Fault("gap", path.name, f"message {expected} is missing")
        expected = number + 1
        stored = record(path)
        message = _message(stored) if isinstance(stored, dict) else None
        last = [] if message is None else _blocks(message)
        if isinstance(stored, Fault):
            yield stored
        elif message is None:
            yield Fault("corrupt", path.name, "it has no message")
        else:
            yield from _said(path.name, message, milliseconds(stored.get("created_at")), depth)
    for path in (found.path / "session.json", folder / "agent.json"):
        stored = record(path) if path.exists() else Fault("gap", path.name, "the file is missing")
        if isinstance(stored, Fault):
            yield stored
    for path in _unfinished(folder):
        yield Fault("torn", path.name, f"{path.stat().st_size:,} bytes of a file that was not finished")
    yield from _interrupted(folder / "agent.json", [block["toolUse"] for block in _of(last, "toolUse")], depth)


def _folder(session: Path, found: Found) -> Path:
    return session / "agents" / f"agent_{found.session}"


def _unfinished(folder: Path) -> list[Path]:
    places = (folder, folder / "messages")
    return sorted(path for place in places if place.is_dir() for path in place.iterdir() if _is_unfinished(path))


def _is_unfinished(path: Path) -> bool:
    return _UNFINISHED.fullmatch(path.name) is not None


def _message(stored: Block) -> dict[str, Any] | None:
    """The message as the model sees it: what it was redacted to, where it was."""
    message = stored.get("redact_message") or stored.get("message")
    return message if isinstance(message, dict) else None


def _blocks(message: Block) -> list[Block]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _of(blocks: Iterable[Block], kind: str) -> list[Block]:
    return [block for block in blocks if isinstance(block.get(kind), dict)]


def _said(place: str, message: Block, time: int | None, depth: Depth) -> Iterator[Item]:
    blocks = _blocks(message)
    for block in _of(blocks, "toolResult"):
        yield Said(place, "tool_result", _result(block["toolResult"], depth), time=time)
    parts: list[dict[str, Any]] = []
    for block in blocks:
        kind = next(iter(block), "")
        if kind not in _KNOWN:
            yield Other(place, kind)
        elif kind == "toolUse" and isinstance(block[kind], dict):
            parts.append(_call(block[kind]))
        elif depth == "whole" and kind != "toolResult":
            parts.append(_part(block))
    if parts:
        type_ = "assistant_message" if message.get("role") == "assistant" else "user_message"
        yield Said(place, type_, {"parts": parts}, time=time)


def _call(use: Block) -> dict[str, Any]:
    given = use.get("input")
    arguments = given if isinstance(given, str) else compact_text({} if given is None else given)
    call = {"type": "tool_call", "id": str(use.get("toolUseId", "")), "name": str(use.get("name", ""))}
    return {**call, "arguments": arguments}


def _part(block: Block) -> dict[str, Any]:
    return part_or_text(block, lambda block: part_of(_decoded(block)))


def _decoded(value: Any) -> Any:
    """A value in which bytes are base64, as Converse has them; the SDK stores them as objects that say so."""
    if isinstance(value, dict):
        if value.get(_BYTES) is True and isinstance(value.get("data"), str):
            b64decode(value["data"], validate=True)
            return value["data"]
        return {name: _decoded(each) for name, each in value.items()}
    return [_decoded(each) for each in value] if isinstance(value, list) else value


def _result(result: Block, depth: Depth) -> dict[str, Any]:
    blocks = _blocks(result)
    text = blocks[0].get("text") if len(blocks) == 1 else None
    data: dict[str, Any] = {"id": str(result.get("toolUseId", ""))}
    data["parts"] = [_part(block) for block in blocks] if depth == "whole" else []
    if result.get("status") == "error":
        data["is_error"] = True
    if is_ours(text):
        data["metadata"] = {"synthetic": True, "by": TURNWAL}
    elif text == _INVENTED and "is_error" in data:
        data["metadata"] = {"synthetic": True, "by": "strands"}
    return data


def _interrupted(path: Path, asked: list[Block], depth: Depth) -> Iterator[Item]:
    """What `agent.json` says of the calls of the last message, where the agent stopped for a person."""
    agent = found_in(path) or {}
    internal = agent.get("_internal_state")
    state = internal.get("interrupt_state") if isinstance(internal, dict) else None
    if not isinstance(state, dict) or state.get("activated") is not True:
        return
    pending = state.get("pending_tool_execution") or state.get("context")
    done = pending.get("completed_tool_results", pending.get("tool_results")) if isinstance(pending, dict) else None
    ids = [str(use.get("toolUseId", "")) for use in asked]
    for result in done if isinstance(done, list) else ():
        if isinstance(result, dict) and result.get("toolUseId") in ids:
            yield Said(path.name, "tool_result", _result(result, depth))
    for id in ids:
        yield Sign(path.name, id, "waiting", f"the agent stopped and waits for a person, {OR_KILLED}")


def _repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Copy the folder; answer what is open directly behind the message that asks, so that those behind it move on by a
    number, and put the truth in place of what the SDK invented. Files that are no record are left out.
    """
    lacking: dict[str, dict[str, OpenCall]] = {}
    for call in diagnosis.open:
        if call.evidence in ("requested", "dispatched", "ran"):
            lacking.setdefault(call.place, {})[call.id] = call
    invented = {call.id: call for call in diagnosis.open if call.evidence == "answered_synthetic"}
    with fresh_directory(out) as copy:
        shutil.copytree(found.path, copy, dirs_exist_ok=True, symlinks=True)
        folder = _folder(copy, found)
        for path in _unfinished(folder):
            path.unlink()
        for at, path in reversed(list(enumerate(_messages(folder)))):
            stored = found_in(path)
            if stored is None or _message(stored) is None:
                path.unlink()  # the SDK loads no session with such a file
                _count(folder / "agent.json", at, -1)
            elif invented:
                _put_right(path, stored, invented)
        for path in reversed(_messages(folder)):
            if path.name in lacking:
                _answer(folder, path, lacking[path.name])


def _put_right(path: Path, stored: dict[str, Any], invented: Mapping[str, OpenCall]) -> None:
    changed = False
    for name in ("message", "redact_message"):
        message = stored.get(name)
        for block in _of(_blocks(message), "toolResult") if isinstance(message, dict) else ():
            result = block["toolResult"]
            if result.get("toolUseId") in invented and "metadata" in _result(result, "calls"):
                result["content"] = [{"text": text_for(invented[result["toolUseId"]].risk)}]
                changed = True
    if changed:
        _write(path, stored)


def _answer(folder: Path, path: Path, lacking: Mapping[str, OpenCall]) -> None:
    """Put the results that a message lacks into the message of results behind it, or make one."""
    files = _messages(folder)
    at = files.index(path)
    stored = found_in(path) or {}
    made = {
        id: {"toolResult": {"toolUseId": id, "status": "error", "content": [{"text": text_for(call.risk)}]}}
        for id, call in lacking.items()
    }
    asked = [str(block["toolUse"].get("toolUseId", "")) for block in _of(_blocks(_message(stored) or {}), "toolUse")]
    behind = found_in(files[at + 1]) if at + 1 < len(files) else None
    message = None if behind is None else _message(behind)
    blocks = [] if message is None else _blocks(message)
    there = {block["toolResult"].get("toolUseId"): block for block in _of(blocks, "toolResult")}
    if behind is not None and message is not None and there.keys() & set(asked):
        # the SDK drops results that do not stand in the message behind the one that asks
        results = [(made | there)[id] for id in asked if id in made or id in there]
        message["content"] = results + [block for block in blocks if "toolResult" not in block]
        _write(files[at + 1], behind)
        return
    number = _number(path) + 1
    for moved in files[:at:-1]:
        _move(moved, _number(moved) + 1)
    content = [made[id] for id in asked if id in made]
    new = {**stored, "message": {"role": "user", "content": content}, "message_id": number, "redact_message": None}
    _write(path.with_name(f"message_{number}.json"), new)
    _count(folder / "agent.json", at, 1)


def _messages(folder: Path) -> list[Path]:
    return [path for _, path in numbered(folder / "messages", _MESSAGE)]


def _number(path: Path) -> int:
    match = _MESSAGE.fullmatch(path.name)
    return int(match[1]) if match is not None else -1


def _move(path: Path, number: int) -> None:
    """Give a message another number, in its name and in itself."""
    stored = found_in(path) or {}
    path.unlink()
    _write(path.with_name(f"message_{number}.json"), {**stored, "message_id": number})


def _count(path: Path, at: int, more: int) -> None:
    """Count so many messages more among those that left the context, where the one at this place left it."""
    agent = found_in(path)
    state = agent.get("conversation_manager_state") if agent is not None else None
    removed = state.get("removed_message_count") if isinstance(state, dict) else None
    if agent is not None and isinstance(state, dict) and isinstance(removed, int) and at < removed:
        _write(path, {**agent, "conversation_manager_state": {**state, "removed_message_count": removed + more}})


def _write(path: Path, value: Block) -> None:
    path.write_bytes(laid_out(value, 2))


FORMAT: Final = Format(
    name="strands",
    title="Strands Agents",
    on_resume="invents_answer",
    resume_text='The SDK answers such a call with "Tool was interrupted.", whatever happened.',
    recognises=_recognises,
    read=_read,
    sessions=_sessions,
    repair=_repair,
    places=("~/.strands/sessions",),
)
