"""What the providers that speak the form of Chat Completions refuse alike.

Sources: OpenAI's API reference, "Create chat completion", and the words of its errors: "An assistant message with
'tool_calls' must be followed by tool messages responding to each 'tool_call_id'", "messages with role 'tool' must be a
response to a preceeding message with 'tool_calls'", "Invalid value for 'content': expected a string, got null".
Mistral's validator (mistralai/mistral-common) says the same with "Not the same number of function calls and responses",
"Unexpected tool call id", "Duplicate tool call id". An id that stands twice in a request is told apart by neighbours
alone, and clients that go by the id put results to the wrong call (F08).
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from turnwal.transcript.check import Problem

Fields = Mapping[str, str]
"""The types of blocks that a content holds: each with its field."""

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TEXT: Final[Fields] = {"text": "text"}
_HALF: Final = re.compile(
    r"(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
"""An escape in JSON text, and in the group one that stands for half a character."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What one provider makes of the form."""

    id: re.Pattern[str]
    id_words: str
    content: Mapping[str, Fields]
    """For each role the blocks that its content may hold; `tool` and `assistant` are among the roles."""
    more: Callable[[Sequence[Any], int], Iterator[Problem]]
    """What else the provider refuses about the message at an index."""
    custom: bool = False
    """A call may be one of a custom tool."""
    objects: bool = False
    """Arguments may be an object, not only the text of one."""
    speaking: frozenset[str] = frozenset()
    """Fields beside the content and the calls that make an assistant's message one that says something."""


def problems(messages: Sequence[Any], system: object, rules: Rules) -> Iterator[Problem]:
    """Every broken rule, in the order of the messages."""
    if system is not None:
        yield Problem("bad_shape", "system", "system text stands among the messages")
    taken: set[str] = set()
    asked: set[str] = set()
    found: set[str] = set()
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        role = role_of(message)
        if role != "tool":
            asked, found = set(), set()
        if not isinstance(message, dict) or role not in rules.content:
            yield Problem("bad_shape", where, "it is no message of a role that is known")
            continue
        yield from _content(message, rules.content[role], where)
        if role == "assistant":
            yield from _says(message, rules, where)
            yield from _asks(message, rules, _answered(messages, index + 1), taken, where)
            asked = {call["id"] for call in _calls(message) if isinstance(call.get("id"), str)}
        elif role == "tool":
            yield from _answers(message, rules, asked, found, where)
        yield from rules.more(messages, index)


def role_of(message: object) -> str:
    """The role of a message, empty where it has none."""
    role = message.get("role") if isinstance(message, dict) else None
    return role if isinstance(role, str) else ""


def _content(message: Mapping[str, Any], allowed: Fields, where: str) -> Iterator[Problem]:
    content = message.get("content")
    if isinstance(content, str) or (content is None and message["role"] in ("assistant", "function")):
        return
    if not isinstance(content, list):
        yield Problem("bad_shape", f"{where}.content", "it is neither text nor a list of parts")
        return
    if not content:
        yield Problem("empty_message", f"{where}.content", "the list of parts is empty")
    for at, block in enumerate(content):
        here = f"{where}.content[{at}]"
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str) or kind not in allowed:
            yield Problem("bad_shape", here, f"a message of the {message['role']} holds no part of type {kind!r:.80}")
        elif not _holds(block.get(allowed[kind]), kind):
            yield Problem("bad_shape", here, f"its {allowed[kind]} is missing")


def _holds(held: object, kind: str) -> bool:
    """Whether it is what a part of a type cannot lack."""
    if kind == "image_url":
        held = held.get("url") if isinstance(held, dict) else held
        return isinstance(held, str) and bool(held)
    return isinstance(held, str) if kind == "text" else held is not None and held != {}


