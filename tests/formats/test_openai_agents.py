"""Sessions of the OpenAI Agents SDK: agents killed inside a tool (`generators/openai_agents.py`), and odd databases."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.formats.fixtures import digests, evidence, imported, only, owed, refused, repaired, sessions, taken
from turnwal.core.errors import Refused
from turnwal.formats.doctor import diagnose, examine
from turnwal.formats.items import Said
from turnwal.formats.wording import UNKNOWN_TEXT
from turnwal.transcript.render import render

VERDICTS = {
    "healthy": "clean",
    "killed": "blind",
    "renamed": "clean",
    "kept": "waiting",
    "alchemy": "blind",
    "branches": "interrupted",
    "approval": "waiting",
    "alone": "interrupted",
    "encrypted": "blind",
}
OPEN = {
    "kept": {"call_charge": "waiting"},
    "branches": {"call_charge": "requested"},
    "approval": {"call_pay": "waiting"},
    "alone": {"call_pay": "requested"},
}
CALL = {"type": "function_call", "call_id": "c1", "name": "charge", "arguments": '{"amount":5}'}
USER = {"role": "user", "content": "charge 5"}
SAID = {"role": "assistant", "content": "It is done."}


def scene(name: str, directory: Path) -> Path:
    return taken("openai_agents", f"{name}.db", directory)


def output(id: str, text: str = "charged 5", kind: str = "function_call_output") -> dict[str, Any]:
    return {"type": kind, "call_id": id, "output": text}


def made(path: Path, *sessions: list[Any]) -> Path:
    """A database as `SQLiteSession` makes it, with the rows of its sessions by turns."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP, updated_at)"
        )
        connection.execute(
            "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, "
            "message_data TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)"
        )
        for number in range(max(map(len, sessions))):
            for index, items in enumerate(sessions):
                if number < len(items):
                    text = items[number] if isinstance(items[number], str) else json.dumps(items[number])
                    insert = "INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)"
                    connection.execute(insert, (f"s{index}", text))
    return path


def rows(path: Path, session: str = "s0") -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT message_data FROM agent_messages WHERE session_id = ? ORDER BY id", (session,)
        )
        return [json.loads(data) for (data,) in found]


@pytest.mark.parametrize("name", VERDICTS)
def test_what_each_kind_of_session_shows(name: str, tmp_path: Path) -> None:
    found = sessions(scene(name, tmp_path))
    diagnosis = diagnose(found[0])
    assert found[0].format.name == "openai_agents"
    assert diagnosis.verdict == VERDICTS[name]
    assert evidence(diagnosis) == OPEN.get(name, {})
    assert not diagnosis.damage
    assert not diagnosis.unknown


def test_a_kill_inside_a_tool_leaves_nothing_and_is_never_called_clean(tmp_path: Path) -> None:
    path = scene("killed", tmp_path)
    found, diagnosis = only(path)
    assert (diagnosis.calls, diagnosis.answered) == (3, 3)
    assert "cannot show it" in diagnosis.problem
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM agent_messages WHERE id = (SELECT max(id) FROM agent_messages)")
    assert diagnose(found).verdict == "clean"  # it ends with words of the model now


