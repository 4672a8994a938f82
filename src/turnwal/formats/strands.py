"""Strands Agents (strands-agents/sdk-python at 1232230d): the folders of its `FileSessionManager`.

A message is a file of its own, written whole, in the order of the number in its name. The assistant's message is
stored before its tools run, and their results after all of them, so a call that had finished beside the one that was
killed has no result either. On load the SDK appends an error result "Tool was interrupted." for every call without one,
which says nothing of what happened. `agent.json` counts the messages that are no longer in the context of the model;
they are read all the same.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from turnwal.core.line import compact
from turnwal.formats.diagnosis import Diagnosis, OpenCall
from turnwal.formats.format import Depth, Format, Found, Sample
from turnwal.formats.items import TURNWAL, About, Fault, Item, Other, Said
from turnwal.formats.repairing import fresh_directory
from turnwal.formats.times import unix_ms
from turnwal.formats.wording import is_ours, text_for

Block = Mapping[str, Any]

_MESSAGE: Final = re.compile(r"message_(\d+)\.json")
_INVENTED: Final = "Tool was interrupted."
_SILENT: Final = frozenset(
    {"text", "toolUse", "toolResult", "image", "document", "video", "reasoningContent", "cachePoint", "guardContent"}
    | {"citationsContent"}
)
_decode = msgspec.json.Decoder().decode


def _recognises(sample: Sample) -> bool:
    return sample.kind == "directory" and {"session.json", "agents"} <= sample.names


def _sessions(sample: Sample) -> Iterator[Found]:
    for agent in sorted((sample.path / "agents").glob("agent_*")):
        if agent.is_dir():
            yield Found(FORMAT, sample.path, agent.name.removeprefix("agent_"))


def _read(found: Found, depth: Depth) -> Iterator[Item]:
    yield About(session=found.session)
    expected = 0
    for number, path in _messages(found.path, str(found.session)):
        if number > expected:
            yield Fault("gap", path.name, f"message {expected} is missing")
        expected = number + 1
        record = _object(path)
        message = None if record is None else record.get("redact_message") or record.get("message")
        if record is None or not isinstance(message, dict):
            yield Fault("torn", path.name, "it is no JSON object with a message")
            continue
        yield from _said(path.name, message, unix_ms(record.get("created_at")), depth)


def _said(place: str, message: Block, time: int | None, depth: Depth) -> Iterator[Item]:
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    parts: list[dict[str, Any]] = []
    for block in blocks:
        kind = next(iter(block), "")
        if kind == "toolUse":
            use = block["toolUse"]
            arguments = compact(use.get("input") if isinstance(use.get("input"), dict) else {})
            call = {"type": "tool_call", "id": str(use.get("toolUseId", "")), "name": str(use.get("name", ""))}
            parts.append({**call, "arguments": arguments})
        elif kind == "text" and depth == "whole":
            parts.append({"type": "text", "content": str(block["text"])})
        elif kind not in _SILENT:
            yield Other(place, str(kind))
    for block in blocks:
        if "toolResult" in block:
            yield Said(place, "tool_result", _result(block["toolResult"]), time=time)
    if parts:
        yield Said(
            place,
            "assistant_message" if message.get("role") == "assistant" else "user_message",
            {"parts": parts},
            time=time,
        )


def _result(result: Block) -> dict[str, Any]:
    content = result.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    text = "\n".join(str(block["text"]) if "text" in block else compact(block) for block in blocks)
    data: dict[str, Any] = {"id": str(result.get("toolUseId", "")), "parts": [{"type": "text", "content": text}]}
    if result.get("status") == "error":
        data["is_error"] = True
    if is_ours(text):
        data["metadata"] = {"synthetic": True, "by": TURNWAL}
    elif text == _INVENTED:
        data["metadata"] = {"synthetic": True, "by": "strands"}
    return data


def _messages(session: Path, agent: str) -> list[tuple[int, Path]]:
    """The files of an agent's messages by their numbers: a name of more digits comes first by letters."""
    folder = session / "agents" / f"agent_{agent}" / "messages"
    names = ((_MESSAGE.fullmatch(path.name), path) for path in folder.glob("message_*.json"))
    return sorted((int(match[1]), path) for match, path in names if match is not None)


def _object(path: Path) -> dict[str, Any] | None:
    try:
        value = _decode(path.read_bytes())
    except (msgspec.MsgspecError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Copy the folder; answer what is open directly behind the message that asks, so that those behind it move on by a
    number, and put the truth in place of what the SDK invented.
    """
    agent = str(found.session)
    lacking: dict[str, list[OpenCall]] = {}
    for call in diagnosis.open:
        if call.evidence in ("requested", "dispatched", "ran"):
            lacking.setdefault(call.place, []).append(call)
    invented = {call.id: call for call in diagnosis.open if call.evidence == "answered_synthetic"}
    with fresh_directory(out) as copy:
        shutil.copytree(found.path, copy, dirs_exist_ok=True)
        for _, path in _messages(copy, agent) if invented else ():
            _put_right(path, invented)
        for number, path in reversed(_messages(copy, agent)):
            if path.name in lacking:
                _move_on(_messages(copy, agent), number)
                _add(path, number + 1, lacking[path.name])


def _move_on(messages: list[tuple[int, Path]], behind: int) -> None:
    """Give the messages behind a number the next one each."""
    for number, path in reversed(messages):
        if number > behind:
            record = _object(path)
            moved = path.with_name(f"message_{number + 1}.json")
            path.rename(moved)
            if record is not None:
                moved.write_bytes(msgspec.json.encode({**record, "message_id": number + 1}))


def _put_right(path: Path, invented: Mapping[str, OpenCall]) -> None:
    record = _object(path)
    if record is None:
        return
    changed = False
    for name in ("message", "redact_message"):
        message = record.get(name)
        for block in message.get("content", ()) if isinstance(message, dict) else ():
            result = block.get("toolResult") if isinstance(block, dict) else None
            if isinstance(result, dict) and result.get("toolUseId") in invented and "metadata" in _result(result):
                result["content"] = [{"text": text_for(invented[result["toolUseId"]].risk)}]
                changed = True
    if changed:
        path.write_bytes(msgspec.json.encode(record))


def _add(last: Path, number: int, asked: list[OpenCall]) -> None:
    """A message of results, in the order of the calls, with the times of the message before it."""
    before = _object(last) or {}
    results = [
        {"toolResult": {"toolUseId": call.id, "status": "error", "content": [{"text": text_for(call.risk)}]}}
        for call in asked
    ]
    record = {**before, "message": {"role": "user", "content": results}, "message_id": number, "redact_message": None}
    (last.parent / f"message_{number}.json").write_bytes(msgspec.json.encode(record))


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
