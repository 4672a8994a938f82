"""What one reply of a model becomes: its items as they came, run by run, or what they say without their provider's ids.

Promises: a run of items that one piece of reasoning led to goes back whole and unchanged, or its reasoning is left out
and what stays has no id that would ask for it (OR2, F29).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from turnwal.transcript.arguments import arguments_text
from turnwal.transcript.ids import Ids
from turnwal.transcript.message import Asked, Message, native_of
from turnwal.transcript.openai_responses.items import (
    ANSWERS,
    BUILT_IN,
    OUTPUTS,
    Item,
    call_id_of,
    is_run_by_client,
    kind_of,
    name_of_item,
)
from turnwal.transcript.target import Notes, Target, Wire, copied
from turnwal.transcript.words import is_text, tool_name, words_of

Part = Mapping[str, Any]
Run = list[tuple[int, Part, Item | None]]
"""Parts with their index and the item that each keeps: reasoning, and what it led to."""

_SEALED: Final = frozenset({"reasoning", "compaction"})
"""Items that only what wrote them can read."""

_SAID: Final = {"output_text": "text", "refusal": "refusal"}


@dataclass(slots=True)
class _Items:
    """Items in the making."""

    items: list[Wire] = field(default_factory=list)
    _end: int = -2
    """Index of the part that the newest message ends with."""

    def add(self, item: Wire) -> None:
        self.items.append(item)
        self._end = -2

    def say(self, index: int, message: Wire, *, goes_on: bool) -> None:
        """Add a message, or go on with the one before where the parts are neighbours."""
        last = self.items[-1] if self.items else {}
        if goes_on and self._end == index - 1 and type(last.get("content")) is type(message["content"]):
            last["content"] += message["content"]
        else:
            self.items.append(message)
        self._end = index


@dataclass(frozen=True, slots=True)
class Reply:
    """The items of one assistant message, without the answers to its calls."""

    target: Target
    message: Message
    taken: Mapping[int, str]
    """The id of each call in the request, by the index of its part."""
    ids: Ids
    notes: Notes

    def items(self) -> Iterator[Wire]:
        """All of them, in the order of the parts."""
        parts = [(index, part, self._block(part)) for index, part in enumerate(self.message.parts)]
        if all(block is None for _, _, block in parts):  # nothing is bound to anything
            yield from self._in_words(parts)
            return
        for run in _runs(parts):
            sealed = any(_is_lost(part, block) or kind_of(block or {}) in _SEALED for _, part, block in run)
            whole = None
            if self.message.complete and (not sealed or self.target.wrote(self.message)):
                notes = Notes()
                whole = self._whole(run, notes)
                if whole is not None:
                    self.notes.findings += notes.findings
            yield from self._stripped(run, sealed=sealed) if whole is None else whole

    def _whole(self, run: Run, notes: Notes) -> list[Wire] | None:
        """The items of a run as they came, or None where one of them cannot go back so."""
        served = _served(run)
        if any(_is_lone(block, served) for block in served) or any(_is_lost(part, block) for _, part, block in run):
            return None
        made = _Items()
        for index, part, block in run:
            if part.get("type") == "tool_call":
                call = self._call_as_it_came(index, block, notes)
                if call is None:
                    return None
                made.add(call)
            elif block is None:
                self._say(index, part, block, made, notes)
            elif kind_of(block) == "message":
                made.say(index, copied(block), goes_on=_goes_on(part, self.target.name))
            else:
                made.add(copied(block))
        items = made.items
        if not any(item.get("type") == "reasoning" for item in items):
            items = [item for item in items if _says(item)]
        elif not any(map(_says, items)) or not _fits(items, stored=self._is_stored()):
            return None
        return items if self._is_free(items) else None

    def _in_words(self, parts: Run) -> list[Wire]:
        """What parts say that keep no item."""
        made = _Items()
        for index, part, _ in parts:
            if part.get("type") != "tool_call":
                self._say(index, part, None, made, self.notes)
            elif index in self.message.calls:
                made.add(self._call(self.message.calls[index], {}, self.notes, as_it_came=False))
        return made.items

    def _stripped(self, run: Run, *, sealed: bool) -> list[Wire]:
        """What a run says without its reasoning."""
        notes, seq = self.notes, self.message.seq
        served = _served(run)
        stays = not sealed and self.message.complete and self._is_free(served)
        made = _Items()
        for index, part, block in run:
            asked = self.message.calls.get(index)
            if part.get("type") == "tool_call":
                if asked is not None:
                    made.add(self._call(asked, block or {}, notes, as_it_came=False))
            elif block is None or kind_of(block) == "message":
                self._say(index, part, block, made, notes)
            elif kind_of(block) == "reasoning":
                notes.add("reasoning_left_out", "not all that it led to goes back, or not to this model", seq)
            elif stays and not _is_lone(block, served):
                made.add(copied(block))
            else:
                notes.add("part_left_out", f"an item of type {kind_of(block)!r} cannot go back from here", seq)
        return made.items

    def _is_stored(self) -> bool:
        """Whether the provider may have kept the items; what the reply says of that stands in its rest."""
        rest = (self.message.native(self.target.name) or {}).get("reply")
        return not (isinstance(rest, dict) and rest.get("store") is False)

    def _is_free(self, items: Iterable[Item]) -> bool:
        """Whether no id of these items stands in the request already, and each is one of its type; they are taken."""
        names = [name_of_item(item) for item in items if "id" in item]
        return None not in names and self.ids.claim(name for name in names if name is not None)

    def _block(self, part: Part) -> Item | None:
        """The item that a part keeps, where it is one that the part can stand for."""
        block = self.target.verbatim(part)
        if not isinstance(block, dict) or not kind_of(block):
            return None
        kind = kind_of(block)
        if kind == "item_reference" and name_of_item(block) is None:
            return None
        if part.get("type") == "tool_call":
            return block if kind in OUTPUTS or kind == "item_reference" else None
        if kind == "message":
            return block if _is_said(block) else None
        return block if (kind == "reasoning") == (part.get("type") == "reasoning") else None

    def _call_as_it_came(self, index: int, block: Item | None, notes: Notes) -> Wire | None:
        """The call of a part as it came, or None where it is not sent, or not under its id, or not answered in kind."""
        asked = self.message.calls.get(index)
        if asked is None or self.taken[index] != asked.id:
            return None
        kind = kind_of(block or {})
        if block is not None and kind == "item_reference":
            return dict(block)
        if block is None or kind not in BUILT_IN:
            return self._call(asked, block or {}, notes, as_it_came=True)
        answer = native_of({"native": asked.answer.native}, self.target.name) or {}
        found = answer.get("block")
        if not isinstance(found, dict) or found.get("type") != OUTPUTS[kind] or call_id_of(found) != asked.id:
            return None
        same = call_id_of(block) == asked.id
        return dict(copied(block)) if same else None

    def _call(self, asked: Asked, block: Item, notes: Notes, *, as_it_came: bool) -> Wire:
        """The call of a function, or of a custom tool where it takes free text."""
        seq = self.message.seq
        kind = "custom_tool_call" if asked.free_text else "function_call"
        gone = () if as_it_came else ("id", "caller")
        kept = {name: copied(value) for name, value in block.items() if name not in gone}
        said = {"input": asked.arguments} if asked.free_text else {"arguments": arguments_text(asked, seq, notes)}
        call = {"call_id": self.taken[asked.index], "name": tool_name(asked.name, seq, notes), **said}
        return {"type": kind, **(kept if block.get("type") == kind else {}), **call}

    def _say(self, index: int, part: Part, block: Item | None, made: _Items, notes: Notes) -> None:
        """Add what a part says in words."""
        kind, seq = part.get("type"), self.message.seq
        if is_text(part):
            text = part["content"]
        elif kind in ("blob", "uri", "file"):
            notes.add("part_replaced", f"words stand for a part of type {kind!r}", seq)
            text = words_of(part)
        elif kind == "reasoning":
            notes.add("reasoning_left_out", "it is none of this provider", seq)
            return
        else:
            notes.add("part_left_out", f"there is no form for a part of type {kind!r}", seq)
            return
        if text:
            phase = {"phase": block["phase"]} if block is not None and isinstance(block.get("phase"), str) else {}
            goes_on = block is None or _goes_on(part, self.target.name)
            made.say(index, {"role": "assistant", "content": text, **phase}, goes_on=goes_on)


def _runs(parts: Run) -> Iterator[Run]:
    """The parts in runs: each begins with reasoning, but the first."""
    if any(part.get("type") == "server_tool_call_response" for _, part, _ in parts):
        yield parts  # the halves of a call that the provider ran stay together
        return
    run: Run = []
    for entry in parts:
        if entry[1].get("type") == "reasoning" and run and run[-1][1].get("type") != "reasoning":
            yield run
            run = []
        run.append(entry)
    if run:
        yield run


def _is_lost(part: Part, block: Item | None) -> bool:
    """Whether a part is reasoning whose item is not there: no item that it led to is taken without it."""
    return part.get("type") == "reasoning" and block is None


def _served(run: Run) -> list[Item]:
    """The items of tools that the provider ran, and others that are no words and no calls."""
    return [
        block
        for _, part, block in run
        if block is not None and part.get("type") != "tool_call" and kind_of(block) not in ("message", *_SEALED)
    ]


def _goes_on(part: Part, target: str) -> bool:
    """Whether a part is more of the message that the part before is of."""
    return (native_of(part, target) or {}).get("goes_on") is True


def _is_said(message: Item) -> bool:
    """Whether it is a message such as a model gives."""
    content = message.get("content")
    if message.get("role") != "assistant" or not isinstance(content, (str, list)):
        return False
    return isinstance(content, str) or all(isinstance(block, dict) and _is_text(block) for block in content)


def _is_text(block: Item) -> bool:
    field = _SAID.get(str(block.get("type")))
    return field is not None and isinstance(block.get(field), str)


def _says(item: Item) -> bool:
    """Whether there is more to an item than its form: reasoning is nothing by itself, and empty text is nothing."""
    if kind_of(item) != "message":
        return item.get("type") != "reasoning"
    content = item["content"]
    return bool(content) if isinstance(content, str) else any(block.get(_SAID[block["type"]]) for block in content)


def _fits(items: list[Wire], *, stored: bool) -> bool:
    """Make reasoning as the API takes it back, and say whether each is whole and followed by what it led to.

    What is not stored there and has no encrypted content is nothing but an id that is not found.
    """
    for item in items:
        if item.get("type") == "reasoning":
            item.pop("status", None)
            if "id" not in item or not isinstance(item.get("summary"), list):
                return False
            if not stored and not item.get("encrypted_content"):
                return False
    return items[-1].get("type") != "reasoning"


def _is_lone(block: Item, blocks: list[Item]) -> bool:
    """Whether the other half of a call that was answered inside a reply is missing."""
    kind, id = kind_of(block), block.get("call_id")
    if kind in ANSWERS and (id is not None or kind != "tool_search_output"):  # the one that may come without an id
        return not any(OUTPUTS.get(kind_of(other)) == kind and other.get("call_id") == id for other in blocks)
    if not is_run_by_client(block):
        return False
    return not any(kind_of(other) == OUTPUTS[kind] and other.get("call_id") == id for other in blocks)
