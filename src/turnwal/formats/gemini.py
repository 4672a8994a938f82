"""Arrays of Gemini contents.

A turn of function calls is followed by a turn with as many function responses, else the API answers 400; ids are
optional, and without them responses come in the order of their calls (ai.google.dev, function calling).
"""

from typing import Any, Final

from turnwal.formats.raw import Array, Message, format_of_array

_CALLS: Final = frozenset({"functionCall", "functionResponse", "function_call", "function_response"})


def _parts(message: Message) -> list[dict[str, Any]]:
    parts = message.get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _fits(message: Message) -> bool:
    return message.get("role", "user") in ("user", "model", "function", "tool") and isinstance(
        message.get("parts"), list
    )


FORMAT: Final = format_of_array(
    "gemini",
    "Gemini contents",
    Array(
        target="gemini",
        field="contents",
        fits=_fits,
        marks=lambda message: bool(_parts(message)) and "kind" not in message,
        counts=lambda message: any(part.keys() & _CALLS for part in _parts(message)),
    ),
    "The provider refuses a request in which a function call has no response.",
)