def test_cutting_a_healthy_session_after_each_row_leaves_what_was_open_there(tmp_path: Path) -> None:
    path = scene("healthy", tmp_path)
    seen: list[tuple[list[str], str]] = []
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM agent_messages WHERE session_id <> 'healthy'")
        connection.commit()
        while left := connection.execute("SELECT message_data FROM agent_messages ORDER BY id").fetchall():
            kept = [json.loads(data) for (data,) in left]
            ids = Counter(item["call_id"] for item in kept if item.get("type") == "function_call")
            ids.subtract(item["call_id"] for item in kept if item.get("type") == "function_call_output")
            expected = sorted(id for id, count in ids.items() if count)
            verdict = "interrupted" if expected else "clean" if kept[-1].get("role") == "assistant" else "blind"
            if expected and kept[-1].get("type") == "function_call_output":
                verdict = "waiting"  # as the SDK leaves it when it stops for an approval
            (found,) = sessions(path)
            diagnosis = diagnose(found)
            seen.append((sorted(evidence(diagnosis)), diagnosis.verdict))
            assert seen[-1] == (expected, verdict)
            connection.execute("DELETE FROM agent_messages WHERE id = (SELECT max(id) FROM agent_messages)")
            connection.commit()
    assert [open_calls for open_calls, _ in seen if open_calls] == [
        ["call_3"],
        ["call_2", "call_3"],
        ["call_2"],
        ["call_1"],
    ]
    assert Counter(verdict for _, verdict in seen) == {"interrupted": 3, "waiting": 1, "blind": 4, "clean": 2}


@pytest.mark.parametrize("name", VERDICTS)
def test_nothing_is_written_by_looking(name: str, tmp_path: Path) -> None:
    path = scene(name, tmp_path)
    before = digests(tmp_path)
    assert list(examine([tmp_path]))
    for found in sessions(path):
        assert imported(found)
    assert digests(tmp_path) == before


@pytest.mark.parametrize("name", ["kept", "branches", "alone"])
def test_a_repaired_copy_has_nothing_open_and_repairing_it_changes_nothing(name: str, tmp_path: Path) -> None:
    path = scene(name, tmp_path)
    if name == "kept":
        add(path, name, SAID)
    before = digests(tmp_path)
    outs = [tmp_path / f"{number}.db" for number in range(3)]
    assert repaired(path, outs[0]).verdict == "clean"
    assert {file: digest for file, digest in digests(tmp_path).items() if file != "0.db"} == before
    assert repaired(path, outs[1]).verdict == "clean"
    assert outs[0].read_bytes() == outs[1].read_bytes()
    assert repaired(outs[0], outs[2]).verdict == "clean"
    assert outs[2].read_bytes() == outs[0].read_bytes()
    assert owed(only(outs[0])[0]) == []


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def add(path: Path, session: str, item: dict[str, Any]) -> None:
    """Add an item to a session that the SDK has left."""
    with closing(sqlite3.connect(path)) as connection, connection:
        insert = "INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)"
        connection.execute(insert, (session, json.dumps(item)))


@pytest.mark.parametrize("name", ["approval", "kept"])
def test_f28_a_call_that_needs_an_approval_waits_or_was_killed_and_is_left_as_it_is(name: str, tmp_path: Path) -> None:
    path = scene(name, tmp_path)
    diagnosis = only(path)[1]
    (call,) = diagnosis.open
    assert (diagnosis.verdict, call.evidence, call.risk, diagnosis.problem) == ("waiting", "waiting", None, "")
    assert "waits until a person approves" in call.because[-1]
    assert "was killed in it" in call.because[-1]
    assert repaired(path, tmp_path / "out.db") == replace(diagnosis, path=str(tmp_path / "out.db"))
    assert dump(tmp_path / "out.db") == dump(path)


@pytest.mark.parametrize(
    "behind", [[USER], [SAID], [CALL | {"call_id": "c2"}, output("c2")], [{"type": "reasoning", "summary": []}]]
)
def test_f28_a_call_that_the_history_has_gone_on_behind_waits_no_more(
    behind: list[dict[str, Any]], tmp_path: Path
) -> None:
    path = made(tmp_path / "s.db", [USER, CALL | {"call_id": "c0"}, CALL, output("c0"), *behind])
    assert evidence(only(path)[1]) == {"c1": "requested"}


def test_f28_a_lone_call_at_the_end_may_wait_for_an_approval_and_that_is_said(tmp_path: Path) -> None:
    (call,) = only(scene("alone", tmp_path))[1].open
    assert (call.evidence, call.risk) == ("requested", "tool_outcome_unknown")
    assert any("waits until a person approves" in each for each in call.because)


