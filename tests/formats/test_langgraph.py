"""Threads of LangGraph: agents that were really killed inside a tool (`generators/langgraph.py`), and odd databases."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from tests.formats.fixtures import DATA, digests, evidence, imported, only, owed, refused, repaired, sessions, taken
from tests.store.server import fresh_schema
from turnwal.core.errors import Refused
from turnwal.formats.database import Unreachable
from turnwal.formats.diagnosis import Diagnosis
from turnwal.formats.doctor import diagnose, examine
from turnwal.formats.items import Other, Said
from turnwal.formats.langgraph.postgres import _reading
from turnwal.formats.langgraph.state import State
from turnwal.formats.wording import UNKNOWN_TEXT

OPEN = {
    "single": {"call_charge": "requested"},
    "sibling": {"call_charge": "requested"},
    "abandoned": {"call_look": "ran", "call_charge": "requested"},
    "waiting": {"call_confirm": "waiting"},
    "resumed": {"call_confirm": "dispatched"},
    "failed": {"call_fail": "ran"},
    "forked": {"call_charge": "requested"},
    "edited": {"call_charge": "requested"},
    "subgraph": {"call_charge": "requested"},
    "node": {"call_look": "requested", "call_charge": "requested"},
    "functional": {"call_charge": "requested"},
}
"""What is proved about each open call of each scene."""

REPAIRED = sorted(OPEN.keys() - {"waiting", "functional"})


def scene(name: str, directory: Path) -> Path:
    return taken("langgraph", f"{name}.db", directory)


@pytest.mark.parametrize("name", OPEN)
def test_what_a_killed_agent_left_is_open_with_its_evidence(name: str, tmp_path: Path) -> None:
    _, diagnosis = only(scene(name, tmp_path))
    assert evidence(diagnosis) == OPEN[name]
    assert diagnosis.verdict == ("waiting" if name == "waiting" else "interrupted")
    assert {call.risk for call in diagnosis.open} == {None if name == "waiting" else "tool_outcome_unknown"}
    assert diagnosis.version == "4"
    assert not diagnosis.damage


def test_a_finished_sibling_has_its_result_in_the_writes_alone(tmp_path: Path) -> None:
    path = scene("sibling", tmp_path)
    found, diagnosis = only(path)
    assert (diagnosis.calls, diagnosis.answered) == (2, 1)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM writes WHERE channel = 'messages' AND task_path LIKE '~__pregel_push%'")
    assert evidence(diagnose(found)) == {"call_look": "requested", "call_charge": "requested"}


def test_a_healthy_database_gets_no_false_alarm(tmp_path: Path) -> None:
    found = sessions(scene("healthy", tmp_path))
    assert [(one.session, diagnose(one).verdict, diagnose(one).calls) for one in found] == [
        ("healthy", "clean", 3),
        ("other", "clean", 0),
    ]


def test_what_is_saved_at_the_end_only_is_blind(tmp_path: Path) -> None:
    _, diagnosis = only(scene("at_exit", tmp_path))
    assert diagnosis.verdict == "blind"
    assert "exit" in diagnosis.problem


def calls_of(value: object) -> Iterator[tuple[str, str]]:
    """Every call and every result in a stored value, found without the reader."""
    if isinstance(value, msgspec.msgpack.Ext):
        yield from calls_of(msgspec.msgpack.decode(value.data))
    elif isinstance(value, dict):
        yield from (("asked", call["id"]) for call in value.get("tool_calls", ()))
        if "tool_call_id" in value:
            yield "answered", value["tool_call_id"]
    elif isinstance(value, list):
        for inner in value:
            yield from calls_of(inner)


def expected_open(connection: sqlite3.Connection) -> list[str]:
    last = connection.execute("SELECT max(checkpoint_id) FROM checkpoints").fetchone()
    blobs = connection.execute("SELECT checkpoint FROM checkpoints WHERE checkpoint_id = ?", last).fetchall()
    blobs += connection.execute("SELECT value FROM writes WHERE checkpoint_id = ? AND channel = 'messages'", last)
    found = [
        call
        for (blob,) in blobs
        for value in [msgspec.msgpack.decode(blob)]
        for call in calls_of(value["channel_values"].get("messages", ()) if isinstance(value, dict) else value)
    ]
    answered = {id for what, id in found if what == "answered"}
    return sorted(id for what, id in found if what == "asked" and id not in answered)


def test_cutting_a_healthy_thread_after_each_row_leaves_what_was_open_there(tmp_path: Path) -> None:
    path = scene("healthy", tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM checkpoints WHERE thread_id <> 'healthy'")
        connection.execute("DELETE FROM writes WHERE thread_id <> 'healthy'")
        connection.commit()
        rows = connection.execute(
            "SELECT checkpoint_id, 0, rowid FROM checkpoints "
            "UNION ALL SELECT checkpoint_id, 1, rowid FROM writes ORDER BY 1, 2, 3"
        ).fetchall()
        seen: list[list[str]] = []
        while rows:
            (found,) = sessions(path)
            seen.append(sorted(evidence(diagnose(found))))
            assert seen[-1] == expected_open(connection), rows[-1]
            _, is_write, rowid = rows.pop()
            cut = "DELETE FROM writes WHERE rowid = ?" if is_write else "DELETE FROM checkpoints WHERE rowid = ?"
            connection.execute(cut, (rowid,))
            connection.commit()
    assert [] in seen
    assert ["call_1"] in seen
    assert ["call_2", "call_3"] in seen
    assert ["call_3"] in seen  # its sibling was done


@pytest.mark.parametrize("name", [*OPEN, "healthy", "at_exit"])
def test_nothing_is_written_by_looking(name: str, tmp_path: Path) -> None:
    scene(name, tmp_path)
    before = digests(tmp_path)
    assert list(examine([tmp_path]))
    for found in sessions(tmp_path / f"{name}.db"):
        assert imported(found)
    assert digests(tmp_path) == before


@pytest.mark.parametrize("name", REPAIRED)
def test_a_repaired_copy_has_nothing_open_and_says_no_more_than_is_known(name: str, tmp_path: Path) -> None:
    path, out = scene(name, tmp_path), tmp_path / "out.db"
    before = digests(tmp_path)
    assert repaired(path, out).verdict == "clean"
    assert {name: digest for name, digest in digests(tmp_path).items() if name != "out.db"} == before
    (found,) = sessions(out)
    results = {
        item.data["id"]: item.data["parts"][0]["content"]
        for item in found.format.read(found, "whole")
        if isinstance(item, Said) and item.type == "tool_result"
    }
    known = {"call_look": "price: 5"} if name != "node" else {}
    assert results == dict.fromkeys(OPEN[name], UNKNOWN_TEXT) | (known if "call_look" in results else {})
    assert owed(found) == []


@pytest.mark.parametrize("name", REPAIRED)
def test_repairing_is_the_same_bytes_each_time_and_nothing_the_second_time(name: str, tmp_path: Path) -> None:
    path = scene(name, tmp_path)
    outs = [tmp_path / f"{number}.db" for number in range(3)]
    repaired(path, outs[0])
    repaired(path, outs[1])
    assert outs[0].read_bytes() == outs[1].read_bytes()
    repaired(outs[0], outs[2])
    assert rows(outs[2]) == rows(outs[0])


def rows(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        tables = ("SELECT * FROM checkpoints", "SELECT * FROM writes")
        return [connection.execute(table).fetchall() for table in tables]


def test_the_rows_that_were_there_are_carried_and_one_is_added(tmp_path: Path) -> None:
    path, out = scene("sibling", tmp_path), tmp_path / "out.db"
    repaired(path, out)
    (before, written), (after, written_after) = rows(path), rows(out)
    assert after[:-1] == before
    assert written_after == written
    assert json.loads(after[-1][6])["turnwal"] == "repair"
    versions = [msgspec.msgpack.decode(row[5])["channel_versions"]["messages"] for row in after[-2:]]
    assert versions[0] < versions[1]


def test_a_path_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    path, out = scene("single", tmp_path), tmp_path / "out.db"
    out.write_bytes(b"mine")
    with pytest.raises(Refused, match="something is there already"):
        repaired(path, out)
    assert out.read_bytes() == b"mine"


def test_f28_a_sibling_that_waits_has_to_be_answered_first(tmp_path: Path) -> None:
    path, out = scene("waiting", tmp_path), tmp_path / "out.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM writes WHERE channel = 'messages' AND task_path LIKE '~__pregel_push%'")
    with pytest.raises(Refused, match="waits for an answer"):
        repaired(path, out)
    assert not out.exists()


def test_what_a_finished_sibling_wrote_to_another_channel_is_not_merged_by_guess(tmp_path: Path) -> None:
    path, out = scene("sibling", tmp_path), tmp_path / "out.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT INTO writes SELECT thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, 7, 'todos', "
            "'msgpack', ? FROM writes WHERE channel = 'messages' AND task_path LIKE '~__pregel_push%'",
            (msgspec.msgpack.encode(["pay"]),),
        )
    with pytest.raises(Refused, match="todos"):
        repaired(path, out)
    assert not out.exists()


def test_an_entrypoint_is_read_and_its_calls_are_not_answered_where_its_code_would_not_look(tmp_path: Path) -> None:
    path, out = scene("functional", tmp_path), tmp_path / "out.db"
    found, diagnosis = only(path)
    assert (diagnosis.calls, diagnosis.answered) == (3, 2)
    with pytest.raises(Refused, match="__return__"):
        repaired(path, out)
    assert not out.exists()
    # what it saved at the end of a run is where its messages are then
    with closing(sqlite3.connect(path)) as connection, connection:
        last = "(SELECT max(checkpoint_id) FROM checkpoints)"
        connection.execute(f"DELETE FROM writes WHERE checkpoint_id = {last}")  # noqa: S608 - a text of ours
    assert (diagnose(found).verdict, diagnose(found).calls, diagnose(found).answered) == ("clean", 1, 1)


def test_an_import_owes_what_is_open_and_can_be_sent(tmp_path: Path) -> None:
    for name, open_calls in OPEN.items():
        found, _ = only(scene(name, tmp_path / name))
        expected = [] if name == "waiting" else list(open_calls)
        assert sorted(owed(found)) == sorted(expected)
        for target in ("anthropic", "openai-chat", "openai-responses"):
            assert refused(found, target) == [], (name, target)


def test_an_answer_that_a_middleware_invented_is_unknown_and_told_truly_in_the_copy(tmp_path: Path) -> None:
    path, out = scene("single", tmp_path), tmp_path / "out.db"
    repaired(path, out)
    invented = (
        "Tool call charge with id call_charge was cancelled - another message came in before it could be completed."
    )
    change_last(out, UNKNOWN_TEXT, invented)
    assert evidence(only(out)[1]) == {"call_charge": "answered_synthetic"}
    assert repaired(out, tmp_path / "again.db").verdict == "clean"


def change_last(path: Path, old: str, new: str) -> None:
    """Change the content of the last message, and take our mark from it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        id, blob = connection.execute("SELECT checkpoint_id, max(rowid), checkpoint FROM checkpoints").fetchone()[::2]
        checkpoint = msgspec.msgpack.decode(blob)
        message = checkpoint["channel_values"]["messages"][-1]
        told = msgspec.msgpack.decode(message.data)
        assert told[2]["content"] == old
        told[2] |= {"content": new, "additional_kwargs": {}}
        checkpoint["channel_values"]["messages"][-1] = msgspec.msgpack.Ext(5, msgspec.msgpack.encode(told))
        blob = msgspec.msgpack.encode(checkpoint)
        connection.execute("UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?", (blob, id))


