"""Repaired copies in Google ADK itself: loaded, gone on with, and read as the model reads them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk")

from tests.formats.generators.google_adk import APP, USER, Played, runner, say, service
from tests.formats.seen import diagnosis_of, repaired
from tests.formats.test_google_adk import taken
from turnwal.formats.wording import UNKNOWN_TEXT

pytestmark = pytest.mark.filterwarnings("ignore")

UNKNOWN = {"error": UNKNOWN_TEXT}
PRICE = {"look_1": {"result": "price: 5"}}


def responses(contents: Any) -> dict[str, Any]:
    """What each call was answered; the responses of a batch stand right behind it, in the order of its calls."""
    found: dict[str, Any] = {}
    for index, content in enumerate(contents):
        asked = [part.function_call.id for part in content.parts if part.function_call]
        if asked:
            said = [part.function_response for part in contents[index + 1].parts]
            assert [each.id for each in said] == asked
            found |= {each.id: each.response for each in said}
    return found


def gone_on(path: Path, kind: str, scene: str, *lines: Any) -> tuple[Any, list[Any]]:
    """What the model sees of a session that goes on, and the responses that tools gave meanwhile."""
    played = Played(model="played", lines=list(lines) or ["I shall check."])

    async def talk() -> Any:
        running = runner(played, kind, path, careful=scene.startswith("confirm"))
        try:
            return await say(running, scene, "what came of it?")  # a charge would end this process
        finally:
            await running.session_service.close()

    events = asyncio.run(talk())
    given = [response.id for event in events for response in event.get_function_responses()]
    return played.seen[0], given


@pytest.mark.parametrize(
    ("kind", "scene", "answers"),
    [
        ("v1", "single", {"charge_1": UNKNOWN}),
        ("v1", "sibling", PRICE | {"look_4": UNKNOWN, "charge_1": UNKNOWN}),
        ("sqlite", "sibling", PRICE | {"look_4": UNKNOWN, "charge_1": UNKNOWN}),
        ("v1", "resumed", PRICE | {"look_4": UNKNOWN, "charge_1": UNKNOWN}),
        ("v1", "confirmed", {"charge_1": UNKNOWN}),
        ("sqlite", "confirmed", {"charge_1": UNKNOWN}),
    ],
)
def test_the_model_reads_the_truth_and_nothing_runs_again(tmp_path: Path, kind: str, scene: str, answers: Any) -> None:
    copy = repaired(taken(kind, scene, tmp_path), tmp_path / "copy.db")
    seen, given = gone_on(copy, kind, scene)
    assert responses(seen) == answers
    assert given == []
    assert seen[-1].parts[0].text == "what came of it?"
    assert diagnosis_of(copy).verdict == "clean"


@pytest.mark.parametrize("kind", ["v1", "sqlite"])
def test_what_is_not_repaired_is_hidden_from_the_model(tmp_path: Path, kind: str) -> None:
    path = taken(kind, "sibling", tmp_path)
    seen, _ = gone_on(path, kind, "sibling")
    assert responses(seen) == PRICE
    assert [call.id for call in diagnosis_of(path).open] == ["look_4", "charge_1"]


def test_a_call_that_waits_is_left_to_the_person_it_waits_for(tmp_path: Path) -> None:
    copy = repaired(taken("v1", "confirming", tmp_path), tmp_path / "copy.db")
    gone_on(copy, "v1", "confirming")
    assert diagnosis_of(copy).verdict == "waiting"


def test_the_copy_is_what_adk_loads_and_lets_go_on(tmp_path: Path) -> None:
    copy = repaired(taken("v1", "sibling", tmp_path), tmp_path / "copy.db")

    async def loaded() -> Any:
        stored = service("v1", copy)
        try:
            return await stored.get_session(app_name=APP, user_id=USER, session_id="sibling")
        finally:
            await stored.close()

    session = asyncio.run(loaded())
    made = session.events[-1]
    assert (made.author, made.custom_metadata) == ("clerk", {"turnwal": True})
    assert session.last_update_time == pytest.approx(made.timestamp, abs=2e-6)


def test_calls_of_one_id_have_each_its_own_response_in_the_copy(tmp_path: Path) -> None:
    copy = repaired(taken("v1", "reused", tmp_path), tmp_path / "copy.db")
    seen, given = gone_on(copy, "v1", "reused")
    told = [part.function_response for content in seen for part in content.parts if part.function_response]
    assert [(each.name, each.response) for each in told] == [("look", {"result": "price: 5"}), ("charge", UNKNOWN)]
    responses(seen)
    assert given == []


@pytest.mark.parametrize("kind", ["v1", "sqlite"])
def test_a_call_whose_id_was_used_again_has_its_response_and_takes_none_away(tmp_path: Path, kind: str) -> None:
    copy = repaired(taken(kind, "again", tmp_path), tmp_path / "copy.db")
    seen, given = gone_on(copy, kind, "again")
    told = [part.function_response for content in seen for part in content.parts if part.function_response]
    assert [(each.name, each.response) for each in told] == [("charge", UNKNOWN), ("look", {"result": "price: 5"})]
    responses(seen)
    assert given == []
