"""A repaired copy of an ADK database: an event of responses for each event that asks and has none.

Such an event has what ADK gives one of its own: the agent, the invocation, the branch and the scope of the event that
asks, for those decide who sees it, and a time behind all others, which is that of the session as well: ADK refuses to
go on from an older one. It is marked in `custom_metadata`.

ADK takes a response for that of the newest call of its id before it: where the id of a call was used again later, its
event has a time before that use. Refused where there is none.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import apsw

from turnwal.core.errors import Refused
from turnwal.formats.database import copied_to
from turnwal.formats.diagnosis import Diagnosis, OpenCall
from turnwal.formats.format import Found
from turnwal.formats.google_adk.reading import asked_ids
from turnwal.formats.google_adk.rows import KNOWN, OF_SESSION, PICKLED, Event, events, named, version
from turnwal.formats.lenient import encoded
from turnwal.formats.wording import MARK, text_for

_LATER: Final = timedelta(milliseconds=1)
"""How much later than the last one an event is: the order is that of the times."""
_BETWEEN: Final = timedelta(microseconds=1)
"""The same between two events: as little as both services can write."""
_KEPT: Final = ("invocation_id", "author", "branch", "isolation_scope", "node_info")


def repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Add the events of responses, and let the session's time be that of the last event. Raises `Refused` where ADK
    would give a response to another call.
    """
    asked: dict[str, list[OpenCall]] = {}
    for call in diagnosis.open:
        if call.evidence in ("requested", "dispatched", "ran"):
            asked.setdefault(call.place, []).append(call)
    copied_to(found.path, out, (lambda connection: _answer(connection, found, asked)) if asked else None)


def _answer(connection: apsw.Connection, found: Found, asked: dict[str, list[OpenCall]]) -> None:
    known = version(connection)
    if known == PICKLED or known not in KNOWN:
        why = (
            "keeps part of an event as a pickle, which is neither loaded nor written" if known == PICKLED else "is new"
        )
        raise Refused(
            f"version {known!r} of the schema {why}",
            action="repair",
            subject=found.name,
            hint="`turnwal import` takes the session over; `adk migrate session` makes a database of version 1",
        )
    asking: dict[str, Event] = {}
    order: list[tuple[Any, set[str]]] = []
    positions: dict[str, int] = {}
    times = connection.execute(f"SELECT timestamp FROM events {OF_SESSION} ORDER BY timestamp, rowid", named(found))  # noqa: S608
    for (moment,), (place, event) in zip(times, events(connection, found), strict=True):
        if place in asked and event is not None:
            asking[place], positions[place] = event, len(order)
        order.append((moment, set() if event is None else asked_ids(event)))
    app, user, session = named(found)
    last: dict[int, Any] = {}
    """The time of the last event that was put before one of those that are there, or behind all."""
    for place, calls in asked.items():
        before = _used_again(order, positions[place], {call.id for call in calls})
        moment, seconds = _later(last.get(before, order[before - 1][0]), _LATER if before == len(order) else _BETWEEN)
        if before < len(order) and moment >= order[before][0]:
            raise _no_time(found, calls)
        last[before] = moment
        made = _made(asking[place], place, calls, seconds)
        values = (made["id"], app, user, session, made["invocation_id"], moment, encoded(made).decode())
        columns = "id, app_name, user_id, session_id, invocation_id, timestamp, event_data"
        connection.execute(f"INSERT INTO events ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", values)  # noqa: S608
    query = f"SELECT max(timestamp) FROM events {OF_SESSION}"  # noqa: S608
    newest = connection.execute(query, (app, user, session)).fetchall()[0][0]
    query = "UPDATE sessions SET update_time = max(update_time, ?) WHERE app_name = ? AND user_id = ? AND id = ?"
    connection.execute(query, (newest, app, user, session))


def _used_again(order: list[tuple[Any, set[str]]], at: int, ids: set[str]) -> int:
    """The first event behind one that asks with one of these ids again, or the number of events."""
    return next((index for index in range(at + 1, len(order)) if order[index][1] & ids), len(order))


def _no_time(found: Found, calls: Iterable[OpenCall]) -> Refused:
    named = ", ".join(call.id for call in calls)
    return Refused(
        f"the id of call {named} was used again with no time left before it: ADK would take the response for that of "
        "the later call",
        action="repair",
        subject=found.name,
        hint="`turnwal import` takes the session over",
    )


def _made(asking: Event, place: str, calls: list[OpenCall], seconds: float) -> Event:
    said = "\n".join((MARK, place, *(call.id for call in calls)))
    parts = [
        {"function_response": {"id": call.id, "name": call.name or "", "response": {"error": text_for(call.risk)}}}
        for call in calls
    ]
    return {name: asking[name] for name in _KEPT if asking.get(name) is not None} | {
        "id": str(UUID(bytes=sha256(said.encode("utf-8", "surrogatepass")).digest()[:16])),
        "timestamp": seconds,
        "content": {"role": "user", "parts": parts},
        "actions": {"state_delta": {}, "artifact_delta": {}},
        "custom_metadata": {MARK: True},
    }


def _later(moment: Any, by: timedelta) -> tuple[Any, float]:
    """A moment so much behind another, in the form that the database has it in, and in seconds since 1970 as events do.

    `DatabaseSessionService` writes text in UTC, `SqliteSessionService` a number.
    """
    if isinstance(moment, str):
        later = datetime.fromisoformat(moment) + by
        return later.isoformat(" ", "microseconds"), datetime.fromisoformat(f"{later.isoformat()}+00:00").timestamp()
    return moment + by.total_seconds(), moment + by.total_seconds()