def _says(message: Mapping[str, Any], rules: Rules, where: str) -> Iterator[Problem]:
    content = message.get("content")
    words = content if isinstance(content, list) else [{"type": "text", "text": content}]
    said = any(not _is(word, "text") or word.get("text") for word in words)
    if not said and not message.get("tool_calls") and not any(message.get(field) for field in rules.speaking):
        yield Problem("empty_message", where, "it has neither content nor calls")


def _asks(
    message: Mapping[str, Any], rules: Rules, answered: set[Any], taken: set[str], where: str
) -> Iterator[Problem]:
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        yield Problem("bad_shape", f"{where}.tool_calls", "it is no list")
    for at, call in enumerate(calls if isinstance(calls, list) else ()):
        here = f"{where}.tool_calls[{at}]"
        if not isinstance(call, dict):
            yield Problem("bad_shape", here, "it is no call")
            continue
        id = call.get("id")
        if not _matches(rules.id, id):
            yield Problem("bad_id", f"{here}.id", f"an id is {rules.id_words}")
        elif id in taken:
            yield Problem("duplicate_id", f"{here}.id", f"the id {id!r} is taken")
        taken.update({id} if isinstance(id, str) else ())
        yield from _called(call, rules, here)
        if not isinstance(id, str) or id not in answered:
            yield Problem("unanswered_call", here, f"no tool message that follows answers {id!r:.80}")


def _called(call: Mapping[str, Any], rules: Rules, where: str) -> Iterator[Problem]:
    custom = rules.custom and call.get("type") == "custom"
    field = "custom" if custom else "function"
    if call.get("type", "function") != field:
        yield Problem("bad_shape", f"{where}.type", f"a call of type {call.get('type')!r:.80} is unknown")
    called = call.get(field)
    if not isinstance(called, dict):
        yield Problem("bad_shape", where, f"it has no {field}")
        return
    if not _matches(_NAME, called.get("name")):
        yield Problem("bad_name", f"{where}.{field}.name", "a name is 1 to 64 letters, digits, _ and -")
    if custom:
        if not isinstance(called.get("input"), str):
            yield Problem("bad_arguments", f"{where}.custom.input", "it is no text")
        return
    arguments = called.get("arguments")
    if rules.objects and isinstance(arguments, dict):
        return
    value = _json(arguments) if isinstance(arguments, str) else None
    if not isinstance(value, dict):
        yield Problem("bad_arguments", f"{where}.function.arguments", "it is no text that holds a JSON object")
    elif isinstance(arguments, str) and "\\u" in arguments and any(found[1] for found in _HALF.finditer(arguments)):
        yield Problem("surrogate", f"{where}.function.arguments", "the object holds half a character")


def _answers(
    message: Mapping[str, Any], rules: Rules, asked: set[str], found: set[str], where: str
) -> Iterator[Problem]:
    id = message.get("tool_call_id")
    if not _matches(rules.id, id):
        yield Problem("bad_id", f"{where}.tool_call_id", f"an id is {rules.id_words}")
    if not isinstance(id, str) or id not in asked:
        yield Problem("orphan_result", where, f"the message before the results asks for no {id!r:.80}")
    elif id in found:
        yield Problem("duplicate_result", where, f"{id!r:.80} has a result already")
    found.update({id} if isinstance(id, str) else ())
    name = message.get("name")
    if name is not None and not _matches(_NAME, name):
        yield Problem("bad_name", f"{where}.name", "a name is 1 to 64 letters, digits, _ and -")


def _answered(messages: Sequence[Any], index: int) -> set[str]:
    """The ids of the results that stand together from an index on."""
    ids: list[Any] = []
    while index < len(messages) and role_of(messages[index]) == "tool":
        ids.append(messages[index].get("tool_call_id"))
        index += 1
    return {id for id in ids if isinstance(id, str)}


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _json(text: str) -> Any:
    """What a text holds by the rules of JSON; None for what breaks them."""
    try:
        return json.loads(text, parse_constant=lambda constant: json.loads(f"no {constant}"))
    except (ValueError, RecursionError):
        return None


def _is(block: object, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
