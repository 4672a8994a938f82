"""What Anthropic refuses of its own tools: a call whose other half is not where it belongs, and what was found of none.

What a server tool found stands behind its call in the same message ("Web search tool"), or, where the call is code that
asks for tools of ours, in a later message of the model, with nothing but calls of that code and their results between
("Programmatic tool calling"). A call beside one of a tool of ours waits for the results of that: what it found stands
in the next message of the model ("Server tools": mixed turns). At the end of the list a call waits for it: a pause, or
results that the model goes on with.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from turnwal.transcript.anthropic.reading import blocks_of, group_from, is_kind, kind_of, role_of, text_in
from turnwal.transcript.check import Problem

SERVER_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})

_Block = Mapping[str, Any]


def halves(messages: Sequence[Any], index: int) -> Iterator[Problem]:
    """What is wrong with the server tools of the model's message at an index."""
    blocks = blocks_of(messages[index])
    found = {text_in(block, "tool_use_id") for block in blocks if _is_result(block)}
    asked: set[str | None] = set()
    for at, block in enumerate(blocks):
        here = f"messages[{index}].content[{at}]"
        if kind_of(block) in SERVER_CALLS:
            id = text_in(block, "id")
            asked.add(id)
            if id not in found and not _is_answered(messages, index, id):
                yield Problem("unanswered_call", here, "what the server tool found does not follow")
        elif _is_result(block):
            id = text_in(block, "tool_use_id")
            if id not in asked and not _is_asked_for(messages, index, id):
                yield Problem("orphan_result", here, "its server call does not stand before it")


def _is_answered(messages: Sequence[Any], index: int, id: str | None) -> bool:
    """Whether what was found follows the message with the call, or may still come."""
    at, own = index, True
    while at < len(messages):
        said = group_from(messages, at)
        at += len(said)
        blocks = [block for message in said for block in blocks_of(message)]
        if any(_is_result(block) and text_in(block, "tool_use_id") == id for block in blocks):
            return True
        if own and at == len(messages):
            return True
        given = group_from(messages, at)
        if not (_calls_for(blocks, id) or (own and _calls_ours(blocks))) or not _are_results(given):
            return False
        at, own = at + len(given), False
    return True


def _is_asked_for(messages: Sequence[Any], index: int, id: str | None) -> bool:
    """Whether the call stands before the message with what was found."""
    back, blocks = 0, list[_Block]()
    while True:
        while index and role_of(messages[index - 1]) == "assistant":
            index -= 1
            blocks += blocks_of(messages[index])
        goes_on = back == 0 or _calls_for(blocks, id)
        if any(kind_of(block) in SERVER_CALLS and text_in(block, "id") == id for block in blocks):
            return goes_on or (back == 1 and _calls_ours(blocks))
        if not goes_on:
            return False
        end = index
        while index and role_of(messages[index - 1]) == "user":
            index -= 1
        if not _are_results(messages[index:end]):
            return False
        back, blocks = back + 1, []


def _calls_for(blocks: Sequence[_Block], id: str | None) -> bool:
    """Whether the code of a server call asks for a tool."""
    callers = [block.get("caller") for block in blocks if is_kind(block, "tool_use")]
    return any(isinstance(caller, dict) and text_in(caller, "tool_id") == id for caller in callers)


def _calls_ours(blocks: Sequence[_Block]) -> bool:
    """Whether the model itself, and no code of its own, asks for a tool of ours."""
    callers = [block.get("caller") for block in blocks if is_kind(block, "tool_use")]
    return not all(isinstance(caller, dict) and text_in(caller, "tool_id") is not None for caller in callers)


def _are_results(given: Sequence[Any]) -> bool:
    """Whether messages of the user are results alone."""
    blocks = [blocks_of(message) or [{}] for message in given if role_of(message) == "user"]
    return len(blocks) == len(given) > 0 and all(is_kind(block, "tool_result") for each in blocks for block in each)


def _is_result(block: _Block) -> bool:
    return kind_of(block).endswith("_tool_result")
