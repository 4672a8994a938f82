"""Where opencode keeps a session, each read into messages with their parts: database, tree of files, export.

Promises: what is no record is named, and the others are read.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw
import msgspec

from turnwal.formats.database import reading
from turnwal.formats.format import Found, Sample
from turnwal.formats.items import Fault, Other
from turnwal.formats.lenient import value_of

Part = Mapping[str, Any]

_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "id": ("id",),
    "slug": ("slug",),
    "project_id": ("projectID",),
    "workspace_id": ("workspaceID",),
    "parent_id": ("parentID",),
    "directory": ("directory",),
    "path": ("path",),
    "title": ("title",),
    "version": ("version",),
    "agent": ("agent",),
    "model": ("model",),
    "summary_additions": ("summary", "additions"),
    "summary_deletions": ("summary", "deletions"),
    "summary_files": ("summary", "files"),
    "summary_diffs": ("summary", "diffs"),
    "cost": ("cost",),
    "tokens_input": ("tokens", "input"),
    "tokens_output": ("tokens", "output"),
    "tokens_reasoning": ("tokens", "reasoning"),
    "tokens_cache_read": ("tokens", "cache", "read"),
    "tokens_cache_write": ("tokens", "cache", "write"),
    "share_url": ("share", "url"),
    "metadata": ("metadata",),
    "revert": ("revert",),
    "permission": ("permission",),
    "time_created": ("time", "created"),
    "time_updated": ("time", "updated"),
    "time_compacting": ("time", "compacting"),
    "time_archived": ("time", "archived"),
}
"""Where an export has each column of a session."""
_JSON: Final = frozenset({"model", "metadata", "revert", "permission", "summary_diffs"})
_COUNTED: Final = ("additions", "deletions", "files")
"""What a summary has to have for `opencode import`."""


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
    left_out: Iterable[Other | Fault] = ()
    """What the session says of itself that an export has no place for."""


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
    left_out: list[Other | Fault] = []
    return Session(_info_of(row, left_out), _rows(found), {}, left_out)


def _info_of(row: Mapping[str, Any], left_out: list[Other | Fault]) -> Part:
    """The session as an export has it, of the columns of its row, and what an export has no place for."""
    info: dict[str, Any] = {"version": "", "time": {}}
    for column, value in row.items():
        if value is None:
            continue
        place = _COLUMNS.get(column)
        if place is None:
            left_out.append(Other("session", f"column {column}"))
            continue
        if column in _JSON:
            try:
                value = value_of(value.encode() if isinstance(value, str) else value)  # noqa: PLW2901
            except (msgspec.MsgspecError, TypeError):
                left_out.append(Fault("corrupt", "session", f"its {column} is no JSON"))
                continue
        *outer, name = place
        inner = info
        for each in outer:
            inner = inner.setdefault(each, {})
        if value is not None:
            inner[name] = value
    if "summary" in info:
        info["summary"] = dict.fromkeys(_COUNTED, 0) | info["summary"]
    return info


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
