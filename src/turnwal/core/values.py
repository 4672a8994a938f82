"""What the fields of an event's data say, read as they must be: absent, odd and unknown values included.

Unknown values of an enumeration get the pessimistic reading.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from turnwal.core.line import Event, compact

Question = Literal["pending", "granted", "denied", "void"]
Dispatch = Literal["durable", "none"]

_encode = msgspec.json.Encoder().encode
_TEXT_PART: Final = {"type", "content"}


def arguments_of(part: Mapping[str, Any]) -> str | None:
    """The arguments of a call as text: as the model wrote them, or our own compact form; blank counts as `{}` (F36)."""
    arguments = part.get("arguments")
    if arguments is None:
        return None
    if not isinstance(arguments, str):
        return compact(arguments)
    if part.get("format") != "text" and not arguments.strip():
        return "{}"
    return arguments


def parse_arguments(arguments: str | None) -> dict[str, Any] | None:
    """The arguments as an object, or None when they do not parse to one (F30). Absent ones are `{}`."""
    if arguments is None or not arguments.strip():
        return {}
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def id_of(data: Mapping[str, Any]) -> str:
    """The provider's id; absent counts as empty."""
    value = data.get("id")
    return value if isinstance(value, str) else ""


def name_of(data: Mapping[str, Any]) -> str | None:
    """The tool's name, or None."""
    value = data.get("name")
    return value if isinstance(value, str) else None


def text_of(data: Mapping[str, Any], name: str) -> str | None:
    """A field that holds text, or None."""
    value = data.get(name)
    return value if isinstance(value, str) else None


def is_synthetic(data: Mapping[str, Any]) -> bool:
    """Whether recovery or a live closer made the event."""
    metadata = data.get("metadata")
    return isinstance(metadata, dict) and metadata.get("synthetic") is True


def is_redacted(part: Mapping[str, Any]) -> bool:
    """Whether the arguments of a call are not those that the model wrote."""
    return part.get("redacted") is True


def asking_parts(message: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    """The parts of a message that ask for calls, with their index."""
    parts = message.get("parts")
    if not isinstance(parts, list):
        return []
    return [
        (index, part) for index, part in enumerate(parts) if isinstance(part, dict) and part.get("type") == "tool_call"
    ]


def content_of(data: Mapping[str, Any]) -> int:
    """A hash of what a result says, never 0."""
    parts = data.get("parts")
    if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], dict) and parts[0].keys() == _TEXT_PART:
        text = parts[0]["content"]
        if isinstance(text, str):
            return hash((text, data.get("is_error") is True)) or 1
    content = [data.get("parts", []), data.get("is_error") is True]
    try:
        return hash(_encode(content)) or 1
    except (ValueError, OverflowError, RecursionError):  # lone surrogates, integers of thousands of digits
        return hash(compact(content)) or 1


def is_repair(event: Event) -> bool:
    """Whether an event is one that recovery appends."""
    data = event.data
    match event.type:
        case "tool_result" | "tool_outcome":
            return is_synthetic(data)
        case "approval_response":
            return data.get("decision") == "void"
        case "step_end":
            return data.get("outcome") == "interrupted"
        case "turn_end":
            return data.get("reason") == "interrupted"
        case _:
            return False


def dispatch_of(data: Mapping[str, Any]) -> Dispatch | None:
    """What a turn or step declares about its dispatches; an unknown value is read as `none`."""
    declared = data.get("dispatch")
    if declared is None:
        return None
    return "durable" if declared == "durable" else "none"


def decision_of(data: Mapping[str, Any]) -> Question:
    """What an approval response decides; an unknown value is read as a grant, which rules nothing out."""
    match data.get("decision"):
        case "denied":
            return "denied"
        case "void":
            return "void"
        case _:
            return "granted"


def attempt_of(data: Mapping[str, Any]) -> int:
    """Which attempt a dispatch or outcome is about; 1 where it does not say."""
    return number_of(data, "attempt") or 1


def object_of(data: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """A field that holds an object, or None."""
    value = data.get(name)
    return value if isinstance(value, dict) else None


def number_of(data: Mapping[str, Any], name: str) -> int | None:
    """A field that holds an integer, or None."""
    value = data.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
