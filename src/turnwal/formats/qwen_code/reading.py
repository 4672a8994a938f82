"""What a transcript of Qwen Code says: calls, responses, and the words around them.

Promises:
- Calls and responses are paired over the whole file, whatever branch they are on; what was rewound was said all the
  same, and so was what a compression took out of the conversation.
- Lines with one uuid are pieces of one message. A piece that comes twice is one.
- A record of a sub-agent is in a run of its own.
- The text of a response that Qwen Code shows where one is missing is no response.
"""

from collections.abc import Iterator
from typing import Any, Final, TypedDict

import msgspec

from turnwal.core.errors import TurnwalError
from turnwal.formats.format import Depth, Found
from turnwal.formats.items import TURNWAL, About, Fault, Item, Other, Said, Sign
from turnwal.formats.lenient import encoded, of_depths
from turnwal.formats.lines import records
from turnwal.formats.parts import call_part, text
from turnwal.formats.stamps import milliseconds
from turnwal.formats.wording import is_ours
from turnwal.transcript.gemini.parse import part_of

INVENTED: Final = "Tool result missing from saved history; the previous run likely ended before this tool completed."
TYPES: Final = frozenset({"user", "assistant", "tool_result", "system"})
SUBTYPES: Final = frozenset(
    {
        "agent_bootstrap",
        "agent_launch_prompt",
        "agent_retry",
        "agent_session_ready",
        "at_command",
        "attribution_snapshot",
        "background_task_completed",
        "branch_checkpoint",
        "chat_compression",
        "cron",
        "custom_title",
        "file_history_snapshot",
        "goal_runtime",
        "goal_state",
        "goal_turn_end",
        "managed_session_commit_v1",
        "managed_session_event_v1",
        "managed_session_header_v1",
        "mid_turn_user_message",
        "notification",
        "omni_recall",
        "parent_session",
        "realtime_message",
        "rewind",
        "session_approval_mode",
        "session_artifact_event",
        "session_artifact_snapshot",
        "session_execution_engine",
        "session_model",
        "session_notes",
        "session_source",
        "session_sources_snapshot",
        "slash_command",
        "turn_result",
        "ui_telemetry",
        "user_text_elements",
    }
)
"""The subtypes that are known."""


class _Part(TypedDict, total=False):
    functionCall: Any
    functionResponse: Any


class _Message(TypedDict, total=False):
    parts: list[_Part]


class _Result(TypedDict, total=False):
    callId: Any


class _Payload(TypedDict, total=False):
    completedToolCallIds: Any
    uiEvent: Any


class _Quick(TypedDict, total=False):
    """As much of a record as says something of calls."""

    uuid: Any
    type: Any
    subtype: Any
    sessionId: Any
    version: Any
    agentId: Any
    isSidechain: Any
    message: _Message
    toolCallResult: _Result
    systemPayload: _Payload


def _checked(value: Any) -> dict[str, Any]:
    if isinstance(value, dict) and isinstance(value.get("uuid"), str) and isinstance(value.get("type"), str):
        return value
    raise msgspec.ValidationError("it is no record")


quick, decode = of_depths(_Quick, _checked)


def read(found: Found, depth: Depth) -> Iterator[Item]:
    """Yield what the transcript says, in the order of its records."""
    reader = _Reader(whole=depth == "whole")
    for item in records(found.path, decode if depth == "whole" else quick):
        if isinstance(item, Fault):
            yield item
            continue
        number, record = item
        place = f"line {number}"
        try:
            yield from reader.record(place, record)
        except (AttributeError, KeyError, TypeError, TurnwalError) as error:
            yield Fault("corrupt", place, f"a record of an unknown shape ({type(error).__name__}: {error})")


