"""The formats by name, in the order in which a file is held against them."""

from importlib import import_module
from typing import Final, cast

from turnwal.core.errors import InvalidName
from turnwal.formats.format import Format

FORMATS: Final = (
    "claude_code",
    "codex",
    "qwen_code",
    "pi",
    "deepseek_harness",
    "langgraph",
    "openai_agents",
    "google_adk",
    "opencode",
    "goose",
    "strands",
    "openhands",
    "pydantic_ai",
    "anthropic",
    "openai_responses",
    "openai_chat",
    "gemini",
)
"""Each is a module here. Those that say most about themselves come first, bare arrays of messages last."""


def format_of(name: str) -> Format:
    """The format of that name. Raises `InvalidName`."""
    if name not in FORMATS:
        raise InvalidName(
            "no such format", action="read", subject=f"{name!r:.80}", hint=f"the formats are {', '.join(FORMATS)}"
        )
    return cast("Format", import_module(f"turnwal.formats.{name}").FORMAT)
