"""Replies of the providers' own packages, as plain JSON data.

Promises: no package is imported; an object that can say itself as data does, by the names of the API, with what was not
sent left out. Data stays what it is; bytes become base64, as JSON has them.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from turnwal.core.errors import InvalidEvent


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


def without_nulls(block: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a block that say something: an API takes an absent one for null."""
    return {name: value for name, value in block.items() if value is not None}
