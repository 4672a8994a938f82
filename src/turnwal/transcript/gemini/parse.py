"""Replies and histories of the Gemini API, as events.

Promises: nothing is lost. What a neutral part cannot say again is kept verbatim in `native`, and only then. Bytes are
base64 in the alphabet of the API: the Python package writes them in the other one, and the API takes both (ProtoJSON:
"Either standard or URL-safe base64 encoding with/without paddings are accepted").
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from turnwal.core import keys
from turnwal.core.line import compact
from turnwal.transcript.gemini.stream import assembled, shown
from turnwal.transcript.plain import rest_of, with_rest, without_nulls

__all__ = ["assembled", "history", "part_of", "reply_data", "shown"]

_NAME: Final = "gemini"
_PLAIN_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_JOINT: Final = re.compile(r"_([a-z])")
_URL_SAFE: Final = str.maketrans("-_", "+/")
_WORDS: Final = frozenset({"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"})
"""What the API documents in place of a signature; it is no base64."""

_TOLD: Final = frozenset(
    {"candidates", "modelVersion", "responseId", "usageMetadata", "createTime", "complete"}
    | {"sdkHttpResponse", "automaticFunctionCallingHistory", "parsed"}
)
_TOLD_OF_CANDIDATE: Final = frozenset({"content", "finishReason", "index"})
"""What the data of a message says of a response and its first candidate, or its time, or what the package adds."""

Block = Mapping[str, Any]
_Part = tuple[dict[str, Any], Block | None]
"""A part, and the block that it alone stands for."""
_Call = tuple[str, str, str, str]
"""The key, id, name and arguments of a call."""


def reply_data(reply: Block) -> dict[str, Any]:
    """The data of an `assistant_message` for a response; of several candidates the first."""
    reply = _spelt(reply)
    if "candidates" not in reply and "promptFeedback" not in reply:
        raise ValueError("it has no candidates")
    candidates = [_spelt(candidate) for candidate in reply.get("candidates") or [{}]]
    candidate = candidates[0]
    blocks = (candidate.get("content") or {}).get("parts") or ()
    data: dict[str, Any] = {"parts": [part_of(_standard(spelt_part(block))) for block in blocks], "provider": _NAME}
    said = {
        "model": reply.get("modelVersion"),
        "response_id": reply.get("responseId"),
        "stop": candidate.get("finishReason") or (reply.get("promptFeedback") or {}).get("blockReason"),
        "usage": reply.get("usageMetadata"),
    }
    data |= without_nulls(said)
    if reply.get("complete") is False:
        data["complete"] = False
    found = [rest_of(candidate, _TOLD_OF_CANDIDATE), *candidates[1:]]
    return with_rest(data, rest_of(reply, _TOLD) | ({"candidates": found} if any(found) else {}))


def history(messages: Sequence[Block], system: object = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events (type, data) of a list of contents, with the system instruction that stands beside it.

    They name calls by their key, so they belong at the beginning of a log. Responses come in the order of their calls.
    """
    seq = 0
    if system:
        yield "system_message", {"parts": _system_parts(system)}
        seq += 1
    calls: list[_Call] = []
    earlier: list[_Call] = []
    for message in messages:
        blocks = [spelt_part(block) for block in message.get("parts") or ()]
        if message.get("role") == "model":
            parts = [part_of(block) for block in blocks]
            earlier += calls
            calls = _calls(parts, seq, earlier)
            yield "assistant_message", {"parts": parts, "provider": _NAME}
            seq += 1
            continue
        results = [block for block in blocks if block.get("functionResponse") is not None]
        for data in _paired(results, calls, earlier, seq):
            yield "tool_result", data
            seq += 1
        if len(results) < len(blocks) or not blocks:
            others = [block for block in blocks if block.get("functionResponse") is None]
            yield "user_message", {"parts": [part_of(block) for block in others]}
            seq += 1


def part_of(block: Block) -> dict[str, Any]:
    """A part for a part of a content, with that itself where ours alone would not give it back."""
    block = {
        name: without_nulls(value) if isinstance(value, dict) and name != "partMetadata" else value
        for name, value in without_nulls(block).items()
    }
    field = next((name for name in _PARTS if name in block), None)
    usual: Block | None = None
    if block.get("thought") and field != "functionCall":
        part: dict[str, Any] = {"type": "reasoning"}
        if block.get("text"):
            part["content"] = block["text"]
    elif field is not None:
        part, usual = _PARTS[field](block[field])
    else:
        part = {"type": next(iter(block), "empty")}
    if block != usual:
        part["native"] = {"provider": _NAME, "block": block}
    return part


def spelt_part(part: Block) -> dict[str, Any]:
    """A part with its names in camel case: snake case, as the Python package has it, is taken too."""
    found: dict[str, Any] = {}
    for name, value in _spelt(part).items():
        found[name] = _spelt(value) if isinstance(value, dict) and name != "partMetadata" else value
        if name == "functionResponse" and isinstance(found[name].get("parts"), list):
            found[name]["parts"] = [spelt_part(each) for each in found[name]["parts"]]
    return found


def _spelt(fields: Block) -> dict[str, Any]:
    return {_JOINT.sub(lambda found: found[1].upper(), name): value for name, value in fields.items()}


def _standard(block: Block) -> Block:
    """A part with its bytes in the alphabet of the API."""
    found = dict(block)
    signature, media = block.get("thoughtSignature"), block.get("inlineData")
    if isinstance(signature, str) and signature not in _WORDS:
        found["thoughtSignature"] = signature.translate(_URL_SAFE)
    if isinstance(media, dict) and isinstance(media.get("data"), str):
        found["inlineData"] = {**media, "data": media["data"].translate(_URL_SAFE)}
    return found


