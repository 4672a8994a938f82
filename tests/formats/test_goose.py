"""goose: requests and responses in its database and in its older file."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.formats.databases import database, held, left_in_wal
from tests.formats.seen import diagnosis_of, digests, imported, open_ids, repaired
from turnwal.core.recovery import plan
from turnwal.formats.doctor import diagnose, examine
from turnwal.formats.finding import find
from turnwal.formats.format import Found
from turnwal.transcript.check import check
from turnwal.transcript.render import render

Row = tuple[str, list[dict[str, Any]]]

SCHEMA = """
create table schema_version (version integer primary key, applied_at timestamp);
insert into schema_version values (7, null);
create table sessions (id text primary key, name text, description text, working_dir text);
insert into sessions values ('20260101_1', 'n', 'd', '/w');
create table messages (
    id integer primary key autoincrement, message_id text, session_id text not null references sessions (id),
    role text not null, content_json text not null, created_timestamp integer not null, timestamp timestamp,
    tokens integer, metadata_json text);
"""


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def request(id: str, status: str = "success") -> dict[str, Any]:
    value = {"name": "developer__shell", "arguments": {"command": "make"}}
    call = {"status": status, "value": value} if status == "success" else {"status": "error", "error": "no JSON"}
    return {"type": "toolRequest", "id": id, "toolCall": call}


def response(id: str) -> dict[str, Any]:
    value = {"content": [{"type": "text", "text": "done"}], "isError": False}
    return {"type": "toolResponse", "id": id, "toolResult": {"status": "success", "value": value}}


def refusal(id: str) -> dict[str, Any]:
    """What goose answers to a request that did not parse."""
    return {"type": "toolResponse", "id": id, "toolResult": {"status": "error", "error": "no JSON"}}


HEALTHY: list[Row] = [
    ("user", [text("go")]),
    ("assistant", [text("ok"), request("c1")]),
    ("user", [response("c1")]),
    ("assistant", [request("c2"), request("c3")]),
    ("user", [response("c3"), response("c2")]),
    ("assistant", [text("done")]),
]


def stored(path: Path, rows: list[Row], session: str = "20260101_1") -> Path:
    def fill(connection: sqlite3.Connection) -> None:
        columns = "message_id, session_id, role, content_json, created_timestamp"
        for number, (role, blocks) in enumerate(rows):
            values = (f"m{number}", session, role, json.dumps(blocks), 1767225600 + number)
            connection.execute(f"insert into messages ({columns}) values (?, ?, ?, ?, ?)", values)  # noqa: S608 - fixed

    return database(path, SCHEMA, fill)


def filed(path: Path, rows: list[Row]) -> Path:
    head = {"working_dir": "/w", "description": "d", "message_count": len(rows)}
    lines = [head, *({"role": role, "created": 1767225600, "content": blocks} for role, blocks in rows)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


stores = pytest.mark.parametrize("store", [stored, filed])


@stores
def test_a_healthy_session_gets_no_alarm(tmp_path: Path, store: Any) -> None:
    seen = diagnosis_of(store(tmp_path / "x", HEALTHY))
    assert (seen.format, seen.verdict, seen.calls, seen.answered, seen.open, seen.damage) == (
        "goose",
        "clean",
        3,
        3,
        (),
        (),
    )
    assert seen.on_resume == "continues"


@stores
@pytest.mark.parametrize("end", range(1, len(HEALTHY) + 1))
def test_cut_after_any_message_it_names_the_calls_that_were_open_there(tmp_path: Path, store: Any, end: int) -> None:
    kept = HEALTHY[:end]
    asked = [block["id"] for _, blocks in kept for block in blocks if block["type"] == "toolRequest"]
    done = {block["id"] for _, blocks in kept for block in blocks if block["type"] == "toolResponse"}
    seen = diagnosis_of(store(tmp_path / "x", kept))
    assert open_ids(seen) == [id for id in asked if id not in done]
    assert {call.risk for call in seen.open} <= {"tool_outcome_unknown"}
    assert seen.on_resume == ("hides" if seen.open else "continues")


@stores
def test_f08_a_killed_call_of_an_id_that_was_answered_is_another_call(tmp_path: Path, store: Any) -> None:
    path = store(tmp_path / "x", [*HEALTHY, ("user", [text("again")]), ("assistant", [request("c1")])])
    seen = diagnosis_of(path)
    assert (seen.calls, seen.answered, open_ids(seen)) == (4, 3, ["c1"])
    assert diagnosis_of(repaired(path, tmp_path / "out")).verdict == "clean"
    assert [repair.data["id"] for repair in plan(imported(path)).lost_calls()] == ["c1"]


@stores
def test_the_copy_answers_each_call_directly_behind_its_message(tmp_path: Path, store: Any) -> None:
    rows = [
        *HEALTHY[:2],
        ("user", [text("and now?")]),
        HEALTHY[3],
        ("user", [response("c3")]),
        ("user", [text("go on")]),
    ]
    out = repaired(store(tmp_path / "x", rows), tmp_path / "out")
    seen = diagnosis_of(out)
    assert (seen.verdict, seen.calls, seen.answered) == ("clean", 3, 3)
    again = repaired(out, tmp_path / "again")
    assert again.read_bytes() == out.read_bytes()
    assert replace(diagnosis_of(again), path=str(out), session=seen.session) == seen
    log = imported(out)
    messages = render(log, "openai-chat").messages
    assert check("openai-chat", messages) == []
    assert [message["role"] for message in messages[:4]] == ["user", "assistant", "tool", "user"]
    assert "may have run" in messages[2]["content"]


def test_rows_behind_a_repair_keep_their_order_and_other_sessions_their_rows(tmp_path: Path) -> None:
    path = stored(tmp_path / "x", HEALTHY[:2])
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("insert into sessions values ('20260101_2', 'n', 'd', '/w')")
        query = "insert into messages (session_id, role, content_json, created_timestamp) values (?, ?, ?, 1)"
        connection.execute(query, ("20260101_2", "user", json.dumps([text("other")])))
        connection.execute(query, ("20260101_1", "user", json.dumps([text("go on")])))
    connection.close()
    found = next(each for each in find([path]) if isinstance(each, Found) and each.session == "20260101_1")
    assert found.format.repair is not None
    found.format.repair(found, diagnose(found), tmp_path / "out")
    connection = sqlite3.connect(tmp_path / "out")
    rows = connection.execute("select session_id, role, content_json from messages order by id").fetchall()
    connection.close()
    assert [(session[-1], role) for session, role, _ in rows] == [
        ("1", "user"),
        ("1", "assistant"),
        ("1", "user"),
        ("2", "user"),
        ("1", "user"),
    ]
    assert json.loads(rows[2][2])[0]["id"] == "c1"


@stores
def test_what_is_imported_owes_what_doctor_names(tmp_path: Path, store: Any) -> None:
    path = store(tmp_path / "x", HEALTHY[:4])
    log = imported(path)
    assert [repair.data["id"] for repair in plan(log).lost_calls()] == open_ids(diagnosis_of(path)) == ["c2", "c3"]


CONFIRMATION: dict[str, Any] = {"id": "c1", "toolName": "developer__shell", "arguments": {"command": "make"}}


@stores
@pytest.mark.parametrize(
    "asks",
    [
        {"type": "toolConfirmationRequest", **CONFIRMATION},
        {"type": "actionRequired", "data": {"actionType": "toolConfirmation", **CONFIRMATION, "prompt": None}},
    ],
    ids=["old", "new"],
)
def test_a_confirmation_that_is_asked_for_waits_and_one_long_gone_does_not(
    tmp_path: Path, store: Any, asks: dict[str, Any]
) -> None:
    seen = diagnosis_of(store(tmp_path / "x", [HEALTHY[0], HEALTHY[1], ("user", [asks])]))
    assert (seen.verdict, [(call.id, call.evidence, call.risk) for call in seen.open]) == (
        "waiting",
        [("c1", "waiting", None)],
    )
    seen = diagnosis_of(store(tmp_path / "y", [HEALTHY[0], HEALTHY[1], ("user", [asks]), ("user", [text("go on")])]))
    assert (seen.verdict, seen.open[0].evidence) == ("interrupted", "requested")


@stores
def test_another_action_of_a_person_says_nothing_of_a_call(tmp_path: Path, store: Any) -> None:
    asks = {"type": "actionRequired", "data": {"actionType": "elicitation", "id": "c1", "message": "?"}}
    seen = diagnosis_of(store(tmp_path / "x", [HEALTHY[0], HEALTHY[1], ("assistant", [asks])]))
    assert (seen.verdict, seen.open[0].evidence) == ("interrupted", "requested")


@stores
def test_a_request_that_did_not_parse_was_no_call(tmp_path: Path, store: Any) -> None:
    seen = diagnosis_of(store(tmp_path / "x", [HEALTHY[0], ("assistant", [request("c1", "error")])]))
    assert (seen.verdict, seen.calls) == ("clean", 0)


@stores
def test_what_goose_answers_to_a_request_that_did_not_parse_is_no_orphan(tmp_path: Path, store: Any) -> None:
    rows: list[Row] = [
        HEALTHY[0],
        ("assistant", [request("c1", "error"), request("c2")]),
        ("user", [refusal("c1"), response("c2")]),
    ]
    seen = diagnosis_of(store(tmp_path / "x", rows))
    assert (seen.verdict, seen.calls, seen.answered, seen.damage) == ("clean", 1, 1, ())
    assert check("openai-chat", render(imported(tmp_path / "x"), "openai-chat").messages) == []
    # the next try has the same id: its response is its own
    again = [*rows, ("assistant", [request("c1", "error"), request("c1")]), ("user", [response("c1")])]
    seen = diagnosis_of(store(tmp_path / "y", again))
    assert (seen.verdict, seen.calls, seen.answered, seen.damage) == ("clean", 2, 2, ())
    seen = diagnosis_of(store(tmp_path / "z", [*rows, ("user", [refusal("c1")])]))
    assert [fault.kind for fault in seen.damage] == ["orphan_result"]


@stores
def test_content_of_unknown_types_is_counted_and_named(tmp_path: Path, store: Any) -> None:
    seen = diagnosis_of(store(tmp_path / "x", [*HEALTHY, ("assistant", [{"type": "hologram"}, {"type": "hologram"}])]))
    assert (seen.verdict, dict(seen.unknown)) == ("clean", {"hologram": 2})


def test_a_row_that_is_no_json_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    path = stored(tmp_path / "x", HEALTHY[:4])
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("update messages set content_json = '[{\"type\"' where id = 3")
    connection.close()
    seen = diagnosis_of(path)
    assert [fault.place for fault in seen.damage] == ["row 3"]
    assert open_ids(seen) == ["c1", "c2", "c3"]


def test_f39_a_database_of_a_newer_version_is_too_new_and_read_as_far_as_it_can_be(tmp_path: Path) -> None:
    path = stored(tmp_path / "x", HEALTHY[:2])
    for version, verdict in ((17, "interrupted"), (18, "too_new")):
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("insert into schema_version values (?, null)", (version,))
        connection.close()
        seen = diagnosis_of(path)
        assert (seen.version, seen.verdict, open_ids(seen)) == (str(version), verdict, ["c1"])


@stores
def test_f08_an_id_that_is_used_again_is_a_call_of_its_own(tmp_path: Path, store: Any) -> None:
    rows = [*HEALTHY[:3], HEALTHY[1], ("user", [response("c1")]), HEALTHY[1]]
    seen = diagnosis_of(store(tmp_path / "x", rows))
    assert (seen.calls, seen.answered, open_ids(seen), seen.damage) == (3, 2, ["c1"], ())
    after = diagnosis_of(repaired(tmp_path / "x", tmp_path / "out"))
    assert (after.verdict, after.calls, after.answered, after.damage) == ("clean", 3, 3, ())


@stores
def test_f35_half_a_pair_of_surrogates_costs_no_message(tmp_path: Path, store: Any) -> None:
    # as JSON.stringify and serde write what was cut inside an emoji
    asks = request("c\ud83d")
    asks["toolCall"]["value"]["arguments"] = {"command": "echo \ud83d; rm -rf x"}
    rows: list[Row] = [("user", [text("go \ud83d")]), ("assistant", [request("c1"), asks]), ("user", [response("c1")])]
    path = store(tmp_path / "x", rows)
    seen = diagnosis_of(path)
    assert (seen.verdict, open_ids(seen), seen.answered, seen.damage) == ("interrupted", ["c\ud83d"], 1, ())
    assert "rm -rf x" in str(seen.open[0].arguments)
    after = diagnosis_of(repaired(path, tmp_path / "out"))
    assert (after.verdict, after.calls, after.answered, after.damage) == ("clean", 2, 2, ())


def test_what_stands_in_the_wal_alone_is_read_and_nothing_is_written(tmp_path: Path) -> None:
    path = stored(tmp_path / "x", HEALTHY[:1])
    blocks = json.dumps(HEALTHY[1][1]).replace("'", "''")
    columns = "session_id, role, content_json, created_timestamp"
    left_in_wal(path, f"insert into messages ({columns}) values ('20260101_1', 'assistant', '{blocks}', 1);")  # noqa: S608
    (tmp_path / "x-shm").unlink()
    before = digests(tmp_path)
    (seen,) = examine([path])
    assert digests(tmp_path) == before
    assert open_ids(seen) == ["c1"]


def test_a_database_that_its_tool_holds_is_busy(tmp_path: Path) -> None:
    path = stored(tmp_path / "x", HEALTHY)
    with held(path):
        (seen,) = examine([path])
    assert seen.verdict == "busy"
    assert "locked" in seen.problem


@stores
def test_f08_a_call_that_is_asked_for_again_does_not_hide_the_one_that_was_killed(tmp_path: Path, store: Any) -> None:
    rows = [*HEALTHY[:2], ("user", [text("go on")]), HEALTHY[1], ("user", [response("c1")])]
    path = store(tmp_path / "x", rows)
    seen = diagnosis_of(path)
    assert (seen.calls, seen.answered, open_ids(seen)) == (2, 1, ["c1"])
    assert [repair.data["id"] for repair in plan(imported(path)).lost_calls()] == ["c1"]
