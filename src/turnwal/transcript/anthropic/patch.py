"""Answering what an Anthropic request leaves unanswered, first in the very next message (AN1, AN2)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from turnwal.transcript.gaps import Shape, filled

Wire = Mapping[str, Any]


def patched(messages: Sequence[Wire], text: str) -> list[Wire]:
    """The messages, with an error result for each `tool_use` that the next message does not answer."""
    return filled(messages, _SHAPE, text)


def _asked(block: Wire) -> str | None:
    return str(block.get("id", "")) if block.get("type") == "tool_use" else None


def _answered(block: Wire) -> str | None:
    return str(block.get("tool_use_id", "")) if block.get("type") == "tool_result" else None


def _answer(call: Wire, text: str) -> Wire:
    return {"type": "tool_result", "tool_use_id": call.get("id", ""), "content": text, "is_error": True}


def _text(text: str) -> Wire:
    return {"type": "text", "text": text}


_SHAPE: Final = Shape("content", "assistant", "user", _asked, _answered, _answer, _text)
