"""Text for what a target has no form for, and text that every target can take.

Promises: lone surrogates become U+FFFD on the way out (F35); what words stand for is named, with its kind and length.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Any, Final

import msgspec

from turnwal.transcript.message import Asked
from turnwal.transcript.target import Notes, Wire, copied

BRIDGE: Final = "(The conversation goes on.)"
"""What stands where a target wants a message and the log has none; never stored (F32)."""

_NAME_CHARS_MAX: Final = 64
"""The least that a provider allows for the name of a tool."""
_ALLOWED: Final = re.compile(rf"[a-zA-Z0-9_-]{{1,{_NAME_CHARS_MAX}}}")
_NOT_ALLOWED: Final = re.compile(r"[^a-zA-Z0-9_-]")

_encode: Final = msgspec.msgpack.Encoder().encode
"""Takes no half characters, as JSON does, and looks for nothing else in a text."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def sendable(text: str) -> str:
    """The text with U+FFFD for each half of a character, which no strict parser takes."""
    return text if text.isascii() or not _SURROGATE.search(text) else _SURROGATE.sub("\ufffd", text)


def is_text(part: Mapping[str, Any]) -> bool:
    """Whether a part is text."""
    return part.get("type") == "text" and isinstance(part.get("content"), str)


def plain_text(part: Mapping[str, Any]) -> str | None:
    """The text of a part that is text, not blank, and keeps no block: every target takes that as it is.

    None for all others, which a target has to look at more closely.
    """
    text = part.get("content")
    plain = part.get("type") == "text" and "native" not in part and isinstance(text, str)
    return text if plain and text and not text.isspace() else None


def lone_text(parts: Sequence[Mapping[str, Any]]) -> str | None:
    """The plain text that parts are, as those of users and tools are as a rule; None for all others."""
    return plain_text(parts[0]) if len(parts) == 1 else None


def text_of(parts: Iterable[Mapping[str, Any]]) -> str:
    """The text of the parts that are text, each on lines of its own."""
    return "\n".join(sendable(part["content"]) for part in parts if is_text(part))


def words_of(part: Mapping[str, Any]) -> str:
    """What is said in place of a part that cannot be sent there."""
    kind = part.get("mime_type") or part.get("modality") or part.get("type") or "part"
    content = part.get("content")
    size = f", {len(content) * 3 // 4:,} bytes" if isinstance(content, str) and part.get("type") == "blob" else ""
    where = f" at {part['uri']}" if isinstance(part.get("uri"), str) and not part["uri"].startswith("data:") else ""
    return sendable(f"[{kind}{size}{where}: not sent here]")


def is_blank(text: str) -> bool:
    """Whether a text is empty or white space alone."""
    return not text or text.isspace()


def tool_name(name: str, seq: int, notes: Notes) -> str:
    """A tool's name as every provider takes it."""
    if _ALLOWED.fullmatch(name):
        return name
    allowed = _NOT_ALLOWED.sub("_", name)[:_NAME_CHARS_MAX] or "unnamed"
    notes.add("name_rewritten", f"the tool {name!r:.80} is called {allowed} here", seq)
    return allowed


def bridged(messages: Iterable[Wire], bridge: Wire, notes: Notes) -> list[Wire]:
    """The messages with a bridge between two neighbours of the assistant."""
    found: list[Wire] = []
    for message in messages:
        if found and found[-1]["role"] == message["role"] == "assistant":
            notes.add("bridge_added", f"messages[{len(found)}]: what stands before reasoning is a message of its own")
            found.append(copied(bridge))
        found.append(message)
    return found


def wrapped(asked: Asked, seq: int, notes: Notes) -> dict[str, Any]:
    """Arguments that are no JSON object, inside one (F30)."""
    notes.add("arguments_wrapped", f"the arguments of {asked.name or 'a call'} are no JSON object", seq)
    return {"input" if asked.free_text else "incomplete_arguments": asked.arguments}


def scrubbed(value: Any) -> Any:
    """JSON data with no half characters in it; the same object where there is none."""
    try:
        _encode(value)
    except (UnicodeEncodeError, OverflowError):  # half a character, or an integer that only takes the slow way
        return _scrubbed(value)
    return value


def _scrubbed(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return sendable(value)
    if kind is list:
        items = [_scrubbed(item) for item in value]
        return value if all(map(is_, items, value)) else items
    if kind is dict:
        found = {sendable(name): _scrubbed(item) for name, item in value.items()}
        return value if all(map(is_, found.values(), value.values())) and found.keys() == value.keys() else found
    return value
