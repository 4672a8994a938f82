"""A repaired copy of a transcript of Qwen Code.

Promises:
- Each record is carried as it stands, but for the parent of one that now comes behind a response, and the words of a
  response that Qwen Code invented. Two records on one line become two lines.
- The responses of open calls are records behind the message that asked, in the order of its calls, and on the way to
  whatever follows it, so that the last record of the file stays the leaf.
- Uuids are made from what they answer, and the time is that of the record before, so that every repair writes the same.
"""

from collections.abc import Iterator
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
from turnwal.formats.qwen_code.reading import INVENTED, calls_of, decode, parts_of, responses_of, said_by
from turnwal.formats.repairing import uuid_of, write_lines
from turnwal.formats.slots import Row, invented, slots, to_answer
from turnwal.formats.wording import text_for

_IDS: Final = UUID("0d5e8f6a-3c1b-5f7e-8a90-b2c4d6e8f013")
"""The namespace of the uuids of responses."""
_SHARED: Final = (
    "sessionId",
    "timestamp",
    "cwd",
    "version",
    "gitBranch",
    "isSidechain",
    "agentId",
    "agentName",
    "agentColor",
    "agentRunId",
    "agentRound",
    "promptId",
)
"""What a response has in common with the record that it comes behind."""


def repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Write a repaired copy to `out`. Raises `Refused` where something is there already, and `OSError`."""
    behind = slots(map(_row, _read(found.path)), to_answer(diagnosis))
    write_lines(out, with_answers(_kept(found.path, invented(diagnosis)), behind, _response, "parentUuid"))


def _read(path: Path) -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    for item in records(path, lambda data: (data.strip(), decode(data))):
        if not isinstance(item, Fault):
            number, (data, record) = item
            yield f"line {number}", data, record


def _kept(path: Path, false: dict[str, OpenCall]) -> Iterator[Kept]:
    """The records, with the truth where Qwen Code invented the response of a call that is still open."""
    for _, data, record in _read(path):
        changed = bool(false) and _truthful(record, false)
        parent = record.get("parentUuid")
        kept = encoded(record) if changed else data
        yield Kept(kept, record, record["uuid"], parent if isinstance(parent, str) else None)


def _truthful(record: dict[str, Any], false: dict[str, OpenCall]) -> bool:
    """Put what is known in place of invented responses; whether there was one."""
    changed = False
    for part in parts_of(record):
        response = part.get("functionResponse")
        if isinstance(response, dict) and said_by(response)[0] == INVENTED:
            call = false.get(text(response.get("id")))
            if call is not None:
                response["response"] = {"error": text_for(call.risk)}
                changed = True
    return changed


def _row(read: tuple[str, bytes, dict[str, Any]]) -> Row:
    """What a record has to do with calls."""
    place, _, record = read
    if record["type"] == "assistant":
        return Row(place, key=record["uuid"], asks=calls_of(record))
    answers = [text(response.get("id")) for response in responses_of(record)]
    return Row(place, answers=answers, ends=record["type"] == "user")


def _response(kept: Kept, call: OpenCall, parent: str | None) -> tuple[str | None, dict[str, Any]]:
    """The record that answers a call."""
    uuid = str(uuid_of(_IDS, f"{parent}\n{call.id}"))
    said = text_for(call.risk)
    response = {"id": call.id, "name": call.name or "", "response": {"error": said}}
    record: dict[str, Any] = {"uuid": uuid, "parentUuid": parent}
    record |= {name: kept.value[name] for name in _SHARED if name in kept.value}
    record |= {
        "type": "tool_result",
        "message": {"role": "user", "parts": [{"functionResponse": response}]},
        "toolCallResult": {"callId": call.id, "status": "error", "resultDisplay": said},
    }
    return uuid, record
