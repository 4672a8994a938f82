"""Requests in the form of Chat Completions: what the targets that speak it have in common.

Promises:
- an assistant message that asks for calls is followed at once by one `tool` message for each of them, in call order,
  and no `tool` message stands anywhere else (OC1, F05, F09);
- an assistant message has content or calls, else it is left out (OC2, F31); arguments are text that holds a JSON
  object, as the model wrote it wherever it is one (OC2, F30, F36);
- what else a message of this target carried (a name, a refusal, …) goes back with it.

Does not: know what one provider allows beyond that; `openai_chat` and `mistral` do.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from turnwal.transcript.arguments import arguments_text
from turnwal.transcript.ids import Ids
from turnwal.transcript.message import Asked, Message
from turnwal.transcript.target import Notes, Target, Wire, copied
from turnwal.transcript.words import is_text, lone_text, plain_text, tool_name, words_of


class Chat(Target):
    """A provider that speaks the form of Chat Completions."""

    separate_system: ClassVar[bool] = False
    body: ClassVar[str | None] = None
    roles: ClassVar[Mapping[str, frozenset[str]]]
    """For each kind of message the roles in which one that is kept verbatim may go back."""
    told: ClassVar[Mapping[str, str]]
    """The blocks that system content may hold: each type with the field that it cannot lack."""
    given: ClassVar[Mapping[str, str]]
    """The same of a user's content."""
    said: ClassVar[Mapping[str, str]]
    """The same of an assistant's content."""
    only_calls: ClassVar[str | None]
    """The content of a message that only asks for calls."""

    def make(self, message: Message, ids: Ids, notes: Notes) -> list[Wire]:
        """What a message becomes: one message, and behind it those with the results of its calls."""
        if message.kind == "assistant":
            return self._assistant(message, ids, notes)
        allowed = self.told if message.kind == "system" else self.given
        kept = self._kept(message, allowed, notes)
        if kept is not None:
            return [kept]
        content = self._content(message.parts, allowed, notes, message.seq)
        if not content:
            notes.add("empty_message", "nothing in it can be sent", message.seq)
            return []
        return [{"role": "system" if message.kind == "system" else "user", "content": content}]

    @staticmethod
    @abstractmethod
    def media(part: Mapping[str, Any]) -> Wire | None:
        """A block of a user's content for an image, a sound or a document; None for what is not taken."""

    def returned(self, message: Wire, seq: int, notes: Notes) -> Wire:
        """A message that is kept verbatim, as it goes back."""
        del seq, notes
        return message

    def call(self, asked: Asked, kept: Wire, name: str, seq: int, notes: Notes) -> Wire:
        """A call, its id apart; `kept` is the one that came, empty where there is none to keep."""
        function = kept.get("function")
        function = function if isinstance(function, dict) else {}
        arguments = self.arguments(asked, function.get("arguments"), seq, notes)
        return {**(kept or {"type": "function"}), "function": {**function, "name": name, "arguments": arguments}}

    def arguments(self, asked: Asked, came: object, seq: int, notes: Notes) -> Any:
        """The arguments of a call, as text that holds an object; `came` is what the provider sent, where it is kept."""
        del came
        return arguments_text(asked, seq, notes)

    def _assistant(self, message: Message, ids: Ids, notes: Notes) -> list[Wire]:
        calls: list[Wire] = []
        answers: list[Wire] = []
        for index, asked in message.calls.items():
            id = ids.take(asked.key, asked.id)
            if id != asked.id:
                notes.add("id_rewritten", f"the call of part {index} has the id {id} here", message.seq)
            name = tool_name(asked.name, message.seq, notes)
            block = self.verbatim(message.parts[index])
            kept = copied(block) if isinstance(block, dict) and self.wrote(message) else {}
            call = {"id": id, **self.call(asked, kept, name, message.seq, notes)}
            call["id"] = id
            calls.append(call)
            answers.append(self._result(asked, id, notes))
        native = message.native(self.name)
        wire = self._kept(message, self.said, notes) if native and message.complete and self.wrote(message) else None
        if wire is None:
            if native and message.complete:
                _note_lost(native.get("message"), notes, message.seq)
            blocks = [block for part in message.parts for block in self._said(part, message, notes)]
            wire = {"role": "assistant", "content": content_of(blocks) if blocks else self.only_calls}
        if calls:
            wire["tool_calls"] = calls
        elif wire.get("tool_calls"):
            del wire["tool_calls"]
        if not calls and not _says(wire):
            notes.add("empty_message", "nothing in it can be sent", message.seq)
            return []
        return [wire, *answers]

    def _kept(self, message: Message, allowed: Mapping[str, str], notes: Notes) -> Wire | None:
        """The message that an event keeps for this target, where it can go back as it is."""
        native = message.native(self.name)
        kept = None if native is None else native.get("message")
        if not isinstance(kept, dict) or str(kept.get("role")) not in self.roles[message.kind]:
            return None
        content = kept.get("content")
        if content is None and message.kind != "assistant":
            return None
        whole = content is None or isinstance(content, str) or _are_blocks(content, allowed)
        return self.returned(copied(kept), message.seq, notes) if whole else None

    def _result(self, asked: Asked, id: str, notes: Notes) -> Wire:
        answer = asked.answer
        seqs = () if answer.seq is None else (answer.seq,)
        kept = answer.native.get("block") if answer.native and answer.native.get("provider") == self.name else None
        if isinstance(kept, dict) and kept.get("role") == "tool":
            content = kept.get("content")
            if isinstance(content, str) or _are_blocks(content, _TEXT):
                if isinstance(kept.get("name"), str):
                    kept = {**kept, "name": tool_name(kept["name"], answer.seq or 0, notes)}
                return {**copied(kept), "tool_call_id": id}
        content = self._content(answer.parts, _TEXT, notes, *seqs) or ("(no output)" if answer.is_error else "")
        return {"role": "tool", "content": content, "tool_call_id": id}

    def _content(
        self, parts: Sequence[Mapping[str, Any]], allowed: Mapping[str, str], notes: Notes, *seqs: int
    ) -> list[Wire] | str:
        """The content that gives these parts to the model; empty where nothing of them can be sent."""
        text = lone_text(parts)
        return content_of(self._given(parts, allowed, notes, *seqs)) if text is None else text

    def _given(
        self, parts: Iterable[Mapping[str, Any]], allowed: Mapping[str, str], notes: Notes, *seqs: int
    ) -> list[Wire]:
        """The blocks of what is given to the model; words stand for what is not allowed there."""
        blocks: list[Wire] = []
        for part in parts:
            kept = self.verbatim(part)
            if is_block(kept, allowed):
                blocks.append(copied(kept))
            elif is_text(part):
                if part["content"]:
                    blocks.append({"type": "text", "text": part["content"]})
            else:
                media = self.media(part)
                if media is None or media["type"] not in allowed:
                    notes.add("part_replaced", f"words stand for a part of type {part.get('type')!r}", *seqs)
                    media = {"type": "text", "text": words_of(part)}
                blocks.append(media)
        return blocks

    def _said(self, part: Mapping[str, Any], message: Message, notes: Notes) -> list[Wire]:
        """The blocks of what the model said."""
        text = plain_text(part)
        if text is not None:
            return [{"type": "text", "text": text}]
        kind = part.get("type")
        if kind == "tool_call":
            return []
        kept = self.verbatim(part)
        if is_block(kept, self.said) and (kind != "reasoning" or (message.complete and self.wrote(message))):
            return [copied(kept)]
        if is_text(part):
            return [{"type": "text", "text": part["content"]}] if part["content"] else []
        if kind == "reasoning":
            notes.add("reasoning_left_out", "there is no form for it here, or not from this model", message.seq)
        elif kind in ("blob", "uri", "file"):
            notes.add("part_replaced", f"words stand for a part of type {kind!r}", message.seq)
            return [{"type": "text", "text": words_of(part)}]
        else:
            notes.add("part_left_out", f"there is no form for a part of type {kind!r}", message.seq)
        return []


