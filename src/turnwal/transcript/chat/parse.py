"""Replies and histories in the form of Chat Completions, as events.

Promises: nothing is lost. What the parts of a message cannot say again is kept verbatim in `native`, and only then.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from turnwal.core.line import compact
from turnwal.transcript.chat.render import Chat, content_of
from turnwal.transcript.plain import rest_of, with_rest, without_nulls

Block = Mapping[str, Any]

_TOLD: Final = frozenset({"id", "object", "created", "model", "usage", "choices", "complete"})
_TOLD_OF_CHOICE: Final = frozenset({"index", "message", "messages", "finish_reason"})
"""What the data of a message, and the time of its event, say of a completion and its first choice."""

_SYSTEM_ROLES: Final = frozenset({"system", "developer"})
_EMPTY: Final[Mapping[str, Any]] = {"tool_calls": [], "annotations": [], "prefix": False}
"""Fields of a reply that say nothing when they are so."""


@dataclass(frozen=True, slots=True)
class Form:
    """How one target speaks the form."""

    target: type[Chat]
    readers: Mapping[object, Callable[[Block], dict[str, Any]]]
    """What makes a part of a block, by its type."""

    @property
    def name(self) -> str:
        """The name of the target."""
        return self.target.name

    def reply_data(self, reply: Block) -> dict[str, Any]:
        """The data of an `assistant_message` for a chat completion."""
        choice = reply["choices"][0]
        message = {"role": "assistant"} | _sent(choice["message"])
        parts, usual = self._assistant(message)
        data: dict[str, Any] = {"parts": parts, "provider": self.name}
        if _speaking(message) != _speaking(usual):
            data["native"] = {"provider": self.name, "message": {"content": None} | message}
        stop = choice.get("finish_reason")
        said = {"model": reply.get("model"), "response_id": reply.get("id"), "stop": stop, "usage": reply.get("usage")}
        data |= without_nulls(said)
        # "error": the model broke off, so what it asks for was never all said
        if reply.get("complete") is False or stop == "error":
            data["complete"] = False
        choices = [rest_of(choice, _TOLD_OF_CHOICE), *reply["choices"][1:]]
        return with_rest(data, rest_of(reply, _TOLD) | ({"choices": choices} if any(choices) else {}))

    def history(self, messages: Sequence[Block], system: object = None) -> Iterator[tuple[str, dict[str, Any]]]:
        """The events (type, data) of a list of messages, behind system text that is given apart."""
        if system is not None and not isinstance(system, str):
            raise ValueError("system text is a string, or stands among the messages")
        if system:
            yield "system_message", {"parts": [{"type": "text", "content": system}]}
        for message in messages:
            role = message["role"]
            if role == "assistant":
                parts, usual = self._assistant(message)
                yield "assistant_message", self._kept({"parts": parts, "provider": self.name}, message, usual)
            elif role in ("tool", "function"):
                yield "tool_result", self._result(message)
            elif role == "user" or role in _SYSTEM_ROLES:
                blocks = _blocks(message.get("content"))
                usual = {"role": "user" if role == "user" else "system", "content": content_of(_worded(blocks))}
                type_ = "user_message" if role == "user" else "system_message"
                yield type_, self._kept({"parts": [self._part(block) for block in blocks]}, message, usual)
            else:
                raise ValueError(f"the role {role!r:.80} is unknown")

    def _kept(self, data: dict[str, Any], message: Block, usual: Block) -> dict[str, Any]:
        return data if message == usual else {**data, "native": {"provider": self.name, "message": dict(message)}}

    def _assistant(self, message: Block) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The parts of a message, and the message that they alone stand for."""
        blocks = _blocks(message.get("content"))
        # where servers that speak this form put reasoning
        thought = message.get("reasoning_content") or message.get("reasoning")
        parts: list[dict[str, Any]] = [{"type": "reasoning", "content": thought}] if isinstance(thought, str) else []
        parts += [self._part(block) for block in blocks]
        if isinstance(message.get("refusal"), str):
            parts.append(self._part({"type": "refusal", "refusal": message["refusal"]}))
        audio = message.get("audio")
        if isinstance(audio, dict) and isinstance(audio.get("transcript"), str) and audio["transcript"]:
            parts.append({"type": "text", "content": audio["transcript"]})
        calls = message.get("tool_calls") or ()
        parts += [self._call(call) for call in calls]
        if isinstance(message.get("function_call"), dict):
            parts.append(self._call({"id": "", "type": "function", "function": message["function_call"]}))
        worded = _worded(blocks)
        usual: dict[str, Any] = {
            "role": "assistant",
            "content": content_of(worded) if worded else self.target.only_calls,
        }
        if calls:
            usual["tool_calls"] = list(calls)
        return parts, usual

    def _part(self, block: Block) -> dict[str, Any]:
        """A part for a block, with the block itself where the part alone would not give it back."""
        reader = self.readers.get(block.get("type"))
        part = {"type": str(block.get("type"))} if reader is None else reader(block)
        is_text = part["type"] == "text"
        usual = {"type": "text", "text": part["content"]} if is_text else self.target.media(part)
        return part if block == usual else {**part, "native": {"provider": self.name, "block": dict(block)}}

    def _call(self, call: Block) -> dict[str, Any]:
        """A part for a call; its arguments stay the text that the model wrote."""
        call = without_nulls(call)
        custom = call.get("custom")
        told: Block = custom if isinstance(custom, dict) else call["function"]
        raw = told.get("input" if isinstance(custom, dict) else "arguments")
        text = raw if isinstance(raw, str) else compact({} if raw is None else raw)
        part = {"type": "tool_call", "id": call.get("id", ""), "name": told.get("name", ""), "arguments": text}
        if isinstance(custom, dict):
            part["format"] = "text"
            usual = {"id": part["id"], "type": "custom", "custom": {"name": part["name"], "input": text}}
        else:
            usual = {"id": part["id"], "type": "function", "function": {"name": part["name"], "arguments": text}}
        if call != usual:
            part["native"] = {"provider": self.name, "block": call}
        return part

    def _result(self, message: Block) -> dict[str, Any]:
        blocks = _blocks(message.get("content"))
        data: dict[str, Any] = {"id": message.get("tool_call_id") or "", "parts": [self._part(each) for each in blocks]}
        if isinstance(message.get("name"), str):
            data["name"] = message["name"]
        worded = _worded(blocks)
        usual = {"role": "tool", "content": content_of(worded) if worded else "", "tool_call_id": data["id"]}
        if message != usual and message["role"] == "tool":
            data["native"] = {"provider": self.name, "block": dict(message)}
        return data


