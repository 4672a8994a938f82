"""Requests of the Gemini API (generateContent), as the REST JSON has them: `contents`, with `systemInstruction` beside.

Rules, with their sources:
- as many `functionResponse` parts as `functionCall` parts, in one content right behind the calls (GE1; "Please ensure
  that the number of function response parts is equal to the number of function call parts of the function call turn."),
  and nothing else in that content: Vertex AI refuses text or media beside them and Gemini 3.5 answers with nothing,
  while a user's content behind it is taken by both (Prism-Shadow/agenthub#189, pydantic/pydantic-ai#4210,
  deepnoodle-ai/dive#287: measured); so those two neighbours are not merged, all others are;
- roles are `user` and `model`, the first is the user's ("Please ensure that function call turn comes immediately after
  a user turn or after a function response turn."); no content without parts, no empty text (AN6);
- `thoughtSignature` goes back on the part that it came on, to the model that wrote it, or not at all; of parallel calls
  only the first has one. Gemini 3 refuses a first call without one "in the current turn", which begins at the newest
  user content with text of its own; for one that is lost `skip_thought_signature_validator` stands (GE2; "Thought
  signatures", FAQ). It is sent to Gemini 3 and later and to a model that is not known: those refuse its absence, and
  older ones are known to take it. It leaves a request when its turn is over, and that alone makes what was rendered
  before differ from what is rendered now;
- thoughts go back verbatim with their signature or not at all; what a server tool did stands with what asked for it;
- `functionResponse.response` is an object, `output` or `error` ("Use "output" key to specify function output and
  "error" key to specify error details"; FunctionResponse); media in it is for Gemini 3 ("Multimodal function
  responses"), and a content of its own for others;
- ids are optional: kept if they are unique, left out where the call has none, the same on both sides (F08);
- a name begins with a letter or `_` and has letters, digits, `_`, `.`, `:`, `-`, at most 64 (FunctionDeclaration).

Does not: end a list that ends with the model's answer with the user. Gemini 3.6 and later refuse such a list ("Requests
ending with a model turn are not supported."); there is nothing to ask then.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from turnwal.transcript.arguments import arguments_object
from turnwal.transcript.gemini.media import media_of, nests
from turnwal.transcript.ids import IdRule, Ids
from turnwal.transcript.message import Asked, Message
from turnwal.transcript.target import Notes, Target, Wire, copied, family
from turnwal.transcript.words import BRIDGE, is_text, lone_text, plain_text, words_of

BYPASS: Final = "skip_thought_signature_validator"
"""What stands for a signature that is lost; of the two documented values the one that Vertex AI documents too."""

_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_NOT_IN_NAME: Final = re.compile(r"[^a-zA-Z0-9_.:-]")
_NAME_CHARS_MAX: Final = 64

_SIGNING: Final = 3
"""The first generation that wants signatures, and takes media inside a function response."""
_RELEASE: Final = re.compile(r"-\d{3}$")
_MAJOR: Final = re.compile(r"gemini-(\d+)")

_SERVER: Final = {
    "executableCode": "codeExecutionResult",
    "toolCall": "toolResponse",
}
"""What a server tool is asked, and what it found."""
_FOUND: Final = {found: asked for asked, found in _SERVER.items()}
_SEALED: Final = frozenset({"toolCall", "toolResponse"})


class Gemini(Target):
    """Gemini generateContent."""

    name: ClassVar[str] = "gemini"
    # Any id is taken; two that differ in half a character would be one once that is replaced.
    ids: ClassVar[IdRule] = IdRule(re.compile("[^\ud800-\udfff]+"), "call_", 24)
    separate_system: ClassVar[bool] = True
    body: ClassVar[str | None] = "parts"

    def make(self, message: Message, ids: Ids, notes: Notes) -> list[Wire]:
        """What a message becomes: one content, and the one with the responses to its calls."""
        if message.kind == "assistant":
            return self._assistant(message, ids, notes)
        if message.kind == "system":
            notes.add("system_in_place", "it stands only at the beginning; sent as the user's", message.seq)
        return _one("user", self._given(message.parts, message.seq, notes), message.seq, notes)

    def finish(self, messages: list[Wire], notes: Notes) -> list[Wire]:
        """The list begins with the user, and the current turn has its signatures."""
        if messages and messages[0]["role"] != "user":
            notes.add("bridge_added", "the first message is the user's")
            messages.insert(0, {"role": "user", "parts": [{"text": BRIDGE}]})
        known = generation(self.model)
        if known is None or known >= _SIGNING:
            _sign(messages, notes)
        return messages

    def merges(self, last: Wire, following: Wire) -> bool:
        """Whether two neighbours become one: responses stand alone."""
        return "functionResponse" not in last["parts"][0] and "functionResponse" not in following["parts"][0]

    def text_block(self, text: str) -> Wire:
        """A part that holds text."""
        return {"text": text}

    def family(self, model: str) -> str:
        """A model's name without what tells its releases apart."""
        return _family(model)

    def _assistant(self, message: Message, ids: Ids, notes: Notes) -> list[Wire]:
        signed = message.complete and self.wrote(message)
        whole = self._whole(message.parts)
        parts: list[Wire] = []
        results: list[Wire] = []
        media: list[Wire] = []
        for index, part in enumerate(message.parts):
            text = plain_text(part)
            if text is not None:
                parts.append({"text": text})
            elif part.get("type") != "tool_call":
                parts += self._said(part, message, notes, signed=signed, whole=index in whole)
            elif index in message.calls:
                asked = message.calls[index]
                id = ids.take(asked.key, asked.id) if asked.id else ""
                if id != asked.id:
                    notes.add("id_rewritten", f"the call of part {index} has the id {id} here", message.seq)
                call = self._call(asked, part, id, message.seq, notes, signed=signed)
                parts.append(call)
                response, beside = self._result(asked, id, str(call["functionCall"].get("name", "")), notes)
                results.append(response)
                media += beside
        if all(part.get("thought") and "functionCall" not in part for part in parts):
            parts = []  # thoughts alone say nothing that can be answered (F31)
        answers = [{"role": "user", "parts": each} for each in (results, media) if each]
        return [*_one("model", parts, message.seq, notes), *answers]

    def _call(self, asked: Asked, part: Mapping[str, Any], id: str, seq: int, notes: Notes, *, signed: bool) -> Wire:
        kept = self.verbatim(part)
        if isinstance(kept, dict) and isinstance(kept.get("functionCall"), dict):
            block: Wire = self._unsealed(copied(kept), seq, notes, signed=signed)
        else:
            arguments = arguments_object(asked, seq, notes)
            block = {"functionCall": {"name": _name(asked.name, seq, notes), "args": arguments}}
        _name_again(block["functionCall"], id)
        return block

    def _result(self, asked: Asked, id: str, name: str, notes: Notes) -> tuple[Wire, list[Wire]]:
        """The response to a call, and the media that has to stand behind it."""
        answer = asked.answer
        if answer.native is not None and answer.native.get("provider") == self.name:
            kept = answer.native.get("block")
            if isinstance(kept, dict) and isinstance(kept.get("functionResponse"), dict):
                block: Wire = copied(kept)
                # a response that came without an id means the first call of its name, and stays without one
                _name_again(block["functionResponse"], id if kept["functionResponse"].get("id") else "")
                return block, []
        texts: list[str] = []
        inside: list[Wire] = []
        beside: list[Wire] = []
        for part in answer.parts:
            if is_text(part):
                texts.append(part["content"])
                continue
            source = media_of(part)
            if source is None:
                _note_words(part, -1 if answer.seq is None else answer.seq, notes)
                texts.append(words_of(part))
            elif nests(source) and (generation(self.model) or 0) >= _SIGNING:
                inside.append(source)
            else:
                beside.append(source)
        text = "\n".join(texts)
        response = {"error": text or "(no output)"} if answer.is_error else {"output": text}
        made: Wire = {"id": id} if id else {}
        made |= {"name": name, "response": response}
        if inside:
            made["parts"] = inside
        return {"functionResponse": made}, beside

    def _given(self, parts: Sequence[Mapping[str, Any]], seq: int, notes: Notes) -> list[Wire]:
        """The parts of what is given to the model: text and media."""
        text = lone_text(parts)
        if text is not None:
            return [{"text": text}]
        found: list[Wire] = []
        for part in parts:
            kept = self.verbatim(part)
            if isinstance(kept, dict):
                found.append(copied(kept))
            elif is_text(part):
                found += [{"text": part["content"]}] if part["content"] else []
            else:
                source = media_of(part)
                if source is None:
                    _note_words(part, seq, notes)
                found.append({"text": words_of(part)} if source is None else source)
        return found

    def _said(
        self, part: Mapping[str, Any], message: Message, notes: Notes, *, signed: bool, whole: bool
    ) -> list[Wire]:
        """The parts of what the model said."""
        kept = self.verbatim(part)
        kind = part.get("type")
        if isinstance(kept, dict):
            return self._kept(kept, message, notes, signed=signed, whole=whole)
        if is_text(part):
            return [{"text": part["content"]}] if part["content"] else []
        if kind == "reasoning":
            notes.add("reasoning_left_out", "it is not from this model", message.seq)
            return []
        if kind not in ("blob", "uri", "file"):
            notes.add("part_left_out", f"there is no form for a part of type {kind!r}", message.seq)
            return []
        # only a Gemini model makes media; what another made would be no answer of the model
        source = media_of(part) if message.event.data.get("provider") == self.name else None
        if source is None:
            _note_words(part, message.seq, notes)
        return [{"text": words_of(part)} if source is None else source]

    def _kept(self, kept: Wire, message: Message, notes: Notes, *, signed: bool, whole: bool) -> list[Wire]:
        """A part that came from Gemini, as far as it may go back."""
        server = next((name for name in (*_SERVER, *_FOUND) if name in kept), None)
        if kept.get("thought") and not signed:
            notes.add("reasoning_left_out", "it is not from this model, or its message never completed", message.seq)
            return []
        if server is not None and (not whole or (server in _SEALED and not signed)):
            notes.add("part_left_out", f"a {server} has no other half, or is not from this model", message.seq)
            return []
        block = self._unsealed(copied(kept), message.seq, notes, signed=signed)
        # the signature of an answer may come on an empty text of its own
        return [] if block.get("text") == "" and not block.get("thoughtSignature") else [block]

    def _unsealed(self, block: Wire, seq: int, notes: Notes, *, signed: bool) -> Wire:
        if not signed and block.pop("thoughtSignature", None):
            notes.add("reasoning_left_out", "a signature is not from this model, or its message never completed", seq)
        return block

    def _whole(self, parts: Sequence[Mapping[str, Any]]) -> set[int]:
        """The indexes of what a server tool was asked and what it found, where both are there."""
        waiting: dict[tuple[str, object], int] = {}
        whole: set[int] = set()
        for index, part in enumerate(parts):
            if "native" not in part:
                continue
            kept = self.verbatim(part)
            for name, block in kept.items() if isinstance(kept, dict) else ():
                id = block.get("id") if isinstance(block, dict) else None
                if name in _SERVER:
                    waiting[name, id] = index
                elif name in _FOUND and (_FOUND[name], id) in waiting:
                    whole |= {waiting.pop((_FOUND[name], id)), index}
        return whole


