"""opencode (anomalyco/opencode, formerly sst/opencode): its database, its older tree of JSON files, and its exports.

A call and its result are one part, overwritten in place: `pending` while the model writes it, `running` once it was
handed over (which may come before permission is granted), then `completed` or `error`. An error "Tool execution
aborted" was written by a later clean-up and says nothing of what happened (anomalyco/opencode#10616, #2720, #21489).
A repaired copy is an export, which `opencode import` takes; nothing is ever written into its database.

Sources: packages/opencode/src/{session,storage} of the repository; its `export` and `import` commands.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from turnwal.core.line import compact
from turnwal.formats.database import reading
from turnwal.formats.diagnosis import Diagnosis
from turnwal.formats.format import Depth, Format, Found, Sample
from turnwal.formats.items import TURNWAL, About, Fault, Item, Other, Said, Sign
from turnwal.formats.repairing import fresh
from turnwal.formats.wording import is_ours, text_for

Part = Mapping[str, Any]

_ABORTED: Final = ("Tool execution aborted", "Tool execution was interrupted", "Interrupted")
_SILENT: Final = frozenset(
    {"step-start", "step-finish", "snapshot", "patch", "agent", "subtask", "retry", "compaction", "file"}
)
_decode = msgspec.json.Decoder().decode


class _Message(NamedTuple):
    """One message with its parts."""

    place: str
    info: Part
    parts: list[Part]


def _recognises(sample: Sample) -> bool:
    if sample.kind == "sqlite":
        tables = sample.tables
        return "data" in tables.get("part", ()) and "data" in tables.get("message", ()) and "session" in tables
    if sample.kind == "directory":
        return sample.names >= {"session", "message", "part"}
    return len(sample.records) == 1 and _is_export(sample.records[0])


def _is_export(value: object) -> bool:
    info = value.get("info") if isinstance(value, dict) else None
    return (
        isinstance(info, dict)
        and str(info.get("id")).startswith("ses")
        and isinstance(value, dict)
        and "messages" in value
    )


def _sessions(sample: Sample) -> Iterator[Found]:
    if sample.kind == "sqlite":
        with reading(sample.path) as connection:
            for (id,) in connection.execute("SELECT id FROM session ORDER BY id").fetchall():
                yield Found(FORMAT, sample.path, str(id))
    elif sample.kind == "directory":
        for path in sorted(sample.path.glob("session/*/*.json")):
            yield Found(FORMAT, sample.path, path.stem)
    else:
        yield Found(FORMAT, sample.path)


def _read(found: Found, depth: Depth) -> Iterator[Item]:
    info, messages = _opened(found)
    yield About(version=_text(info.get("version")), session=_text(info.get("id")))
    running: dict[str, str] = {}
    for message in messages:
        if isinstance(message, Fault):
            yield message
        elif message.info.get("role") == "assistant":
            yield from _assistant(message, depth)
            yield from _effects(message, running)
        elif depth == "whole":
            yield Said(message.place, "user_message", {"parts": list(_texts(message.parts))}, time=_time(message.info))


def _assistant(message: _Message, depth: Depth) -> Iterator[Item]:
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


def _effects(message: _Message, running: dict[str, str]) -> Iterator[Item]:
    """What a patch proves: the file of a call that never ended was changed. `running` has the call of each file."""
    for part in message.parts:
        given = _state(part).get("input")
        if part.get("type") == "tool" and _state(part).get("status") == "running" and isinstance(given, dict):
            running |= {str(path): _id(part) for path in (given.get("filePath"), given.get("path")) if path}
        for file in _files(part):
            if file in running:
                yield Sign(
                    message.place, running.pop(file), "dispatched", f"a later patch lists {file}: it was changed"
                )


def _step(message: _Message, said: list[dict[str, Any]], tools: list[Part]) -> Iterator[Item]:
    info = message.info
    data: dict[str, Any] = {"parts": said}
    data |= {"model": info["modelID"]} if isinstance(info.get("modelID"), str) else {}
    yield Said(message.place, "assistant_message", data, time=_time(info))
    for part in tools:
        yield from _outcome(message, part)


def _call(part: Part) -> dict[str, Any]:
    given = _state(part).get("input")
    arguments = given if isinstance(given, dict) else {}
    return {"type": "tool_call", "id": _id(part), "name": str(part.get("tool", "")), "arguments": compact(arguments)}


def _outcome(message: _Message, part: Part) -> Iterator[Item]:
    state, id = _state(part), _id(part)
    status = state.get("status")
    place = f"{message.place} part {part.get('id', '')}".rstrip()
    if status == "running":
        yield Sign(place, id, "dispatched", "its state is running: it was handed over")
    elif status == "completed":
        text = state.get("output")
        yield Said(place, "tool_result", _result(id, part, text if isinstance(text, str) else compact(text)))
    elif status == "error":
        text = str(state.get("error", ""))
        data = _result(id, part, text) | {"is_error": True}
        if is_ours(text):
            data["metadata"] = {"synthetic": True, "by": TURNWAL}
        elif text.startswith(_ABORTED):
            data["metadata"] = {"synthetic": True, "by": "opencode"}
        yield Said(place, "tool_result", data)
    elif status != "pending":
        yield Other(place, f"tool state {status}")


def _result(id: str, part: Part, text: str) -> dict[str, Any]:
    return {"id": id, "name": str(part.get("tool", "")), "parts": [{"type": "text", "content": text}]}


def _opened(found: Found) -> tuple[Part, Iterable[_Message | Fault]]:
    if found.path.is_dir():
        return _tree(found)
    with found.path.open("rb") as file:
        head = file.read(16)
    return _database(found) if head.startswith(b"SQLite") else _export(found.path)


def _export(path: Path) -> tuple[Part, Iterable[_Message | Fault]]:
    value = _decode(path.read_bytes())
    messages = [
        _Message(f"messages[{index}]", each["info"], list(each["parts"]))
        for index, each in enumerate(value["messages"])
    ]
    return value["info"], messages


def _database(found: Found) -> tuple[Part, Iterable[_Message | Fault]]:
    with reading(found.path) as connection:
        cursor = connection.execute("SELECT * FROM session WHERE id = ?", (found.session,))
        names = [name for name, *_ in cursor.get_description()]
        row = dict(zip(names, next(iter(cursor)), strict=True))
    return _info_of(row), _rows(found)


def _info_of(row: Mapping[str, Any]) -> Part:
    """The session as an export has it, of the columns of its row."""
    info: dict[str, Any] = {"id": row["id"], "version": row.get("version") or ""}
    for column, name in (
        ("project_id", "projectID"),
        ("parent_id", "parentID"),
        ("directory", ""),
        ("title", ""),
        ("slug", ""),
    ):
        if row.get(column) is not None:
            info[name or column] = row[column]
    times = {"created": row.get("time_created"), "updated": row.get("time_updated")}
    return info | {"time": {name: value for name, value in times.items() if value is not None}}


def _rows(found: Found) -> Iterator[_Message | Fault]:
    session = found.session
    with reading(found.path) as connection:
        messages = connection.execute("SELECT id, data FROM message WHERE session_id = ? ORDER BY id", (session,))
        for id, data in messages:
            info = _object(data)
            if info is None:
                yield Fault("corrupt", f"message {id}", "its data is no JSON object")
                continue
            parts: list[Part] = []
            for part_id, part_data in connection.execute(
                "SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (id,)
            ):
                part = _object(part_data)
                if part is None:
                    yield Fault("corrupt", f"part {part_id}", "its data is no JSON object")
                else:
                    parts.append({"id": part_id, "messageID": id, "sessionID": session, **part})
            yield _Message(f"message {id}", {"id": id, "sessionID": session, **info}, parts)


def _tree(found: Found) -> tuple[Part, Iterable[_Message | Fault]]:
    path = next(found.path.glob(f"session/*/{found.session}.json"))
    return _decode(path.read_bytes()), _tree_messages(found)


def _tree_messages(found: Found) -> Iterator[_Message | Fault]:
    for path in sorted((found.path / "message" / str(found.session)).glob("*.json")):
        info = _object(path.read_bytes())
        if info is None:
            yield Fault("torn", path.name, "it is no JSON object")
            continue
        parts = []
        for part_path in sorted((found.path / "part" / path.stem).glob("*.json")):
            part = _object(part_path.read_bytes())
            if part is None:
                yield Fault("torn", f"{path.stem}/{part_path.name}", "it is no JSON object")
            else:
                parts.append(part)
        yield _Message(f"message {path.stem}", info, parts)


def _object(data: Any) -> Part | None:
    try:
        value = _decode(data)
    except (msgspec.MsgspecError, RecursionError, TypeError):
        return None
    return value if isinstance(value, dict) else None


def _repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Write an export in which every call has ended."""
    risks = {call.id: call.risk for call in diagnosis.open if call.evidence != "waiting"}
    info, messages = _opened(found)
    with fresh(out) as file:
        file.write(b'{"info":' + msgspec.json.encode(info) + b',"messages":[')
        first = True
        for message in messages:
            if isinstance(message, Fault):
                continue
            parts = [_ended(part, lambda part: text_for(risks.get(_id(part)))) for part in message.parts]
            file.write((b"" if first else b",") + msgspec.json.encode({"info": message.info, "parts": parts}))
            first = False
        file.write(b"]}")


