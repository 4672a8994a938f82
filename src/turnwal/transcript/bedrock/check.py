"""What Amazon Bedrock's Converse refuses of `messages`, as the REST JSON has them, or boto3 with its bytes.

Sources: its API reference (Message, ContentBlock, ToolUseBlock, ToolResultBlock, ReasoningContentBlock, DocumentBlock);
the words of its errors: "Expected toolResult blocks at messages.N.content for the following Ids", "The number of
toolResult blocks at messages.N.content exceeds the number of toolUse blocks of previous turn.", "The toolResult blocks
at messages.N.content contain duplicate Ids", "A conversation must start with a user message.", "The text field in the
ContentBlock object at messages.N.content.M is blank.", "The content field in the Message object at messages.N is
empty.", "A text block must be included when using documents.", "Messages can't contain duplicate document names."
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from turnwal.transcript.check import Problem

_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_TOOL: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DOCUMENT: Final = re.compile(r"[a-zA-Z0-9\s()\[\]-]{1,200}")
_BASE64: Final = re.compile(r"[a-zA-Z0-9+/]+={0,2}")
_FORMATS: Final = {
    "image": ("png", "jpeg", "gif", "webp"),
    "document": ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"),
}
_CHARS_MAX: Final = {"image": 5 * 1024 * 1024, "document": 6 * 1024 * 1024}
"""What they have in base64 (Message: 3.75 MB an image, 4.5 MB a document)."""
_IN_RESULT: Final = frozenset({"text", "json", "image", "document", "video", "searchResult"})
_ANYWHERE: Final = frozenset({"text", "guardContent", "cachePoint"})
_BLOCKS: Final = {
    "user": _ANYWHERE | {"image", "document", "video", "audio", "toolResult", "searchResult"},
    "assistant": _ANYWHERE | {"toolUse", "toolResult", "reasoningContent", "citationsContent", "image", "audio"},
    "system": _ANYWHERE | {"toolAddition", "toolRemoval"},
}

_Dict = Mapping[str, Any]


def problems(messages: Sequence[Any], system: object = None) -> Iterator[Problem]:
    """Every broken rule, in the order of the messages."""
    yield from _system(system)
    seen: set[str] = set()
    names: set[str] = set()
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if _role(message) not in _BLOCKS:
            yield Problem("bad_shape", where, "it is no message of the user, the assistant or the system")
            continue
        before = messages[index - 1] if index else None
        if index == 0 and _role(message) != "user":
            yield Problem("first_role", where, "the first message must be the user's")
        if index and _role(message) == _role(before):
            yield Problem("role_order", where, "the user and the assistant take turns")
        yield from _content(message, where)
        yield from _documents(message, where, names)
        if _role(message) == "assistant":
            yield from _calls(message, messages[index + 1 : index + 2], where, seen)
        else:
            yield from _results(message, before, where)


def _system(system: object) -> Iterator[Problem]:
    if system is not None and not isinstance(system, (str, list)):
        yield Problem("bad_shape", "system", "it is neither text nor a list of blocks")
    elif isinstance(system, str) and system and not system.strip():
        yield Problem("empty_message", "system", "its text is blank")
    for at, block in enumerate(system if isinstance(system, list) else ()):
        kind = _kind(block)
        if kind not in _ANYWHERE:
            yield Problem("bad_shape", f"system[{at}]", "a block of system text holds text or a cache point")
        else:
            yield from _block(kind, block[kind], f"system[{at}]")


def _content(message: _Dict, where: str) -> Iterator[Problem]:
    content, role = message.get("content"), message["role"]
    if not isinstance(content, list) or not content:
        yield Problem("empty_message" if content in (None, []) else "bad_shape", where, "it has no content")
        return
    for at, block in enumerate(content):
        here = f"{where}.content[{at}]"
        kind = _kind(block)
        if kind is None:
            yield Problem("bad_shape", here, "a block holds one kind of content")
            continue
        if kind not in _BLOCKS[role]:
            yield Problem("bad_shape", here, f"a message of the {role} holds no {kind}")
        yield from _block(kind, block[kind], here)
    if all(_kind(block) in ("reasoningContent", "cachePoint") for block in content):
        yield Problem("reasoning_alone", where, "it holds nothing but reasoning or cache points")


def _block(kind: str, held: object, where: str) -> Iterator[Problem]:
    if kind == "text":
        if not isinstance(held, str) or not held.strip():
            yield Problem("empty_message", where, "its text is blank")
    elif kind == "json":
        pass
    elif not isinstance(held, dict):
        yield Problem("bad_shape", f"{where}.{kind}", "it is no object")
    elif kind == "toolUse":
        yield from _tool_use(held, f"{where}.{kind}")
    elif kind == "toolResult":
        yield from _tool_result(held, f"{where}.{kind}")
    elif kind == "reasoningContent":
        if not held.get("redactedContent") and not _dict(held, "reasoningText").get("signature"):
            yield Problem("unsigned_reasoning", f"{where}.{kind}", "reasoning goes back with its signature")
    elif kind in _FORMATS:
        yield from _media(kind, held, f"{where}.{kind}")


def _tool_use(call: _Dict, where: str) -> Iterator[Problem]:
    if not _matches(_ID, call.get("toolUseId")):
        yield Problem("bad_id", f"{where}.toolUseId", "an id is 1 to 64 letters, digits and _.:-")
    if not _matches(_TOOL, call.get("name")):
        yield Problem("bad_name", f"{where}.name", "a name is 1 to 64 letters, digits, _ and -")
    if not isinstance(call.get("input"), dict):
        yield Problem("bad_arguments", f"{where}.input", "it is no object")


def _tool_result(result: _Dict, where: str) -> Iterator[Problem]:
    content = result.get("content")
    if not isinstance(content, list):
        yield Problem("bad_shape", f"{where}.content", "a result has a list of content")
        return
    if result.get("status", "success") not in ("success", "error"):
        yield Problem("bad_shape", f"{where}.status", "it is success or error")
    for at, block in enumerate(content):
        here = f"{where}.content[{at}]"
        kind = _kind(block)
        if kind not in _IN_RESULT:
            yield Problem("bad_shape", here, "a result holds text, JSON, images, documents")
        else:
            yield from _block(kind, block[kind], here)


def _media(kind: str, held: _Dict, where: str) -> Iterator[Problem]:
    source = _dict(held, "source")
    if held.get("format", "pdf" if kind == "document" else None) not in _FORMATS[kind]:
        yield Problem("bad_shape", f"{where}.format", f"a format is one of {', '.join(_FORMATS[kind])}")
    if kind == "document" and (not _matches(_DOCUMENT, held.get("name")) or re.search(r"\s\s", held["name"])):
        yield Problem("bad_name", f"{where}.name", "a name is letters, digits, single spaces and ()[]-")
    chars = _chars(source["bytes"]) if "bytes" in source else None
    if len(source) != 1 or chars == 0:
        yield Problem("bad_shape", f"{where}.source", "a source is base64 in bytes, or an address in S3")
    elif chars is not None and chars > _CHARS_MAX[kind]:
        yield Problem("too_large", f"{where}.source.bytes", "an image has at most 3.75 MB, a document 4.5 MB")


def _chars(held: object) -> int:
    """How long base64 is, or what it becomes of bytes, as boto3 takes them; 0 for what is neither."""
    if isinstance(held, (bytes, bytearray)):
        return (len(held) + 2) // 3 * 4
    return len(held) if isinstance(held, str) and _matches(_BASE64, held) else 0


def _documents(message: _Dict, where: str, names: set[str]) -> Iterator[Problem]:
    blocks = _blocks(message)
    if any("document" in block for block in blocks) and not any("text" in block for block in blocks):
        yield Problem("bad_shape", where, "a document has text beside it")
    inside = [inner for block in blocks for inner in _blocks(_dict(block, "toolResult"))]
    for block in (*blocks, *inside):
        name = _dict(block, "document").get("name")
        if isinstance(name, str):
            if name in names:
                yield Problem("duplicate_name", where, f"a document {name!r} is there already")
            names.add(name)


def _calls(message: _Dict, following: Sequence[Any], where: str, seen: set[str]) -> Iterator[Problem]:
    answered = [_id(result) for each in following for _, result in _held(each, "toolResult")]
    found = [_id(result) for _, result in _held(message, "toolResult")]
    for at, call in _held(message, "toolUse"):
        here, id = f"{where}.content[{at}].toolUse", _id(call)
        if id in seen:
            yield Problem("duplicate_id", f"{here}.toolUseId", f"the id {id!r} is taken")
        seen |= set() if id is None else {id}
        served = call.get("type") == "server_tool_use"
        if id not in (found if served else answered):
            yield Problem("unanswered_call", here, f"no result follows for {id!r}")
    served_ids = [_id(call) for _, call in _held(message, "toolUse") if call.get("type") == "server_tool_use"]
    for at, result in _held(message, "toolResult"):
        if _id(result) not in served_ids:
            yield Problem("orphan_result", f"{where}.content[{at}]", "its server call does not stand before it")


def _results(message: _Dict, before: object, where: str) -> Iterator[Problem]:
    calls = [_id(call) for _, call in _held(before, "toolUse") if call.get("type") != "server_tool_use"]
    results = _held(message, "toolResult")
    found: set[str | None] = set()
    for number, (at, result) in enumerate(results):
        here, id = f"{where}.content[{at}]", _id(result)
        if at > number:
            yield Problem("results_not_first", here, "results stand before everything else")
        if id in found:
            yield Problem("duplicate_result", here, f"{id!r} has a result already")
        if id not in calls:
            yield Problem("orphan_result", here, f"the message before asks for no {id!r}")
        found.add(id)


def _role(message: object) -> object:
    role = message.get("role") if isinstance(message, dict) else None
    return role if isinstance(role, str) else None


def _blocks(message: object) -> list[_Dict]:
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _held(message: object, kind: str) -> list[tuple[int, _Dict]]:
    """What the blocks of a kind hold, each with its index."""
    return [(at, block[kind]) for at, block in enumerate(_blocks(message)) if isinstance(block.get(kind), dict)]


def _kind(block: object) -> str | None:
    """The one kind of content that a block holds."""
    name = next(iter(block)) if isinstance(block, dict) and len(block) == 1 else None
    return name if isinstance(name, str) else None


def _dict(held: _Dict, name: str) -> _Dict:
    value = held.get(name)
    return value if isinstance(value, dict) else {}


def _id(held: _Dict) -> str | None:
    id = held.get("toolUseId")
    return id if isinstance(id, str) else None


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
