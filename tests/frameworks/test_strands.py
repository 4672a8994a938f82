"""Repaired copies in Strands Agents itself: loaded, gone on with, and read as the model reads them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands")

from strands.hooks import BeforeToolCallEvent

from tests.formats.generators.strands import Played, agent
from tests.formats.seen import diagnosis_of, repaired
from tests.formats.test_strands import taken
from turnwal.formats.wording import OR_KILLED, UNKNOWN_TEXT

pytestmark = pytest.mark.filterwarnings("ignore")

UNKNOWN = ("error", UNKNOWN_TEXT)


def pairs(messages: Any) -> dict[str, tuple[str, str]]:
    """What each call was answered; every result stands in the message behind the call, in the order of the calls."""
    found: dict[str, tuple[str, str]] = {}
    for index, message in enumerate(messages):
        asked = [block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block]
        if asked:
            results = [block["toolResult"] for block in messages[index + 1]["content"] if "toolResult" in block]
            assert [result["toolUseId"] for result in results] == asked
            found |= {result["toolUseId"]: (result["status"], result["content"][0]["text"]) for result in results}
    return found


def gone_on(session: Path, prompt: Any) -> tuple[Any, list[str]]:
    """What the model sees of a session that goes on, and the tools that ran."""
    played = Played(["I shall check."])
    speaker, ran = agent(played, str(session.parent)), list[str]()
    speaker.add_hook(lambda event: ran.append(event.tool_use["name"]), BeforeToolCallEvent)
    assert str(speaker(prompt)).strip() == "I shall check."
    (seen,) = played.seen
    return seen, ran


def repaired_in(tmp_path: Path, scene: str) -> Path:
    (tmp_path / "copy").mkdir()
    return repaired(taken(scene, tmp_path), tmp_path / "copy" / "session_s1")


def files(session: Path) -> Iterator[str]:
    yield from (path.read_text() for path in session.rglob("message_*.json"))


@pytest.mark.parametrize(
    ("scene", "answers"),
    [
        ("single", {"charge_1": UNKNOWN}),
        ("sibling", {"look_1": ("success", "price: 5"), "look_4": UNKNOWN, "charge_1": UNKNOWN}),
        ("restarted", {"look_1": ("success", "price: 5"), "look_4": UNKNOWN, "charge_1": UNKNOWN}),
        ("trimmed", {"charge_1": UNKNOWN}),
    ],
)
def test_the_model_reads_the_truth_and_nothing_runs_again(tmp_path: Path, scene: str, answers: Any) -> None:
    copy = repaired_in(tmp_path, scene)
    seen, ran = gone_on(copy, "what came of it?")
    assert pairs(seen) == answers
    assert ran == []
    assert seen[-1]["content"] == [{"text": "what came of it?"}]
    assert not any("Tool was interrupted." in text for text in files(copy))
    assert diagnosis_of(copy).verdict == "clean"


def test_without_a_prompt_no_tool_runs_either(tmp_path: Path) -> None:
    seen, ran = gone_on(repaired_in(tmp_path, "sibling"), None)  # a charge would end this process
    assert (pairs(seen)["charge_1"], ran) == (UNKNOWN, [])


def test_what_is_not_repaired_is_answered_by_an_invention(tmp_path: Path) -> None:
    session = taken("sibling", tmp_path).rename(tmp_path / "session_s1")
    seen, _ = gone_on(session, "what came of it?")
    assert pairs(seen)["look_4"] == ("error", "Tool was interrupted.")
    assert [call.evidence for call in diagnosis_of(session).open] == ["answered_synthetic"] * 2


def test_an_answer_in_the_middle_stands_where_the_sdk_looks_for_it(tmp_path: Path) -> None:
    session = taken("single", tmp_path)
    for number in range(2, 12):
        text = (session / "agents/agent_a1/messages/message_0.json").read_text()
        told = text.replace('"message_id": 0', f'"message_id": {number}')
        told = told if number % 2 == 0 else told.replace('"role": "user"', '"role": "assistant"')
        (session / f"agents/agent_a1/messages/message_{number}.json").write_text(told)
    (tmp_path / "copy").mkdir()
    copy = repaired(session, tmp_path / "copy" / "session_s1")
    seen, ran = gone_on(copy, "what came of it?")
    assert (pairs(seen), ran, len(seen)) == ({"charge_1": UNKNOWN}, [], 14)
    assert diagnosis_of(copy).verdict == "clean"


def test_a_session_that_waits_for_a_person_still_does(tmp_path: Path) -> None:
    copy = repaired_in(tmp_path, "waiting")
    played = Played([])
    speaker = agent(played, str(copy.parent))
    with pytest.raises(TypeError, match="must resume from interrupt"):
        speaker("what came of it?")
    assert diagnosis_of(copy).verdict == "waiting"


def test_the_state_of_a_call_that_was_agreed_to_and_killed_is_that_of_one_that_waits(tmp_path: Path) -> None:
    states = []
    for scene, code in (("waiting", 0), ("agreed", 9)):
        command = [sys.executable, "-m", "tests.formats.generators.strands", scene, str(tmp_path / scene)]
        assert subprocess.run(command, check=False).returncode == code
        (call,) = diagnosis_of(tmp_path / scene).open
        states.append((call.evidence, call.because[1:]))
    assert states[0] == states[1]
    assert OR_KILLED in states[0][1][0]
