"""What a rollout says: its calls and their outputs, what events prove about them, and the words around them.

Promises:
- Calls and outputs are paired over the whole file, copies of a parent's history at the head of a fork included.
- An event that Codex writes when a body has ended proves that it ran. `token_count` and `status: "completed"` prove
  nothing: the latter says that the model finished writing the call.
- The output `aborted` is invented: Codex gives it to a call without output when it builds a request. `aborted by user
  after 3.2s` is written by a live Codex that stopped the call, and is its result.

Does not: apply compactions and rollbacks; what they hide was said all the same.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

import msgspec

from turnwal.formats.codex import rollout
from turnwal.formats.codex.rollout import Line, Payload, Quick
from turnwal.formats.format import Depth, Found
from turnwal.formats.items import TURNWAL, About, Fault, Item, Other, Said, Sign
from turnwal.formats.lenient import value_of
from turnwal.formats.lines import Decode, records
from turnwal.formats.parts import call_part
from turnwal.formats.stamps import milliseconds
from turnwal.formats.wording import is_ours
from turnwal.transcript.openai_responses.parse import history

INVENTED: Final = "aborted"
HISTORY_MODES: Final = (None, "legacy", "paginated")

_BEGINS: Final = ("task_started", "turn_started")
_SHORT: Final = 1_000
"""Bytes of an output that may be one of those that recovery writes."""


def read(found: Found, depth: Depth) -> Iterator[Item]:
    """Yield what the rollout says, in the order of its lines."""
    reader = _Reader(depth)
    if rollout.is_bare(found.path):
        decode: Decode[Line | Quick] = rollout.bare_line
    else:
        decode = rollout.line if depth == "whole" else rollout.quick
    with rollout.opened(found.path) as file:
        for item in records(file, decode):
            if isinstance(item, Fault):
                yield item
            else:
                yield from reader.line(*item)
    yield from reader.end()


class _Reader:
    """Where reading is."""

    def __init__(self, depth: Depth) -> None:
        self._whole = depth == "whole"
        self._met = False
        """The first `session_meta`, which counts, was seen."""
        self._paginated = False
        self._ordinal: int | None = None
        self._model: str | None = None
        self._open: dict[str, None] = {}
        """The calls of the current turn without output."""
        self._reply: list[Any] = []
        """The items of a reply that may go on."""
        self._reply_at: tuple[str, int | None] = ("", None)

    def line(self, number: int, line: Line | Quick) -> Iterable[Item]:
        """What one line says."""
        counted = () if line.ordinal is None and not self._paginated else tuple(self._counted(number, line))
        try:
            said = self._said(number, line)
        except msgspec.MsgspecError as error:
            said = (Fault("corrupt", f"line {number}", f"the payload of a {line.type} cannot be read ({error})"),)
        return chain(counted, said) if counted else said

    def _said(self, number: int, line: Line | Quick) -> Iterable[Item]:
        # most lines have nothing to say: no generator is made for them
        kind = line.type
        if kind == "response_item":
            return self._item(number, line)
        if kind == "event_msg":
            return self._event(number, rollout.payload(line))
        if kind == "session_meta":
            return () if self._met else self._meta(f"line {number}", rollout.payload(line))
        if kind == "turn_context":
            model = rollout.payload(line).model
            self._model = model if isinstance(model, str) else None
        elif kind not in rollout.TYPES and not line.bare:
            return (Other(f"line {number}", str(kind)),)
        return ()

    def end(self) -> Iterator[Item]:
        """What can be said at the end."""
        yield from self._flush()
        if not self._met:
            yield Fault("corrupt", "line 1", "there is no session_meta: Codex does not load the file")

    def _counted(self, number: int, line: Line | Quick) -> Iterator[Item]:
        """The ordinal, which is on every line of a paginated history and goes up by one."""
        place, before = f"line {number}", self._ordinal
        if isinstance(line.ordinal, int):
            self._ordinal = line.ordinal
        if not self._paginated:
            return
        if not isinstance(line.ordinal, int):
            yield Fault("gap", place, "the line has no ordinal")
        elif before is not None and line.ordinal != before + 1:
            yield Fault("gap", place, f"ordinal {line.ordinal:,} behind {before:,}")

    def _meta(self, place: str, meta: Payload) -> Iterator[Item]:
        """The first one counts; a later one is that of a parent, whose history a fork begins with."""
        self._met = True
        self._paginated = meta.history_mode == "paginated"
        yield About(_text(meta.cli_version), _text(meta.id))
        if meta.history_mode not in HISTORY_MODES:
            yield Fault("too_new", place, f"the history mode {str(meta.history_mode)!r:.80} is not known")

    def _event(self, number: int, event: Payload) -> Iterable[Item]:
        kind, place = event.type, f"line {number}"
        if kind in rollout.EVENTS:
            if kind == "turn_aborted":
                ids = tuple(self._open)
                self._open.clear()
                what = "turn_aborted: the user interrupted the turn"
                return chain(self._flush(), [Sign(place, id, "requested", what) for id in ids])
            if kind in _BEGINS:
                self._open.clear()
            return ()
        if not isinstance(kind, str) or not kind.endswith(("_begin", "_end")):
            return (Other(place, f"event_msg/{kind}"),)
        if not isinstance(event.call_id, str):
            return ()
        ran = kind.endswith("_end")
        what = f"{kind}: the body had {'ended' if ran else 'begun'}"
        return chain(self._flush(), [Sign(place, event.call_id, "ran" if ran else "dispatched", what)])

    def _item(self, number: int, line: Line | Quick) -> Iterable[Item]:
        item = rollout.payload(line)
        kind, place = item.type, f"line {number}"
        asks, answers = rollout.is_call(item), kind in rollout.OUTPUTS and _is_for_call(item)
        if asks:
            self._open[rollout.call_id(item)] = None
        elif answers:
            self._open.pop(rollout.call_id(item), None)
        elif kind in rollout.SILENT:
            return ()
        elif kind not in rollout.ITEMS:
            return (Other(place, f"response_item/{kind}"),)
        if self._whole and isinstance(line, Line):
            return self._told(place, milliseconds(line.timestamp), item, value_of(line.payload))
        if asks:
            return (Said(place, "assistant_message", {"parts": [_call_part(item)]}),)
        return (Said(place, "tool_result", marked({"id": rollout.call_id(item)}, item)),) if answers else ()

    def _told(self, place: str, time: int | None, item: Payload, block: Any) -> Iterator[Item]:
        """An item as events; the items of a reply are gathered into one message."""
        given = item.type in rollout.OUTPUTS or (item.type == "message" and item.role != "assistant")
        if not given:
            if not self._reply:
                self._reply_at = (place, time)
            self._reply.append(block)
            return
        yield from self._flush()
        for said in _events(place, time, [block]):
            yield said._replace(data=marked(said.data, item)) if isinstance(said, Said) and "id" in said.data else said

    def _flush(self) -> Iterator[Item]:
        """The message of the items that were gathered."""
        reply, self._reply = self._reply, []
        model = {} if self._model is None else {"model": self._model}
        for said in _events(*self._reply_at, reply):
            yield said._replace(data=said.data | model) if isinstance(said, Said) else said


def _events(place: str, time: int | None, blocks: list[Any]) -> Iterator[Item]:
    try:
        for type_, data in history([_as_sent(block) for block in blocks]):
            yield Said(place, type_, data, time=time)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        yield Fault("corrupt", place, f"an item of an unknown shape ({type(error).__name__}: {error})")


def _as_sent(block: Any) -> Any:
    """An item as the API knows it: without the fields that are Codex's own, and with the id that it is answered by."""
    found = {name: value for name, value in block.items() if name not in ("phase", "metadata", "end_turn")}
    if found.get("type") == "local_shell_call" and not found.get("call_id"):
        found["call_id"] = found.get("id") or ""
    return found


def _call_part(item: Payload) -> dict[str, Any]:
    """The part of a message for a call, as the transcript of the same item has it."""
    id = rollout.call_id(item)
    if item.type == "custom_tool_call":
        return call_part(id, item.name, item.input) | {"format": "text"}
    if item.type == "function_call":
        return call_part(id, item.name, item.arguments)
    name = str(item.type).removesuffix("_call")
    if memoryview(item.action):
        return call_part(id, name, bytes(item.action).decode("utf-8", "replace"))
    return call_part(id, name, item.arguments)


def _is_for_call(item: Payload) -> bool:
    return bool(item.type != "tool_search_output" or item.execution == "client")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def marked(data: dict[str, Any], item: Payload) -> dict[str, Any]:
    """The data of a result, with who invented it: Codex, or a repair of ours."""
    if len(memoryview(item.output)) > _SHORT:
        return data
    text = rollout.output_text(item.output)
    if text == INVENTED:
        return data | {"metadata": {"synthetic": True, "by": "Codex"}}
    return data | {"metadata": {"synthetic": True, "by": TURNWAL}} if is_ours(text) else data
