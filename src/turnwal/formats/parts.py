"""Parts of messages made of what other tools recorded, whatever its JSON types are: a line takes each of them."""

from typing import Any

from turnwal.formats.lenient import encoded


def text(value: object) -> str:
    """A text as it is; anything else is empty."""
    return value if isinstance(value, str) else ""


def call_part(id: object, name: object, arguments: object) -> dict[str, Any]:
    """The part of a message that asks for a call; absent arguments are blank, an object is its JSON text."""
    said = "" if arguments is None else arguments if isinstance(arguments, str) else encoded(arguments).decode()
    return {"type": "tool_call", "id": text(id), "name": text(name), "arguments": said}
