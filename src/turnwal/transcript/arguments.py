"""Arguments of calls, as text that holds a JSON object and that every strict parser takes.

Promises: what the model wrote goes back as it wrote it wherever it is such a text (F30, F36); half a character, which
it may hold as an escape, is U+FFFD (F35).
"""

import json
import re
from typing import Final, NoReturn

from turnwal.core.line import compact
from turnwal.transcript.message import Asked
from turnwal.transcript.target import Notes
from turnwal.transcript.words import sendable, wrapped

_ESCAPE: Final = re.compile(
    r"(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
"""An escape in JSON text; `half` is one that stands for half a character."""


def arguments_text(asked: Asked, seq: int, notes: Notes) -> str:
    """The arguments of a call of a function."""
    text = asked.arguments
    if asked.free_text or not _is_object(text):
        text = compact({name: sendable(value) for name, value in wrapped(asked, seq, notes).items()})
    if "\\u" not in text:
        return text
    whole = _ESCAPE.sub(lambda found: "\\ufffd" if found["half"] else found[0], text)
    if whole != text:
        notes.add("surrogate_replaced", f"half a character in the arguments of {asked.name} is U+FFFD here", seq)
    return whole


def _is_object(text: str) -> bool:
    """Whether a text is a JSON object; NaN and the infinities, which Python reads, are none of JSON."""
    try:
        return isinstance(json.loads(text, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        return False


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
