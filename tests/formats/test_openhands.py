"""OpenHands: folders of conversations that its SDK has left, killed inside a tool and gone on with."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.formats.seen import DATA, diagnosis_of, digests, imported, open_ids, repaired
from turnwal.core.recovery import plan
from turnwal.formats import examine
from turnwal.formats.wording import OR_KILLED, UNKNOWN_TEXT
from turnwal.transcript.check import check
from turnwal.transcript.render import render

Event = dict[str, Any]

ID = "00000000000040008000000000000001"
RESTARTED = (
    "A restart occurred while this tool was in progress. This may indicate a fatal memory error or system crash. "
    "The tool execution was interrupted and did not complete."
)
PAUSED = "Tool call interrupted before completion. The conversation was paused."


def taken(scene: str, to: Path) -> Path:
    """A copy of a conversation that the SDK wrote."""
    return Path(shutil.copytree(DATA / "openhands" / scene / ID, to / scene / ID))


def files(session: Path) -> list[Path]:
    return sorted((session / "events").glob("event-*.json"))


def stored(session: Path) -> list[Event]:
    """The events in order; each has the number and the id that its file says, and a parent that is there."""
    found: list[Event] = []
    for number, path in enumerate(files(session)):
        event = json.loads(path.read_text())
        assert path.name == f"event-{number:05}-{event['id']}.json"
        found.append(event)
    ids = {event["id"] for event in found} | {None}
    assert len(ids) == len(found) + 1
    assert all(event.get("parent_id") in ids for event in found)
    return found


def state_of(session: Path) -> Any:
    return json.loads((session / "base_state.json").read_text())


def with_state(session: Path, **changed: Any) -> None:
    (session / "base_state.json").write_text(json.dumps(state_of(session) | changed))


def put(session: Path, kind: str, *, parent: str | None = None, **fields: Any) -> str:
    """Add an event, the child of the last one where nothing else is said."""
    last = json.loads(files(session)[-1].read_text())
    number = len(files(session))
    id = f"00000000-0000-4000-8000-{number:012}"
    event = {"kind": kind, "id": id, "timestamp": last["timestamp"], "parent_id": parent or last["id"]} | fields
    (session / "events" / f"event-{number:05}-{id}.json").write_text(json.dumps(event))
    return id


def answer(session: Path, call: str, **fields: Any) -> str:
    action = next(e for e in stored(session) if e["kind"] == "ActionEvent" and e["tool_call_id"] == call)
    said = {"content": [{"type": "text", "text": "done"}], "is_error": False, "kind": "SaidObservation"}
    about = {"tool_call_id": call, "tool_name": action["tool_name"], "action_id": action["id"], "observation": said}
    return put(session, "ObservationEvent", **about, **fields)


def error(session: Path, call: str, text: str, **fields: Any) -> str:
    return put(session, "AgentErrorEvent", tool_call_id=call, tool_name="x", error=text, **fields)


def line_of(session: Path, leaf: str) -> list[Event]:
    """The events from the root to a leaf."""
    by_id = {event["id"]: event for event in stored(session)}
    found: list[Event] = []
    id: str | None = leaf
    while id is not None:
        found.insert(0, by_id[id])
        id = by_id[id].get("parent_id")
    return found


def told(event: Event) -> tuple[str, str]:
    return event["tool_call_id"], event.get("error", "")


@pytest.mark.parametrize(("scene", "calls"), [("healthy", 3), ("failed", 2)])
def test_a_healthy_session_gets_no_alarm(scene: str, calls: int) -> None:
    seen = diagnosis_of(DATA / "openhands" / scene)
    assert (seen.format, seen.verdict, seen.session, seen.on_resume) == ("openhands", "clean", ID, "continues")
    assert (seen.calls, seen.answered, seen.open, seen.damage, dict(seen.unknown)) == (calls, calls, (), (), {})


def test_cut_after_any_event_it_names_the_calls_that_were_open_there(tmp_path: Path) -> None:
    session = taken("healthy", tmp_path)
    met = set()
    while files(session):
        asked: list[str] = []
        for event in stored(session):
            if event["kind"] == "ActionEvent":
                asked.append(event["tool_call_id"])
            elif event["kind"] == "ObservationEvent":
                asked.remove(event["tool_call_id"])
        seen = diagnosis_of(session)
        assert open_ids(seen) == asked
        assert seen.on_resume == ("runs_again" if asked else "continues")
        met.add(tuple(asked))
        files(session)[-1].unlink()
    assert met == {(), ("look_1",), ("look_2",), ("look_2", "look_3"), ("look_3",)}


@pytest.mark.parametrize(
    ("scene", "ids"), [("single", ["charge_1"]), ("hooked", ["charge_1"]), ("sibling", ["look_4", "charge_1"])]
)
def test_f01_a_call_whose_process_was_killed_may_have_run(tmp_path: Path, scene: str, ids: list[str]) -> None:
    session = taken(scene, tmp_path)
    seen = diagnosis_of(session)
    assert [(call.id, call.evidence, call.risk) for call in seen.open] == [
        (id, "requested", "tool_outcome_unknown") for id in ids
    ]
    out = repaired(session, tmp_path / "out")
    before, after = stored(session), stored(out)
    assert after[: len(before)] == before
    assert [told(event) for event in after[len(before) :]] == [(id, UNKNOWN_TEXT) for id in ids]
    leaf = state_of(out)["leaf_event_id"]
    assert leaf == after[-1]["id"]
    assert [event["id"] for event in line_of(out, leaf)[-2 * len(ids) :]] == [e["id"] for e in after[-2 * len(ids) :]]
    assert state_of(out) == state_of(session) | {"leaf_event_id": leaf}
    assert not list(out.rglob("*.marker"))
    assert diagnosis_of(out).verdict == "clean"


def test_a_branch_that_was_left_is_answered_and_stays_left(tmp_path: Path) -> None:
    session = taken("branched", tmp_path)
    assert open_ids(diagnosis_of(session)) == ["look_4", "charge_1"]
    out = repaired(session, tmp_path / "out")
    assert state_of(out) == state_of(session)
    leaf = state_of(session)["leaf_event_id"]
    assert line_of(out, leaf) == line_of(session, leaf)
    *_, first, second, _, _ = stored(out)
    assert [told(first), told(second)] == [("look_4", UNKNOWN_TEXT), ("charge_1", UNKNOWN_TEXT)]
    assert [event["kind"] for event in line_of(out, second["id"])[-4:]] == ["ActionEvent"] * 2 + ["AgentErrorEvent"] * 2
    assert diagnosis_of(out).verdict == "clean"


def test_what_follows_the_calls_follows_their_answers(tmp_path: Path) -> None:
    session = taken("sibling", tmp_path)
    message = {"role": "user", "content": [{"type": "text", "text": "go on"}]}
    leaf = put(session, "MessageEvent", source="user", llm_message=message)
    with_state(session, leaf_event_id=leaf)
    out = repaired(session, tmp_path / "out")
    assert state_of(out)["leaf_event_id"] == leaf
    assert [event["kind"] for event in line_of(out, leaf)[-5:]] == (
        ["ActionEvent"] * 2 + ["AgentErrorEvent"] * 2 + ["MessageEvent"]
    )
    assert stored(out)[-1]["id"] == leaf


def test_an_answer_goes_behind_those_of_its_siblings(tmp_path: Path) -> None:
    session = taken("sibling", tmp_path)
    leaf = answer(session, "charge_1")
    with_state(session, leaf_event_id=leaf)
    assert open_ids(diagnosis_of(session)) == ["look_4"]
    out = repaired(session, tmp_path / "out")
    line = line_of(out, state_of(out)["leaf_event_id"])
    assert [(event["kind"], event["tool_call_id"]) for event in line[-4:]] == [
        ("ActionEvent", "look_4"),
        ("ActionEvent", "charge_1"),
        ("ObservationEvent", "charge_1"),
        ("AgentErrorEvent", "look_4"),
    ]


def test_older_conversations_without_parents_stay_a_line(tmp_path: Path) -> None:
    session = taken("sibling", tmp_path)
    message = {"role": "user", "content": [{"type": "text", "text": "go on"}]}
    put(session, "MessageEvent", source="user", llm_message=message)
    for path in files(session):
        event = json.loads(path.read_text())
        event.pop("parent_id", None)
        path.write_text(json.dumps(event))
    with_state(session, leaf_event_id=None)
    out = repaired(session, tmp_path / "out")
    assert [event["kind"] for event in stored(out)[-5:]] == (
        ["ActionEvent"] * 2 + ["AgentErrorEvent"] * 2 + ["MessageEvent"]
    )
    assert not any("parent_id" in event for event in stored(out))
    assert state_of(out) == state_of(session)


@pytest.mark.parametrize("text", [RESTARTED, PAUSED])
def test_f13_what_openhands_wrote_of_a_call_that_was_cut_off_is_no_outcome(tmp_path: Path, text: str) -> None:
    session = taken("single", tmp_path)
    with_state(session, leaf_event_id=error(session, "charge_1", text))
    seen = diagnosis_of(session)
    assert [(call.id, call.evidence, call.risk) for call in seen.open] == [
        ("charge_1", "answered_synthetic", "tool_outcome_unknown")
    ]
    out = repaired(session, tmp_path / "out")
    before, after = stored(session), stored(out)
    assert after == [*before[:-1], before[-1] | {"error": UNKNOWN_TEXT}]
    assert diagnosis_of(out).verdict == "clean"


def test_f07_an_observation_after_an_invented_error_is_the_outcome_and_a_second_one_a_duplicate(tmp_path: Path) -> None:
    session = taken("single", tmp_path)
    error(session, "charge_1", RESTARTED)
    answer(session, "charge_1")
    seen = diagnosis_of(session)
    assert (seen.verdict, seen.answered, seen.damage) == ("clean", 1, ())
    answer(session, "charge_1")
    seen = diagnosis_of(session)
    assert (seen.answered, [fault.kind for fault in seen.damage]) == (1, ["duplicate"])


def test_f07_a_call_that_is_recorded_again_owes_one_result(tmp_path: Path) -> None:
    session = taken("single", tmp_path)
    action = stored(session)[-1]
    again = {name: action[name] for name in ("tool_name", "tool_call", "tool_call_id", "action", "llm_response_id")}
    put(session, "ActionEvent", **again)
    seen = diagnosis_of(session)
    assert (seen.calls, open_ids(seen)) == (1, ["charge_1"])
    answer(session, "charge_1")
    seen = diagnosis_of(session)
    assert (seen.verdict, seen.calls, seen.answered, seen.damage) == ("clean", 1, 1, ())


def test_f08_calls_of_one_id_are_answered_one_after_the_other(tmp_path: Path) -> None:
    session = taken("healthy", tmp_path)
    call = {"id": "look_1", "name": "look", "arguments": "{}"}
    put(session, "ActionEvent", tool_call_id="look_1", tool_name="look", tool_call=call, action={})
    seen = diagnosis_of(session)
    assert (seen.calls, seen.answered, open_ids(seen)) == (4, 3, ["look_1"])


def test_f28_a_call_that_a_person_has_not_agreed_to_waits(tmp_path: Path) -> None:
    session = taken("confirming", tmp_path)
    seen = diagnosis_of(session)
    assert (seen.verdict, [(call.id, call.evidence, call.risk) for call in seen.open]) == (
        "waiting",
        [("charge_1", "waiting", None)],
    )
    assert list(digests(repaired(session, tmp_path / "out")).values()) == list(digests(session).values())
    put(session, "UserRejectObservation", tool_call_id="charge_1", rejection_reason="no")
    assert diagnosis_of(session).verdict == "clean"


def test_f28_a_call_that_was_agreed_to_and_killed_is_not_said_to_have_waited_alone(tmp_path: Path) -> None:
    session = taken("agreed", tmp_path)
    assert state_of(session)["execution_status"] == "waiting_for_confirmation"
    (call,) = diagnosis_of(session).open
    assert (call.evidence, OR_KILLED in call.because[-1]) == ("waiting", True)


def test_a_hook_that_ran_after_the_tool_shows_that_it_ran_and_one_before_it_shows_nothing(tmp_path: Path) -> None:
    session = taken("hooked", tmp_path)
    assert [call.evidence for call in diagnosis_of(session).open] == ["requested"]
    action = stored(session)[-1]["id"]
    put(session, "HookExecutionEvent", hook_event_type="PreToolUse", action_id=action, parent=action)
    assert [call.evidence for call in diagnosis_of(session).open] == ["requested"]
    hook = put(session, "HookExecutionEvent", hook_event_type="PostToolUse", action_id=action, parent=action)
    (call,) = diagnosis_of(session).open
    assert (call.evidence, "hook" in call.because[1]) == ("ran", True)
    out = repaired(session, tmp_path / "out")
    assert [event["kind"] for event in line_of(out, state_of(out)["leaf_event_id"])[-2:]] == [
        "ActionEvent",
        "AgentErrorEvent",
    ]
    assert [event["parent_id"] for event in stored(out) if event["id"] == hook] == [action]


def test_calls_of_replies_of_one_id_are_answered_each_in_its_branch(tmp_path: Path) -> None:
    session = taken("single", tmp_path)
    first = stored(session)[-1]
    message = {"role": "user", "content": [{"type": "text", "text": "again"}]}
    leaf = put(session, "MessageEvent", source="user", llm_message=message, parent=first["parent_id"])
    again = {name: first[name] for name in ("tool_name", "tool_call", "action", "llm_response_id", "source")}
    put(session, "ActionEvent", tool_call_id="charge_2", **again)
    with_state(session, leaf_event_id=leaf)
    out = repaired(session, tmp_path / "out")
    line = line_of(out, state_of(out)["leaf_event_id"])
    assert [told(event) for event in line if "tool_call_id" in event] == [("charge_2", ""), ("charge_2", UNKNOWN_TEXT)]
    (left,) = [event for event in stored(out) if event["kind"] == "AgentErrorEvent" and event not in line]
    assert (told(left), left["parent_id"]) == (("charge_1", UNKNOWN_TEXT), first["id"])


def test_f28_only_the_calls_at_the_leaf_wait(tmp_path: Path) -> None:
    session = taken("confirming", tmp_path)
    first = stored(session)[-1]
    again = {name: first[name] for name in ("tool_name", "tool_call", "action", "source")}
    put(session, "ActionEvent", tool_call_id="charge_2", llm_response_id="r2", **again)
    seen = diagnosis_of(session)
    assert {call.id: call.evidence for call in seen.open} == {"charge_1": "waiting", "charge_2": "requested"}


def test_a_last_event_that_is_torn_is_named_and_left_out_of_the_copy(tmp_path: Path) -> None:
    session = taken("sibling", tmp_path)
    file = files(session)[-1]
    whole = file.read_bytes()
    for end in range(len(whole)):
        file.write_bytes(whole[:end])
        (seen,) = examine([session])
        assert [(fault.kind, fault.place) for fault in seen.damage] == [("torn", file.name)]
        assert (seen.verdict, open_ids(seen)) == ("interrupted", ["look_4"])
    out = repaired(session, tmp_path / "out")
    assert [told(event) for event in stored(out)[-2:]] == [("look_4", ""), ("look_4", UNKNOWN_TEXT)]
    assert diagnosis_of(out).verdict == "clean"


@pytest.mark.parametrize("how", ["missing", "zeros"])
def test_f21_behind_an_event_that_is_not_there_the_copy_goes_on(tmp_path: Path, how: str) -> None:
    session = taken("healthy", tmp_path)
    file = files(session)[5]
    if how == "missing":
        file.unlink()
    else:
        file.write_bytes(bytes(200))
    seen = diagnosis_of(session)
    kinds = {"missing": ["gap", "missing_parent"], "zeros": ["nul_run", "missing_parent"]}
    assert [fault.kind for fault in seen.damage] == kinds[how]
    assert seen.verdict == "damaged"
    out = repaired(session, tmp_path / "out")
    assert len(stored(out)) == 10
    assert len(line_of(out, state_of(out)["leaf_event_id"])) == 10
    assert diagnosis_of(out).verdict == "clean"


def test_events_of_unknown_kinds_are_counted_and_odd_shapes_are_stepped_over(tmp_path: Path) -> None:
    session = taken("healthy", tmp_path)
    put(session, "HologramEvent", source="agent")
    put(session, "MessageEvent", source="user", llm_message=[])
    put(session, "SystemPromptEvent", system_prompt=3, dynamic_context={"text": 4})
    put(session, "MessageEvent", source="agent", llm_message={"content": [3, {"text": "x"}], "thinking_blocks": [{}]})
    (session / "events" / "notes.json").write_text("[]")
    seen = diagnosis_of(session)
    assert (seen.verdict, dict(seen.unknown)) == ("clean", {"HologramEvent": 1})
    assert render(imported(session), "openai-chat").messages[-1]["content"]


@pytest.mark.parametrize("scene", ["healthy", "single", "sibling", "branched", "hooked", "confirming", "failed"])
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
        ("failed", []),
        ("single", ["charge_1"]),
        ("hooked", ["charge_1"]),
        ("sibling", ["look_4", "charge_1"]),
        ("branched", ["look_4", "charge_1"]),
    ],
)
def test_what_is_imported_owes_what_doctor_names_and_goes_out_valid(tmp_path: Path, scene: str, ids: list[str]) -> None:
    session = taken(scene, tmp_path)
    log = imported(session)
    assert [repair.data["id"] for repair in plan(log).lost_calls()] == open_ids(diagnosis_of(session)) == ids
    for target in ("anthropic", "openai-chat"):
        assert check(target, render(log, target).messages) == []


def test_the_calls_of_one_reply_are_one_message(tmp_path: Path) -> None:
    messages = render(imported(taken("healthy", tmp_path)), "openai-chat").messages
    asked = [each.get("tool_calls", ()) for each in messages if each["role"] == "assistant"]
    assert [[call["id"] for call in calls] for calls in asked] == [["look_1"], [], ["look_2", "look_3"], []]
    assert [each["content"] for each in messages if each["role"] == "tool"] == ["price: 5", "stock: 5", "fee: 5"]


def test_everything_an_event_holds_is_imported(tmp_path: Path) -> None:
    session = taken("healthy", tmp_path)
    image = {"type": "image", "image_urls": ["data:image/png;base64,aGVsbG8="]}
    message = {"role": "user", "content": [{"type": "text", "text": "look"}, image]}
    put(session, "MessageEvent", source="user", llm_message=message)
    thinking = {"type": "thinking", "thinking": "think", "signature": "s"}
    said = {"role": "assistant", "content": [{"type": "text", "text": "a picture"}], "thinking_blocks": [thinking]}
    put(session, "MessageEvent", source="agent", llm_message=said)
    made = render(imported(session), "anthropic")
    assert "You look things up" in json.dumps(made.system)
    assert made.messages[-2]["content"][1]["source"]["data"] == "aGVsbG8="
    assert made.messages[-1]["content"] == [thinking, {"type": "text", "text": "a picture"}]
