"""Requests of Amazon Bedrock's Converse, as the REST JSON has them: `messages`, with `system` beside.

Rules, with their sources (API reference of `Converse`, `ContentBlock` and below; the words of its errors):
- every `toolUse` has its `toolResult` in the next message, all of a message in that one and before everything else,
  and none stands without its call (BE1; "Expected toolResult blocks at messages.N.content for the following Ids",
  "The number of toolResult blocks at messages.N.content exceeds the number of toolUse blocks of previous turn.");
- ids are unique in the request, 1 to 64 of letters, digits, `_`, `.`, `:`, `-`; names 1 to 64 of letters, digits, `_`,
  `-`; `input` is an object (ToolUseBlock);
- `user` and `assistant` take turns, the first is the user's ("A conversation must start with a user message.");
- no blank text and no message without content ("The text field in the ContentBlock object at messages.N.content.M is
  blank.", "The content field in the Message object at messages.N is empty.");
- reasoning goes back as it came, with its signature, to the model that wrote it, or not at all ("include the text and
  its signature unmodified"; ReasoningTextBlock); newer models sign reasoning that they do not show, whose text is empty
  (strands-agents/harness-sdk#2704);
- `status` is for Claude and Nova alone (ToolResultBlock); other models that are known read it as words;
- a document has a name of letters, digits, single spaces, hyphens, parentheses and brackets, unique in the request
  ("Messages can't contain duplicate document names."), and text beside it ("A text block must be included when using
  documents.").

Bytes are base64, as in the REST JSON: a rendering is JSON. The Python packages of AWS take bytes instead and encode
them: `blobs.with_bytes` makes those of a rendering.

Does not: look at `toolConfig`, which a request with tool blocks must have ("The toolConfig field must be defined when
using toolUse and toolResult content blocks."); nor serve the models of Bedrock that take no text beside tool blocks
(Llama, Mistral: "Conversation blocks and tool use blocks cannot be provided in the same turn.").
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from turnwal.transcript.arguments import arguments_object, served_arguments
from turnwal.transcript.bedrock.media import media_of
from turnwal.transcript.ids import IdRule, Ids
from turnwal.transcript.message import Asked, Message
from turnwal.transcript.target import Notes, Target, Wire, copied, family
from turnwal.transcript.words import BRIDGE, bridged, is_blank, is_text, lone_text, plain_text, tool_name, words_of

_NAME_CHARS: Final = 190
"""How much of a document's name is left for a number behind it."""
_PROFILE: Final = re.compile(r"^(?:us-gov|us|eu|apac|jp|au|ca|sa|me|global)\.")
"""Where a model is asked; it is the same model everywhere."""
_VENDOR: Final = re.compile(r"[a-z0-9]+\.[a-z]")
"""How the name of a model begins; that of somebody's own profile says nothing of the model."""
_WITH_STATUS: Final = ("claude", "nova")


