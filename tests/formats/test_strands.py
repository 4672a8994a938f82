"""Strands Agents: folders that its sessions have left, killed inside a tool and gone on with."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.formats.seen import DATA, diagnosis_of, digests, imported, open_ids, repaired, untouched
from turnwal.core.recovery import plan
from turnwal.formats import examine, numbered
from turnwal.formats.wording import OR_KILLED, UNKNOWN_TEXT
from turnwal.transcript.check import check
from turnwal.transcript.render import render

Message = dict[str, Any]
Files = list[Message]


def taken(scene: str, to: Path) -> Path:
    """A copy of a session that the SDK wrote."""
    return Path(shutil.copytree(DATA / "strands" / scene / "session_s1", to / scene))


def messages_of(session: Path, agent: str = "a1") -> Path:
    return session / "agents" / f"agent_{agent}" / "messages"


def stored(session: Path) -> Files:
    """The files of the messages in order, each of which has its number in itself."""
    files = sorted(messages_of(session).glob("message_*.json"), key=lambda path: int(path.stem.split("_")[1]))
    found: Files = [json.loads(path.read_text()) for path in files]
    assert [each["message_id"] for each in found] == [int(path.stem.split("_")[1]) for path in files]
    return found


def blocks(session: Path) -> list[list[Any]]:
    return [each["message"]["content"] for each in stored(session)]


def put(session: Path, number: int, role: str, *content: Message, **more: Any) -> None:
    message = {"message": {"role": role, "content": list(content)}, "message_id": number, "redact_message": None}
    times = {"created_at": "2026-01-01T00:00:00+00:00", "updated_at": "2026-01-01T00:00:00+00:00"}
    (messages_of(session) / f"message_{number}.json").write_text(json.dumps(message | times | more))


def use(id: str, name: str = "charge") -> Message:
    return {"toolUse": {"toolUseId": id, "name": name, "input": {"amount": 5}}}


def result(id: str, text: str = "done", status: str = "success") -> Message:
    return {"toolResult": {"toolUseId": id, "status": status, "content": [{"text": text}]}}


def is_answer(block: Message, id: str) -> bool:
    return block == result(id, UNKNOWN_TEXT, "error")


def agent_of(session: Path) -> Any:
    return json.loads((session / "agents" / "agent_a1" / "agent.json").read_text())


def with_removed(session: Path, count: int) -> None:
    path = session / "agents" / "agent_a1" / "agent.json"
    agent = json.loads(path.read_text())
    agent["conversation_manager_state"]["removed_message_count"] = count
    path.write_text(json.dumps(agent))


def test_a_healthy_session_gets_no_alarm() -> None:
    seen = diagnosis_of(DATA / "strands" / "healthy")
    assert (seen.format, seen.verdict, seen.session, seen.on_resume) == ("strands", "clean", "a1", "continues")
    assert (seen.calls, seen.answered, seen.open, seen.damage, dict(seen.unknown)) == (3, 3, (), (), {})


def test_cut_after_any_message_it_names_the_calls_that_were_open_there(tmp_path: Path) -> None:
    count = len(stored(taken("healthy", tmp_path)))
    met = set()
    for end in range(count + 1):
        session = taken("healthy", tmp_path / str(end))
        asked: list[str] = []
        for each in stored(session)[:end]:
            for block in each["message"]["content"]:
                if "toolUse" in block:
                    asked.append(block["toolUse"]["toolUseId"])
                elif "toolResult" in block:
                    asked.remove(block["toolResult"]["toolUseId"])
        for path in messages_of(session).iterdir():
            if int(path.stem.split("_")[1]) >= end:
                path.unlink()
        seen = diagnosis_of(session)
        assert open_ids(seen) == asked
        assert seen.on_resume == ("invents_answer" if asked else "continues")
        met.add(tuple(asked))
    assert met == {(), ("look_1",), ("look_2", "look_3")}


@pytest.mark.parametrize(
    ("scene", "ids"), [("single", ["charge_1"]), ("sibling", ["look_4", "charge_1"]), ("trimmed", ["charge_1"])]
)
def test_f01_a_call_whose_process_was_killed_may_have_run(tmp_path: Path, scene: str, ids: list[str]) -> None:
    session = taken(scene, tmp_path)
    seen = diagnosis_of(session)
    assert (seen.verdict, seen.on_resume) == ("interrupted", "invents_answer")
    assert [(call.id, call.evidence, call.risk) for call in seen.open] == [
        (id, "requested", "tool_outcome_unknown") for id in ids
    ]
    out = repaired(session, tmp_path / "out")
    *before, last = blocks(out)
    assert before == blocks(session)
    assert len(last) == len(ids)
    assert all(map(is_answer, last, ids))
    assert stored(out)[-1]["message"]["role"] == "user"
    assert diagnosis_of(out).verdict == "clean"


def test_an_answer_that_the_sdk_invented_is_no_outcome_and_the_copy_tells_the_truth(tmp_path: Path) -> None:
    session = taken("restarted", tmp_path)
    seen = diagnosis_of(session)
    assert (seen.verdict, seen.on_resume) == ("interrupted", "continues")
    assert [(call.id, call.evidence, call.risk) for call in seen.open] == [
        ("look_4", "answered_synthetic", "tool_outcome_unknown"),
        ("charge_1", "answered_synthetic", "tool_outcome_unknown"),
    ]
    out = repaired(session, tmp_path / "out")
    told = (session / "agents/agent_a1/messages/message_6.json").read_text()
    copy = (out / "agents/agent_a1/messages/message_6.json").read_text()
    assert copy == told.replace("Tool was interrupted.", UNKNOWN_TEXT)
    assert len(stored(out)) == len(stored(session))
    assert diagnosis_of(out).verdict == "clean"


def test_the_words_of_the_sdk_are_an_outcome_where_the_tool_says_them_itself(tmp_path: Path) -> None:
    session = taken("single", tmp_path)
    put(session, 2, "user", result("charge_1", "Tool was interrupted."))
    assert diagnosis_of(session).verdict == "clean"


def test_f28_a_call_that_waits_for_a_person_waits_and_its_sibling_has_its_result(tmp_path: Path) -> None:
    session = taken("waiting", tmp_path)
    seen = diagnosis_of(session)
    assert (seen.verdict, seen.calls, seen.answered) == ("waiting", 2, 1)
    assert [(call.id, call.evidence, call.risk) for call in seen.open] == [("charge_1", "waiting", None)]
    assert list(digests(repaired(session, tmp_path / "out")).values()) == list(digests(session).values())
    put(session, 2, "user", result("look_4"), result("charge_1"))
    seen = diagnosis_of(session)
    assert (seen.verdict, seen.answered, seen.damage) == ("clean", 2, ())


def test_f28_what_older_versions_wrote_of_a_call_that_waits_is_read(tmp_path: Path) -> None:
    session = taken("waiting", tmp_path)
    path = session / "agents" / "agent_a1" / "agent.json"
    agent = json.loads(path.read_text())
    state = agent["_internal_state"]["interrupt_state"]
    pending = state.pop("pending_tool_execution")
    state["context"] = {
        "tool_use_message": pending["assistant_message"],
        "tool_results": pending["completed_tool_results"],
    }
    path.write_text(json.dumps(agent))
    seen = diagnosis_of(session)
    assert (seen.verdict, seen.answered, open_ids(seen)) == ("waiting", 1, ["charge_1"])


def test_f28_a_call_that_was_agreed_to_and_killed_is_not_said_to_have_waited_alone(tmp_path: Path) -> None:
    (call,) = diagnosis_of(taken("agreed", tmp_path)).open
    assert (call.id, call.evidence, OR_KILLED in call.because[-1]) == ("charge_1", "waiting", True)


def test_messages_behind_a_repair_move_on_by_one(tmp_path: Path) -> None:
    session = taken("single", tmp_path)
    for number in range(2, 12):
        put(session, number, "user" if number % 2 == 0 else "assistant", {"text": f"say {number}"})
    out = repaired(session, tmp_path / "out")
    before, after = blocks(session), blocks(out)
    assert after[:2] + after[3:] == before
    assert [is_answer(block, "charge_1") for block in after[2]] == [True]


def test_results_of_a_batch_go_into_the_message_that_has_the_others(tmp_path: Path) -> None:
    session = taken("single", tmp_path)
    put(session, 1, "assistant", use("c1"), use("c2"), use("c3"))
    put(session, 2, "user", {"text": "and"}, result("c2"))
    out = repaired(session, tmp_path / "out")
    assert len(stored(out)) == 3
    first, second, third, text = blocks(out)[2]
    assert is_answer(first, "c1")
    assert second == result("c2")
    assert is_answer(third, "c3")
    assert text == {"text": "and"}


@pytest.mark.parametrize(("removed", "expected"), [(0, 0), (1, 1), (2, 3), (4, 5)])
def test_what_left_the_context_is_counted_with_the_answer_of_its_call(
    tmp_path: Path, removed: int, expected: int
) -> None:
    session = taken("single", tmp_path)
    put(session, 2, "user", {"text": "go on"})
    put(session, 3, "assistant", {"text": "yes"})
    with_removed(session, removed)
    out = repaired(session, tmp_path / "out")
    assert agent_of(out)["conversation_manager_state"]["removed_message_count"] == expected
    visible = [content for content in blocks(out)[expected:] if not is_answer(content[0], "charge_1")]
    assert visible == blocks(session)[removed:]
    assert (len(visible) < len(blocks(out)[expected:])) == (removed < 2)


def test_a_last_record_that_is_torn_is_named_and_left_out_of_the_copy(tmp_path: Path) -> None:
    session = taken("sibling", tmp_path)
    file = messages_of(session) / "message_5.json"
    whole = file.read_bytes()
    for end in range(len(whole)):
        file.write_bytes(whole[:end])
        (seen,) = examine([session])
        assert [(fault.kind, fault.place) for fault in seen.damage] == [("torn", "message_5.json")]
        assert (seen.verdict, seen.calls, seen.answered) == ("damaged", 1, 1)
    out = repaired(session, tmp_path / "out")
    assert blocks(out) == blocks(taken("sibling", tmp_path / "again"))[:5]
    assert diagnosis_of(out).verdict == "clean"


def test_a_result_that_is_torn_leaves_its_call_open_and_the_count_right(tmp_path: Path) -> None:
    session = taken("healthy", tmp_path)
    (messages_of(session) / "message_2.json").write_bytes(b"{")
    with_removed(session, 4)
    seen = diagnosis_of(session)
    assert open_ids(seen) == ["look_1"]
    out = repaired(session, tmp_path / "out")
    after = blocks(out)
    assert is_answer(after[2][0], "look_1")
    assert after[3:] == blocks(taken("healthy", tmp_path / "again"))[3:]
    assert agent_of(out)["conversation_manager_state"]["removed_message_count"] == 4


def test_f21_a_file_of_zeros_is_named(tmp_path: Path) -> None:
    session = taken("healthy", tmp_path)
    (messages_of(session) / "message_7.json").write_bytes(bytes(100))
    assert [(fault.kind, fault.place) for fault in diagnosis_of(session).damage] == [("nul_run", "message_7.json")]


def test_a_file_that_was_not_finished_and_one_that_is_missing_are_named(tmp_path: Path) -> None:
    session = taken("healthy", tmp_path)
    (messages_of(session) / ".strands_abc.tmp").write_text('{"message": {"role": "ass')
    (messages_of(session) / "message_5.json").unlink()
    (session / "session.json").write_text("")
    seen = diagnosis_of(session)
    assert [(fault.kind, fault.place) for fault in seen.damage] == [
        ("gap", "message_6.json"),
        ("orphan_result", "message_6.json"),
        ("orphan_result", "message_6.json"),
        ("torn", "session.json"),
        ("torn", ".strands_abc.tmp"),
    ]
    assert not list(repaired(session, tmp_path / "out").rglob("*.tmp"))


def test_a_link_is_neither_read_nor_copied(tmp_path: Path) -> None:
    session = taken("healthy", tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("a secret")
    (messages_of(session) / "message_8.json").symlink_to(secret)
    assert [fault.kind for fault in diagnosis_of(session).damage] == ["corrupt"]
    out = repaired(session, tmp_path / "out")
    assert not (messages_of(out) / "message_8.json").is_symlink()
    assert all(b"a secret" not in path.read_bytes() for path in out.rglob("*") if path.is_file())


def test_f26_a_file_over_the_limit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbered, "RECORD_MAX", 2_000)
    session = taken("healthy", tmp_path)
    put(session, 8, "user", {"text": "x" * 2_000})
    assert [(fault.kind, fault.place) for fault in diagnosis_of(session).damage] == [("too_long", "message_8.json")]


def test_f08_calls_of_one_id_are_answered_one_after_the_other(tmp_path: Path) -> None:
    session = taken("single", tmp_path)
    put(session, 2, "user", result("charge_1"))
    put(session, 3, "assistant", use("charge_1"))
    seen = diagnosis_of(session)
    assert (seen.calls, seen.answered, [call.place for call in seen.open]) == (2, 1, ["message_3.json"])
    out = repaired(session, tmp_path / "out")
    assert blocks(out)[:4] == blocks(session)
    assert is_answer(blocks(out)[4][0], "charge_1")


def test_f07_a_second_result_of_a_call_is_named(tmp_path: Path) -> None:
    session = taken("healthy", tmp_path)
    put(session, 8, "user", result("look_1"))
    seen = diagnosis_of(session)
    assert (seen.verdict, [fault.kind for fault in seen.damage]) == ("clean", ["duplicate"])


def test_a_message_that_was_redacted_is_what_it_was_redacted_to(tmp_path: Path) -> None:
    session = taken("single", tmp_path)
    put(
        session,
        1,
        "assistant",
        use("charge_1"),
        redact_message={"role": "assistant", "content": [{"text": "redacted"}]},
    )
    seen = diagnosis_of(session)
    assert (seen.verdict, seen.calls) == ("clean", 0)


def test_blocks_of_unknown_types_are_counted_and_odd_shapes_are_stepped_over(tmp_path: Path) -> None:
    session = taken("healthy", tmp_path)
    put(session, 8, "assistant", {"hologram": {}}, {"hologram": 1}, {"toolUse": 5}, {"text": None}, {})
    put(session, 9, "user", {"toolResult": []}, {"image": 3})
    (messages_of(session) / "message_10.json").write_text('{"message": [], "message_id": 10}')
    seen = diagnosis_of(session)
    assert (seen.verdict, dict(seen.unknown)) == ("damaged", {"hologram": 2, "": 1})
    assert [(fault.kind, fault.place) for fault in seen.damage] == [("corrupt", "message_10.json")]
    assert [event.type for event in imported(session).events][-2:] == ["user_message", "turn_end"]


def test_each_agent_of_a_session_is_a_session_and_a_repair_leaves_the_others(tmp_path: Path) -> None:
    session = taken("single", tmp_path)
    shutil.copytree(session / "agents" / "agent_a1", session / "agents" / "agent_a2")
    with untouched(session):
        first, second = examine([session])
    assert [(each.session, open_ids(each)) for each in (first, second)] == [("a1", ["charge_1"]), ("a2", ["charge_1"])]


@pytest.mark.parametrize("scene", ["single", "sibling", "restarted", "trimmed", "waiting", "healthy"])
def test_the_repair_of_a_copy_is_that_copy(tmp_path: Path, scene: str) -> None:
    session = taken(scene, tmp_path)
    once = repaired(session, tmp_path / "once")
    twice = repaired(once, tmp_path / "twice")
    again = repaired(session, tmp_path / "again")
    assert list(digests(once).values()) == list(digests(twice).values()) == list(digests(again).values())


@pytest.mark.parametrize(
    ("scene", "ids"),
    [
        ("healthy", []),
        ("single", ["charge_1"]),
        ("sibling", ["look_4", "charge_1"]),
        ("restarted", ["look_4", "charge_1"]),
        ("trimmed", ["charge_1"]),
    ],
)
def test_what_is_imported_owes_what_doctor_names_and_goes_out_valid(tmp_path: Path, scene: str, ids: list[str]) -> None:
    session = taken(scene, tmp_path)
    log = imported(session)
    assert [repair.data["id"] for repair in plan(log).lost_calls()] == open_ids(diagnosis_of(session)) == ids
    for target in ("bedrock", "anthropic"):
        messages = render(log, target).messages
        assert check(target, messages) == []
        assert "Tool was interrupted." not in json.dumps(messages)


def test_everything_a_message_holds_is_imported(tmp_path: Path) -> None:
    session = taken("healthy", tmp_path)
    encoded = {"__bytes_encoded__": True, "data": "aGVsbG8="}
    image = {"image": {"format": "png", "source": {"bytes": encoded}}}
    reasoning = {"reasoningContent": {"reasoningText": {"text": "think", "signature": "s"}}}
    put(session, 8, "user", {"text": "look"}, image)
    put(session, 9, "assistant", reasoning, {"text": "a picture"})
    messages = render(imported(session), "bedrock").messages
    assert messages[-2]["content"][1] == {"image": {"format": "png", "source": {"bytes": "aGVsbG8="}}}
    assert messages[-1]["content"] == [reasoning, {"text": "a picture"}]
    assert {"text": "price: 5"} in messages[2]["content"][0]["toolResult"]["content"]