def text(block: Block) -> dict[str, Any]:
    """A part for a block of text."""
    return {"type": "text", "content": block["text"]}


def media(url: str, modality: str) -> dict[str, Any]:
    """A part for what stands at a URL, or in one."""
    head, comma, content = url.partition(";base64,")
    if comma and head.startswith("data:") and ";" not in head:
        return {"type": "blob", "modality": modality, "mime_type": head.removeprefix("data:"), "content": content}
    return {"type": "uri", "modality": modality, "uri": url}


def _blocks(content: object) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content) if isinstance(content, list) else []


def _worded(blocks: list[Block]) -> list[dict[str, Any]]:
    """The blocks that a request holds: empty text is not sent."""
    return [dict(block) for block in blocks if block.get("type") != "text" or block.get("text")]


def _sent(message: Block) -> dict[str, Any]:
    """A reply's message as the provider sent it: without what says nothing, and what a client library put in."""
    found = {name: value for name, value in without_nulls(message).items() if _EMPTY.get(name, ...) != value}
    found.pop("parsed", None)
    if "tool_calls" in found:
        found["tool_calls"] = [_unparsed(call) for call in found["tool_calls"]]
    return found


def _unparsed(call: Block) -> dict[str, Any]:
    call = without_nulls(call)
    function = call.get("function")
    if isinstance(function, dict) and "parsed_arguments" in function:
        call["function"] = {name: value for name, value in function.items() if name != "parsed_arguments"}
    return call


def _speaking(message: Block) -> dict[str, Any]:
    """A message without an empty content: an absent one and an empty one say the same."""
    return {name: value for name, value in message.items() if name != "content" or value}
