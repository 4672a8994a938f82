"""Items of the Responses API: what each is, and which of them belong together.

Promises: a call that the application runs is known from one that the provider runs, whatever its type is called.

Does not: know a log or a request.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from turnwal.transcript.target import Wire

Item = Mapping[str, Any]

OUTPUTS: Final = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
}
"""Each call that an application may run, with what answers it."""

BUILT_IN: Final = OUTPUTS.keys() - {"function_call", "custom_tool_call"}
"""Calls of tools that the provider describes and the application runs; each is answered in a form of its own."""

ANSWERS: Final = frozenset(OUTPUTS.values())

MADE_BY_CLIENT: Final = frozenset(
    {"mcp_approval_response", "additional_tools", "configuration_update", "compaction_trigger"}
)
"""Items of an application that are neither messages nor answers to calls."""

_PREFIXES: Final = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_BLOCKS: Final = {
    "input_text": ("text",),
    "input_image": ("image_url", "file_id"),
    "input_file": ("file_data", "file_url", "file_id"),
    "input_audio": ("input_audio",),
}
"""What is given to a model, each type with the fields of which it needs one."""


def kind_of(item: Item) -> str:
    """The type of an item; a message need not say it."""
    kind = item.get("type")
    if isinstance(kind, str):
        return kind
    return "message" if isinstance(item.get("role"), str) else ""


def is_run_by_client(item: Item) -> bool:
    """Whether an item is a call that the application runs and answers."""
    kind = kind_of(item)
    if kind == "shell_call":
        environment = item.get("environment")
        return not (isinstance(environment, dict) and str(environment.get("type")).startswith("container"))
    return item.get("execution") == "client" if kind == "tool_search_call" else kind in OUTPUTS


def call_id_of(item: Item) -> str:
    """The id that a call and its answer share; answers of a local shell once had it as their own."""
    found = item.get("call_id") or item.get("id")
    return found if isinstance(found, str) else ""


def name_of_item(item: Item) -> str | None:
    """What the id of an item is unique by, or None for an id that the API would not take for it."""
    id = item.get("id")
    if not isinstance(id, str) or _NAME.fullmatch(id) is None:
        return None
    return f"item {id}" if id.startswith(_PREFIXES.get(kind_of(item), "")) else None


def is_given(block: object) -> bool:
    """Whether it is a block that a message of the user or a tool's output may hold."""
    if not isinstance(block, dict):
        return False
    held = [block.get(field) for field in _BLOCKS.get(str(block.get("type")), ())]
    return any(value and isinstance(value, dict if block["type"] == "input_audio" else str) for value in held)


def content_of(blocks: list[Wire]) -> list[Wire] | str:
    """Content of these blocks: text alone is a string."""
    alone = blocks[0] if len(blocks) == 1 else {}
    return alone["text"] if alone.keys() == {"type", "text"} else blocks
