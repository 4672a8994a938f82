"""opencode: parts that are overwritten in place, in its database, its older tree of files, and its exports."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.formats.databases import database
from tests.formats.seen import diagnosis_of, imported, open_ids, repaired
from turnwal.core.errors import Refused
from turnwal.core.recovery import plan
from turnwal.transcript.check import check
from turnwal.transcript.render import render

Part = dict[str, Any]
Message = tuple[str, list[Part]]

SCHEMA = """
create table session (id text primary key, project_id text not null, parent_id text, slug text not null,
    directory text not null, title text not null, version text not null, time_created integer, time_updated integer);
create table message (id text primary key, session_id text not null, time_created integer, data text not null);
create table part (id text primary key, message_id text not null, session_id text not null, time_created integer,
    data text not null);
"""


def tool(id: str, status: str, **state: Any) -> Part:
    return {
        "type": "tool",
        "callID": id,
        "tool": "bash",
        "state": {"status": status, "input": {"command": "make"}, **state},
    }


def done(id: str) -> Part:
    return tool(id, "completed", output="done", title="make", metadata={}, time={"start": 1, "end": 2})


def text(words: str) -> Part:
    return {"type": "text", "text": words}


USER: Message = ("user", [text("go")])
HEALTHY: list[Message] = [
    USER,
    ("assistant", [{"type": "step-start"}, text("ok"), done("c1"), {"type": "step-finish", "reason": "tool-calls"}]),
    ("assistant", [done("c2"), done("c3")]),
    ("assistant", [text("finished")]),
]


def info_of(number: int, role: str) -> Part:
    return {"role": role, "time": {"created": 1767225600000 + number}, "modelID": "m", "providerID": "p"}


def stored(path: Path, messages: list[Message]) -> Path:
    def fill(connection: sqlite3.Connection) -> None:
        connection.execute("insert into session values ('ses_1', 'p', null, 's', '/w', 't', '1.2.3', 1, 2)")
        for number, (role, parts) in enumerate(messages):
            id = f"msg_{number}"
            connection.execute("insert into message values (?, 'ses_1', 1, ?)", (id, json.dumps(info_of(number, role))))
            for at, part in enumerate(parts):
                values = (f"prt_{number}_{at:03}", id, json.dumps(part))
                connection.execute("insert into part values (?, ?, 'ses_1', 1, ?)", values)

    return database(path, SCHEMA, fill)


def treed(path: Path, messages: list[Message]) -> Path:
    def write(file: Path, value: Part) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value))

    write(path / "session" / "p" / "ses_1.json", {"id": "ses_1", "version": "0.9", "projectID": "p"})
    (path / "part").mkdir(exist_ok=True)
    (path / "message").mkdir(exist_ok=True)
    for number, (role, parts) in enumerate(messages):
        id = f"msg_{number}"
        write(path / "message" / "ses_1" / f"{id}.json", {"id": id, "sessionID": "ses_1", **info_of(number, role)})
        for at, part in enumerate(parts):
            write(path / "part" / id / f"prt_{at:03}.json", {"id": f"prt_{at:03}", "messageID": id, **part})
    return path


def exported(path: Path, messages: list[Message]) -> Path:
    told: list[Part] = [
        {
            "info": {"id": f"msg_{number}", **info_of(number, role)},
            "parts": [{"id": f"prt_{number}_{at:03}", **part} for at, part in enumerate(parts)],
        }
        for number, (role, parts) in enumerate(messages)
    ]
    path.write_text(json.dumps({"info": {"id": "ses_1", "version": "1.2.3"}, "messages": told}))
    return path


stores = pytest.mark.parametrize("store", [stored, treed, exported])


@stores
def test_a_healthy_session_gets_no_alarm(tmp_path: Path, store: Any) -> None:
    seen = diagnosis_of(store(tmp_path / "x", HEALTHY))
    assert (seen.format, seen.verdict, seen.session) == ("opencode", "clean", "ses_1")
    assert (seen.calls, seen.answered, seen.open, seen.damage, dict(seen.unknown)) == (3, 3, (), (), {})


@stores
def test_f02_a_state_that_never_ended_says_how_far_the_call_came(tmp_path: Path, store: Any) -> None:
    parts = [done("c1"), tool("c2", "running", time={"start": 1}), tool("c3", "pending", raw="")]
    seen = diagnosis_of(store(tmp_path / "x", [USER, ("assistant", parts)]))
    assert (seen.verdict, seen.answered) == ("interrupted", 1)
    assert [(call.id, call.evidence, call.risk) for call in seen.open] == [
        ("c2", "dispatched", "tool_outcome_unknown"),
        ("c3", "requested", "tool_outcome_unknown"),
    ]
    assert any("running" in each for each in seen.open[0].because)


@stores
@pytest.mark.parametrize("error", ["Tool execution aborted", "Tool execution was interrupted"])
def test_f13_what_a_later_clean_up_wrote_is_no_outcome(tmp_path: Path, store: Any, error: str) -> None:
    seen = diagnosis_of(store(tmp_path / "x", [USER, ("assistant", [tool("c1", "error", error=error)])]))
    assert [(call.id, call.evidence, call.risk) for call in seen.open] == [
        ("c1", "answered_synthetic", "tool_outcome_unknown")
    ]
    failed = diagnosis_of(store(tmp_path / "y", [USER, ("assistant", [tool("c1", "error", error="exit code 2")])]))
    assert failed.verdict == "clean"


@stores
def test_a_later_patch_shows_that_a_write_that_never_ended_had_its_effect(tmp_path: Path, store: Any) -> None:
    write = tool("c1", "running", time={"start": 1})
    write["state"]["input"] = {"filePath": "/w/a.txt"}
    patch = {"type": "patch", "hash": "h", "files": ["/w/a.txt"]}
    seen = diagnosis_of(store(tmp_path / "x", [USER, ("assistant", [write]), ("assistant", [patch])]))
    assert any("/w/a.txt" in each for each in seen.open[0].because)


@stores
def test_the_copy_is_an_export_in_which_every_call_has_ended(tmp_path: Path, store: Any) -> None:
    parts = [
        done("c1"),
        tool("c2", "running"),
        tool("c3", "pending"),
        tool("c4", "error", error="Tool execution aborted"),
    ]
    path = store(tmp_path / "x", [USER, ("assistant", parts), ("user", [text("and now?")])])
    out = repaired(path, tmp_path / "out.json")
    seen = diagnosis_of(out)
    assert (seen.format, seen.verdict, seen.calls, seen.answered) == ("opencode", "clean", 4, 4)
    states = [part["state"] for part in json.loads(out.read_text())["messages"][1]["parts"]]
    assert [state["status"] for state in states] == ["completed", "error", "error", "error"]
    assert all("may have run" in state["error"] for state in states[1:])
    again = repaired(out, tmp_path / "again.json")
    assert again.read_bytes() == out.read_bytes()
    assert replace(diagnosis_of(again), path=str(out)) == seen


@stores
def test_f08_a_killed_call_of_an_id_that_was_answered_is_another_call(tmp_path: Path, store: Any) -> None:
    path = store(tmp_path / "x", [*HEALTHY, USER, ("assistant", [tool("c1", "running")])])
    seen = diagnosis_of(path)
    assert (seen.calls, seen.answered, open_ids(seen)) == (4, 3, ["c1"])
    assert [repair.data["id"] for repair in plan(imported(path)).lost_calls()] == ["c1"]


@stores
def test_what_is_imported_owes_what_doctor_names_and_goes_out_valid(tmp_path: Path, store: Any) -> None:
    parts = [done("c1"), tool("c2", "running"), tool("c3", "error", error="Tool execution aborted")]
    path = store(tmp_path / "x", [*HEALTHY, USER, ("assistant", parts)])
    log = imported(path)
    assert [repair.data["id"] for repair in plan(log).lost_calls()] == open_ids(diagnosis_of(path)) == ["c2", "c3"]
    messages = render(log, "anthropic").messages
    assert check("anthropic", messages) == []
    assert "aborted" not in json.dumps(messages)


NEWER = """
create table session_message (id text primary key, session_id text not null, type text not null, seq integer not null,
    time_created integer, time_updated integer, data text not null);
