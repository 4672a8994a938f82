"""OpenHands software-agent-sdk (OpenHands/software-agent-sdk at 611629e6): the event files of a conversation.

An event is a file, numbered from 0 without gaps: a gap hides everything behind it from the tool. An `ActionEvent` is
stored before its tool runs; an `ObservationEvent`, a `UserRejectObservation` and an `AgentErrorEvent` answer it. An
action of null is a call that failed its validation and was never dispatched. `base_state.json` names the leaf of the
branch that goes on; after a crash it may still be the user's message, so that the calls are forgotten, or the calls are
run again. The agent server writes an `AgentErrorEvent` at its restart, which says nothing of what happened.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import msgspec

from turnwal.core.line import compact
from turnwal.formats.diagnosis import Diagnosis, OpenCall
from turnwal.formats.format import Depth, Format, Found, Sample
from turnwal.formats.items import TURNWAL, About, Fault, Item, Other, Said, Sign
from turnwal.formats.repairing import fresh_directory
from turnwal.formats.times import unix_ms
from turnwal.formats.wording import is_ours, text_for

Event = dict[str, Any]

_FILE: Final = re.compile(r"event-(\d+)-(.+)\.json")
_INVENTED: Final = ("restart", "interrupted")
"""What the error of the agent server says that it writes for a call that it finds unanswered."""
_SILENT: Final = frozenset(
    {
        "SystemPromptEvent",
        "PauseEvent",
        "Condensation",
        "CondensationRequest",
        "CondensationSummaryEvent",
        "ConversationStateUpdateEvent",
        "ConversationErrorEvent",
        "TokenEvent",
        "LLMCompletionLogEvent",
    }
)
_decode = msgspec.json.Decoder().decode


def _recognises(sample: Sample) -> bool:
    return sample.kind == "directory" and {"base_state.json", "events"} <= sample.names


def _read(found: Found, depth: Depth) -> Iterator[Item]:
    yield About(session=found.path.name)
    expected = 0
    for number, path in _events(found.path):
        if number > expected:
            yield Fault("gap", path.name, f"event {expected} is missing, and the tool sees none behind it")
        elif number < expected:
            yield Fault("duplicate", path.name, f"a second event {number}")
        expected = number + 1
        event = _object(path)
        if event is None:
            yield Fault("torn", path.name, "it is no JSON object")
        else:
            yield from _items(path.name, event, depth)


def _items(place: str, event: Event, depth: Depth) -> Iterator[Item]:
    kind = str(event.get("kind"))
    time = unix_ms(event.get("timestamp"))
    if kind == "ActionEvent":
        if event.get("action") is not None:
            yield Said(place, "assistant_message", {"parts": [*_thoughts(event, depth), _call(event)]}, time=time)
    elif kind in ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent"):
        yield Said(place, "tool_result", _result(kind, event), time=time)
    elif kind == "MessageEvent":
        if depth == "whole":
            yield _message(place, event, time)
    elif kind == "HookExecutionEvent":
        id = event.get("tool_call_id")
        if isinstance(id, str) and event.get("hook_event_type") == "PostToolUse":
            yield Sign(place, id, "ran", "a hook ran after the tool")
    elif kind not in _SILENT:
        yield Other(place, kind)


def _call(event: Event) -> dict[str, Any]:
    call = event.get("tool_call")
    arguments = call.get("arguments") if isinstance(call, dict) else None
    text = arguments if isinstance(arguments, str) else compact(arguments or {})
    return {"type": "tool_call", "id": _call_id(event), "name": str(event.get("tool_name", "")), "arguments": text}


def _thoughts(event: Event, depth: Depth) -> list[dict[str, Any]]:
    return _texts(event.get("thought")) if depth == "whole" else []


def _result(kind: str, event: Event) -> dict[str, Any]:
    data: dict[str, Any] = {"id": _call_id(event)}
    if kind == "ObservationEvent":
        observation = event.get("observation")
        observation = observation if isinstance(observation, dict) else {}
        data["parts"] = _texts(observation.get("content"))
        if observation.get("is_error") is True:
            data["is_error"] = True
        return data
    text = str(event.get("error") if kind == "AgentErrorEvent" else event.get("rejection_reason", "rejected"))
    data |= {"is_error": True, "parts": [{"type": "text", "content": text}]}
    if is_ours(text):
        data["metadata"] = {"synthetic": True, "by": TURNWAL}
    elif kind == "AgentErrorEvent" and any(word in text.lower() for word in _INVENTED):
        data["metadata"] = {"synthetic": True, "by": "openhands"}
    return data


def _message(place: str, event: Event, time: int | None) -> Said:
    message = event.get("llm_message")
    content = message.get("content") if isinstance(message, dict) else None
    said = "assistant_message" if event.get("source") == "agent" else "user_message"
    return Said(place, said, {"parts": _texts(content)}, time=time)


def _texts(content: object) -> list[dict[str, Any]]:
    blocks = content if isinstance(content, list) else []
    return [
        {"type": "text", "content": block["text"]}
        for block in blocks
        if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]


def _call_id(event: Mapping[str, Any]) -> str:
    return str(event.get("tool_call_id", ""))


def _events(session: Path) -> list[tuple[int, Path]]:
    names = ((_FILE.fullmatch(path.name), path) for path in (session / "events").glob("event-*.json"))
    return sorted((int(match[1]), path) for match, path in names if match is not None)


def _object(path: Path) -> Event | None:
    try:
        value = _decode(path.read_bytes())
    except (msgspec.MsgspecError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Copy the folder; put the truth in place of what the server invented, and behind the last event one that answers
    each open call, with the leaf on the last of them.
    """
    asked = [call for call in diagnosis.open if call.evidence in ("requested", "dispatched", "ran")]
    invented = {call.id: call for call in diagnosis.open if call.evidence == "answered_synthetic"}
    with fresh_directory(out) as copy:
        shutil.copytree(found.path, copy, dirs_exist_ok=True)
        for _, path in _events(copy) if invented else ():
            event = _object(path)
            if event is not None and event.get("kind") == "AgentErrorEvent" and _call_id(event) in invented:
                path.write_bytes(msgspec.json.encode({**event, "error": text_for(invented[_call_id(event)].risk)}))
        if asked:
            _answer(copy, asked)


def _answer(copy: Path, asked: list[OpenCall]) -> None:
    number, last = _events(copy)[-1]
    before = _object(last) or {}
    leaf = before.get("id")
    for offset, call in enumerate(asked, start=1):
        id = str(UUID(bytes=sha256(f"turnwal\n{call.place}\n{call.id}".encode("utf-8", "surrogatepass")).digest()[:16]))
        event = {"kind": "AgentErrorEvent", "id": id, "timestamp": before.get("timestamp"), "source": "agent"}
        event |= {"tool_name": call.name or "", "tool_call_id": call.id, "error": text_for(call.risk)}
        if "parent_id" in before:
            event["parent_id"] = leaf
        (copy / "events" / f"event-{number + offset:05}-{id}.json").write_bytes(msgspec.json.encode(event))
        leaf = id
    state = copy / "base_state.json"
    told = _object(state)
    if told is not None and "leaf_event_id" in told:
        state.write_bytes(msgspec.json.encode({**told, "leaf_event_id": leaf}))


FORMAT: Final = Format(
    name="openhands",
    title="OpenHands",
    on_resume="runs_again",
    resume_text="OpenHands runs such a call again, or goes on from before it, so that the model knows nothing of it.",
    recognises=_recognises,
    read=_read,
    repair=_repair,
    unique_ids=True,
    places=("~/.openhands/conversations",),
)
