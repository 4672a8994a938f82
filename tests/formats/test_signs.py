"""What a record proves about a call besides its request and its result."""

from collections.abc import Iterator
from pathlib import Path

from turnwal.core.log import Log
from turnwal.core.recovery import plan
from turnwal.formats.format import Depth, Format, Found
from turnwal.formats.importing import lines_of
from turnwal.formats.items import Item, Said, Sign
from turnwal.formats.weighing import weigh


def _found(*items: Item) -> Found:
    def read(_found: Found, _depth: Depth) -> Iterator[Item]:
        yield from items

    known = Format("some", "Some tool", "unknown", "It may do anything.", lambda _: True, read)
    return Found(known, Path("session.jsonl"))


def _asked(*ids: str) -> Said:
    parts = [{"type": "tool_call", "id": id, "name": "charge", "arguments": "{}"} for id in ids]
    return Said("line 1", "assistant_message", {"parts": parts})


def _weighed(found: Found) -> list[tuple[str, str, tuple[str, ...]]]:
    diagnosis = weigh(found, found.format.read(found, "calls"))
    return [(call.id, call.evidence, call.because[:-1]) for call in diagnosis.open]


def test_a_record_that_proves_nothing_more_is_named_and_changes_nothing() -> None:
    note = Sign("line 2", "c1", "requested", "turn_aborted: the user interrupted the turn")
    found = _found(_asked("c1"), note)

    assert _weighed(found) == [
        ("c1", "requested", ("line 1: asked for", "line 2: turn_aborted: the user interrupted the turn"))
    ]


def test_a_record_that_proves_nothing_more_does_not_end_waiting() -> None:
    found = _found(
        _asked("c1"), Sign("line 2", "c1", "waiting", "it waits"), Sign("line 3", "c1", "requested", "a note")
    )

    assert [(id, evidence) for id, evidence, _ in _weighed(found)] == [("c1", "waiting")]


def test_a_record_that_proves_nothing_more_is_no_dispatch_in_an_import() -> None:
    found = _found(_asked("c1", "c2"), Sign("line 2", "c1", "requested", "a note"), Sign("line 3", "c2", "ran", "end"))

    log = Log.read(lines_of(found, "s", nonce="0" * 32, time=1, writer={"name": "turnwal", "version": "0"}))

    assert [event.data["id"] for event in log if event.type == "tool_call"] == ["c2"]
    assert [repair.data["id"] for repair in plan(log).lost_calls()] == ["c1", "c2"]
