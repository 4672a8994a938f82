"""A repaired copy of a session of pi.

Promises:
- Each entry is carried as it stands, but for the parent of one that now comes behind a result, the words of a result
  that pi invented, and the mark on an unfinished message.
- The results of open calls are entries behind the message that asked, in the order of its calls, and on the way to
  whatever follows it, so that the last entry of the file stays the leaf.
- A call of an unfinished message gets no result: pi leaves the message out of what it sends, and a result without its
  call would be refused. That it was looked at is marked on the entry, under a key that pi carries.
- Ids are made from what they answer, and the time is that of the message, so that every repair writes the same bytes.

Refuses a session whose header is lost: pi takes it for empty, and nothing else says what stood there.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from turnwal.formats.branching import Kept, with_answers
from turnwal.formats.diagnosis import Diagnosis, OpenCall
from turnwal.formats.format import Found
from turnwal.formats.items import Fault
from turnwal.formats.lenient import encoded
from turnwal.formats.lines import records
from turnwal.formats.parts import text
from turnwal.formats.pi.reading import CLOSED, INVENTED, UNFINISHED, calls_of, closed_in, decode, only_text
from turnwal.formats.repairing import unloadable, uuid_of, write_lines
from turnwal.formats.slots import Row, invented, slots, to_answer
from turnwal.formats.stamps import milliseconds
from turnwal.formats.wording import MARK, text_for

_IDS: Final = UUID("5b1a5e3c-7a4e-5d0a-9f0e-6d2f4c8b1e70")
"""The namespace of the ids of results."""


def repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Write a repaired copy to `out`. Raises `Refused` as the module says, or where something is there; `OSError`."""
    copy = _Copy(found.path, diagnosis)
    if not copy.begins_with_header():
        raise unloadable(found.path, "pi", "there is no header, which has its id and the folder it worked in")
    write_lines(out, with_answers(copy.kept(), copy.behind, _result, "parentId"))


class _Copy:
    """What is needed to write a copy."""

    def __init__(self, path: Path, diagnosis: Diagnosis) -> None:
        self._path = path
        self._invented = invented(diagnosis)
        calls = to_answer(diagnosis)
        self._open = {(call.place, call.id) for call in calls}
        self.behind = slots(map(_row, self._read()), calls)

    def begins_with_header(self) -> bool:
        """Whether the first entry that can be read is the header, as pi wants it."""
        return any(value["type"] == "session" for _, _, value in islice(self._read(), 1))

    def _read(self) -> Iterator[tuple[str, bytes, dict[str, Any]]]:
        for item in records(self._path, lambda data: (data.strip(), decode(data))):
            if not isinstance(item, Fault):
                number, (data, value) = item
                yield f"line {number}", data, value

    def kept(self) -> Iterator[Kept]:
        """The entries, with what is changed in themselves."""
        for place, data, value in self._read():
            changed = self._closed(place, value) or self._truthful(value)
            key, parent = value.get("id"), value.get("parentId")
            is_entry = value["type"] != "session"
            yield Kept(
                encoded(value) if changed else data,
                value,
                key if is_entry and isinstance(key, str) else None,
                parent if is_entry and isinstance(parent, str) else None,
            )

    def _closed(self, place: str, entry: dict[str, Any]) -> bool:
        """Mark an unfinished message whose calls are open; whether it was."""
        message = entry.get("message")
        if not isinstance(message, dict) or not _is_unfinished(message):
            return False
        ids = [id for id in calls_of(message) if (place, id) in self._open]
        if ids:
            entry[MARK] = {CLOSED: [*closed_in(entry), *ids]}
        return bool(ids)

    def _truthful(self, entry: dict[str, Any]) -> bool:
        """Put what is known in place of a result that pi invented; whether it was."""
        message = entry.get("message")
        if not self._invented or not isinstance(message, dict) or message.get("role") != "toolResult":
            return False
        call = self._invented.get(text(message.get("toolCallId")))
        if call is None or only_text(message.get("content")) != INVENTED:
            return False
        message["content"] = [{"type": "text", "text": text_for(call.risk)}]
        return True


def _is_unfinished(message: dict[str, Any]) -> bool:
    return message.get("role") == "assistant" and message.get("stopReason") in UNFINISHED


def _row(read: tuple[str, bytes, dict[str, Any]]) -> Row:
    """What an entry has to do with calls."""
    place, _, value = read
    message = value.get("message")
    if value["type"] != "message" or not isinstance(message, dict) or _is_unfinished(message):
        return Row(place)
    if message.get("role") == "assistant":
        return Row(place, key=place, asks=calls_of(message))
    if message.get("role") == "toolResult":
        return Row(place, answers=(text(message.get("toolCallId")),))
    return Row(place, ends=True)


def _result(kept: Kept, call: OpenCall, parent: str | None) -> tuple[str | None, dict[str, Any]]:
    """The entry that answers a call."""
    stamp = kept.value.get("timestamp")
    entry: dict[str, Any] = {"type": "message"}
    id = None
    if parent is not None:
        id = str(uuid_of(_IDS, f"{parent}\n{call.id}"))
        entry |= {"id": id, "parentId": parent}
    message = {
        "role": "toolResult",
        "toolCallId": call.id,
        "toolName": call.name or "",
        "content": [{"type": "text", "text": text_for(call.risk)}],
        "isError": True,
        "timestamp": milliseconds(stamp) or 0,
    }
    return id, entry | {"timestamp": stamp, "message": message}
