"""Replies and histories of the OpenAI Responses API, as events.

Promises: nothing is lost. What a neutral part cannot say again is kept verbatim in `native`, and only then; a call that
a wrapper hides in the content of a message is a call all the same (langchain-ai/deepagents#5781).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from turnwal.core.line import compact
from turnwal.transcript.openai_responses.items import (
    ANSWERS,
    BUILT_IN,
    MADE_BY_CLIENT,
    OUTPUTS,
    Item,
    call_id_of,
    content_of,
    is_run_by_client,
    kind_of,
)
from turnwal.transcript.openai_responses.media import media, part_of
from turnwal.transcript.openai_responses.stream import assembled, shown
from turnwal.transcript.plain import rest_of, with_rest, without_nulls

__all__ = ["assembled", "history", "reply_data", "shown"]

_NAME: Final = "openai-responses"
_ECHOED: Final = frozenset(
    {"background", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "parallel_tool_calls", "prompt"}
    | {"prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning", "safety_identifier", "text"}
    | {"temperature", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user"}
)
"""Settings of the request that a response says again."""
_TOLD: Final = _ECHOED | {
    *("id", "object", "model", "output", "output_text", "status", "incomplete_details", "usage", "complete"),
    *("created_at", "completed_at", "type", "role", "content", "tool_calls"),
}
"""What the data of a message, its time, and the request say of a response."""

_SAID_OF_CALL: Final = ("action", "operation", "arguments")


def reply_data(reply: Mapping[str, Any]) -> dict[str, Any]:
    """The data of an `assistant_message` for a response."""
    data: dict[str, Any] = {"parts": _parts(_items_of(reply)), "provider": _NAME}
    status, details = reply.get("status"), reply.get("incomplete_details")
    said = {"model": reply.get("model"), "response_id": reply.get("id"), "usage": reply.get("usage")}
    reason = details.get("reason") if isinstance(details, dict) else None
    data |= without_nulls({**said, "stop": reason or status})
    if reply.get("complete") is False or status not in (None, "completed"):
        data["complete"] = False
    return with_rest(data, rest_of(reply, _TOLD))


def history(messages: Sequence[Item], system: object = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events (type, data) of the items of an input, behind the `instructions` that stand apart from it."""
    if system is not None and not isinstance(system, str):
        raise ValueError("instructions are a string")
    if system:
        yield "system_message", {"parts": [{"type": "text", "content": system}]}
    items = _with_referred_calls([_sent(item) for item in messages])
    served = {_half(item) for item in items if kind_of(item) in OUTPUTS and not is_run_by_client(item)}
    reply: list[Item] = []
    for item in items:
        kind = kind_of(item)
        if kind == "":
            raise ValueError("an item has a type or a role")
        by_client = kind in MADE_BY_CLIENT or (kind in ANSWERS and _half(item) not in served)
        if not by_client and not (kind == "message" and item["role"] != "assistant"):
            reply.append(item)
            continue
        if reply:
            yield "assistant_message", {"parts": _parts(reply), "provider": _NAME}
            reply = []
        yield _given(item)
    if reply:
        yield "assistant_message", {"parts": _parts(reply), "provider": _NAME}


def _items_of(reply: Mapping[str, Any]) -> list[Item]:
    """The items of a response, or of what a wrapper made of one."""
    if "output" in reply:
        return [_sent(item) for item in reply["output"] or ()]
    if "content" not in reply and "tool_calls" not in reply:
        raise ValueError("it has no output")
    content = reply.get("content") or ()
    items = [_unwrapped(block) for block in ([{"text": content}] if isinstance(content, str) else content)]
    known = {call_id_of(item) for item in items if kind_of(item) in OUTPUTS}
    for call in reply.get("tool_calls") or ():
        if call.get("id") not in known:
            told = call.get("function") or {"name": call.get("name"), "arguments": call.get("args")}
            arguments = told.get("arguments")
            text = arguments if isinstance(arguments, str) else compact(arguments or {})
            made = {"call_id": call.get("id") or "", "name": told.get("name") or "", "arguments": text}
            items.append({"type": "function_call", **made})
    return items