"""


def newer(path: Path, old: list[Message], *, also: str = "") -> Path:
    """A database of the second version: its messages are in a table of its own."""
    stored(path, old)
    runs = {"type": "tool", "id": "c9", "name": "bash", "state": {"status": "running", "input": {"command": "rm x"}}}
    connection = sqlite3.connect(path)
    with connection:
        connection.executescript(NEWER + also)
        values = ("msg_9", "ses_1", "assistant", json.dumps({"content": [runs]}))
        connection.execute("insert into session_message values (?, ?, ?, 1, 1, 1, ?)", values)
    connection.close()
    return path


def test_f39_a_session_of_the_second_version_is_too_new_not_clean(tmp_path: Path) -> None:
    seen = diagnosis_of(newer(tmp_path / "x", []))
    assert (seen.format, seen.verdict, [fault.kind for fault in seen.damage]) == ("opencode", "too_new", ["too_new"])
    seen = diagnosis_of(newer(tmp_path / "y", [USER, ("assistant", [tool("c1", "running")])]))
    assert (seen.verdict, open_ids(seen)) == ("too_new", ["c1"])
    seen = diagnosis_of(newer(tmp_path / "z", [], also="drop table message; drop table part;"))
    assert (seen.format, seen.verdict, seen.calls) == ("opencode", "too_new", 0)


def test_a_table_of_the_second_version_that_has_nothing_of_a_session_is_no_alarm(tmp_path: Path) -> None:
    path = newer(tmp_path / "x", HEALTHY)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("update session_message set session_id = 'ses_2'")
    connection.close()
    assert diagnosis_of(path).verdict == "clean"


@stores
@pytest.mark.parametrize("end", range(1, len(HEALTHY) + 1))
def test_a_session_that_ends_between_two_messages_is_clean(tmp_path: Path, store: Any, end: int) -> None:
    assert diagnosis_of(store(tmp_path / "x", HEALTHY[:end])).verdict == "clean"


@stores
def test_parts_and_states_of_unknown_types_are_counted_and_named(tmp_path: Path, store: Any) -> None:
    parts = [{"type": "hologram"}, tool("c1", "dreaming")]
    seen = diagnosis_of(store(tmp_path / "x", [USER, ("assistant", parts)]))
    assert dict(seen.unknown) == {"hologram": 1, "tool state dreaming": 1}
    assert open_ids(seen) == ["c1"]


@stores
def test_f08_an_id_that_is_used_again_is_a_call_of_its_own(tmp_path: Path, store: Any) -> None:
    path = store(tmp_path / "x", [*HEALTHY, USER, ("assistant", [done("c1")]), ("assistant", [tool("c1", "running")])])
    seen = diagnosis_of(path)
    assert (seen.calls, seen.answered, open_ids(seen), seen.damage) == (5, 4, ["c1"], ())
    out = repaired(path, tmp_path / "out.json")
    after = diagnosis_of(out)
    assert (after.verdict, after.calls, after.answered, after.damage) == ("clean", 5, 5, ())
    states = [
        part["state"]["status"]
        for each in json.loads(out.read_text())["messages"]
        for part in each["parts"][:1]
        if "state" in part
    ]
    assert states == ["completed", "completed", "error"]


@stores
def test_f35_half_a_pair_of_surrogates_costs_no_part(tmp_path: Path, store: Any) -> None:
    # as JSON.stringify writes what was cut inside an emoji
    ran, runs = done("c1"), tool("c2", "running")
    ran["state"]["output"] = "ok \ud83d"
    runs["state"]["input"] = {"command": "echo \ud83d; rm -rf x"}
    healthy = diagnosis_of(store(tmp_path / "x", [USER, ("assistant", [ran])]))
    assert (healthy.verdict, healthy.damage) == ("clean", ())
    path = store(tmp_path / "y", [USER, ("assistant", [ran, runs])])
    seen = diagnosis_of(path)
    assert (seen.verdict, open_ids(seen), seen.answered, seen.damage) == ("interrupted", ["c2"], 1, ())
    assert "rm -rf x" in str(seen.open[0].arguments)
    out = repaired(path, tmp_path / "out.json")
    parts = json.loads(out.read_text())["messages"][1]["parts"]
    assert [part["state"]["input"] for part in parts] == [ran["state"]["input"], runs["state"]["input"]]
    assert (parts[0]["state"]["output"], parts[1]["state"]["status"]) == ("ok \ud83d", "error")
    assert diagnosis_of(out).verdict == "clean"


@stores
def test_a_state_that_is_not_known_is_ended_in_the_copy(tmp_path: Path, store: Any) -> None:
    bare = {"type": "tool", "callID": "c2", "tool": "bash"}
    out = repaired(store(tmp_path / "x", [USER, ("assistant", [tool("c1", "suspended"), bare])]), tmp_path / "out.json")
    seen = diagnosis_of(out)
    assert (seen.verdict, seen.calls, seen.answered, dict(seen.unknown)) == ("clean", 2, 2, {})


@stores
def test_an_error_of_the_system_is_an_outcome(tmp_path: Path, store: Any) -> None:
    error = "Interrupted system call (os error 4)"
    path = store(tmp_path / "x", [USER, ("assistant", [tool("c1", "error", error=error)])])
    assert diagnosis_of(path).verdict == "clean"
    state = json.loads(repaired(path, tmp_path / "out").read_text())["messages"][1]["parts"][0]["state"]
    assert state["error"] == error
    alone = diagnosis_of(store(tmp_path / "y", [USER, ("assistant", [tool("c1", "error", error="Interrupted")])]))
    assert [call.evidence for call in alone.open] == ["answered_synthetic"]


@pytest.mark.parametrize("odd", [None, 5, "x", {"info": {}}, {"info": 5, "parts": []}, {"info": {}, "parts": ["x"]}])
def test_an_odd_message_of_an_export_is_named_and_the_others_are_read(tmp_path: Path, odd: Any) -> None:
    path = exported(tmp_path / "x", [USER, ("assistant", [tool("c1", "running")])])
    whole = json.loads(path.read_text())
    whole["messages"].insert(1, odd)
    path.write_text(json.dumps(whole))
    seen = diagnosis_of(path)
    assert [(fault.kind, fault.place) for fault in seen.damage] == [("corrupt", "messages[1]")]
    assert open_ids(seen) == ["c1"]
    after = diagnosis_of(repaired(path, tmp_path / "out.json"))
    assert (after.verdict, after.calls, after.answered) == ("clean", 1, 1)


def test_messages_that_are_no_list_and_times_that_are_no_time_are_borne(tmp_path: Path) -> None:
    path = exported(tmp_path / "x", [("assistant", [tool("c1", "running")])])
    whole = json.loads(path.read_text())
    whole["messages"][0]["info"]["time"] = {"created": float("inf")}
    path.write_text(json.dumps(whole))
    assert [repair.data["id"] for repair in plan(imported(path)).lost_calls()] == open_ids(diagnosis_of(path)) == ["c1"]
    path.write_text(json.dumps(whole | {"messages": 5}))
    assert [fault.place for fault in diagnosis_of(path).damage] == ["messages"]


def test_the_copy_of_a_healthy_export_has_all_that_it_has(tmp_path: Path) -> None:
    path = exported(tmp_path / "x", HEALTHY)
    whole = json.loads(path.read_text()) | {"share": {"url": "u"}, "x": None}
    path.write_text(json.dumps(whole))
    assert json.loads(repaired(path, tmp_path / "out.json").read_text()) == whole


WHOLE_SCHEMA = SCHEMA.replace(
    "time_created integer, time_updated integer);",
    """time_created integer, time_updated integer, workspace_id text, path text, share_url text,
    summary_additions integer, summary_deletions integer, summary_files integer, summary_diffs text, metadata text,
    cost real not null default 0, tokens_input integer not null default 0, tokens_output integer not null default 0,
    tokens_reasoning integer not null default 0, tokens_cache_read integer not null default 0,
    tokens_cache_write integer not null default 0, revert text, permission text, agent text, model text,
    time_compacting integer, time_archived integer, time_suspended integer);""",
    1,
)
COLUMNS: Part = {
    "id": "ses_1",
    "project_id": "p",
    "parent_id": "ses_0",
    "slug": "s",
    "directory": "/w",
    "title": "t",
    "version": "1.2.3",
    "time_created": 1,
    "time_updated": 2,
    "workspace_id": "wrk_1",
    "path": "a/b",
    "share_url": "https://opncd.ai/share/x",
    "summary_additions": 3,
    "summary_deletions": 4,
    "summary_files": 1,
    "summary_diffs": '[{"file":"a","patch":"p","additions":3,"deletions":4}]',
    "metadata": '{"k":[1]}',
    "cost": 0.25,
    "tokens_input": 10,
    "tokens_output": 11,
    "tokens_reasoning": 12,
    "tokens_cache_read": 13,
    "tokens_cache_write": 14,
    "revert": '{"messageID":"msg_1","snapshot":"abc"}',
    "permission": '[{"permission":"bash","pattern":"*","action":"deny"}]',
    "agent": "build",
    "model": '{"id":"m","providerID":"p"}',
    "time_compacting": 5,
    "time_archived": 6,
}


def described(path: Path, columns: Part) -> Path:
    """A database of the newest known schema with a session in which a call was killed."""

    def fill(connection: sqlite3.Connection) -> None:
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        connection.execute(f"insert into session ({names}) values ({marks})", list(columns.values()))  # noqa: S608
        for table, values in (
            ("message", ("msg_1", "ses_1", 1, json.dumps(info_of(1, "assistant")))),
            ("part", ("prt_1", "msg_1", "ses_1", 1, json.dumps(tool("c1", "running")))),
        ):
            connection.execute(f"insert into {table} values ({', '.join('?' * len(values))})", values)  # noqa: S608

    return database(path, WHOLE_SCHEMA, fill)


def test_the_copy_has_all_that_a_session_of_a_database_says_of_itself(tmp_path: Path) -> None:
    path = described(tmp_path / "x", COLUMNS)
    assert dict(diagnosis_of(path).unknown) == {}
    assert json.loads(repaired(path, tmp_path / "out.json").read_text())["info"] == {
        "id": "ses_1",
        "projectID": "p",
        "workspaceID": "wrk_1",
        "parentID": "ses_0",
        "slug": "s",
        "directory": "/w",
        "path": "a/b",
        "title": "t",
        "version": "1.2.3",
        "agent": "build",
        "model": {"id": "m", "providerID": "p"},
        "share": {"url": "https://opncd.ai/share/x"},
        "summary": {
            "additions": 3,
            "deletions": 4,
            "files": 1,
            "diffs": [{"file": "a", "patch": "p", "additions": 3, "deletions": 4}],
        },
        "cost": 0.25,
        "tokens": {"input": 10, "output": 11, "reasoning": 12, "cache": {"read": 13, "write": 14}},
        "metadata": {"k": [1]},
        "revert": {"messageID": "msg_1", "snapshot": "abc"},
        "permission": [{"permission": "bash", "pattern": "*", "action": "deny"}],
        "time": {"created": 1, "updated": 2, "compacting": 5, "archived": 6},
    }


def test_what_is_null_is_not_in_the_copy_and_a_summary_has_all_its_counts(tmp_path: Path) -> None:
    some = {name: value for name, value in COLUMNS.items() if name not in ("revert", "permission", "share_url")}
    some |= {"summary_deletions": None, "summary_diffs": None, "metadata": "null"}
    info = json.loads(repaired(described(tmp_path / "x", some), tmp_path / "out.json").read_text())["info"]
    assert info.keys().isdisjoint({"revert", "permission", "share", "metadata"})
    assert info["summary"] == {"additions": 3, "deletions": 0, "files": 1}


def test_a_column_that_an_export_has_no_place_for_is_named(tmp_path: Path) -> None:
    seen = diagnosis_of(described(tmp_path / "x", COLUMNS | {"time_suspended": 7}))
    assert dict(seen.unknown) == {"column time_suspended": 1}
    assert open_ids(seen) == ["c1"]


def test_a_column_that_is_no_json_is_named_and_the_others_are_in_the_copy(tmp_path: Path) -> None:
    path = described(tmp_path / "x", COLUMNS | {"revert": '{"messageID'})
    assert [(fault.kind, fault.what) for fault in diagnosis_of(path).damage] == [("corrupt", "its revert is no JSON")]
    info = json.loads(repaired(path, tmp_path / "out.json").read_text())["info"]
    assert "revert" not in info
    assert info["model"] == {"id": "m", "providerID": "p"}


def test_a_file_of_the_tree_that_is_torn_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    path = treed(tmp_path / "x", HEALTHY)
    file = path / "part" / "msg_2" / "prt_001.json"
    whole = file.read_bytes()
    for end in range(len(whole)):
        file.write_bytes(whole[:end])
        seen = diagnosis_of(path)
        assert ([fault.kind for fault in seen.damage], seen.answered) == (["torn"], 2)


@pytest.mark.parametrize("left", [b"", b'{"id":"ses', b"[]"])
def test_a_torn_session_of_the_tree_hides_none_of_its_messages(tmp_path: Path, left: bytes) -> None:
    path = treed(tmp_path / "x", [USER, ("assistant", [done("c1"), tool("c2", "running")])])
    (path / "session" / "p" / "ses_1.json").write_bytes(left)
    seen = diagnosis_of(path)
    assert (seen.verdict, seen.session, open_ids(seen), seen.answered) == ("interrupted", "ses_1", ["c2"], 1)
    assert [(fault.kind, fault.place) for fault in seen.damage] == [("torn", "ses_1.json")]
    assert [repair.data["id"] for repair in plan(imported(path)).lost_calls()] == ["c2"]
    with pytest.raises(Refused, match=r"ses_1\.json"):
        repaired(path, tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()


def test_a_row_that_is_no_json_is_named(tmp_path: Path) -> None:
    path = stored(tmp_path / "x", HEALTHY)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("update part set data = '{\"type' where id = 'prt_2_001'")
    connection.close()
    seen = diagnosis_of(path)
    assert ([fault.place for fault in seen.damage], seen.answered) == (["part prt_2_001"], 2)


@stores
def test_f08_a_call_that_is_asked_for_again_does_not_hide_the_one_that_was_killed(tmp_path: Path, store: Any) -> None:
    path = store(tmp_path / "x", [USER, ("assistant", [tool("c1", "running")]), USER, ("assistant", [done("c1")])])
    seen = diagnosis_of(path)
    assert (seen.calls, seen.answered, open_ids(seen)) == (2, 1, ["c1"])
    assert [repair.data["id"] for repair in plan(imported(path)).lost_calls()] == ["c1"]
