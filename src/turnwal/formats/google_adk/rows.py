"""The rows of an ADK database: which sessions it holds, and the events of each.

Three schemas are known: with the whole event as JSON in `event_data`, with or without a table that names the version,
and the older one with a column a field, whose `actions` are a pickle. That is never loaded.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final
from urllib.parse import quote, unquote

import apsw
import msgspec

from turnwal.formats.database import reading
from turnwal.formats.format import Found, Sample

Event = dict[str, Any]

PICKLED: Final = "0"
"""The version with a column a field."""
KNOWN: Final = frozenset({PICKLED, "1"})
OF_SESSION: Final = "WHERE app_name = ? AND user_id = ? AND session_id = ?"
_SEPARATOR: Final = "/"
_decode = msgspec.json.Decoder().decode


def recognises(sample: Sample) -> bool:
    """Whether a database is one of ADK."""
    columns = sample.tables.get("events", frozenset())
    return {"app_name", "user_id", "session_id", "invocation_id"} <= columns and "sessions" in sample.tables


def sessions(sample: Sample) -> Iterator[Found]:
    """Yield the sessions of a database, each named by its application, its user and its id; `/` parts them."""
    known = import_module(__package__).FORMAT
    with reading(sample.path) as connection:
        rows = connection.execute("SELECT app_name, user_id, id FROM sessions ORDER BY 1, 2, 3").fetchall()
    for row in rows:
        yield Found(known, sample.path, _SEPARATOR.join(quote(str(name), safe="") for name in row))


def named(found: Found) -> tuple[str, str, str]:
    """The application, the user and the id of a session."""
    app, user, session = (unquote(name) for name in str(found.session).split(_SEPARATOR))
    return app, user, session


def version(connection: apsw.Connection) -> str:
    """The version of the schema; a `SqliteSessionService` does not write it down."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'adk_internal_metadata'").fetchall():
        return "1" if "event_data" in _columns(connection) else PICKLED
    row = connection.execute("SELECT value FROM adk_internal_metadata WHERE key = 'schema_version'").fetchone()
    return "" if row is None else str(row[0])


def events(connection: apsw.Connection, found: Found) -> Iterator[tuple[str, Event | None]]:
    """Yield the events of a session in ADK's order, each with its place; None for what is no event."""
    columns = _columns(connection)
    whole = "event_data" in columns
    fields = ["event_data"] if whole else ["content", "author", "branch", "long_running_tool_ids_json"]
    wanted = ", ".join(name if name in columns else "NULL" for name in fields)
    # sorted by their numbers alone: SQLite would copy all data to sort it
    order = f"SELECT rowid FROM events {OF_SESSION} ORDER BY timestamp, rowid"  # noqa: S608
    query = f"SELECT id, invocation_id, timestamp, {wanted} FROM events WHERE rowid = ?"  # noqa: S608
    rows = connection.execute(order, named(found)).fetchall()
    for id, invocation, timestamp, *data in connection.executemany(query, rows):
        stored = _json(data[0])
        event: Event | None = stored if isinstance(stored, dict) else None
        if not whole and (event is not None or data[0] is None):
            event = {"content": event, "author": data[1], "branch": data[2], "long_running_tool_ids": _json(data[3])}
        if event is not None:
            event = {"timestamp": timestamp} | event | {"id": id, "invocation_id": invocation}
        yield f"event {id}", event


def _columns(connection: apsw.Connection) -> set[str]:
    return {str(name) for (name,) in connection.execute("SELECT name FROM pragma_table_info('events')")}


def _json(data: Any) -> Any:
    try:
        return _decode(data)
    except (msgspec.MsgspecError, RecursionError, TypeError):
        return None
