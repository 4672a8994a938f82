"""Answering what a chat request leaves unanswered, in tool messages of their own behind the calls (OC1, MI1)."""

from collections.abc import Mapping, Sequence
from typing import Any

Wire = Mapping[str, Any]


def patched(messages: Sequence[Wire], text: str) -> list[Wire]:
    """The messages, with a tool message for each call that those behind it do not answer."""
    made: list[Wire] = []
    calls: list[str] = []
    for message in messages:
        if message.get("role") != "tool":
            made += [_answer(id, text) for id in calls]
            calls = _calls(message)
        elif (id := str(message.get("tool_call_id", ""))) in calls:
            calls.remove(id)
        made.append(message)
    return [*made, *(_answer(id, text) for id in calls)]


def _calls(message: Wire) -> list[str]:
    asked = message.get("tool_calls") if message.get("role") == "assistant" else None
    return [str(call.get("id", "")) for call in asked if isinstance(call, Mapping)] if isinstance(asked, list) else []


def _answer(id: str, text: str) -> Wire:
    return {"role": "tool", "tool_call_id": id, "content": text}
