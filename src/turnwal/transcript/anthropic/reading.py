"""What a list of messages says, be it of whatever shape: what `check.py` reads it with, and nothing raises."""

from collections.abc import Mapping, Sequence
from typing import Any


def role_of(message: object) -> str | None:
    """The role of a message, or None."""
    return text_in(message, "role") if isinstance(message, dict) else None


def blocks_of(message: object) -> list[Mapping[str, Any]]:
    """The blocks of a message; none where its content is text."""
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def kind_of(block: Mapping[str, Any]) -> str:
    """The type of a block; empty where it has none."""
    return text_in(block, "type") or ""


def text_in(block: Mapping[str, Any], name: str) -> str | None:
    """A field that holds text, or None."""
    value = block.get(name)
    return value if isinstance(value, str) else None


def is_kind(block: Mapping[str, Any], kind: str) -> bool:
    """Whether a block is of a type."""
    return block.get("type") == kind


def group_from(messages: Sequence[Any], index: int) -> Sequence[Any]:
    """The messages from an index on that count as one: neighbours of one role do."""
    end = index
    while end < len(messages) and (end == index or role_of(messages[end]) == role_of(messages[index])):
        end += 1
    return messages[index:end]
