"""Answering what an `input` of the Responses API leaves unanswered, behind the items of the same reply (OR1).

Does not: answer for a screen, a shell or a patch, whose outputs hold no words of ours; `check` names such calls.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

Item = Mapping[str, Any]

_OUTPUTS: Final = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
_BY_CLIENT: Final = ("mcp_approval_response", "additional_tools", "configuration_update", "compaction_trigger")


def patched(messages: Sequence[Item], text: str) -> list[Item]:
    """The items, with an output for each call that has none behind it."""
    unanswered = _unanswered(messages)
    made: list[Item] = []
    lacking: list[Item] = []
    for index, item in enumerate(messages):
        if lacking and _is_given(item):
            made += lacking
            lacking = []
        made.append(item)
        if index in unanswered:
            kind = _OUTPUTS[str(item["type"])]
            lacking.append({"type": kind, "call_id": str(item.get("call_id", "")), "output": text})
    return made + lacking


def _unanswered(messages: Sequence[Item]) -> set[int]:
    """The places of the calls without an output; of calls with one id, that which was asked for last is answered."""
    waiting: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, item in enumerate(messages):
        kind, id = str(item.get("type")), str(item.get("call_id", ""))
        if kind in _OUTPUTS:
            waiting[_OUTPUTS[kind], id].append(index)
        elif _is_output(item) and waiting[kind, id]:
            waiting[kind, id].pop()
    return {index for places in waiting.values() for index in places}


def _is_output(item: Item) -> bool:
    return str(item.get("type")).endswith(("_call_output", "tool_search_output"))


def _is_given(item: Item) -> bool:
    """Whether the application made an item, so that the reply before it has ended."""
    kind = item.get("type", "message")
    return item.get("role") != "assistant" if kind == "message" else kind in _BY_CLIENT or _is_output(item)
