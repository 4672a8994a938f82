"""What a log of deepseek-harness says: calls, which of them were handed over, results, and the words around them.

Promises:
- `tool/call` is a dispatch. That one is recorded durably before each body is the harness's checkpoint policy, which a
  host may leave out: it is believed unless the log shows otherwise, by a result of a call that no `tool/call` stands
  before, or by a call and the result of its body in one frame, which is one durable batch. What a fork inherited says
  nothing of this, but for a call that it inherited without an answer: its parent may have gone on.
- `TOOL_NOT_STARTED` of a recovery under that policy is true, and an answer. `TOOL_OUTCOME_UNKNOWN` is true as well, and
  says that nothing is known: the call stays open. So does what a fork says of calls its parent may have run.
- An event that replaces what was said before is no new call and no new result.
- Numbers count from 0 without gaps, packed rows as many as they hold; where they do not, that is named.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from turnwal.formats.deepseek_harness import events
from turnwal.formats.deepseek_harness.events import Event
from turnwal.formats.format import Depth, Found
from turnwal.formats.items import TURNWAL, About, Fault, Item, Other, Said, Sign
from turnwal.formats.parts import call_part
from turnwal.formats.stamps import milliseconds
from turnwal.formats.wording import is_ours

NAME: Final = "deepseek-harness"
NOT_STARTED: Final = "TOOL_NOT_STARTED"
OUTCOME_UNKNOWN: Final = "TOOL_OUTCOME_UNKNOWN"
_FORKED: Final = "forked-"
"""How the ids of results begin that a fork makes for calls of its parent."""

_END_OF_SEED: Final = "session/end-seed"
"""What stands behind the events that a session was begun with."""

_MESSAGES: Final = {
    "user/message": "user_message",
    "system/message": "system_message",
    "developer/message": "system_message",
}
_READ: Final = frozenset({"assistant/message", "tool/call", "tool/result", "approval/asked"})


def read(found: Found, depth: Depth) -> Iterator[Item]:
    """Yield what the log says, in the order of its events."""
    reader = _Reader(found, whole=depth == "whole")
    if depth == "whole":  # an import says at its beginning what it is worth
        policy = _Reader(found, whole=False)
        for _ in policy.items():
            pass
        yield About(durable=policy.durable)
    yield from reader.items()
    yield About(durable=reader.durable)


class _Reader:
    """Where reading is."""

    def __init__(self, found: Found, *, whole: bool) -> None:
        self._path = found.path
        self._whole = whole
        self._quiet = events.TYPES - _READ - (_MESSAGES.keys() if whole else set())
        """The types that have nothing to say."""
        self._met = False
        self._next = 0
        """The number that comes next."""
        self.durable = True
        """Nothing shows a writer that records dispatches late or not at all."""
        self._dispatched: set[str] = set()
        """The calls that were handed over and have no result yet."""
        self._batch: set[str] = set()
        """Those of them whose dispatch is in the frame that is being read."""
        self._own = 0
        """The number of the first event that is not inherited from a parent, or -1 while that is not known."""
        self._inherited: set[str] = set()
        """The calls that were inherited and have no result yet."""

    def items(self) -> Iterator[Item]:
        for source in events.sources(self._path):
            self._batch.clear()
            framed = source.frame is not None
            for item in events.read(self._path, source, events.event):
                if isinstance(item, Fault):
                    yield item._replace(place=f"{source.prefix}{item.place}".rstrip())
                    continue
                number, event = item
                if event.seq == self._next and event.type in self._quiet:
                    self._next += 1  # most events are these
                elif event.type in events.RUNS and self._packed(event):
                    pass
                else:
                    yield from self._caught(f"{source.prefix}line {number}", event, framed=framed)
        if not self._met:
            yield Fault("corrupt", "line 1", "there is no header: the harness does not load the log")
        if self._inherited:
            self.durable = False  # the parent may have handed them over after the fork

    def _packed(self, event: Event) -> bool:
        """Step over a packed row; False where something is wrong with it."""
        try:
            found = events.numbers(event)
        except msgspec.MsgspecError:
            return False
        if found is None or found[0] != self._next:
            return False
        self._next += found[1]
        return True

    def _caught(self, place: str, event: Event, *, framed: bool) -> Iterator[Item]:
        """What an event says, or that it cannot be read."""
        try:
            yield from self._event(place, event, framed=framed)
        except msgspec.MsgspecError as error:
            yield Fault("corrupt", place, f"a {event.type} that cannot be read ({error})")
        except (AttributeError, KeyError, TypeError) as error:
            yield Fault("corrupt", place, f"a {event.type} of an unknown shape ({type(error).__name__}: {error})")

    def _event(self, place: str, event: Event, *, framed: bool) -> Iterator[Item]:
        type_ = event.type
        if type_ == events.HEADER:
            yield from self._header(place, event)
            return
        found = events.numbers(event)
        if found is not None and found[0] == self._next:
            self._next += found[1]
        else:
            yield self._miscounted(place, found)
        if self._own < 0 and type_ == _END_OF_SEED:
            self._own = self._next
        if not events.is_known(type_):
            yield Other(place, type_)
        elif not event.replaces and type_ not in self._quiet:
            yield from self._said(place, event, framed=framed)

    def _said(self, place: str, event: Event, *, framed: bool) -> Iterator[Item]:
        """What an event says that is of a type to be read."""
        type_ = event.type
        if type_ == "assistant/message":
            yield self._asked(place, event)
        elif type_ == "tool/call":
            yield from self._dispatch(place, events.data_of(event), framed=framed)
        elif type_ == "tool/result":
            yield self._result(place, event)
        elif type_ == "approval/asked":
            id = events.data_of(event).get("callId")
            if isinstance(id, str):
                yield Sign(place, id, "requested", "approval/asked: a person was asked")
        elif type_ in _MESSAGES:
            data = events.data_of(event)
            message = data.get("message", data)
            parts = [_part(block) for block in blocks_of(message.get("content"))]
            yield Said(place, _MESSAGES[type_], {"parts": parts}, time=milliseconds(event.time))

    def _header(self, place: str, event: Event) -> Iterator[Item]:
        if self._met:
            yield Fault("corrupt", place, "a second header")
            return
        self._met = True
        if isinstance(event.inherited, int):
            self._own = event.inherited
        elif event.parent is not None:
            self._own = -1
        if self._own:
            self._quiet -= {_END_OF_SEED}
        yield About(str(event.version), event.id if isinstance(event.id, str) else None)
        if not isinstance(event.version, int) or event.version > events.VERSION_MAX:
            yield Fault("too_new", place, f"version {event.version!s:.80}; {events.VERSION_MAX} is the newest known")

    def _miscounted(self, place: str, found: tuple[int, int] | None) -> Fault:
        """What is wrong with the number of an event."""
        if found is None:
            return Fault("gap", place, "the event has no number")
        first, count = found
        expected, self._next = self._next, max(self._next, first + count)
        if first > expected:
            return Fault("gap", place, f"number {first:,} where {expected:,} was to be")
        return Fault("gap", place, f"number {first:,} again, behind {expected - 1:,}: two writers, or a copy")

    def _asked(self, place: str, event: Event) -> Said:
        message = events.data_of(event)["message"]
        blocks = blocks_of(message.get("content"))
        if not self._whole:
            blocks = [block for block in blocks if block.get("type") == "tool-call"]
        data: dict[str, Any] = {"parts": [_part(block) for block in blocks]}
        if self._is_inherited(event):
            self._inherited |= {part["id"] for part in data["parts"] if part["type"] == "tool_call"}
        source = message.get("source")
        if self._whole and isinstance(source, dict) and isinstance(source.get("model"), str):
            data["model"] = source["model"]
        return Said(place, "assistant_message", data, time=milliseconds(event.time))

    def _dispatch(self, place: str, data: dict[str, Any], *, framed: bool) -> Iterator[Item]:
        id = data.get("callId")
        if isinstance(id, str):
            self._dispatched.add(id)
            if framed:
                self._batch.add(id)
            yield Sign(place, id, "dispatched", "tool/call: it was about to be handed to the tool")

    def _result(self, place: str, event: Event) -> Said:
        data = events.data_of(event)
        id, blocks, failed = result_of(data)
        code = code_of(data)
        made: dict[str, Any] = {"id": id}
        if self._whole:
            made["parts"] = [_part(block) for block in blocks]
        if failed:
            made["is_error"] = True
        if any(is_ours(block.get("text")) for block in blocks):
            made["metadata"] = {"synthetic": True, "by": TURNWAL}
        elif self._is_invented(id, code, data):
            made["metadata"] = {"synthetic": True, "by": NAME}
        elif not failed and code is None and not self._is_inherited(event):
            # what was inherited was written in one go
            self.durable = self.durable and id in self._dispatched and id not in self._batch
        self._inherited.discard(id)
        self._dispatched.discard(id)
        self._batch.discard(id)
        return Said(place, "tool_result", made, time=milliseconds(event.time))

    def _is_inherited(self, event: Event) -> bool:
        """Whether an event is a copy of one of a parent."""
        return self._own < 0 or (isinstance(event.seq, int) and event.seq < self._own)

    def _is_invented(self, id: str, code: str | None, data: dict[str, Any]) -> bool:
        """Whether recovery made a result that leaves the outcome unknown."""
        if code != NOT_STARTED:
            return code == OUTCOME_UNKNOWN
        message = data.get("message")
        made_by = message.get("id") if isinstance(message, dict) else None
        forked = isinstance(made_by, str) and made_by.startswith(_FORKED)
        return forked or id in self._dispatched or not self.durable


def result_of(data: dict[str, Any]) -> tuple[str, list[dict[str, Any]], bool]:
    """The id of the call that a result answers, the blocks it says, and whether it is an error."""
    message = data.get("message")
    message = message if isinstance(message, dict) else {}
    source = message.get("source")
    blocks = blocks_of(message.get("content", data.get("content")))
    inner = next((block for block in blocks if block.get("type") == "tool-result"), {})
    ids = (source.get("callId") if isinstance(source, dict) else None, data.get("callId"), inner.get("toolCallId"))
    id = next((each for each in ids if isinstance(each, str)), "")
    failed = inner.get("isError") is True or data.get("isError") is True or isinstance(data.get("error"), dict)
    return id, blocks_of(inner["content"]) if "content" in inner else blocks, failed


def code_of(data: dict[str, Any]) -> str | None:
    """The code of the error that a result is."""
    error = data.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else None


def blocks_of(content: object) -> list[dict[str, Any]]:
    """The blocks of a message."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _part(block: dict[str, Any]) -> dict[str, Any]:
    """A part for a block of a message."""
    kind = block.get("type")
    if kind in ("text", "reasoning") and isinstance(block.get("text"), str):
        return {"type": kind, "content": block["text"]}
    if kind == "tool-call":
        return call_part(block.get("id"), block.get("name"), block.get("arguments"))
    return {"type": str(kind), "native": {"provider": NAME, "block": block}}
