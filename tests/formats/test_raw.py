"""Bare arrays of messages: what doctor says of them, and what a repaired copy holds."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats.seen import diagnosis_of, open_ids, untouched
from turnwal.core.errors import Refused
from turnwal.core.log import Log
from turnwal.core.recovery import plan
from turnwal.formats.doctor import diagnose
from turnwal.formats.finding import find
from turnwal.formats.format import Found
from turnwal.formats.importing import lines_of
from turnwal.formats.registry import format_of
from turnwal.formats.sampling import HEAD
from turnwal.formats.sending import first_problem
from turnwal.formats.wording import UNKNOWN_TEXT
from turnwal.transcript.check import check
from turnwal.transcript.render import render

Message = dict[str, Any]


def anthropic(*steps: list[tuple[str, bool]]) -> list[Message]:
    made: list[Message] = [{"role": "user", "content": "go"}]
    for step in steps:
        made.append(
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": id, "name": "pay", "input": {}} for id, _ in step],
            }
        )
        results = [{"type": "tool_result", "tool_use_id": id, "content": "paid"} for id, done in step if done]
        made += [{"role": "user", "content": results}] if results else []
    return made


def openai_chat(*steps: list[tuple[str, bool]]) -> list[Message]:
    made: list[Message] = [{"role": "user", "content": "go"}]
    for step in steps:
        calls = [{"id": id, "type": "function", "function": {"name": "pay", "arguments": "{}"}} for id, _ in step]
        made.append({"role": "assistant", "content": None, "tool_calls": calls})
        made += [{"role": "tool", "tool_call_id": id, "content": "paid"} for id, done in step if done]
    return made


def openai_responses(*steps: list[tuple[str, bool]]) -> list[Message]:
    made: list[Message] = [{"role": "user", "content": "go"}]
    for number, step in enumerate(steps):
        made.append({"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "abc"})
        made += [{"type": "function_call", "call_id": id, "name": "pay", "arguments": "{}"} for id, _ in step]
        made += [{"type": "function_call_output", "call_id": id, "output": "paid"} for id, done in step if done]
    return made


def gemini(*steps: list[tuple[str, bool]]) -> list[Message]:
    made: list[Message] = [{"role": "user", "parts": [{"text": "go"}]}]
    for step in steps:
        made.append(
            {"role": "model", "parts": [{"functionCall": {"id": id, "name": "pay", "args": {}}} for id, _ in step]}
        )
        responses = [
            {"functionResponse": {"id": id, "name": "pay", "response": {"output": "paid"}}} for id, done in step if done
        ]
        made += [{"role": "user", "parts": responses}] if responses else []
    return made


ARRAYS = {
    "anthropic": (anthropic, "messages", "anthropic"),
    "openai_chat": (openai_chat, "messages", "openai-chat"),
    "openai_responses": (openai_responses, "input", "openai-responses"),
    "gemini": (gemini, "contents", "gemini"),
}
arrays = pytest.mark.parametrize("name", sorted(ARRAYS))
KILLED = ([("a", True)], [("b", True), ("c", False), ("d", False)])


def written(path: Path, messages: list[Message], field: str | None = None) -> Path:
    path.write_text(json.dumps(messages if field is None else {"model": "m", field: messages}))
    return path


def repaired(path: Path, out: Path) -> list[Message]:
    (found,) = find([path])
    assert isinstance(found, Found)
    assert found.format.repair is not None
    with untouched(path):
        found.format.repair(found, diagnose(found), out)
    value = json.loads(out.read_text())
    return list(value if isinstance(value, list) else value[ARRAYS[found.format.name][1]])


@arrays
@pytest.mark.parametrize("whole", [False, True])
def test_a_healthy_array_gets_no_alarm(tmp_path: Path, name: str, whole: bool) -> None:
    make, field, _ = ARRAYS[name]
    seen = diagnosis_of(
        written(tmp_path / "x", make([("a", True)], [("b", True), ("c", True)]), field if whole else None)
    )
    assert (seen.format, seen.verdict, seen.calls, seen.answered) == (name, "clean", 3, 3)
    assert (seen.open, seen.damage, seen.on_resume) == ((), (), "continues")


@arrays
@pytest.mark.parametrize("whole", [False, True])
def test_a_call_whose_sibling_finished_is_named_and_may_have_run(tmp_path: Path, name: str, whole: bool) -> None:
    make, field, _ = ARRAYS[name]
    seen = diagnosis_of(written(tmp_path / "x", make(*KILLED), field if whole else None))
    assert (seen.format, seen.verdict, seen.calls, seen.answered, seen.on_resume) == (
        name,
        "interrupted",
        4,
        2,
        "refused",
    )
    assert open_ids(seen) == ["c", "d"]
    for call in seen.open:
        assert (call.name, call.evidence, call.risk, call.arguments) == (
            "pay",
            "requested",
            "tool_outcome_unknown",
            "{}",
        )
        assert any("asked for" in each for each in call.because)


@arrays
@pytest.mark.parametrize("whole", [False, True])
def test_a_repaired_array_is_valid_and_a_second_repair_changes_nothing(tmp_path: Path, name: str, whole: bool) -> None:
    make, field, target = ARRAYS[name]
    path = written(tmp_path / "x", make(*KILLED), field if whole else None)
    messages = repaired(path, tmp_path / "once")
    assert check(target, messages) == []
    seen = diagnosis_of(tmp_path / "once")
    assert (seen.verdict, seen.open, seen.answered) == ("clean", (), 4)
    repaired(tmp_path / "once", tmp_path / "twice")
    assert (tmp_path / "once").read_bytes() == (tmp_path / "twice").read_bytes()


@arrays
def test_a_healthy_array_is_repaired_to_its_own_bytes(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / "x", ARRAYS[name][0]([("a", True)]))
    repaired(path, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == path.read_bytes()


@arrays
def test_what_is_imported_owes_what_doctor_names_and_goes_out_valid(tmp_path: Path, name: str) -> None:
    make, _, target = ARRAYS[name]
    path = written(tmp_path / "x", make(*KILLED))
    (found,) = find([path])
    assert isinstance(found, Found)
    lines = list(lines_of(found, "s", nonce="0" * 32, time=1, writer={"name": "test"}))
    assert lines == list(lines_of(found, "s", nonce="0" * 32, time=1, writer={"name": "test"}))
    log = Log.read(lines)
    assert [repair.data["id"] for repair in plan(log).lost_calls()] == open_ids(diagnosis_of(path))
    rendered = render(log, target)
    assert check(target, rendered.messages) == []
    healthy = written(tmp_path / "y", make([("a", True)], [("b", True), ("c", True)]))
    (found,) = find([healthy])
    assert isinstance(found, Found)
    assert not plan(Log.read(lines_of(found, "s", nonce="0" * 32, time=1, writer={})))


@arrays
def test_cut_after_every_message_it_names_the_calls_that_were_open_there(tmp_path: Path, name: str) -> None:
    make, _, _ = ARRAYS[name]
    steps = [[("a", True)], [("b", True), ("c", True)], [("d", True)]]
    messages = make(*steps)
    for end in range(2, len(messages) + 1):
        kept = messages[:end]
        text = json.dumps(kept)
        asked = [id for step in steps for id, _ in step if f'"{id}"' in text]
        answered = [id for id in asked if text.count(f'"{id}"') == 2]
        seen = diagnosis_of(written(tmp_path / "x", kept))
        if seen.format == name:
            assert open_ids(seen) == [id for id in asked if id not in answered]
        else:  # with no call in it yet, an array of plain messages may be of more than one kind
            assert not asked


@arrays
def test_cut_at_any_byte_of_its_last_message_it_is_torn_and_the_rest_is_read(tmp_path: Path, name: str) -> None:
    make, _, _ = ARRAYS[name]
    messages = make([("a", True)], [("b", False)])
    whole, before = json.dumps(messages), json.dumps(messages[:-1])
    if name == "openai_responses":
        before = json.dumps(messages[:-2])
    for end in range(len(before), len(whole)):
        path = tmp_path / "x"
        path.write_text(whole[:end])
        seen = diagnosis_of(path)
        assert seen.format == name
        assert [fault.kind for fault in seen.damage] == ["torn"]
        assert set(open_ids(seen)) <= {"b"}
        assert repaired(path, tmp_path / f"out{end}")[: len(messages) - 2] == messages[: len(messages) - 2]


@arrays
def test_f08_equal_ids_are_calls_of_their_own(tmp_path: Path, name: str) -> None:
    make, _, _ = ARRAYS[name]
    seen = diagnosis_of(written(tmp_path / "x", make([("a", True)], [("a", True)], [("a", False)])))
    assert (seen.calls, seen.answered, open_ids(seen)) == (3, 2, ["a"])


@arrays
def test_f08_a_call_that_is_asked_for_again_does_not_hide_the_one_that_was_killed(tmp_path: Path, name: str) -> None:
    make, _, target = ARRAYS[name]
    path = written(tmp_path / "x", [*make([("a", False)]), *make([("a", True)])])
    seen = diagnosis_of(path)
    assert (seen.verdict, seen.calls, seen.answered, open_ids(seen)) == ("interrupted", 2, 1, ["a"])
    assert "[1]" in seen.open[0].place or "[2]" in seen.open[0].place
    if name == "openai_responses":  # which takes one output of an id, and reasoning with all that it led to
        with pytest.raises(Refused, match="asked for before"):
            repaired(path, tmp_path / "out")
    else:
        made = repaired(path, tmp_path / "out")
        after = diagnosis_of(tmp_path / "out")
        assert (after.verdict, after.calls, after.answered) == ("clean", 2, 2)
        assert first_problem(target, made) is None
    (found,) = find([path])
    assert isinstance(found, Found)
    log = Log.read(lines_of(found, "s", nonce="0" * 32, time=0, writer={"name": "test", "version": "0"}))
    assert [repair.data["id"] for repair in plan(log).lost_calls()] == ["a"]


@pytest.mark.parametrize("whole", [False, True])
def test_f35_half_a_character_costs_no_repair(tmp_path: Path, whole: bool) -> None:
    messages = anthropic([("a", False)])
    messages[0]["content"] = "cut \ud83d"
    value = {"model": "m", "system": "be good", "messages": messages} if whole else messages
    (tmp_path / "x").write_text(json.dumps(value))
    made = repaired(tmp_path / "x", tmp_path / "out")
    assert made[:2] == messages
    assert UNKNOWN_TEXT in json.dumps(made[2])
    if whole:
        kept = json.loads((tmp_path / "out").read_text())
        assert (kept["model"], kept["system"]) == ("m", "be good")


def test_a_request_that_was_cut_off_is_known_and_keeps_what_stands_before_its_messages(tmp_path: Path) -> None:
    text = json.dumps({"model": "m", "system": "be good", "messages": anthropic([("a", True)], [("b", False)])})
    (tmp_path / "x").write_text(text[:-2])
    seen = diagnosis_of(tmp_path / "x")
    assert (seen.format, open_ids(seen), [fault.kind for fault in seen.damage]) == ("anthropic", ["b"], ["torn"])
    made = repaired(tmp_path / "x", tmp_path / "out")
    assert UNKNOWN_TEXT in json.dumps(made[-1])
    kept = json.loads((tmp_path / "out").read_text())
    assert (kept["model"], kept["system"]) == ("m", "be good")


def test_no_copy_is_made_without_what_stands_behind_bytes_that_are_no_json(tmp_path: Path) -> None:
    deep = "[" * 3000 + "]" * 3000
    text = json.dumps(anthropic([("a", True)], [("b", False)]))
    (tmp_path / "x").write_text(text.replace('"input": {}', f'"input": {{"a": {deep}}}', 1))
    with pytest.raises(Refused, match="it is no JSON"):
        repaired(tmp_path / "x", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@arrays
def test_a_first_message_that_is_longer_than_what_is_looked_at(tmp_path: Path, name: str) -> None:
    make, field, _ = ARRAYS[name]
    messages = make([("a", True)], [("open", False)])
    messages[0] |= {"parts": [{"text": "x" * HEAD}]} if name == "gemini" else {"content": "x" * HEAD}
    for held in (None, field):
        seen = diagnosis_of(written(tmp_path / "x", messages, held))
        assert (seen.format, open_ids(seen)) == (name, ["open"])


def late(name: str, *, done: bool) -> list[Message]:
    """An array in which a second client spoke while two tools ran: one result stands behind what it said (F09)."""
    make, _, _ = ARRAYS[name]
    messages = make([("a", True)], [("b", True), ("c", True)])
    said = make()
    if name in ("openai_chat", "openai_responses"):
        return [*messages[:-1], *said, *(messages[-1:] if done else [])]
    field = "content" if name == "anthropic" else "parts"
    first, second = ({**messages[-1], field: [result]} for result in messages[-1][field])
    model = {"role": "assistant" if name == "anthropic" else "model", field: [{"text": "hm"}]}
    model |= {"content": [{"type": "text", "text": "hm"}]} if name == "anthropic" else {}
    return [*messages[:-1], first, model, *said, *([model, second] if done else [])]


@arrays
@pytest.mark.parametrize("whole", [False, True])
def test_f09_a_result_apart_from_its_call_is_refused_and_stands_behind_it_in_the_copy(
    tmp_path: Path, name: str, whole: bool
) -> None:
    _, field, target = ARRAYS[name]
    messages = late(name, done=True)
    path = written(tmp_path / "x", messages, field if whole else None)
    seen = diagnosis_of(path)
    assert (seen.verdict, seen.calls, seen.answered, seen.damage) == ("clean", 3, 3, ())
    if name == "openai_responses":  # an output may stand anywhere behind its call
        assert (seen.on_resume, seen.problem) == ("continues", "")
    else:
        assert seen.on_resume == "refused"
        assert "unanswered_call" in seen.problem
        assert seen.problem.startswith("messages[3]")
    mended = repaired(path, tmp_path / "once")
    assert check(target, mended) == []
    assert json.dumps(mended).count('"paid"') == 3
    assert (diagnosis_of(tmp_path / "once").on_resume, diagnosis_of(tmp_path / "once").answered) == ("continues", 3)
    repaired(tmp_path / "once", tmp_path / "twice")
    assert (tmp_path / "once").read_bytes() == (tmp_path / "twice").read_bytes()


@pytest.mark.parametrize("name", ["anthropic", "openai_chat", "gemini"])
def test_f09_an_open_call_beside_a_late_result_is_answered_and_the_result_kept(tmp_path: Path, name: str) -> None:
    make, _, target = ARRAYS[name]
    path = written(tmp_path / "x", [*late(name, done=True), *make([("d", False)])[1:]])
    assert open_ids(diagnosis_of(path)) == ["d"]
    mended = repaired(path, tmp_path / "once")
    assert check(target, mended) == []
    assert json.dumps(mended).count('"paid"') == 3
    assert json.dumps(mended).count(json.dumps(UNKNOWN_TEXT)) == 1
    seen = diagnosis_of(tmp_path / "once")
    assert (seen.verdict, seen.answered, seen.on_resume) == ("clean", 4, "continues")


@arrays
def test_what_a_provider_takes_with_a_loss_alone_is_not_repaired(tmp_path: Path, name: str) -> None:
    make, _, _ = ARRAYS[name]
    messages = make([("a", True)], [("b", True)])
    del messages[1 if name != "openai_responses" else slice(1, 3)]
    path = written(tmp_path / "x", messages)
    assert diagnosis_of(path).on_resume == "refused"
    with pytest.raises(Refused, match="no order of its messages"):
        repaired(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_ids_that_anthropic_wants_once_are_told_apart_in_the_copy(tmp_path: Path) -> None:
    path = written(tmp_path / "x", anthropic([("a", True)], [("a", True)]))
    seen = diagnosis_of(path)
    assert (seen.verdict, seen.on_resume) == ("clean", "refused")
    assert "duplicate_id" in seen.problem
    assert check("anthropic", repaired(path, tmp_path / "out")) == []
    # elsewhere the neighbours tell them apart
    assert diagnosis_of(written(tmp_path / "y", openai_chat([("a", True)], [("a", True)]))).on_resume == "continues"


def test_of_an_array_too_long_to_be_held_it_is_said_that_it_was_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "x", late("openai_chat", done=True))
    monkeypatch.setattr("turnwal.formats.raw.WHOLE_MAX", path.stat().st_size - 1)
    seen = diagnosis_of(path)
    assert (seen.verdict, seen.on_resume) == ("clean", "unknown")
    assert "not looked at" in seen.problem


@arrays
def test_a_result_without_its_call_is_named(tmp_path: Path, name: str) -> None:
    messages = ARRAYS[name][0]([("a", True)], [("b", True)])
    del messages[1 if name != "openai_responses" else slice(1, 3)]
    seen = diagnosis_of(written(tmp_path / "x", messages))
    assert [fault.kind for fault in seen.damage] == ["orphan_result"]


@arrays
@pytest.mark.parametrize("odd", [1, None, "text", [], {"role": 1}, {"role": "user", "content": 7, "parts": 7}])
def test_an_odd_message_is_named_and_the_others_are_read(tmp_path: Path, name: str, odd: Any) -> None:
    # far enough behind the beginning, by which a file is known
    messages = ARRAYS[name][0](*[[(f"c{number}", True)] for number in range(24)], [("open", False)])
    messages.insert(len(messages) - 2, odd)
    seen = diagnosis_of(written(tmp_path / "x", messages))
    assert (seen.format, open_ids(seen)) == (name, ["open"])


def test_an_array_of_bedrock_converse_is_of_no_known_format(tmp_path: Path) -> None:
    asked = {"toolUse": {"toolUseId": "a", "name": "pay", "input": {}}}
    messages = [{"role": "user", "content": [{"text": "go"}]}, {"role": "assistant", "content": [asked]}]
    seen = diagnosis_of(written(tmp_path / "x", messages))
    assert (seen.format, seen.verdict) == (None, "unreadable")
    typed = [{"role": "user", "content": [{"type": "text", "text": "go"}]}]
    assert diagnosis_of(written(tmp_path / "y", typed)).format == "openai_chat"


def test_formats_say_what_they_are() -> None:
    for name in ARRAYS:
        known = format_of(name)
        assert (known.name, known.on_resume) == (name, "refused")
        assert known.resume_text.endswith(".")
