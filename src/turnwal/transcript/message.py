"""A message of the conversation: a visible event with what every target needs to know of it.

Plain records, made by `conversation.py` and read by the targets; structs that no collector has to look at, since one
is made for every event and call, and none refers to what refers to it.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from turnwal.core.findings import Finding
from turnwal.core.line import Event

Kind = Literal["system", "user", "assistant", "note"]


class Answer(Struct, frozen=True, gc=False):
    """What answers a call."""

    seq: int | None
    """Seq of the result; None for one that is in no log."""
    parts: list[Mapping[str, Any]]
    is_error: bool
    native: Mapping[str, Any] | None = None
    """What the result keeps verbatim for one target."""


class Asked(Struct, frozen=True, gc=False):
    """A call as a message asks for it, with its answer."""

    key: int
    index: int
    """Which part of the message asks."""
    id: str
    name: str
    arguments: str
    free_text: bool
    answer: Answer


class Message(Struct, frozen=True, gc=False):
    """One visible event, with what every target needs to know of it."""

    kind: Kind
    event: Event
    parts: list[Mapping[str, Any]]
    calls: Mapping[int, Asked] = {}
    """By part index. A `tool_call` part that is not in it is not sent."""
    complete: bool = True
    findings: tuple[Finding, ...] = ()

    @property
    def seq(self) -> int:
        """Seq of the event."""
        return self.event.seq

    def native(self, target: str) -> Mapping[str, Any] | None:
        """What the event itself keeps for that target alone, or None."""
        return native_of(self.event.data, target)


def native_of(data: Mapping[str, Any], target: str) -> Mapping[str, Any] | None:
    """What a part or an event keeps verbatim for one target, or None."""
    native = data.get("native")
    return native if isinstance(native, dict) and native.get("provider") == target else None
