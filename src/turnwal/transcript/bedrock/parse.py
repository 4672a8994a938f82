"""Replies and histories of Amazon Bedrock's Converse, as events.

Promises: nothing is lost. What a neutral part cannot say again is kept verbatim in `native`, and only then. Bytes, as
the Python packages of AWS give them, are base64 here.

A reply does not say which model wrote it, except where a prompt router chose: a writer adds `model` to the data, or
signed reasoning counts as that of any model of Bedrock.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from turnwal.core.line import compact
from turnwal.transcript.bedrock.media import DOCUMENTS, IMAGES, NAME
from turnwal.transcript.plain import rest_of, told, with_rest, without_nulls

_NAME: Final = "bedrock"
_MEDIA: Final = {
    "image": {name: media for media, name in IMAGES.items()},
    "document": {name: media for media, name in DOCUMENTS.items()},
}

_TOLD: Final = frozenset({"output", "stopReason", "usage", "ResponseMetadata", "complete"})
"""What the data of a message says of a response, and what the package adds."""

Block = Mapping[str, Any]
_Part = tuple[dict[str, Any], Block | None, Block]
"""A part, the block that it alone stands for, and the block that came."""


def reply_data(reply: Block) -> dict[str, Any]:
    """The data of an `assistant_message` for a response of Converse."""
    message = (reply["output"] or {}).get("message") or {}
    data: dict[str, Any] = {"parts": [part_of(block) for block in message.get("content") or ()], "provider": _NAME}
    said = {
        "model": _within(reply, "trace", "promptRouter", "invokedModelId"),
        "response_id": _within(reply, "ResponseMetadata", "RequestId"),
        "stop": reply.get("stopReason"),
        "usage": reply.get("usage"),
    }
    data |= without_nulls(said)
    if reply.get("complete") is False:
        data["complete"] = False
    return with_rest(data, rest_of(reply, _TOLD))


def _within(value: Any, *names: str) -> Any:
    """What stands at a path of names; None where it leads through anything but objects."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def assembled(chunks: Iterable[Block]) -> dict[str, Any]:
    """The response that the events of a stream make together; `complete` is false where the stream was cut off.

    The arguments of a call stay the text that the model wrote, in `input`.
    """
    reply: dict[str, Any] = {"complete": False}
    blocks: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for kind, event in chunk.items():
            if kind == "contentBlockStart":
                blocks[event["contentBlockIndex"]] = {
                    name: {**held} for name, held in without_nulls(event["start"]).items()
                }
            elif kind == "contentBlockDelta":
                _extend(blocks.setdefault(event["contentBlockIndex"], {}), event["delta"])
            elif kind == "messageStop":
                reply |= {"complete": True, **without_nulls(event)}
            elif kind == "metadata":
                reply |= without_nulls(event) if isinstance(event, dict) else {kind: event}
    content = [block for _, block in sorted(blocks.items())]
    return {**reply, "output": {"message": {"role": "assistant", "content": content}}}


def shown(chunk: Block) -> Iterator[tuple[int, str]]:
    """The text that an event of a stream shows, with the index of its block."""
    event = chunk.get("contentBlockDelta")
    if event is not None:
        yield event["contentBlockIndex"], event["delta"].get("text") or ""


def _extend(block: dict[str, Any], delta: Block) -> None:
    for kind, piece in delta.items():
        if kind == "text" and "citationsContent" in block:
            block["citationsContent"].setdefault("content", []).append({"text": piece})
        elif kind == "text":
            block["text"] = block.get("text", "") + piece
        elif kind == "toolUse":
            call = block.setdefault("toolUse", {})
            call["input"] = call.get("input", "") + piece.get("input", "")
        elif kind == "toolResult":
            block.setdefault("toolResult", {}).setdefault("content", []).extend(piece)
        elif kind == "reasoningContent":
            _extend_reasoning(block.setdefault("reasoningContent", {}), piece)
        elif kind == "citation":
            _cite(block, piece)
        elif isinstance(piece, dict):
            block[kind] = {**block.get(kind, {}), **piece}


def _extend_reasoning(reasoning: dict[str, Any], piece: Block) -> None:
    for name in ("text", "signature"):
        if piece.get(name) is not None:
            text = reasoning.setdefault("reasoningText", {"text": ""})
            text[name] = text.get(name, "") + piece[name]
    if piece.get("redactedContent") is not None:
        whole = b64decode(reasoning.get("redactedContent", "")) + b64decode(piece["redactedContent"])
        reasoning["redactedContent"] = b64encode(whole).decode("ascii")


def _cite(block: dict[str, Any], citation: Any) -> None:
    """Add a citation to a block; the text that came before it is what it is about."""
    if "text" in block:
        block["citationsContent"] = {"content": [{"text": block.pop("text")}]}
    block.setdefault("citationsContent", {}).setdefault("citations", []).append(citation)