def _unwrapped(block: Item) -> Item:
    """The item that a block of a wrapper's content stands for."""
    if block.get("type", "text") not in ("text", "output_text", "refusal"):
        return _sent(block)
    if block.get("type") == "refusal":
        return {"type": "message", "role": "assistant", "content": [dict(block)]}
    text = block.get("text", "")
    if not isinstance(block.get("id"), str):
        return {"role": "assistant", "content": text}
    said = {"type": "output_text", "text": text, "annotations": block.get("annotations") or []}
    return {"type": "message", "id": block["id"], "role": "assistant", "status": "completed", "content": [said]}


def _sent(item: Item) -> Item:
    """An item without what says nothing, and without what a client library put into it."""
    found = without_nulls(item)
    found.pop("parsed_arguments", None)
    content = found.get("content")
    if isinstance(content, list):
        found["content"] = [
            {name: value for name, value in without_nulls(block).items() if name != "parsed"} for block in content
        ]
    return found


def _parts(items: Sequence[Item]) -> list[dict[str, Any]]:
    """The parts of one reply, in the order of its items."""
    answered = {_half(item) for item in items if kind_of(item) in ANSWERS}
    parts: list[dict[str, Any]] = []
    for item in items:
        kind = kind_of(item)
        if kind == "message":
            behind_text = bool(parts) and parts[-1]["type"] == "text"
            parts += _said(item, behind_text=behind_text)
        elif (is_run_by_client(item) and _half(item) not in answered) or "for_call" in item:
            parts.append(_call(item))
        else:
            part = _OTHERS.get(kind, _served)(item)
            parts.append({**part, "native": {"provider": _NAME, "block": dict(item)}})
    return parts


def _said(message: Item, *, behind_text: bool) -> Iterator[dict[str, Any]]:
    """The parts of a message: one for each block of it, and the calls that are hidden in it."""
    content = message.get("content")
    if isinstance(content, str):
        part: dict[str, Any] = {"type": "text", "content": content}
        usual = not behind_text and message == {"role": "assistant", "content": content}
        yield part if usual else {**part, "native": {"provider": _NAME, "block": dict(message)}}
        return
    if not content:
        yield {"type": "text", "content": "", "native": {"provider": _NAME, "block": dict(message)}}
        return
    goes_on: dict[str, Any] = {}
    for block in content:
        if block.get("type") in OUTPUTS:
            yield _call(_sent(block))
            continue
        native = {"provider": _NAME, "block": {**message, "content": [dict(block)]}, **goes_on}
        yield {"type": "text", "content": part_of(block).get("content", ""), "native": native}
        goes_on = {"goes_on": True}


def _call(item: Item) -> dict[str, Any]:
    """A part for a call that the application runs."""
    kind = kind_of(item)
    id, name = call_id_of(item), str(item.get("name", ""))
    part = {"type": "tool_call", "id": id, "name": name}
    usual: dict[str, Any] = {"type": kind, "call_id": id, "name": name}
    if kind == "custom_tool_call":
        part |= {"arguments": item.get("input", ""), "format": "text"}
        usual["input"] = part["arguments"]
    elif kind == "function_call":
        part["arguments"] = item.get("arguments", "")
        usual["arguments"] = part["arguments"]
    elif kind in BUILT_IN:
        told = [item[field] for field in _SAID_OF_CALL if isinstance(item.get(field), dict)]
        part |= {"name": kind.removesuffix("_call"), "arguments": compact(told[0] if told else {})}
    else:
        part |= {"id": item["for_call"], "arguments": "{}"}
    block = {name: value for name, value in item.items() if name != "for_call"}
    return part if block == usual else {**part, "native": {"provider": _NAME, "block": block}}


