"""Replies and histories of the Anthropic Messages API, as events.

Promises: nothing is lost. What a neutral part cannot say again is kept verbatim in `native`, and only then.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from turnwal.transcript.plain import rest_of, told, with_rest, without_nulls

_NAME: Final = "anthropic"
_TOLD: Final = frozenset({"type", "role", "content", "model", "id", "stop_reason", "usage", "complete"})
"""What the data of a message says of a response."""

Block = Mapping[str, Any]
_EVENTS: Final = {"user": "user_message", "assistant": "assistant_message", "system": "system_message"}
_OF_EVENT: Final = frozenset({"type", "delta", "usage"})
_Part = tuple[dict[str, Any], Block | None, Block]
"""A part, the block that it alone stands for, and the block that came."""


def reply_data(reply: Mapping[str, Any]) -> dict[str, Any]:
    """The data of an `assistant_message` for a Messages API response."""
    data: dict[str, Any] = {"parts": [part_of(block) for block in reply["content"]], "provider": _NAME}
    for name, field in (("model", "model"), ("response_id", "id"), ("stop", "stop_reason"), ("usage", "usage")):
        if reply.get(field) is not None:
            data[name] = reply[field]
    if reply.get("complete") is False:
        data["complete"] = False
    return with_rest(data, rest_of(reply, _TOLD))


def assembled(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The response that the events of a stream make together; `complete` is false where the stream was cut off.

    The arguments of a call stay the text that the model wrote, in `input`.
    """
    reply: dict[str, Any] = {"content": [], "complete": False}
    blocks: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        match chunk.get("type"):
            case "message_start":
                reply |= {**without_nulls(chunk.get("message", {})), "complete": False}
            case "content_block_start":
                blocks[chunk["index"]] = dict(chunk["content_block"])
            case "content_block_delta":
                _extend(blocks.setdefault(chunk["index"], {"type": "text", "text": ""}), chunk["delta"])
            case "message_delta":
                reply |= rest_of(chunk, _OF_EVENT) | without_nulls(chunk.get("delta", {}))
                _count(reply, chunk.get("usage"))
            case "message_stop":
                reply["complete"] = True
            case _:
                pass
    reply["content"] = [block for _, block in sorted(blocks.items())]
    return reply


def _count(reply: dict[str, Any], usage: Any) -> None:
    """Take in what a stream says of its usage; what is no object stands as it came where nothing else does."""
    before = reply.get("usage")
    if isinstance(usage, dict):
        reply["usage"] = {**(before if isinstance(before, dict) else {}), **without_nulls(usage)}
    elif usage is not None and not before:
        reply["usage"] = usage


def _extend(block: dict[str, Any], delta: Block) -> None:
    match delta.get("type"):
        case "text_delta":
            block["text"] = block.get("text", "") + delta["text"]
        case "input_json_delta":
            before = block.get("input")
            block["input"] = (before if isinstance(before, str) else "") + delta["partial_json"]
        case "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta["thinking"]
        case "signature_delta":
            block["signature"] = block.get("signature", "") + delta["signature"]
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        case _:
            pass


def shown(chunk: Block) -> Iterator[tuple[int, str]]:
    """The text that an event of a stream shows, with the index of its block."""
    if chunk.get("type") == "content_block_delta" and chunk["delta"].get("type") == "text_delta":
        yield chunk["index"], chunk["delta"]["text"]


