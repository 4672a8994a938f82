"""Transcripts of Qwen Code, written by the documented shapes and broken as crashes break them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.formats import jsonl
from tests.formats.jsonl import Open, Record, doctor, faults, imported, opened, owed, repaired, written
from turnwal.formats.doctor import examine
from turnwal.formats.qwen_code.reading import INVENTED
from turnwal.formats.wording import UNKNOWN_TEXT
from turnwal.transcript.render import render

NAME = "019b76da-0000-7000-8000-000000000001.jsonl"
T0 = 1767225600000


def _chain(*records: Record, after: str | None = None, first: int = 1) -> list[Record]:
    """The records as a tree that is one path, from `after` on."""
    made = []
    parent = after
    for number, record in enumerate(records, first):
        envelope = {"uuid": f"q{number}", "parentUuid": parent, "sessionId": "S", "cwd": "/w", "version": "0.14.3"}
        made.append({**envelope, "timestamp": f"2026-01-01T00:00:{number % 60:02}.000Z", **record})
        parent = made[-1]["uuid"]
    return made


def _user(said: str = "charge", **more: Any) -> Record:
    return {"type": "user", "message": {"role": "user", "parts": [{"text": said}]}, **more}


def _call(id: str, name: str = "run_shell_command") -> Record:
    return {"functionCall": {"id": id, "name": name, "args": {"command": "make"}}}


def _asks(*ids: str, said: str = "Now.", **more: Any) -> Record:
    parts = [{"text": "Hm.", "thought": True}, {"text": said}, *map(_call, ids)]
    return {"type": "assistant", "model": "m", "message": {"role": "model", "parts": parts}, **more}


def _response(id: str, said: str = "done", *, failed: bool = False, **more: Any) -> Record:
    response = {"error" if failed else "output": said}
    part = {"functionResponse": {"id": id, "name": "run_shell_command", "response": response}}
    result = {"callId": id, "status": "error" if failed else "success"}
    return {"type": "tool_result", "message": {"role": "user", "parts": [part]}, "toolCallResult": result, **more}


def _system(subtype: str, **payload: Any) -> Record:
    return {"type": "system", "subtype": subtype, "systemPayload": payload}


HEALTHY = _chain(
    _system("session_model", modelId="m", authType="openai"),
    _user(),
    _asks("c1", "c2"),
    _response("c2"),
    _system("ui_telemetry", uiEvent={"event.name": "qwen-code.tool_call", "function_name": "run_shell_command"}),
    _response("c1", "no", failed=True),
    _asks("c3"),
    _response("c3"),
    _asks(said="Charged."),
    _system("turn_result", status="ok"),
)


def _expected(records: Sequence[Record]) -> Open:
    """The open calls by the meaning of the records alone."""
    found: dict[str, str] = {}
    for record in records:
        for part in record.get("message", {}).get("parts", ()):
            if "functionCall" in part:
                found[part["functionCall"]["id"]] = "requested"
            elif "functionResponse" in part:
                del found[part["functionResponse"]["id"]]
    return list(found.items())


def _history(records: Sequence[Record]) -> list[str]:
    """What the model is shown: the way from the leaf, which is the last record of the file, to the root."""
    by_uuid = {record["uuid"]: record for record in records}
    at: Record | None = records[-1]
    shown: list[str] = []
    while at is not None:
        parts = at.get("message", {}).get("parts", ())
        ids = [(part.get("functionCall") or part.get("functionResponse") or {}).get("id", "") for part in parts]
        if at["type"] != "system":
            letter = {"user": "U", "assistant": "A", "tool_result": "R"}[at["type"]]
            shown.insert(0, " ".join([letter, *filter(None, ids)]))
        at = by_uuid.get(at["parentUuid"])
    return shown


def test_a_healthy_session_is_clean(tmp_path: Path) -> None:
    found = doctor(written(tmp_path / NAME, HEALTHY))

    assert (found.format, found.verdict, found.version, found.session) == ("qwen_code", "clean", "0.14.3", "S")
    assert (found.calls, found.answered, found.on_resume) == (3, 3, "continues")
    assert not found.damage
    assert not found.unknown


def test_each_prefix_has_exactly_the_calls_open_there_and_is_repaired(tmp_path: Path) -> None:
    for count, data in jsonl.prefixes(HEALTHY):
        path = written(tmp_path / str(count) / NAME, data)

        done = repaired(path, tmp_path / f"out{count}" / NAME)

        expected = _expected(HEALTHY[:count])
        assert opened(done.before) == expected, count
        assert done.before.verdict == ("interrupted" if expected else "clean"), count
        assert not done.before.damage, count
        log = imported(path)
        assert owed(log) == [id for id, _ in expected], count
        if count > 1:
            assert jsonl.problems(log) == {}, count
        ours = [each for each in done.records if UNKNOWN_TEXT in str(each)]
        assert [each["toolCallResult"]["callId"] for each in ours] == [id for id, _ in expected], count
        assert len({each["uuid"] for each in done.records}) == len(done.records)


def test_killed_with_a_finished_sibling_the_responses_stand_in_order_on_the_way_to_the_leaf(tmp_path: Path) -> None:
    records = _chain(
        _user(), _asks("c1", "c2", "c3"), _response("c2"), _system("ui_telemetry", uiEvent={}), _user("go on")
    )

    done = repaired(written(tmp_path / NAME, records), tmp_path / "out" / NAME)

    assert opened(done.before) == [("c1", "requested"), ("c3", "requested")]
    assert _history(done.records) == ["U", "A c1 c2 c3", "R c1", "R c2", "R c3", "U"]
    ours = done.records[2]
    assert ours["message"]["parts"] == [
        {"functionResponse": {"id": "c1", "name": "run_shell_command", "response": {"error": UNKNOWN_TEXT}}}
    ]
    assert (ours["sessionId"], ours["version"], ours["timestamp"]) == ("S", "0.14.3", records[1]["timestamp"])
    assert ours["toolCallResult"]["status"] == "error"
    carried = [record for record in done.records if record["uuid"].startswith("q")]
    assert [{**record, "parentUuid": 0} for record in carried] == [{**record, "parentUuid": 0} for record in records]


def test_killed_in_a_single_call(tmp_path: Path) -> None:
    found = doctor(written(tmp_path / NAME, _chain(_user(), _asks("c1"))))

    [call] = found.open
    assert (call.id, call.name, call.evidence) == ("c1", "run_shell_command", "requested")
    assert (json.loads(call.arguments or ""), call.risk) == ({"command": "make"}, "tool_outcome_unknown")
    assert (found.verdict, found.on_resume) == ("interrupted", "hides")


def test_f12_the_response_that_is_shown_where_one_is_missing_counts_as_unknown(tmp_path: Path) -> None:
    records = _chain(_user(), _asks("c1"), _response("c1", INVENTED, failed=True), _asks("c2"), _response("c2"))

    done = repaired(written(tmp_path / NAME, records), tmp_path / "out" / NAME)

    assert opened(done.before) == [("c1", "answered_synthetic")]
    assert "invented" in done.before.open[0].because[1]
    [part] = done.records[2]["message"]["parts"]
    assert part["functionResponse"]["response"] == {"error": UNKNOWN_TEXT}


def test_f12_pairing_does_not_follow_one_branch_and_goes_on_behind_a_lost_parent(tmp_path: Path) -> None:
    trunk = _chain(_user(), _asks("c1"), _response("c1"))
    branch = _chain(_asks("c2"), _response("c2"), after="q1", first=4)
    lost = _chain(_asks("c3"), _response("c3"), after="gone", first=6)

    found = doctor(written(tmp_path / NAME, [*trunk, *branch, *lost]))

    assert (found.verdict, found.calls, found.answered) == ("clean", 3, 3)


def test_f08_ids_that_are_used_again_mean_the_call_that_is_open(tmp_path: Path) -> None:
    records = _chain(_user(), _asks("k"), _response("k"), _asks("k", "k"), _response("k"), _user("go on"))
    records[3]["message"]["parts"][-1]["functionCall"]["args"] = {"command": "other"}

    done = repaired(written(tmp_path / NAME, records), tmp_path / "out" / NAME)

    assert (done.before.calls, done.before.answered, opened(done.before)) == (3, 2, [("k", "requested")])
    assert _history(done.records) == ["U", "A k", "R k", "A k k", "R k", "R k", "U"]


def test_lines_with_one_uuid_are_pieces_of_one_message_and_a_second_copy_is_none(tmp_path: Path) -> None:
    first = _asks("c1", uuid="same")
    second = _asks("c2", uuid="same", parentUuid="q1")
    records = _chain(_user(), first, second, second, _response("c1"), _response("c1", uuid="q5"), _user("go on"))

    done = repaired(written(tmp_path / NAME, records), tmp_path / "out" / NAME)

    assert (done.before.calls, done.before.answered, faults(done.before)) == (2, 1, [])
    assert opened(done.before) == [("c2", "requested")]
    [ours] = [each for each in done.records if UNKNOWN_TEXT in str(each)]
    assert ours["toolCallResult"]["callId"] == "c2"


def test_f10_the_records_of_a_sub_agent_are_a_run_of_their_own(tmp_path: Path) -> None:
    sub: Record = {"isSidechain": True, "agentId": "explore-1"}
    records = _chain(
        _user(),
        _asks("c1", "c2"),
        _response("c1"),
        _asks("x1", **sub),
        _response("c2"),
        _response("x1", **sub),
        _asks("x2", **sub),
    )

    path = written(tmp_path / NAME, records)
    found = doctor(path)

    assert [(call.id, call.run) for call in found.open] == [("x2", "agent explore-1")]
    log = imported(path)
    assert owed(log) == ["x2"]
    assert jsonl.problems(log) == {}
    assert "x1" not in json.dumps(render(log, "openai-chat").messages)
    done = repaired(path, tmp_path / "out" / NAME)
    assert (done.records[-1]["agentId"], done.records[-1]["isSidechain"]) == ("explore-1", True)


def test_what_is_written_after_the_fact_proves_that_a_call_ran(tmp_path: Path) -> None:
    records = _chain(
        _user(),
        _asks("c1", "c2", "c3"),
        _system("chat_compression", compressedHistory=[], completedToolCallIds=["c1"]),
        _system("ui_telemetry", uiEvent={"event.name": "qwen-code.tool_call", "call_id": "c2"}),
    )

    assert opened(doctor(written(tmp_path / NAME, records))) == [("c1", "ran"), ("c2", "ran"), ("c3", "requested")]


def test_a_result_that_only_the_screen_shows_is_one(tmp_path: Path) -> None:
    bare: Record = {"type": "tool_result", "toolCallResult": {"callId": "c1", "status": "cancelled"}}

    assert doctor(written(tmp_path / NAME, _chain(_user(), _asks("c1"), bare))).verdict == "clean"


def test_torn_at_every_byte_of_the_last_line(tmp_path: Path) -> None:
    records = _chain(_user(), _asks("c1", "c2"), _response("c1"))
    for cut, data in enumerate(jsonl.tears(records)):
        found = doctor(written(tmp_path / "torn" / NAME, data))

        assert opened(found) == [("c1", "requested"), ("c2", "requested")], cut
        assert faults(found) == ["torn"], cut


def test_f17_half_a_record_with_the_next_one_on_its_line(tmp_path: Path) -> None:
    records = _chain(_user(), _asks("c1"), _response("c1"), _user("go on"))
    data = jsonl.text(records[:2]) + jsonl.line(records[2])[:90] + jsonl.text(records[3:])

    found = doctor(written(tmp_path / NAME, data))

    assert (faults(found), opened(found)) == (["torn"], [("c1", "requested")])


def test_two_glued_records_are_two(tmp_path: Path) -> None:
    records = _chain(_user(), _asks("c1"), _response("c1"))
    data = jsonl.text(records[:1]) + jsonl.line(records[1]) + jsonl.text(records[2:])

    done = repaired(written(tmp_path / NAME, data), tmp_path / "out" / NAME)

    assert (faults(done.before), done.before.verdict) == (["fused"], "clean")
    assert done.records == records


def test_f21_a_run_of_zeros_is_named_and_what_is_behind_it_is_read(tmp_path: Path) -> None:
    records = _chain(_user(), _asks("c1"), _asks("c2"))
    data = jsonl.text(records[:2]) + b"\0" * 64 + jsonl.text(records[2:])

    found = doctor(written(tmp_path / NAME, data))

    assert (faults(found), opened(found)) == (["nul_run"], [("c1", "requested"), ("c2", "requested")])


def test_f06_a_response_without_its_call_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / NAME, _chain(_user(), _response("c9"), _asks()))

    assert faults(doctor(path)) == ["orphan_result"]
    assert jsonl.problems(imported(path)) == {}


def test_f29_a_signature_goes_back_to_its_api(tmp_path: Path) -> None:
    asks = _asks("c1")
    asks["message"]["parts"][-1]["thoughtSignature"] = "c2ln"
    log = imported(written(tmp_path / NAME, _chain(_user(), asks, _response("c1"))))

    [call] = [part for event in log for part in event.data.get("parts", ()) if part["type"] == "tool_call"]
    assert call["native"] == {"provider": "gemini", "block": asks["message"]["parts"][-1]}


def test_f31_a_message_with_nothing_in_it_is_no_alarm(tmp_path: Path) -> None:
    empty: Record = {"type": "assistant", "message": {"role": "model", "parts": []}}
    path = written(tmp_path / NAME, _chain(_user(), empty, _user("again"), _asks()))

    assert doctor(path).verdict == "clean"
    assert jsonl.problems(imported(path)) == {}


def test_f35_half_a_character_makes_no_record_unreadable(tmp_path: Path) -> None:
    records = _chain(_user("a\ud83d"), _asks("c1", said="\udc8f"))

    done = repaired(written(tmp_path / NAME, records), tmp_path / "out" / NAME)

    assert (opened(done.before), faults(done.before)) == ([("c1", "requested")], [])
    assert done.records[:2] == records


def test_f39_unknown_types_and_subtypes_are_counted(tmp_path: Path) -> None:
    records = _chain(_user(), _asks("c1"), _system("brand_new"), _user(type="oracle"))

    found = doctor(written(tmp_path / NAME, records))

    assert (found.unknown, opened(found)) == ({"system/brand_new": 1, "oracle": 1}, [("c1", "requested")])


def test_odd_shapes_are_faults_and_the_rest_goes_on(tmp_path: Path) -> None:
    odd: list[Record] = [
        {"type": "assistant", "message": {"role": "model", "parts": [{"functionCall": {"id": 7, "args": [1]}}]}},
        {"type": "assistant", "message": {"role": "model", "parts": [{"text": 5}, {"inlineData": 5}, 6]}},
        {"type": "tool_result", "message": {"parts": [{"functionResponse": {"id": {}, "response": None}}]}},
        {"type": "tool_result", "message": 5, "toolCallResult": 5},
        {"type": "system", "subtype": ["x"], "systemPayload": 5},
        {"type": "system", "subtype": "chat_compression", "systemPayload": {"completedToolCallIds": 5}},
    ]
    path = written(tmp_path / NAME, [*_chain(_user()), *_chain(*odd, _asks("c1"), after="q1", first=2)])

    found = doctor(path)

    assert opened(found) == [("c1", "requested")]
    assert set(faults(found)) == {"corrupt"}
    assert owed(imported(path)) == ["c1"]


def test_an_import_keeps_the_words_and_the_times(tmp_path: Path) -> None:
    log = imported(written(tmp_path / NAME, HEALTHY))

    asked = next(event for event in log if event.type == "assistant_message")
    assert [part["type"] for part in asked.data["parts"]] == ["reasoning", "text", "tool_call", "tool_call"]
    assert (asked.time, asked.data["model"]) == (T0 + 3_000, "m")
    failed = next(event for event in log if event.data.get("is_error"))
    assert (failed.data["id"], failed.data["parts"]) == ("c1", [{"type": "text", "content": "no"}])


def test_records_of_other_tools_are_not_taken_for_a_transcript(tmp_path: Path) -> None:
    other: list[Record] = [
        {"uuid": "a", "sessionId": "S", "type": "user", "message": {"role": "user", "content": "hi"}},
        {"uuid": "a", "sessionId": "S", "type": "system", "subtype": "init"},
        {"uuid": "a", "type": "user", "message": {"role": "user", "parts": []}},
        {"sessionId": "S", "projectHash": "h", "kind": "main"},
    ]
    for count, record in enumerate(other):
        [found] = examine([written(tmp_path / f"{count}.jsonl", [record])])

        assert found.format != "qwen_code"


def test_f08_a_call_that_is_asked_for_again_does_not_hide_the_one_that_was_killed(tmp_path: Path) -> None:
    records = _chain(_user(), _asks("k"), _user("go on"), _asks("k"), _response("k"))

    done = repaired(written(tmp_path / NAME, records), tmp_path / "out" / NAME)

    assert (done.before.calls, done.before.answered, opened(done.before)) == (2, 1, [("k", "requested")])
    assert owed(imported(tmp_path / NAME)) == ["k"]