def made(path: Path, messages: list[Any], type: str = "json", **more: Any) -> Path:
    """A database of one checkpoint, as an application might have written it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', "
            "checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, "
            "PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id))"
        )
        connection.execute(
            "CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', "
            "checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL, idx INTEGER NOT NULL, channel TEXT NOT NULL, "
            "type TEXT, value BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx))"
        )
        checkpoint = {
            "v": 4,
            "id": ID,
            "ts": "2026-01-01T00:00:00+00:00",
            "channel_values": {"messages": messages, "branch:to:tools": None},
            "channel_versions": {"messages": 3, "branch:to:tools": 3, "branch:to:agent": 2},
            "versions_seen": {"agent": {"branch:to:agent": 2}},
        } | more
        blob = msgspec.json.encode(checkpoint) if type == "json" else b"\x80\x04."
        row = ("t", "", ID, None, type, blob, b'{"source": "loop", "step": 1}')
        connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    return path


ID = "1f1ecf97-e4e9-68e7-8001-38907d38ee18"
CALL = {"name": "charge", "args": {"amount": 5}, "id": "call_1", "type": "tool_call"}
SHAPES: dict[str, Callable[[str, dict[str, Any]], dict[str, Any]]] = {
    "data": lambda kind, data: {"type": kind, "data": data},
    "constructor": lambda kind, data: {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", {"human": "HumanMessage", "ai": "AIMessage"}[kind]],
        "kwargs": data,
    },
    "role": lambda kind, data: {"role": {"human": "user", "ai": "assistant"}[kind], **data},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_of_a_message_is_read_and_answered(shape: str, tmp_path: Path) -> None:
    of = SHAPES[shape]
    messages = [of("human", {"content": "charge 5"}), of("ai", {"content": "", "tool_calls": [CALL]})]
    path = made(tmp_path / "t.db", messages)
    assert evidence(only(path)[1]) == {"call_1": "requested"}
    assert repaired(path, tmp_path / "out.db").verdict == "clean"
    answer = json.loads(rows(tmp_path / "out.db")[0][-1][5])["channel_values"]["messages"][-1]
    assert (
        answer.keys() == (messages[0] | ({"tool_call_id": 0, "additional_kwargs": 0} if shape == "role" else {})).keys()
    )


def test_ids_that_are_used_again_are_paired_in_order(tmp_path: Path) -> None:
    of = SHAPES["data"]
    asked = of("ai", {"content": "", "tool_calls": [CALL]})
    result = {"type": "tool", "data": {"content": "charged", "tool_call_id": "call_1"}}
    path = made(tmp_path / "t.db", [asked, result, asked, of("human", {"content": "well?"})])
    diagnosis = only(path)[1]
    assert (diagnosis.calls, diagnosis.answered, evidence(diagnosis)) == (2, 1, {"call_1": "requested"})
    assert repaired(path, tmp_path / "out.db").verdict == "clean"
    kinds = [m["type"] for m in json.loads(rows(tmp_path / "out.db")[0][-1][5])["channel_values"]["messages"]]
    assert kinds == ["ai", "tool", "ai", "tool", "human"]


def test_f07_a_message_that_is_stored_again_owes_one_result(tmp_path: Path) -> None:
    asked = SHAPES["data"]("ai", {"content": "", "tool_calls": [CALL], "id": "ai-1"})
    result = {"type": "tool", "data": {"content": "charged", "tool_call_id": "call_1"}}
    assert evidence(only(made(tmp_path / "a.db", [asked, asked]))[1]) == {"call_1": "requested"}
    diagnosis = only(made(tmp_path / "b.db", [asked, asked, result]))[1]
    assert (diagnosis.verdict, diagnosis.calls, diagnosis.answered) == ("clean", 1, 1)


def test_f08_a_call_that_is_asked_for_again_does_not_hide_the_one_that_was_killed(tmp_path: Path) -> None:
    first, again = (SHAPES["data"]("ai", {"content": "", "tool_calls": [CALL], "id": id}) for id in ("ai-1", "ai-2"))
    said = {"type": "human", "data": {"content": "go on", "id": "h"}}
    result = {"type": "tool", "data": {"content": "charged", "tool_call_id": "call_1", "id": "t"}}
    found, diagnosis = only(made(tmp_path / "a.db", [first, said, again, result]))
    assert (diagnosis.calls, diagnosis.answered, evidence(diagnosis)) == (2, 1, {"call_1": "requested"})
    assert owed(found) == ["call_1"]


def test_unknown_messages_are_counted(tmp_path: Path) -> None:
    found, _ = only(made(tmp_path / "t.db", [{"type": "chat", "data": {"content": "?"}}]))
    assert [item.name for item in found.format.read(found, "whole") if isinstance(item, Other)] == ["chat message"]


@pytest.mark.parametrize(("type", "word"), [("pickle", "pickled"), ("msgpack+aes", "encrypted"), ("odd", "'odd'")])
def test_what_must_not_or_cannot_be_decoded_is_blind_with_the_reason(type: str, word: str, tmp_path: Path) -> None:
    diagnosis = only(made(tmp_path / "t.db", [], type))[1]
    assert diagnosis.verdict == "blind"
    assert word in diagnosis.problem


def test_f39_a_checkpoint_of_a_newer_version_is_too_new(tmp_path: Path) -> None:
    assert only(made(tmp_path / "t.db", [], v=5))[1].verdict == "too_new"


def test_a_blob_that_is_damaged_at_any_byte_is_never_clean_or_an_exception(tmp_path: Path) -> None:
    path = scene("single", tmp_path)
    (found,) = sessions(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        (id, blob) = connection.execute("SELECT checkpoint_id, checkpoint FROM checkpoints ORDER BY 1 DESC").fetchone()
        for size in range(len(blob)):
            connection.execute("UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?", (blob[:size], id))
            connection.commit()
            diagnosis = diagnose(found)
            # the checkpoint before it is read, and what was written after that one
            assert diagnosis.verdict == "interrupted"
            assert [fault.kind for fault in diagnosis.damage] == ["corrupt"]


def test_names_in_a_file_are_never_imported(tmp_path: Path) -> None:
    sign = tmp_path / "ran"
    told = ["os", "system", f"touch {sign}"]
    ext = [msgspec.msgpack.Ext(code, msgspec.msgpack.encode([*told, "system"])) for code in range(8)]
    path = made(tmp_path / "t.db", [])
    blob = msgspec.msgpack.encode({"v": 4, "channel_values": {"messages": ext}})
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE checkpoints SET type = 'msgpack', checkpoint = ?", (blob,))
    assert only(path)[1].verdict == "clean"
    assert not sign.exists()


def test_a_version_over_all_others_is_found_in_each_form_of_saver() -> None:
    for versions, over in (
        ({"a": 3, "b": 9}, 10),
        ({"a": "00000000000000000000000000000003.0.5", "b": "2"}, "00000000000000000000000000000004.0"),
    ):
        checkpoint = {"channel_values": {}, "channel_versions": dict(versions), "versions_seen": {}}
        state = State("json", checkpoint)
        state.put("a", None)
        assert state.versions["a"] == over


def served(url: str) -> dict[str | None, Diagnosis]:
    return {diagnosis.session: diagnosis for diagnosis in examine([url])}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A database with the tables that LangGraph's own saver left in one."""
    told = json.loads((DATA / "langgraph" / "postgres.json").read_text())
    with fresh_schema(migrated=False) as url:
        with psycopg.connect(url) as connection:
            for statement in told["made"]:
                connection.execute(statement)
            for table, text in told["filled"].items():
                with connection.cursor().copy(f"COPY {table} FROM STDIN".encode()) as copy:
                    copy.write(text)
        yield url


