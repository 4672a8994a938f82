"""Answering what an Anthropic request leaves unanswered, first in the very next message (AN1, AN2)."""

from collections.abc import Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]


def patched(messages: Sequence[Message], text: str) -> list[Message]:
    """The messages, with an error result for each `tool_use` that the next message does not answer."""
    made: list[Message] = []
    waiting: list[str] = []
    for given in messages:
        message = _answered(given, waiting, text, made) if waiting else given
        waiting = []
        made.append(message)
        if message.get("role") == "assistant":
            waiting = [str(block.get("id", "")) for block in _blocks(message) if block.get("type") == "tool_use"]
    if waiting:
        made.append({"role": "user", "content": [_result(id, text) for id in waiting]})
    return made


def _answered(message: Message, ids: list[str], text: str, before: list[Message]) -> Message:
    """The message behind a call, with the results that it lacks; one is put before it where it is not the user's."""
    blocks = _blocks(message)
    found = {block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"}
    lacking = [_result(id, text) for id in ids if id not in found]
    if not lacking:
        return message
    if message.get("role") != "user":
        before.append({"role": "user", "content": lacking})
        return message
    results = [block for block in blocks if block.get("type") == "tool_result"]
    others = [block for block in blocks if block.get("type") != "tool_result"]
    return {**message, "content": [*results, *lacking, *others]}


def _result(id: str, text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": True}


def _blocks(message: Message) -> list[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content) if isinstance(content, list) else []
