"""Claude Code transcripts as turnwal sessions: the same calls are open, and the conversation can be sent on."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats.transcripts import SESSION, Transcript, examined, healthy
from turnwal.core.log import Log
from turnwal.core.recovery import plan, recover
from turnwal.formats.claude_code import FORMAT
from turnwal.formats.claude_code.reading import OFF_CHAIN
from turnwal.formats.format import Found
from turnwal.formats.importing import INVENTED, lines_of
from turnwal.transcript.check import check
from turnwal.transcript.render import render
from turnwal.transcript.targets import TARGETS


def imported(tmp_path: Path, made: Transcript) -> Log:
    path = made.write(tmp_path / f"{SESSION}.jsonl")
    return imported_from(path)


def imported_from(path: Path) -> Log:
    """The log, in which a plan owes what doctor says is open."""
    found = Found(FORMAT, path)
    lines = list(lines_of(found, "s", nonce="0" * 32, time=1, writer={"name": "t", "version": "1"}))
    assert lines == list(lines_of(found, "s", nonce="0" * 32, time=1, writer={"name": "t", "version": "1"}))
    log = Log.read(lines)
    owed = sorted(repair.data["id"] for repair in plan(log).lost_calls())
    assert owed == sorted(call.id for call in examined(path).open if call.evidence != "waiting")
    return log


def sent(log: Log, target: str = "anthropic") -> list[Any]:
    made = render(log, target)
    assert not made.messages or check(target, made.messages, system=made.system) == []
    return made.messages


def texts(log: Log, run: str = "main") -> list[str]:
    return [part["content"] for event in log.surface(run) for part in event.data["parts"] if part["type"] == "text"]


def started() -> Transcript:
    made = Transcript()
    made.prompt("build it")
    return made


def test_where_it_came_from_stands_in_the_first_line(tmp_path: Path) -> None:
    start = next(iter(imported(tmp_path, healthy())))
    about = start.data["imported"]
    assert about == {
        "format": "claude_code",
        "path": str(tmp_path / f"{SESSION}.jsonl"),
        "version": "2.1.39",
        "session": SESSION,
    }


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_every_cut_can_be_sent_on_and_owes_what_is_open(tmp_path: Path, target: str) -> None:
    made = healthy()
    for count in range(1, len(made.lines) + 1, 1 if target == "anthropic" else 5):
        cut = Transcript()
        cut.lines = made.lines[:count]
        log = imported(tmp_path, cut)
        sent(log, target)
        recover(log)
        assert not plan(log)
        sent(log, target)


def test_the_conversation_keeps_its_order_its_words_and_its_times(tmp_path: Path) -> None:
    made = started()
    made.text("msg_1", "I build.")
    made.call("msg_1", "toolu_1")
    made.result("toolu_1", "built")
    made.text("msg_2", "Done.")
    log = imported(tmp_path, made)
    assert [event.type for event in log if event.type in ("user_message", "assistant_message", "tool_result")] == [
        "user_message",
        "assistant_message",
        "assistant_message",
        "tool_result",
        "assistant_message",
    ]
    call = log.surface()[2]
    assert call.data["parts"] == [
        {"type": "tool_call", "id": "toolu_1", "name": "Bash", "arguments": '{"command":"make toolu_1"}'}
    ]
    assert (call.data["model"], call.data["response_id"]) == ("claude-x", "msg_1")
    assert call.time == 1_767_225_603_000
    assert sent(log)[-1] == {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    assert [event.data["reason"] for event in log if event.type == "turn_end"] == ["complete"]


def test_what_shows_that_a_call_was_handed_over_is_a_dispatch(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.progress("toolu_1", {"type": "hook_progress", "hookEvent": "PreToolUse"})
    made.call("msg_1", "toolu_2")
    made.progress("toolu_2", {"type": "bash_progress"})
    log = imported(tmp_path, made)
    assert [(event.data["id"], event.data["seen"]) for event in log if event.type == "tool_call"] == [
        ("toolu_2", "bash_progress: the command was running")
    ]


def test_a_branch_that_was_left_stands_in_a_run_of_its_own(tmp_path: Path) -> None:
    made = started()
    first = made.last
    made.prompt("one way", parent=first)
    made.call("msg_1", "toolu_1")
    made.result("toolu_1")
    made.prompt("the other way", parent=first)
    made.call("msg_2", "toolu_2")
    made.call("msg_9", "toolu_9", parent=made.lines[3]["uuid"])  # late, on the branch that was left
    made.result("toolu_2")
    made.text("msg_3", "Done.")
    log = imported(tmp_path, made)
    assert texts(log) == ["build it", "the other way", "done", "Done."]
    assert texts(log, OFF_CHAIN) == ["one way", "done"]
    assert [repair.run for repair in plan(log).lost_calls()] == [OFF_CHAIN]
    assert [message["role"] for message in sent(log)] == ["user", "assistant", "user", "assistant"]


def test_parallel_results_are_on_the_chain_although_they_are_leaves(tmp_path: Path) -> None:
    made = started()
    for id in ("toolu_1", "toolu_2", "toolu_3"):
        made.call("msg_1", id)
    for id in ("toolu_3", "toolu_1", "toolu_2"):
        made.result(id, f"of {id}")
    made.text("msg_2", "Done.")
    log = imported(tmp_path, made)
    assert texts(log) == ["build it", "of toolu_3", "of toolu_1", "of toolu_2", "Done."]
    assert not list(log.surface(OFF_CHAIN))
    sent(log)


def compacted(*, open_call: bool) -> Transcript:
    made = started()
    made.call("msg_1", "toolu_1")
    if not open_call:
        made.result("toolu_1", "built")
    last = made.text("msg_2", "Built.")
    made.add("system", subtype="compact_boundary", parent=None, logicalParentUuid=last, compactMetadata={})
    made.prompt("Summary: it is built.", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    made.prompt("test it")
    made.text("msg_3", "Tested.")
    return made


def test_a_summary_takes_the_place_of_what_it_sums_up(tmp_path: Path) -> None:
    log = imported(tmp_path, compacted(open_call=False))
    assert texts(log) == ["Summary: it is built.", "test it", "Tested."]
    assert [event.data["parts"][0]["content"] for event in log if event.type == "user_message"] == [
        "build it",
        "Summary: it is built.",
        "test it",
    ]
    assert not list(log.surface(OFF_CHAIN))
    assert len(sent(log)) == 2


def test_a_summary_hides_no_call_that_is_owed(tmp_path: Path) -> None:
    log = imported(tmp_path, compacted(open_call=True))
    assert texts(log) == ["build it", "Built.", "Summary: it is built.", "test it", "Tested."]
    sent(log)


def test_a_missing_parent_loses_nothing(tmp_path: Path) -> None:
    made = started()
    made.text("msg_1", "a")
    made.prompt("go on", parent="00000000-0000-0000-0000-00000000dead")
    made.text("msg_2", "b")
    assert texts(imported(tmp_path, made)) == ["build it", "a", "go on", "b"]


def test_sub_agents_are_runs(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1", "Task", input={"prompt": "look"})
    path = made.write(tmp_path / f"{SESSION}.jsonl")
    inner = Transcript(sidechain=True)
    inner.prompt("look")
    inner.call("msg_7", "toolu_7")
    folder = path.with_suffix("") / "subagents"
    inner.write(folder / "agent-a1.jsonl")
    (folder / "agent-a1.meta.json").write_text(json.dumps({"toolUseId": "toolu_1"}))
    log = imported_from(path)
    assert texts(log, "agent-a1") == ["look"]
    assert [repair.run for repair in plan(log).lost_calls()] == ["agent-a1", "main"]
    assert [event.data["id"] for event in log if event.type == "tool_call"] == ["toolu_1"]
    sent(log)


def test_an_inline_sub_agent_is_a_run(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1", "Task", input={"prompt": "look"})
    made.sidechain = True
    made.prompt("look", parent=None)
    made.text("msg_7", "Looked.")
    made.sidechain = False
    made.result("toolu_1", "Looked.")
    log = imported(tmp_path, made)
    assert texts(log) == ["build it", "Looked."]
    assert texts(log, "sidechain-1") == ["look", "Looked."]


def test_what_the_tool_wrote_in_the_models_name_is_left_out(tmp_path: Path) -> None:
    made = started()
    made.text("msg_1", "API Error: 500", isApiErrorMessage=True)
    made.lines[-1]["message"]["model"] = "<synthetic>"
    made.prompt("go on")
    assert texts(imported(tmp_path, made)) == ["build it", "go on"]


def test_an_invented_answer_is_kept_and_no_model_sees_it(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.result("toolu_1", "[Tool result missing due to internal error]")
    log = imported(tmp_path, made)
    (kept,) = [event for event in log if event.type == INVENTED]
    assert kept.data["metadata"] == {"synthetic": True, "by": "claude_code"}
    assert "internal error" not in str(sent(log))


def test_a_result_before_its_call_comes_behind_it(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.result("toolu_1", "built")
    made.lines[1:] = made.lines[:0:-1]
    log = imported(tmp_path, made)
    (result,) = [event for event in log if event.type == "tool_result"]
    assert result.data["call"].endswith(".0")
    assert not plan(log)


def test_half_a_character_is_kept(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1", input={"text": "ab\ud83d"})
    log = imported(tmp_path, made)
    assert json.loads(log.surface()[1].data["parts"][0]["arguments"]) == {"text": "ab\ud83d"}
    sent(log)
