"""Replies of the providers' own packages, as plain JSON data.

Promises: no package is imported; an object that can say itself as data does, by the names of the API, with what was not
sent left out. Data stays what it is; bytes become base64, as JSON has them. What stands beside a message never costs
the message: a value in it that no event holds is text.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from math import isfinite
from typing import Any, Final

from turnwal.core.errors import InvalidEvent, OverLimit
from turnwal.core.limits import INTEGER_DIGITS_MAX, NESTING_MAX
from turnwal.core.line import compact

_NOT_KEPT: Final = "(not kept: no text holds it)"
_FORMS: Final[Mapping[str, type]] = {"model": str, "response_id": str, "stop": str, "usage": dict}
"""What an event holds of a reply beside its parts, and as what."""
_INTEGER_END: Final[int] = 10**INTEGER_DIGITS_MAX
"""The first integer that no event holds."""


def plain(value: object) -> Any:
    """A reply, or a piece of one, as JSON data. Raises `InvalidEvent` for what cannot say itself as data."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return b64encode(value).decode("ascii")
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return plain(dump(mode="json", by_alias=True, exclude_unset=True))
    raise InvalidEvent(
        f"a {type(value).__name__} is no reply that turnwal can read",
        action="parse",
        subject=type(value).__name__,
        hint="pass the reply object of the provider's package, or its JSON as a dict",
    )


def opened(value: Any, depth: int = 6) -> Any:
    """A message with the objects of packages in it as data, wherever the form of a message has them; all else, and a
    message without any, is what was given. Raises `InvalidEvent` as `plain` does.
    """
    if isinstance(value, Mapping):
        if depth == 0:
            return value
        fields = {name: opened(item, depth - 1) for name, item in value.items()}
        return value if all(fields[name] is item for name, item in value.items()) else fields
    if isinstance(value, (list, tuple)):
        if depth == 0:
            return value
        items = [opened(item, depth - 1) for item in value]
        return value if all(made is item for made, item in zip(items, value, strict=True)) else items
    return plain(value) if callable(getattr(value, "model_dump", None)) else value


def with_rest(data: dict[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a message, with what else its reply says in `native.reply`, which is never sent.

    What a message says as text or as an object, and a gateway as anything else, is of that rest. In it, and in the
    usage, what no event holds (NaN, a depth of hundreds) is the text of its JSON.
    """
    odd = {name: data.pop(name) for name, form in _FORMS.items() if name in data and not isinstance(data[name], form)}
    rest = {**odd, **rest}
    if "usage" in data:
        data["usage"] = _holdable(data["usage"], 1)
    if rest:
        kept = _holdable(rest, 2)
        data["native"] = {"provider": data["provider"], **data.get("native", {}), "reply": kept}
    return data


def _holdable(value: Any, depth: int) -> Any:
    """The value as it can stand at a depth of the data of an event."""
    if depth < NESTING_MAX and isinstance(value, dict):
        return {name: _holdable(item, depth + 1) for name, item in value.items()}
    if depth < NESTING_MAX and isinstance(value, list):
        return [_holdable(item, depth + 1) for item in value]
    if _is_held(value):
        return value
    try:
        return told(value)
    except (RecursionError, ValueError):
        return _NOT_KEPT


def _is_held(value: object) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, int):
        return abs(value) < _INTEGER_END
    return not isinstance(value, (dict, list))


def rest_of(reply: Mapping[str, Any], told: AbstractSet[str]) -> dict[str, Any]:
    """What says something in a reply, without the fields that are told elsewhere."""
    return {name: value for name, value in without_nulls(reply).items() if name not in told}


def told(value: object) -> str:
    """Data as the text of a call's arguments; what no event holds (NaN, a depth of hundreds) stands there."""
    try:
        return compact(value)
    except (InvalidEvent, OverLimit):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def without_nulls(block: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a block that say something: an API takes an absent one for null."""
    return {name: value for name, value in block.items() if value is not None}