def _reasoning(item: Item) -> dict[str, Any]:
    blocks = [block for name in ("summary", "content") for block in item.get(name) or () if isinstance(block, dict)]
    said = "\n\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str))
    return {"type": "reasoning", "content": said} if said else {"type": "reasoning"}


def _served(item: Item) -> dict[str, Any]:
    """A part for what the provider did by itself."""
    kind = kind_of(item)
    if kind.endswith("_call"):
        name = str(item.get("name") or kind.removesuffix("_call"))
        return {"type": "server_tool_call", "id": call_id_of(item), "name": name}
    if kind in ANSWERS or kind == "program_output":
        return {"type": "server_tool_call_response", "id": call_id_of(item), "name": kind}
    return {"type": kind}


_OTHERS: Final[Mapping[str, Callable[[Item], dict[str, Any]]]] = {"reasoning": _reasoning}


def _given(item: Item) -> tuple[str, dict[str, Any]]:
    """The event of an item that the application made."""
    kind = kind_of(item)
    if kind in ANSWERS:
        return "tool_result", _answer(item, kind)
    if kind != "message":
        return "user_message", {"parts": [{"type": kind}], "native": {"provider": _NAME, "message": dict(item)}}
    parts = _given_parts(item.get("content"))
    content = content_of([_usual(part) or {} for part in parts])
    kept = dict(item)
    if item["role"] == "user" and item == {"role": "user", "content": content}:
        return "user_message", {"parts": parts}
    if item.get("content") == content:
        del kept["content"]  # the parts give it back
    type_ = "user_message" if item["role"] == "user" else "system_message"
    return type_, {"parts": parts, "native": {"provider": _NAME, "message": kept}}


def _answer(item: Item, kind: str) -> dict[str, Any]:
    id, output = call_id_of(item), item.get("output")
    parts = _given_parts(output)
    data: dict[str, Any] = {"id": id, "parts": parts}
    content = content_of([_usual(part) or {} for part in parts]) if parts else ""
    usual = kind in ("function_call_output", "custom_tool_call_output")
    if not usual or item != {"type": kind, "call_id": id, "output": content}:
        data["native"] = {"provider": _NAME, "block": dict(item)}
    return data


def _given_parts(content: object) -> list[dict[str, Any]]:
    """The parts of what a model is given: text, blocks, a screen, or what shells wrote."""
    if isinstance(content, str):
        return [{"type": "text", "content": content}] if content else []
    blocks = [content] if isinstance(content, dict) else content if isinstance(content, list) else []
    parts: list[dict[str, Any]] = []
    for block in blocks:
        if "stdout" in block or "stderr" in block:
            texts = [block.get("stdout"), block.get("stderr")]
            parts += [{"type": "text", "content": text} for text in texts if text]
            continue
        part = part_of(block)
        parts.append(part if _usual(part) == block else {**part, "native": {"provider": _NAME, "block": dict(block)}})
    return parts


def _usual(part: Item) -> dict[str, Any] | None:
    """The block that a part alone stands for."""
    return {"type": "input_text", "text": part["content"]} if part["type"] == "text" else media(part)


def _half(item: Item) -> tuple[str, str]:
    """What a call and its answer have in common."""
    kind = kind_of(item)
    return OUTPUTS.get(kind, kind), call_id_of(item)


def _with_referred_calls(items: list[Item]) -> list[Item]:
    """The items, with the id of its call at each reference that stands for one: its output says it, in order."""
    asked = {_half(item) for item in items if kind_of(item) in OUTPUTS}
    outputs = [item for item in items if kind_of(item) in ANSWERS and _half(item) not in asked]
    calls = [item for item in items if kind_of(item) == "item_reference" and str(item.get("id")).startswith(_CALLS)]
    if len(outputs) != len(calls):
        return items
    found = {id(call): call_id_of(output) for call, output in zip(calls, outputs, strict=True)}
    return [{**item, "for_call": found[id(item)]} if id(item) in found else item for item in items]


_CALLS: Final = ("fc_", "ctc_")
