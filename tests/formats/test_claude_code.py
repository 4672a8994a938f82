"""Claude Code transcripts: what a file proves about each call, whatever befell the file."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.formats.transcripts import (
    SESSION,
    Line,
    Transcript,
    answered_in,
    asked_in,
    examined,
    healthy,
    opened,
)
from turnwal.formats.claude_code import FORMAT
from turnwal.formats.doctor import examine
from turnwal.formats.format import Found
from turnwal.formats.registry import format_of
from turnwal.formats.sampling import sample

Change = Callable[[Transcript], object]


def transcript(tmp_path: Path, made: Transcript) -> Path:
    return made.write(tmp_path / f"{SESSION}.jsonl")


def started() -> Transcript:
    made = Transcript()
    made.prompt("build it")
    return made


def kinds(path: Path) -> list[tuple[str, str]]:
    return [(fault.kind, fault.place) for fault in examined(path).damage]


def test_a_healthy_session_gives_no_alarm(tmp_path: Path) -> None:
    found = examined(transcript(tmp_path, healthy()))
    assert (found.verdict, found.calls, found.answered, found.open, found.damage) == ("clean", 5, 5, (), ())
    assert (found.version, found.session, found.unknown, found.on_resume) == ("2.1.39", SESSION, {}, "continues")


def test_killed_in_a_single_call(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    found = examined(transcript(tmp_path, made))
    assert (found.verdict, found.on_resume) == ("interrupted", "unknown")
    (call,) = found.open
    assert (call.id, call.name, call.evidence, call.risk) == ("toolu_1", "Bash", "requested", "tool_outcome_unknown")
    assert (call.place, call.arguments, call.run) == ("line 2", '{"command":"make toolu_1"}', "main")


def test_killed_with_a_finished_sibling(tmp_path: Path) -> None:
    made = started()
    for id in ("toolu_1", "toolu_2", "toolu_3"):
        made.call("msg_1", id)
    made.result("toolu_1")
    made.result("toolu_3")
    found = examined(transcript(tmp_path, made))
    assert (opened(found), found.calls, found.answered) == ({"toolu_2": "requested"}, 3, 2)


def test_cutting_a_healthy_session_after_any_record_leaves_what_was_open_there(tmp_path: Path) -> None:
    made = healthy()
    for count in range(1, len(made.lines)):
        cut = Transcript()
        cut.lines = made.lines[:count]
        found = examined(transcript(tmp_path, cut))
        left = asked_in(cut.lines) - answered_in(cut.lines)
        assert {call.id for call in found.open} == left, count
        assert not found.damage, count
        assert found.verdict == ("interrupted" if left else "clean")


def test_cutting_the_last_record_at_any_byte_names_it_and_loses_nothing_before_it(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.result("toolu_1", "é\u2028 done")
    *whole, last = made.encoded()
    path = tmp_path / f"{SESSION}.jsonl"
    before = b"".join(line + b"\n" for line in whole)
    for size in range(1, len(last)):
        path.write_bytes(before + last[:size])
        found = examined(path)
        assert opened(found) == {"toolu_1": "requested"}, size
        assert [(fault.kind, fault.place) for fault in found.damage] == [("torn", "line 3")], size
    path.write_bytes(before + last)
    assert examined(path).verdict == "clean"


@pytest.mark.parametrize(
    ("name", "evidence", "change"),
    [
        ("Bash", "dispatched", lambda made: made.progress("toolu_1", {"type": "bash_progress", "output": ""})),
        ("Task", "dispatched", lambda made: made.progress("toolu_1", {"type": "agent_progress", "message": {}})),
        ("mcp__x__y", "dispatched", lambda made: made.progress("toolu_1", {"type": "mcp_progress"})),
        (
            "Bash",
            "requested",
            lambda made: made.progress("toolu_1", {"type": "hook_progress", "hookEvent": "PreToolUse"}),
        ),
        ("Bash", "ran", lambda made: made.progress("toolu_1", {"type": "hook_progress", "hookEvent": "PostToolUse"})),
        (
            "Bash",
            "ran",
            lambda made: made.add(
                "attachment",
                attachment={"type": "hook_success", "toolUseID": "toolu_1", "hookEvent": "PostToolUseFailure"},
            ),
        ),
        (
            "Bash",
            "requested",
            lambda made: made.add(
                "attachment",
                attachment={"type": "hook_blocking_error", "toolUseID": "toolu_1", "hookEvent": "PreToolUse"},
            ),
        ),
        (
            "Edit",
            "dispatched",
            lambda made: made.beside("file-history-snapshot", messageId=made.last, snapshot={}, isSnapshotUpdate=True),
        ),
        (
            "Bash",
            "requested",
            lambda made: made.beside("file-history-snapshot", messageId=made.last, snapshot={}, isSnapshotUpdate=True),
        ),
        (
            "Edit",
            "requested",
            lambda made: made.beside("file-history-snapshot", messageId=made.last, snapshot={}, isSnapshotUpdate=False),
        ),
        ("Bash", "requested", lambda made: made.progress("toolu_9", {"type": "bash_progress"})),
    ],
)
def test_each_record_shows_what_it_shows(tmp_path: Path, name: str, evidence: str, change: Change) -> None:
    made = started()
    made.call("msg_1", "toolu_1", name)
    change(made)
    found = examined(transcript(tmp_path, made))
    assert opened(found) == {"toolu_1": evidence}
    assert found.open[0].risk == "tool_outcome_unknown"


def test_the_reasons_name_the_records(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.progress("toolu_1", {"type": "hook_progress", "hookEvent": "PreToolUse"})
    made.progress("toolu_1", {"type": "bash_progress"})
    (call,) = examined(transcript(tmp_path, made)).open
    assert call.because == (
        "line 2: asked for",
        "line 3: hook PreToolUse: its hooks ran, so that it was about to be handed over",
        "line 4: bash_progress: the command was running",
        "The call was dispatched, or may have been the one that was.",
    )


def test_progress_that_goes_on_is_told_once(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    for _ in range(300):
        made.progress("toolu_1", {"type": "bash_progress"})
    (call,) = examined(transcript(tmp_path, made)).open
    assert [line for line in call.because if "bash_progress" in line] == [
        "line 3: bash_progress: the command was running"
    ]


def test_a_backup_that_is_recorded_before_its_edit_shows_it_too(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1", "Write")
    snapshot: Line = {"type": "file-history-snapshot", "messageId": made.last, "snapshot": {}, "isSnapshotUpdate": True}
    made.lines.insert(1, snapshot)
    assert opened(examined(transcript(tmp_path, made))) == {"toolu_1": "dispatched"}


def write_agent(session: Path, name: str, made: Transcript, meta: Line | None = None) -> Path:
    path = session.with_suffix("") / "subagents" / f"{name}.jsonl"
    made.write(path)
    if meta is not None:
        path.with_suffix(".meta.json").write_text(json.dumps(meta))
    return path


def delegating(tmp_path: Path) -> Path:
    made = started()
    made.call("msg_1", "toolu_1", "Task", input={"prompt": "look around"})
    return transcript(tmp_path, made)


def agent() -> Transcript:
    made = Transcript(sidechain=True)
    made.prompt("look around", agentId="a1")
    made.call("msg_7", "toolu_7", agentId="a1")
    return made


def test_a_sub_agent_shows_that_its_call_was_handed_over_and_its_own_calls_count(tmp_path: Path) -> None:
    path = delegating(tmp_path)
    write_agent(path, "agent-a1", agent(), {"agentType": "general", "toolUseId": "toolu_1"})
    found = examined(path)
    assert opened(found) == {"toolu_1": "dispatched", "toolu_7": "requested"}
    assert [call.run for call in found.open] == ["main", "agent-a1"]
    assert found.open[1].place == "subagents/agent-a1.jsonl line 2"
    assert found.session == SESSION


def test_a_sub_agent_without_a_description_shows_only_its_own_calls(tmp_path: Path) -> None:
    path = delegating(tmp_path)
    write_agent(path, "agent-a1", agent())
    assert opened(examined(path)) == {"toolu_1": "requested", "toolu_7": "requested"}


@pytest.mark.parametrize("meta", [b"", b"[]", b'{"toolUseId":7}', b"\x80\x04.", b"\0" * 100])
def test_an_odd_description_shows_nothing(tmp_path: Path, meta: bytes) -> None:
    path = delegating(tmp_path)
    write_agent(path, "agent-a1", agent()).with_suffix(".meta.json").write_bytes(meta)
    assert opened(examined(path)) == {"toolu_1": "requested", "toolu_7": "requested"}


def test_a_sub_agents_damage_is_told_with_its_file(tmp_path: Path) -> None:
    path = delegating(tmp_path)
    inner = write_agent(path, "agent-a1", agent())
    inner.write_bytes(inner.read_bytes()[:-40])
    assert kinds(path) == [("torn", "subagents/agent-a1.jsonl line 2")]


def test_a_result_in_the_sub_agents_file_answers_there_although_ids_are_looked_for_everywhere(tmp_path: Path) -> None:
    path = delegating(tmp_path)
    inner = agent()
    inner.result("toolu_7")
    write_agent(path, "agent-a1", inner)
    assert opened(examined(path)) == {"toolu_1": "requested"}


def test_a_workflow_shows_by_its_journal_that_it_began(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1", "Workflow", input={"script": "s"})
    path = transcript(tmp_path, made)
    folder = path.with_suffix("") / "subagents" / "workflows" / "wf_1"
    agent().write(folder / "agent-a1.jsonl")
    journal = folder / "journal.jsonl"
    journal.write_text('{"type":"launched"}\n{"type":"started","key":"v2:1","agentId":"a1"}\n{"type":"st')
    found = examined(path)
    assert opened(found) == {"toolu_1": "dispatched", "toolu_7": "requested"}
    assert "workflows/wf_1/journal.jsonl: its workflow started 1 agents" in found.open[0].because[1]
    journal.write_text('{"type":"started","key":"v2:1","agentId":"a1"}\n{"type":"result","key":"v2:1","agentId":"a1"}')
    assert opened(examined(path)) == {"toolu_1": "requested", "toolu_7": "requested"}


def test_output_that_was_spilled_shows_that_its_call_ran(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.call("msg_1", "toolu_2")
    path = transcript(tmp_path, made)
    folder = path.with_suffix("") / "tool-results"
    folder.mkdir(parents=True)
    (folder / "toolu_1.txt").write_text("much")
    (folder / "b12.txt").write_text("of a background command")
    assert opened(examined(path)) == {"toolu_1": "ran", "toolu_2": "requested"}


def inline() -> Transcript:
    """A session of version 1, which has its sub-agents in the same file."""
    made = Transcript(version="1.0.60")
    made.prompt("build it")
    made.call("msg_1", "toolu_1", "Task", input={"prompt": "look around"})
    made.sidechain = True
    made.prompt("look around", parent=None)
    made.call("msg_7", "toolu_7")
    return made


def test_f10_a_sub_agent_inside_the_file_has_a_run_of_its_own(tmp_path: Path) -> None:
    made = inline()
    found = examined(transcript(tmp_path, made))
    assert opened(found) == {"toolu_1": "dispatched", "toolu_7": "requested"}
    assert [call.run for call in found.open] == ["main", "sidechain-1"]
    made.result("toolu_7")
    made.text("msg_8", "found")
    made.sidechain = False
    made.result("toolu_1", "found")
    assert examined(transcript(tmp_path, made)).verdict == "clean"


def test_a_side_chain_of_other_words_shows_nothing(tmp_path: Path) -> None:
    made = inline()
    made.lines[2]["message"]["content"] = "something else"
    assert opened(examined(transcript(tmp_path, made))) == {"toolu_1": "requested", "toolu_7": "requested"}


def test_f12_calls_are_paired_over_the_file_and_not_along_one_path(tmp_path: Path) -> None:
    made = started()
    first = made.call("msg_1", "toolu_1")
    made.call("msg_1", "toolu_2")
    made.result("toolu_1")
    made.result("toolu_2")
    made.prompt("the other branch", parent=first)
    made.call("msg_2", "toolu_3")
    made.result("toolu_3")
    assert examined(transcript(tmp_path, made)).verdict == "clean"


def test_an_answer_that_the_file_has_before_its_call_is_its_answer(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.result("toolu_1")
    made.lines[1:] = made.lines[:0:-1]
    found = examined(transcript(tmp_path, made))
    assert (found.verdict, found.calls, found.answered) == ("clean", 1, 1)


def test_a_call_off_the_chain_says_so(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.prompt("never mind", parent=made.lines[0]["uuid"])
    made.text("msg_2", "Fine.")
    (call,) = examined(transcript(tmp_path, made)).open
    assert call.evidence == "requested"
    assert call.because[1] == "line 2: not on the chain that resuming shows to the model"


def test_a_call_before_a_compaction_is_off_the_chain(tmp_path: Path) -> None:
    made = started()
    last = made.call("msg_1", "toolu_1")
    made.add("system", subtype="compact_boundary", parent=None, logicalParentUuid=last, compactMetadata={})
    made.prompt("Summary: building.", isCompactSummary=True)
    made.call("msg_2", "toolu_2")
    before, after = examined(transcript(tmp_path, made)).open
    assert any("not on the chain" in line for line in before.because)
    assert not any("not on the chain" in line for line in after.because)


@pytest.mark.parametrize(
    "text", ["[Tool result missing due to internal error]", "[Request interrupted by user for tool use]"]
)
def test_an_answer_that_the_tool_invented_is_no_outcome(tmp_path: Path, text: str) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.result("toolu_1", text)
    found = examined(transcript(tmp_path, made))
    assert (found.verdict, opened(found), found.answered) == ("interrupted", {"toolu_1": "answered_synthetic"}, 0)
    made.result("toolu_1", "what really came of it")
    found = examined(transcript(tmp_path, made))
    assert (found.verdict, found.answered) == ("clean", 1)


def test_f13_a_refusal_is_not_believed_of_a_call_that_was_running(tmp_path: Path) -> None:
    refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    made = started()
    made.call("msg_1", "toolu_1")
    made.result("toolu_1", refusal)
    assert examined(transcript(tmp_path, made)).verdict == "clean"
    made = started()
    made.call("msg_1", "toolu_1")
    made.progress("toolu_1", {"type": "bash_progress"})
    made.result("toolu_1", refusal)
    assert opened(examined(transcript(tmp_path, made))) == {"toolu_1": "answered_synthetic"}


def test_f06_a_result_without_its_call_is_named(tmp_path: Path) -> None:
    made = started()
    made.result("toolu_9")
    made.text("msg_1", "Done.")
    path = transcript(tmp_path, made)
    assert (examined(path).verdict, kinds(path)) == ("damaged", [("orphan_result", "line 2")])


def test_f07_a_second_result_is_named_and_loses_nothing(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.result("toolu_1")
    made.result("toolu_1", "done again")
    path = transcript(tmp_path, made)
    assert (examined(path).verdict, kinds(path)) == ("clean", [("duplicate", "line 4")])


def test_f07_a_record_that_is_there_twice_is_one(tmp_path: Path) -> None:
    made = healthy()
    made.lines += made.lines[:]
    found = examined(transcript(tmp_path, made))
    assert (found.verdict, found.calls, found.damage) == ("clean", 5, ())


def test_a_call_that_is_recorded_again_in_its_message_is_one(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.result("toolu_1")
    made.call("msg_1", "toolu_1")
    assert examined(transcript(tmp_path, made)).verdict == "clean"


def test_an_id_that_another_message_uses_again_is_another_call(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "call_0")
    made.result("call_0")
    made.call("msg_2", "call_0")
    found = examined(transcript(tmp_path, made))
    assert (opened(found), found.calls, found.answered) == ({"call_0": "requested"}, 2, 1)
    made.result("call_0", parent=made.last)
    assert examined(transcript(tmp_path, made)).verdict == "clean"


def test_f17_a_torn_record_with_the_next_one_behind_it(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.result("toolu_1")
    made.prompt("go on")
    first, call, result, prompt = made.encoded()
    path = tmp_path / f"{SESSION}.jsonl"
    for size in range(1, len(result)):
        path.write_bytes(b"\n".join([first, call, result[:size] + prompt]) + b"\n")
        found = examined(path)
        assert opened(found) == {"toolu_1": "requested"}, size
        assert [fault.kind for fault in found.damage] == ["torn", "missing_parent"], size
    path.write_bytes(b"\n".join([first, call, result + prompt]) + b"\n")
    assert (examined(path).verdict, kinds(path)) == ("clean", [("fused", "line 3")])


def test_f18_a_bad_line_in_the_middle_hides_nothing(tmp_path: Path) -> None:
    made = healthy()
    lines = made.encoded()
    lines.insert(6, b'{"type":"snaps')
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    found = examined(path)
    assert (found.verdict, found.calls, found.answered) == ("damaged", 5, 5)
    assert kinds(path) == [("corrupt", "line 7")]


def test_f19_a_whole_last_record_without_its_line_feed_counts(tmp_path: Path) -> None:
    path = transcript(tmp_path, healthy())
    path.write_bytes(path.read_bytes()[:-1])
    assert (examined(path).verdict, kinds(path)) == ("clean", [])


def test_f20_a_raw_line_feed_inside_a_text(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.result("toolu_1", "one\ntwo\nthree")
    path = tmp_path / f"{SESSION}.jsonl"
    first, call, result = made.encoded()
    path.write_bytes(b"\n".join([first, call, result.replace(b"\\n", b"\n")]) + b"\n")
    assert (examined(path).verdict, {kind for kind, _ in kinds(path)}) == ("clean", {"raw_newline"})


def test_f21_a_run_of_zeros(tmp_path: Path) -> None:
    lines = healthy().encoded()
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(b"\n".join(lines[:8]) + b"\n" + b"\0" * 4096 + b"\n".join(lines[8:]) + b"\n")
    found = examined(path)
    assert (found.verdict, found.answered) == ("damaged", 5)
    assert kinds(path) == [("nul_run", "line 9")]


def test_f22_an_unreadable_first_line(tmp_path: Path) -> None:
    lines = healthy().encoded()
    path = tmp_path / f"{SESSION}.jsonl"
    for begun in (b'{"type":"sess', b'ge":{"role":"user"}}', b"\0\0\0"):
        path.write_bytes(b"\n".join([begun, *lines]) + b"\n")
        (found,) = examine([path])
        assert (found.format, found.calls, found.verdict) == ("claude_code", 5, "damaged")


@pytest.mark.parametrize("content", [b"", b"\0\0\0\0", b"\n\n"])
def test_f22_a_file_with_nothing_in_it_is_no_session(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(content)
    assert [found.verdict for found in examine([path])] == ["unreadable"]


def test_two_processes_on_one_file(tmp_path: Path) -> None:
    one, other = started(), Transcript()
    one.call("msg_1", "toolu_1")
    one.result("toolu_1")
    other.lines = [{}] * 20  # uuids of its own
    other.prompt("from another window", parent=None)
    other.call("msg_9", "toolu_9")
    mine, theirs = one.encoded(), other.encoded()[20:]
    half = len(mine[2]) // 2
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(b"\n".join([mine[0], mine[1], theirs[0], mine[2][:half] + theirs[1], mine[2][half:], b""]))
    found = examined(path)
    assert opened(found) == {"toolu_1": "requested", "toolu_9": "requested"}
    assert kinds(path) == [("torn", "line 4"), ("corrupt", "line 5")]


def test_a_parent_that_was_never_written_is_named(tmp_path: Path) -> None:
    made = healthy()
    made.lines[8]["parentUuid"] = "00000000-0000-0000-0000-00000000dead"
    path = transcript(tmp_path, made)
    assert (examined(path).verdict, kinds(path)) == ("damaged", [("missing_parent", "line 9")])


def test_a_file_that_continues_another_one_is_healthy(tmp_path: Path) -> None:
    made = started()
    made.lines[0]["parentUuid"] = "00000000-0000-0000-0000-00000000dead"
    made.text("msg_1", "Yes.")
    assert examined(transcript(tmp_path, made)).verdict == "clean"


def test_a_circle_of_parents_ends(tmp_path: Path) -> None:
    made = started()
    made.text("msg_1", "a")
    made.call("msg_2", "toolu_1")
    made.text("msg_3", "b")
    made.lines[1]["parentUuid"] = made.lines[3]["uuid"]
    path = transcript(tmp_path, made)
    assert opened(examined(path)) == {"toolu_1": "requested"}
    assert kinds(path) == [("missing_parent", "line 2")]
    made.lines[2]["parentUuid"] = made.lines[2]["uuid"]
    assert ("missing_parent", "line 3") in kinds(transcript(tmp_path, made))


def test_types_that_are_not_known_are_counted(tmp_path: Path) -> None:
    made = healthy()
    made.version = "9.0.0"
    made.beside("hologram", sessionId=SESSION, data={"type": "tool_result"})
    made.beside("hologram", nothing=True)
    made.prompt("go on")
    found = examined(transcript(tmp_path, made))
    assert (found.verdict, found.version, found.unknown) == ("clean", "9.0.0", {"hologram": 2})


@pytest.mark.parametrize(
    "change",
    [
        {"message": None},
        {"message": "text"},
        {"message": {"role": "user", "content": None}},
        {"message": {"role": "user", "content": [1, "x", None, {"type": 5}]}},
        {"uuid": 7, "parentUuid": [], "version": {}},
        {"isSidechain": "yes", "data": 1, "attachment": [], "toolUseID": {}},
        {"message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": 5, "content": {"a": [1]}}]}},
    ],
)
def test_records_of_odd_shapes_do_no_harm(tmp_path: Path, change: Line) -> None:
    made = healthy()
    for type_ in ("user", "assistant", "progress", "attachment", "system", "file-history-snapshot"):
        made.lines.append({"type": type_, "uuid": f"odd-{type_}", "parentUuid": made.last} | change)
    path = transcript(tmp_path, made)
    found = examined(path)
    assert (found.calls, found.open) == (5, ())
    assert all(fault.kind == "orphan_result" for fault in found.damage)
    assert list(FORMAT.read(Found(FORMAT, path), "whole"))


def test_f30_arguments_that_were_cut_off_are_shown_as_they_are(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1", input='{"command":"ma')
    (call,) = examined(transcript(tmp_path, made)).open
    assert call.arguments is not None
    assert json.loads(call.arguments) == '{"command":"ma'
    assert call.risk == "tool_outcome_unknown"  # that no tool took them is only inferred


def test_f31_an_empty_message_is_no_damage(tmp_path: Path) -> None:
    made = started()
    made.text("msg_1", "")
    made.lines[-1]["message"]["content"] = []
    assert examined(transcript(tmp_path, made)).verdict == "clean"


def test_f35_half_a_character_is_read(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1", input={"text": "ab\ud83d"})
    path = transcript(tmp_path, made)
    assert b"\\ud83d" in path.read_bytes()
    found = examined(path)
    assert (opened(found), found.damage) == ({"toolu_1": "requested"}, ())
    assert json.loads(str(found.open[0].arguments)) == {"text": "ab\ud83d"}


def test_a_record_that_is_nested_too_deep_is_named(tmp_path: Path) -> None:
    lines = healthy().encoded()
    lines.insert(4, b'{"type":"user","uuid":"d","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    assert kinds(path) == [("corrupt", "line 5")]
    assert examined(path).answered == 5


def test_it_is_known_by_content(tmp_path: Path) -> None:
    for index, line in enumerate(healthy().encoded()):
        path = tmp_path / f"{index}.log"
        path.write_bytes(line + b"\n")
        sampled = sample(path)
        assert sampled is not None
        kind = json.loads(line)["type"]
        beside = kind in ("queue-operation", "last-prompt", "permission-mode")
        assert FORMAT.recognises(sampled) is not beside, kind


@pytest.mark.parametrize(
    "line",
    [
        {"display": "make", "pastedContents": {}, "timestamp": 1, "project": "/w"},
        {"type": "started", "key": "v2:1", "agentId": "a"},
        {"uuid": "q", "parentUuid": None, "sessionId": "S", "type": "user", "message": {"role": "user", "parts": []}},
        {"uuid": "q", "parentUuid": None, "sessionId": "S", "type": "system", "subtype": "x", "systemPayload": {}},
        {"type": "message", "message": {"role": "user", "content": "x"}},
        {"type": "session_meta", "payload": {}},
        {"role": "user", "content": "x"},
    ],
)
def test_what_others_write_is_not_taken_for_it(tmp_path: Path, line: Line) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(json.dumps(line) + "\n")
    sampled = sample(path)
    assert sampled is None or not FORMAT.recognises(sampled)


def test_a_folder_gives_each_session_once_and_sub_agents_with_theirs(tmp_path: Path) -> None:
    path = delegating(tmp_path)
    write_agent(path, "agent-a1", agent(), {"toolUseId": "toolu_1"})
    (tmp_path / "sessions-index.json").write_text('{"version":1,"entries":[]}')
    assert [(found.path, found.calls) for found in examine([tmp_path])] == [(str(path), 2)]
    path.unlink()  # what is left of a session that was deleted stands for itself
    assert [found.calls for found in examine([tmp_path])] == [1]


def test_doctor_writes_nothing(tmp_path: Path) -> None:
    path = delegating(tmp_path)
    write_agent(path, "agent-a1", agent(), {"toolUseId": "toolu_1"})
    before = hashes(tmp_path)
    list(examine([tmp_path]))
    assert hashes(tmp_path) == before


def hashes(folder: Path) -> dict[Path, tuple[str, int]]:
    return {
        path: (hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "", path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


def test_a_sub_agents_file_that_is_gone_leaves_the_rest(tmp_path: Path) -> None:
    path = delegating(tmp_path)
    folder = path.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-a1.jsonl").symlink_to(tmp_path / "gone")
    found = examined(path)
    assert opened(found) == {"toolu_1": "requested"}
    assert [(fault.kind, fault.place) for fault in found.damage] == [("gap", "subagents/agent-a1.jsonl")]


def test_where_its_tool_keeps_sessions() -> None:
    assert FORMAT.places == ("$CLAUDE_CONFIG_DIR/projects", "~/.claude/projects")
    assert format_of("claude_code") is FORMAT
