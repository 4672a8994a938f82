"""Codex rollouts, written by the documented shapes and broken as crashes break them."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from tests.formats import jsonl
from tests.formats.jsonl import Open, Record, doctor, faults, imported, opened, owed, repaired, written
from turnwal.formats.doctor import examine
from turnwal.formats.wording import UNKNOWN_TEXT
from turnwal.transcript.render import render

ID = "019b76da-0000-7000-8000-000000000001"
OTHER_ID = "019b76da-0000-7000-8000-000000000002"
NAME = f"rollout-2026-01-01T00-00-00-{ID}.jsonl"
T0 = 1767225600000


def _line(type: str, payload: Record, second: int = 0) -> Record:
    return {"timestamp": f"2026-01-01T00:00:{second:02}.000Z", "type": type, "payload": payload}


def _item(kind: str, second: int = 0, **fields: Any) -> Record:
    return _line("response_item", {"type": kind, **fields}, second)


def _event(kind: str, **fields: Any) -> Record:
    return _line("event_msg", {"type": kind, **fields})


def _call(id: str, command: str = "make", second: int = 2) -> Record:
    return _item("function_call", second, name="exec_command", arguments=json.dumps({"cmd": command}), call_id=id)


def _output(id: str, said: Any = "done", second: int = 3) -> Record:
    return _item("function_call_output", second, call_id=id, output=said)


def _said(role: str, said: str) -> Record:
    kind = "output_text" if role == "assistant" else "input_text"
    return _item("message", role=role, content=[{"type": kind, "text": said}])


META: Record = _line(
    "session_meta",
    {"id": ID, "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w", "cli_version": "0.104.0", "source": "cli"},
)
HEAD = [
    META,
    _event("task_started", turn_id="1"),
    _line("turn_context", {"cwd": "/w", "approval_policy": "on-request", "model": "m"}),
    _said("user", "charge"),
    _event("user_message", message="charge"),
]
PATCH = _item("custom_tool_call", status="completed", call_id="p1", name="apply_patch", input="*** Begin Patch\n")
PATCHED = _item("custom_tool_call_output", call_id="p1", output="Success.")
SHELL = _item(
    "local_shell_call", status="completed", call_id="s1", action={"type": "exec", "command": ["ls"], "timeout_ms": 9}
)
HEALTHY = [
    *HEAD,
    _item("reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "I charge."}], encrypted_content="abc"),
    _call("c1"),
    _event("token_count", info=None),
    _output("c1"),
    _call("c2", "b"),
    _call("c3", "c"),
    _output("c3"),
    _output("c2"),
    PATCH,
    _event("patch_apply_end", call_id="p1", success=True),
    PATCHED,
    SHELL,
    _output("s1", [{"type": "input_text", "text": "a.txt"}]),
    _item("web_search_call", id="ws_1", status="completed", action={"type": "search", "query": "q"}),
    _said("assistant", "Charged."),
    _event("task_complete", turn_id="1"),
]

_CALLS = ("function_call", "custom_tool_call", "local_shell_call")


def _expected(records: list[Record]) -> Open:
    """The open calls by the meaning of the records alone."""
    found: dict[str, str] = {}
    for record in records:
        payload = record["payload"]
        if payload.get("type") in _CALLS:
            found[payload["call_id"]] = "requested"
        elif str(payload.get("type")).endswith("_output"):
            del found[payload["call_id"]]
        elif payload.get("type") == "patch_apply_end":
            found[payload["call_id"]] = "ran"
    return list(found.items())


def test_a_healthy_session_is_clean(tmp_path: Path) -> None:
    found = doctor(written(tmp_path / NAME, HEALTHY))

    assert (found.format, found.verdict, found.version, found.session) == ("codex", "clean", "0.104.0", ID)
    assert (found.calls, found.answered, found.on_resume) == (5, 5, "continues")
    assert not found.damage
    assert not found.unknown


def test_each_prefix_of_a_healthy_session_has_exactly_the_calls_open_there(tmp_path: Path) -> None:
    for count, data in jsonl.prefixes(HEALTHY):
        path = written(tmp_path / str(count) / NAME, data)

        found = doctor(path)

        expected = _expected(HEALTHY[:count])
        assert opened(found) == expected, count
        assert found.verdict == ("interrupted" if expected else "clean"), count
        assert not found.damage, count
        assert owed(imported(path)) == [id for id, _ in expected], count


def test_each_prefix_is_repaired(tmp_path: Path) -> None:
    for count, data in jsonl.prefixes(HEALTHY):
        done = repaired(written(tmp_path / str(count) / NAME, data), tmp_path / f"out{count}" / NAME)

        expected = _expected(HEALTHY[:count])
        written_by_us = [record for record in done.records if record["payload"].get("output") == UNKNOWN_TEXT]
        assert [record["payload"]["call_id"] for record in written_by_us] == [id for id, _ in expected]
        assert [record for record in done.records if record not in written_by_us] == HEALTHY[:count]


def test_an_import_is_taken_by_every_provider(tmp_path: Path) -> None:
    for count, data in jsonl.prefixes(HEALTHY, least=len(HEAD)):
        log = imported(written(tmp_path / str(count) / NAME, data))

        assert jsonl.problems(log) == {}, count


def test_an_import_keeps_the_words_the_items_of_a_reply_together_and_the_times(tmp_path: Path) -> None:
    log = imported(written(tmp_path / NAME, HEALTHY))

    sent = render(log, "openai-responses", model="m").messages
    assert [item["type"] for item in sent[:4]] == ["message", "reasoning", "function_call", "function_call_output"]
    assert sent[1]["encrypted_content"] == "abc"
    parallel = next(event for event in log if any(part.get("id") == "c3" for part in event.data.get("parts", ())))
    assert [part["id"] for part in parallel.data["parts"]] == ["c2", "c3"]
    assert parallel.time == T0 + 3_000  # of a record before it, whose time is later
    assert parallel.data["model"] == "m"


def test_killed_in_its_only_call(tmp_path: Path) -> None:
    found = doctor(written(tmp_path / NAME, [*HEAD, _call("c1")]))

    [call] = found.open
    assert (call.id, call.name, call.evidence, call.risk) == ("c1", "exec_command", "requested", "tool_outcome_unknown")
    assert call.arguments == '{"cmd": "make"}'
    assert call.because[0] == "line 6: asked for"
    assert (found.verdict, found.on_resume) == ("interrupted", "invents_answer")


def test_killed_with_a_finished_sibling_the_answer_stands_in_the_order_of_the_calls(tmp_path: Path) -> None:
    calls = [_call("c1"), _call("c2"), _call("c3")]
    records = [*HEAD, *calls, _event("token_count"), _output("c2"), _said("user", "go on"), _said("assistant", "Yes.")]

    done = repaired(written(tmp_path / NAME, records), tmp_path / "out" / NAME)

    assert opened(done.before) == [("c1", "requested"), ("c3", "requested")]
    ids = [each["payload"]["call_id"] for each in done.records if "output" in each["payload"]]
    assert ids == ["c1", "c2", "c3"]
    assert done.records[-2:] == records[-2:]


def test_an_event_that_a_body_ended_proves_that_it_ran(tmp_path: Path) -> None:
    ends = [_event("mcp_tool_call_end", call_id="c1"), _event("exec_command_end", call_id="c2")]
    found = doctor(written(tmp_path / NAME, [*HEAD, _call("c1"), _call("c2"), _call("c3"), *ends]))

    assert opened(found) == [("c1", "ran"), ("c2", "ran"), ("c3", "requested")]
    assert "line 9: mcp_tool_call_end: the body had ended" in found.open[0].because


def test_what_proves_nothing_is_not_taken_for_proof(tmp_path: Path) -> None:
    found = doctor(written(tmp_path / NAME, [*HEAD, PATCH, _event("token_count", info={"a": 1})]))

    assert opened(found) == [("p1", "requested")]


def test_an_interruption_by_the_user_is_named_and_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    records = [*HEAD, _call("c1"), _event("turn_aborted", reason="interrupted"), *HEAD[1:], _call("c2")]
    found = doctor(written(tmp_path / NAME, records))

    assert opened(found) == [("c1", "requested"), ("c2", "requested")]
    assert "line 7: turn_aborted: the user interrupted the turn" in found.open[0].because
    assert not any("turn_aborted" in reason for reason in found.open[1].because)


def test_an_interruption_is_not_that_of_an_earlier_turn_that_crashed(tmp_path: Path) -> None:
    records = [*HEAD, _call("c1"), *HEAD[1:], _call("c2"), _event("turn_aborted", reason="interrupted")]
    found = doctor(written(tmp_path / NAME, records))

    assert [len(call.because) for call in found.open] == [2, 3]
    assert "turn_aborted" in found.open[1].because[1]


def test_an_invented_output_counts_as_unknown_and_says_the_truth_in_the_copy(tmp_path: Path) -> None:
    records = [
        *HEAD,
        _call("c1"),
        _output("c1", "aborted"),
        PATCH,
        _item("custom_tool_call_output", call_id="p1", output="aborted"),
        _call("c2"),
        _output("c2", "aborted by user after 3.2s"),
        _call("c3"),
        _output("c3", [{"type": "input_text", "text": "aborted"}]),
    ]

    done = repaired(written(tmp_path / NAME, records), tmp_path / "out" / NAME)

    invented = ["c1", "p1", "c3"]
    assert opened(done.before) == [(id, "answered_synthetic") for id in invented]
    assert "line 7: an answer that Codex invented" in done.before.open[0].because
    outputs = [each["payload"]["output"] for each in done.records if "output" in each["payload"]]
    assert outputs == [UNKNOWN_TEXT, UNKNOWN_TEXT, "aborted by user after 3.2s", UNKNOWN_TEXT]


def test_a_call_left_open_before_a_resume_is_found_in_the_middle(tmp_path: Path) -> None:
    records = [*HEAD, _call("c1"), *HEAD[1:], _call("c2"), _output("c2"), _event("task_complete", turn_id="2")]

    done = repaired(written(tmp_path / NAME, records), tmp_path / "out" / NAME)

    assert opened(done.before) == [("c1", "requested")]
    assert done.records[6]["payload"] == {"type": "function_call_output", "call_id": "c1", "output": UNKNOWN_TEXT}


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (_call("c1"), "function_call_output"),
        (PATCH, "custom_tool_call_output"),
        (SHELL, "function_call_output"),
        (
            _item("tool_search_call", call_id="t1", execution="client", status="completed", arguments={"query": "q"}),
            "tool_search_output",
        ),
    ],
)
def test_each_kind_of_call_is_answered_in_its_own_form(tmp_path: Path, call: Record, kind: str) -> None:
    path = written(tmp_path / NAME, [*HEAD, call])

    done = repaired(path, tmp_path / "out" / NAME)

    assert done.records[-1]["payload"]["type"] == kind
    assert done.records[-1]["payload"]["call_id"] == call["payload"]["call_id"]
    assert done.records[-1]["timestamp"] == call["timestamp"]
    assert jsonl.problems(imported(path)) == {}


def test_calls_that_the_provider_runs_are_never_open(tmp_path: Path) -> None:
    searches = [
        _item("tool_search_call", call_id="t1", execution="server", status="completed", arguments={}),
        _item("tool_search_output", call_id="t1", execution="server", status="completed", tools=[]),
        _item("web_search_call", id="ws_1", action={"type": "search"}),
        _item("image_generation_call", id="ig_1", status="completed", result="AAAA"),
    ]
    found = doctor(written(tmp_path / NAME, [*HEAD, *searches]))

    assert (found.verdict, found.calls) == ("clean", 0)


def test_ordinals_go_on_where_the_history_is_paginated(tmp_path: Path) -> None:
    meta = META | {"payload": META["payload"] | {"history_mode": "paginated"}}
    lines = [meta, *HEAD[1:], _call("c1"), _call("c2"), _said("user", "go on"), _call("c3"), _output("c3")]
    records = [record | {"ordinal": ordinal} for ordinal, record in enumerate(lines)]

    done = repaired(written(tmp_path / NAME, records), tmp_path / "out" / NAME)

    assert not done.before.damage
    assert done.records[: len(records)] == records
    assert [(each["ordinal"], each["payload"]["call_id"]) for each in done.records[len(records) :]] == [
        (len(records), "c1"),
        (len(records) + 1, "c2"),
    ]


def test_a_gap_in_the_ordinals_is_named(tmp_path: Path) -> None:
    meta = META | {"payload": META["payload"] | {"history_mode": "paginated"}}
    records = [record | {"ordinal": ordinal} for ordinal, record in enumerate([meta, *HEAD[1:]])]
    del records[2]
    del records[-1]["ordinal"]

    found = doctor(written(tmp_path / NAME, records))

    assert [(fault.kind, fault.place) for fault in found.damage] == [("gap", "line 3"), ("gap", "line 4")]
    assert found.verdict == "damaged"


def test_the_copy_has_the_id_that_its_name_has(tmp_path: Path) -> None:
    parent = _line("session_meta", {"id": OTHER_ID, "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w"})
    path = written(tmp_path / NAME, [META, parent, *HEAD[1:], _call("c1")])

    own = repaired(path, tmp_path / "own" / NAME)
    free = repaired(path, tmp_path / "free" / "copy.jsonl")
    other = repaired(path, tmp_path / "other" / NAME.replace(ID, OTHER_ID.replace("2", "9")))

    assert [each.records[0]["payload"]["id"] for each in (own, free, other)] == [ID, ID, OTHER_ID.replace("2", "9")]
    assert other.records[0]["payload"] | {"id": ID} == META["payload"]
    assert other.records[1] == parent


def test_the_first_session_meta_counts(tmp_path: Path) -> None:
    parent = _line("session_meta", {"id": OTHER_ID, "cli_version": "0.1.0", "history_mode": "from a newer one"})
    found = doctor(written(tmp_path / NAME, [META, parent, *HEAD[1:]]))

    assert (found.session, found.version, found.verdict) == (ID, "0.104.0", "clean")


def test_a_piece_of_a_torn_line_is_no_item_of_an_early_version(tmp_path: Path) -> None:
    data = jsonl.text([*HEAD, _call("c1")]) + jsonl.line(_output("c1"))[:-1]  # its payload is whole

    found = doctor(written(tmp_path / NAME, data))

    assert (opened(found), faults(found)) == ([("c1", "requested")], ["torn"])


def test_unknown_lines_items_and_events_are_counted_and_carried(tmp_path: Path) -> None:
    odd = [
        _line("brand_new", {"a": 1}),
        _item("brand_new_call", call_id="n1"),
        _event("brand_new", call_id="n1"),
        _line("world_state", {"a": 1}),
        _item("ghost_snapshot", ghost_commit={"id": "a"}),
        _line("response_item", {"type": None}),
    ]
    done = repaired(written(tmp_path / NAME, [*HEAD, _call("c1"), *odd]), tmp_path / "out" / NAME)

    assert done.before.unknown == {
        "brand_new": 1,
        "response_item/brand_new_call": 1,
        "event_msg/brand_new": 1,
        "response_item/None": 1,
    }
    assert opened(done.before) == [("c1", "requested")]
    assert [record for record in done.records if record in odd] == odd


def test_odd_shapes_are_faults_and_the_rest_goes_on(tmp_path: Path) -> None:
    odd: list[Record] = [
        _line("response_item", {"type": 5, "call_id": "x"}),
        _item("function_call", name=7, arguments={"cmd": "a"}, call_id=None),
        _item("function_call_output", call_id=["c1"], output=None),
        _item("message", role="user", content=5),
        _line("turn_context", {"model": ["m"]}),
        _event("exec_command_end", call_id=4),
        {"timestamp": 4, "type": "event_msg", "payload": {"type": {"a": 1}}},
    ]
    path = written(tmp_path / NAME, [*HEAD, *odd, _call("c1")])

    found = doctor(path)

    assert [call.id for call in found.open] == ["c1"]
    assert found.calls == 2
    assert set(faults(found)) <= {"corrupt", "orphan_result"}
    assert "c1" in owed(imported(path))


def test_a_newer_history_mode_is_too_new(tmp_path: Path) -> None:
    meta = META | {"payload": META["payload"] | {"history_mode": "sharded"}}
    found = doctor(written(tmp_path / NAME, [meta, *HEAD[1:], _call("c1")]))

    assert (found.verdict, opened(found)) == ("too_new", [("c1", "requested")])


def test_the_bare_items_of_early_versions_are_read_and_answered_in_kind(tmp_path: Path) -> None:
    meta = {"id": ID, "timestamp": "2025-06-01T00:00:00.000Z", "instructions": None}
    items = [each["payload"] for each in (_said("user", "charge"), _call("c1"), _call("c2"), _output("c2"))]
    records = [meta, *items[:1], {"record_type": "state"}, *items[1:]]

    done = repaired(written(tmp_path / "rollout-old.jsonl", records), tmp_path / "out" / "rollout-old.jsonl")

    assert (done.before.session, opened(done.before)) == (ID, [("c1", "requested")])
    answer = {"type": "function_call_output", "call_id": "c1", "output": UNKNOWN_TEXT}
    assert done.records == [*records[:-1], answer, records[-1]]


def test_a_compressed_rollout_is_read_and_becomes_a_plain_copy(tmp_path: Path) -> None:
    data = jsonl.text([*HEAD, _call("c1")])
    path = written(tmp_path / f"{NAME}.zst", zstandard.ZstdCompressor().compress(data))

    done = repaired(path, tmp_path / "out" / NAME)

    assert opened(done.before) == [("c1", "requested")]
    assert done.path.read_bytes().startswith(data)


def test_torn_at_every_byte_of_the_last_line_what_was_open_before_is_open(tmp_path: Path) -> None:
    records = [*HEAD, _call("c1"), _call("c2"), _output("c1")]
    for cut, data in enumerate(jsonl.tears(records)):
        found = doctor(written(tmp_path / "torn" / NAME, data))

        assert opened(found) == [("c1", "requested"), ("c2", "requested")], cut
        assert faults(found) == ["torn"], cut


def test_a_torn_line_is_left_out_of_the_copy(tmp_path: Path) -> None:
    data = jsonl.text([*HEAD, _call("c1")]) + jsonl.line(_output("c1"))[:40]

    done = repaired(written(tmp_path / NAME, data), tmp_path / "out" / NAME)

    assert done.records[:-1] == [*HEAD, _call("c1")]
    assert done.after.verdict == "clean"


def test_f17_half_a_record_with_the_next_one_on_its_line(tmp_path: Path) -> None:
    torn = jsonl.text([*HEAD, _call("c1")]) + jsonl.line(_output("c1"))[:60]
    data = torn + jsonl.text([_said("user", "go on"), _call("c2"), _output("c2")])

    done = repaired(written(tmp_path / NAME, data), tmp_path / "out" / NAME)

    assert (faults(done.before), opened(done.before)) == (["torn"], [("c1", "requested")])
    assert done.before.calls == 2
    assert _said("user", "go on") in done.records


def test_two_whole_records_on_one_line_are_two(tmp_path: Path) -> None:
    data = jsonl.text(HEAD) + jsonl.line(_call("c1")) + jsonl.text([_output("c1")])

    done = repaired(written(tmp_path / NAME, data), tmp_path / "out" / NAME)

    assert (faults(done.before), done.before.verdict) == (["fused"], "clean")
    assert done.records == [*HEAD, _call("c1"), _output("c1")]


def test_f18_one_bad_line_in_the_middle_hides_nothing_behind_it(tmp_path: Path) -> None:
    data = jsonl.text([*HEAD, _call("c1")]) + b'{"timestamp":"2026\n' + jsonl.text([_call("c2"), _output("c2")])
    found = doctor(written(tmp_path / NAME, data))

    assert (faults(found), opened(found), found.calls) == (["corrupt"], [("c1", "requested")], 2)


def test_f19_torn_inside_a_character_and_whole_without_its_newline(tmp_path: Path) -> None:
    torn = jsonl.text([*HEAD, _call("c1")]) + '{"timestamp":"2026-01-01","type":"response_item","x":"é'.encode()[:-1]
    whole = jsonl.text([*HEAD, _call("c1"), _output("c1")])[:-1]

    assert opened(doctor(written(tmp_path / "a" / NAME, torn))) == [("c1", "requested")]
    assert doctor(written(tmp_path / "b" / NAME, whole)).verdict == "clean"


def test_f20_line_separators_inside_a_text_end_no_line(tmp_path: Path) -> None:
    said = json.dumps(_output("c1", "a\u2028b\u2029c\u0085d"), ensure_ascii=False).encode()
    found = doctor(written(tmp_path / NAME, jsonl.text([*HEAD, _call("c1")]) + said + b"\n"))

    assert (found.verdict, found.answered) == ("clean", 1)


def test_f21_a_run_of_zeros_is_named_and_what_is_behind_it_is_read(tmp_path: Path) -> None:
    data = jsonl.text([*HEAD, _call("c1")]) + b"\0" * 500 + jsonl.text([_said("user", "go on"), _call("c2")])

    done = repaired(written(tmp_path / NAME, data), tmp_path / "out" / NAME)

    assert (faults(done.before), opened(done.before)) == (["nul_run"], [("c1", "requested"), ("c2", "requested")])
    assert b"\0" not in done.path.read_bytes()


def test_f22_a_file_without_its_head_is_read_and_said_not_to_load(tmp_path: Path) -> None:
    found = doctor(written(tmp_path / NAME, [*HEAD[1:], _call("c1")]))

    assert opened(found) == [("c1", "requested")]
    assert faults(found) == ["corrupt"]
    assert "session_meta" in found.damage[0].what


@pytest.mark.parametrize("head", [b"", jsonl.line(HEAD[0])[:40] + b"\n"], ids=["gone", "torn"])
def test_f22_no_copy_is_made_that_codex_would_not_load(tmp_path: Path, head: bytes) -> None:
    path = written(tmp_path / NAME, head + jsonl.text([*HEAD[1:], _call("c1")]))

    assert "session_meta" in jsonl.refused(path, tmp_path / "out.jsonl")
    assert owed(imported(path)) == ["c1"]


def test_f06_an_output_without_its_call_is_named_and_sent_to_no_provider(tmp_path: Path) -> None:
    path = written(tmp_path / NAME, [*HEAD, _output("c9"), _said("assistant", "Hm.")])

    assert faults(doctor(path)) == ["orphan_result"]
    assert jsonl.problems(imported(path)) == {}


def test_f07_a_second_output_is_named_and_one_is_sent(tmp_path: Path) -> None:
    path = written(tmp_path / NAME, [*HEAD, _call("c1"), _output("c1", "a"), _output("c1", "b")])

    found = doctor(path)

    assert (faults(found), opened(found), found.verdict) == (["duplicate"], [], "clean")
    assert jsonl.problems(imported(path)) == {}


def test_ids_that_are_used_again_mean_the_call_that_is_open(tmp_path: Path) -> None:
    records = [*HEAD, _call("k", "a"), _output("k"), _call("k", "b"), _output("k"), _call("k", "c")]

    done = repaired(written(tmp_path / NAME, records), tmp_path / "out" / NAME)

    assert (done.before.calls, done.before.answered) == (3, 2)
    assert [(call.id, call.place) for call in done.before.open] == [("k", "line 10")]
    assert done.records[-1]["payload"]["output"] == UNKNOWN_TEXT


def test_f12_a_result_far_behind_its_call_is_found(tmp_path: Path) -> None:
    between = [_event("agent_message", message=str(count)) for count in range(5_000)]
    found = doctor(written(tmp_path / NAME, [*HEAD, _call("c1"), *between, _output("c1")]))

    assert (found.verdict, found.answered) == ("clean", 1)


def test_f26_a_record_of_64_megabytes_is_read(tmp_path: Path) -> None:
    huge = _output("c1", "x" * (64 * 1024 * 1024))
    found = doctor(written(tmp_path / NAME, [*HEAD, _call("c1"), huge, _call("c2")]))

    assert (opened(found), found.answered) == ([("c2", "requested")], 1)


def test_f29_an_opaque_block_is_carried_byte_for_byte(tmp_path: Path) -> None:
    reasoning = _item("reasoning", summary=[], encrypted_content="gAAAAA" + "x" * 3_000, id="rs_1")
    path = written(tmp_path / NAME, [*HEAD, reasoning, _call("c1")])

    done = repaired(path, tmp_path / "out" / NAME)

    assert jsonl.line(reasoning) in done.path.read_bytes()
    assert render(imported(path), "openai-responses", model="m").messages[1] == reasoning["payload"]


def test_f30_a_call_whose_arguments_were_cut_off_is_open_and_is_no_proof_that_it_did_not_run(tmp_path: Path) -> None:
    cut = _item("function_call", name="write", arguments='{"path":"a.txt","text":"hel', call_id="c1")
    path = written(tmp_path / NAME, [*HEAD, cut])

    [call] = doctor(path).open

    assert (call.arguments, call.risk) == (cut["payload"]["arguments"], "tool_outcome_unknown")
    assert jsonl.problems(imported(path)) == {}


def test_f31_a_message_with_nothing_in_it_is_no_alarm(tmp_path: Path) -> None:
    empty = _item("message", role="assistant", content=[])
    path = written(tmp_path / NAME, [*HEAD, empty, _said("user", "again"), _said("assistant", "Yes.")])

    assert doctor(path).verdict == "clean"
    assert jsonl.problems(imported(path)) == {}


def test_f35_half_a_character_makes_no_record_unreadable(tmp_path: Path) -> None:
    records = [*HEAD, _call("c1", "a\ud83d"), _output("c1", "b\ud83d"), _call("c2", "\udc8f")]
    path = written(tmp_path / NAME, records)

    done = repaired(path, tmp_path / "out" / NAME)

    assert (opened(done.before), faults(done.before)) == ([("c2", "requested")], [])
    assert done.records[:-1] == records
    log = imported(path)
    assert jsonl.problems(log) == {}
    [result] = [event for event in log if event.type == "tool_result"]
    assert result.data["parts"] == [{"type": "text", "content": "b\ud83d"}]


def test_f39_an_unknown_type_does_not_make_an_intact_file_corrupt(tmp_path: Path) -> None:
    found = doctor(written(tmp_path / NAME, [*HEALTHY, _line("compaction_done", {"v": 9})]))

    assert (found.verdict, found.unknown) == ("clean", {"compaction_done": 1})


def test_a_compaction_hides_no_open_call(tmp_path: Path) -> None:
    compacted = _line("compacted", {"message": "They charged.", "replacement_history": []})
    path = written(tmp_path / NAME, [*HEAD, _call("c1"), compacted, _said("user", "go on")])

    done = repaired(path, tmp_path / "out" / NAME)

    assert opened(done.before) == [("c1", "requested")]
    assert [each["type"] for each in done.records[-3:]] == ["response_item", "compacted", "response_item"]


def test_records_of_other_tools_are_not_taken_for_a_rollout(tmp_path: Path) -> None:
    other: list[Record] = [
        {"type": "message", "role": "user", "content": "hi"},
        {"type": "session_meta", "payload": "text"},
        {"timestamp": "t", "type": "user", "payload": {}},
    ]
    for count, record in enumerate(other):
        [unread] = examine([written(tmp_path / f"{count}.jsonl", [record])])

        assert (unread.format, unread.verdict) == (None, "unreadable")


def test_an_object_nested_without_end_is_a_fault(tmp_path: Path) -> None:
    deep = b'{"timestamp":"t","type":"response_item","payload":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}\n"
    found = doctor(written(tmp_path / NAME, jsonl.text([*HEAD, _call("c1")]) + deep))

    assert opened(found) == [("c1", "requested")]
    assert faults(found) == ["torn"]


def test_the_copy_is_refused_where_something_is(tmp_path: Path) -> None:
    path = written(tmp_path / NAME, [*HEAD, _call("c1")])
    there = written(tmp_path / "out" / NAME, b"mine")
    found = jsonl.found_at(path)
    assert found.format.repair is not None

    with pytest.raises(Exception, match="something is there already"):
        found.format.repair(found, doctor(path), there)

    assert there.read_bytes() == b"mine"


def test_what_is_read_is_what_the_strict_decoder_reads_of_it(tmp_path: Path) -> None:
    """The quick way and the whole way see the same calls, with the same names and arguments."""
    path = written(tmp_path / NAME, [*HEALTHY[:-2], _call("c9", 'é"\\')])
    found = jsonl.found_at(path)

    quick = _parts(found.format.read(found, "calls"))
    whole = _parts(found.format.read(found, "whole"))

    assert quick == whole
    assert msgspec.json.decode(quick[-1][2]) == {"cmd": 'é"\\'}


def _parts(items: Any) -> list[tuple[str, str, str]]:
    said = [item.data for item in items if getattr(item, "type", "") == "assistant_message"]
    parts = [part for data in said for part in data["parts"] if part["type"] == "tool_call"]
    return [(part["id"], part["name"], _plain(part["arguments"])) for part in parts]


def _plain(arguments: str) -> str:
    return arguments if not arguments.startswith("{") else json.dumps(json.loads(arguments), sort_keys=True)


def test_f08_a_call_that_is_asked_for_again_does_not_hide_the_one_that_was_killed(tmp_path: Path) -> None:
    records = [*HEALTHY[:1], _said("user", "charge"), _call("k"), _said("user", "go on"), _call("k"), _output("k")]

    done = repaired(written(tmp_path / NAME, records), tmp_path / "out" / NAME)

    assert (done.before.calls, done.before.answered, opened(done.before)) == (2, 1, [("k", "requested")])
    assert owed(imported(tmp_path / NAME)) == ["k"]
