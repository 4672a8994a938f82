"""Answering what a Gemini request leaves unanswered, in the very next content (GE1).

A response means the call of its id; one without an id, as google-genai makes them, and one to a call without an id mean
the first call of its name that has no response yet.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from turnwal.transcript.gaps import Shape, filled

Wire = Mapping[str, Any]


def patched(messages: Sequence[Wire], text: str) -> list[Wire]:
    """The contents, with a response for each function call that the next content does not respond to."""
    return filled(messages, _SHAPE, text)


def _named(part: Wire, field: str, other: str) -> tuple[str, str] | None:
    """The id and the name of the call that a part is about."""
    value = part.get(field, part.get(other))
    return (str(value.get("id") or ""), str(value.get("name") or "")) if isinstance(value, Mapping) else None


def _asked(part: Wire) -> tuple[str, str] | None:
    return _named(part, "functionCall", "function_call")


def _answered(part: Wire) -> tuple[str, str] | None:
    return _named(part, "functionResponse", "function_response")


def _unanswered(calls: Sequence[Wire], responses: Sequence[Wire]) -> list[Wire]:
    free = list(calls)
    later = []
    for response in responses:
        id, _ = _answered(response) or ("", "")
        meant = next((call for call in free if id and (_asked(call) or ("", ""))[0] == id), None)
        if meant is None:
            later.append(response)
        else:
            free.remove(meant)
    for response in later:
        id, name = _answered(response) or ("", "")
        fits = (call for call in free if _is_of(_asked(call), name) and not (id and (_asked(call) or ("", ""))[0]))
        meant = next(fits, None)
        if meant is not None:
            free.remove(meant)
    return free


def _is_of(asked: tuple[str, str] | None, name: str) -> bool:
    return asked is not None and asked[1] == name


def _answer(part: Wire, text: str) -> Wire:
    call = part.get("functionCall", part.get("function_call", {}))
    named = {name: call[name] for name in ("id", "name") if call.get(name)}
    return {"functionResponse": {**named, "response": {"error": text}}}


def _text(text: str) -> Wire:
    return {"text": text}


_SHAPE: Final = Shape("parts", "model", "user", _asked, _answered, _answer, _text, _unanswered)
