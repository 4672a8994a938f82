"""Calls of server tools and what they found, in pairs: neither goes to Anthropic without the other.

Rules, with their sources:
- what a server tool found stands behind the call that asked for it, in the same message ("Web search tool"); a call at
  the end of the list is a pause, with which the model goes on ("Handling stop reasons": `pause_turn`);
- code that the model wrote may call tools of ours: its call waits while they are answered, and what it gave stands in a
  later message of the model; until then the user says nothing but results ("Programmatic tool calling": "your response
  message must contain only `tool_result` blocks"). A call whose code is not sent is the model's own;
- where one reply asks for a server tool and for one of ours, the server's waits as well: the user gives the results of
  ours alone, and the next message of the model holds what the server's found ("Server tools": mixed turns;
  anthropics/anthropic-sdk-typescript#1090, vercel/ai#11405). Where it does not, the call is not sent;
- where what was left out stood between words and thinking, the words are a message of their own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from turnwal.transcript.target import Notes, Wire

_SERVER_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})
_SEALED: Final = frozenset({"thinking", "redacted_thinking"})
"""Blocks that only the model that wrote them may read."""

_Place = tuple[int, int]
"""The index of a message, and that of a block in it."""


def kind_of(block: Mapping[str, Any]) -> str:
    """The type of a block."""
    return str(block.get("type"))


def is_thought(block: object) -> bool:
    """Whether a block is thinking."""
    return isinstance(block, dict) and kind_of(block) in _SEALED


def blocks_of(message: Wire) -> list[Wire]:
    """The blocks of a message; none where its content is text."""
    content = message["content"]
    return content if isinstance(content, list) else []


def is_server_call(block: Mapping[str, Any]) -> bool:
    """Whether a block asks for a tool that Anthropic runs."""
    return kind_of(block) in _SERVER_CALLS


def is_of_a_pair(block: Mapping[str, Any]) -> bool:
    """Whether a block of the model asks for a server tool, is what one found, or what the code of one asks for."""
    return is_server_call(block) or "tool_use_id" in block or _code_of(block) is not None


def paired(messages: list[Wire], notes: Notes) -> list[Wire]:
    """The messages without the blocks of server tools that have no other half; a message may become two of them.

    Where each has its other half, what comes back is the list itself.
    """
    whole = _whole(messages)
    latest: dict[str, _Place] = {}
    found: list[Wire] = []
    same = True
    for index, message in enumerate(messages):
        if message["role"] != "assistant":
            found.append(message)
            continue
        kept: list[Wire | None] = []
        changed = False
        for at, block in enumerate(blocks_of(message)):
            if is_server_call(block):
                latest[str(block.get("id"))] = (index, at)
            code = _code_of(block)
            if (is_server_call(block) or "tool_use_id" in block) and (index, at) not in whole:
                kept.append(None)
            elif code is not None and latest.get(code) not in whole:
                kept.append({name: value for name, value in block.items() if name != "caller"})
            else:
                kept.append(block)
            changed = changed or kept[-1] is not block
        if not changed:
            found.append(message)
            continue
        notes.add("part_left_out", "a block of a server tool has no other half in its place")
        found += [{**message, "content": content} for content in _apart(kept, notes)]
        same = False
    return messages if same else found


def _whole(messages: Sequence[Wire]) -> set[_Place]:
    """Where the blocks of server tools stand that have their other half, or wait for it."""
    whole: set[_Place] = set()
    waiting: dict[str, _Place] = {}
    last = len(messages) - 1
    for index, message in enumerate(messages):
        blocks = blocks_of(message)
        if message["role"] != "assistant":
            if not blocks or not all(kind_of(block) == "tool_result" for block in blocks):
                waiting = {}
            continue
        for at, block in enumerate(blocks):
            asked = str(block.get("tool_use_id"))
            if is_server_call(block):
                waiting[str(block.get("id"))] = (index, at)
            elif "tool_use_id" in block and asked in waiting:
                whole |= {waiting.pop(asked), (index, at)}
        going_on = {_code_of(block) for block in blocks} | _beside_ours(blocks)
        waiting = {id: place for id, place in waiting.items() if id in going_on or place[0] == last}
    return whole.union(waiting.values())


def _beside_ours(blocks: Iterable[Wire]) -> set[str]:
    """The ids of the server calls that the model asks for together with a tool of ours.

    Thinking between them tells that they are of two replies: the first broke off, or paused and was not gone on with.
    """
    found: set[str] = set()
    for _, together in groupby(blocks, is_thought):
        asked = list(together)
        if any(kind_of(block) == "tool_use" and _code_of(block) is None for block in asked):
            found.update(str(block.get("id")) for block in asked if is_server_call(block))
    return found


def _apart(blocks: Sequence[Wire | None], notes: Notes) -> Iterator[list[Wire]]:
    """What is left of a message, None standing for what is not: the words before thinking that went on there apart."""
    left: list[Wire] = []
    gap = False
    for at, block in enumerate(blocks):
        if block is None:
            gap = True
            continue
        if gap and is_thought(block) and _may_end(left) and _may_begin(blocks[at:]):
            yield left
            left = []
        left.append(block)
        gap = False
    while left and is_thought(left[-1]):
        left.pop()
        notes.add("reasoning_left_out", "nothing follows it, and it cannot be the last of its message")
    if left:
        yield left


def _may_end(blocks: Sequence[Wire]) -> bool:
    """Whether a message may end behind these blocks: words, with nothing that was asked and is not answered there."""
    found = {str(block.get("tool_use_id")) for block in blocks}
    asked = {str(block.get("id")) for block in blocks if is_server_call(block) or kind_of(block) == "tool_use"}
    return bool(blocks) and asked <= found and not any(map(is_thought, blocks))


def _may_begin(blocks: Sequence[Wire | None]) -> bool:
    """Whether a message may begin with these blocks: what they go on with is asked for in them."""
    there = [block for block in blocks if block is not None]
    asked = {str(block.get("id")) for block in there if is_server_call(block)}
    needed = {str(block["tool_use_id"]) for block in there if "tool_use_id" in block}
    return asked >= needed.union(code for block in there if (code := _code_of(block)) is not None)


def _code_of(block: Mapping[str, Any]) -> str | None:
    """The id of the server tool whose code makes a call; None for the model's own and for all else."""
    caller = block.get("caller")
    id = caller.get("tool_id") if isinstance(caller, dict) and kind_of(block) == "tool_use" else None
    return id if isinstance(id, str) else None
