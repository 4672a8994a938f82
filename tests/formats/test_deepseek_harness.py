"""Logs of deepseek-harness, plain and in frames, written by the documented shapes and broken as crashes break them."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.formats import jsonl
from tests.formats.jsonl import Open, Record, doctor, faults, imported, opened, owed, repaired, written
from turnwal.core.recovery import plan
from turnwal.formats.doctor import examine
from turnwal.formats.wording import NOT_STARTED_TEXT, UNKNOWN_TEXT

_REPAIRED = 40
"""Of so many torn files one is repaired as well."""
T0 = 1767225600000
PLAIN, PACKED = "session.jsonl", "session.jsonl.zstd"
HEADER: Record = {
    "type": "session", "version": 0, "id": "S", "createdAt": T0, "cwd": "/w", "delegationDepth": 0
}  # fmt: skip


class _Log:
    """Records with their numbers, in the batches in which they became durable."""

    def __init__(self, version: int = 0) -> None:
        self.batches: list[list[Record]] = [[HEADER | {"version": version}]]
        self.seq = 0

    def add(self, type: str, data: Record, *, durable: bool = True, **more: Any) -> "_Log":
        record = {"type": type, "seq": self.seq, "time": T0 + self.seq, "data": data, **more}
        self.seq += 1
        return self.put(record, durable=durable)

    def put(self, record: Record, *, durable: bool = True) -> "_Log":
        if durable:
            self.batches.append([record])
        else:
            self.batches[-1].append(record)
        return self

    def turn(self, turn: int = 0) -> "_Log":
        self.add("turn/start", {"turn": turn})
        self.add("user/message", _message("user", _text("charge")), surfaceOp="append", durable=False)
        return self.step(turn)

    def step(self, turn: int = 0, step: int = 0) -> "_Log":
        self.add("step/start", {"turn": turn, "step": step}, durable=False)
        return self.add("request/header", {"header": {"config": {}}, "reason": "initial"}, durable=False)

    def asks(self, *ids: str, step: int = 0) -> "_Log":
        calls = [{"type": "tool-call", "id": id, "name": "bash", "arguments": '{"command":"make"}'} for id in ids]
        message = _message("assistant", {"type": "reasoning", "text": "I charge."}, _text("Now."), *calls)
        data = {"turn": 0, "step": step, "message": message | {"source": {"provider": "p", "model": "m"}}}
        return self.add("assistant/message", data, surfaceOp="append")

    def dispatch(self, id: str) -> "_Log":
        data = {"turn": 0, "step": 0, "callId": id, "name": "bash", "arguments": '{"command":"make"}'}
        return self.add("tool/call", data, durable=False)

    def result(self, id: str, said: str = "done", *, durable: bool = True, **more: Any) -> "_Log":
        return self.add("tool/result", _result(id, said) | more, surfaceOp="append", durable=durable)

    def end(self, turn: int = 0, reason: str = "completed") -> "_Log":
        self.add("step/end", {"turn": turn, "step": 0})
        return self.add("turn/end", {"turn": turn, "reason": {"kind": reason}}, durable=False)

    @property
    def records(self) -> list[Record]:
        return [record for batch in self.batches for record in batch]

    def write(self, path: Path) -> Path:
        return written(path, framed(self.batches) if path.suffix == ".zstd" else self.records)


def _text(said: str) -> Record:
    return {"type": "text", "text": said}


def _message(role: str, *content: Record) -> Record:
    return {"id": f"{role}-1", "role": role, "content": list(content)}


def _result(id: str, said: str, *, failed: bool = False, name: str = "result-1") -> Record:
    block = {"type": "tool-result", "toolCallId": id, "isError": failed, "content": [_text(said)]}
    message = {"id": name, "role": "user", "source": {"kind": "tool", "callId": id}, "content": [block]}
    return {"turn": 0, "step": 0, "message": message}


def _code(code: str) -> Record:
    return {"error": {"name": "SomeError", "code": code}}


def framed(batches: Iterable[Sequence[Record]]) -> bytes:
    """One checksummed frame a batch."""
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    return b"".join(compressor.compress(jsonl.text(batch)) for batch in batches)


def _expanded(path: Path) -> list[Record]:
    reader = zstandard.ZstdDecompressor().stream_reader(path.read_bytes(), read_across_frames=True)
    return [json.loads(line) for line in reader.read().splitlines()]


def healthy() -> _Log:
    log = _Log().turn().asks("c1", "c2").dispatch("c1").dispatch("c2").result("c2").result("c1", durable=False)
    log.add("approval/asked", {"id": "a1", "toolName": "bash", "callId": "c2"})
    chunks = {"turn": 0, "step": 0, "index": 0, "dt": [1, 1], "texts": ["a", "b", "c"]}
    log.put({"type": "text-chunks", "seq0": log.seq, "time0": T0, "data": chunks})
    log.seq += 3
    log.asks("c3").dispatch("c3").result("c3", "no", message=_result("c3", "no", failed=True)["message"])
    log.add("assistant/message", {"turn": 0, "step": 0, "message": _message("assistant", _text("Charged."))})
    return log.end()


def _expected(records: Sequence[Record]) -> Open:
    """The open calls by the meaning of the records alone."""
    found: dict[str, str] = {}
    for record in records:
        data = record.get("data", {})
        if record["type"] == "assistant/message":
            found |= {each["id"]: "requested" for each in data["message"]["content"] if each["type"] == "tool-call"}
        elif record["type"] == "tool/call":
            found[data["callId"]] = "dispatched"
        elif record["type"] == "tool/result":
            del found[data["message"]["source"]["callId"]]
    return list(found.items())


@pytest.fixture(params=[PLAIN, PACKED])
def name(request: pytest.FixtureRequest) -> str:
    """Each test for plain files and for frames."""
    return str(request.param)


def test_a_healthy_session_is_clean(tmp_path: Path, name: str) -> None:
    found = doctor(healthy().write(tmp_path / name))

    assert (found.format, found.verdict, found.version, found.session) == ("deepseek_harness", "clean", "0", "S")
    assert (found.calls, found.answered, found.on_resume) == (3, 3, "continues")
    assert not found.damage
    assert not found.unknown


def test_each_prefix_of_a_healthy_session_has_exactly_the_calls_open_there(tmp_path: Path) -> None:
    records = healthy().records
    for count, data in jsonl.prefixes(records):
        path = written(tmp_path / str(count) / PLAIN, data)

        found = doctor(path)

        expected = _expected(records[:count])
        assert opened(found) == expected, count
        assert not found.damage, count
        risks = {call.id: call.risk for call in found.open}
        assert risks == {
            id: "tool_not_started" if evidence == "requested" else "tool_outcome_unknown" for id, evidence in expected
        }
        log = imported(path)
        assert owed(log) == [id for id, _ in expected], count
        assert {each.data["id"]: each.data["metadata"]["risk"] for each in plan(log).lost_calls()} == risks


def test_each_batch_of_a_packed_log_is_a_place_where_it_may_end(tmp_path: Path) -> None:
    batches = healthy().batches
    for count in range(1, len(batches) + 1):
        path = written(tmp_path / str(count) / PACKED, framed(batches[:count]))

        found = doctor(path)

        assert opened(found) == _expected([record for batch in batches[:count] for record in batch]), count
        assert not found.damage, count


def test_each_prefix_is_repaired_and_the_numbers_go_on(tmp_path: Path) -> None:
    records = healthy().records
    for count, data in jsonl.prefixes(records):
        done = repaired(written(tmp_path / str(count) / PLAIN, data), tmp_path / f"out{count}" / PLAIN)

        added = done.records[count:]
        assert done.records[:count] == records[:count]
        assert [each["data"]["message"]["source"]["callId"] for each in added] == [
            id for id, _ in _expected(records[:count])
        ]
        last = records[count - 1]
        following: int = last["seq0"] + len(last["data"]["texts"]) if "seq0" in last else last.get("seq", -1) + 1
        assert [each["seq"] for each in added] == list(range(following, following + len(added)))


def test_an_import_is_taken_by_every_provider(tmp_path: Path) -> None:
    records = healthy().records
    for count, data in jsonl.prefixes(records, least=3):
        log = imported(written(tmp_path / str(count) / PLAIN, data))

        assert jsonl.problems(log) == {}, count
        assert [event.time for event in log if event.type == "user_message"] == [T0 + 1]


def test_killed_before_and_in_a_call_with_a_finished_sibling(tmp_path: Path, name: str) -> None:
    log = _Log().turn().asks("c1", "c2", "c3").dispatch("c1").dispatch("c2").result("c1")
    path = log.write(tmp_path / name)

    done = repaired(path, tmp_path / "out" / name)

    assert [(call.id, call.evidence, call.risk) for call in done.before.open] == [
        ("c2", "dispatched", "tool_outcome_unknown"),
        ("c3", "requested", "tool_not_started"),
    ]
    assert any("tool/call" in reason for reason in done.before.open[0].because)
    records = _expanded(done.path) if name == PACKED else done.records
    assert records[: len(log.records)] == log.records
    unknown, not_started = records[len(log.records) :]
    assert unknown["sourceEventSeqs"] == [6]
    assert (unknown["seq"], unknown["time"], unknown["surfaceOp"]) == (log.seq, T0 + log.seq - 1, "append")
    assert unknown["data"]["error"] == {"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"}
    assert not_started["data"]["error"] == {"name": "ToolNotStartedError", "code": "TOOL_NOT_STARTED"}
    assert "sourceEventSeqs" not in not_started
    [block] = not_started["data"]["message"]["content"]
    assert (block["isError"], block["content"]) == (True, [_text(NOT_STARTED_TEXT)])
    assert unknown["data"]["message"]["content"][0]["content"] == [_text(UNKNOWN_TEXT)]


def test_whole_frames_are_carried_byte_for_byte(tmp_path: Path) -> None:
    path = _Log().turn().asks("c1").write(tmp_path / PACKED)

    done = repaired(path, tmp_path / "out" / PACKED)

    assert done.path.read_bytes().startswith(path.read_bytes())


def test_the_policy_is_not_believed_where_a_result_has_no_dispatch(tmp_path: Path, name: str) -> None:
    log = _Log().turn().asks("c1").result("c1").asks("c2")

    [call] = doctor(log.write(tmp_path / name)).open

    assert (call.id, call.evidence, call.risk) == ("c2", "requested", "tool_outcome_unknown")
    assert [each.data["metadata"]["risk"] for each in plan(imported(tmp_path / name)).lost_calls()] == [call.risk]


def test_the_policy_is_not_believed_where_one_batch_has_a_dispatch_and_what_came_of_it(tmp_path: Path) -> None:
    late = _Log().turn().asks("c1").dispatch("c1").result("c1", durable=False).asks("c2")
    early = _Log().turn().asks("c1").dispatch("c1").result("c1").asks("c2")
    refused = _result("c1", "no such tool", failed=True)
    no_body = _Log().turn().asks("c1").dispatch("c1").result("c1", durable=False, message=refused["message"]).asks("c2")

    found = [
        doctor(each.write(tmp_path / str(count) / PACKED)).open for count, each in enumerate((late, early, no_body))
    ]

    assert [call.risk for [call] in found] == ["tool_outcome_unknown", "tool_not_started", "tool_not_started"]


@pytest.mark.parametrize("header", [{"parentSession": "P", "seedLength": 8}, {"parentSession": "P"}])
def test_what_a_fork_inherited_in_one_batch_does_not_speak_against_the_policy(tmp_path: Path, header: Record) -> None:
    log = _Log().turn().asks("c1").dispatch("c1").result("c1").add("session/end-seed", {}).asks("c2")
    log.batches = [[log.records[0] | header, *log.records[1:-1]], log.records[-1:]]

    assert [call.risk for call in doctor(log.write(tmp_path / PACKED)).open] == ["tool_not_started"]
    log.batches[0][0] = HEADER
    assert [call.risk for call in doctor(log.write(tmp_path / PACKED)).open] == ["tool_outcome_unknown"]


@pytest.mark.parametrize("header", [{"parentSession": "P", "seedLength": 6}, {"parentSession": "P"}])
def test_a_call_that_a_fork_inherited_without_an_answer_may_have_run_in_its_parent(
    tmp_path: Path, header: Record
) -> None:
    log = _Log().turn().asks("c1").add("session/end-seed", {}).asks("c2")
    log.batches[0][0] = HEADER | header

    found = doctor(log.write(tmp_path / PLAIN))

    assert [(call.id, call.risk) for call in found.open] == [
        ("c1", "tool_outcome_unknown"),
        ("c2", "tool_outcome_unknown"),
    ]


def test_an_asked_approval_is_named_and_keeps_the_call_open(tmp_path: Path) -> None:
    log = _Log().turn().asks("c1").dispatch("c1").add("approval/asked", {"id": "a", "toolName": "b", "callId": "c1"})

    [call] = doctor(log.write(tmp_path / PLAIN)).open

    assert call.evidence == "dispatched"
    assert "approval/asked: a person was asked" in call.because[2]


def test_f28_died_while_a_person_was_asked_before_the_call_was_handed_over(tmp_path: Path) -> None:
    log = _Log().turn().asks("c1").add("approval/asked", {"id": "a", "toolName": "b", "callId": "c1"})

    [call] = doctor(log.write(tmp_path / PLAIN)).open

    assert (call.evidence, call.risk) == ("requested", "tool_not_started")


def test_the_codes_of_its_own_recovery(tmp_path: Path, name: str) -> None:
    log = _Log().turn().asks("c1", "c2").dispatch("c1")
    log.result("c1", "Its outcome is unknown.", **_code("TOOL_OUTCOME_UNKNOWN"))
    log.result("c2", "It was not started.", **_code("TOOL_NOT_STARTED"), durable=False).end(reason="interrupted")
    path = log.write(tmp_path / name)

    done = repaired(path, tmp_path / "out" / name)

    assert opened(done.before) == [("c1", "answered_synthetic")]
    assert (done.before.answered, done.before.open[0].risk) == (1, "tool_outcome_unknown")
    assert owed(imported(path)) == ["c1"]
    records = _expanded(done.path) if name == PACKED else done.records
    said = {
        each["data"]["message"]["source"]["callId"]: each["data"]["message"]["content"][0]["content"][0]["text"]
        for each in records
        if each["type"] == "tool/result"
    }
    assert said == {"c1": UNKNOWN_TEXT, "c2": "It was not started."}
    assert [each["seq"] for each in records[1:]] == list(range(log.seq))


def test_not_started_is_not_believed_of_a_fork_or_of_a_call_that_was_handed_over(tmp_path: Path) -> None:
    forked = _result("c1", "no record of this call", name="forked-tool-result-c1-5") | _code("TOOL_NOT_STARTED")
    log = _Log().turn().asks("c1", "c2").add("tool/result", forked, surfaceOp="append")
    log.dispatch("c2").result("c2", "It was not started.", **_code("TOOL_NOT_STARTED"))

    found = doctor(log.write(tmp_path / PLAIN))

    assert opened(found) == [("c1", "answered_synthetic"), ("c2", "answered_synthetic")]


def test_what_replaces_is_no_second_call_and_no_second_result(tmp_path: Path) -> None:
    log = _Log().turn().asks("c1").dispatch("c1").result("c1")
    message = {"turn": 0, "step": 0, "message": _message("assistant", {"type": "tool-call", "id": "c9", "name": "b"})}
    log.add("assistant/message", message, surfaceOp={"op": "replace", "start": 4, "end": 4})
    log.add("tool/result", _result("c1", "[pruned]"), surfaceOp={"op": "replace", "startSeq": 6, "endSeq": 6})

    found = doctor(log.write(tmp_path / PLAIN))

    assert (found.verdict, found.calls, found.damage) == ("clean", 1, ())


def test_the_older_form_of_a_result_is_read(tmp_path: Path) -> None:
    log = _Log().turn().asks("c1").dispatch("c1")
    log.add("tool/result", {"turn": 0, "step": 0, "callId": "c1", "content": [_text("done")], "isError": False})

    assert doctor(log.write(tmp_path / PLAIN)).verdict == "clean"


@pytest.mark.parametrize("version", [3, 4])
def test_later_versions_are_read(tmp_path: Path, version: int) -> None:
    log = _Log(version).turn().asks("c1")
    log.add("system/message", {"turn": 0, "step": 0, "message": _message("system", _text("Be brief."))})

    found = doctor(log.write(tmp_path / f"session.v{version}.jsonl"))

    assert (found.verdict, found.version, opened(found)) == ("interrupted", str(version), [("c1", "requested")])


def test_a_newer_version_is_too_new_and_is_not_repaired(tmp_path: Path, name: str) -> None:
    path = _Log(5).turn().asks("c1").write(tmp_path / name)

    found = doctor(path)

    assert (found.verdict, opened(found)) == ("too_new", [("c1", "requested")])
    _is_refused(path, tmp_path / "out", "version 5")


def test_a_gap_between_numbers_is_named_makes_the_risk_unknown_and_is_not_repaired(tmp_path: Path, name: str) -> None:
    log = _Log().turn().asks("c1")
    log.seq += 2
    path = log.add("hook/invoked", {}).write(tmp_path / name)

    found = doctor(path)

    assert faults(found) == ["gap"]
    assert "number 7 where 5 was to be" in found.damage[0].what
    assert [call.risk for call in found.open] == ["tool_outcome_unknown"]
    _is_refused(path, tmp_path / "out", "number 7")


def test_f24_two_writers_gave_one_number_twice(tmp_path: Path) -> None:
    log = _Log().turn().asks("c1").dispatch("c1")
    log.seq -= 1
    log.result("c1")

    found = doctor(log.write(tmp_path / PLAIN))

    assert faults(found) == ["gap"]
    assert "number 5 again" in found.damage[0].what
    assert found.calls == found.answered == 1


def test_a_call_left_open_in_a_step_that_ended_is_told_and_not_repaired(tmp_path: Path) -> None:
    path = _Log().turn().asks("c1").dispatch("c1").end().write(tmp_path / PLAIN)

    assert opened(doctor(path)) == [("c1", "dispatched")]
    _is_refused(path, tmp_path / "out", "c1")


def _is_refused(path: Path, out: Path, word: str) -> None:
    assert word in jsonl.refused(path, out)


@pytest.mark.parametrize("odd", [{}, {"message": 5}, {"message": {"content": "x"}}, {"message": {"content": [{}]}}, 5])
@pytest.mark.parametrize("type", ["assistant/message", "tool/call", "tool/result", "turn/start"])
def test_an_odd_event_does_not_keep_a_copy_from_being_made(tmp_path: Path, type: str, odd: Any) -> None:
    log = _Log().turn().add(type, odd, surfaceOp="append").asks("c1").dispatch("c1")

    done = repaired(log.write(tmp_path / PLAIN), tmp_path / "out" / PLAIN)

    assert opened(done.before) == [("c1", "dispatched")]
    assert done.records[-1]["data"]["message"]["source"]["callId"] == "c1"


@pytest.mark.parametrize("content", ["interrupted", [_text("interrupted")]])
def test_an_invented_result_of_another_shape_says_the_truth_in_the_copy(tmp_path: Path, content: Any) -> None:
    log = _Log().turn().asks("c1").dispatch("c1")
    log.add("tool/result", {"callId": "c1", "content": content, **_code("TOOL_OUTCOME_UNKNOWN")}, surfaceOp="append")

    done = repaired(log.write(tmp_path / PLAIN), tmp_path / "out" / PLAIN)

    assert opened(done.before) == [("c1", "answered_synthetic")]
    assert done.records[-1]["data"]["content"] == [_text(UNKNOWN_TEXT)]


def test_torn_at_every_byte_of_the_last_line(tmp_path: Path) -> None:
    records = _Log().turn().asks("c1", "c2").dispatch("c1").result("c1").records
    for cut, data in enumerate(jsonl.tears(records)):
        path = written(tmp_path / "torn" / PLAIN, data)

        found = doctor(path)

        assert opened(found) == [("c1", "dispatched"), ("c2", "requested")], cut
        assert [call.risk for call in found.open] == ["tool_outcome_unknown", "tool_not_started"]
        assert faults(found) == ["torn"], cut
        if cut % _REPAIRED == 0:
            assert repaired(path, tmp_path / f"out{cut}" / PLAIN).records[: len(records) - 1] == records[:-1]


def test_torn_at_every_byte_of_the_last_frame(tmp_path: Path) -> None:
    log = _Log().turn().asks("c1", "c2").dispatch("c1")
    head = framed(log.batches)
    last = framed([[*log.result("c1").batches[-1]]])
    for cut in range(1, len(last)):
        path = written(tmp_path / "torn" / PACKED, head + last[:cut])

        found = doctor(path)

        whole = cut >= len(last) - 4  # all but the checksum: the batch can be read
        still = [("c2", "requested")] if whole else [("c1", "dispatched"), ("c2", "requested")]
        assert opened(found) == still, cut
        assert "torn" in faults(found), cut
        if cut % _REPAIRED == 0 or whole:
            done = repaired(path, tmp_path / f"out{cut}" / PACKED)
            assert done.after.verdict == "clean", cut
            assert done.path.read_bytes().startswith(head), cut


def test_a_frame_whose_checksum_is_wrong_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    log = _Log().turn().asks("c1").dispatch("c1").result("c1").asks("c2")
    frames = [framed([batch]) for batch in log.batches]
    broken = bytearray(frames[2])
    broken[-1] ^= 0xFF

    found = doctor(written(tmp_path / PACKED, b"".join([*frames[:2], bytes(broken), *frames[3:]])))

    assert "corrupt" in faults(found)
    assert found.damage[0].place == "frame 3"
    assert ("c2", "requested") in opened(found)


def test_bytes_between_frames_are_named(tmp_path: Path) -> None:
    log = _Log().turn().asks("c1").dispatch("c1")
    frames = [framed([batch]) for batch in log.batches]

    found = doctor(written(tmp_path / PACKED, frames[0] + b"\0" * 40 + b"".join(frames[1:])))

    assert [(fault.kind, fault.place) for fault in found.damage] == [("corrupt", "frame 2")]
    assert opened(found) == [("c1", "dispatched")]


def test_a_bomb_is_no_session(tmp_path: Path) -> None:
    bomb = zstandard.ZstdCompressor().compress(jsonl.text([HEADER]) + b"\0" * (64 << 20))

    [found] = examine([written(tmp_path / PACKED, bomb)])

    assert found.verdict == "unreadable"


def test_f17_half_an_event_with_the_next_one_on_its_line(tmp_path: Path) -> None:
    log = _Log().turn().asks("c1").dispatch("c1")
    torn = jsonl.text(log.records) + jsonl.line(log.result("c1").records[-1])[:50]
    log.seq -= 1

    done = repaired(
        written(tmp_path / PLAIN, torn + jsonl.text([log.add("hook/result", {}).records[-1]])), tmp_path / "out" / PLAIN
    )

    assert (faults(done.before), opened(done.before)) == (["torn"], [("c1", "dispatched")])


def test_f21_a_run_of_zeros_is_named_and_nothing_is_said_not_to_have_started(tmp_path: Path) -> None:
    log = _Log().turn().asks("c1")
    data = jsonl.text(log.records) + b"\0" * 300 + b"\n" + jsonl.text([log.add("hook/result", {}).records[-1]])

    found = doctor(written(tmp_path / PLAIN, data))

    assert faults(found) == ["nul_run"]
    assert [call.risk for call in found.open] == ["tool_outcome_unknown"]


def test_f22_a_log_without_its_header_is_read_and_said_not_to_load(tmp_path: Path) -> None:
    path = written(tmp_path / PLAIN, _Log().turn().asks("c1").records[1:])

    found = doctor(path)

    assert (faults(found), opened(found)) == (["corrupt"], [("c1", "requested")])
    _is_refused(path, tmp_path / "out", "header")


def test_ids_that_are_used_again_mean_the_call_that_is_open(tmp_path: Path) -> None:
    log = _Log().turn().asks("k").dispatch("k").result("k").asks("k")

    [call] = doctor(log.write(tmp_path / PLAIN)).open

    assert (call.id, call.evidence, call.risk) == ("k", "requested", "tool_not_started")


def test_f39_unknown_types_are_counted_whether_they_may_be_ignored_or_not(tmp_path: Path) -> None:
    log = _Log().turn().asks("c1").add("plugin/new", {}).add("plugin/new", {}, ignorable=True)

    found = doctor(log.write(tmp_path / PLAIN))

    assert (found.unknown, opened(found), found.damage) == ({"plugin/new": 2}, [("c1", "requested")], ())


def test_odd_shapes_are_faults_and_the_rest_goes_on(tmp_path: Path) -> None:
    log = _Log().turn()
    log.add("assistant/message", {"message": 5}).add("assistant/message", {}).add("tool/result", {"message": []})
    log.add("tool/call", {"callId": 7}).add("user/message", {"message": "text"}).put({"type": "hook/x", "seq": "9"})
    path = log.asks("c1").write(tmp_path / PLAIN)

    found = doctor(path)

    assert opened(found) == [("c1", "requested")]
    assert set(faults(found)) == {"corrupt", "orphan_result", "gap"}
    assert owed(imported(path)) == ["c1"]


def test_f35_half_a_character_makes_no_event_unreadable(tmp_path: Path) -> None:
    path = _Log().turn().asks("c1", "c2").dispatch("c1").result("c1", "a\ud83d").write(tmp_path / PLAIN)

    done = repaired(path, tmp_path / "out" / PLAIN)

    assert (opened(done.before), faults(done.before)) == ([("c2", "requested")], [])
    assert jsonl.problems(imported(path)) == {}


def test_records_of_other_tools_are_not_taken_for_a_log(tmp_path: Path) -> None:
    other: list[Record] = [
        {"type": "session", "id": "p", "version": 3, "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"},
        {"type": "turn/start", "seq": 0, "prev": "0" * 64, "time": T0, "data": {}},
        {"type": "turn", "seq": 0, "time": T0, "data": {}},
    ]
    for count, record in enumerate(other):
        [found] = examine([written(tmp_path / f"{count}.jsonl", [record])])

        assert found.format != "deepseek_harness"
