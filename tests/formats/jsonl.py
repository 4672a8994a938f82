"""What the tests of formats with one record a line share: writing files, breaking them, and asking what became of them.

Does not: know a format. What calls are open in a prefix is computed by each test from the records it wrote, never by
a reader.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from turnwal.core.errors import Refused
from turnwal.core.log import Log
from turnwal.core.recovery import plan
from turnwal.formats.diagnosis import Diagnosis
from turnwal.formats.doctor import diagnose, examine
from turnwal.formats.finding import Unread, find
from turnwal.formats.format import Found
from turnwal.formats.importing import lines_of
from turnwal.transcript.check import Problem, check
from turnwal.transcript.render import render

Record = dict[str, Any]
Open = list[tuple[str, str]]
"""Id and evidence of each open call, in order."""

TARGETS = ("anthropic", "openai-chat", "openai-responses", "gemini")


def text(records: Sequence[Record]) -> bytes:
    """The records as the bytes of a file."""
    return b"".join(line(record) + b"\n" for record in records)


def line(record: Record) -> bytes:
    """A record as the bytes of a line, without its newline."""
    return json.dumps(record, separators=(",", ":")).encode()


def written(path: Path, records: Sequence[Record] | bytes) -> Path:
    """The path, with these records in the file there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(records if isinstance(records, bytes) else text(records))
    return path


def found_at(path: Path) -> Found:
    """The one session at a path."""
    [found] = find([path])
    assert not isinstance(found, Unread), found
    return found


def doctor(path: Path) -> Diagnosis:
    """What is said of the one session at a path; that looking changed nothing is looked at as well."""
    before = hashes(path)
    [diagnosis] = examine([path])
    assert hashes(path) == before
    return diagnosis


def opened(diagnosis: Diagnosis) -> Open:
    """Id and evidence of the open calls."""
    return [(call.id, call.evidence) for call in diagnosis.open]


def faults(diagnosis: Diagnosis) -> list[str]:
    """The kinds of damage."""
    return [fault.kind for fault in diagnosis.damage]


def hashes(path: Path) -> Mapping[Path, str]:
    """The hash of each file at and around a path: what is made beside it counts as a change."""
    around = path if path.is_dir() else path.parent
    return {each: hashlib.sha256(each.read_bytes()).hexdigest() for each in sorted(around.rglob("*")) if each.is_file()}


@dataclass(frozen=True)
class Repaired:
    """A copy, what was said of what it was made of, and what is said of it."""

    path: Path
    before: Diagnosis
    after: Diagnosis

    @property
    def records(self) -> list[Record]:
        """The records of a plain copy."""
        return [json.loads(each) for each in self.path.read_bytes().splitlines()]


def repaired(path: Path, out: Path) -> Repaired:
    """A repaired copy. Holds what every repair promises: the source is untouched, nothing is open in the copy but
    what waits, and a second repair gives the same bytes.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    found, original = found_at(path), path.read_bytes()
    assert found.format.repair is not None
    before = diagnose(found)
    found.format.repair(found, before, out)
    assert path.read_bytes() == original
    copy = found_at(out)
    assert copy.format is found.format
    after = diagnose(copy)
    assert [id for id, evidence in opened(after) if evidence != "waiting"] == []
    again = out.parent / "again" / out.name
    again.parent.mkdir()
    assert copy.format.repair is not None
    copy.format.repair(copy, after, again)
    assert again.read_bytes() == out.read_bytes()
    return Repaired(out, before, after)


def refused(path: Path, out: Path) -> str:
    """Why no copy of the session at a path is made; that none is there is looked at as well."""
    found = found_at(path)
    assert found.format.repair is not None
    with pytest.raises(Refused) as caught:
        found.format.repair(found, doctor(path), out)
    assert not out.exists()
    return caught.value.message


def imported(path: Path) -> Log:
    """The session at a path as a log of turnwal."""
    found = found_at(path)
    return Log.read(lines_of(found, "imported", nonce="0" * 32, time=1, writer={"name": "turnwal", "version": "0"}))


def owed(log: Log) -> list[str]:
    """The ids of the calls that `plan` would answer."""
    return [repair.data["id"] for repair in plan(log).lost_calls()]


def problems(log: Log, run: str = "main") -> dict[str, list[Problem]]:
    """What each target's provider would refuse of the log; empty where it would take it."""
    found: dict[str, list[Problem]] = {}
    for target in TARGETS:
        rendering = render(log, target, run)
        wrong = [
            problem
            for problem in check(target, rendering.messages, system=rendering.system)
            if problem.code != "last_role"  # a session may end with the model's words
        ]
        if wrong:
            found[target] = wrong
    return found


def prefixes(records: Sequence[Record], least: int = 1) -> Iterator[tuple[int, bytes]]:
    """The bytes of the file after each of its records, from the `least`-th on."""
    for count in range(least, len(records) + 1):
        yield count, text(records[:count])


def tears(records: Sequence[Record]) -> Iterator[bytes]:
    """The file cut at every byte of its last record, from the first byte to the last but one."""
    head, last = text(records[:-1]), line(records[-1])
    for cut in range(1, len(last)):
        yield head + last[:cut]
