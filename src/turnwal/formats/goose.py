"""goose (block/goose): its database of sessions, and the older file of one session, a line a message.

`toolCall.status: "success"` says that the request parsed, nothing more; with `"error"` it was never handed over, and
its response is goose's own word on that. A confirmation that is asked for (`toolConfirmationRequest`, in newer versions
`actionRequired`) and that nothing followed waits for a person. On resume goose takes unanswered requests out of what it
sends, so the model forgets them.

Sources: crates/goose/src/{session,conversation} of the repository.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw
import msgspec

from turnwal.formats import lines
from turnwal.formats.database import copied_to, reading
from turnwal.formats.diagnosis import Diagnosis, OpenCall
from turnwal.formats.format import Depth, Format, Found, Sample
from turnwal.formats.items import TURNWAL, About, Fault, Item, Other, Said, Sign
from turnwal.formats.lenient import compact_text, encoded, value_of
from turnwal.formats.repairing import write_lines
from turnwal.formats.stamps import of_seconds
from turnwal.formats.wording import OR_KILLED, is_ours, text_for

Block = Mapping[str, Any]

_KNOWN: Final = frozenset(
    {
        "text",
        "image",
        "thinking",
        "redactedThinking",
        "toolRequest",
        "frontendToolRequest",
        "toolResponse",
        "toolConfirmationRequest",
        "actionRequired",
        "systemNotification",
        "contextLengthExceeded",
        "summarizationRequested",
        "conversationCompacted",
    }
)
VERSION_MAX: Final = 17
"""The newest version of the database that is known."""
_ASKS: Final = ("toolRequest", "frontendToolRequest")


class _Message(NamedTuple):
    """One message of either store."""

    place: str
    role: str
    content: list[Block]
    time: int | None


def _recognises(sample: Sample) -> bool:
    if sample.kind == "sqlite":
        columns = sample.tables.get("messages", frozenset())
        return {"content_json", "session_id", "role"} <= columns and "sessions" in sample.tables
    if sample.kind != "lines" or not sample.records:
        return False
    head, *messages = sample.records
    named = "working_dir" in head and "role" not in head
    return named and all("role" in each and "created" in each and "content" in each for each in messages)


def _sessions(sample: Sample) -> Iterator[Found]:
    if sample.kind != "sqlite":
        yield Found(FORMAT, sample.path)
        return
    with reading(sample.path) as connection:
        for (id,) in connection.execute("SELECT DISTINCT session_id FROM messages ORDER BY session_id").fetchall():
            yield Found(FORMAT, sample.path, str(id))


def _read(found: Found, depth: Depth) -> Iterator[Item]:
    source = _file(found.path) if found.session is None else _rows(found)
    last: _Message | None = None
    refused: set[str] = set()
    for item in source:
        if isinstance(item, _Message):
            last = item
            yield from _items(item, depth, refused)
        else:
            yield item
    if last is not None:
        for id in _to_confirm(last):
            yield Sign(last.place, id, "waiting", f"it asks for confirmation, {OR_KILLED}")


def _file(path: Path) -> Iterator[_Message | Item]:
    for item in lines.records(path, _object):
        if isinstance(item, Fault):
            yield item
            continue
        number, record = item
        if "role" not in record:
            yield About(session=path.stem)
            continue
        content = record.get("content")
        yield _message(f"line {number}", str(record["role"]), content, record.get("created"))


def _rows(found: Found) -> Iterator[_Message | Item]:
    with reading(found.path) as connection:
        versions = connection.execute("SELECT name FROM sqlite_schema WHERE name = 'schema_version'").fetchall()
        if versions:
            version = connection.execute("SELECT max(version) FROM schema_version").fetchone()
            number = version[0] if version else None
            yield About(version=None if number is None else str(number))
            if isinstance(number, int) and number > VERSION_MAX:
                yield Fault("too_new", "schema_version", f"version {number}; {VERSION_MAX} is the newest known")
        yield About(session=found.session)
        columns = "id, role, CAST(content_json AS BLOB), created_timestamp"
        query = f"SELECT {columns} FROM messages WHERE session_id = ? ORDER BY id"  # noqa: S608 - fixed
        for id, role, content, created in connection.execute(query, (found.session,)):
            try:
                blocks = value_of(content)
            except (msgspec.MsgspecError, TypeError):
                yield Fault("corrupt", f"row {id}", "its content is no JSON")
                continue
            yield _message(f"row {id}", str(role), blocks, created)


def _message(place: str, role: str, content: object, created: object) -> _Message:
    blocks: list[Block] = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return _Message(place, role, blocks, of_seconds(created))


def _items(message: _Message, depth: Depth, refused: set[str]) -> Iterator[Item]:
    """What a message says. `refused` has the ids of requests that were no calls and have no response yet."""
    parts: list[dict[str, Any]] = []
    for block in message.content:
        kind = str(block.get("type"))
        if kind in _ASKS:
            call = _call(block)
            parts += call
            (refused.difference_update if call else refused.update)({_id(block)})
        elif kind == "text" and depth == "whole":
            parts.append({"type": "text", "content": str(block.get("text", ""))})
        elif kind == "thinking" and depth == "whole":
            parts.append({"type": "reasoning", "content": str(block.get("thinking", ""))})
        elif kind not in _KNOWN:
            yield Other(message.place, kind)
    if parts:
        type_ = "assistant_message" if message.role == "assistant" else "user_message"
        yield Said(message.place, type_, {"parts": parts}, time=message.time)
    for block in message.content:
        if block.get("type") != "toolResponse":
            continue
        if _id(block) in refused:
            refused.remove(_id(block))
        else:
            yield _result(message, block)


def _to_confirm(message: _Message) -> Iterator[str]:
    """The ids of the calls for which a message asks for confirmation."""
    for block in message.content:
        action = block.get("data") if block.get("type") == "actionRequired" else None
        if block.get("type") == "toolConfirmationRequest":
            yield _id(block)
        elif isinstance(action, dict) and action.get("actionType") == "toolConfirmation":
            yield _id(action)


def _call(block: Block) -> list[dict[str, Any]]:
    """The call of a request that parsed; one that did not was never handed over, and goose answers it itself."""
    call = block.get("toolCall")
    value = call.get("value", call) if isinstance(call, dict) else None
    if not isinstance(value, dict) or (isinstance(call, dict) and call.get("status") == "error"):
        return []
    arguments = value.get("arguments")
    text = compact_text(arguments if isinstance(arguments, dict) else {})
    return [{"type": "tool_call", "id": _id(block), "name": str(value.get("name", "")), "arguments": text}]


def _result(message: _Message, block: Block) -> Said:
    result = block.get("toolResult")
    result = result if isinstance(result, dict) else {}
    value = result.get("value")
    content = value.get("content") if isinstance(value, dict) else value
    texts = (
        [str(each["text"]) for each in content if isinstance(each, dict) and "text" in each]
        if isinstance(content, list)
        else []
    )
    text = "\n".join(texts) if texts else str(result.get("error", ""))
    data: dict[str, Any] = {"id": _id(block), "parts": [{"type": "text", "content": text}]}
    if result.get("status") == "error" or (isinstance(value, dict) and value.get("isError") is True):
        data["is_error"] = True
    if is_ours(text):
        data["metadata"] = {"synthetic": True, "by": TURNWAL}
    return Said(message.place, "tool_result", data, time=message.time)


def _id(block: Block) -> str:
    return str(block.get("id", ""))


def _object(line: bytes) -> dict[str, Any]:
    value = value_of(line)
    if not isinstance(value, dict):
        raise msgspec.ValidationError("a record is an object")
    return value


def _repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Write a copy with a message of responses directly behind each message with requests that have none."""
    lacking: dict[str, list[OpenCall]] = {}
    for call in diagnosis.open:
        if call.evidence != "waiting":
            lacking.setdefault(call.place, []).append(call)
    if found.session is None:
        write_lines(out, _repaired_lines(found.path, lacking))
        return
    copied_to(found.path, out, (lambda connection: _insert(connection, lacking)) if lacking else None)


