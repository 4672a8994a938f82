"""The chunks of a Gemini stream, put together.

Promises: text grows together only with a neighbour of its kind, and neither with a signature ("Thought signatures":
parts with signatures are not to be merged); arguments that come in pieces (Vertex AI, `partialArgs`) become whole.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from turnwal.transcript.plain import without_nulls

_STEP: Final = re.compile(r"\.([^.\[]+)|\['([^']*)'\]|\[\"([^\"]*)\"\]|\[(\d+)\]")
_VALUES: Final = ("stringValue", "numberValue", "boolValue")
_ENDLESS: Final = frozenset({None, "", "FINISH_REASON_UNSPECIFIED"})


def assembled(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The response that the chunks of a stream make together; `complete` is false where no reason to stop came."""
    reply: dict[str, Any] = {}
    candidate: dict[str, Any] = {}
    parts: list[dict[str, Any]] = []
    for chunk in chunks:
        reply |= {name: value for name, value in without_nulls(chunk).items() if name != "candidates"}
        for found in chunk.get("candidates") or ():
            if found.get("index"):
                continue  # only the first of several answers is the conversation's
            for part in (found.get("content") or {}).get("parts") or ():
                _join(parts, without_nulls(part))
            candidate |= {name: value for name, value in without_nulls(found).items() if name != "content"}
    blocked = (reply.get("promptFeedback") or {}).get("blockReason")
    complete = candidate.get("finishReason") not in _ENDLESS or blocked is not None
    return {**reply, "candidates": [{**candidate, "content": {"role": "model", "parts": parts}}], "complete": complete}


def shown(chunk: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """The text that a chunk of a stream shows; all of it is one."""
    for found in chunk.get("candidates") or ():
        for part in (found.get("content") or {}).get("parts") or ():
            if not found.get("index") and not part.get("thought"):
                yield 0, part.get("text") or ""


def _join(parts: list[dict[str, Any]], part: dict[str, Any]) -> None:
    last = parts[-1] if parts else {}
    call, begun = part.get("functionCall"), last.get("functionCall")
    goes_on = isinstance(call, dict) and call.get("name") is None
    if goes_on and isinstance(begun, dict) and begun.get("willContinue"):
        _continue(begun, call or {})
        last |= {name: value for name, value in part.items() if name != "functionCall"}
    elif isinstance(call, dict):
        parts.append({**part, "functionCall": _begun(call)})
    elif _is_text(part) and _is_text(last) and bool(part.get("thought")) == bool(last.get("thought")):
        last["text"] += part["text"]
    else:
        parts.append(dict(part))


def _is_text(part: Mapping[str, Any]) -> bool:
    return isinstance(part.get("text"), str) and part.keys() <= {"text", "thought"}


def _begun(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call, or the first piece of one."""
    whole = without_nulls(call)
    if "partialArgs" not in whole and not whole.get("willContinue"):
        return whole
    begun = {name: value for name, value in whole.items() if name not in ("partialArgs", "willContinue")}
    begun |= {"args": dict(whole.get("args") or {}), "willContinue": True}
    _continue(begun, whole)
    return begun


def _continue(call: dict[str, Any], piece: Mapping[str, Any]) -> None:
    for partial in piece.get("partialArgs") or ():
        value = next((partial[name] for name in _VALUES if partial.get(name) is not None), None)
        _put(call["args"], str(partial.get("jsonPath", "")), value)
    if not piece.get("willContinue"):
        del call["willContinue"]


def _put(arguments: dict[str, Any], path: str, value: object) -> None:
    """Set a value inside the arguments; a text that is there already goes on. What has no place there is not set."""
    steps: list[Any] = [
        int(found[4]) if found[4] else found[1] or found[2] or found[3] or "" for found in _STEP.finditer(path)
    ]
    node: Any = arguments
    for at, step in enumerate(steps):
        if isinstance(node, list) and step == len(node):
            node.append(None)
        if not _has_place(node, step):
            return
        before = node[step] if isinstance(node, list) else node.get(step)
        if at == len(steps) - 1:
            node[step] = before + value if isinstance(before, str) and isinstance(value, str) else value
        elif isinstance(before, (dict, list)):
            node = before
        else:
            node[step] = [] if isinstance(steps[at + 1], int) else {}
            node = node[step]


def _has_place(node: object, step: object) -> bool:
    if isinstance(node, list):
        return isinstance(step, int) and step < len(node)
    return isinstance(node, dict) and isinstance(step, str)