def test_a_database_on_a_server_is_read_as_the_file_is(server: str) -> None:
    found = served(server)
    assert {name: (one.verdict, evidence(one)) for name, one in found.items()} == {
        "healthy": ("clean", {}),
        "other": ("clean", {}),
        "single": ("interrupted", OPEN["single"]),
        "sibling": ("interrupted", OPEN["abandoned"]),
        "waiting": ("interrupted", OPEN["resumed"]),
        "failed": ("interrupted", OPEN["failed"]),
    }
    assert all(one.format == "langgraph" and one.path.startswith("postgresql://") for one in found.values())


def test_a_second_question_waits_again_where_the_first_was_answered(server: str) -> None:
    with psycopg.connect(server) as connection:
        connection.execute("UPDATE checkpoint_writes SET blob = blob WHERE channel = '__interrupt__'")
    assert evidence(served(server)["waiting"]) == OPEN["waiting"]


def test_a_server_is_read_in_a_transaction_that_cannot_write(server: str) -> None:
    with pytest.raises(Unreachable, match="read-only"), _reading(server) as connection:
        connection.execute("DELETE FROM checkpoints")


def test_a_server_that_is_not_there_is_unreadable_and_its_password_not_shown() -> None:
    (unread,) = examine(["postgresql://me:secret@localhost:1/none?connect_timeout=1"])
    assert unread.verdict == "unreadable"
    assert "could not be read" in unread.problem
    assert "secret" not in unread.path + unread.problem


def test_a_server_without_such_tables_is_said_to_have_none() -> None:
    with fresh_schema(migrated=False) as url:
        (unread,) = examine([url])
    assert (unread.verdict, unread.problem) == ("unreadable", "there is no session of a known format in it")
