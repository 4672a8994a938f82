"""Reading a session of ADK.

An event is a row; its order is its time alone, and rows of one time have no defined order: a response may come before
its call. An event is written once, and models use ids again: a call of an id that was there is another call. The event
that asks is stored before the tools run, the responses of one batch after all of them in one event, so a call that had
finished beside the one that was killed has no response either.

Calls in `long_running_tool_ids` wait by design. One that has responded once, as being under way, may respond again:
the last response is its result, as it is for the model. A call that a person has to agree to gets a response that says
so at once, which is no outcome: it waits until that person has answered, and may have run from then on.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from turnwal.formats.database import reading
from turnwal.formats.format import Depth, Found
from turnwal.formats.google_adk.rows import KNOWN, Event, events, version
from turnwal.formats.items import TURNWAL, About, Fault, Item, Other, Said, Sign
from turnwal.formats.lenient import compact_text
from turnwal.formats.parts import part_or_text
from turnwal.formats.stamps import of_seconds
from turnwal.formats.wording import MARK, is_ours
from turnwal.transcript.gemini.parse import part_of

Block = dict[str, Any]

_ASKS: Final = frozenset({"adk_request_confirmation", "adk_request_credential"})
"""Calls by which ADK itself asks a person about another call."""
_PENDING: Final = frozenset({"This tool call requires confirmation, please approve or reject."})
"""What the call that is asked about is answered meanwhile. The version with JSON says it in the actions, too."""
_FIELDS: Final = frozenset(
    {"text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "codeExecutionResult"}
    | {"toolCall", "toolResponse", "thought", "thoughtSignature", "videoMetadata", "partMetadata", "mediaResolution"}
)
_LETTER: Final = re.compile(r"_([a-z])")


def read(found: Found, depth: Depth) -> Iterator[Item]:
    """Read a session, event by event."""
    with reading(found.path) as connection:
        known = version(connection)
        yield About(version=known, session=found.session)
        if known not in KNOWN:
            yield Fault("too_new", "adk_internal_metadata", f"schema version {known!r} is not known")
        reader = _Reader(depth)
        if depth == "whole":
            reader.foresee(event for _, event in events(connection, found) if event is not None)
        for place, event in events(connection, found):
            if event is None:
                yield Fault("corrupt", place, "it is no JSON object")
            else:
                yield from reader.items(place, event)
        yield from reader.end()


class _Early(NamedTuple):
    """A response of a call that is not there yet."""

    said: Said
    invocation: Any
    time: Any


class _Reader:
    """What is remembered between events: the calls that run long, and those that a person is asked about."""

    def __init__(self, depth: Depth) -> None:
        self._depth = depth
        self._long: set[str] = set()
        self._responded: set[str] = set()
        self._asked: Counter[str] = Counter()
        """How many calls of each id there were."""
        self._due: Counter[str] = Counter()
        """How many of them have no response."""
        self._early: dict[str, list[_Early]] = {}
        self._asks: dict[str, str] = {}
        """By the id of the call that asks a person, the call that it asks about."""
        self._last: dict[tuple[str, int], tuple[Block, Event]] = {}
        """The last response of each call that runs long, by its id and how many calls of that id there were."""

    def foresee(self, all_events: Iterable[Event]) -> None:
        """Take note of the responses that are to come."""
        asked: Counter[str] = Counter()
        long: set[str] = set()
        for event in all_events:
            long.update(_long_running(event))
            for block in _blocks(event):
                call, response = _field(block, "functionCall"), _field(block, "functionResponse")
                if call is not None:
                    asked[_id(call)] += 1
                if response is not None and _id(response) in long:
                    self._last[_id(response), asked[_id(response)]] = response, event

    def items(self, place: str, event: Event) -> Iterator[Item]:
        """What an event says."""
        yield from self._late(event.get("timestamp"))
        time = of_seconds(event.get("timestamp"))
        run = event["branch"] if isinstance(event.get("branch"), str) and event["branch"] else "main"
        long_running = _long_running(event)
        self._long.update(long_running)
        parts: list[Block] = []
        for block in _blocks(event):
            call, response = _field(block, "functionCall"), _field(block, "functionResponse")
            if response is not None:
                yield from self._response(place, response, event, run, time)
            elif call is not None and call.get("name") in _ASKS:
                yield from self._ask(place, call)
            elif call is not None:
                parts.append(_call(call) | (_kept(block) if self._depth == "whole" else {}))
                self._ask_for(_id(call), runs_long=_id(call) in long_running)
            elif not block.keys() & _FIELDS:
                yield Other(place, next(iter(block), ""))
            elif self._depth == "whole":
                parts.append(part_or_text(block, part_of))
        if parts:
            user = event.get("author") == "user"
            said = Said(place, "user_message" if user else "assistant_message", {"parts": parts}, run, time)
            yield from self._with_early(said, event.get("invocation_id"))
        for id in long_running:
            yield Sign(place, id, "waiting", "it runs long: its answer comes from outside, or it was killed at once")

    def end(self) -> Iterator[Item]:
        """What is left behind the last event: the responses that nothing asks for."""
        yield from (early.said for responses in self._early.values() for early in responses)

    def _ask_for(self, id: str, *, runs_long: bool) -> None:
        self._asked[id] += 1
        self._due[id] += 1
        self._responded.discard(id)
        if not runs_long:
            self._long.discard(id)

    def _with_early(self, message: Said, invocation: Any) -> Iterator[Item]:
        """A message, and behind it the responses of its calls that stand before it, which are of its invocation."""
        early = [
            part["id"] for part in message.data["parts"] if part["type"] == "tool_call" and part["id"] in self._early
        ]
        for id in early:
            found = self._early[id]
            self._early[id] = [each for each in found if each.invocation == invocation]
            yield from (each.said for each in found if each.invocation != invocation)
        yield message
        for id in early:
            if self._early[id]:
                self._due[id] -= 1
                yield self._early[id].pop(0).said

    def _late(self, time: Any) -> Iterator[Item]:
        """The responses of an earlier time for whose id there were only calls that have theirs."""
        for id in [id for id in self._early if self._asked[id]]:
            late = [early for early in self._early[id] if early.time != time]
            self._early[id] = [early for early in self._early[id] if early.time == time]
            for early in late:
                yield early.said

    def _ask(self, place: str, call: Block) -> Iterator[Item]:
        arguments = call.get("args")
        arguments = arguments if isinstance(arguments, dict) else {}
        original = arguments.get("originalFunctionCall", arguments.get("original_function_call"))
        about = original.get("id") if isinstance(original, dict) else None
        about = about or arguments.get("functionCallId", arguments.get("function_call_id"))
        if isinstance(about, str):
            self._asks[_id(call)] = about
            yield Sign(place, about, "waiting", "a person is asked about it")

    def _response(self, place: str, response: Block, event: Event, run: str, time: int | None) -> Iterator[Item]:
        id = _id(response)
        if id in self._asks:
            if _agreed(response.get("response")):
                yield Sign(place, self._asks[id], "dispatched", "a person agreed to it")
            return
        if _is_pending(response, event):
            yield Sign(place, id, "waiting", "its response says that a person is to be asked")
            return
        if id in self._long:
            if id in self._responded:
                return
            self._responded.add(id)
            response, event = self._last.get((id, self._asked[id]), (response, event))
        said = Said(place, "tool_result", _result(response, event), run, time)
        if self._due[id]:
            self._due[id] -= 1
            yield said
        else:
            self._early.setdefault(id, []).append(_Early(said, event.get("invocation_id"), event.get("timestamp")))


def _blocks(event: Event) -> list[Block]:
    """The parts of an event, with the names of the API."""
    content = event.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    return [_camel(part) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _camel(part: Mapping[str, Any], depth: int = 1) -> Block:
    """A part as the API names its fields; ADK names them as Python does. What is inside of them is left."""
    return {
        _named(name): _camel(value, depth - 1) if depth and isinstance(value, dict) else value
        for name, value in part.items()
        if value is not None
    }


@lru_cache(maxsize=256)
def _named(name: str) -> str:
    return _LETTER.sub(lambda match: match[1].upper(), name)


def _field(block: Block, name: str) -> Block | None:
    return block[name] if isinstance(block.get(name), dict) else None


def _call(call: Block) -> Block:
    arguments = call.get("args")
    text = compact_text(arguments if isinstance(arguments, dict) else {})
    return {"type": "tool_call", "id": _id(call), "name": str(call.get("name") or ""), "arguments": text}


def _kept(block: Block) -> Block:
    """What a part with a call holds besides: its signature, which Gemini wants to see again."""
    native = part_or_text(block, part_of).get("native")
    return {} if native is None else {"native": native}


def _id(call: Block) -> str:
    return str(call.get("id") or "")


def asked_ids(event: Event) -> set[str]:
    """The ids of the calls that an event asks for."""
    calls = (_field(block, "functionCall") for block in _blocks(event))
    return {_id(call) for call in calls if call is not None}


def _long_running(event: Event) -> list[str]:
    ids = event.get("long_running_tool_ids")
    return [str(id) for id in ids] if isinstance(ids, list) else []


def _is_pending(response: Block, event: Event) -> bool:
    """Whether a response only says that a person is to be asked."""
    said = response.get("response")
    if isinstance(said, dict) and said.get("error") in _PENDING:
        return True
    actions = event.get("actions")
    asked = (
        [actions.get(name) for name in ("requested_tool_confirmations", "requested_auth_configs")]
        if isinstance(actions, dict)
        else []
    )
    return any(isinstance(ids, dict) and _id(response) in ids for ids in asked)


def _agreed(said: Any) -> bool:
    """Whether a person's answer lets the call run: credentials do, and what is not a clear no."""
    text = said.get("response") if isinstance(said, dict) else None
    if isinstance(text, str):  # as the web interface sends it
        return '"confirmed":false' not in text.replace(" ", "")
    return not isinstance(said, dict) or said.get("confirmed") is not False


def _result(response: Block, event: Event) -> Block:
    said = response.get("response")
    plain = said.keys() in ({"result"}, {"error"}) if isinstance(said, dict) else False
    text = next(iter(said.values())) if isinstance(said, dict) and plain else said
    data: Block = {"id": _id(response), "name": str(response.get("name") or "")}
    data["parts"] = [{"type": "text", "content": text if isinstance(text, str) else compact_text(said)}]
    if isinstance(said, dict) and "error" in said:
        data["is_error"] = True
    marks = event.get("custom_metadata")
    if is_ours(text) or (isinstance(marks, dict) and MARK in marks):
        data["metadata"] = {"synthetic": True, "by": TURNWAL}
    return data
