"""LangChain's messages in their three shapes, as events.

Source: langchain-core 1.8 (`messages/`): an object of `langchain_core.messages`; `{"type": "ai", "data": {…}}`; and
`{"lc": …, "type": "constructor", "id": […, "AIMessage"], "kwargs": {…}}`, of which the name and the arguments are read
and nothing is revived. A state may also hold messages as the chat completions API has them (`role`, `content`).

Promises: what is no message is None, and an odd field of a message is passed over.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from turnwal.formats.items import TURNWAL
from turnwal.formats.langgraph.decoding import Built
from turnwal.formats.wording import MARK

_MODULES: Final = ("langchain_core.messages", "langchain.schema", "langchain.messages")
_KINDS: Final = {
    "AIMessage": "ai",
    "AIMessageChunk": "ai",
    "HumanMessage": "human",
    "HumanMessageChunk": "human",
    "SystemMessage": "system",
    "SystemMessageChunk": "system",
    "ToolMessage": "tool",
    "ToolMessageChunk": "tool",
    "ChatMessage": "chat",
    "FunctionMessage": "function",
    "RemoveMessage": "remove",
}
_ROLES: Final = {"assistant": "ai", "user": "human", "system": "system", "developer": "system", "tool": "tool"}
_TYPES: Final = {"ai": "assistant_message", "human": "user_message", "system": "system_message"}
_CALLS: Final = frozenset({"tool_use", "tool_call", "function_call", "invalid_tool_call"})
"""Blocks of content that repeat what `tool_calls` has."""

_INVENTED: Final = " was cancelled - another message came in before it could be completed."
"""How an answer ends that the middleware of deepagents (`patch_tool_calls.py`) writes for a call without one."""


class Message(NamedTuple):
    """One message."""

    kind: str
    """`ai`, `human`, `system`, `tool`, or a kind that is not read."""
    fields: Mapping[str, Any]

    @property
    def id(self) -> str | None:
        """What the state knows it by."""
        found = self.fields.get("id")
        return found if isinstance(found, str) and found else None

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The parts of its calls, with those whose arguments the client could not parse."""
        if self.kind != "ai":
            return []
        return [_call(call) for call in (*_dicts(self, "tool_calls"), *_dicts(self, "invalid_tool_calls"))]

    @property
    def answers(self) -> str | None:
        """The id of the call that it answers."""
        if self.kind != "tool":
            return None
        found = self.fields.get("tool_call_id")
        return found if isinstance(found, str) else ""


def message_of(value: object) -> Message | None:
    """The message that a value is, or None."""
    if isinstance(value, Built):
        kind = _KINDS.get(value.name) if value.module.startswith(_MODULES) else None
        return Message(kind, value.value) if kind is not None and isinstance(value.value, dict) else None
    if not isinstance(value, dict):
        return None
    kwargs, name, data = value.get("kwargs"), value.get("id"), value.get("data")
    if value.get("type") == "constructor" and isinstance(kwargs, dict) and isinstance(name, list) and name:
        kind = _KINDS.get(str(name[-1]))
        return None if kind is None else Message(kind, kwargs)
    kind = value.get("type")
    if kind in _KINDS.values() and isinstance(data, dict):
        return Message(str(kind), data)
    if isinstance(value.get("role"), str) and ("content" in value or "tool_calls" in value):
        kind = _ROLES.get(value["role"])
        return None if kind is None else Message(kind, value)
    return None


def asked(calls: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """The type and the data of the event of a message with these calls, without its other content."""
    return "assistant_message", {"parts": calls}


def said(message: Message, *, whole: bool = True) -> tuple[str, dict[str, Any]] | None:
    """The type and the data of its event, or None for a kind that is none; not `whole`: a result without content."""
    if message.kind == "tool":
        return "tool_result", _result(message, whole=whole)
    type_ = _TYPES.get(message.kind)
    if type_ is None:
        return None
    return type_, {"parts": [*_parts(message.fields.get("content")), *message.calls]}


def is_invented(content: object) -> bool:
    """Whether a result was written by a recovery that could not know it."""
    return isinstance(content, str) and content.startswith("Tool call ") and content.endswith(_INVENTED)


def _result(message: Message, *, whole: bool) -> dict[str, Any]:
    fields = message.fields
    data: dict[str, Any] = {"id": message.answers}
    if isinstance(fields.get("name"), str):
        data["name"] = fields["name"]
    data["parts"] = list(_parts(fields.get("content"))) if whole else []
    if fields.get("status") == "error":
        data["is_error"] = True
    extra = fields.get("additional_kwargs")
    if isinstance(extra, dict) and MARK in extra:
        data["metadata"] = {"synthetic": True, "by": TURNWAL}
    elif is_invented(fields.get("content")):
        data["metadata"] = {"synthetic": True, "by": "deepagents"}
    return data


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    told = call.get("function")  # as the chat completions API has it
    found = told if isinstance(told, dict) else call
    arguments = found.get("args", found.get("arguments"))
    part: dict[str, Any] = {"type": "tool_call", "id": call.get("id") if isinstance(call.get("id"), str) else ""}
    part["name"] = found["name"] if isinstance(found.get("name"), str) else ""
    part["arguments"] = arguments if isinstance(arguments, str) else _text(arguments)
    return part


def _text(arguments: object) -> str:
    return "{}" if arguments is None else msgspec.json.encode(arguments, enc_hook=plain).decode()


def _dicts(message: Message, name: str) -> list[dict[str, Any]]:
    found = message.fields.get(name)
    return [call for call in found if isinstance(call, dict)] if isinstance(found, (list, tuple)) else []


def _parts(content: object) -> Iterator[dict[str, Any]]:
    if isinstance(content, str):
        if content:
            yield {"type": "text", "content": content}
        return
    for block in content if isinstance(content, (list, tuple)) else ():
        if isinstance(block, str):
            yield {"type": "text", "content": block}
        elif isinstance(block, dict) and block.get("type") not in _CALLS:
            yield _part(block)


def _part(block: Mapping[str, Any]) -> dict[str, Any]:
    kind = block["type"] if isinstance(block.get("type"), str) else "unknown"
    if isinstance(block.get("text"), str):
        return {"type": "text", "content": block["text"]}
    if kind in ("thinking", "reasoning") and isinstance(block.get(kind), str):
        return {"type": "reasoning", "content": block[kind]}
    return _media(kind, block) or {"type": kind, "native": {"provider": "langchain", "block": plain(block)}}


def _media(kind: str, block: Mapping[str, Any]) -> dict[str, Any] | None:
    """The part of an image, a sound or a file: in LangChain's own form, or as the chat completions API has images."""
    told = block.get("image_url")
    url = told.get("url") if isinstance(told, dict) else told
    if isinstance(url, str):
        head, comma, data = url.partition(";base64,")
        if comma and head.startswith("data:"):
            return {"type": "blob", "modality": "image", "mime_type": head.removeprefix("data:"), "content": data}
        return {"type": "uri", "modality": "image", "uri": url}
    if kind not in ("image", "audio", "file", "video"):
        return None
    part: dict[str, Any] = {"modality": "document" if kind == "file" else kind}
    if isinstance(block.get("mime_type"), str):
        part["mime_type"] = block["mime_type"]
    for name, made in (("base64", {"type": "blob", "content": 0}), ("url", {"type": "uri", "uri": 0})):
        if isinstance(block.get(name), str):
            return {field: value or block[name] for field, value in made.items()} | part
    return None


def plain(value: Any) -> Any:
    """The value as JSON can hold it."""
    if isinstance(value, Built):
        return {"type": value.name, "value": plain(value.value)}
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{len(value):,} bytes"
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
