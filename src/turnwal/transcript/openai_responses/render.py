"""Requests of the OpenAI Responses API: the items of `input`, with leading system text as `instructions`.

Rules, with their sources:
- every call has its output in the input, here behind the items of its reply, and every output its call (OR1: "No tool
  output found for function call …", "No tool call found for function call output with call_id …"); ids have 1 to 64
  characters ("Invalid 'input[].call_id': string too long. Expected a string with maximum length 64", F40,
  NousResearch/hermes-agent#73538);
- a reasoning item goes back with all that came with it, or not at all (OR2: "Item 'rs_…' of type 'reasoning' was
  provided without its required following item"; openai/openai-agents-python#3207). Items that lose their reasoning
  lose their own id ("Item 'fc_…' was provided without its required 'reasoning' item"; openclaw/openclaw#88067), and
  what cannot be without one is left out;
- reasoning of a reply that was not stored (`store: false`) goes back with its encrypted content or not at all ("Item
  with id 'rs_…' not found. Items are not persisted when `store` is set to false."; vercel/ai#7543);
- encrypted content is read only by what wrote it ("The encrypted content … could not be verified", F29;
  lidge-jun/opencodex#2248); the `status` of reasoning is never taken back ("Unknown parameter: 'input[1].status'",
  BerriAI/litellm#13420, 1jehuang/jcode#1028), its `summary` is required, empty or not;
- an item stands once ("Duplicate item found with id …"), and its id begins as its type wants ("Expected an ID that
  begins with 'msg'", Wei-Shaw/sub2api#3981; anomalyco/opencode#44587);
- arguments are text that holds a JSON object (F30; local-inference-lab/vllm#684, justrach/codegraff#752);
- an output has no flag for an error, and "failed" is no status of it (openclaw/Tachikoma#48): its text says what
  happened, and recovery's text does;
- a screen or a patch cannot be answered in words: without an answer of its own kind the call of such a tool is that of
  a function here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from turnwal.transcript.ids import IdRule, Ids
from turnwal.transcript.message import Asked, Message, native_of
from turnwal.transcript.openai_responses.items import (
    MADE_BY_CLIENT,
    OUTPUTS,
    call_id_of,
    content_of,
    is_given,
    is_run_by_client,
    kind_of,
    name_of_item,
)
from turnwal.transcript.openai_responses.media import media
from turnwal.transcript.openai_responses.reply import Reply
from turnwal.transcript.target import Notes, Target, Wire, copied
from turnwal.transcript.words import is_text, lone_text, words_of

_ROLES: Final = {"system": ("system", "developer"), "user": ("user",), "note": ()}
"""For each kind of message the roles in which one that is kept verbatim may go back."""

_IN_WORDS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
"""Outputs that can hold any text."""

_ASKING: Final = ("mcp_approval_request", "item_reference")
"""Items that an approval may answer."""


class OpenAIResponses(Target):
    """OpenAI Responses."""

    name: ClassVar[str] = "openai-responses"
    ids: ClassVar[IdRule] = IdRule(re.compile(r"[a-zA-Z0-9_-]{1,64}"), "call_", 24)
    separate_system: ClassVar[bool] = True
    body: ClassVar[str | None] = None

    def __init__(self, model: str | None) -> None:
        """Render for a model; None stands for the one that wrote each message."""
        super().__init__(model)
        self._bound = False
        """Whether an item was sent that depends on what else is in the list."""

    def make(self, message: Message, ids: Ids, notes: Notes) -> list[Wire]:
        """What a message becomes: the items of a reply with the outputs of its calls behind them, or one item."""
        if message.kind == "assistant":
            return self._assistant(message, ids, notes)
        kept = (message.native(self.name) or {}).get("message")
        item = self._kept(message, kept, notes) if isinstance(kept, dict) else None
        if item is None:
            content = self._content(message.parts, notes, message.seq)
            item = {"role": "system" if message.kind == "system" else "user", "content": content}
        if kind_of(item) == "message" and not item["content"]:
            notes.add("empty_message", "nothing in it can be sent", message.seq)
            return []
        return [_with_free_id(item, ids)]

    def finish(self, messages: list[Wire], notes: Notes) -> list[Wire]:
        """The list without what another place in it, or an item that is not in it, would be needed for."""
        if not self._bound:
            return messages
        asked = {str(item.get("id")) for item in messages if item.get("type") in _ASKING}
        last = messages[-1] if messages else None
        stays = [item for item in messages if _stands(item, asked, is_last=item is last)]
        if len(stays) < len(messages):
            notes.add("part_left_out", "an item has no place there, or what it answers is not sent")
        return stays

    def _assistant(self, message: Message, ids: Ids, notes: Notes) -> list[Wire]:
        taken: dict[int, str] = {}
        for index, asked in message.calls.items():
            taken[index] = id = ids.take(asked.key, asked.id)
            if id != asked.id:
                notes.add("id_rewritten", f"the call of part {index} has the id {id} here", message.seq)
        items = list(Reply(self, message, taken, ids, notes).items())
        if not items:
            notes.add("empty_message", "nothing in it can be sent", message.seq)
        sent = {call_id_of(item): kind_of(item) for item in items if is_run_by_client(item)}
        answers = []
        for index, asked in message.calls.items():
            usual = "custom_tool_call" if asked.free_text else "function_call"
            answers.append(self._answer(asked, taken[index], OUTPUTS[sent.get(taken[index], usual)], ids, notes))
        return [*items, *answers]

    def _answer(self, asked: Asked, id: str, kind: str, ids: Ids, notes: Notes) -> Wire:
        """The output of a call, of the kind that its call has."""
        answer = asked.answer
        kept = (native_of({"native": answer.native}, self.name) or {}).get("block")
        if isinstance(kept, dict) and kept.get("type") == kind:
            if kind not in _IN_WORDS:
                return _with_free_id(copied(kept), ids)
            if _is_output(kept.get("output")):
                return _with_free_id({**copied(kept), "call_id": id}, ids)
        content = self._content(answer.parts, notes, *(() if answer.seq is None else (answer.seq,)))
        nothing = "(no output)" if answer.is_error else ""
        return {"type": kind, "call_id": id, "output": content or nothing}

    def _kept(self, message: Message, kept: Mapping[str, Any], notes: Notes) -> Wire | None:
        """The item that an event keeps, where it can stand for such an event."""
        if kind_of(kept) != "message":
            self._bound = True
            return copied(kept) if message.kind == "user" and kind_of(kept) in MADE_BY_CLIENT else None
        if kept.get("role") not in _ROLES[message.kind]:
            return None
        if "content" not in kept:
            return {**copied(kept), "content": self._content(message.parts, notes, message.seq)}
        content = kept["content"]
        return copied(kept) if _is_output(content) else None

    def _content(self, parts: Sequence[Mapping[str, Any]], notes: Notes, *seqs: int) -> list[Wire] | str:
        """The content that gives these parts to the model; empty where nothing of them can be sent."""
        text = lone_text(parts)
        return content_of(self._given(parts, notes, *seqs)) if text is None else text

    def _given(self, parts: Iterable[Mapping[str, Any]], notes: Notes, *seqs: int) -> list[Wire]:
        """The blocks of what is given to the model."""
        blocks: list[Wire] = []
        for part in parts:
            kept = self.verbatim(part)
            if is_given(kept):
                blocks.append(copied(kept))
            elif is_text(part):
                if part["content"]:
                    blocks.append({"type": "input_text", "text": part["content"]})
            else:
                block = media(part)
                if block is None:
                    notes.add("part_replaced", f"words stand for a part of type {part.get('type')!r}", *seqs)
                    block = {"type": "input_text", "text": words_of(part)}
                blocks.append(block)
        return blocks


TARGET: Final = OpenAIResponses


def _is_output(content: object) -> bool:
    """Whether it is a text, or blocks such as the model is given."""
    return isinstance(content, str) or (isinstance(content, list) and bool(content) and all(map(is_given, content)))


def _with_free_id(item: Wire, ids: Ids) -> Wire:
    """The item, without its own id where the API would not take that: messages and outputs need none."""
    if "id" in item and kind_of(item) != "local_shell_call_output":
        name = name_of_item(item)
        if name is None or not ids.claim([name]):
            del item["id"]
    return item


def _stands(item: Wire, asked: set[str], *, is_last: bool) -> bool:
    match item.get("type"):
        case "mcp_approval_response":
            return str(item.get("approval_request_id")) in asked
        case "compaction_trigger":
            return is_last
        case _:
            return True