def history(messages: Sequence[Block], system: object = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events (type, data) of a list of messages, with the system blocks that stand beside it."""
    if system:
        listed: Any = [system] if isinstance(system, str) else system
        blocks = [{"text": block} if isinstance(block, str) else block for block in listed]
        yield "system_message", {"parts": [part_of(block) for block in blocks]}
    for message in messages:
        content = list(message.get("content") or ())
        if message.get("role") == "assistant":
            yield "assistant_message", {"parts": [part_of(block) for block in content], "provider": _NAME}
            continue
        results = [block for block in content if block.get("toolResult") is not None]
        for block in results:
            yield "tool_result", _result_data(block["toolResult"])
        others = [block for block in content if block.get("toolResult") is None]
        if others or not results:
            yield (
                "system_message" if message.get("role") == "system" else "user_message",
                {"parts": [part_of(block) for block in others]},
            )


def part_of(block: Block) -> dict[str, Any]:
    """A part for a block, with the block itself where the part alone would not give it back."""
    block = without_nulls(block)
    kind = next((name for name in _PARTS if name in block), None)
    usual: Block | None = None
    if kind is None:
        part: dict[str, Any] = {"type": next(iter(block), "empty")}
    else:
        part, usual, block = _PARTS[kind](block)
    if block != usual:
        part["native"] = {"provider": _NAME, "block": block}
    return part


def _text(block: Block) -> _Part:
    return {"type": "text", "content": block["text"]}, {"text": block["text"]}, block


def _tool_use(block: Block) -> _Part:
    call = block["toolUse"]
    id, name, given = call.get("toolUseId", ""), call.get("name", ""), call.get("input", {})
    # the part alone has the arguments, for they may be what no event can hold as data
    block = {**block, "toolUse": {field: value for field, value in call.items() if field != "input"}}
    served = call.get("type") == "server_tool_use"
    part = {"type": "server_tool_call" if served else "tool_call", "id": id, "name": name}
    part["arguments"] = given if isinstance(given, str) else told(given)
    return part, None if served else {"toolUse": {"toolUseId": id, "name": name}}, block


def _tool_result(block: Block) -> _Part:
    """What a server tool found; the results of other tools are events."""
    result = block["toolResult"]
    part = {"type": "server_tool_call_response", "id": result.get("toolUseId", ""), "name": result.get("type", "")}
    return part, None, block


def _reasoning(block: Block) -> _Part:
    said = block["reasoningContent"].get("reasoningText") or {}
    return {"type": "reasoning"} | ({"content": said["text"]} if said.get("text") else {}), None, block


def _citations(block: Block) -> _Part:
    said = block["citationsContent"].get("content") or ()
    return {"type": "text", "content": "".join(each.get("text", "") for each in said)}, None, block


def _json(block: Block) -> _Part:
    return {"type": "text", "content": compact(block["json"])}, None, block


def _media(kind: str) -> Callable[[Block], _Part]:
    def made(block: Block) -> _Part:
        held = block[kind]
        source, name = held.get("source") or {}, held.get("name")
        media = _MEDIA[kind].get(held.get("format"))
        part: dict[str, Any] = {"type": kind} if media is None else {"modality": kind, "mime_type": media}
        usual = {name: held[name] for name in ("format", "name") if name in held}
        if kind == "document" and name is not None:
            part["name"] = name
        if "bytes" in source and media is not None:
            part |= {"type": "blob", "content": source["bytes"]}
            usual["source"] = {"bytes": source["bytes"]}
        elif "s3Location" in source and media is not None:
            part |= {"type": "uri", "uri": source["s3Location"].get("uri", "")}
            usual["source"] = {"s3Location": {"uri": part["uri"]}}
        else:
            return {**part, "type": kind}, None, block
        alone = kind == "image" or (isinstance(name, str) and NAME.fullmatch(name) is not None)
        return part, {kind: usual} if alone else None, block

    return made


def _result_data(result: Block) -> dict[str, Any]:
    content = result.get("content") or ()
    data: dict[str, Any] = {"id": result.get("toolUseId", ""), "parts": [part_of(block) for block in content]}
    usual: dict[str, Any] = {"toolUseId": data["id"], "content": list(content)}
    if result.get("status") == "error":
        data["is_error"] = True
        usual["status"] = "error"
    blank = not content or any("text" in block and not str(block["text"]).strip() for block in content)
    if result != usual or blank:
        data["native"] = {"provider": _NAME, "block": {"toolResult": dict(result)}}
    return data


_PARTS: Final[Mapping[str, Callable[[Block], _Part]]] = {
    "text": _text,
    "toolUse": _tool_use,
    "toolResult": _tool_result,
    "reasoningContent": _reasoning,
    "citationsContent": _citations,
    "json": _json,
    "image": _media("image"),
    "document": _media("document"),
}