def test_a_blind_session_is_copied_as_it_is_and_stays_blind(tmp_path: Path) -> None:
    path = scene("killed", tmp_path)
    assert repaired(path, tmp_path / "out.db").verdict == "blind"
    assert dump(tmp_path / "out.db") == dump(path)


def test_outputs_are_put_in_behind_the_reply_in_the_order_of_its_calls(tmp_path: Path) -> None:
    calls = [CALL | {"call_id": id} for id in ("a", "b", "c")]
    path = made(
        tmp_path / "s.db", [USER, *calls, output("b"), USER, SAID], [USER, SAID, USER, SAID, USER, SAID, USER, SAID]
    )
    (first, second) = sessions(path)
    assert first.format.repair is not None
    out = tmp_path / "out.db"
    first.format.repair(first, diagnose(first), out)
    assert [item.get("call_id", item.get("role")) for item in rows(out)] == [
        "user",
        *("a", "b", "c"),
        *("a", "b", "c"),
        "user",
        "assistant",
    ]
    assert [item["output"] for item in rows(out)[4:7]] == [UNKNOWN_TEXT, "charged 5", UNKNOWN_TEXT]
    assert rows(out, "s1") == rows(path, "s1")
    assert diagnose(second) == diagnose(sessions(path)[1])
    with closing(sqlite3.connect(out)) as connection:
        ids = connection.execute("SELECT max(id) FROM agent_messages").fetchone()
        assert connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'agent_messages'").fetchone() == ids


def test_each_kind_of_call_gets_an_output_of_its_kind_or_a_refusal(tmp_path: Path) -> None:
    kinds = {
        "custom_tool_call": "custom_tool_call_output",
        "local_shell_call": "local_shell_call_output",
        "shell_call": "shell_call_output",
        "apply_patch_call": "apply_patch_call_output",
    }
    for kind, answer in kinds.items():
        path = made(tmp_path / f"{kind}.db", [USER, {"type": kind, "call_id": "c1", "name": "x", "input": "?"}])
        assert evidence(only(path)[1]) == {"c1": "requested"}
        assert not repaired(path, tmp_path / f"{kind}-out.db").open
        assert (
            rows(tmp_path / f"{kind}-out.db")[-1]["type"],
            UNKNOWN_TEXT in json.dumps(rows(tmp_path / f"{kind}-out.db")),
        ) == (
            answer,
            True,
        )
    path = made(tmp_path / "computer.db", [USER, {"type": "computer_call", "call_id": "c1", "action": {}}])
    with pytest.raises(Refused, match="computer_call"):
        repaired(path, tmp_path / "out.db")
    assert not (tmp_path / "out.db").exists()


def test_calls_that_the_provider_runs_are_never_open(tmp_path: Path) -> None:
    served = {"type": "shell_call", "call_id": "s1", "environment": {"type": "container_reference"}}
    answer = {"type": "shell_call_output", "call_id": "s1", "output": []}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    diagnosis = only(made(tmp_path / "s.db", [USER, served, answer, search, SAID]))[1]
    assert (diagnosis.verdict, diagnosis.calls, diagnosis.damage) == ("clean", 0, ())


def test_ids_that_are_used_again_are_answered_where_they_are_open(tmp_path: Path) -> None:
    path = made(tmp_path / "s.db", [USER, CALL, output("c1"), SAID, USER, CALL, USER, SAID])
    diagnosis = only(path)[1]
    assert (diagnosis.calls, diagnosis.answered, evidence(diagnosis)) == (2, 1, {"c1": "requested"})
    assert repaired(path, tmp_path / "out.db").verdict == "clean"
    assert [item.get("output") for item in rows(tmp_path / "out.db")] == [
        *(None, None, "charged 5", None, None, None),
        *(UNKNOWN_TEXT, None, None),
    ]


