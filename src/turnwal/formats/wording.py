"""The words of a repaired copy: what the model reads where a tool left nothing, and how a repair is known again."""

from typing import Final

from turnwal.core.rules import NOT_STARTED, UNKNOWN, Risk, Verdict, text_for_model

MARK: Final = "turnwal"
"""The key under which a record of a repair says that it is one, where a format has an open place."""

UNKNOWN_TEXT: Final = text_for_model(Verdict(UNKNOWN, None, 9, ()), "verify_first", interrupted=False)
NOT_STARTED_TEXT: Final = text_for_model(Verdict(NOT_STARTED, "declared", 4, ()), "safe", interrupted=False)

OURS: Final = frozenset({UNKNOWN_TEXT, NOT_STARTED_TEXT})
"""Every text of a repair."""
OR_KILLED: Final = "or a person has agreed since, and it was killed in it"
"""What a wait may be as well, where a tool records that it asks a person and not what the person said."""
_LONGEST: Final = max(map(len, OURS))


def text_for(risk: Risk | None) -> str:
    """What the model reads in place of a result. It says neither who interrupted nor that the call failed."""
    return NOT_STARTED_TEXT if risk == NOT_STARTED else UNKNOWN_TEXT


def is_ours(text: object) -> bool:
    """Whether a result is one of a repair: where a format has no open place, the text itself is the mark."""
    return isinstance(text, str) and len(text) <= _LONGEST and text in OURS  # a long text is slow to look up