TARGET: Final = Gemini


def generation(model: str | None) -> int | None:
    """The generation of a Gemini model, 0 for a Gemma, or None where the name does not say it."""
    name = "" if model is None else model.rsplit("/", 1)[-1]
    found = _MAJOR.match(name)
    if found is not None:
        return int(found[1])
    return 0 if name.startswith("gemma") else None


def _family(model: str) -> str:
    return family(_RELEASE.sub("", model.rsplit("/", 1)[-1]))


def _one(role: str, parts: list[Wire], seq: int, notes: Notes) -> list[Wire]:
    if not parts:
        notes.add("empty_message", "nothing in it can be sent", seq)
        return []
    return [{"role": role, "parts": parts}]


def _note_words(part: Mapping[str, Any], seq: int, notes: Notes) -> None:
    notes.add("part_replaced", f"words stand for a part of type {part.get('type')!r}", seq)


def _name(name: str, seq: int, notes: Notes) -> str:
    """A function's name as Gemini takes it."""
    if _NAME.fullmatch(name):
        return name
    allowed = _NOT_IN_NAME.sub("_", name)
    if not allowed[:1].isalpha():
        allowed = f"_{allowed}"
    allowed = allowed[:_NAME_CHARS_MAX]
    notes.add("name_rewritten", f"the tool {name!r:.80} is called {allowed} here", seq)
    return allowed


def _name_again(function: Wire, id: str) -> None:
    """Give a call, or a response to it, the id that the call has here; an empty one is none."""
    if id:
        function["id"] = id
    else:
        function.pop("id", None)


def _sign(messages: list[Wire], notes: Notes) -> None:
    """Let a value stand for each signature that the current turn needs and that is lost."""
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if message["role"] == "user":
            if any("text" in part for part in message["parts"]):
                return
            continue
        call = next((part for part in message["parts"] if "functionCall" in part), None)
        if call is not None and not call.get("thoughtSignature"):
            call["thoughtSignature"] = BYPASS
            notes.add("signature_bypassed", f"the first call of contents[{at}] is not signed by this model")