def _system_parts(system: Any) -> list[dict[str, Any]]:
    """The parts of a system instruction: a text, a content, or a list of parts."""
    blocks = system.get("parts") or () if isinstance(system, dict) else system
    listed = [blocks] if isinstance(blocks, str) else blocks
    return [part_of({"text": block} if isinstance(block, str) else block) for block in listed]


def _calls(parts: Sequence[Block], seq: int, earlier: list[_Call]) -> list[_Call]:
    """The calls of a message. One that is asked for again while it has no answer is the earlier one (F07)."""
    calls = []
    for index, part in enumerate(parts):
        if part["type"] == "tool_call":
            same = (part["id"], part["name"], part["arguments"])
            again = next((call for call in earlier if call[1:] == same), None)
            if again is not None:
                earlier.remove(again)
            calls.append(again or (keys.text(keys.pack(seq, index)), *same))
    return calls


def _paired(results: Sequence[Block], calls: list[_Call], earlier: list[_Call], seq: int) -> list[dict[str, Any]]:
    """The data of responses, each with the key of its call, in the order of the calls; those without a call last.

    A response means the call of its id, if need be of an earlier message (F09); without one, the first call of its name
    that has no response yet.
    """
    found: list[tuple[int, dict[str, Any]]] = []
    late: list[dict[str, Any]] = []
    free = list(range(len(calls)))
    for block in results:
        data = _result_data(block["functionResponse"], block)
        id, name = data["id"], data["name"]
        fits = [at for at in free if calls[at][1] == id and (id or calls[at][2] == name)]
        fits += [at for at in free if (not id or not calls[at][1]) and calls[at][2] == name]
        if fits:
            free.remove(fits[0])
        if fits and not id and calls[fits[0]][1]:
            data["native"] = {"provider": _NAME, "block": dict(block)}  # the call has an id, its response none
        before = next((call for call in earlier if id and call[1] == id and call[2] == name), None)
        if not fits and before is not None:
            earlier.remove(before)
            late.append({"call": before[0], **data})
            continue
        found.append((fits[0] if fits else len(calls), data))
    found.sort(key=lambda each: each[0])
    paired = []
    for at, (call, data) in enumerate(found):
        # a key that names no message says that no call was found, and keeps others from being taken for it
        paired.append({"call": calls[call][0] if call < len(calls) else f"{seq + at}.0", **data})
    calls[:] = [calls[at] for at in free]
    return paired + late


def _text(text: Any) -> _Part:
    return {"type": "text", "content": text}, {"text": text}


def _function_call(call: Any) -> _Part:
    id, name, args = call.get("id", ""), call.get("name", ""), call.get("args")
    part = {"type": "tool_call", "id": id, "name": name, "arguments": "{}" if args is None else compact(args)}
    usual = {"name": name, "args": args}
    if not _PLAIN_NAME.fullmatch(name):
        return part, None  # as it is it goes back to Gemini alone
    return part, {"functionCall": {"id": id, **usual} if id else usual}


def _inline_data(media: Any) -> _Part:
    data = media.get("data", "").translate(_URL_SAFE)
    data += "=" * (-len(data) % 4)
    mime = media.get("mimeType", "")
    part = {"type": "blob", "modality": _modality(mime), "mime_type": mime, "content": data}
    return part, {"inlineData": {"mimeType": mime, "data": data}}


def _file_data(file: Any) -> _Part:
    uri, mime = file.get("fileUri", ""), file.get("mimeType")
    part = {"type": "uri", "modality": _modality(mime or ""), "uri": uri}
    if mime is None:
        return part, {"fileData": {"fileUri": uri}}
    return {**part, "mime_type": mime}, {"fileData": {"mimeType": mime, "fileUri": uri}}


def _modality(mime: str) -> str:
    kind = mime.split("/", 1)[0]
    return kind if kind in ("image", "audio", "video") else "document"


def _server_call(name: str) -> Callable[[Any], _Part]:
    return lambda block: ({"type": "server_tool_call", "id": block.get("id", ""), "name": name}, None)


def _server_response(name: str) -> Callable[[Any], _Part]:
    return lambda block: ({"type": "server_tool_call_response", "id": block.get("id", ""), "name": name}, None)


def _result_data(response: Block, block: Block) -> dict[str, Any]:
    said = response.get("response")
    name = "error" if isinstance(said, dict) and "error" in said else "output"
    text = said.get(name) if isinstance(said, dict) and said.keys() == {name} else said
    text = text if isinstance(text, str) else compact(text)
    data: dict[str, Any] = {"id": response.get("id") or "", "name": response.get("name") or ""}
    data["parts"] = [{"type": "text", "content": text}]
    data["parts"] += [part_of(each) for each in response.get("parts") or ()]
    if name == "error":
        data["is_error"] = True
    usual = {"name": data["name"], "response": {name: text}}
    if block != {"functionResponse": {"id": data["id"], **usual} if data["id"] else usual}:
        data["native"] = {"provider": _NAME, "block": dict(block)}
    return data


_PARTS: Final[Mapping[str, Callable[[Any], _Part]]] = {
    "functionCall": _function_call,
    "executableCode": _server_call("code_execution"),
    "codeExecutionResult": _server_response("code_execution"),
    "toolCall": _server_call("server_tool"),
    "toolResponse": _server_response("server_tool"),
    "inlineData": _inline_data,
    "fileData": _file_data,
    "text": _text,
}
