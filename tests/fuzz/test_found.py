"""Inputs that fuzzing has found, each by what was wrong with it."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.worlds import put, worlds
from turnwal.core.errors import InvalidEvent, Refused, StoreFailed, TurnwalError
from turnwal.core.log import Log
from turnwal.formats.database import MAGIC
from turnwal.formats.diagnosis import Diagnosis
from turnwal.formats.doctor import diagnose, examine, write_copy
from turnwal.formats.finding import find
from turnwal.formats.format import Found
from turnwal.formats.importing import lines_of
from turnwal.formats.stamps import milliseconds, of_seconds
from turnwal.transcript.parsing import parse

HALF = "\\ud83d"
"""Half a character, as JSON has it."""


def spoilt(root: Path, world: Mapping[str, bytes], old: str, new: str) -> Found:
    """The one session of a world in which a text stands in place of another."""
    changed = {name: content.replace(old.encode(), new.encode()) for name, content in world.items()}
    assert changed != dict(world)
    put(changed, root)
    return only(root)


def only(root: Path) -> Found:
    """The first session below a folder."""
    found = next(iter(find([root])))
    assert isinstance(found, Found), found
    return found


def in_database(root: Path, format: str, number: int, statement: str, *values: Any) -> Found:
    """The first session of a stored database, once a statement has changed it."""
    put(worlds(format)[number], root)
    (path,) = (path for path in root.iterdir() if not path.name.endswith("-wal"))
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement, values).rowcount > 0
    return only(root)


def copied(found: Found, out: Path) -> Diagnosis:
    """What is said of the repaired copy; nothing may be open in it."""
    write_copy(found, diagnose(found), out)
    (after,) = examine([out])
    assert [call.id for call in after.open if call.evidence != "waiting"] == []
    return after


@pytest.mark.parametrize(
    ("format", "number", "old", "new"),
    [
        ("anthropic", 0, '"go"', f'"go {HALF}"'),
        ("openai_chat", 0, '"go"', f'"go {HALF}"'),
        ("openai_responses", 0, '"go"', f'"go {HALF}"'),
        ("gemini", 0, '"go"', f'"go {HALF}"'),
        ("qwen_code", 1, '"c3"', f'"c3{HALF}"'),
        ("pi", 1, '"c3"', f'"c3{HALF}"'),
        ("pydantic_ai", 3, '"charge"', f'"charge{HALF}"'),
    ],
)
def test_half_a_character_in_a_session_does_not_stand_in_the_way_of_its_copy(
    tmp_path: Path, format: str, number: int, old: str, new: str
) -> None:
    found = spoilt(tmp_path / "session", worlds(format)[number], old, new)
    assert found.format.name == format

    assert diagnose(found).open
    copied(found, tmp_path / "out.jsonl")


@pytest.mark.parametrize(
    ("format", "old", "new"),
    [
        ("claude_code", '"input":{"file_path":"a"}', '"input":Infinity'),
        ("anthropic", '"input": {}', '"input": {"n": Infinity}'),
        ("openai_chat", '"arguments": "{}"', '"arguments": [[NaN]]'),
        ("gemini", '"args": {}', '"args": {"n": 1e999}'),
        ("strands", '"input": {', '"input": {"n": NaN, '),
    ],
)
def test_a_number_that_is_none_is_no_reason_to_stop(tmp_path: Path, format: str, old: str, new: str) -> None:
    world = next(world for world in worlds(format) if any(old.encode() in content for content in world.values()))
    found = spoilt(tmp_path / "session", world, old, new)

    diagnosis = diagnose(found)

    assert diagnosis.format == format
    assert diagnosis.verdict != "unreadable"
    json.dumps(diagnosis.to_json())


def _langgraph(name: str) -> int:
    return next(number for number, world in enumerate(worlds("langgraph")) if name in world)


@pytest.mark.parametrize("metadata", ["", "5", '{"step":', b"\xff", '{"source": "\\ud83d"}', "[]"])
def test_a_checkpoint_that_says_nothing_of_itself_is_answered_all_the_same(tmp_path: Path, metadata: Any) -> None:
    number = _langgraph("single.db")
    found = in_database(tmp_path / "session", "langgraph", number, "UPDATE checkpoints SET metadata = ?", metadata)

    copied(found, tmp_path / "out.db")


def test_a_checkpoint_whose_serialiser_is_no_text_is_not_decoded(tmp_path: Path) -> None:
    number = _langgraph("single.db")
    found = in_database(tmp_path / "session", "langgraph", number, "UPDATE checkpoints SET type = x'6d73'")

    diagnosis = diagnose(found)

    assert diagnosis.verdict == "damaged"
    assert diagnosis.damage


@pytest.mark.parametrize(
    ("format", "statement"),
    [
        ("google_adk", "UPDATE events SET timestamp = ''"),
        ("google_adk", "UPDATE events SET timestamp = x'00'"),
    ],
)
def test_what_no_copy_can_be_made_of_is_refused_with_the_reason(tmp_path: Path, format: str, statement: str) -> None:
    found = in_database(tmp_path / "session", format, 0, statement)
    diagnosis = diagnose(found)
    assert diagnosis.open

    with pytest.raises(StoreFailed, match="of an unknown shape") as caught:
        write_copy(found, diagnosis, tmp_path / "out.db")

    assert caught.value.action == "repair"
    assert not (tmp_path / "out.db").exists()


def test_an_id_that_is_no_text_is_refused_with_the_reason(tmp_path: Path) -> None:
    world = next(world for world in worlds("strands") if b"was interrupted" in b"".join(world.values()))
    changed = {name: content.replace(b'"toolUseId": "', b'"toolUseId": [], "x": "') for name, content in world.items()}
    put(changed, tmp_path / "session")
    found = only(tmp_path / "session")

    with pytest.raises(TurnwalError):
        write_copy(found, diagnose(found), tmp_path / "out")


def test_a_session_named_by_bytes_is_told_as_text(tmp_path: Path) -> None:
    number = next(number for number, world in enumerate(worlds("openai_agents")) if "healthy.db" in world)
    found = in_database(tmp_path / "session", "openai_agents", number, "UPDATE agent_messages SET session_id = x'ff00'")

    json.dumps(diagnose(found).to_json())


@pytest.mark.parametrize("time", ["1" + "0" * 400, "-1e30", "1e308", "NaN", "[]"])
@pytest.mark.parametrize(
    ("format", "field", "old"),
    [("opencode", "created", "1767225600000"), ("goose", "created", "1767225600")],
)
def test_a_time_that_no_event_may_have_is_none(tmp_path: Path, format: str, field: str, old: str, time: str) -> None:
    told = f'"{field}": {old}'
    texts = [world for world in worlds(format) if not any(each.startswith(MAGIC) for each in world.values())]
    world = next(world for world in texts if any(told.encode() in content for content in world.values()))
    found = spoilt(tmp_path / "session", world, told, f'"{field}": {time}, "was": 1')

    assert diagnose(found).verdict != "unreadable"
    lines = lines_of(found, "s", nonce="0" * 32, time=7, writer={"name": "turnwal", "version": "0"})
    assert {event.time for event in Log.read(lines)} >= {7}


@pytest.mark.parametrize("time", [float("inf"), float("nan"), 1e300, 10**30, True, None, "x", [], 2**63])
def test_what_is_no_time_is_none(time: object) -> None:
    assert milliseconds(time) is None
    assert of_seconds(time) is None
    assert (milliseconds(2**63 - 1), of_seconds(1.5), milliseconds(-1)) == (2**63 - 1, 1_500, -1)


def test_a_format_that_is_only_read_has_no_copy(tmp_path: Path) -> None:
    put(worlds("pi")[0], tmp_path)
    found = only(tmp_path)
    reading_only = Found(_without_repair(found), found.path)

    with pytest.raises(Refused, match="can be read, not written"):
        write_copy(reading_only, diagnose(found), tmp_path / "out")


def _without_repair(found: Found) -> Any:
    return replace(found.format, repair=None)


@pytest.mark.parametrize("index", [2**31, 2**63, 10**400])
def test_a_number_in_a_stream_does_not_fill_memory(index: int) -> None:
    def chunk(at: int) -> dict[str, Any]:
        return {"type": "response.output_text.delta", "output_index": 0, "content_index": at, "delta": "x"}

    with pytest.raises(InvalidEvent):
        parse("openai-responses", [chunk(index)])

    assert parse("openai-responses", [chunk(0), chunk(2)])["complete"] is False
