"""Google ADK (google/adk-python): the events of its `DatabaseSessionService`, version 1 and the older one.

An event is a row; its order is its time alone, and rows of one time have no defined order: an id names one call of the
whole session. The event that asks is stored before the tools run, the responses of one batch after all of them in
one event, so a call that had finished has no response either. Calls named in `long_running_tool_ids` wait by design. On
resume calls without a response are left out of what the model sees. The older version keeps `actions` as a pickle,
which is never loaded.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import apsw
import msgspec

from turnwal.core.errors import Refused
from turnwal.core.line import compact
from turnwal.formats.database import copied_to, reading
from turnwal.formats.diagnosis import Diagnosis, OpenCall
from turnwal.formats.format import Depth, Format, Found, Sample
from turnwal.formats.items import TURNWAL, About, Fault, Item, Said, Sign
from turnwal.formats.times import unix_ms
from turnwal.formats.wording import MARK, is_ours, text_for

Event = dict[str, Any]

_SEPARATOR: Final = "/"
_LATER_S: Final = 0.001
"""How much later than the last event a repair is: the order is that of the times."""
_OF_SESSION: Final = "WHERE session_id = ? AND app_name || '/' || user_id = ?"
_decode = msgspec.json.Decoder().decode


def _recognises(sample: Sample) -> bool:
    columns = sample.tables.get("events", frozenset())
    return {"app_name", "user_id", "session_id", "invocation_id"} <= columns and "sessions" in sample.tables


def _sessions(sample: Sample) -> Iterator[Found]:
    with reading(sample.path) as connection:
        rows = connection.execute("SELECT app_name, user_id, id FROM sessions ORDER BY 1, 2, 3").fetchall()
    for row in rows:
        yield Found(FORMAT, sample.path, _SEPARATOR.join(map(str, row)))


def _read(found: Found, depth: Depth) -> Iterator[Item]:
    with reading(found.path) as connection:
        yield About(version=_version(connection), session=found.session)
        for place, event in _events(connection, found):
            if event is None:
                yield Fault("corrupt", place, "it is no JSON object")
            else:
                yield from _items(place, event, depth)


def _version(connection: apsw.Connection) -> str:
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'adk_internal_metadata'").fetchall():
        return "0"
    row = connection.execute("SELECT value FROM adk_internal_metadata WHERE key = 'schema_version'").fetchone()
    return "" if row is None else str(row[0])


def _events(connection: apsw.Connection, found: Found) -> Iterator[tuple[str, Event | None]]:
    columns = {str(name) for (name,) in connection.execute("SELECT name FROM pragma_table_info('events')")}
    wanted = "event_data" if "event_data" in columns else "content, author, long_running_tool_ids_json"
    query = f"SELECT id, invocation_id, timestamp, {wanted} FROM events {_OF_SESSION} ORDER BY timestamp, rowid"  # noqa: S608
    for id, invocation, timestamp, *data in connection.execute(query, _named(found)):
        event = _object(data[0])
        if event is not None and wanted != "event_data":
            event = {"content": event, "author": data[1], "long_running_tool_ids": _list(data[2])}
        if event is not None:
            event = {"id": id, "invocation_id": invocation, "timestamp": timestamp} | event
        yield f"event {id}", event


def _items(place: str, event: Event, depth: Depth) -> Iterator[Item]:
    content = event.get("content")
    blocks = content.get("parts") if isinstance(content, dict) else None
    blocks = [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    time = unix_ms(event.get("timestamp"))
    parts: list[dict[str, Any]] = []
    for block in blocks:
        call = _field(block, "function_call", "functionCall")
        if call is not None:
            arguments = call.get("args")
            text = compact(arguments if isinstance(arguments, dict) else {})
            parts.append({"type": "tool_call", "id": _id(call), "name": str(call.get("name", "")), "arguments": text})
        elif depth == "whole" and isinstance(block.get("text"), str):
            kind = "reasoning" if block.get("thought") is True else "text"
            parts.append({"type": kind, "content": block["text"]})
    for block in blocks:
        response = _field(block, "function_response", "functionResponse")
        if response is not None:
            yield Said(place, "tool_result", _result(response, event), time=time)
    if parts:
        role = content.get("role") if isinstance(content, dict) else None
        user = role == "user" and event.get("author") == "user"
        yield Said(place, "user_message" if user else "assistant_message", {"parts": parts}, time=time)
    waiting = event.get("long_running_tool_ids")
    for id in waiting if isinstance(waiting, list) else ():
        yield Sign(place, str(id), "waiting", "it runs long: its answer comes from outside")


def _result(response: Mapping[str, Any], event: Event) -> dict[str, Any]:
    said = response.get("response")
    text = said.get("error", said.get("result")) if isinstance(said, dict) else said
    data: dict[str, Any] = {"id": _id(response), "name": str(response.get("name", ""))}
    data["parts"] = [{"type": "text", "content": text if isinstance(text, str) else compact(said)}]
    if isinstance(said, dict) and "error" in said:
        data["is_error"] = True
    marks = event.get("custom_metadata")
    if is_ours(text) or (isinstance(marks, dict) and MARK in marks):
        data["metadata"] = {"synthetic": True, "by": TURNWAL}
    return data


def _field(block: Mapping[str, Any], *names: str) -> dict[str, Any] | None:
    return next((block[name] for name in names if isinstance(block.get(name), dict)), None)


def _id(call: Mapping[str, Any]) -> str:
    return str(call.get("id") or "")


def _object(data: Any) -> Event | None:
    try:
        value = _decode(data)
    except (msgspec.MsgspecError, RecursionError, TypeError):
        return None
    return value if isinstance(value, dict) else None


def _list(data: Any) -> list[Any]:
    try:
        value = _decode(data)
    except (msgspec.MsgspecError, RecursionError, TypeError):
        return []
    return value if isinstance(value, list) else []


def _named(found: Found) -> tuple[str, str]:
    """The session and its owner, as `_OF_SESSION` takes them."""
    owner, _, session = str(found.session).rpartition(_SEPARATOR)
    return session, owner


def _repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Add an event of responses behind the last one, and let the session's time be that of the event."""
    asked = [call for call in diagnosis.open if call.evidence in ("requested", "dispatched", "ran")]
    copied_to(found.path, out, lambda connection: _answer(connection, found, asked) if asked else None)


