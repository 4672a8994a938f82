"""What the Gemini API (generateContent) refuses of `contents`.

Sources: ai.google.dev, "Generating content" (Content, Part), "Function calling", "Thought signatures"; the words of its
errors: "Please ensure that the number of function response parts is equal to the number of function call parts of the
function call turn.", "Please ensure that function call turn comes immediately after a user turn or after a function
response turn.", "Please ensure that function response turn comes immediately after a function call turn.", "Please use
a valid role: user, model.", "required oneof field 'data' must have one initialized field", "Unable to submit request
because it must include at least one parts field", "Requests ending with a model turn are not supported." (which Vertex
AI says of text beside function responses).

What depends on the model is not looked at: whether a call must be signed, whether a list may end with an answer.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from turnwal.transcript.check import Problem

_FUNCTION: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_BASE64: Final = re.compile(r"[a-zA-Z0-9+/_-]+={0,2}")
_MODEL_ONLY: Final = frozenset({"functionCall", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"})
_DATA: Final = _MODEL_ONLY | {"text", "inlineData", "fileData", "functionResponse"}
_RESPONDING: Final = ("tool", "function")
"""Other names of the user in a content of function responses (README of google-genai; "Function calling")."""
_JOINT: Final = re.compile(r"_([a-z])")
_ASKED_BY: Final = {"codeExecutionResult": "executableCode", "toolResponse": "toolCall"}

_Content = Mapping[str, Any]


def problems(messages: Sequence[Any], system: object = None) -> Iterator[Problem]:
    """Every broken rule, in the order of the contents."""
    messages = [_spelt(content) for content in messages]
    yield from _system(system)
    seen: set[str] = set()
    for index, content in enumerate(messages):
        where = f"messages[{index}]"
        if _role(content) not in ("user", "model"):
            yield Problem("bad_shape", where, "it is no content of the user or the model")
            continue
        before = messages[index - 1] if index else None
        if index == 0 and _role(content) == "model":
            yield Problem("first_role", where, "the first content must be the user's")
        yield from _parts(content, where)
        if _role(content) == "model":
            following = messages[index + 1] if index + 1 < len(messages) else None
            yield from _model_turn(content, before, following, where, seen)
        else:
            yield from _user_turn(content, before, where)


def _spelt(content: Any) -> Any:
    """A content with its names in camel case: snake case, as the Python package has it, is taken too."""
    parts = content.get("parts") if isinstance(content, dict) else None
    return {**content, "parts": [_fields(part) for part in parts]} if isinstance(parts, list) else content


def _fields(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    return {
        _camel(name): {_camel(field): inner for field, inner in value.items()} if isinstance(value, dict) else value
        for name, value in part.items()
    }


def _camel(name: Any) -> Any:
    return _JOINT.sub(lambda found: found[1].upper(), name) if isinstance(name, str) else name


def _system(system: object) -> Iterator[Problem]:
    parts = system.get("parts") if isinstance(system, dict) else system
    if parts is not None and not isinstance(parts, (str, list)):
        yield Problem("bad_shape", "system", "it is neither text nor a content")


def _parts(content: _Content, where: str) -> Iterator[Problem]:
    parts = content.get("parts")
    if not isinstance(parts, list) or not parts:
        yield Problem("empty_message" if parts in (None, []) else "bad_shape", where, "it has no parts")
        return
    for at, part in enumerate(parts):
        here = f"{where}.parts[{at}]"
        fields = sorted(part.keys() & _DATA) if isinstance(part, dict) else []
        if len(fields) != 1:
            yield Problem("bad_shape", here, "a part holds one kind of data")
            continue
        if fields[0] in _MODEL_ONLY and _role(content) != "model":
            yield Problem("bad_shape", here, f"only the model's content holds a {fields[0]}")
        yield from _part(part, fields[0], here)
    if all(part.get("thought") and "functionCall" not in part for part in _dicts(content)):
        yield Problem("reasoning_alone", where, "it holds thoughts and nothing else")


def _part(part: _Content, field: str, where: str) -> Iterator[Problem]:
    signature, data = part.get("thoughtSignature"), part[field]
    if signature is not None and not _matches(_BASE64, signature):
        yield Problem("unsigned_reasoning", f"{where}.thoughtSignature", "a signature is base64")
    if field == "text":
        if not isinstance(data, str):
            yield Problem("bad_shape", where, "its text is no string")
        elif not data and not signature:
            yield Problem("empty_message", where, "its text is empty")
    elif not isinstance(data, dict):
        yield Problem("bad_shape", f"{where}.{field}", "it is no object")
    elif field in ("functionCall", "functionResponse"):
        yield from _function(data, field, f"{where}.{field}")
    elif field == "inlineData" and not (_is_text(data, "mimeType") and _matches(_BASE64, data.get("data"))):
        yield Problem("bad_shape", f"{where}.{field}", "it has a mimeType and base64 in data")
    elif field == "fileData" and not _is_text(data, "fileUri"):
        yield Problem("bad_shape", f"{where}.{field}", "it has no fileUri")


def _function(data: _Content, field: str, where: str) -> Iterator[Problem]:
    if not _matches(_FUNCTION, data.get("name")):
        yield Problem("bad_name", f"{where}.name", "a name begins with a letter or _, and has letters, digits, _.:-")
    if "id" in data and not _is_text(data, "id"):
        yield Problem("bad_id", f"{where}.id", "an id that is there is not empty")
    if field == "functionResponse" and not isinstance(data.get("response"), dict):
        yield Problem("bad_shape", f"{where}.response", "it is no object")
    if field == "functionCall" and not isinstance(data.get("args", {}), dict):
        yield Problem("bad_arguments", f"{where}.args", "it is no object")


def _model_turn(content: _Content, before: object, following: object, where: str, seen: set[str]) -> Iterator[Problem]:
    calls = _functions(content, "functionCall")
    if calls and _role(before) == "model":
        yield Problem("role_order", where, "calls stand behind a content of the user")
    for at, call in calls:
        id = _id(call)
        if id in seen:
            yield Problem("duplicate_id", f"{where}.parts[{at}].functionCall.id", f"the id {id!r} is taken")
        seen |= set() if id is None else {id}
    responses = _functions(following, "functionResponse") if _role(following) == "user" else []
    answered = [_id(response) for _, response in responses]
    for number, (at, call) in enumerate(calls):
        id = _id(call)
        if number >= len(responses) or (id is not None and None not in answered and id not in answered):
            yield Problem("unanswered_call", f"{where}.parts[{at}]", "the next content has no response for it")
    asked: set[tuple[str, str | None]] = set()
    for at, part in enumerate(_dicts(content)):
        for name in part.keys() & _DATA:
            id = _id(part[name])
            if name in _ASKED_BY and (_ASKED_BY[name], id) not in asked:
                yield Problem("orphan_result", f"{where}.parts[{at}]", f"no {_ASKED_BY[name]} stands before it")
            asked.add((name, id))


def _user_turn(content: _Content, before: object, where: str) -> Iterator[Problem]:
    responses = _functions(content, "functionResponse")
    if not responses:
        return
    calls = _functions(before, "functionCall") if _role(before) == "model" else []
    if len(responses) < len(_dicts(content)):
        yield Problem("results_apart", where, "function responses share their content with nothing else")
    ids = {_id(call) for _, call in calls}
    names = [call.get("name") for _, call in calls]
    found: set[str] = set()
    for number, (at, response) in enumerate(responses):
        id = _id(response)
        here = f"{where}.parts[{at}]"
        known = response.get("name") in names and (id is None or id in ids)
        if id in found:
            yield Problem("duplicate_result", here, f"{id!r} has a response already")
        elif number >= len(calls) or not known:
            yield Problem("orphan_result", here, "the content before has no call for it")
        found |= set() if id is None else {id}


def _role(content: object) -> object:
    role = content.get("role", "user") if isinstance(content, dict) else None
    responds = role in _RESPONDING and bool(_functions(content, "functionResponse"))
    return "user" if responds else role


def _dicts(content: object) -> list[_Content]:
    parts = content.get("parts") if isinstance(content, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _functions(content: object, field: str) -> list[tuple[int, _Content]]:
    """The calls of a content, or its responses, each with the index of its part."""
    return [(at, part[field]) for at, part in enumerate(_dicts(content)) if isinstance(part.get(field), dict)]


def _id(data: object) -> str | None:
    id = data.get("id") if isinstance(data, dict) else None
    return id if isinstance(id, str) else None


def _is_text(data: _Content, name: str) -> bool:
    return isinstance(data.get(name), str) and bool(data[name])


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
