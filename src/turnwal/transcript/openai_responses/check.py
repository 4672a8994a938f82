"""What the OpenAI Responses API refuses of an `input`.

Sources, in the words of its errors: "No tool output found for function call …", "No tool call found for function call
output with call_id …", "Item 'rs_…' of type 'reasoning' was provided without its required following item", "Invalid
'input[].call_id': string too long. Expected a string with maximum length 64", "Duplicate item found with id …",
"Expected an ID that begins with 'msg'", "Unknown parameter: 'input[1].status'" (of reasoning), "Invalid value:
'input_text'. Supported values are: 'output_text' and 'refusal'".

Does not: know what is stored there. Where an item refers to a stored one, outputs may answer a call that is not here;
and an item whose reasoning is missing looks like one that never had any.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

from turnwal.transcript.check import Problem

Item = Mapping[str, Any]

_ID_CHARS_MAX: Final = 64
_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_PREFIXES: Final = (("message", "msg"), ("reasoning", "rs"), ("function_call", "fc"), ("custom_tool_call", "ctc"))

_ANSWERED: Final = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
_GIVEN: Final = frozenset({"input_text", "input_image", "input_file", "input_audio"})
_HELD: Final = {
    "user": _GIVEN,
    "system": _GIVEN,
    "developer": _GIVEN,
    "assistant": frozenset({"output_text", "refusal"}),
}
_BY_CLIENT: Final = frozenset(
    {"mcp_approval_response", "additional_tools", "configuration_update", "compaction_trigger"}
) | set(_ANSWERED.values())
_HALF: Final = re.compile(
    r"(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


def problems(messages: Sequence[Any], system: object = None) -> Iterator[Problem]:
    """Every broken rule, in the order of the items."""
    if system is not None and not isinstance(system, str):
        yield Problem("bad_shape", "system", "instructions are a string")
    paired = _Pairs(messages)
    ids: set[str] = set()
    for index, item in enumerate(messages):
        where = f"messages[{index}]"
        kind = _kind(item)
        if not kind:
            yield Problem("bad_shape", where, "it is no item: it has neither a type nor a role")
            continue
        yield from _id(item, kind, where, ids)
        if kind in _RULES:
            yield from _RULES[kind](item, where)
        yield from _place(messages, index, kind, where)
        yield from paired.problems(item, kind, where)


def _place(messages: Sequence[Any], index: int, kind: str, where: str) -> Iterator[Problem]:
    """What is wrong with an item where it stands."""
    item = messages[index]
    if kind == "message" and item.get("role") == "assistant" and _is_empty(item):
        # the API gives such a message itself, and wants it back behind the reasoning that led to it
        if item.get("id") is None or not _follows_reasoning(messages, index):
            yield Problem("empty_message", f"{where}.content", "it says nothing")
    elif kind == "reasoning" and not _leads_on(messages, index):
        yield Problem("reasoning_alone", where, "no item that it led to follows it")
    elif kind == "compaction_trigger" and index < len(messages) - 1:
        yield Problem("bad_shape", where, "it has to be the last item")


class _Pairs:
    """The calls of a list and what answers them, wherever they stand."""

    def __init__(self, messages: Sequence[Any]) -> None:
        kinds = [(_kind(item), item) for item in messages]
        self._outputs = {(kind, _call_id(item)) for kind, item in kinds if kind in _ANSWERED.values()}
        self._calls = Counter((_ANSWERED[kind], _call_id(item)) for kind, item in kinds if kind in _ANSWERED)
        self._refers = any(kind == "item_reference" for kind, _ in kinds)
        self._ids: set[str] = set()
        self._seen: set[tuple[str, str]] = set()
        self._asked: set[tuple[str, str]] = set()

    def problems(self, item: Item, kind: str, where: str) -> Iterator[Problem]:
        id = _call_id(item)
        if kind in _ANSWERED:
            if not 1 <= len(id) <= _ID_CHARS_MAX:
                yield Problem("bad_id", f"{where}.call_id", "it has 1 to 64 characters")
            if id in self._ids:
                yield Problem("duplicate_id", f"{where}.call_id", f"the id {id!r} is taken")
            self._ids.add(id)
            self._asked.add((_ANSWERED[kind], id))
            if (_ANSWERED[kind], id) not in self._outputs and not _runs_there(item):
                yield Problem("unanswered_call", where, f"there is no output for {id!r}")
        elif kind in _ANSWERED.values():
            if (kind, id) in self._seen:
                yield Problem("duplicate_result", where, f"{id!r} has an output already")
            self._seen.add((kind, id))
            if not self._calls[kind, id] and not self._refers:
                yield Problem("orphan_result", where, f"there is no call {id!r} of its kind")
            elif self._calls[kind, id] and (kind, id) not in self._asked:
                yield Problem("orphan_result", where, f"the call {id!r} stands behind it")


def _id(item: Item, kind: str, where: str, ids: set[str]) -> Iterator[Problem]:
    id = item.get("id")
    if id is None:
        if kind in ("reasoning", "item_reference"):
            yield Problem("bad_id", f"{where}.id", "it has to have one")
        return
    prefix = dict(_PREFIXES).get(kind, "")
    if kind == "local_shell_call_output":
        return  # its id may be that of the call
    if not isinstance(id, str) or _ID.fullmatch(id) is None or not id.startswith(prefix):
        yield Problem("bad_id", f"{where}.id", f"it is 1 to 64 letters, digits, _ and -, and begins with {prefix!r}")
    elif id in ids:
        yield Problem("duplicate_id", f"{where}.id", f"an item {id!r} stands in the list already")
    else:
        ids.add(id)


def _message(item: Item, where: str) -> Iterator[Problem]:
    held = _HELD.get(str(item.get("role")))
    content = item.get("content")
    if held is None:
        yield Problem("bad_shape", f"{where}.role", "the roles are user, assistant, system and developer")
    elif not isinstance(content, (str, list)):
        yield Problem("bad_shape", f"{where}.content", "it is neither text nor a list of blocks")
    elif isinstance(content, list):
        for at, block in enumerate(content):
            yield from _block(block, held, f"{where}.content[{at}]")
    if item.get("role") != "assistant" and _is_empty(item):
        yield Problem("empty_message", f"{where}.content", "it says nothing")


def _block(block: object, held: frozenset[str], where: str) -> Iterator[Problem]:
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(block, dict) or not isinstance(kind, str) or kind not in held:
        yield Problem("bad_shape", where, f"a block of type {kind!r} is not one of {', '.join(sorted(held))}")
    elif kind in ("input_text", "output_text") and not isinstance(block.get("text"), str):
        yield Problem("bad_shape", f"{where}.text", "it is no text")
    elif kind == "input_image" and not (block.get("image_url") or block.get("file_id")):
        yield Problem("bad_shape", where, "an image is at a URL, or is a file")


def _function(item: Item, where: str) -> Iterator[Problem]:
    yield from _named(item, where)
    text = item.get("arguments")
    if not isinstance(text, str) or not _is_object(text):
        yield Problem("bad_arguments", f"{where}.arguments", "it is no text that holds a JSON object")
    elif "\\u" in text and any(found[1] for found in _HALF.finditer(text)):
        yield Problem("surrogate", f"{where}.arguments", "it holds half a character")


def _custom(item: Item, where: str) -> Iterator[Problem]:
    yield from _named(item, where)
    if not isinstance(item.get("input"), str):
        yield Problem("bad_arguments", f"{where}.input", "it is no text")


def _named(item: Item, where: str) -> Iterator[Problem]:
    name = item.get("name")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        yield Problem("bad_name", f"{where}.name", "a name is 1 to 128 letters, digits, _ and -")


def _output(item: Item, where: str) -> Iterator[Problem]:
    output = item.get("output")
    if isinstance(output, str):
        return
    if not isinstance(output, list) or not output:
        yield Problem("bad_shape", f"{where}.output", "it is neither text nor a list of blocks")
        return
    for at, block in enumerate(output):
        yield from _block(block, _GIVEN, f"{where}.output[{at}]")


def _reasoning(item: Item, where: str) -> Iterator[Problem]:
    if not isinstance(item.get("summary"), list):
        yield Problem("bad_shape", f"{where}.summary", "it is required, and may be an empty list")
    if "status" in item:
        yield Problem("bad_shape", f"{where}.status", "the status of reasoning is not taken back")


_RULES: Final[Mapping[str, Callable[[Item, str], Iterator[Problem]]]] = {
    "message": _message,
    "function_call": _function,
    "custom_tool_call": _custom,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    "reasoning": _reasoning,
}


def _kind(item: object) -> str:
    if not isinstance(item, dict):
        return ""
    kind = item.get("type")
    return kind if isinstance(kind, str) else "message" if isinstance(item.get("role"), str) else ""


def _call_id(item: Item) -> str:
    id = item.get("call_id")
    if id is None and _kind(item) == "local_shell_call_output":
        id = item.get("id")
    return id if isinstance(id, str) else ""


def _runs_there(item: Item) -> bool:
    """Whether the provider runs a call of a shell itself."""
    environment = item.get("environment")
    return isinstance(environment, dict) and str(environment.get("type")).startswith("container")


def _is_empty(item: Item) -> bool:
    content = item.get("content")
    blocks = content if isinstance(content, list) else [{"text": content}]
    return not any(block.get("text", block.get("refusal", True)) for block in blocks if isinstance(block, dict))


def _is_of_model(item: object) -> bool:
    kind = _kind(item)
    if kind == "message":
        return isinstance(item, dict) and item.get("role") == "assistant"
    return bool(kind) and kind not in _BY_CLIENT


def _leads_on(messages: Sequence[Any], index: int) -> bool:
    """Whether an item that is no reasoning stands behind, with nothing of the application's between them."""
    for item in messages[index + 1 :]:
        if not _is_of_model(item):
            return False
        if _kind(item) != "reasoning":
            return True
    return False


def _follows_reasoning(messages: Sequence[Any], index: int) -> bool:
    while index > 0 and _is_of_model(messages[index - 1]):
        index -= 1
        if _kind(messages[index]) == "reasoning":
            return True
    return False


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        return False


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