class Bedrock(Target):
    """Amazon Bedrock Converse."""

    name: ClassVar[str] = "bedrock"
    ids: ClassVar[IdRule] = IdRule(re.compile(r"[a-zA-Z0-9_.:-]{1,64}"), "tooluse_", 24)
    separate_system: ClassVar[bool] = True
    body: ClassVar[str | None] = "content"

    def __init__(self, model: str | None) -> None:
        """Render for a model; None stands for the one that wrote each message."""
        super().__init__(model)
        self._special = False
        """Whether a document or a cache point was sent."""
        self._apart = False
        """Whether neighbours of the model were left apart."""

    def make(self, message: Message, ids: Ids, notes: Notes) -> list[Wire]:
        """What a message becomes: one message, and the one with the results of its calls."""
        if message.kind == "assistant":
            return self._assistant(message, ids, notes)
        if message.kind == "system":
            notes.add("system_in_place", "it stands only at the beginning; sent as the user's", message.seq)
        return _one("user", self._given(message.parts, message.seq, notes), message.seq, notes)

    def finish(self, messages: list[Wire], notes: Notes) -> list[Wire]:
        """The list begins with the user, and documents have text beside them and names of their own."""
        if self._special:
            _name_apart(messages, notes)
            _accompany(messages, notes)
        if self._apart:
            messages = bridged(messages, {"role": "user", "content": [{"text": BRIDGE}]}, notes)
        if messages and messages[0]["role"] != "user":
            notes.add("bridge_added", "the first message is the user's")
            messages.insert(0, {"role": "user", "content": [{"text": BRIDGE}]})
        last = messages[-1]["content"][-1] if messages and messages[-1]["role"] == "assistant" else {}
        if isinstance(last.get("text"), str):
            # Claude goes on with a last answer, and refuses one that ends in white space
            last["text"] = last["text"].rstrip()
        return messages

    def merges(self, last: Wire, following: Wire) -> bool:
        """Whether two neighbours become one: reasoning begins a message, as Claude wants it."""
        if "reasoningContent" in last["content"][0] or "reasoningContent" not in following["content"][0]:
            return True
        if "toolUse" in last["content"][-1]:
            return True  # of a server tool, which goes on
        self._apart = True
        return False

    def text_block(self, text: str) -> Wire:
        """A block that holds text."""
        return {"text": text}

    def family(self, model: str) -> str:
        """A model's name without where it is served and what tells its releases apart."""
        return _family(model)

    def _assistant(self, message: Message, ids: Ids, notes: Notes) -> list[Wire]:
        signed = message.complete and self.wrote(message)
        whole = self._whole(message.parts)
        content: list[Wire] = []
        results: list[Wire] = []
        for index, part in enumerate(message.parts):
            text = plain_text(part)
            if text is not None:
                content.append({"text": text})
            elif part.get("type") != "tool_call":
                content += self._said(part, message, notes, signed=signed, whole=index in whole)
            elif index in message.calls:
                asked = message.calls[index]
                id = ids.take(asked.key, asked.id)
                if id != asked.id:
                    notes.add("id_rewritten", f"the call of part {index} has the id {id} here", message.seq)
                content.append(self._call(asked, part, id, message.seq, notes))
                results.append(self._result(asked, id, notes))
        while content and "reasoningContent" in content[-1]:
            content.pop()  # Claude refuses a message that ends in thinking; alone it says nothing (F31)
            notes.add("reasoning_left_out", "nothing follows it, and it cannot be the last of its message", message.seq)
        if all("reasoningContent" in block or "cachePoint" in block for block in content):
            content = []
        answers = [{"role": "user", "content": results}] if results else []
        return [*_one("assistant", content, message.seq, notes), *answers]

    def _call(self, asked: Asked, part: Mapping[str, Any], id: str, seq: int, notes: Notes) -> Wire:
        kept = self.verbatim(part)
        held = kept.get("toolUse") if isinstance(kept, dict) else None
        if isinstance(held, dict) and "input" in held:
            return {"toolUse": {**copied(held), "toolUseId": id}}
        arguments = arguments_object(asked, seq, notes)
        if isinstance(held, dict):
            return {"toolUse": {**copied(held), "toolUseId": id, "input": arguments}}
        return {"toolUse": {"toolUseId": id, "name": tool_name(asked.name, seq, notes), "input": arguments}}

    def _result(self, asked: Asked, id: str, notes: Notes) -> Wire:
        answer = asked.answer
        seq = -1 if answer.seq is None else answer.seq
        kept = answer.native.get("block") if answer.native and answer.native.get("provider") == self.name else None
        if isinstance(kept, dict) and isinstance(kept.get("toolResult"), dict):
            result: Wire = {**copied(kept["toolResult"]), "toolUseId": id}
            self._special = self._special or any("document" in block for block in result.get("content") or ())
        else:
            content = self._given(answer.parts, seq, notes) or [{"text": "(no output)"}]
            result = {"toolUseId": id, "content": content}
            if answer.is_error:
                result["status"] = "error"
        return {"toolResult": self._with_status(result, seq, notes)}

    def _with_status(self, result: Wire, seq: int, notes: Notes) -> Wire:
        """The result, with words for a status that the model does not take."""
        if "status" not in result or _takes_status(self.model):
            return result
        if result.pop("status") == "error":
            notes.add("part_replaced", "words stand for the status of a result", seq)
            result["content"] = [{"text": "(error)"}, *(result.get("content") or ())]
        return result

    def _given(self, parts: Sequence[Mapping[str, Any]], seq: int, notes: Notes) -> list[Wire]:
        """The blocks of what is given to the model: text, images, documents."""
        text = lone_text(parts)
        if text is not None:
            return [{"text": text}]
        content: list[Wire] = []
        for index, part in enumerate(parts):
            kept = self.verbatim(part)
            if isinstance(kept, dict):
                self._special = self._special or "document" in kept or "cachePoint" in kept
                content.append(copied(kept))
            elif is_text(part):
                content += [{"text": part["content"]}] if not is_blank(part["content"]) else []
            else:
                source = media_of(part, f"document {seq}-{index}")
                if source is None:
                    _note_words(part, seq, notes)
                else:
                    self._special = self._special or "document" in source
                content.append({"text": words_of(part)} if source is None else source)
        return content

    def _said(
        self, part: Mapping[str, Any], message: Message, notes: Notes, *, signed: bool, whole: bool
    ) -> list[Wire]:
        """The blocks of what the model said."""
        kept = self.verbatim(part)
        kind = part.get("type")
        if isinstance(kept, dict):
            found = self._kept(kept, message.seq, notes, signed=signed, whole=whole)
            for block in found:
                if "toolUse" in block and "input" not in block["toolUse"]:
                    block["toolUse"]["input"] = served_arguments(part, message.seq, notes)
            return found
        if is_text(part):
            return [{"text": part["content"]}] if not is_blank(part["content"]) else []
        if kind == "reasoning":
            notes.add("reasoning_left_out", "it is not signed for this model", message.seq)
        elif kind in ("blob", "uri", "file"):
            _note_words(part, message.seq, notes)
            return [{"text": words_of(part)}]
        else:
            notes.add("part_left_out", f"there is no form for a part of type {kind!r}", message.seq)
        return []

    def _kept(self, kept: Wire, seq: int, notes: Notes, *, signed: bool, whole: bool) -> list[Wire]:
        """A block that came from Bedrock, as far as it may go back."""
        if "reasoningContent" in kept:
            if signed and _is_signed(kept["reasoningContent"]):
                return [copied(kept)]
            notes.add("reasoning_left_out", "it is not signed for this model", seq)
            return []
        if not whole and ("toolUse" in kept or "toolResult" in kept):
            notes.add("part_left_out", "a block of a server tool has no other half in its message", seq)
            return []
        self._special = self._special or "cachePoint" in kept
        if isinstance(kept.get("text"), str) and is_blank(kept["text"]):
            return []
        return [copied(kept)]

    def _whole(self, parts: Sequence[Mapping[str, Any]]) -> set[int]:
        """The indexes of what a server tool was asked and what it found, where both are there."""
        waiting: dict[object, int] = {}
        whole: set[int] = set()
        for index, part in enumerate(parts):
            if "native" not in part:
                continue
            kind, id = part.get("type"), part.get("id")
            if self.verbatim(part) is None or not isinstance(id, str):
                continue
            if kind == "server_tool_call":
                waiting[id] = index
            elif kind == "server_tool_call_response" and id in waiting:
                whole |= {waiting.pop(id), index}
        return whole


