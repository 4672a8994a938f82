"""Reading a conversation of OpenHands.

An event is a file, numbered from 0 without gaps: a gap hides everything behind it from the tool. Events are a tree by
their `parent_id`; older ones have none and follow one another. An `ActionEvent` is stored before its tool runs, the
events that answer the calls of one reply after all of them have run; so a call that had finished beside the one that
was killed has none. A hook that runs before a tool is recorded before the action is, so it proves nothing.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from turnwal.formats.format import Depth, Found, Sample
from turnwal.formats.items import TURNWAL, About, Fault, Item, Other, Said, Sign
from turnwal.formats.lenient import compact_text
from turnwal.formats.numbered import numbered, record
from turnwal.formats.parts import part_or_text
from turnwal.formats.stamps import milliseconds
from turnwal.formats.wording import OR_KILLED, is_ours
from turnwal.transcript.anthropic.parse import part_of

Event = dict[str, Any]

FILE: Final = re.compile(r"event-(\d{5,})-([0-9a-fA-F-]{8,})\.json")
STATE: Final = "base_state.json"
ROOT: Final = "__root__"
"""The parent of an event that begins a conversation anew."""
ANSWERS: Final = frozenset({"ObservationEvent", "UserRejectObservation", "AgentErrorEvent"})
_INVENTED: Final = ("A restart occurred while this tool was in progress.", "Tool call interrupted before completion.")
"""How an error begins that the agent server writes at its restart, or the SDK when it goes on after an interruption."""
_SILENT: Final = frozenset(
    {
        "PauseEvent",
        "InterruptEvent",
        "Condensation",
        "CondensationRequest",
        "CondensationSummaryEvent",
        "ConversationStateUpdateEvent",
        "ConversationErrorEvent",
        "TokenEvent",
        "StreamingDeltaEvent",
        "SecurityAnalysisEvent",
        "LLMCompletionLogEvent",
    }
)


def recognises(sample: Sample) -> bool:
    """Whether a folder is a conversation."""
    return sample.kind == "directory" and {STATE, "events"} <= sample.names


def read(found: Found, depth: Depth) -> Iterator[Item]:
    """Read a conversation, event by event."""
    yield About(session=found.path.name)
    state = record(found.path / STATE)
    if isinstance(state, Fault):
        yield state
        state = {}
    yield from _Reader(depth, state).items(found.path / "events")


class _Reader:
    """What is remembered from one event to the next."""

    def __init__(self, depth: Depth, state: Mapping[str, Any]) -> None:
        self._depth = depth
        self._state = state
        self._ids: set[str] = set()
        self._open: dict[str, tuple[str, str]] = {}
        """By the id of an action without an answer: its call and its reply."""
        self._reply = ""
        self._together: Said | None = None
        """The reply whose calls, an event each, are still coming."""

    def items(self, folder: Path) -> Iterator[Item]:
        """What the events of a folder say."""
        expected = 0
        for number, path in numbered(folder, FILE):
            if number > expected:
                yield Fault("gap", path.name, f"event {expected} is missing, and the tool sees none behind it")
            elif number < expected:
                yield Fault("duplicate", path.name, f"a second event {number}")
            expected = number + 1
            event = record(path)
            if isinstance(event, Fault):
                yield event
                continue
            parent = event.get("parent_id")
            if isinstance(parent, str) and parent != ROOT and parent not in self._ids:
                yield Fault("missing_parent", path.name, f"its parent {parent} is not there")
            self._ids.add(str(event.get("id")))
            yield from self._event(path.name, event)
        yield from self._told()
        yield from self._waiting()

    def _event(self, place: str, event: Event) -> Iterator[Item]:
        kind, time = str(event.get("kind")), milliseconds(event.get("timestamp"))
        if kind == "ActionEvent":
            yield from self._action(place, event, time)
            return
        if kind == "HookExecutionEvent":
            call, _ = self._open.get(str(event.get("action_id")), ("", ""))
            if call and event.get("hook_event_type") == "PostToolUse":
                yield Sign(place, call, "ran", "a hook ran after the tool")
            return
        yield from self._told()
        if kind in ANSWERS:
            self._answered(event)
            yield Said(place, "tool_result", _result(kind, event, self._depth), time=time)
        elif kind == "MessageEvent":
            if self._depth == "whole":
                yield _message(place, event, time)
        elif kind == "SystemPromptEvent":
            if self._depth == "whole":
                texts = [event.get("system_prompt"), event.get("dynamic_context")]
                yield Said(place, "system_message", {"parts": contents(texts)}, time=time)
        elif kind not in _SILENT:
            yield Other(place, kind)

    def _action(self, place: str, event: Event, time: int | None) -> Iterator[Item]:
        """A call; the calls of one reply are an event each, and one message."""
        id, reply = call_id(event), str(event.get("llm_response_id") or "")
        if reply and (id, reply) in self._open.values():
            return  # the action of this reply, recorded once more (F07)
        self._open[str(event.get("id"))] = id, reply
        said = Said(place, "assistant_message", {"parts": [_call(event)]}, time=time)
        if self._depth == "calls":
            yield said
        elif self._together is not None and reply and reply == self._reply:
            self._together.data["parts"].append(_call(event))
        else:
            yield from self._told()
            said.data["parts"][:0] = _thoughts(event)
            self._together, self._reply = said, reply

    def _told(self) -> Iterator[Item]:
        if self._together is not None:
            yield self._together
            self._together = None

    def _answered(self, event: Event) -> None:
        action, id = str(event.get("action_id")), call_id(event)
        if action not in self._open:  # an error names its call alone
            action = next((key for key, (call, _) in self._open.items() if call == id), "")
        self._open.pop(action, None)

    def _waiting(self) -> Iterator[Item]:
        """The calls at the leaf, where the agent waits until a person agrees to them.

        The state on the disk says so until their answers come, also while they run.
        """
        if self._state.get("execution_status") != "waiting_for_confirmation":
            return
        _, reply = self._open.get(str(self._state.get("leaf_event_id")), ("", ""))
        for id, of in self._open.values():
            if reply and of == reply:
                yield Sign(STATE, id, "waiting", f"the agent waits until a person agrees to it, {OR_KILLED}")


def call_id(event: Mapping[str, Any]) -> str:
    """The id of the call that an event asks for or answers."""
    return str(event.get("tool_call_id", ""))


def is_invented(event: Mapping[str, Any]) -> bool:
    """Whether an answer was made up."""
    return event.get("kind") == "AgentErrorEvent" and str(event.get("error", "")).startswith(_INVENTED)


def _call(event: Event) -> dict[str, Any]:
    call = event.get("tool_call")
    arguments = call.get("arguments") if isinstance(call, dict) else None
    text = arguments if isinstance(arguments, str) else compact_text(arguments or {})
    return {"type": "tool_call", "id": call_id(event), "name": str(event.get("tool_name", "")), "arguments": text}


def _thoughts(event: Event) -> list[dict[str, Any]]:
    blocks = event.get("thinking_blocks")
    blocks = blocks if isinstance(blocks, list) else []
    thinking = [part_or_text(block, part_of) for block in blocks if isinstance(block, dict)]
    said = event.get("reasoning_content")
    if not thinking and isinstance(said, str) and said:
        thinking = [{"type": "reasoning", "content": said}]
    return thinking + [part for part in contents(event.get("thought")) if part != {"type": "text", "content": ""}]


def _result(kind: str, event: Event, depth: Depth) -> dict[str, Any]:
    data: dict[str, Any] = {"id": call_id(event), "parts": []}
    if kind == "ObservationEvent":
        observation = event.get("observation")
        observation = observation if isinstance(observation, dict) else {}
        if depth == "whole":
            data["parts"] = contents(observation.get("content"))
        return data | ({"is_error": True} if observation.get("is_error") is True else {})
    text = str(event.get("error") if kind == "AgentErrorEvent" else event.get("rejection_reason", "rejected"))
    data |= {"is_error": True, "parts": [{"type": "text", "content": text}]}
    if is_ours(text):
        data["metadata"] = {"synthetic": True, "by": TURNWAL}
    elif is_invented(event):
        data["metadata"] = {"synthetic": True, "by": "openhands"}
    return data


def _message(place: str, event: Event, time: int | None) -> Said:
    message = event.get("llm_message")
    message = message if isinstance(message, dict) else {}
    parts = contents(message.get("content")) + contents(event.get("extended_content"))
    if event.get("source") != "agent":
        return Said(place, "user_message", {"parts": parts}, time=time)
    return Said(place, "assistant_message", {"parts": _thoughts(message) + parts}, time=time)


def contents(blocks: object) -> list[dict[str, Any]]:
    """The parts of a content: texts, and images by their addresses."""
    found: list[dict[str, Any]] = []
    for block in blocks if isinstance(blocks, list) else []:
        if not isinstance(block, dict):
            continue
        if isinstance(block.get("text"), str):
            found.append({"type": "text", "content": block["text"]})
        urls = block.get("image_urls")
        found += [_image(url) for url in urls if isinstance(url, str)] if isinstance(urls, list) else []
    return found


def _image(url: str) -> dict[str, Any]:
    inline = re.fullmatch(r"data:([^;,]+);base64,(.*)", url, re.DOTALL)
    if inline is None:
        return {"type": "uri", "modality": "image", "uri": url}
    return {"type": "blob", "modality": "image", "mime_type": inline[1], "content": inline[2]}
