"""One line of a transcript as a value: typed and quick where it is shaped as usual, tolerant where it is not.

Promises:
- `calls` leaves everything unread that says nothing about calls; `whole` keeps the record beside it, in `full`.
- A record of a known or an unknown type is given whatever its other fields are: what does not fit counts as absent.
- A piece of a record, as a broken line may hold one, is refused.
"""

import json
import re
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, field

from turnwal.formats.lenient import compact_text

CHAIN: Final = frozenset({"user", "assistant", "attachment", "system", "progress"})
"""Types whose records hang in the tree of `uuid` and `parentUuid`."""

METADATA: Final = frozenset(
    {
        "summary",
        "custom-title",
        "ai-title",
        "tag",
        "last-prompt",
        "permission-mode",
        "mode",
        "agent-name",
        "agent-color",
        "agent-setting",
        "queue-operation",
        "file-history-snapshot",
        "content-replacement",
        "pr-link",
        "frame-link",
        "relocated",
        "worktree-state",
        "bridge-session",
    }
)
"""Types beside the tree that are known to say nothing of a call, but for the snapshots before an edit."""

_PIECES: Final = frozenset(
    {
        "text",
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "server_tool_use",
        "image",
        "document",
        "message",
        "base64",
        "url",
    }
)
"""Types of objects inside a record: one that stands alone is a piece of a broken line."""

_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_python = json.JSONDecoder()


class Block(Struct, gc=False):
    """A block of a message."""

    type: str = ""
    id: str | None = None
    name: str | None = None
    input: Raw = Raw(b"")
    tool_use_id: str | None = None
    content: Raw = Raw(b"")


class Message(Struct, gc=False):
    """What the model said or was told."""

    content: str | list[Block] = ""
    id: str | None = None
    model: str | None = None


class Record(Struct, rename="camel", gc=False):
    """A line; the fields that are read, as far as they are there."""

    type: str
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    session_id: str | None = None
    version: str | None = None
    request_id: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    team_name: str | None = None
    agent_id: str | None = None
    subtype: str | None = None
    message: Message | None = None
    data: Raw = Raw(b"")
    attachment: Raw = Raw(b"")
    tool_use_id: str | None = field(name="toolUseID", default=None)
    parent_tool_use_id: str | None = field(name="parentToolUseID", default=None)
    message_id: str | None = None
    is_snapshot_update: bool | None = None
    turnwal: Raw = Raw(b"")
    full: Any = field(name="", default=None)
    """The whole record; only `whole` has it."""


_typed: Final = msgspec.json.Decoder(Record)


def calls(line: bytes) -> Record:
    """The record of a line, as far as calls are concerned. Raises `msgspec.MsgspecError` for what is none."""
    try:
        record = _typed.decode(line)
    except msgspec.ValidationError:
        record = _tolerant(_loaded(line))
    except msgspec.DecodeError:
        if _HALF.search(line) is None:
            raise
        record = _tolerant(_loaded(line))  # half a character, as an escape: it is JSON, and only Python reads it
    except RecursionError:
        raise msgspec.DecodeError("nested too deep") from None
    if record.uuid is None and record.type in _PIECES:
        raise msgspec.ValidationError("a piece of a record")
    return record


def whole(line: bytes) -> Record:
    """The record of a line with all of it. Raises `msgspec.MsgspecError` for what is none."""
    record = calls(line)
    record.full = _loaded(line)
    return record


def _loaded(line: bytes) -> dict[str, Any]:
    try:
        value = _python.decode(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from None
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise msgspec.ValidationError("an object with a type was expected")
    return value


_TEXTS: Final = {
    f.name: f.encode_name
    for f in msgspec.structs.fields(Record)
    if f.name not in ("message", "data", "attachment", "turnwal", "full") and not f.name.startswith("is_")
}
_FLAGS: Final = {f.name: f.encode_name for f in msgspec.structs.fields(Record) if f.name.startswith("is_")}


def _tolerant(value: dict[str, Any]) -> Record:
    """A record of what fits."""
    record = Record(value["type"])
    for name, key in _TEXTS.items():
        setattr(record, name, _text(value, key))
    for name, key in _FLAGS.items():
        setattr(record, name, value.get(key) is True)
    for key in ("data", "attachment", "turnwal"):
        setattr(record, key, _raw(value, key))
    message = value.get("message")
    if isinstance(message, dict):
        content = message.get("content")
        blocks = [_block(block) for block in content if isinstance(block, dict)] if isinstance(content, list) else ""
        record.message = Message(
            content if isinstance(content, str) else blocks, _text(message, "id"), _text(message, "model")
        )
    return record


def _block(value: dict[str, Any]) -> Block:
    return Block(
        _text(value, "type") or "",
        _text(value, "id"),
        _text(value, "name"),
        _raw(value, "input"),
        _text(value, "tool_use_id"),
        _raw(value, "content"),
    )


def _text(value: dict[str, Any], key: str) -> str | None:
    found = value.get(key)
    return found if isinstance(found, str) else None


def _raw(value: dict[str, Any], key: str) -> Raw:
    return Raw(compact_text(value[key]).encode()) if key in value else Raw(b"")


def arguments_of(block: Block) -> str:
    """The arguments of a call as JSON text."""
    return str(memoryview(block.input), "utf-8", "replace") or "{}"


_SHORT: Final = 2_000


def text_of(content: Raw, beginnings: tuple[bytes, ...]) -> str:
    """The text of a result, where it is a short one that begins in one of these ways; the words of the tool do."""
    raw = bytes(memoryview(content)[: _SHORT + 1])
    if len(raw) > _SHORT or not (raw.startswith(beginnings) or raw.startswith(b"[")):
        return ""
    try:
        value = msgspec.json.decode(raw)
    except msgspec.MsgspecError:
        return ""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        value = value[0].get("text")
    return value if isinstance(value, str) else ""
