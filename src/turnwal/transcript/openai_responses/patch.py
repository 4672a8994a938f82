"""Answering what an `input` of the Responses API leaves unanswered, behind the items of the same reply (OR1).

Does not: answer for a screen, a shell or a patch, whose outputs hold no words of ours; `check` names such calls.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

Item = Mapping[str, Any]

_OUTPUTS: Final = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
_BY_CLIENT: Final = ("mcp_approval_response", "additional_tools", "configuration_update", "compaction_trigger")


def patched(messages: Sequence[Item], text: str) -> list[Item]:
    """The items, with an output for each call that has none anywhere."""
    found = Counter((str(item.get("type")), str(item.get("call_id"))) for item in messages if _is_output(item))
    made: list[Item] = []
    lacking: list[Item] = []
    for item in messages:
        if lacking and _is_given(item):
            made += lacking
            lacking = []
        made.append(item)
        kind = _OUTPUTS.get(str(item.get("type")))
        if kind is None:
            continue
        id = str(item.get("call_id", ""))
        if found[kind, id] > 0:
            found[kind, id] -= 1
        else:
            lacking.append({"type": kind, "call_id": id, "output": text})
    return made + lacking


def _is_output(item: Item) -> bool:
    return str(item.get("type")).endswith(("_call_output", "tool_search_output"))


def _is_given(item: Item) -> bool:
    """Whether the application made an item, so that the reply before it has ended."""
    kind = item.get("type", "message")
    return item.get("role") != "assistant" if kind == "message" else kind in _BY_CLIENT or _is_output(item)
