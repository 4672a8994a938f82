"""Arguments of calls as a request has them: an object, or text that holds one and that every strict parser takes.

Promises: what the model wrote goes back as it wrote it wherever it is such a text (F30, F36), NaN and the infinities,
which Python reads, being none; half a character, which it may hold as an escape, is U+FFFD (F35). What is nested deeper
than an event may be is none either, so that a request is the same however deep the caller's stack is.
"""

import json
import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final, NoReturn

import msgspec

from turnwal.core.limits import INTEGER_DIGITS_MAX, NESTING_MAX
from turnwal.core.line import compact
from turnwal.transcript.message import Asked
from turnwal.transcript.target import Notes
from turnwal.transcript.words import sendable, wrapped

_ESCAPE: Final = re.compile(
    r"(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
"""An escape in JSON text; `half` is one that stands for half a character."""


_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
"""A string in JSON text, or a bracket outside one."""
_STEPS: Final = {"{": 1, "[": 1, "}": -1, "]": -1}


def arguments_object(asked: Asked, seq: int, notes: Notes) -> dict[str, Any]:
    """The arguments of a call as an object; what is none stands inside one."""
    found = None if asked.free_text else _object(asked.arguments, _decode_finite)
    return wrapped(asked, seq, notes) if found is None else found


def served_arguments(part: Mapping[str, Any], seq: int, notes: Notes) -> dict[str, Any]:
    """The arguments of a call that the provider ran, as an object; an empty one for what is none."""
    text = part.get("arguments", "{}")
    found = _object(text, _decode_finite) if isinstance(text, str) else None
    if found is None:
        notes.add("part_left_out", f"the arguments of {part.get('name')} are no JSON object", seq)
    return found or {}


def arguments_text(asked: Asked, seq: int, notes: Notes) -> str:
    """The arguments of a call as text."""
    text = asked.arguments
    if asked.free_text or _object(text, _decode) is None:
        text = compact({name: sendable(value) for name, value in wrapped(asked, seq, notes).items()})
    if "\\u" not in text:
        return text
    whole = _ESCAPE.sub(lambda found: "\\ufffd" if found["half"] else found[0], text)
    if whole != text:
        notes.add("surrogate_replaced", f"half a character in the arguments of {asked.name} is U+FFFD here", seq)
    return whole


def _object(text: str, decode: Callable[[str], Any]) -> dict[str, Any] | None:
    """The JSON object that a text holds, or None."""
    if _is_too_deep(text):
        return None
    try:
        # a longer one may hold an integer that Python would not write again
        value = _decode_quickly(text) if len(text) <= INTEGER_DIGITS_MAX else _carefully(text, decode)
    except ValueError:
        value = _carefully(text, decode)
    return value if isinstance(value, dict) else None


def _is_too_deep(text: str) -> bool:
    """Whether a text of JSON is nested deeper than an event may be, found without nesting."""
    if text.count("{") + text.count("[") <= NESTING_MAX:
        return False
    depth = deepest = 0
    for found in _BRACKET.finditer(text):
        depth += _STEPS.get(found[0], 0)
        deepest = max(deepest, depth)
    return deepest > NESTING_MAX


def _carefully(text: str, decode: Callable[[str], Any]) -> Any:
    """What a text holds that the quick decoder does not take: half characters, and numbers that are no float."""
    try:
        return decode(text)
    except ValueError:
        return None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _finite(digits: str) -> float:
    """The number. Raises `ValueError` for one that is too large for a float: as such it could not be sent."""
    value = float(digits)
    if not isfinite(value):
        raise ValueError(digits)
    return value


_decode_quickly: Final = msgspec.json.Decoder().decode
_decode: Final = json.JSONDecoder(parse_constant=_refuse).decode
_decode_finite: Final = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite).decode
