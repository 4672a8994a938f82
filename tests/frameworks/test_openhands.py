"""Repaired copies in the OpenHands SDK itself: loaded, gone on with, and read as the model reads them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openhands.sdk")

from tests.formats.generators.openhands import conversation, played
from tests.formats.seen import diagnosis_of, repaired
from tests.formats.test_openhands import ID, taken
from turnwal.formats.wording import OR_KILLED, UNKNOWN_TEXT

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(180)]

PRICE = {"look_1": "price: 5"}


def results(messages: Any) -> dict[str, str]:
    """What each call was answered; the results of a reply stand right behind it, in the order of its calls."""
    found: dict[str, str] = {}
    for index, message in enumerate(messages):
        asked = [call.id for call in message.tool_calls or ()]
        told = messages[index + 1 : index + 1 + len(asked)]
        assert [(each.role, each.tool_call_id) for each in told] == [("tool", id) for id in asked]
        found |= {each.tool_call_id: each.content[0].text for each in told}
    return found


def gone_on(session: Path, text: str | None) -> tuple[Any, list[str]]:
    """What the model sees of a conversation that goes on, and the results that came meanwhile."""
    model = played(["I shall check."])
    events: list[Any] = []
    spoken = conversation(model, str(session.parent), callbacks=[events.append])
    if text is not None:
        spoken.send_message(text)
    spoken.run()  # a charge would end this process
    spoken.close()
    came = [event.tool_call_id for event in events if type(event).__name__ == "ObservationEvent"]
    (seen,) = model._seen
    return seen, came


def repaired_in(tmp_path: Path, scene: str) -> Path:
    (tmp_path / "copy").mkdir()
    return repaired(taken(scene, tmp_path), tmp_path / "copy" / ID)


@pytest.mark.parametrize("text", ["what came of it?", None])
@pytest.mark.parametrize(
    ("scene", "answers"),
    [
        ("single", {"charge_1": UNKNOWN_TEXT}),
        ("sibling", PRICE | {"look_4": UNKNOWN_TEXT, "charge_1": UNKNOWN_TEXT}),
        ("hooked", PRICE | {"charge_1": UNKNOWN_TEXT}),
    ],
)
def test_the_model_reads_the_truth_and_nothing_runs_again(
    tmp_path: Path, scene: str, answers: dict[str, str], text: str | None
) -> None:
    copy = repaired_in(tmp_path, scene)
    seen, came = gone_on(copy, text)
    assert results(seen) == answers
    assert came == []
    assert text is None or seen[-1].content[0].text == text
    assert diagnosis_of(copy).verdict == "clean"


def test_what_is_not_repaired_is_not_seen_by_the_model(tmp_path: Path) -> None:
    session = taken("sibling", tmp_path)
    seen, _ = gone_on(session, "what came of it?")
    assert results(seen) == PRICE
    assert [call.id for call in diagnosis_of(session).open] == ["look_4", "charge_1"]


def test_a_branch_that_was_left_stays_left(tmp_path: Path) -> None:
    seen, came = gone_on(repaired_in(tmp_path, "branched"), "and now?")
    assert (results(seen), came) == (PRICE, [])


def test_a_conversation_whose_event_was_torn_goes_on(tmp_path: Path) -> None:
    session = taken("sibling", tmp_path)
    broken = sorted((session / "events").glob("event-*.json"))[4]
    broken.write_bytes(broken.read_bytes()[:50])
    (tmp_path / "copy").mkdir()
    copy = repaired(session, tmp_path / "copy" / ID)
    seen, came = gone_on(copy, "what came of it?")
    assert results(seen) == PRICE | {"look_4": UNKNOWN_TEXT, "charge_1": UNKNOWN_TEXT}
    assert came == []


def test_the_state_of_a_call_that_was_agreed_to_and_killed_is_that_of_one_that_waits(tmp_path: Path) -> None:
    states = []
    for scene, code in (("confirming", 0), ("agreed", 9)):
        directory = tmp_path / scene / "conversations"
        command = [sys.executable, "-m", "tests.formats.generators.openhands", scene, str(directory)]
        assert subprocess.run(command, check=False).returncode == code
        (call,) = diagnosis_of(directory).open
        states.append((call.evidence, call.because[1:]))
    assert states[0] == states[1]
    assert OR_KILLED in states[0][1][0]