def test_f29_what_the_model_reasoned_goes_on_as_it_was_ahead_of_its_call(tmp_path: Path) -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "b3BhcXVl"}
    path = made(tmp_path / "s.db", [USER, reasoning, CALL | {"id": "fc_1"}])
    assert repaired(path, tmp_path / "out.db").verdict == "clean"
    messages = render(imported(only(tmp_path / "out.db")[0]), "openai-responses").messages
    assert [item.get("type", "message") for item in messages] == [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert messages[1]["encrypted_content"] == "b3BhcXVl"


def test_f06_an_output_whose_call_was_never_saved_is_damage(tmp_path: Path) -> None:
    diagnosis = only(made(tmp_path / "s.db", [USER, output("c9"), SAID]))[1]
    assert [fault.kind for fault in diagnosis.damage] == ["orphan_result"]


def test_rows_that_are_no_items_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    odd = ['{"type": "function_call", "call', '{"odd": 1}', "\\0\\0", {"type": "hologram", "id": "h"}]
    path = made(tmp_path / "s.db", [USER, *odd, CALL])
    found, diagnosis = only(path)
    assert evidence(diagnosis) == {"c1": "requested"}
    assert [(fault.kind, fault.place) for fault in diagnosis.damage] == [("corrupt", "row 2"), ("corrupt", "row 4")]
    assert diagnosis.unknown == {"row that is no item": 1}
    assert imported(found)
    assert repaired(path, tmp_path / "out.db").open == ()


def test_the_last_row_cut_at_any_byte_is_damage_and_loses_nothing_else(tmp_path: Path) -> None:
    text = json.dumps(output("c1"))
    for size in range(1, len(text)):
        diagnosis = only(made(tmp_path / "s.db", [USER, CALL, text[:size]]))[1]
        assert evidence(diagnosis) == {"c1": "requested"}
        assert [fault.kind for fault in diagnosis.damage] == ["corrupt"]


def test_two_pairs_of_tables_in_one_database_are_told_apart(tmp_path: Path) -> None:
    path = made(tmp_path / "s.db", [USER, SAID])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute('CREATE TABLE "odd ""name" AS SELECT * FROM agent_messages')
        connection.execute('INSERT INTO "odd ""name" VALUES (3, ?, ?, NULL)', ("s0", json.dumps(CALL)))
    found = sessions(path)
    assert [(one.session, diagnose(one).verdict) for one in found] == [
        ("agent_messages/s0", "clean"),
        ('odd "name/s0', "interrupted"),
    ]


def test_a_database_of_something_else_is_not_taken_for_one(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE agent_messages (id INTEGER, session_id TEXT, body TEXT, created_at TEXT)")
        connection.execute("CREATE TABLE agent_sessions (session_id TEXT, created_at TEXT, updated_at TEXT)")
    (diagnosis,) = examine([path])
    assert (diagnosis.format, diagnosis.verdict) == (None, "unreadable")


def test_a_branch_has_its_own_rows_and_not_those_of_the_other(tmp_path: Path) -> None:
    found, diagnosis = only(scene("branches", tmp_path))
    assert [(call.id, call.run) for call in diagnosis.open] == [("call_charge", "second")]
    assert (diagnosis.calls, diagnosis.answered) == (4, 3)
    said = [item for item in found.format.read(found, "whole") if isinstance(item, Said)]
    assert [item.type for item in said if item.run == "second"] == ["user_message", "assistant_message"]
    assert all(item.time is not None for item in said)


@pytest.mark.parametrize("name", VERDICTS)
def test_an_import_owes_what_is_open_and_can_be_sent(name: str, tmp_path: Path) -> None:
    for found in sessions(scene(name, tmp_path)):
        left = evidence(diagnose(found))
        assert sorted(owed(found)) == sorted(id for id, proved in left.items() if proved != "waiting")
        for target in ("openai-responses", "anthropic", "openai-chat"):
            problems = {problem.code for problem in refused(found, target)}
            assert problems <= ({"empty_message"} if name == "encrypted" else set()), target