class _Reader:
    """Where reading is."""

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._about = About()
        self._seen: set[tuple[str, str, str]] = set()
        """Uuid, kind and id of each call and response of the lines before."""
        self._pieces: set[tuple[str, str, str]] = set()
        """Those of this line: two calls of one message may share an id."""

    def record(self, place: str, record: dict[str, Any]) -> Iterator[Item]:
        """What one record says."""
        version, session = record.get("version"), record.get("sessionId")
        if version != self._about.version or session != self._about.session:
            self._about = About(_or_none(version), _or_none(session))
            yield self._about
        kind, subtype = record["type"], record.get("subtype")
        if kind not in TYPES:
            yield Other(place, kind)
        elif kind == "system":
            if not isinstance(subtype, str) or subtype not in SUBTYPES:
                yield Other(place, f"system/{subtype}")
            yield from _signs(place, subtype, record.get("systemPayload"))
        else:
            yield from self._said(place, record)

    def _said(self, place: str, record: dict[str, Any]) -> Iterator[Item]:
        run, time = run_of(record), milliseconds(record.get("timestamp")) if self._whole else None
        by_model = record["type"] == "assistant"
        responses, shown = [], []
        for part in parts_of(record):
            if isinstance(part.get("functionResponse"), dict):
                responses.append(part["functionResponse"])
            elif by_model and isinstance(part.get("functionCall"), dict):
                if not self._was_seen(record, "call", part["functionCall"]):
                    shown.append(_part(part))
            elif self._whole:
                shown.append(_part(part))
        for response in responses or bare_responses(record):
            if not self._was_seen(record, "response", response):
                yield Said(place, "tool_result", self._result(response), run, time)
        self._seen |= self._pieces
        self._pieces.clear()
        if shown:
            data: dict[str, Any] = {"parts": shown}
            if by_model and self._whole and isinstance(record.get("model"), str):
                data["model"] = record["model"]
            yield Said(place, "assistant_message" if by_model else "user_message", data, run, time)

    def _was_seen(self, record: dict[str, Any], kind: str, named: dict[str, Any]) -> bool:
        """Whether a call or response stands in an earlier line of the message; one without an id cannot be told."""
        piece = (record["uuid"], kind, text(named.get("id")))
        self._pieces.add(piece)
        return bool(piece[2]) and piece in self._seen

    def _result(self, response: dict[str, Any]) -> dict[str, Any]:
        data: dict[str, Any] = {"id": text(response.get("id"))}
        said, failed = said_by(response)
        if self._whole:
            data |= {"name": text(response.get("name")), "parts": [{"type": "text", "content": said}]}
            if failed:
                data["is_error"] = True
        if is_ours(said):
            data["metadata"] = {"synthetic": True, "by": TURNWAL}
        elif said == INVENTED:
            data["metadata"] = {"synthetic": True, "by": "Qwen Code"}
        return data


def _signs(place: str, subtype: object, payload: object) -> Iterator[Item]:
    """What system records prove about calls; both are written after the fact."""
    if not isinstance(payload, dict):
        return
    if subtype == "chat_compression":
        for id in payload.get("completedToolCallIds") or ():
            yield Sign(place, text(id), "ran", "chat_compression: it lists the call among those that were completed")
    elif subtype == "ui_telemetry":
        event = payload.get("uiEvent")
        id = (event.get("call_id") or event.get("callId")) if isinstance(event, dict) else None
        if isinstance(id, str):
            yield Sign(place, id, "ran", "ui_telemetry: an event about the call, written when it had ended")


def run_of(record: dict[str, Any]) -> str:
    """The run that a record belongs to: that of its sub-agent, or the main one."""
    agent = record.get("agentId")
    if isinstance(agent, str) and agent:
        return f"agent {agent}"[:100]
    return "sidechain" if record.get("isSidechain") is True else "main"


def parts_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of the message of a record."""
    message = record.get("message")
    parts = message.get("parts") if isinstance(message, dict) else None
    if not isinstance(parts, list):
        return []
    return (
        parts if all(part.__class__ is dict for part in parts) else [part for part in parts if isinstance(part, dict)]
    )


def calls_of(record: dict[str, Any]) -> list[str]:
    """The ids of the calls of a record, in order."""
    calls = (part.get("functionCall") for part in parts_of(record))
    return [text(call.get("id")) for call in calls if isinstance(call, dict)]


def responses_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The responses of a record, in order."""
    found = (part.get("functionResponse") for part in parts_of(record))
    responses = [response for response in found if isinstance(response, dict)]
    return responses or bare_responses(record)


def said_by(response: dict[str, Any]) -> tuple[str, bool]:
    """What a response says, and whether that is an error."""
    found = response.get("response")
    failed = isinstance(found, dict) and "error" in found
    name = "error" if failed else "output"
    said = found[name] if isinstance(found, dict) and found.keys() == {name} else found
    return said if isinstance(said, str) else encoded(said).decode(), failed


def bare_responses(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The response of a record that has only what the screen shows of it."""
    result = record.get("toolCallResult")
    if record["type"] != "tool_result" or not isinstance(result, dict) or not isinstance(result.get("callId"), str):
        return []
    return [{"id": result["callId"], "response": {"output": text(result.get("resultDisplay"))}}]


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """A part for a part of a content, as Gemini's API knows it, or as much as can be made of an odd one."""
    call = part.get("functionCall")
    if isinstance(call, dict):
        made = call_part(call.get("id"), call.get("name"), call.get("args"))
        signature = part.get("thoughtSignature")
        return made | {"native": {"provider": "gemini", "block": part}} if isinstance(signature, str) else made
    return part_of(part)


def _or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
