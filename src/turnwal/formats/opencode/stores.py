"""Where opencode keeps a session, each read into messages with their parts: database, tree of files, export.

Promises: what is no record is named, and the others are read.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec

from turnwal.formats.database import reading
from turnwal.formats.format import Found, Sample
from turnwal.formats.items import Fault
from turnwal.formats.lenient import value_of

Part = Mapping[str, Any]


class Message(NamedTuple):
    """One message with its parts."""

    place: str
    info: Part
    parts: list[Part]


class Session(NamedTuple):
    """A session as an export has it."""

    info: Part | Fault
    """What it says of itself, or why that cannot be read."""
    messages: Iterable[Message | Fault]
    rest: Part
    """What else an export has."""


def ids(sample: Sample) -> Iterator[str | None]:
    """The sessions in a path; None for an export, which is one."""
    if sample.kind == "sqlite":
        with reading(sample.path) as connection:
            for (id,) in connection.execute("SELECT id FROM session ORDER BY id").fetchall():
                yield str(id)
    elif sample.kind == "directory":
        for path in sorted(sample.path.glob("session/*/*.json")):
            yield path.stem
    else:
        yield None


def opened(found: Found) -> Session:
    """The session, its messages yet to be read. Raises `OSError`, and what a damaged database or export raises."""
    if found.path.is_dir():
        return _tree(found)
    with found.path.open("rb") as file:
        head = file.read(16)
    return _database(found) if head.startswith(b"SQLite") else _export(found.path)


def _export(path: Path) -> Session:
    value = value_of(path.read_bytes())
    listed = value["messages"]
    messages = (
        [_exported(f"messages[{index}]", each) for index, each in enumerate(listed)]
        if isinstance(listed, list)
        else [Fault("corrupt", "messages", "it is no list")]
    )
    rest = {name: each for name, each in value.items() if name not in ("info", "messages")}
    return Session(value["info"], messages, rest)


def _exported(place: str, message: object) -> Message | Fault:
    """A message of an export."""
    info = message.get("info") if isinstance(message, dict) else None
    parts = message.get("parts") if isinstance(message, dict) else None
    if not isinstance(info, dict) or not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return Fault("corrupt", place, "it is no message with parts")
    return Message(place, info, parts)


def _database(found: Found) -> Session:
    with reading(found.path) as connection:
        cursor = connection.execute("SELECT * FROM session WHERE id = ?", (found.session,))
        names = [name for name, *_ in cursor.get_description()]
        row = dict(zip(names, next(iter(cursor)), strict=True))
    return Session(_info_of(row), _rows(found), {})


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


def _rows(found: Found) -> Iterator[Message | Fault]:
    session = found.session
    with reading(found.path) as connection:
        newer = _newer(connection, session)
        if newer:
            yield Fault("too_new", "session_message", f"{newer:,} messages in the table of a newer version")
        if not _has(connection, "message"):
            return
        messages = connection.execute(
            "SELECT id, CAST(data AS BLOB) FROM message WHERE session_id = ? ORDER BY id", (session,)
        )
        for id, data in messages:
            info = _object(data)
            if info is None:
                yield Fault("corrupt", f"message {id}", "its data is no JSON object")
                continue
            parts: list[Part] = []
            for part_id, part_data in connection.execute(
                "SELECT id, CAST(data AS BLOB) FROM part WHERE message_id = ? ORDER BY id", (id,)
            ):
                part = _object(part_data)
                if part is None:
                    yield Fault("corrupt", f"part {part_id}", "its data is no JSON object")
                else:
                    parts.append({"id": part_id, "messageID": id, "sessionID": session, **part})
            yield Message(f"message {id}", {"id": id, "sessionID": session, **info}, parts)


def _newer(connection: apsw.Connection, session: str | None) -> int:
    """How many messages a session has in the table of the second version."""
    if not _has(connection, "session_message"):
        return 0
    query = "SELECT 1 FROM session_message WHERE session_id = ?"
    return len(connection.execute(query, (session,)).fetchall())


def _has(connection: apsw.Connection, table: str) -> bool:
    query = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
    return bool(connection.execute(query, (table,)).fetchall())


def _tree(found: Found) -> Session:
    name = f"{found.session}.json"
    path = next((path for path in found.path.glob("session/*/*.json") if path.name == name), None)
    info = None if path is None else _object(path.read_bytes())
    lost = Fault("torn", name, "it is no JSON object: what the session says of itself is lost")
    return Session(lost if info is None else info, _tree_messages(found), {})


def _tree_messages(found: Found) -> Iterator[Message | Fault]:
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
        yield Message(f"message {path.stem}", info, parts)


def _object(data: bytes | None) -> Part | None:
    try:
        value = None if data is None else value_of(data)
    except msgspec.MsgspecError:
        return None
    return value if isinstance(value, dict) else None