_TEXT: Final = {"text": "text"}
_ALONE: Final = frozenset({"type", "text"})

_FROM_PARTS: Final = frozenset({"role", "content", "tool_calls", "function_call", "refusal", "prefix"}) | {
    "reasoning",
    "reasoning_content",
}
"""Fields of an assistant's message that its parts speak of."""


def _note_lost(kept: object, notes: Notes, seq: int) -> None:
    """Note what a message that is kept had beside what its parts say, where it does not go back whole."""
    beside = sorted(kept.keys() - _FROM_PARTS) if isinstance(kept, dict) else ()
    if beside:
        notes.add("part_left_out", f"{', '.join(beside)} of the message: not sent here", seq)


def content_of(blocks: list[Wire]) -> list[Wire] | str:
    """Content of these blocks: text alone is a string."""
    if len(blocks) == 1:
        (alone,) = blocks
        if len(alone) == len(_ALONE) and alone.keys() == _ALONE and alone["type"] == "text":
            text: str = alone["text"]
            return text
    return blocks


def is_block(block: object, allowed: Mapping[str, str]) -> bool:
    """Whether it is a block of one of these types, with the field that the type cannot lack."""
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(block, dict) or not isinstance(kind, str) or kind not in allowed:
        return False
    held = block.get(allowed[kind])
    if kind == "image_url" and isinstance(held, dict):
        held = held.get("url")
    return isinstance(held, str) if kind in ("text", "refusal", "image_url") else held is not None and held != {}


def _are_blocks(content: object, allowed: Mapping[str, str]) -> bool:
    return isinstance(content, list) and bool(content) and all(is_block(block, allowed) for block in content)


def _says(message: Wire) -> bool:
    """Whether a message without calls has something in it (F31)."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"text": content}]
    return any(block.get("text", True) for block in blocks) or bool(message.get("refusal") or message.get("audio"))
