"""Blocks of a provider's shape, as a tool has stored them, as parts of a transcript."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from turnwal.core.errors import InvalidEvent
from turnwal.core.line import compact
from turnwal.core.types import check_data

_ODD: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError, InvalidEvent)


def part_or_text(block: Mapping[str, Any], part_of: Callable[[Mapping[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """A block as a part; one of an odd shape is told as text, since nothing may be lost."""
    try:
        part = part_of(block)
        check_data("user_message", {"parts": [part]})
    except _ODD:
        return {"type": "text", "content": compact(block)}
    return part
