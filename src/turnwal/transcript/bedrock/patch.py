"""Answering what a Converse request leaves unanswered, first in the very next message (BE1)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from turnwal.transcript.gaps import Shape, filled

Wire = Mapping[str, Any]


def patched(messages: Sequence[Wire], text: str) -> list[Wire]:
    """The messages, with an error result for each `toolUse` that the next message does not answer."""
    return filled(messages, _SHAPE, text)


def _asked(block: Wire) -> str | None:
    return str(block["toolUse"].get("toolUseId", "")) if isinstance(block.get("toolUse"), Mapping) else None


def _answered(block: Wire) -> str | None:
    return str(block["toolResult"].get("toolUseId", "")) if isinstance(block.get("toolResult"), Mapping) else None


def _answer(call: Wire, text: str) -> Wire:
    id = call["toolUse"].get("toolUseId", "")
    return {"toolResult": {"toolUseId": id, "content": [{"text": text}], "status": "error"}}


def _text(text: str) -> Wire:
    return {"text": text}


_SHAPE: Final = Shape("content", "assistant", "user", _asked, _answered, _answer, _text)
