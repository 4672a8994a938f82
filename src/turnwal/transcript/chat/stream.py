"""The chunks of a stream, put together to the chat completion that they make.

Promises: calls are told apart by index, and by id where a server gives every call the same index; arguments stay the
text that the model wrote. Without a finish reason the stream was cut off, and `complete` is false.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from turnwal.transcript.plain import rest_of

_OF_CHUNK: Final = frozenset({"choices", "object", "obfuscation"})
_OF_CHOICE: Final = frozenset({"index", "delta", "finish_reason"})
_TEXTS: Final = frozenset({"arguments", "input"})
"""Fields of a call that come in pieces; the others come whole."""

_PIECES: Final = frozenset({"text", "thinking"})
"""Types of chunks that come in pieces, each in the field of that name."""


def assembled(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The chat completion that the chunks of a stream make together."""
    message = _Growing()
    choice: dict[str, Any] = {"index": 0, "finish_reason": None}
    reply: dict[str, Any] = {}
    for event in chunks:
        chunk = _chunk_in(event)
        reply |= rest_of(chunk, _OF_CHUNK)
        for part in chunk.get("choices") or ():
            if part.get("index") in (None, 0):
                message.grow(part.get("delta") or {})
                choice["finish_reason"] = part.get("finish_reason") or choice["finish_reason"]
                for name, value in rest_of(part, _OF_CHOICE).items():
                    choice[name] = _joined(choice.get(name), value)
    reply["choices"] = [{**choice, "message": message.made()}]
    return {**reply, "complete": choice["finish_reason"] is not None}


def shown(event: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """The text that a chunk of a stream shows; all of it is one."""
    for part in _chunk_in(event).get("choices") or ():
        delta = part.get("delta") or {}
        if part.get("index") in (None, 0):
            yield from ((0, chunk["text"]) for chunk in _chunks(delta.get("content")) if chunk.get("type") == "text")
            yield 0, delta.get("refusal") or ""


def _chunk_in(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """The chunk itself: Mistral's package, and the helper for streams of OpenAI's, hand out events that hold it."""
    held = next((event[name] for name in ("data", "chunk") if isinstance(event.get(name), dict)), None)
    return event if held is None else held


class _Growing:
    """A message of which one piece came after the other."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: list[tuple[int | None, dict[str, Any]]] = []

    def grow(self, delta: Mapping[str, Any]) -> None:
        message = self._message
        for name, value in delta.items():
            if value is None or name == "role":
                continue
            if name == "tool_calls":
                for call in value:
                    _merge(self._call(call), call)
            elif name == "content":
                message[name] = _content(message[name], value)
            elif name == "function_call":
                _merge(message.setdefault(name, {}), value)
            else:
                message[name] = _joined(message.get(name), value)

    def made(self) -> dict[str, Any]:
        if not self._calls:
            return self._message
        calls = [(len(self._calls) if index is None else index, call) for index, call in self._calls]
        return {**self._message, "tool_calls": [call for _, call in sorted(calls, key=lambda found: found[0])]}

    def _call(self, delta: Mapping[str, Any]) -> dict[str, Any]:
        """The call that a piece belongs to: the newest of its index, unless its id is another one."""
        index, id = delta.get("index"), delta.get("id")
        newest = next((call for at, call in reversed(self._calls) if index is None or at == index), None)
        if newest is None or (id and newest.get("id") and newest["id"] != id):
            newest = {}
            self._calls.append((index, newest))
        return newest


def _merge(call: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for name, value in delta.items():
        if value is None or name == "index":
            continue
        if name in ("function", "custom"):
            _merge(call.setdefault(name, {}), value)
        elif name in _TEXTS and isinstance(value, str):
            call[name] = call.get(name, "") + value
        else:
            call[name] = call.get(name) or value


def _content(before: Any, value: Any) -> Any:
    """Content with a piece more: text, or chunks of which equal neighbours are joined."""
    if isinstance(value, str) and not isinstance(before, list):
        return (before or "") + value
    chunks = _chunks(before)
    for chunk in _chunks(value):
        last = chunks[-1] if chunks else {}
        if chunk.get("type") in _PIECES and last.get("type") == chunk["type"]:
            pieces: dict[str, Any] = {name: _content(last.get(name), chunk[name]) for name in _PIECES & chunk.keys()}
            chunks = [*chunks[:-1], {**last, **chunk, **pieces}]
        else:
            chunks = [*chunks, chunk]
    return chunks


def _chunks(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, str):
        return [{"type": "text", "text": value}] if value else []
    return list(value or ())


def _joined(before: Any, value: Any) -> Any:
    """A field with a piece more of it."""
    if isinstance(value, str) and isinstance(before, str):
        return before + value
    if isinstance(value, list) and isinstance(before, list):
        return [*before, *value]
    if isinstance(value, dict) and isinstance(before, dict):
        # an answer in sound: its id stays, the rest comes in pieces
        return before | {
            name: found if name == "id" else _joined(before.get(name), found)
            for name, found in value.items()
            if found is not None
        }
    return value
