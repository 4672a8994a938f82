"""Messages of Pydantic AI, as events.

Source: `messages.py` of pydantic/pydantic-ai at 4fda3898 (run as 2.68): a request has the parts that a model is given,
a response those that it made. A `retry-prompt` that names a tool answers a call; one that names none is a prompt.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from turnwal.formats.items import TURNWAL
from turnwal.formats.lenient import encoded
from turnwal.formats.wording import MARK

SYNTHESIZED: Final = "pydantic_ai_synthesized_tool_return"
"""The mark of `repair_messages` in the metadata of a result that it made."""

ERRORS: Final = frozenset({"failed", "retried"})
"""Outcomes that the library sends as an error."""

_PROVIDER: Final = "pydantic-ai"
_KNOWN: Final = frozenset(
    {
        "system-prompt",
        "user-prompt",
        "tool-return",
        "retry-prompt",
        "retry-feedback",
        "text",
        "thinking",
        "tool-call",
        "builtin-tool-call",
        "builtin-tool-return",
        "native-tool-call",
        "native-tool-return",
        "file",
        "compaction",
        "speech",
    }
)


def is_message(value: object) -> bool:
    """Whether a value is a request or a response."""
    return isinstance(value, dict) and value.get("kind") in ("request", "response") and _has_parts(value.get("parts"))


def _has_parts(parts: object) -> bool:
    return isinstance(parts, list) and all(isinstance(part, dict) and "part_kind" in part for part in parts)


def time_of(message: Mapping[str, Any]) -> int | None:
    """When the message was made, in Unix milliseconds."""
    told = message.get("timestamp")
    try:
        found = datetime.fromisoformat(told) if isinstance(told, str) else None
    except ValueError:
        return None
    return None if found is None else int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def calls_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The parts that ask for calls."""
    is_reply = message.get("kind") == "response"
    return [part for part in message["parts"] if part["part_kind"] == "tool-call"] if is_reply else []


def answered_by(part: Mapping[str, Any]) -> str | None:
    """The id of the call that a part of a request answers."""
    kind = part.get("part_kind")
    if kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name") is not None):
        return text_of(part.get("tool_call_id"))
    return None


def unknown_parts(message: Mapping[str, Any]) -> list[str]:
    """The kinds of its parts that this version does not know."""
    return [str(part["part_kind"]) for part in message["parts"] if part["part_kind"] not in _KNOWN]


def said(message: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a message: type and data."""
    if message["kind"] == "response":
        data: dict[str, Any] = {"parts": [_made(part) for part in message["parts"]]}
        if isinstance(message.get("model_name"), str):
            data["model"] = message["model_name"]
        if isinstance(message.get("provider_response_id"), str):
            data["response_id"] = message["provider_response_id"]
        if isinstance(message.get("finish_reason"), str):
            data["stop"] = message["finish_reason"]
        yield "assistant_message", data
        return
    for part in message["parts"]:
        kind = part["part_kind"]
        if answered_by(part) is not None:
            yield "tool_result", _result(part)
        else:
            type_ = "system_message" if kind == "system-prompt" else "user_message"
            yield type_, {"parts": list(_given(part.get("content")))}


def _made(part: Mapping[str, Any]) -> dict[str, Any]:
    """A part of what a model made."""
    kind, content = part["part_kind"], part.get("content")
    if kind == "tool-call":
        return call_of(part)
    if kind == "text" and isinstance(content, str):
        return {"type": "text", "content": content}
    if kind == "thinking":
        return {"type": "reasoning", "content": content} if isinstance(content, str) else {"type": "reasoning"}
    type_ = kind
    if kind.endswith("tool-call"):
        type_ = "server_tool_call"
    elif kind.endswith("tool-return"):
        type_ = "server_tool_call_response"
    made: dict[str, Any] = {"type": type_, "native": {"provider": _PROVIDER, "block": dict(part)}}
    if type_ != kind:
        made |= {"id": text_of(part.get("tool_call_id")), "name": text_of(part.get("tool_name"))}
    return made


def call_of(part: Mapping[str, Any]) -> dict[str, Any]:
    """The call that a part asks for: its arguments are an object, the text that the model wrote, or nothing."""
    args = part.get("args")
    arguments = args if isinstance(args, str) else json_of({} if args is None else args)
    id, name = text_of(part.get("tool_call_id")), text_of(part.get("tool_name"))
    return {"type": "tool_call", "id": id, "name": name, "arguments": arguments}


def _result(part: Mapping[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {"id": answered_by(part)}
    if isinstance(part.get("tool_name"), str):
        data["name"] = part["tool_name"]
    data["parts"] = list(_given(part.get("content")))
    if part["part_kind"] == "retry-prompt" or part.get("outcome") in ERRORS:
        data["is_error"] = True
    by = invented_by(part)
    if by is not None:
        data["metadata"] = {"synthetic": True, "by": by}
    return data


def invented_by(part: Mapping[str, Any]) -> str | None:
    """Who invented a result, if somebody did."""
    metadata = part.get("metadata")
    if not isinstance(metadata, dict):
        return None
    if MARK in metadata:
        return TURNWAL
    return "pydantic_ai" if metadata.get(SYNTHESIZED) is True else None


def _given(content: object) -> Iterator[dict[str, Any]]:
    """The parts of what a model is given: text, files, or what a tool returned."""
    if isinstance(content, str):
        if content:
            yield {"type": "text", "content": content}
        return
    for block in content if isinstance(content, list) and any(map(_is_block, content)) else [content]:
        if isinstance(block, str):
            yield {"type": "text", "content": block}
        elif isinstance(block, dict) and _is_block(block):
            yield _media(block)
        elif block is not None:
            yield {"type": "text", "content": json_of(block)}


def _is_block(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, dict) and isinstance(value.get("kind"), str))


def _media(block: Mapping[str, Any]) -> dict[str, Any]:
    kind = block["kind"]
    if isinstance(block.get("content"), str) and kind == "text":
        return {"type": "text", "content": block["content"]}
    mime = {"mime_type": block["media_type"]} if isinstance(block.get("media_type"), str) else {}
    modality = kind.removesuffix("-url")
    if kind.endswith("-url") and isinstance(block.get("url"), str):
        return {"type": "uri", "modality": modality, **mime, "uri": block["url"]}
    if kind == "binary" and isinstance(block.get("data"), str):
        modality = str(block.get("media_type", "")).partition("/")[0]
        modality = modality if modality in ("image", "audio", "video") else "document"
        content = block["data"].translate(_STANDARD)  # the library writes the alphabet that is safe in URLs
        return {"type": "blob", "modality": modality, **mime, "content": content}
    return {"type": kind, "native": {"provider": _PROVIDER, "block": dict(block)}}


_STANDARD: Final = str.maketrans("-_", "+/")


def json_of(value: object) -> str:
    """A value as compact JSON text."""
    return encoded(value).decode()


def text_of(value: object) -> str:
    """Text, or nothing for what is none."""
    return value if isinstance(value, str) else ""
