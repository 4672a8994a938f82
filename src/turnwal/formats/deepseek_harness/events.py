"""The events of a log of deepseek-harness, from a plain file or from frames: decoded as far as their type needs it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import zstandard
from msgspec import Raw, Struct

from turnwal.formats import zstd
from turnwal.formats.items import Fault
from turnwal.formats.lenient import decoder, value_of
from turnwal.formats.lines import Decode, records
from turnwal.formats.zstd_frames import Frame, frames

T = TypeVar("T")

VERSION_MAX: Final = 4
"""The newest version of the log that is known."""

HEADER: Final = "session"
RUNS: Final = frozenset({"text-chunks", "reasoning-chunks", "tool-call-chunks"})
"""Rows that pack a run of chunks and stand for as many numbers."""

TYPES: Final = frozenset(
    {
        "turn/start",
        "turn/end",
        "step/start",
        "step/end",
        "user/message",
        "system/message",
        "developer/message",
        "assistant/message",
        "assistant/chunk",
        "assistant/attempt",
        "tool/call",
        "tool/result",
        "todo/write",
        "request/header",
        "request/context",
        "session/end-seed",
        "session/title",
        "session/title-llm-request",
        "deliverables/presented",
        "image/offload",
        "model/selection",
        "schedule/change",
        "goal/change",
        "workspace/changes",
        "agent-preset/selected",
        "agent/inbox/spliced",
        "web/deepseek-search-llm-request",
        "session-log-deepseek/delivery-accepted",
    }
)
FAMILIES: Final = (
    "approval/",
    "command/",
    "compact/",
    "compaction/",
    "feedback/",
    "hook/",
    "llm/",
    "permission/",
    "plan/",
    "sandbox/",
    "subagent/",
    "team/",
    "tool-workflow/",
    "tool/code-dispatch",
    "tool/ptc-dispatch",
)
"""How further known types begin."""


class Event(Struct):
    """A line: the header, an event, or a packed run of them."""

    type: str
    seq: Any = None
    seq0: Any = None
    time: Any = None
    data: Raw = Raw()
    surface: Any = msgspec.field(default=None, name="surfaceOp")
    version: Any = None
    id: Any = None
    parent: Any = msgspec.field(default=None, name="parentSession")
    inherited: Any = msgspec.field(default=None, name="seedLength")

    @property
    def replaces(self) -> bool:
        """Whether it stands for messages that were said before, so that it says nothing new."""
        return isinstance(self.surface, dict)


class _Run(Struct):
    dt: Any = None


class Source(NamedTuple):
    """A part of a log that was written in one go, or all of a plain file."""

    prefix: str
    """What the places in it begin with."""
    frame: Frame | None


_quick = msgspec.json.Decoder(Event).decode
_event = decoder(Event)
_run = decoder(_Run)


def event(data: bytes) -> Event:
    """The event that these bytes are. Raises `msgspec.MsgspecError` for an object that is none."""
    try:
        found = _quick(data)
    except (msgspec.MsgspecError, RecursionError):
        found = _event(data)
    if found.type == HEADER:
        if found.version is not None and found.id is not None:
            return found
    elif found.seq is not None or found.seq0 is not None:
        return found
    raise msgspec.ValidationError("it is neither a header nor has it a number")


def numbers(of: Event) -> tuple[int, int] | None:
    """The first number of an event and how many it stands for, or None where it has none."""
    if of.type not in RUNS:
        return (of.seq, 1) if isinstance(of.seq, int) else None
    gaps = _run(of.data).dt
    return (of.seq0, len(gaps) + 1) if isinstance(of.seq0, int) and isinstance(gaps, list) else None


def data_of(of: Event) -> dict[str, Any]:
    """The data of an event. Raises `msgspec.MsgspecError` where it is no object."""
    value = value_of(of.data)
    if not isinstance(value, dict):
        raise msgspec.ValidationError("its data is no object")
    return value


def is_known(type_: str) -> bool:
    """Whether a type of event is known."""
    return type_ in TYPES or type_ in RUNS or type_.startswith(FAMILIES)


def sources(path: Path) -> Iterator[Source]:
    """The parts of a log."""
    with path.open("rb") as file:
        packed = file.read(len(zstd.MAGIC)) == zstd.MAGIC
    if not packed:
        yield Source("", None)
        return
    for number, frame in enumerate(frames(path), 1):
        yield Source(f"frame {number} ", frame)


def read(path: Path, source: Source, decode: Decode[T]) -> Iterator[tuple[int, T] | Fault]:
    """The events of a part with their lines, and what is wrong with it; the places of faults are those in the part."""
    frame = source.frame
    if frame is None:
        with path.open("rb", buffering=1 << 20) as plain:
            yield from records(plain, decode)
        return
    if frame.state == "corrupt":
        yield Fault("corrupt", "", f"{frame.end - frame.start:,} bytes that are no frame")
        return
    try:
        with zstd.opened(path, frame.start, frame.end) as expanded:
            yield from records(expanded, decode)
    except zstandard.ZstdError as error:
        yield Fault("corrupt", "", f"the frame cannot be expanded ({error})")
    if frame.state == "torn":
        yield Fault("torn", "", f"the last {frame.end - frame.start:,} bytes are a frame that was not finished")
