"""What the Anthropic Messages API refuses.

A model that takes system text among the messages wants it behind the user and before the assistant ("Mid-conversation
system messages": limitations). Neighbours of one role count as one message, as they do there: a user's results may
stand in several.

Sources: docs.anthropic.com, "Handle tool calls", "Extended thinking", "Vision", "PDF support"; the words of its errors:
"`tool_use` ids were found without `tool_result` blocks immediately after", "unexpected `tool_use_id` found in
`tool_result` blocks", "each tool_use must have a single result", "`tool_use` ids must be unique", "text content blocks
must be non-empty", "messages: first message must use the "user" role", "The final block in an assistant message cannot
be `thinking`.", "a final `assistant` message must start with a thinking block (preceeding the lastmost set of
`tool_use` and `tool_result` blocks)", which is looked at where thinking begins one of several messages that count as
one: a model may not have thought at all, or have put words or a compaction before it ("Adaptive thinking",
"Compaction").
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from turnwal.transcript.anthropic.halves import SERVER_CALLS, halves
from turnwal.transcript.anthropic.reading import blocks_of, group_from, is_kind, kind_of, role_of, text_in
from turnwal.transcript.check import Problem

_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_BLOCKS: Final = {
    "user": frozenset({"text", "image", "document", "tool_result", "search_result", "container_upload"}),
    "assistant": frozenset({"text", "tool_use", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use"})
    | {"compaction", "fallback", "mcp_tool_listing", "container_upload"},
    "system": frozenset({"text"}),
}
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})

_BASE64: Final = re.compile(r"[a-zA-Z0-9+/]+={0,2}")
_IMAGES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
_IMAGE_CHARS_MAX: Final = 5 * 1024 * 1024
"""What an image has in base64 ("image exceeds 5 MB maximum")."""
_SOURCES: Final = {
    "image": {"base64": "data", "url": "url", "file": "file_id"},
    "document": {"base64": "data", "url": "url", "file": "file_id", "text": "data", "content": "content"},
}
"""What holds an image or a document, each with the field that it cannot lack."""


def problems(messages: Sequence[Any], system: object = None) -> Iterator[Problem]:
    """Every broken rule, in the order of the messages."""
    yield from _system(system)
    if messages and role_of(messages[0]) == "assistant":
        yield Problem("first_role", "messages[0]", "the first message must be the user's")
    seen: set[str] = set()
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if role_of(message) not in _BLOCKS:
            yield Problem("bad_shape", where, "it is no message of the user, the assistant or the system")
            continue
        if role_of(message) == "system":
            yield from _instructed(messages, index, where)
        yield from _content(message, where, last=index == len(messages) - 1)
        following = group_from(messages, index + 1)
        if role_of(message) == "assistant" and not (following and role_of(following[0]) == "assistant"):
            yield from _end(message, where)
        yield from _calls(message, following, where, seen)
        if role_of(message) == "assistant":
            yield from halves(messages, index)
        if index == 0 or role_of(messages[index - 1]) != role_of(message):
            yield from _results(messages, index, _together(messages, index))
    yield from _beginning(messages)


def _beginning(messages: Sequence[Any]) -> Iterator[Problem]:
    """What is wrong with how the newest message of the model begins, where it asks for calls.

    A reply may think wherever it likes. But several messages count as one, and where one of them begins with thinking,
    words that stand before it are those of another reply.
    """
    end = len(messages)
    while end and role_of(messages[end - 1]) != "assistant":
        end -= 1
    start = end
    while start and role_of(messages[start - 1]) == "assistant":
        start -= 1
    said = [[kind_of(block) for block in blocks_of(message)] or ["text"] for message in messages[start:end]]
    if not any("tool_use" in kinds for kinds in said):
        return
    before: list[str] = []
    for index, kinds in enumerate(said, start):
        if kinds[0] in _THOUGHTS and not _goes_on(before):
            yield Problem("reasoning_not_first", f"messages[{index}]", "words of another reply stand before it")
        before += kinds


def _goes_on(before: Sequence[str]) -> bool:
    """Whether thinking may stand behind blocks of these types: they begin with it, or a reply goes on behind them."""
    served = bool(before) and before[-1] in SERVER_CALLS
    found = any(kind.endswith("_tool_result") for kind in before)
    return served or found or set(before) <= {"compaction"} or before[0] in _THOUGHTS


def _system(system: object) -> Iterator[Problem]:
    if system is not None and not isinstance(system, (str, list)):
        yield Problem("bad_shape", "system", "it is neither text nor a list of blocks")
    elif isinstance(system, str) and system and not system.strip():
        yield Problem("empty_message", "system", "its text is blank")
    for at, block in enumerate(system if isinstance(system, list) else ()):
        text = block.get("text") if isinstance(block, dict) and is_kind(block, "text") else None
        if not isinstance(text, str):
            yield Problem("bad_shape", f"system[{at}]", "it is no block of text")
        elif not text.strip():
            yield Problem("empty_message", f"system[{at}]", "its text is blank")


def _instructed(messages: Sequence[Any], index: int, where: str) -> Iterator[Problem]:
    """What is wrong with where system text stands among the messages."""
    before = messages[index - 1] if index else None
    served = any(kind_of(block) in SERVER_CALLS for block in blocks_of(before)[-1:])
    if index == 0:
        yield Problem("first_role", where, "system text at the beginning stands beside the messages")
    elif role_of(before) != "user" and not (role_of(before) == "assistant" and served):
        yield Problem("role_order", where, "system text stands behind a message of the user")
    if index + 1 < len(messages) and role_of(messages[index + 1]) != "assistant":
        yield Problem("role_order", where, "behind system text stands the assistant")


def _content(message: Mapping[str, Any], where: str, *, last: bool) -> Iterator[Problem]:
    content, role = message.get("content"), message["role"]
    if isinstance(content, str):
        if not content.strip():
            yield Problem("empty_message", where, "its text is empty")
        elif last and role == "assistant" and content != content.rstrip():
            yield Problem("empty_message", where, "the last answer ends in white space")
        return
    if not isinstance(content, list) or not content:
        yield Problem("empty_message" if content == [] else "bad_shape", where, "it has no content")
        return
    for at, block in enumerate(content):
        yield from _block(block, role, f"{where}.content[{at}]")
    text = content[-1].get("text") if isinstance(content[-1], dict) else None
    if last and role == "assistant" and isinstance(text, str) and text.strip() and text != text.rstrip():
        yield Problem("empty_message", f"{where}.content[{len(content) - 1}]", "the last answer ends in white space")


def _block(block: object, role: str, where: str) -> Iterator[Problem]:
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(block, dict) or not isinstance(kind, str):
        yield Problem("bad_shape", where, "it is no block")
        return
    if kind not in _BLOCKS[role] and not (role == "assistant" and kind.endswith("_tool_result")):
        yield Problem("bad_shape", where, f"a message of the {role} holds no block of type {kind!r}")
    text = block.get("text")
    if kind == "text" and not (isinstance(text, str) and text.strip()):
        yield Problem("empty_message", where, "its text is empty")
    if kind == "tool_use":
        yield from _tool_use(block, where)
    if kind == "thinking" and not (isinstance(block.get("thinking"), str) and block.get("signature")):
        # its text is empty where the request wanted it omitted
        yield Problem("unsigned_reasoning", where, "thinking goes back as it came, with its signature")
    if kind == "redacted_thinking" and not block.get("data"):
        yield Problem("unsigned_reasoning", where, "redacted thinking goes back with its data")
    if kind == "tool_result":
        yield from _result_content(block, where)
    if kind in _SOURCES:
        yield from _media(block, kind, where)


def _media(block: Mapping[str, Any], kind: str, where: str) -> Iterator[Problem]:
    source = block.get("source")
    source = source if isinstance(source, dict) else {}
    held = _SOURCES[kind].get(kind_of(source))
    if held is None or not source.get(held):
        yield Problem("bad_shape", f"{where}.source", f"a source is one of {', '.join(_SOURCES[kind])}, and not empty")
    elif is_kind(source, "base64"):
        media, data = source.get("media_type"), source["data"]
        if media not in (_IMAGES if kind == "image" else ("application/pdf",)):
            yield Problem("bad_shape", f"{where}.source.media_type", "its media type is not taken")
        if not _matches(_BASE64, data):
            yield Problem("bad_shape", f"{where}.source.data", "it is no base64")
        elif kind == "image" and len(data) > _IMAGE_CHARS_MAX:
            yield Problem("too_large", f"{where}.source.data", "an image has at most 5 MB")


def _tool_use(block: Mapping[str, Any], where: str) -> Iterator[Problem]:
    if not _matches(_ID, block.get("id")):
        yield Problem("bad_id", f"{where}.id", "an id is letters, digits, _ and -")
    if not _matches(_NAME, block.get("name")):
        yield Problem("bad_name", f"{where}.name", "a name is 1 to 128 letters, digits, _ and -")
    if not isinstance(block.get("input"), dict):
        yield Problem("bad_arguments", f"{where}.input", "it is no object")


def _result_content(block: Mapping[str, Any], where: str) -> Iterator[Problem]:
    content = block.get("content")
    if block.get("is_error") and not content:
        yield Problem("empty_message", f"{where}.content", "the content of an error is empty")
    for at, inner in enumerate(content if isinstance(content, list) else ()):
        kind = inner.get("type") if isinstance(inner, dict) else None
        if kind not in ("text", "image", "document", "search_result", "tool_reference"):
            yield Problem("bad_shape", f"{where}.content[{at}]", "a result holds text, images and documents")
        elif kind == "text" and not inner.get("text"):
            yield Problem("empty_message", f"{where}.content[{at}]", "its text is empty")
        elif kind in _SOURCES:
            yield from _media(inner, kind, f"{where}.content[{at}]")


def _end(message: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """What is wrong with the last block of what the model said at one go."""
    blocks = blocks_of(message)
    if blocks and kind_of(blocks[-1]) in _THOUGHTS:
        yield Problem("reasoning_alone", f"{where}.content[{len(blocks) - 1}]", "a message does not end in thinking")


def _calls(message: Mapping[str, Any], following: Sequence[Any], where: str, seen: set[str]) -> Iterator[Problem]:
    answered = set(_answered(following))
    blocks = blocks_of(message)
    for at, block in enumerate(blocks):
        here = f"{where}.content[{at}]"
        if is_kind(block, "tool_use"):
            id = text_in(block, "id")
            if id in seen:
                yield Problem("duplicate_id", f"{here}.id", f"the id {id!r} is taken")
            if id is not None:
                seen.add(id)
            if id not in answered:
                yield Problem("unanswered_call", here, f"the next message has no result for {id!r}")


def _together(messages: Sequence[Any], index: int) -> set[str | None]:
    """The ids of the calls that the messages before a user's ask for; equal roles count as one message."""
    ids: set[str | None] = set()
    at = index - 1
    while at >= 0 and role_of(messages[at]) == "assistant":
        ids |= {text_in(block, "id") for block in blocks_of(messages[at]) if is_kind(block, "tool_use")}
        at -= 1
    return ids


