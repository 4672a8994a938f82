"""What a session of pi says: calls, results, and the words around them.

Promises:
- Calls and results are paired over the whole file, whatever branch they are on.
- A call of a message that stopped with `aborted` or `error` is open like any other, and it is said that the message did
  not finish: pi runs no call of such a message, and leaves the message out of what it sends. No record proves that.
- A result `No result provided` is one that pi puts in place of a missing one.
"""

from collections.abc import Iterator
from typing import Any, Final, TypedDict

import msgspec

from turnwal.formats.format import Depth, Found
from turnwal.formats.items import TURNWAL, About, Fault, Item, Other, Said, Sign
from turnwal.formats.lenient import of_depths
from turnwal.formats.lines import records
from turnwal.formats.parts import call_part, text
from turnwal.formats.stamps import milliseconds
from turnwal.formats.wording import MARK, UNKNOWN_TEXT, is_ours

VERSION_MAX: Final = 3
"""The newest version that is known; the first one wrote no number."""
INVENTED: Final = "No result provided"
UNFINISHED: Final = ("aborted", "error")
"""Why a message stopped whose calls pi does not run."""
CLOSED: Final = "closed"
"""The key, below that of our mark, of the calls of an unfinished message that a repair has closed."""

TYPES: Final = frozenset(
    {
        "message",
        "custom_message",
        "model_change",
        "thinking_level_change",
        "compaction",
        "branch_summary",
        "custom",
        "label",
        "session_info",
        "context_transform",
        "ephemeral",
        "leaf",
    }
)
"""The types of entries that are known, besides the header."""

ROLES: Final = frozenset(
    {
        "user",
        "assistant",
        "toolResult",
        "bashExecution",
        "custom",
        "hookMessage",
        "branchSummary",
        "compactionSummary",
    }
)


class _Block(TypedDict, total=False):
    type: Any
    id: Any
    name: Any
    arguments: Any
    text: Any


class _Message(TypedDict, total=False):
    role: Any
    content: str | list[_Block]
    toolCallId: Any
    isError: Any
    stopReason: Any


class _Quick(TypedDict, total=False):
    """As much of an entry as says something of calls."""

    type: Any
    id: Any
    version: Any
    timestamp: Any
    message: _Message
    turnwal: Any


