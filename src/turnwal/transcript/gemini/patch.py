"""Answering what a Gemini request leaves unanswered, in the very next content (GE1).

A call is known by its id, or by its name where it has none.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from turnwal.transcript.gaps import Shape, filled

Wire = Mapping[str, Any]


def patched(messages: Sequence[Wire], text: str) -> list[Wire]:
    """The contents, with a response for each function call that the next content does not respond to."""
    return filled(messages, _SHAPE, text)


def _named(part: Wire, field: str, other: str) -> str | None:
    value = part.get(field, part.get(other))
    return str(value.get("id") or value.get("name", "")) if isinstance(value, Mapping) else None


def _asked(part: Wire) -> str | None:
    return _named(part, "functionCall", "function_call")


def _answered(part: Wire) -> str | None:
    return _named(part, "functionResponse", "function_response")


def _answer(part: Wire, text: str) -> Wire:
    call = part.get("functionCall", part.get("function_call", {}))
    named = {name: call[name] for name in ("id", "name") if call.get(name)}
    return {"functionResponse": {**named, "response": {"error": text}}}


def _text(text: str) -> Wire:
    return {"text": text}


_SHAPE: Final = Shape("parts", "model", "user", _asked, _answered, _answer, _text)