def _answered(following: Sequence[Any]) -> Iterator[str | None]:
    """The ids of the results in the next message, and in those behind it as long as results alone stand before them."""
    for message in following:
        blocks = blocks_of(message)
        yield from (text_in(block, "tool_use_id") for block in blocks if is_kind(block, "tool_result"))
        if not blocks or not all(is_kind(block, "tool_result") for block in blocks):
            return


def _results(messages: Sequence[Any], index: int, calls: set[str | None]) -> Iterator[Problem]:
    """What is wrong with the results in the messages from an index on that count as one."""
    found: set[str | None] = set()
    other = False
    role = role_of(messages[index])
    blocks = [
        (f"messages[{number}].content[{at}]", block)
        for number, message in enumerate(group_from(messages, index), index)
        for at, block in enumerate(blocks_of(message) or [{}])
    ]
    for here, block in blocks:
        if not is_kind(block, "tool_result"):
            other = True
            continue
        id = text_in(block, "tool_use_id")
        if other:
            yield Problem("results_not_first", here, "results stand before everything else")
        if id in found:
            yield Problem("duplicate_result", here, f"{id!r} has a result already")
        if id not in calls or role != "user":
            yield Problem("orphan_result", here, f"the message before asks for no {id!r}")
        found.add(id)


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