def _repaired_lines(path: Path, lacking: Mapping[str, list[OpenCall]]) -> Iterator[bytes]:
    for item in lines.records(path, lambda line: (_object(line), line.strip(b"\0\r\n "))):
        if isinstance(item, Fault):
            continue
        number, (record, line) = item
        yield line
        calls = lacking.get(f"line {number}")
        if calls:
            yield encoded({"role": "user", "created": record.get("created", 0), "content": _responses(calls)})


def _insert(connection: apsw.Connection, lacking: Mapping[str, list[OpenCall]]) -> None:
    """Put the responses in: rows are in the order of their ids, so those behind move on."""
    columns = [str(name) for (name,) in connection.execute("SELECT name FROM pragma_table_info('messages')")]
    for place in sorted(lacking, key=lambda place: -int(place.removeprefix("row "))):
        at = int(place.removeprefix("row "))
        (role_row,) = connection.execute("SELECT * FROM messages WHERE id = ?", (at,)).fetchall()
        row = dict(zip(columns, role_row, strict=True))
        behind = connection.execute("SELECT id FROM messages WHERE id > ? ORDER BY id DESC", (at,)).fetchall()
        for (id,) in behind:
            connection.execute("UPDATE messages SET id = id + 1 WHERE id = ?", (id,))
        made = {
            **row,
            "id": at + 1,
            "role": "user",
            "content_json": encoded(_responses(lacking[place])).decode(),
        }
        if made.get("message_id") is not None:
            made["message_id"] = f"{made['message_id']}-{TURNWAL}"
        names, marks = ", ".join(made), ", ".join("?" * len(made))
        connection.execute(f"INSERT INTO messages ({names}) VALUES ({marks})", tuple(made.values()))  # noqa: S608 - its own columns


def _responses(calls: list[OpenCall]) -> list[Block]:
    return [
        {
            "type": "toolResponse",
            "id": call.id,
            "toolResult": {
                "status": "success",
                "value": {"content": [{"type": "text", "text": text_for(call.risk)}], "isError": True},
            },
        }
        for call in calls
    ]


FORMAT: Final = Format(
    name="goose",
    title="goose",
    on_resume="hides",
    resume_text="goose takes such a call out of what it sends, so the model forgets it.",
    recognises=_recognises,
    read=_read,
    sessions=_sessions,
    repair=_repair,
    places=("~/.local/share/goose/sessions",),
)
