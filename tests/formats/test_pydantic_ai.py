"""Histories of Pydantic AI: agents that were killed inside a tool (`generators/pydantic_ai.py`), and odd files."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.formats.fixtures import digests, evidence, imported, only, owed, refused, repaired, taken
from turnwal.core.errors import Refused
from turnwal.formats.doctor import diagnose, examine
from turnwal.formats.items import Other, Said
from turnwal.formats.wording import MARK, UNKNOWN_TEXT

OPEN = {
    "healthy": {},
    "single": {"call_charge": "requested"},
    "sibling": {"call_look": "requested", "call_charge": "requested"},
    "synthesized": {"call_look": "answered_synthetic", "call_charge": "answered_synthetic"},
    "deferred": {"call_confirm": "waiting"},
    "store": {"call_look": "requested", "call_charge": "requested"},
}
VERDICTS = {"healthy": "clean", "deferred": "waiting"}
REPAIRED = ["single", "sibling", "synthesized", "store"]


def scene(name: str, directory: Path) -> Path:
    return taken("pydantic_ai", f"{name}.json", directory)


def written(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def asks(*ids: str, name: str = "charge") -> dict[str, Any]:
    parts = [{"part_kind": "tool-call", "tool_name": name, "args": None, "tool_call_id": id} for id in ids]
    return {"kind": "response", "parts": parts}


def gives(*ids: str, **more: Any) -> dict[str, Any]:
    part = {"part_kind": "tool-return", "tool_name": "charge", "content": "charged"} | more
    return {"kind": "request", "parts": [part | {"tool_call_id": id} for id in ids]}


def prompts(text: str) -> dict[str, Any]:
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]}


@pytest.mark.parametrize("name", OPEN)
def test_what_a_killed_agent_left_is_open_with_its_evidence(name: str, tmp_path: Path) -> None:
    found, diagnosis = only(scene(name, tmp_path))
    assert found.format.name == "pydantic_ai"
    assert evidence(diagnosis) == OPEN[name]
    assert diagnosis.verdict == VERDICTS.get(name, "interrupted")
    assert not diagnosis.damage
    assert not diagnosis.unknown


def test_cutting_a_healthy_history_after_each_message_leaves_what_was_open_there(tmp_path: Path) -> None:
    messages = json.loads(scene("healthy", tmp_path).read_text())
    seen: list[list[str]] = []
    for count in range(1, len(messages) + 1):
        parts = [part for message in messages[:count] for part in message["parts"]]
        ids = Counter(part["tool_call_id"] for part in parts if part["part_kind"] == "tool-call")
        ids.subtract(part["tool_call_id"] for part in parts if part["part_kind"] == "tool-return")
        seen.append(sorted(id for id, left in ids.items() if left))
        assert sorted(evidence(only(written(tmp_path / "cut.json", messages[:count]))[1])) == seen[-1]
    assert seen == [[], ["call_1"], [], [], [], ["call_2", "call_3"], [], []]


def test_a_file_that_is_cut_at_any_byte_of_its_last_message_keeps_what_is_before(tmp_path: Path) -> None:
    text = scene("healthy", tmp_path).read_bytes()
    start = text.rindex(b"\n {\n")
    path = tmp_path / "cut.json"
    for size in range(start, len(text)):
        path.write_bytes(text[:size])
        diagnosis = only(path)[1]
        assert (diagnosis.calls, diagnosis.answered, diagnosis.open) == (3, 3, ())
        assert diagnosis.verdict == "damaged"
        assert [fault.kind for fault in diagnosis.damage] == ["torn"]


def test_a_torn_history_is_repaired_without_the_torn_message(tmp_path: Path) -> None:
    text = scene("single", tmp_path).read_bytes()
    path = tmp_path / "torn.json"
    path.write_bytes(text[:-1].rstrip() + b',\n {\n  "parts": [')
    assert evidence(only(path)[1]) == OPEN["single"]
    assert repaired(path, tmp_path / "out.json").verdict == "clean"
    assert repaired(scene("single", tmp_path), tmp_path / "whole.json").verdict == "clean"
    assert (tmp_path / "out.json").read_bytes() == (tmp_path / "whole.json").read_bytes()


@pytest.mark.parametrize("name", OPEN)
def test_nothing_is_written_by_looking(name: str, tmp_path: Path) -> None:
    path = scene(name, tmp_path)
    before = digests(tmp_path)
    assert list(examine([tmp_path]))
    assert imported(only(path)[0])
    assert digests(tmp_path) == before


@pytest.mark.parametrize("name", REPAIRED)
def test_a_repaired_copy_is_clean_and_repairing_it_changes_nothing(name: str, tmp_path: Path) -> None:
    path, out = scene(name, tmp_path), tmp_path / "out.json"
    before = path.read_bytes()
    assert repaired(path, out).verdict == "clean"
    assert path.read_bytes() == before
    assert repaired(out, tmp_path / "again.json").verdict == "clean"
    assert (tmp_path / "again.json").read_bytes() == out.read_bytes()
    found, _ = only(out)
    assert owed(found) == []
    results = [item.data for item in found.format.read(found, "whole") if isinstance(item, Said)]
    ours = {data["id"]: data for data in results if data.get("metadata", {}).get("by") == MARK}
    assert ours.keys() == OPEN[name].keys()
    assert all(data["parts"] == [{"type": "text", "content": UNKNOWN_TEXT}] for data in ours.values())


def test_a_path_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = scene("single", tmp_path)
    with pytest.raises(Refused, match="something is there already"):
        repaired(path, path)


def test_a_store_keeps_its_lines_and_gets_a_new_head(tmp_path: Path) -> None:
    path, out = scene("store", tmp_path), tmp_path / "out.json"
    repaired(path, out)
    before, after = json.loads(path.read_text()), json.loads(out.read_text())
    assert after["entries"][:-1] == before["entries"]
    assert after["entries"][-1]["parent_id"] == before["record"]["head_id"]
    assert after["record"]["head_id"] == after["entries"][-1]["id"]
    assert after["record"]["branches"] == before["record"]["branches"]
    assert after["record"]["revision"] != before["record"]["revision"]


def test_an_open_call_on_a_line_that_was_left_is_found_and_answered_there(tmp_path: Path) -> None:
    entries = [
        {"id": "1", "parent_id": None, "message": prompts("charge"), "kind": "message"},
        {"id": "2", "parent_id": "1", "message": asks("c1"), "kind": "message"},
        {"id": "3", "parent_id": "2", "message": prompts("well?"), "kind": "message"},
        {"id": "4", "parent_id": "1", "message": prompts("or rather not"), "kind": "message"},
    ]
    record = {"conversation_id": "c", "head_id": "4", "branches": ["3"], "format_version": 1}
    path, out = written(tmp_path / "s.json", {"record": record, "entries": entries}), tmp_path / "out.json"
    (call,) = only(path)[1].open
    assert (call.id, call.run) == ("c1", "main@3")
    assert repaired(path, out).verdict == "clean"
    after = json.loads(out.read_text())
    assert [part["part_kind"] for part in after["entries"][2]["message"]["parts"]] == ["tool-return", "user-prompt"]
    assert after["record"]["head_id"] == "4"


def test_f39_a_store_of_a_newer_form_is_too_new(tmp_path: Path) -> None:
    value = json.loads(scene("store", tmp_path).read_text())
    value["record"]["format_version"] = 2
    assert only(written(tmp_path / "new.json", value))[1].verdict == "too_new"


@pytest.mark.parametrize("state", ["complete", "interrupted"])
def test_f03_a_call_at_the_end_is_open_whatever_the_state_of_its_message_says(tmp_path: Path, state: str) -> None:
    path = written(tmp_path / "h.json", [prompts("charge"), asks("c1") | {"state": state}])
    seen = only(path)[1]
    assert (seen.verdict, seen.on_resume, evidence(seen)) == ("interrupted", "runs_again", {"c1": "requested"})
    assert repaired(path, tmp_path / "out.json").verdict == "clean"
    (part,) = json.loads((tmp_path / "out.json").read_text())[-1]["parts"]
    assert (part["tool_call_id"], part["content"]) == ("c1", UNKNOWN_TEXT)


def test_f03_an_unanswered_call_with_a_prompt_behind_it_is_answered_ahead_of_the_prompt(tmp_path: Path) -> None:
    path = written(tmp_path / "h.json", [prompts("charge"), asks("c1", "c2"), gives("c2"), prompts("well?")])
    assert evidence(only(path)[1]) == {"c1": "requested"}
    assert repaired(path, tmp_path / "out.json").verdict == "clean"
    after = json.loads((tmp_path / "out.json").read_text())
    assert [[part.get("tool_call_id") for part in message["parts"]] for message in after] == [
        [None],
        ["c1", "c2"],
        ["c1", "c2"],
        [None],
    ]


def test_f28_what_was_deferred_is_told_by_its_siblings_only_at_the_end(tmp_path: Path) -> None:
    at_end = written(tmp_path / "a.json", [prompts("charge"), asks("c1", "c2"), gives("c2")])
    assert evidence(only(at_end)[1]) == {"c1": "waiting"}
    all_open = written(tmp_path / "b.json", [prompts("charge"), asks("c1", "c2")])
    assert evidence(only(all_open)[1]) == {"c1": "requested", "c2": "requested"}


def test_ids_that_are_used_again_are_answered_where_they_are_open(tmp_path: Path) -> None:
    path = written(tmp_path / "h.json", [asks("c"), prompts("well?"), asks("c"), gives("c"), prompts("again")])
    found, diagnosis = only(path)
    assert (diagnosis.calls, diagnosis.answered, evidence(diagnosis)) == (2, 1, {"c": "requested"})
    assert owed(found) == ["c"]
    path = written(tmp_path / "h.json", [asks("c"), gives("c"), asks("c"), prompts("again")])
    diagnosis = only(path)[1]
    assert (diagnosis.calls, diagnosis.answered, evidence(diagnosis)) == (2, 1, {"c": "requested"})
    assert repaired(path, tmp_path / "out.json").verdict == "clean"
    after = json.loads((tmp_path / "out.json").read_text())
    assert [part["part_kind"] for part in after[3]["parts"]] == ["tool-return", "user-prompt"]


def test_an_older_history_gets_no_key_that_it_does_not_have(tmp_path: Path) -> None:
    path = written(tmp_path / "h.json", [prompts("charge"), asks("c1")])
    repaired(path, tmp_path / "out.json")
    (part,) = json.loads((tmp_path / "out.json").read_text())[-1]["parts"]
    assert part.keys() == {"tool_name", "content", "tool_call_id", "metadata", "part_kind"}


def test_a_retry_prompt_answers_a_call_only_where_it_names_a_tool(tmp_path: Path) -> None:
    retry = {"part_kind": "retry-prompt", "content": "no such thing", "tool_call_id": "c1"}
    for name, expected in (("charge", {}), (None, {"c1": "requested"})):
        again = {"kind": "request", "parts": [{**retry, "tool_name": name}]}
        assert evidence(only(written(tmp_path / "h.json", [prompts("charge"), asks("c1"), again]))[1]) == expected


def test_calls_that_the_provider_runs_are_never_open_and_unknown_parts_are_counted(tmp_path: Path) -> None:
    served = {"part_kind": "builtin-tool-call", "tool_name": "web_search", "tool_call_id": "s1", "args": {}}
    message = {"kind": "response", "parts": [served, {"part_kind": "hologram", "content": "?"}]}
    found, diagnosis = only(written(tmp_path / "h.json", [prompts("look"), message]))
    assert diagnosis.verdict == "clean"
    assert diagnosis.unknown == {"hologram part": 1}
    assert [item.place for item in found.format.read(found, "whole") if isinstance(item, Other)] == ["messages[1]"]


def test_messages_of_other_kinds_are_damage_and_the_rest_is_read(tmp_path: Path) -> None:
    listed = [prompts(str(number)) for number in range(30)]
    path = written(tmp_path / "h.json", [*listed, {"kind": "odd"}, 7, asks("c1")])
    diagnosis = only(path)[1]
    assert evidence(diagnosis) == {"c1": "requested"}
    assert [fault.place for fault in diagnosis.damage] == ["messages[30]", "messages[31]"]


@pytest.mark.parametrize("name", OPEN)
def test_an_import_owes_what_is_open_and_can_be_sent(name: str, tmp_path: Path) -> None:
    found, diagnosis = only(scene(name, tmp_path))
    lost = [call.id for call in diagnosis.open if call.evidence != "waiting"]
    assert sorted(owed(found)) == sorted(lost)
    for target in ("anthropic", "openai-chat", "gemini"):
        assert refused(found, target) == [], target


def test_both_depths_say_the_same_of_calls(tmp_path: Path) -> None:
    found, diagnosis = only(scene("single", tmp_path))
    whole = [item for item in found.format.read(found, "whole") if isinstance(item, Said)]
    assert all(item.time is not None for item in whole)
    assert diagnose(found) == diagnosis
    assert [item.type for item in whole].count("user_message") == 3