def _checked(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        kind = value.get("type")
        if kind == "session" or (kind == "message" and isinstance(value.get("message"), dict)):
            return value
        # a block of a message has a type as well, and never a time of this kind
        if isinstance(kind, str) and kind != "message" and isinstance(value.get("timestamp"), str):
            return value
    raise msgspec.ValidationError("it is no entry")


quick, decode = of_depths(_Quick, _checked)


def read(found: Found, depth: Depth) -> Iterator[Item]:
    """Yield what the session says, in the order of its entries."""
    met = False
    for item in records(found.path, decode if depth == "whole" else quick):
        if isinstance(item, Fault):
            yield item
            continue
        number, value = item
        place = f"line {number}"
        if value["type"] == "session":
            if not met:
                met = True
                yield from _header(place, value)
            continue
        try:
            yield from _entry(place, value, whole=depth == "whole")
        except (AttributeError, KeyError, TypeError) as error:
            yield Fault("corrupt", place, f"an entry of an unknown shape ({type(error).__name__}: {error})")
    if not met:
        yield Fault("corrupt", "line 1", "there is no header: pi takes the file for empty")


def _header(place: str, header: dict[str, Any]) -> Iterator[Item]:
    version, id = header.get("version", 1), header.get("id")
    yield About(str(version), id if isinstance(id, str) else None)
    if not isinstance(version, int) or version > VERSION_MAX:
        yield Fault("too_new", place, f"version {version!s:.80}; {VERSION_MAX} is the newest known")


def _entry(place: str, entry: dict[str, Any], *, whole: bool) -> Iterator[Item]:
    kind = entry["type"]
    if kind not in TYPES:
        yield Other(place, kind)
        return
    time = milliseconds(entry.get("timestamp")) if whole else None
    if kind == "custom_message":
        if whole:
            yield Said(place, "user_message", {"parts": _parts(entry.get("content"))}, time=time)
        return
    if kind != "message":
        return
    message = entry["message"]
    role = message.get("role")
    if role == "assistant":
        yield from _asked(place, entry, time, whole=whole)
    elif role == "toolResult":
        yield Said(place, "tool_result", _result(message, whole=whole), time=time)
    elif not isinstance(role, str) or role not in ROLES:
        yield Other(place, f"message/{role}")
    elif whole and role in ("user", "custom", "hookMessage"):
        yield Said(place, "user_message", {"parts": _parts(message.get("content"))}, time=time)
    elif whole and role == "bashExecution":
        said = f"Ran `{message.get('command')}`\n{message.get('output')}"
        yield Said(place, "user_message", {"parts": [{"type": "text", "content": said}]}, time=time)


def _asked(place: str, entry: dict[str, Any], time: int | None, *, whole: bool) -> Iterator[Item]:
    message = entry["message"]
    content = message.get("content")
    parts = _parts(content) if whole else [_call(block) for block in blocks(content) if block.get("type") == "toolCall"]
    data: dict[str, Any] = {"parts": parts}
    if whole and isinstance(message.get("model"), str):
        data["model"] = message["model"]
    if whole or parts:
        yield Said(place, "assistant_message", data, time=time)
    reason = message.get("stopReason")
    if reason not in UNFINISHED:
        return
    closed = closed_in(entry)
    for id in calls_of(message):
        yield Sign(place, id, "requested", f"stopReason {reason}: the message did not finish; pi runs no call of it")
        if id in closed:
            parts = [{"type": "text", "content": UNKNOWN_TEXT}]
            ours = {"synthetic": True, "by": TURNWAL}
            yield Said(place, "tool_result", {"id": id, "parts": parts, "is_error": True, "metadata": ours}, time=time)


def _result(message: dict[str, Any], *, whole: bool) -> dict[str, Any]:
    content = message.get("content")
    data: dict[str, Any] = {"id": text(message.get("toolCallId"))}
    if whole:
        data["parts"] = _parts(content)
        if isinstance(message.get("toolName"), str):
            data["name"] = message["toolName"]
        if message.get("isError") is True:
            data["is_error"] = True
    said = only_text(content)
    if is_ours(said):
        data["metadata"] = {"synthetic": True, "by": TURNWAL}
    elif said == INVENTED and message.get("isError") is True:
        data["metadata"] = {"synthetic": True, "by": "pi"}
    return data


def blocks(content: object) -> list[dict[str, Any]]:
    """The blocks of a message."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def calls_of(message: dict[str, Any]) -> list[str]:
    """The ids of the calls of a message, in order."""
    ids = (block.get("id") for block in blocks(message.get("content")) if block.get("type") == "toolCall")
    return list(map(text, ids))


def closed_in(entry: dict[str, Any]) -> list[Any]:
    """The calls of an unfinished message that a repair has closed."""
    mark = entry.get(MARK)
    found = mark.get(CLOSED) if isinstance(mark, dict) else None
    return found if isinstance(found, list) else []


def only_text(content: object) -> str | None:
    """What a result says, where it is one text."""
    found = blocks(content)
    said = found[0].get("text") if len(found) == 1 else None
    return said if isinstance(said, str) else None


def _call(block: dict[str, Any]) -> dict[str, Any]:
    return call_part(block.get("id"), block.get("name"), block.get("arguments"))


def _parts(content: object) -> list[dict[str, Any]]:
    return [_part(block) for block in blocks(content)]


def _part(block: dict[str, Any]) -> dict[str, Any]:
    """A part for a block of a message."""
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return {"type": "text", "content": block["text"]}
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        return {"type": "reasoning", "content": block["thinking"]}
    if kind == "image" and isinstance(block.get("data"), str) and isinstance(block.get("mimeType"), str):
        return {"type": "blob", "modality": "image", "mime_type": block["mimeType"], "content": block["data"]}
    if kind == "toolCall":
        return _call(block)
    return {"type": str(kind), "native": {"provider": "pi", "block": block}}
