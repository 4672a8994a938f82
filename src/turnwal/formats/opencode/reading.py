"""What a session of opencode says: its calls, their outcomes, and the words around them.

Promises:
- `pending` proves that the model asked, `running` that the call was handed over, a later `patch` that lists the file of
  a call that it was changed.
- An error that a clean-up wrote is invented.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from turnwal.formats.format import Depth, Found
from turnwal.formats.items import TURNWAL, About, Fault, Item, Other, Said, Sign
from turnwal.formats.lenient import encoded
from turnwal.formats.opencode.stores import Message, Part, opened
from turnwal.formats.parts import call_part
from turnwal.formats.stamps import milliseconds
from turnwal.formats.wording import is_ours

_ABORTED: Final = ("Tool execution aborted", "Tool execution was interrupted")
"""How the errors begin that a clean-up wrote."""
_INTERRUPTED: Final = "Interrupted"
"""One that it wrote alone: errors of the system begin with this word."""
_SILENT: Final = frozenset(
    {"step-start", "step-finish", "snapshot", "patch", "agent", "subtask", "retry", "compaction", "file"}
)


def read(found: Found, depth: Depth) -> Iterator[Item]:
    """Yield what the session says, in the order of its messages."""
    info, messages, _, left_out = opened(found)
    if isinstance(info, Fault):
        yield info
        yield About(session=found.session)
    else:
        yield About(version=_text(info.get("version")), session=_text(info.get("id")))
    yield from left_out
    running: dict[str, str] = {}
    for message in messages:
        if isinstance(message, Fault):
            yield message
        elif message.info.get("role") == "assistant":
            yield from _assistant(message, depth)
            yield from _effects(message, running)
        elif depth == "whole":
            yield Said(message.place, "user_message", {"parts": list(_texts(message.parts))}, time=_time(message.info))


def _assistant(message: Message, depth: Depth) -> Iterator[Item]:
    """The replies in a message, each with the results of its calls: older versions keep several steps in one."""
    said: list[dict[str, Any]] = []
    tools: list[Part] = []
    for part in message.parts:
        kind = part.get("type")
        if kind == "tool":
            tools.append(part)
            said.append(_call(part))
        elif kind in ("text", "reasoning") and depth == "whole":
            said += _texts([part])
        elif kind == "step-start" and tools:
            yield from _step(message, said, tools)
            said, tools = [], []
        elif kind not in _SILENT and kind not in ("text", "reasoning"):
            yield Other(message.place, str(kind))
    if said:
        yield from _step(message, said, tools)


def _effects(message: Message, running: dict[str, str]) -> Iterator[Item]:
    """What a patch proves: the file of a call that never ended was changed. `running` has the call of each file."""
    for part in message.parts:
        given = state_of(part).get("input")
        if part.get("type") == "tool" and state_of(part).get("status") == "running" and isinstance(given, dict):
            running |= {str(path): id_of(part) for path in (given.get("filePath"), given.get("path")) if path}
        for file in _files(part):
            if file in running:
                yield Sign(
                    message.place, running.pop(file), "dispatched", f"a later patch lists {file}: it was changed"
                )


def _step(message: Message, said: list[dict[str, Any]], tools: list[Part]) -> Iterator[Item]:
    info = message.info
    data: dict[str, Any] = {"parts": said}
    data |= {"model": info["modelID"]} if isinstance(info.get("modelID"), str) else {}
    yield Said(message.place, "assistant_message", data, time=_time(info))
    for part in tools:
        yield from _outcome(message, part)


def _call(part: Part) -> dict[str, Any]:
    given = state_of(part).get("input")
    arguments = given if isinstance(given, dict) else {}
    return call_part(id_of(part), str(part.get("tool", "")), arguments)


def _outcome(message: Message, part: Part) -> Iterator[Item]:
    state, id = state_of(part), id_of(part)
    status = state.get("status")
    place = f"{message.place} part {part.get('id', '')}".rstrip()
    if status == "running":
        yield Sign(place, id, "dispatched", "its state is running: it was handed over")
    elif status == "completed":
        text = state.get("output")
        yield Said(place, "tool_result", _result(id, part, text if isinstance(text, str) else encoded(text).decode()))
    elif status == "error":
        text = str(state.get("error", ""))
        data = _result(id, part, text) | {"is_error": True}
        if is_ours(text):
            data["metadata"] = {"synthetic": True, "by": TURNWAL}
        elif is_invented(text):
            data["metadata"] = {"synthetic": True, "by": "opencode"}
        yield Said(place, "tool_result", data)
    elif status != "pending":
        yield Other(place, f"tool state {status}")


def is_invented(error: str) -> bool:
    """Whether an error was written by a clean-up."""
    return error.startswith(_ABORTED) or error == _INTERRUPTED


def _result(id: str, part: Part, text: str) -> dict[str, Any]:
    return {"id": id, "name": str(part.get("tool", "")), "parts": [{"type": "text", "content": text}]}


def _texts(parts: Iterable[Part]) -> Iterator[dict[str, Any]]:
    for part in parts:
        kind, text = part.get("type"), part.get("text")
        if kind in ("text", "reasoning") and isinstance(text, str) and text:
            yield {"type": kind, "content": text}


def _files(part: Part) -> list[str]:
    files = part.get("files") if part.get("type") == "patch" else None
    return [file for file in files if isinstance(file, str)] if isinstance(files, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _time(info: Part) -> int | None:
    times = info.get("time")
    return milliseconds(times.get("created")) if isinstance(times, dict) else None


def state_of(part: Part) -> Part:
    """How far the call of a part has come."""
    state = part.get("state")
    return state if isinstance(state, dict) else {}


def id_of(part: Part) -> str:
    """The id of the call of a part."""
    return str(part.get("callID") or part.get("id") or "")
