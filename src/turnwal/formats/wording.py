"""The words of a repaired copy: what the model reads where a tool left nothing, and how a repair is known again."""

from typing import Final

from turnwal.core.rules import Risk

MARK: Final = "turnwal"
"""The key under which a record of a repair says that it is one, where a format has an open place."""

UNKNOWN_TEXT: Final = "No outcome was recorded for this call. It may have run. Check before repeating."
NOT_STARTED_TEXT: Final = "This call did not run: it was never handed to the tool. It is safe to make it again."

OURS: Final = (UNKNOWN_TEXT, NOT_STARTED_TEXT)
"""Every text of a repair."""


def text_for(risk: Risk | None) -> str:
    """What the model reads in place of a result. It says neither who interrupted nor that the call failed."""
    return NOT_STARTED_TEXT if risk == "tool_not_started" else UNKNOWN_TEXT


def is_ours(text: object) -> bool:
    """Whether a result is one of a repair: where a format has no open place, the text itself is the mark."""
    return isinstance(text, str) and text in OURS
