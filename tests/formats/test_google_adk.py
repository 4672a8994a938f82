"""Google ADK: databases that its session services have left, killed inside a tool and gone on with."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.formats.databases import held
from tests.formats.seen import DATA, diagnosis_of, imported, open_ids, repaired, untouched
from turnwal.core.errors import Refused
from turnwal.core.recovery import plan
from turnwal.formats import examine
from turnwal.formats.wording import MARK, UNKNOWN_TEXT
from turnwal.transcript.check import check
from turnwal.transcript.render import render

Event = dict[str, Any]

USER = "eu/u 1"
KINDS = pytest.mark.parametrize("kind", ["v1", "sqlite"])


def run(path: Path, statement: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, values).fetchall()


def taken(kind: str, scene: str, to: Path) -> Path:
    """A database that ADK wrote, with one session of it."""
    to.mkdir(exist_ok=True)
    path = Path(shutil.copyfile(DATA / "google_adk" / f"{kind}.db", to / f"{kind}-{scene}.db"))
    run(path, "delete from events where session_id <> ?", scene)
    run(path, "delete from sessions where id <> ?", scene)
    return path


def stored(path: Path) -> list[Event]:
    """The events in the order of their times, each of which has its id and its time in itself."""
    rows = run(path, "select id, timestamp, event_data from events order by timestamp")
    found: list[Event] = [json.loads(data) for _, _, data in rows]
    assert [event["id"] for event in found] == [id for id, _, _ in rows]
    for (_, stamp, _), event in zip(rows, found, strict=True):
        if isinstance(stamp, float):
            assert stamp == event["timestamp"]
    return found


def put(path: Path, *parts: Event, author: str = "clerk", later: int = 1, **more: Any) -> None:
    """Add an event, so many seconds behind the last one."""
    last = stored(path)[-1]
    (row,) = run(path, "select app_name, user_id, session_id, max(timestamp) from events")
    event = {"content": {"parts": parts, "role": "user" if author == "user" else "model"}, "author": author}
    event |= {"id": f"put-{later}-{last['id']}"[:60], "invocation_id": "e", "timestamp": last["timestamp"] + later}
    stamp = row[3] + later if isinstance(row[3], float) else f"2030-01-01 00:00:{later:02}.000000"
    event |= more
    values = (event["id"], *row[:3], event["invocation_id"], stamp, json.dumps(event))
    columns = "id, app_name, user_id, session_id, invocation_id, timestamp, event_data"
    run(path, f"insert into events ({columns}) values (?, ?, ?, ?, ?, ?, ?)", *values)  # noqa: S608 - fixed words


def call(id: str, name: str = "charge") -> Event:
    return {"function_call": {"id": id, "name": name, "args": {"amount": 5}}}


def response(id: str, name: str = "charge", **said: Any) -> Event:
    return {"function_response": {"id": id, "name": name, "response": said or {"result": "done"}}}


def answer(id: str, name: str = "charge") -> Event:
    return response(id, name, error=UNKNOWN_TEXT)


@KINDS
def test_a_healthy_session_gets_no_alarm(tmp_path: Path, kind: str) -> None:
    seen = diagnosis_of(taken(kind, "healthy", tmp_path))
    assert (seen.format, seen.verdict, seen.version) == ("google_adk", "clean", "1")
    assert (seen.calls, seen.answered, seen.open, seen.damage, dict(seen.unknown)) == (3, 3, (), (), {})
    assert seen.on_resume == "continues"


def test_each_session_of_a_database_is_one_and_is_named_by_all_that_names_it() -> None:
    path = DATA / "google_adk" / "v1.db"
    with untouched(path):
        seen = {str(each.session): each.verdict for each in examine([path])}
    assert seen == {
        "shop/eu%2Fu%201/again": "interrupted",
        "shop/eu%2Fu%201/confirmed": "interrupted",
        "shop/eu%2Fu%201/confirming": "waiting",
        "shop/eu%2Fu%201/delivered": "clean",
        "shop/eu%2Fu%201/healthy": "clean",
        "shop/eu%2Fu%201/ordered": "waiting",
        "shop/eu%2Fu%201/rejected": "clean",
        "shop/eu%2Fu%201/resumed": "interrupted",
        "shop/eu%2Fu%201/reused": "interrupted",
        "shop/eu%2Fu%201/sibling": "interrupted",
        "shop/eu%2Fu%201/single": "interrupted",
    }


def test_sessions_whose_names_would_be_one_text_are_told_apart(tmp_path: Path) -> None:
    path = taken("v1", "single", tmp_path)
    run(path, "update sessions set app_name = 'a', user_id = 'b/c', id = 'd'")
    run(path, "update events set app_name = 'a', user_id = 'b/c', session_id = 'd'")
    run(path, "insert into sessions select 'a/b', 'c', 'd', state, create_time, update_time from sessions")
    first, second = examine([path])
    assert [(each.session, open_ids(each)) for each in (first, second)] == [
        ("a/b%2Fc/d", ["charge_1"]),
        ("a%2Fb/c/d", []),
    ]


@pytest.mark.parametrize("kind", ["v1", "sqlite", "v0"])
def test_cut_after_any_event_it_names_the_calls_that_were_open_there(tmp_path: Path, kind: str) -> None:
    path = taken(kind, "healthy", tmp_path)
    column = "content" if kind == "v0" else "json_extract(event_data, '$.content')"
    rows = run(path, f"select id, {column} from events order by timestamp desc")  # noqa: S608 - fixed words
    met = set()
    while rows:
        asked: list[str] = []
        for _, content in reversed(rows):
            for part in json.loads(content)["parts"]:
                if "function_call" in part:
                    asked.append(part["function_call"]["id"])
                elif "function_response" in part:
                    asked.remove(part["function_response"]["id"])
        seen = diagnosis_of(path)
        assert open_ids(seen) == asked
        assert seen.on_resume == ("hides" if asked else "continues")
        met.add(tuple(asked))
        run(path, "delete from events where id = ?", rows.pop(0)[0])
    assert met == {(), ("look_1",), ("look_2", "look_3")}


@KINDS
def test_f01_a_call_whose_process_was_killed_may_have_run_and_so_may_its_finished_sibling(
    tmp_path: Path, kind: str
) -> None:
    path = taken(kind, "sibling", tmp_path)
    seen = diagnosis_of(path)
    assert [(each.id, each.evidence, each.risk) for each in seen.open] == [
        ("look_4", "requested", "tool_outcome_unknown"),
        ("charge_1", "requested", "tool_outcome_unknown"),
    ]
    before = stored(path)
    out = repaired(path, tmp_path / "out.db")
    *same, made = stored(out)
    assert same == before
    assert made["content"] == {"role": "user", "parts": [answer("look_4", "look"), answer("charge_1")]}
    assert {name: made[name] for name in ("invocation_id", "author", "node_info")} == {
        name: before[-1][name] for name in ("invocation_id", "author", "node_info")
    }
    assert made["custom_metadata"] == {MARK: True}
    assert made["timestamp"] == pytest.approx(before[-1]["timestamp"] + 0.001, abs=2e-6)
    assert run(out, "select update_time from sessions") == run(out, "select max(timestamp) from events")
    assert diagnosis_of(out).verdict == "clean"


def test_what_decides_who_sees_an_event_is_that_of_the_event_that_asks(tmp_path: Path) -> None:
    path = taken("v1", "healthy", tmp_path)
    put(path, call("c1"), author="left", later=1, branch="root.left", isolation_scope="s1", invocation_id="e-1")
    put(path, call("c2"), call("c3"), author="right", later=2, branch="root.right")
    put(path, {"text": "done"}, response("c2"), author="right", later=3, branch="root.right")
    before = len(stored(path))
    left, right = stored(repaired(path, tmp_path / "out.db"))[before:]
    assert left["content"]["parts"] == [answer("c1")]
    assert (left["author"], left["branch"], left["isolation_scope"]) == ("left", "root.left", "s1")
    assert right["content"]["parts"] == [answer("c3")]
    assert (right["author"], right["branch"]) == ("right", "root.right")
    assert "isolation_scope" not in right
    assert [each.run for each in diagnosis_of(path).open] == ["root.left", "root.right"]


def test_a_session_that_went_on_without_the_call_still_owes_it(tmp_path: Path) -> None:
    path = taken("v1", "resumed", tmp_path)
    assert open_ids(diagnosis_of(path)) == ["look_4", "charge_1"]
    assert diagnosis_of(repaired(path, tmp_path / "out.db")).verdict == "clean"


def test_f28_a_call_that_a_person_has_not_agreed_to_waits(tmp_path: Path) -> None:
    path = taken("v1", "confirming", tmp_path)
    seen = diagnosis_of(path)
    assert [(each.id, each.evidence, each.risk) for each in seen.open] == [("charge_1", "waiting", None)]
    assert stored(repaired(path, tmp_path / "out.db")) == stored(path)


@KINDS
def test_f28_a_call_that_a_person_has_agreed_to_may_have_run(tmp_path: Path, kind: str) -> None:
    path = taken(kind, "confirmed", tmp_path)
    seen = diagnosis_of(path)
    assert [(each.id, each.evidence, each.risk) for each in seen.open] == [
        ("charge_1", "dispatched", "tool_outcome_unknown")
    ]
    assert any("a person agreed" in each for each in seen.open[0].because)
    assert stored(repaired(path, tmp_path / "out.db"))[-1]["content"]["parts"] == [answer("charge_1")]


@pytest.mark.parametrize("said", [{"confirmed": False}, {"response": '{"confirmed": false}'}])
def test_f28_a_call_that_a_person_has_refused_has_not_run(tmp_path: Path, said: Event) -> None:
    path = taken("v1", "confirming", tmp_path)
    (asked,) = stored(path)[-1]["content"]["parts"]
    put(path, response(asked["function_call"]["id"], "adk_request_confirmation", **said), author="user")
    assert diagnosis_of(path).verdict == "waiting"
    assert diagnosis_of(taken("v1", "rejected", tmp_path)).verdict == "clean"


@pytest.mark.parametrize("name", ["function_call_id", "functionCallId"])
def test_a_call_that_needs_credentials_waits_until_they_are_there(tmp_path: Path, name: str) -> None:
    path = taken("v1", "single", tmp_path)
    asks = {"function_call": {"id": "ask", "name": "adk_request_credential", "args": {name: "charge_1"}}}
    pending = response("charge_1", result="Pending User Authorization.")
    put(path, asks, later=1, long_running_tool_ids=["ask"])
    put(path, pending, later=2, actions={"requested_auth_configs": {"charge_1": {}}})
    assert diagnosis_of(path).verdict == "waiting"
    put(path, response("ask", "adk_request_credential", scheme="s"), author="user", later=3)
    assert [each.evidence for each in diagnosis_of(path).open] == ["dispatched"]
    put(path, response("charge_1"), later=4)
    seen = diagnosis_of(path)
    assert (seen.verdict, seen.calls, seen.damage) == ("clean", 1, ())


@pytest.mark.parametrize("kind", ["v1", "v0"])
def test_a_call_that_runs_long_waits_by_design_until_it_has_responded(tmp_path: Path, kind: str) -> None:
    seen = diagnosis_of(taken(kind, "ordered", tmp_path))
    assert (seen.verdict, seen.calls, seen.answered) == ("waiting", 2, 1)
    assert [(each.id, each.evidence, each.risk) for each in seen.open] == [("ask_1", "waiting", None)]


def test_a_second_response_of_a_call_that_runs_long_is_its_result(tmp_path: Path) -> None:
    path = taken("v1", "delivered", tmp_path)
    seen = diagnosis_of(path)
    assert (seen.verdict, seen.answered, seen.damage) == ("clean", 1, ())
    messages = render(imported(path), "openai-chat").messages
    assert [each["content"] for each in messages if each["role"] == "tool"] == ['{"status":"delivered"}']


def test_f07_a_second_response_of_any_other_call_is_named(tmp_path: Path) -> None:
    path = taken("v1", "healthy", tmp_path)
    put(path, response("look_1"))
    seen = diagnosis_of(path)
    assert (seen.verdict, [fault.kind for fault in seen.damage]) == ("clean", ["duplicate"])


def test_responses_of_the_same_time_as_their_calls_are_theirs_whichever_comes_first(tmp_path: Path) -> None:
    path = taken("v1", "healthy", tmp_path)
    run(path, "update events set timestamp = '2026-01-01 00:00:00.000000', id = 'x' || (100 - rowid)")
    seen = diagnosis_of(path)
    assert (seen.verdict, seen.calls, seen.answered, seen.damage) == ("clean", 3, 3, ())


@pytest.mark.parametrize("time", ["same", "backwards"])
def test_a_response_that_stands_before_its_call_is_that_of_the_call(tmp_path: Path, time: str) -> None:
    path = taken("v1", "healthy", tmp_path)
    put(path, response("late"), later=1, invocation_id="i")
    put(path, call("late"), later=1 if time == "same" else 2, invocation_id="i")
    seen = diagnosis_of(path)
    assert (seen.verdict, seen.calls, seen.answered, seen.damage) == ("clean", 4, 4, ())
    put(path, response("late"), later=3, invocation_id="i")
    seen = diagnosis_of(path)
    assert (seen.verdict, seen.answered, [fault.kind for fault in seen.damage]) == ("clean", 4, ["duplicate"])


def test_f06_a_response_of_nothing_is_named_and_answers_no_later_call(tmp_path: Path) -> None:
    path = taken("v1", "healthy", tmp_path)
    put(path, response("c9"), later=1, invocation_id="i")
    assert [fault.kind for fault in diagnosis_of(path).damage] == ["orphan_result"]
    put(path, call("c9"), later=2, invocation_id="j")
    seen = diagnosis_of(path)
    assert (open_ids(seen), [fault.kind for fault in seen.damage]) == (["c9"], ["orphan_result"])


def test_f08_a_killed_call_of_an_id_that_was_answered_is_another_call(tmp_path: Path) -> None:
    path = taken("v1", "reused", tmp_path)
    seen = diagnosis_of(path)
    assert (seen.verdict, seen.calls, seen.answered) == ("interrupted", 2, 1)
    assert [(each.id, each.name, each.evidence, each.risk) for each in seen.open] == [
        ("c0", "charge", "requested", "tool_outcome_unknown")
    ]
    out = repaired(path, tmp_path / "out.db")
    assert stored(out)[:-1] == stored(path)
    assert stored(out)[-1]["content"]["parts"] == [answer("c0")]
    assert diagnosis_of(out).verdict == "clean"
    assert [repair.data["id"] for repair in plan(imported(path)).lost_calls()] == ["c0"]


@KINDS
def test_f08_a_killed_call_whose_id_was_used_again_is_answered_before_that_use(tmp_path: Path, kind: str) -> None:
    path = taken(kind, "again", tmp_path)
    assert [(each.id, each.name) for each in diagnosis_of(path).open] == [("c0", "charge")]
    before = stored(path)
    (again,) = (
        index
        for index, event in enumerate(before)
        if event["content"]["parts"][0].get("function_call", {}).get("name") == "look"
    )
    out = repaired(path, tmp_path / "out.db")
    after = stored(out)
    assert after[:again] + after[again + 1 :] == before
    assert after[again]["content"]["parts"] == [answer("c0")]
    assert (diagnosis_of(out).verdict, diagnosis_of(out).answered) == ("clean", 2)
    assert run(out, "select update_time from sessions") == run(path, "select update_time from sessions")


def test_f08_calls_of_one_id_that_were_all_killed_have_each_its_response_before_the_next(tmp_path: Path) -> None:
    path = taken("v1", "healthy", tmp_path)
    put(path, call("c0"), call("c1"), later=1)
    put(path, call("c1"), later=2, id="second")
    put(path, call("c0"), call("c1"), later=3, id="third")
    out = repaired(path, tmp_path / "out.db")
    first, second, third = [answer("c0"), answer("c1")], [answer("c1")], [answer("c0"), answer("c1")]
    told = [event["content"]["parts"] for event in stored(out)[-6:]]
    assert told == [[call("c0"), call("c1")], first, [call("c1")], second, [call("c0"), call("c1")], third]
    assert diagnosis_of(out).verdict == "clean"


def test_f08_two_responses_before_one_use_of_their_ids_have_times_of_their_own(tmp_path: Path) -> None:
    path = taken("v1", "healthy", tmp_path)
    put(path, call("c0"), later=1)
    put(path, call("c1"), later=2)
    put(path, call("c0"), call("c1"), later=3)
    out = repaired(path, tmp_path / "out.db")
    assert [event["content"]["parts"] for event in stored(out)[-4:-2]] == [[answer("c0")], [answer("c1")]]
    assert len({event["timestamp"] for event in stored(out)}) == len(stored(out))


def test_f08_a_call_between_which_and_the_next_of_its_id_no_time_is_left_is_not_repaired(tmp_path: Path) -> None:
    path = taken("v1", "healthy", tmp_path)
    put(path, call("c0"), later=1)
    put(path, call("c0"), later=2)
    run(path, "update events set timestamp = '2030-01-01 00:00:01.000001' where timestamp like '%:02.000000'")
    with pytest.raises(Refused, match="call c0 was used again"):
        repaired(path, tmp_path / "out.db")
    assert not (tmp_path / "out.db").exists()


@pytest.mark.parametrize("invocation", ["e", "f"])
def test_f08_calls_of_one_id_are_each_a_call_in_one_invocation_and_in_two(tmp_path: Path, invocation: str) -> None:
    path = taken("v1", "healthy", tmp_path)
    put(path, call("c0"), later=1)
    put(path, response("c0"), later=2)
    put(path, call("c0"), later=3, invocation_id=invocation)
    assert (diagnosis_of(path).calls, open_ids(diagnosis_of(path))) == (5, ["c0"])
    put(path, call("c0"), later=4, invocation_id="g")
    assert open_ids(diagnosis_of(path)) == ["c0", "c0"]
    put(path, response("c0"), later=5, invocation_id="g")
    (left,) = diagnosis_of(path).open
    assert left.place == f"event {stored(path)[-3]['id']}"


def test_f08_calls_of_one_id_in_two_branches_are_told_apart(tmp_path: Path) -> None:
    path = taken("v1", "healthy", tmp_path)
    put(path, call("c0", "look"), later=1, branch="root.one")
    put(path, call("c0"), later=2, branch="root.two")
    put(path, call("c0"), later=3, branch="root.three")
    put(path, response("c0", "look"), later=4, branch="root.one")
    put(path, response("c0"), later=5, branch="root.two")
    assert [(each.name, each.run) for each in diagnosis_of(path).open] == [("charge", "root.three")]


def test_f08_each_call_of_one_id_that_runs_long_has_its_own_response(tmp_path: Path) -> None:
    path = taken("v1", "healthy", tmp_path)
    for start, said in ((1, "tea"), (4, "milk")):
        put(path, call("o", "order"), later=start, long_running_tool_ids=["o"])
        put(path, response("o", "order", result="pending"), later=start + 1)
        put(path, response("o", "order", result=said), later=start + 2)
    put(path, call("o", "order"), later=7, long_running_tool_ids=["o"])
    seen = diagnosis_of(path)
    assert (seen.verdict, seen.calls, seen.answered, seen.damage) == ("waiting", 6, 5, ())
    told = [event.data["parts"][0]["content"] for event in imported(path).events if event.type == "tool_result"]
    assert told[3:5] == ["tea", "milk"]


def test_the_version_with_a_pickle_is_read_and_not_repaired(tmp_path: Path) -> None:
    path = taken("v0", "sibling", tmp_path)
    run(path, "update events set actions = ?", b"cos\nsystem\n(S'touch pwned'\ntR.")
    seen = diagnosis_of(path)
    assert (seen.version, seen.calls, seen.answered, open_ids(seen)) == ("0", 3, 1, ["look_4", "charge_1"])
    assert [repair.data["id"] for repair in plan(imported(path)).lost_calls()] == ["look_4", "charge_1"]
    with pytest.raises(Refused, match="pickle"):
        repaired(path, tmp_path / "out.db")
    assert not (tmp_path / "out.db").exists()
    healthy = taken("v0", "healthy", tmp_path)
    assert diagnosis_of(repaired(healthy, tmp_path / "copy.db")).verdict == "clean"


def test_f39_a_newer_schema_is_read_as_far_as_it_can_be_and_not_repaired(tmp_path: Path) -> None:
    path = taken("v1", "single", tmp_path)
    run(path, "update adk_internal_metadata set value = '2'")
    seen = diagnosis_of(path)
    assert (seen.verdict, seen.version, open_ids(seen)) == ("too_new", "2", ["charge_1"])
    with pytest.raises(Refused, match="version '2' of the schema is new"):
        repaired(path, tmp_path / "out.db")


def test_an_event_that_is_cut_short_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    path = taken("v1", "sibling", tmp_path)
    last = stored(path)[-1]
    whole = json.dumps(last)
    for end in range(0, len(whole), 7):
        run(path, "update events set event_data = ? where id = ?", whole[:end], last["id"])
        seen = diagnosis_of(path)
        assert [(fault.kind, fault.place) for fault in seen.damage] == [("corrupt", f"event {last['id']}")]
        assert (seen.verdict, seen.calls, seen.answered) == ("damaged", 1, 1)


def test_parts_of_unknown_types_are_counted_and_odd_shapes_are_stepped_over(tmp_path: Path) -> None:
    path = taken("v1", "healthy", tmp_path)
    put(path, {"hologram": 1}, {"function_call": 3}, {"text": 4}, {}, later=1)
    put(path, {"function_response": {"id": None, "response": []}}, {"inline_data": {"data": 5}}, later=2)
    put(path, later=3, content=[], long_running_tool_ids=7)
    put(path, later=4, content={"parts": "none"}, branch=9, actions=[])
    seen = diagnosis_of(path)
    assert (seen.calls, seen.answered, dict(seen.unknown)) == (3, 3, {"hologram": 1, "": 1})
    assert json.dumps(render(imported(path), "openai-chat").messages[-1]["content"]).count("5") == 1


def test_a_database_that_adk_holds_is_busy(tmp_path: Path) -> None:
    path = taken("v1", "healthy", tmp_path)
    with held(path):
        (seen,) = examine([path])
    assert (seen.verdict, "locked" in seen.problem) == ("busy", True)


@pytest.mark.parametrize(
    ("kind", "scene"),
    [(kind, scene) for kind in ("v1", "sqlite") for scene in ("healthy", "sibling", "again", "confirmed")]
    + [("v1", scene) for scene in ("single", "reused", "resumed", "ordered", "delivered", "confirming", "rejected")],
)
def test_the_repair_of_a_copy_is_that_copy(tmp_path: Path, kind: str, scene: str) -> None:
    path = taken(kind, scene, tmp_path)
    once = repaired(path, tmp_path / "once.db")
    assert repaired(path, tmp_path / "again.db").read_bytes() == once.read_bytes()
    assert repaired(once, tmp_path / "twice.db").read_bytes() == once.read_bytes()


@pytest.mark.parametrize(
    ("scene", "ids"),
    [
        ("healthy", []),
        ("single", ["charge_1"]),
        ("sibling", ["look_4", "charge_1"]),
        ("resumed", ["look_4", "charge_1"]),
        ("confirmed", ["charge_1"]),
        ("rejected", []),
    ],
)
def test_what_is_imported_owes_what_doctor_names_and_goes_out_valid(tmp_path: Path, scene: str, ids: list[str]) -> None:
    path = taken("v1", scene, tmp_path)
    log = imported(path)
    assert [repair.data["id"] for repair in plan(log).lost_calls()] == open_ids(diagnosis_of(path)) == ids
    for target in ("gemini", "openai-chat"):
        messages = render(log, target).messages
        assert check(target, messages) == []
        assert "requires confirmation" not in json.dumps(messages)
        assert "adk_request" not in json.dumps(messages)


def test_f29_everything_an_event_holds_is_imported_signatures_included(tmp_path: Path) -> None:
    path = taken("v1", "healthy", tmp_path)
    image = {"inline_data": {"mime_type": "image/png", "data": "aGVsbG8_"}}
    put(path, {"text": "look"}, image, author="user", later=1)
    thought = {"text": "think", "thought": True}
    signed = {"thought_signature": "c2ln", "function_call": {"id": "c1", "name": "look", "args": {"an_item": 1}}}
    put(path, thought, signed, later=2)
    put(path, response("c1", "look", result={"a_b": 1}), later=3)
    *_, shown, asked, told = render(imported(path), "gemini").messages
    assert shown["parts"][1] == {"inlineData": {"mimeType": "image/png", "data": "aGVsbG8_"}}
    assert asked["parts"] == [
        {"text": "think", "thought": True},
        {"thoughtSignature": "c2ln", "functionCall": {"id": "c1", "name": "look", "args": {"an_item": 1}}},
    ]
    assert told["parts"][0]["functionResponse"]["response"] == {"output": '{"result":{"a_b":1}}'}
