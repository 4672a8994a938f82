"""Requests of the Anthropic Messages API.

Rules, with their sources:
- every `tool_use` is answered in the very next message, the results first in it, one for each id, and no result stands
  without its call (AN1 to AN4: "Each `tool_use` block must have a corresponding `tool_result` block in the next
  message."; docs.anthropic.com, "Handle tool calls");
- thinking goes back as it came, with its signature, to the model that wrote it, or not at all (AN5; "Extended
  thinking"); where its text is omitted (`display: "omitted"`, the default of newer models) it is empty and the
  signature alone carries it (earendil-works/pi#6457);
- thinking is never the last of a message, and nothing by itself (F31; "The final block in an assistant message cannot
  be `thinking`."; tailcallhq/forgecode#2107, NousResearch/hermes-agent#16921);
- a reply that puts words before its thinking goes back as it came; but where a message is made of several, it begins
  with it ("a final `assistant` message must start with a thinking block"; n8n-io/n8n#22550), so words of another reply,
  as of a stream that broke off, are a message of their own, with a bridge behind it that no log holds;
- what a server tool found goes with the call that asked for it, and neither alone (`pairs.py`);
- no empty message and no text of white space alone (AN6); the first message is the user's; equal roles are merged.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from turnwal.transcript.anthropic.pairs import blocks_of, is_of_a_pair, is_server_call, is_thought, kind_of, paired
from turnwal.transcript.arguments import arguments_object, served_arguments
from turnwal.transcript.binary import base64_of
from turnwal.transcript.ids import IdRule, Ids
from turnwal.transcript.kept import merged
from turnwal.transcript.message import Answer, Asked, Message
from turnwal.transcript.target import Notes, Target, Wire, copied
from turnwal.transcript.words import BRIDGE, bridged, is_blank, is_text, lone_text, plain_text, tool_name, words_of

_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_IMAGE_CHARS_MAX: Final = 5 * 1024 * 1024
"""Base64 of one image ("Vision": 5 MB an image); what is larger is refused with the whole request."""


class Anthropic(Target):
    """Anthropic Messages."""

    name: ClassVar[str] = "anthropic"
    ids: ClassVar[IdRule] = IdRule(re.compile(r"[a-zA-Z0-9_-]{1,64}"), "toolu_", 24)
    separate_system: ClassVar[bool] = True
    body: ClassVar[str | None] = "content"

    def __init__(self, model: str | None) -> None:
        """Render for a model; None stands for the one that wrote each message."""
        super().__init__(model)
        self._served = False
        """Whether a block of a server tool was sent."""
        self._apart = False
        """Whether neighbours of the model were left apart."""

    def make(self, message: Message, ids: Ids, notes: Notes) -> list[Wire]:
        """What a message becomes: one message, and the one with the results of its calls."""
        if message.kind == "assistant":
            return self._assistant(message, ids, notes)
        if message.kind == "system":
            notes.add("system_in_place", "it stands only at the beginning; sent as the user's", message.seq)
        kept = message.native(self.name)
        whole = None if kept is None else kept.get("message")
        if _is_message(whole, "user"):
            return [copied(whole)]
        return _one("user", self._content(message.parts, message.seq, notes), message.seq, notes)

    def finish(self, messages: list[Wire], notes: Notes) -> list[Wire]:
        """The list begins with the user, and holds the blocks of server tools in pairs alone."""
        if self._served and (left := paired(messages, notes)) is not messages:
            messages = merged([left], self)
        if self._apart:
            messages = bridged(messages, {"role": "user", "content": BRIDGE}, notes)
        if messages and messages[0]["role"] != "user":
            notes.add("bridge_added", "the first message is the user's")
            messages.insert(0, {"role": "user", "content": BRIDGE})
        if messages and messages[-1]["role"] == "assistant":
            _trim(messages[-1])
        return messages

    def merges(self, last: Wire, following: Wire) -> bool:
        """Whether two neighbours become one: thinking begins one, or goes on behind a server call or a compaction."""
        content = last["content"]
        if following["role"] == "user" or not _begins_in_thought(following["content"]) or _begins_in_thought(content):
            return True
        if isinstance(content, list) and content and (is_server_call(content[-1]) or _is_compaction(content)):
            return True
        self._apart = True
        return False

    def _assistant(self, message: Message, ids: Ids, notes: Notes) -> list[Wire]:
        taken: dict[int, str] = {}
        for index, asked in message.calls.items():
            taken[index] = id = ids.take(asked.key, asked.id)
            if id != asked.id:
                notes.add("id_rewritten", f"the call of part {index} has the id {id} here", message.seq)
        results = [self._result(asked, taken[index], notes) for index, asked in message.calls.items()]
        answers = [{"role": "user", "content": results}] if results else []
        kept = message.native(self.name)
        whole: Any = None if kept is None else kept.get("message")
        returns = _is_message(whole, "assistant") and not _ends_in_thought(whole["content"])
        if returns and self._unchanged(message, taken):
            self._served = self._served or any(map(is_of_a_pair, blocks_of(whole)))
            return [copied(whole), *answers]
        content: list[Wire] = []
        for index, part in enumerate(message.parts):
            text = plain_text(part)
            if text is not None:
                content.append({"type": "text", "text": text})
            elif part.get("type") == "tool_call":
                asked_here = message.calls.get(index)
                if asked_here is not None:
                    content.append(self._call(asked_here, part, taken[index], message.seq, notes))
            else:
                content += self._said(part, message, notes)
        while _ends_in_thought(content):
            content.pop()
            notes.add("reasoning_left_out", "nothing follows it, and it cannot be the last of its message", message.seq)
        return [*_one("assistant", content, message.seq, notes), *answers]

    def _unchanged(self, message: Message, taken: Mapping[int, str]) -> bool:
        """Whether a message can go back whole as it came: nothing of it is left out or renamed."""
        asking = [index for index, part in enumerate(message.parts) if part.get("type") == "tool_call"]
        same = all(index in taken and taken[index] == message.calls[index].id for index in asking)
        return message.complete and same and self.wrote(message)

    def _call(self, asked: Asked, part: Mapping[str, Any], id: str, seq: int, notes: Notes) -> Wire:
        kept = self.verbatim(part)
        self._served = self._served or (isinstance(kept, dict) and is_of_a_pair(kept))
        if isinstance(kept, dict) and "input" in kept:
            return {**copied(kept), "id": id}
        arguments = arguments_object(asked, seq, notes)
        if isinstance(kept, dict):
            return {**copied(kept), "id": id, "input": arguments}
        return {"type": "tool_use", "id": id, "name": tool_name(asked.name, seq, notes), "input": arguments}

    def _result(self, asked: Asked, id: str, notes: Notes) -> Wire:
        answer = asked.answer
        if answer.native is not None and answer.native.get("provider") == self.name:
            block = answer.native.get("block")
            if isinstance(block, dict):
                return {**copied(block), "tool_use_id": id}
        content = self._content(answer.parts, asked_seq(answer), notes)
        block = {"type": "tool_result", "tool_use_id": id}
        if content:
            block["content"] = content
        if answer.is_error:
            block.setdefault("content", "(no output)")
            block["is_error"] = True
        return block

    def _content(self, parts: Sequence[Mapping[str, Any]], seq: int, notes: Notes) -> list[Wire] | str:
        """The content that gives these parts to the model: text alone is a string."""
        text = lone_text(parts)
        if text is not None:
            return text
        content = self._given(parts, seq, notes)
        return content[0]["text"] if len(content) == 1 and content[0].keys() == {"type", "text"} else content

    def _given(self, parts: Iterable[Mapping[str, Any]], seq: int, notes: Notes) -> list[Wire]:
        """The blocks of what is given to the model: text, images, documents."""
        content: list[Wire] = []
        for part in parts:
            kept = self.verbatim(part)
            if isinstance(kept, dict):
                content.append(copied(kept))
            elif is_text(part):
                if not is_blank(part["content"]):
                    content.append({"type": "text", "text": part["content"]})
            else:
                source = _source(part)
                if source is None:
                    notes.add("part_replaced", f"words stand for a part of type {part.get('type')!r}", seq)
                    content.append({"type": "text", "text": words_of(part)})
                else:
                    content.append(source)
        return content

    def _said(self, part: Mapping[str, Any], message: Message, notes: Notes) -> list[Wire]:
        """The blocks of what the model said."""
        kept = self.verbatim(part)
        kind = part.get("type")
        if isinstance(kept, dict):
            if not is_thought(kept):
                self._served = self._served or is_of_a_pair(kept)
                if kind == "server_tool_call" and "input" not in kept:
                    return [{**copied(kept), "input": served_arguments(part, message.seq, notes)}]
                return [copied(kept)]
            if message.complete and self.wrote(message) and _is_whole(kept):
                return [copied(kept)]
        if is_text(part):
            return [{"type": "text", "text": part["content"]}] if not is_blank(part["content"]) else []
        if kind == "reasoning":
            notes.add("reasoning_left_out", "it is not signed for this model", message.seq)
        elif kind in ("blob", "uri", "file"):
            notes.add("part_replaced", f"words stand for a part of type {kind!r}", message.seq)
            return [{"type": "text", "text": words_of(part)}]
        else:
            notes.add("part_left_out", f"there is no form for a part of type {kind!r}", message.seq)
        return []


TARGET: Final = Anthropic


def asked_seq(answer: Answer) -> int:
    """Seq of a result, -1 for one that is in no log."""
    return -1 if answer.seq is None else answer.seq


def _one(role: str, content: list[Wire] | str, seq: int, notes: Notes) -> list[Wire]:
    if not content:
        notes.add("empty_message", "nothing in it can be sent", seq)
        return []
    return [{"role": role, "content": content}]


def _is_whole(block: Wire) -> bool:
    """Whether a block of thinking is signed (AN5); its text is empty where it was omitted."""
    if block["type"] == "redacted_thinking":
        return bool(block.get("data"))
    return bool(block.get("signature")) and isinstance(block.get("thinking"), str)


def _is_message(whole: Any, role: str) -> bool:
    """Whether it is a message of a role, be its blocks what they may."""
    if not isinstance(whole, dict) or whole.get("role") != role:
        return False
    content = whole.get("content")
    return isinstance(content, str) or (isinstance(content, list) and all(isinstance(each, dict) for each in content))


def _ends_in_thought(content: object) -> bool:
    return isinstance(content, list) and bool(content) and is_thought(content[-1])


def _is_compaction(content: list[Wire]) -> bool:
    return all(kind_of(block) == "compaction" for block in content)


def _begins_in_thought(content: object) -> bool:
    return isinstance(content, list) and bool(content) and is_thought(content[0])


def _source(part: Mapping[str, Any]) -> Wire | None:
    """An image or document block, or None for what Anthropic does not take."""
    media, content, uri = part.get("mime_type"), base64_of(part), part.get("uri")
    if content is not None:
        source: Wire = {"type": "base64", "media_type": media, "data": content}
    elif part.get("type") == "uri" and isinstance(uri, str) and uri.startswith("https://"):
        source = {"type": "url", "url": uri}
    else:
        return None
    if str(media) in _IMAGES or (source["type"] == "url" and part.get("modality") == "image"):
        return {"type": "image", "source": source} if len(source.get("data", "")) <= _IMAGE_CHARS_MAX else None
    return {"type": "document", "source": source} if media == "application/pdf" else None


def _trim(message: Wire) -> None:
    """Take white space from the end of a last answer, which the model would go on with: it is refused."""
    content = message["content"]
    if isinstance(content, str):
        message["content"] = content.rstrip()
    elif content and isinstance(content[-1].get("text"), str):
        content[-1]["text"] = content[-1]["text"].rstrip()
