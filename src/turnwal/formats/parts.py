"""Parts of messages made of what other tools recorded, whatever its JSON types are: a line takes each of them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from turnwal.core.errors import InvalidEvent
from turnwal.core.types import check_data
from turnwal.formats.lenient import compact_text, encoded

_ODD: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError, InvalidEvent)


def text(value: object) -> str:
    """A text as it is; anything else is empty."""
    return value if isinstance(value, str) else ""


def call_part(id: object, name: object, arguments: object) -> dict[str, Any]:
    """The part of a message that asks for a call; absent arguments are blank, an object is its JSON text."""
    said = "" if arguments is None else arguments if isinstance(arguments, str) else encoded(arguments).decode()
    return {"type": "tool_call", "id": text(id), "name": text(name), "arguments": said}


def part_or_text(block: Mapping[str, Any], part_of: Callable[[Mapping[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """A block as a part; one of an odd shape is told as text, since nothing may be lost."""
    try:
        part = part_of(block)
        check_data("user_message", {"parts": [part]})
    except _ODD:
        return {"type": "text", "content": compact_text(block)}
    return part
