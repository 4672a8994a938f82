"""Sessions of pi, with and without the tree, written by the documented shapes and broken as crashes break them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.formats import jsonl
from tests.formats.jsonl import Open, Record, doctor, faults, imported, opened, owed, repaired, written
from turnwal.formats.doctor import examine
from turnwal.formats.wording import UNKNOWN_TEXT

NAME = "2026-01-01T00-00-00-000Z_019b76da-0000-7000-8000-000000000001.jsonl"
HEADER: Record = {"type": "session", "version": 3, "id": "S", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w"}
OLD_HEADER: Record = {name: value for name, value in HEADER.items() if name != "version"}
T0 = 1767225600000


def _chain(*entries: Record, after: str | None = None, first: int = 1) -> list[Record]:
    """The entries as a tree that is one path, from `after` on."""
    made = []
    parent = after
    for number, entry in enumerate(entries, first):
        made.append({"type": entry["type"], "id": f"e{number}", "parentId": parent, **entry})
        parent = f"e{number}"
    return made


def _entry(message: Record, second: int = 1) -> Record:
    return {"type": "message", "timestamp": f"2026-01-01T00:00:{second:02}.000Z", "message": message}


def _user(said: Any = "charge") -> Record:
    return _entry({"role": "user", "content": said, "timestamp": T0})


def _asks(*ids: str, stop: str = "toolUse", said: str = "Now.") -> Record:
    calls = [{"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": "make"}} for id in ids]
    content = [
        {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "s"},
        {"type": "text", "text": said},
        *calls,
    ]
    return _entry({"role": "assistant", "content": content, "provider": "p", "model": "m", "stopReason": stop}, 2)


def _result(id: str, said: str = "done", *, failed: bool = False) -> Record:
    content = [{"type": "text", "text": said}]
    return _entry(
        {"role": "toolResult", "toolCallId": id, "toolName": "bash", "content": content, "isError": failed}, 3
    )


MODEL: Record = {"type": "model_change", "timestamp": "2026-01-01T00:00:00.000Z", "provider": "p", "modelId": "m"}
HEALTHY = [
    HEADER,
    *_chain(
        MODEL,
        _user(),
        _asks("c1", "c2"),
        _result("c2"),
        _result("c1", "no", failed=True),
        _asks("c3"),
        _result("c3"),
        _entry({"role": "bashExecution", "command": "ls", "output": "a.txt", "exitCode": 0}),
        _user([{"type": "text", "text": "look"}, {"type": "image", "data": "QUJD", "mimeType": "image/png"}]),
        _asks(stop="stop", said="Charged."),
    ),
]


def _expected(records: Sequence[Record]) -> Open:
    """The open calls by the meaning of the records alone."""
    found: dict[str, str] = {}
    for record in records:
        message = record.get("message", {})
        if message.get("role") == "assistant":
            found |= {block["id"]: "requested" for block in message["content"] if block["type"] == "toolCall"}
        elif message.get("role") == "toolResult":
            del found[message["toolCallId"]]
    return list(found.items())


def _old(records: Sequence[Record]) -> list[Record]:
    """The same as the first version wrote it: without a tree."""
    return [
        OLD_HEADER if record["type"] == "session" else {k: v for k, v in record.items() if k not in ("id", "parentId")}
        for record in records
    ]


def _path(records: Sequence[Record]) -> list[Record]:
    """The entries from the leaf, which is the last of the file, up to the root, in order."""
    by_id = {record["id"]: record for record in records if record["type"] != "session"}
    found: list[Record] = []
    at: Record | None = records[-1]
    while at is not None:
        found.insert(0, at)
        at = by_id.get(at["parentId"])
    return found


def _history(records: Sequence[Record]) -> list[str]:
    """What the model is shown, as letters: each message of the model with the ids that it asks for, each result."""
    shown = []
    for record in records:
        message = record.get("message", {})
        if message.get("role") == "assistant":
            ids = [block["id"] for block in message["content"] if block["type"] == "toolCall"]
            shown.append(" ".join(["A", *ids]))
        elif message.get("role") == "toolResult":
            shown.append(f"R {message['toolCallId']}")
        elif message.get("role") == "user":
            shown.append("U")
    return shown


@pytest.mark.parametrize("old", [False, True])
def test_a_healthy_session_is_clean(tmp_path: Path, *, old: bool) -> None:
    found = doctor(written(tmp_path / NAME, _old(HEALTHY) if old else HEALTHY))

    assert (found.format, found.verdict, found.version, found.session) == ("pi", "clean", "1" if old else "3", "S")
    assert (found.calls, found.answered, found.on_resume) == (3, 3, "continues")
    assert not found.damage
    assert not found.unknown


@pytest.mark.parametrize("old", [False, True])
def test_each_prefix_has_exactly_the_calls_open_there_and_is_repaired(tmp_path: Path, *, old: bool) -> None:
    records = _old(HEALTHY) if old else HEALTHY
    for count, data in jsonl.prefixes(records):
        path = written(tmp_path / str(count) / NAME, data)

        done = repaired(path, tmp_path / f"out{count}" / NAME)

        expected = _expected(records[:count])
        assert opened(done.before) == expected, count
        assert done.before.verdict == ("interrupted" if expected else "clean"), count
        assert not done.before.damage, count
        log = imported(path)
        assert owed(log) == [id for id, _ in expected], count
        if count > 2:
            assert jsonl.problems(log) == {}, count
        ours = [each for each in done.records if "toolResult" in str(each) and UNKNOWN_TEXT in str(each)]
        assert [each["message"]["toolCallId"] for each in ours] == [id for id, _ in expected], count
        assert all(each["message"]["isError"] for each in ours)


def test_killed_with_a_finished_sibling_the_results_stand_in_order_on_the_way_to_the_leaf(tmp_path: Path) -> None:
    entries = _chain(_user(), _asks("c1", "c2", "c3"), _result("c2"), _user("go on"), _asks(stop="stop"))

    done = repaired(written(tmp_path / NAME, [HEADER, *entries]), tmp_path / "out" / NAME)

    assert opened(done.before) == [("c1", "requested"), ("c3", "requested")]
    assert _history(_path(done.records)) == ["U", "A c1 c2 c3", "R c1", "R c2", "R c3", "U", "A"]
    assert done.records[-1] == entries[-1]
    first = done.records[3]
    assert (first["timestamp"], first["parentId"], first["message"]["timestamp"]) == (
        "2026-01-01T00:00:02.000Z", "e2", T0 + 2_000
    )  # fmt: skip
    carried = [record for record in done.records if record["type"] == "session" or record["id"].startswith("e")]
    assert [{**record, "parentId": 0} for record in carried] == [
        {**record, "parentId": 0} for record in (HEADER, *entries)
    ]


def test_killed_in_a_single_call(tmp_path: Path) -> None:
    found = doctor(written(tmp_path / NAME, [HEADER, *_chain(_user(), _asks("c1"))]))

    [call] = found.open
    assert (call.id, call.name, call.evidence, call.risk) == ("c1", "bash", "requested", "tool_outcome_unknown")
    assert json.loads(call.arguments or "") == {"command": "make"}
    assert (found.verdict, found.on_resume) == ("interrupted", "invents_answer")


@pytest.mark.parametrize("stop", ["aborted", "error"])
def test_a_call_of_an_unfinished_message_is_told_and_gets_no_result(tmp_path: Path, stop: str) -> None:
    path = written(tmp_path / NAME, [HEADER, *_chain(_user(), _asks("c1", "c2", stop=stop), _user("go on"))])

    done = repaired(path, tmp_path / "out" / NAME)

    assert opened(done.before) == [("c1", "requested"), ("c2", "requested")]
    assert f"stopReason {stop}: the message did not finish" in done.before.open[0].because[1]
    assert owed(imported(path)) == ["c1", "c2"]
    assert _history(_path(done.records)) == ["U", "A c1 c2", "U"]
    assert done.records[2]["turnwal"] == {"closed": ["c1", "c2"]}
    assert done.after.answered == 2


def test_an_invented_result_counts_as_unknown_and_says_the_truth_in_the_copy(tmp_path: Path) -> None:
    entries = _chain(_user(), _asks("c1"), _result("c1", "No result provided", failed=True), _asks("c2"))
    real = _result("c2", "No result provided")

    done = repaired(
        written(tmp_path / NAME, [HEADER, *entries, *_chain(real, after="e4", first=5)]), tmp_path / "out" / NAME
    )

    assert opened(done.before) == [("c1", "answered_synthetic")]
    assert [each["message"]["content"][0]["text"] for each in done.records if "toolCallId" in str(each)] == [
        UNKNOWN_TEXT, "No result provided"
    ]  # fmt: skip


def test_f12_pairing_does_not_follow_one_branch(tmp_path: Path) -> None:
    trunk = _chain(_user(), _asks("c1"), _result("c1"), _asks("c2"), _result("c2"))
    branch = _chain(_user("instead"), _asks("c3"), after="e1", first=6)

    done = repaired(written(tmp_path / NAME, [HEADER, *trunk, *branch]), tmp_path / "out" / NAME)

    assert (done.before.calls, opened(done.before)) == (3, [("c3", "requested")])
    assert _history(_path(done.records)) == ["U", "U", "A c3", "R c3"]


def test_an_open_call_on_a_branch_that_was_left_does_not_move_the_leaf(tmp_path: Path) -> None:
    trunk = _chain(_user(), _asks("c1"))
    branch = _chain(_user("instead"), _asks(stop="stop"), after="e1", first=3)

    done = repaired(written(tmp_path / NAME, [HEADER, *trunk, *branch]), tmp_path / "out" / NAME)

    assert done.records[-1] == branch[-1]
    assert _history(_path(done.records)) == ["U", "U", "A"]


def test_a_branch_at_the_message_that_asked_comes_behind_the_result_too(tmp_path: Path) -> None:
    trunk = _chain(_user(), _asks("c1"), _user("go on"))
    branch = _chain(_user("or so"), after="e2", first=4)

    done = repaired(written(tmp_path / NAME, [HEADER, *trunk, *branch]), tmp_path / "out" / NAME)

    assert _history(_path(done.records)) == ["U", "A c1", "R c1", "U"]
    assert _history(_path(done.records[:-1])) == ["U", "A c1", "R c1", "U"]


def test_torn_at_every_byte_of_the_last_line(tmp_path: Path) -> None:
    records = [HEADER, *_chain(_user(), _asks("c1", "c2"), _result("c1"))]
    for cut, data in enumerate(jsonl.tears(records)):
        found = doctor(written(tmp_path / "torn" / NAME, data))

        assert opened(found) == [("c1", "requested"), ("c2", "requested")], cut
        assert faults(found) == ["torn"], cut


def test_f17_half_an_entry_with_the_next_one_on_its_line(tmp_path: Path) -> None:
    entries = _chain(_user(), _asks("c1"), _result("c1"), _user("go on"))
    data = jsonl.text([HEADER, *entries[:2]]) + jsonl.line(entries[2])[:70] + jsonl.text(entries[3:])

    found = doctor(written(tmp_path / NAME, data))

    assert (faults(found), opened(found)) == (["torn"], [("c1", "requested")])


def test_two_whole_entries_on_one_line_are_two(tmp_path: Path) -> None:
    entries = _chain(_user(), _asks("c1"), _result("c1"))
    data = jsonl.text([HEADER, entries[0]]) + jsonl.line(entries[1]) + jsonl.text(entries[2:])

    done = repaired(written(tmp_path / NAME, data), tmp_path / "out" / NAME)

    assert (faults(done.before), done.before.verdict) == (["fused"], "clean")
    assert done.records == [HEADER, *entries]


def test_f21_a_run_of_zeros_is_named_and_what_is_behind_it_is_read(tmp_path: Path) -> None:
    entries = _chain(_user(), _asks("c1"), _asks("c2"))
    data = jsonl.text([HEADER, *entries[:2]]) + b"\0" * 64 + jsonl.text(entries[2:])

    found = doctor(written(tmp_path / NAME, data))

    assert (faults(found), opened(found)) == (["nul_run"], [("c1", "requested"), ("c2", "requested")])


def test_f22_a_session_without_its_header_is_read_and_said_to_be_taken_for_empty(tmp_path: Path) -> None:
    found = doctor(written(tmp_path / NAME, _chain(_user(), _asks("c1"))))

    assert (found.format, faults(found), opened(found)) == ("pi", ["corrupt"], [("c1", "requested")])


@pytest.mark.parametrize("head", [b"", jsonl.line(HEADER)[:40] + b"\n"], ids=["gone", "torn"])
def test_f22_no_copy_is_made_that_pi_would_take_for_empty(tmp_path: Path, head: bytes) -> None:
    path = written(tmp_path / NAME, head + jsonl.text(_chain(_user(), _asks("c1"))))

    assert "header" in jsonl.refused(path, tmp_path / "out.jsonl")
    assert owed(imported(path)) == ["c1"]


def test_f30_a_call_whose_arguments_were_cut_off_is_open(tmp_path: Path) -> None:
    asks = _asks("c1", stop="error")
    asks["message"]["content"][-1]["arguments"] = '{"path":"a.txt","text":"hel'

    [call] = doctor(written(tmp_path / NAME, [HEADER, *_chain(_user(), asks)])).open

    assert (call.arguments, call.risk) == ('{"path":"a.txt","text":"hel', "tool_outcome_unknown")


def test_f31_a_message_with_nothing_in_it_is_no_alarm(tmp_path: Path) -> None:
    empty = _entry({"role": "assistant", "content": [], "stopReason": "aborted"})
    path = written(tmp_path / NAME, [HEADER, *_chain(_user(), empty, _user("again"), _asks(stop="stop"))])

    assert doctor(path).verdict == "clean"
    assert jsonl.problems(imported(path)) == {}


def test_f35_half_a_character_makes_no_entry_unreadable(tmp_path: Path) -> None:
    entries = _chain(_user("a\ud83d"), _asks("c1", said="\udc8f"), _user("go on"))

    done = repaired(written(tmp_path / NAME, [HEADER, *entries]), tmp_path / "out" / NAME)

    assert (opened(done.before), faults(done.before)) == ([("c1", "requested")], [])
    assert done.records[1:3] == entries[:2]


def test_f39_unknown_types_and_roles_are_counted_and_a_newer_version_is_too_new(tmp_path: Path) -> None:
    new: Record = {"type": "brand_new", "timestamp": "2026-01-01T00:00:00.000Z"}
    entries = _chain(_user(), _asks("c1"), new, _entry({"role": "oracle", "content": "x"}))
    known = doctor(written(tmp_path / "a" / NAME, [HEADER, *entries]))
    newer = doctor(written(tmp_path / "b" / NAME, [HEADER | {"version": 4}, *entries]))

    assert known.unknown == {"brand_new": 1, "message/oracle": 1}
    assert (known.verdict, newer.verdict) == ("interrupted", "too_new")
    assert opened(newer) == opened(known) == [("c1", "requested")]


def test_odd_shapes_are_faults_and_the_rest_goes_on(tmp_path: Path) -> None:
    odd = [
        _entry({"role": "assistant", "content": 5, "stopReason": ["a"]}),
        _entry({"role": "assistant", "content": [{"type": "toolCall", "id": 7, "name": 8, "arguments": 9}]}),
        _entry({"role": "toolResult", "toolCallId": {}, "content": None}),
        _entry({"role": ["user"], "content": "x"}),
        {"type": "message", "message": 5},
        {"type": "custom_message", "timestamp": "x", "content": 4},
    ]
    path = written(tmp_path / NAME, [HEADER, *odd, _user(), _asks("c1")])

    found = doctor(path)

    assert "c1" in [call.id for call in found.open]
    assert "c1" in owed(imported(path))


def test_ids_that_are_used_again_mean_the_call_that_is_open(tmp_path: Path) -> None:
    entries = _chain(_user(), _asks("k"), _result("k"), _asks("k"), _user("go on"))

    done = repaired(written(tmp_path / NAME, [HEADER, *entries]), tmp_path / "out" / NAME)

    assert (done.before.calls, done.before.answered) == (2, 1)
    assert _history(_path(done.records)) == ["U", "A k", "R k", "A k", "R k", "U"]


def test_an_import_keeps_the_words_and_the_times(tmp_path: Path) -> None:
    log = imported(written(tmp_path / NAME, HEALTHY))

    said = [event for event in log if event.type in ("user_message", "assistant_message", "tool_result")]
    assert said[0].data["parts"] == [{"type": "text", "content": "charge"}]
    assert said[1].time == T0 + 2_000
    assert [part["type"] for part in said[1].data["parts"]] == ["reasoning", "text", "tool_call", "tool_call"]
    assert (said[3].data["is_error"], said[3].data["name"]) == (True, "bash")
    assert said[-3].data["parts"][0]["content"] == "Ran `ls`\na.txt"
    assert said[-2].data["parts"][1]["mime_type"] == "image/png"


def test_records_of_other_tools_are_not_taken_for_a_session(tmp_path: Path) -> None:
    other: list[Record] = [
        {"type": "session", "version": 0, "id": "S", "createdAt": T0, "cwd": "/w", "delegationDepth": 0},
        {"type": "message", "role": "user", "content": "hi"},
        {"type": "message", "message": {"role": "system"}, "timestamp": "2026-01-01T00:00:00.000Z"},
        {"type": "label", "timestamp": "2026-01-01T00:00:00.000Z"},
    ]
    for count, record in enumerate(other):
        [found] = examine([written(tmp_path / f"{count}.jsonl", [record])])

        assert found.format != "pi"


def test_f08_a_call_that_is_asked_for_again_does_not_hide_the_one_that_was_killed(tmp_path: Path) -> None:
    records = [HEADER, *_chain(_user(), _asks("k"), _user("go on"), _asks("k"), _result("k"))]

    done = repaired(written(tmp_path / NAME, records), tmp_path / "out" / NAME)

    assert (done.before.calls, done.before.answered, opened(done.before)) == (2, 1, [("k", "requested")])
    assert done.before.open[0].place.endswith("3")
    assert owed(imported(tmp_path / NAME)) == ["k"]