def _ended(part: Part, text: Callable[[Part], str]) -> Part:
    """The part as it is, or with the truth in place of a state that never ended or that a clean-up invented."""
    if part.get("type") != "tool":
        return part
    state = _state(part)
    status, error = state.get("status"), str(state.get("error", ""))
    if status not in ("pending", "running") and not (status == "error" and error.startswith(_ABORTED)):
        return part
    given = state.get("input")
    times = state.get("time")
    start = times.get("start", 0) if isinstance(times, dict) else 0
    ended = {"status": "error", "input": given if isinstance(given, dict) else {}, "error": text(part)}
    return {**part, "state": {**ended, "time": {"start": start, "end": start}}}


def _texts(parts: Iterable[Part]) -> Iterator[dict[str, Any]]:
    for part in parts:
        kind, text = part.get("type"), part.get("text")
        if kind in ("text", "reasoning") and isinstance(text, str) and text:
            yield {"type": kind, "content": text}


def _files(part: Part) -> list[str]:
    files = part.get("files") if part.get("type") == "patch" else None
    return [file for file in files if isinstance(file, str)] if isinstance(files, list) else []


def _state(part: Part) -> Part:
    state = part.get("state")
    return state if isinstance(state, dict) else {}


def _id(part: Part) -> str:
    return str(part.get("callID") or part.get("id") or "")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _time(info: Part) -> int | None:
    times = info.get("time")
    created = times.get("created") if isinstance(times, dict) else None
    return int(created) if isinstance(created, (int, float)) else None


FORMAT: Final = Format(
    name="opencode",
    title="opencode",
    on_resume="invents_answer",
    resume_text="opencode marks such a call as aborted, or leaves it running for ever.",
    recognises=_recognises,
    read=_read,
    sessions=_sessions,
    repair=_repair,
    places=("~/.local/share/opencode/opencode.db", "~/.local/share/opencode/storage", "$OPENCODE_DB"),
)
