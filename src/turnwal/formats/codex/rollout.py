"""The lines of a rollout: decoded as far as their type needs it.

Both forms are read: lines with a `type` and a `payload`, and the bare items that versions before about 0.3 wrote.
"""

from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from msgspec import Raw, Struct

from turnwal.formats import zstd
from turnwal.formats.lenient import decoder, value_of

TYPES: Final = frozenset(
    {
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "inter_agent_communication",
        "token_usage_record",
        "retained_context",
        "security_risk_score",
        "realtime_item",
    }
)
"""The types of lines that are known."""

CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"})
"""Items that ask for a call; a `tool_search_call` only where Codex runs it itself."""

OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
"""Items that answer one. A `local_shell_call` is answered by a `function_call_output`."""

ITEMS: Final = CALLS | OUTPUTS | {"message", "reasoning", "web_search_call", "image_generation_call", "compaction"}
"""Items that a transcript has."""

SILENT: Final = frozenset({"ghost_snapshot", "agent_message"})
"""Items that are known and that no provider is sent."""

EVENTS: Final = frozenset(
    {
        "user_message",
        "agent_message",
        "agent_reasoning",
        "agent_reasoning_raw_content",
        "token_count",
        "task_started",
        "task_complete",
        "turn_started",
        "turn_complete",
        "turn_aborted",
        "thread_rolled_back",
        "context_compacted",
        "sub_agent_activity",
        "entered_review_mode",
        "exited_review_mode",
        "item_completed",
    }
)
"""Events that are known, besides those that end in `_begin` or `_end`."""

_STATE: Final = "state"
"""A bare line of early versions that says nothing of calls."""


class Payload(Struct):
    """What a payload says of calls and sessions."""

    type: str | None = None
    id: Any = None
    call_id: Any = None
    name: Any = None
    arguments: Any = None
    input: Any = None
    action: Raw = Raw()
    execution: Any = None
    output: Raw = Raw()
    role: Any = None
    cli_version: Any = None
    history_mode: Any = None
    model: Any = None


class Line(Struct):
    """A line, with its payload as it stands."""

    type: str | None = None
    timestamp: Any = None
    ordinal: Any = None
    payload: Raw = Raw()
    record_type: Any = None
    id: Any = None

    @property
    def bare(self) -> bool:
        """Whether it is the item itself."""
        return False


class Bare(Line):
    """A line that is the item itself, as early versions wrote it."""

    @property
    def bare(self) -> bool:
        """Whether it is the item itself."""
        return True


class Quick(Struct):
    """A line decoded in one go, without what only a transcript needs."""

    type: str
    payload: Payload
    ordinal: Any = None

    @property
    def bare(self) -> bool:
        """Whether it is the item itself."""
        return False


_HEAD_MAX: Final = 1 << 20
_line = decoder(Line)
_payload = decoder(Payload)
_quick = msgspec.json.Decoder(Quick).decode


def line(data: bytes) -> Line:
    """The line that these bytes are. Raises `msgspec.MsgspecError` for an object that is none."""
    found = _line(data)
    if found.type is None or bytes(memoryview(found.payload)[:1]) != b"{":
        raise msgspec.ValidationError("it has no type or no payload")
    return found


def bare_line(data: bytes) -> Line:
    """The same for a file of early versions, whose lines are the items themselves."""
    found = _line(data)
    if memoryview(found.payload):
        return line(data)
    if found.type in ITEMS | SILENT:
        kind = "response_item"
    elif found.type is None and isinstance(found.id, str) and isinstance(found.timestamp, str):
        kind = "session_meta"
    elif found.type is None and found.record_type == _STATE:
        kind = _STATE
    else:
        raise msgspec.ValidationError("it is no item")
    return Bare(kind, found.timestamp, payload=Raw(data.strip()))


def is_bare(path: Path) -> bool:
    """Whether a file begins as early versions began it. In any other, a bare item is a piece of a broken line."""
    with opened(path) as file:
        head = file.readline(_HEAD_MAX)
    try:
        return bare_line(head).type == "session_meta" and not memoryview(_line(head).payload)
    except msgspec.MsgspecError:
        return False


def quick(data: bytes) -> Quick | Line:
    """The same with the payload decoded, where that can be done in one go."""
    try:
        return _quick(data)
    except (msgspec.MsgspecError, RecursionError):
        return line(data)


def payload(of: Quick | Line) -> Payload:
    """The payload of a line. Raises `msgspec.MsgspecError` for one that cannot be read."""
    return of.payload if isinstance(of, Quick) else _payload(of.payload)


def opened(path: Path) -> BinaryIO:
    """The bytes of a rollout, expanded where it is compressed."""
    with path.open("rb") as file:
        packed = file.read(len(zstd.MAGIC)) == zstd.MAGIC
    return zstd.opened(path) if packed else path.open("rb", buffering=1 << 20)


def call_id(item: Payload) -> str:
    """The id that a call and its output share; a local shell's once was its item's own."""
    found = item.call_id or (item.id if item.type == "local_shell_call" else None)
    return found if isinstance(found, str) else ""


def is_call(item: Payload) -> bool:
    """Whether an item is a call that Codex runs."""
    return item.type in CALLS and (item.type != "tool_search_call" or item.execution == "client")


def output_text(output: Raw) -> str | None:
    """What an output says, where it is one text, alone or as the one item of a list."""
    try:
        value = value_of(output)
    except msgspec.MsgspecError:
        return None
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        value = value[0].get("text")
    return value if isinstance(value, str) else None