def _answer(connection: apsw.Connection, found: Found, asked: list[OpenCall]) -> None:
    if _version(connection) == "0":
        raise Refused(
            "this version keeps part of an event as a pickle, which is neither loaded nor written",
            action="repair",
            subject=found.name,
            hint="`turnwal import` takes the session over",
        )
    events = [(place, event) for place, event in _events(connection, found) if event is not None]
    asking = next(event for place, event in events if place == asked[-1].place)
    last = events[-1][1]
    parts = [
        {"function_response": {"id": call.id, "name": call.name or "", "response": {"error": text_for(call.risk)}}}
        for call in asked
    ]
    named = "\n".join((found.name, *(f"{call.place} {call.id}" for call in asked)))
    made = {
        "id": str(UUID(bytes=sha256(named.encode("utf-8", "surrogatepass")).digest()[:16])),
        "invocation_id": asking.get("invocation_id", ""),
        "author": asking.get("author", ""),
        "timestamp": float(last["timestamp"]) + _LATER_S if isinstance(last.get("timestamp"), (int, float)) else 0.0,
        "content": {"role": "user", "parts": parts},
        "actions": {"state_delta": {}, "artifact_delta": {}},
        "custom_metadata": {MARK: True},
    }
    (session, owner) = _named(found)
    app, _, user = owner.partition(_SEPARATOR)
    (newest,) = connection.execute(f"SELECT max(timestamp) FROM events {_OF_SESSION}", (session, owner)).fetchall()[0]  # noqa: S608
    later = _later(newest)
    columns = "id, app_name, user_id, session_id, invocation_id, timestamp, event_data"
    values = (made["id"], app, user, session, made["invocation_id"], later, msgspec.json.encode(made).decode())
    connection.execute(f"INSERT INTO events ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", values)  # noqa: S608 - fixed words
    connection.execute(
        "UPDATE sessions SET update_time = ? WHERE id = ? AND app_name = ? AND user_id = ?", (later, session, app, user)
    )


def _later(moment: Any) -> Any:
    """A moment right behind another, in the form that the database has it in."""
    if isinstance(moment, str):
        return (datetime.fromisoformat(moment) + timedelta(seconds=_LATER_S)).isoformat(" ", "microseconds")
    return moment + _LATER_S


FORMAT: Final = Format(
    name="google_adk",
    title="Google ADK",
    on_resume="hides",
    resume_text="ADK leaves such a call out of what the model sees, so the model forgets it.",
    recognises=_recognises,
    read=_read,
    sessions=_sessions,
    repair=_repair,
    unique_ids=True,
)
