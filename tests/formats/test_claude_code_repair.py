"""Repaired copies of Claude Code transcripts: closed truthfully, by the rules of the SDK's own fork, and only once."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.formats.transcripts import SESSION, Line, Transcript, answered_in, asked_in, blocks_of, examined, healthy
from turnwal.core.errors import Refused
from turnwal.formats.claude_code import FORMAT
from turnwal.formats.claude_code.repair import repair
from turnwal.formats.format import Found
from turnwal.formats.wording import UNKNOWN_TEXT

COPY = "99999999-2222-4333-8444-555555555555"


def repaired(path: Path, name: str = COPY) -> Path:
    """The copy, which doctor must find nothing open in and whose repair must change nothing."""
    before = path.read_bytes()
    out = path.parent / "copies" / f"{name}.jsonl"
    out.parent.mkdir(exist_ok=True)
    out.unlink(missing_ok=True)
    repair(Found(FORMAT, path), examined(path), out)
    assert path.read_bytes() == before
    found = examined(out)
    assert (found.verdict, found.open, found.damage) == ("clean", (), ())
    again = out.with_name("again.jsonl")
    again.unlink(missing_ok=True)
    repair(Found(FORMAT, out), found, again)
    assert again.read_bytes() == out.read_bytes()
    other = out.with_name("other.jsonl")
    other.unlink(missing_ok=True)
    repair(Found(FORMAT, path), examined(path), other)
    other.unlink()
    return out


def lines_of(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def chain_of(lines: list[Line]) -> list[Line]:
    return [line for line in lines if "parentUuid" in line]


def check_tree(lines: list[Line]) -> None:
    """Every parent stands before its children, ids are new and not used twice, and all are of one session."""
    seen: set[str] = set()
    for line in chain_of(lines):
        assert line["parentUuid"] is None or line["parentUuid"] in seen
        assert line["uuid"] not in seen
        assert line["type"] != "progress"
        assert not line["isSidechain"]
        assert not {"teamName", "agentName", "slug", "sourceToolAssistantUUID"} & line.keys()
        seen.add(line["uuid"])
    assert {line["sessionId"] for line in lines if "sessionId" in line} == {COPY}
    assert lines[-1]["type"] == "custom-title"
    assert asked_in(lines) == answered_in(lines)
    results = [block["tool_use_id"] for block in blocks_of(lines) if block.get("type") == "tool_result"]
    assert len(results) == len(set(results))


def added_in(lines: list[Line]) -> list[Line]:
    return [line for line in chain_of(lines) if "forkedFrom" not in line]


def started() -> Transcript:
    made = Transcript()
    made.prompt("build it")
    return made


def transcript(tmp_path: Path, made: Transcript) -> Path:
    return made.write(tmp_path / f"{SESSION}.jsonl")


def test_a_single_call_is_answered_truthfully(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    out = repaired(transcript(tmp_path, made))
    lines = lines_of(out)
    check_tree(lines)
    user, call, result, title = lines
    assert result["parentUuid"] == call["uuid"]
    assert result["message"] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": UNKNOWN_TEXT, "is_error": True},
        ],
    }
    assert result["turnwal"] == {"repaired": True}
    assert (result["type"], result["cwd"], result["version"]) == ("user", "/w", "2.1.39")
    assert "toolUseResult" not in result
    assert call["message"] == made.lines[1]["message"]
    assert call["forkedFrom"] == {"sessionId": SESSION, "messageUuid": made.lines[1]["uuid"]}
    assert user["uuid"] != made.lines[0]["uuid"]
    assert title["customTitle"] == "build it (repaired)"
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_the_results_of_a_batch_stand_behind_it_in_the_order_of_its_calls(tmp_path: Path) -> None:
    made = started()
    for id in ("toolu_1", "toolu_2", "toolu_3"):
        made.call("msg_1", id)
    made.result("toolu_2")
    lines = lines_of(repaired(transcript(tmp_path, made)))
    check_tree(lines)
    answers = [block["tool_use_id"] for block in blocks_of(lines) if block["type"] == "tool_result"]
    assert answers == ["toolu_1", "toolu_3", "toolu_2"]
    by_id = {block["id"]: line["uuid"] for line in lines for block in blocks_of([line]) if block["type"] == "tool_use"}
    for line in added_in(lines):
        (block,) = blocks_of([line])
        assert line["parentUuid"] == by_id[block["tool_use_id"]]


def test_what_was_said_after_an_open_call_hangs_under_its_answer(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.prompt("are you there?")
    made.text("msg_2", "Yes.")
    lines = lines_of(repaired(transcript(tmp_path, made)))
    check_tree(lines)
    chain = chain_of(lines)
    assert [line["parentUuid"] for line in chain] == [None, *(line["uuid"] for line in chain[:-1])]
    assert blocks_of(chain)[1]["type"] == "tool_result"


def test_a_healthy_session_is_copied_as_it_is(tmp_path: Path) -> None:
    path = transcript(tmp_path, healthy())
    assert repaired(path).read_bytes() == path.read_bytes()


def test_every_cut_of_a_session_is_repaired(tmp_path: Path) -> None:
    made = healthy()
    for count in range(1, len(made.lines) + 1):
        cut = Transcript()
        cut.lines = made.lines[:count]
        path = transcript(tmp_path, cut)
        out = repaired(path)
        if out.read_bytes() != path.read_bytes():
            lines = lines_of(out)
            check_tree(lines)
            assert {blocks_of([line])[0]["tool_use_id"] for line in added_in(lines)} == asked_in(
                cut.lines
            ) - answered_in(cut.lines)


def test_every_cut_of_the_last_record_is_repaired(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.result("toolu_1", "é")
    content = b"".join(line + b"\n" for line in made.encoded())
    last = len(made.encoded()[-1])
    path = tmp_path / f"{SESSION}.jsonl"
    for size in range(1, last, 7):
        path.write_bytes(content[: -last - 1 + size])
        lines = lines_of(repaired(path))
        check_tree(lines)
        assert len(chain_of(lines)) == 3


def test_an_answer_that_the_tool_invented_gets_the_truth(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.result("toolu_1", "[Tool result missing due to internal error]")
    made.text("msg_2", "It failed.")
    lines = lines_of(repaired(transcript(tmp_path, made)))
    check_tree(lines)
    (result,) = [line for line in lines if line.get("turnwal") == {"repaired": True}]
    assert blocks_of([result])[0]["content"] == UNKNOWN_TEXT
    assert blocks_of([result])[0]["is_error"] is True
    assert "toolUseResult" not in result
    assert len(chain_of(lines)) == 4


def test_what_really_came_stays_and_the_invention_goes(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.result("toolu_1", "[Tool result missing due to internal error]")
    made.result("toolu_1", "the truth")
    made.call("msg_2", "toolu_2")
    lines = lines_of(repaired(transcript(tmp_path, made)))
    check_tree(lines)
    assert [block["content"] for block in blocks_of(lines) if block["type"] == "tool_result"] == [
        "the truth",
        UNKNOWN_TEXT,
    ]


def test_results_that_no_call_takes_are_left_out(tmp_path: Path) -> None:
    made = started()
    made.result("toolu_9")
    made.call("msg_1", "toolu_1")
    made.result("toolu_1", "first")
    made.result("toolu_1", "second")
    made.text("msg_2", "Done.")
    lines = lines_of(repaired(transcript(tmp_path, made)))
    check_tree(lines)
    assert [block["content"] for block in blocks_of(lines) if block["type"] == "tool_result"] == ["first"]


def test_progress_is_left_out_and_what_hung_there_hangs_higher(tmp_path: Path) -> None:
    made = started()
    call = made.call("msg_1", "toolu_1")
    made.progress("toolu_1", {"type": "bash_progress"})
    made.progress("toolu_1", {"type": "bash_progress"})
    made.result("toolu_1", parent=made.last)
    made.call("msg_2", "toolu_2")
    lines = lines_of(repaired(transcript(tmp_path, made)))
    check_tree(lines)
    chain = chain_of(lines)
    assert chain[2]["parentUuid"] == chain[1]["uuid"]
    assert chain[1]["forkedFrom"]["messageUuid"] == call


def test_a_missing_parent_and_a_circle_are_bridged(tmp_path: Path) -> None:
    made = started()
    made.text("msg_1", "a")
    made.text("msg_2", "b")
    made.text("msg_3", "c")
    made.text("msg_4", "d")
    made.lines[2]["parentUuid"] = "00000000-0000-0000-0000-00000000dead"
    made.lines[3]["parentUuid"] = made.lines[4]["uuid"]
    lines = lines_of(repaired(transcript(tmp_path, made)))
    chain = {line["forkedFrom"]["messageUuid"]: line for line in chain_of(lines)}
    walked = []
    at: Any = chain[made.lines[4]["uuid"]]
    by_uuid = {line["uuid"]: line for line in chain.values()}
    while at is not None:
        walked.append(at["forkedFrom"]["messageUuid"])
        at = by_uuid.get(at["parentUuid"])
    assert set(walked) == {line["uuid"] for line in made.lines}


def test_broken_lines_are_left_out_and_fused_ones_split(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1")
    made.result("toolu_1")
    made.text("msg_2", "Done.")
    first, call, result, text = made.encoded()
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(first + call + b"\n" + b"\0" * 512 + b"\n" + b'{"type":"us\n' + result + b"\n" + text)
    lines = lines_of(repaired(path))
    check_tree(lines)
    assert [line["message"] for line in chain_of(lines)] == [line["message"] for line in made.lines]


def test_compaction_and_replacements_are_carried(tmp_path: Path) -> None:
    made = started()
    last = made.text("msg_1", "a")
    made.add("system", subtype="compact_boundary", parent=None, logicalParentUuid=last, compactMetadata={"x": 1})
    made.prompt("Summary.", isCompactSummary=True)
    made.beside("content-replacement", sessionId=SESSION, replacements=[{"kind": "tool-result", "id": 1}])
    made.beside("hologram", sessionId=SESSION, kept=[1, 2])
    made.beside("summary", summary="x", leafUuid="gone")
    made.beside("custom-title", sessionId=SESSION, customTitle="Mine")
    made.call("msg_2", "toolu_1")
    lines = lines_of(repaired(transcript(tmp_path, made)))
    check_tree(lines)
    boundary = chain_of(lines)[2]
    assert (boundary["parentUuid"], boundary["logicalParentUuid"]) == (None, chain_of(lines)[1]["uuid"])
    beside = {line["type"]: line for line in lines if "parentUuid" not in line}
    assert beside.keys() == {"content-replacement", "hologram", "custom-title"}
    assert beside["content-replacement"]["replacements"] == [{"kind": "tool-result", "id": 1}]
    assert beside["hologram"]["kept"] == [1, 2]
    assert beside["custom-title"]["customTitle"] == "Mine (repaired)"


def test_sub_agents_stay_with_the_session_they_were_written_for(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1", "Task", input={"prompt": "look"})
    made.sidechain = True
    made.prompt("look", parent=None)
    made.call("msg_7", "toolu_7")
    lines = lines_of(repaired(transcript(tmp_path, made)))
    check_tree(lines)
    assert asked_in(lines) == {"toolu_1"}


def test_reused_ids_are_answered_where_they_are_open(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "call_0")
    made.result("call_0", "first")
    made.call("msg_2", "call_0")
    lines = lines_of(repaired(transcript(tmp_path, made)))
    contents = [block["content"] for block in blocks_of(lines) if block["type"] == "tool_result"]
    assert contents == ["first", UNKNOWN_TEXT]


def test_half_a_character_is_carried(tmp_path: Path) -> None:
    made = started()
    made.call("msg_1", "toolu_1", input={"text": "ab\ud83d"})
    lines = lines_of(repaired(transcript(tmp_path, made)))
    assert blocks_of(lines)[0]["input"] == {"text": "ab\ud83d"}


def test_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    made = healthy()
    made.lines = made.lines[:8]
    made.call("msg_9", "toolu_9", parent=made.lines[-1]["uuid"])
    path = transcript(tmp_path, made)
    assert repaired(path).read_bytes() == repaired(path).read_bytes()
    first, second = repaired(path, "copy").read_bytes(), repaired(path, "another").read_bytes()
    assert first == second
    assert first != repaired(path).read_bytes()  # a name that is a UUID is the id of the session


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = transcript(tmp_path, started())
    before = path.read_bytes()
    with pytest.raises(Refused):
        repair(Found(FORMAT, path), examined(path), path)
    assert path.read_bytes() == before