def history(messages: Sequence[Mapping[str, Any]], system: object = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events (type, data) of a list of messages, with the system text that stands beside it."""
    if isinstance(system, str) and system:
        yield "system_message", {"parts": [{"type": "text", "content": system}]}
    elif isinstance(system, list) and system:
        yield "system_message", {"parts": [part_of(block) for block in system]}
    for message in messages:
        content = message.get("content")
        if message.get("role") not in _EVENTS or not isinstance(content, (str, list)):
            raise ValueError("a message has a role (user, assistant, system) and content")
        blocks: list[Block] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results:
            yield "tool_result", _result_data(block)
        if results and len(results) == len(blocks):
            continue
        data: dict[str, Any] = {"parts": [part_of(block) for block in blocks if block.get("type") != "tool_result"]}
        if message.get("role") == "assistant":
            data["provider"] = _NAME
        if message["role"] == "system" or (not results and not _is_usual(message, blocks)):
            data["native"] = {"provider": _NAME, "message": dict(message)}
        yield _EVENTS[message["role"]], data


def part_of(block: Block) -> dict[str, Any]:
    """A part for a block, with the block itself where the part alone would not give it back."""
    block = without_nulls(block)
    kind = block.get("type")
    if not isinstance(kind, str):
        raise ValueError("a block has a type")  # noqa: TRY004 - the data is wrong, not the program
    usual: Block | None = None
    if kind in _PARTS:
        part, usual, block = _PARTS[kind](block)
    elif "tool_use_id" in block:
        part = {"type": "server_tool_call_response", "id": block["tool_use_id"], "name": kind}
    else:
        part = {"type": kind}
    if block != usual:
        part["native"] = {"provider": _NAME, "block": block}
    return part


def _text(block: Block) -> _Part:
    text = block.get("text", "")
    return {"type": "text", "content": text}, {"type": "text", "text": text}, block


def _tool_use(block: Block) -> _Part:
    part = {"type": "tool_call", "id": block.get("id", ""), "name": block.get("name", ""), "arguments": _input(block)}
    usual = {"type": "tool_use", "id": part["id"], "name": part["name"]}
    return part, usual, _without_input(block)


def _thinking(block: Block) -> _Part:
    part = {"type": "reasoning"}
    if block.get("thinking"):
        part["content"] = block["thinking"]
    return part, None, block


def _server_call(block: Block) -> _Part:
    part = {"type": "server_tool_call", "id": block.get("id", ""), "name": block.get("name", "")}
    return {**part, "arguments": _input(block)}, None, _without_input(block)


def _input(block: Block) -> str:
    """The arguments of a call, as text: the part alone has them, for they may be what no event can hold as data."""
    given = block.get("input", {})
    return given if isinstance(given, str) else told(given)


def _without_input(block: Block) -> Block:
    return {name: value for name, value in block.items() if name != "input"}


def _media(block: Block) -> _Part:
    source = block.get("source")
    source = source if isinstance(source, dict) else {}
    modality = "image" if block["type"] == "image" else "document"
    media = source.get("media_type")
    usual: Block = {"type": block["type"], "source": source}
    if source.get("type") == "base64":
        return (
            {"type": "blob", "modality": modality, "mime_type": media, "content": source.get("data", "")},
            usual,
            block,
        )
    if source.get("type") == "url":
        part = {"type": "uri", "modality": modality, "uri": source.get("url", "")}
        if modality == "document":
            part["mime_type"] = "application/pdf"
        return part, usual, block
    return {"type": "file", "modality": modality, "file_id": str(source.get("file_id", ""))}, None, block


def _result_data(block: Block) -> dict[str, Any]:
    content = block.get("content")
    inner: list[Block] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    data: dict[str, Any] = {"id": block.get("tool_use_id", ""), "parts": [part_of(each) for each in inner]}
    if block.get("is_error"):
        data["is_error"] = True
    text = len(inner) == 1 and inner[0].keys() == {"type", "text"} and inner[0]["type"] == "text"
    usual: dict[str, Any] = {"type": "tool_result", "tool_use_id": data["id"]}
    if inner:
        usual["content"] = inner[0]["text"] if text else inner
    if data.get("is_error"):
        usual["is_error"] = True
    if block != usual:
        data["native"] = {"provider": _NAME, "block": dict(block)}
    return data


def _is_usual(message: Block, blocks: list[Block]) -> bool:
    """Whether the parts alone give the message back as it was."""
    if message.keys() != {"role", "content"}:
        return False
    alone = len(blocks) == 1 and blocks[0].keys() == {"type", "text"}
    return isinstance(message["content"], str) is (alone and message["role"] == "user")


_PARTS: Final[Mapping[object, Callable[[Block], _Part]]] = {
    "text": _text,
    "tool_use": _tool_use,
    "thinking": _thinking,
    "redacted_thinking": _thinking,
    "image": _media,
    "document": _media,
    "server_tool_use": _server_call,
    "mcp_tool_use": _server_call,
}