TARGET: Final = Bedrock


def _bare(model: str) -> str:
    return _PROFILE.sub("", model.rsplit("/", 1)[-1])


def _family(model: str) -> str:
    return family(_bare(model))


def _takes_status(model: str | None) -> bool:
    if model is None or _VENDOR.match(_bare(model)) is None:
        return True
    return any(name in model for name in _WITH_STATUS)


def _is_signed(reasoning: object) -> bool:
    if not isinstance(reasoning, dict):
        return False
    text = reasoning.get("reasoningText")
    return bool(reasoning.get("redactedContent")) or (isinstance(text, dict) and bool(text.get("signature")))


def _one(role: str, content: list[Wire], seq: int, notes: Notes) -> list[Wire]:
    if not content:
        notes.add("empty_message", "nothing in it can be sent", seq)
        return []
    return [{"role": role, "content": content}]


def _note_words(part: Mapping[str, Any], seq: int, notes: Notes) -> None:
    notes.add("part_replaced", f"words stand for a part of type {part.get('type')!r}", seq)


def _name_apart(messages: Iterable[Wire], notes: Notes) -> None:
    """Give a document whose name is taken another one: the name with a number behind it."""
    taken: set[str] = set()
    for message in messages:
        for document in _documents(message["content"]):
            name, number = document["name"], 2
            while document["name"] in taken:
                document["name"] = f"{name[:_NAME_CHARS].rstrip()} ({number})"
                number += 1
            if document["name"] != name:
                notes.add("name_rewritten", f"a second document {name!r:.80} is called {document['name']!r} here")
            taken.add(document["name"])


def _documents(content: Iterable[Wire]) -> Iterator[Wire]:
    """The documents in blocks, those in results included."""
    for block in content:
        document, result = block.get("document"), block.get("toolResult")
        if isinstance(document, dict) and isinstance(document.get("name"), str):
            yield document
        elif isinstance(result, dict):
            yield from _documents(result.get("content") or ())


def _accompany(messages: Iterable[Wire], notes: Notes) -> None:
    """Put text beside documents and cache points that stand alone."""
    for message in messages:
        content = message["content"]
        document = any("document" in block for block in content) and not any("text" in block for block in content)
        if document or all("cachePoint" in block for block in content):
            notes.add("bridge_added", "text stands beside a document or a cache point")
            content.insert(len(content) if document else 0, {"text": BRIDGE})
