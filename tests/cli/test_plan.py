import json

import pytest

from tests.cli.worlds import World, add_line, chain_anew, holder, run
from turnwal.core.rules import RULES


def test_json_is_the_plan(world: World) -> None:
    world.crashed()

    result = run("plan", "crashed", "--json")
    value = json.loads(result.stdout)

    assert list(value)[:4] == ["session", "interrupted", "repairs", "findings"]
    assert (value["session"], value["interrupted"], value["owner"], value["damage"]) == ("crashed", True, None, None)
    assert [list(repair) for repair in value["repairs"]] == [["run", "type", "data", "rule", "because"]] * 4
    assert value["repairs"][0]["data"]["metadata"]["risk"] == "tool_outcome_unknown"
    assert (value["repairs"][0]["rule"], value["repairs"][0]["because"]) == (1, [4, 7])


def test_the_text_has_class_rule_sentence_seqs_and_advice(world: World) -> None:
    world.crashed()

    text = run("plan", "crashed").stdout

    assert text.splitlines()[0] == "crashed: interrupted; recovery would append 5 events"
    assert "outcome unknown" in text
    assert "check the state first" in text
    assert RULES[0].sentence in text
    assert "safe to make again" in text


def test_strict_calls_unknown_what_is_inferred(world: World) -> None:
    path = world.crashed()
    data = path.read_bytes().replace(b'"dispatch":"durable"', b'"dispatch":"unsaid!"')
    path.write_bytes(data)
    chain_anew(path)

    def risks(*arguments: str) -> list[str]:
        repairs = json.loads(run("plan", "crashed", "--json", *arguments).stdout)["repairs"]
        return [repair["data"]["metadata"]["risk"] for repair in repairs if repair["type"] == "tool_result"]

    assert set(risks("--strict")) == {"tool_outcome_unknown"}


@pytest.mark.parametrize(
    ("maker", "code"), [("clean", 0), ("waiting", 0), ("empty", 0), ("crashed", 3), ("torn", 3), ("damaged", 4)]
)
def test_its_exit_code_says_whether_there_is_something_to_do(world: World, maker: str, code: int) -> None:
    getattr(world, maker)("s")

    assert run("plan", "s").exit_code == code
    assert run("plan", "s", "--json").exit_code == code


def test_it_writes_nothing(world: World) -> None:
    path = world.crashed()
    before = path.read_bytes()

    run("plan", "crashed")

    assert path.read_bytes() == before
    assert not (world.root / "crashed.owner").exists()


def test_a_live_session_is_open_and_not_interrupted(world: World) -> None:
    with holder(world, "held", owner="the night shift"):
        text = run("plan", "held")
        value = json.loads(run("plan", "held", "--json").stdout)

    assert text.exit_code == 5
    assert "open, writer alive (the night shift" in text.stdout
    assert "after a crash at this moment recovery would append 2 events:" in text.stdout
    assert value["interrupted"] is False
    assert value["owner"].startswith("the night shift")
    assert value["repairs"]


def test_a_newer_session_is_an_error_with_its_own_code(world: World) -> None:
    world.too_new()

    result = run("plan", "newer")

    assert result.exit_code == 1
    assert result.stderr.startswith("error too_new: ")


def test_a_torn_tail_alone_is_something_to_cover(world: World) -> None:
    world.torn()

    assert "recovery would append 2 events" in run("plan", "torn").stdout
    assert json.loads(run("plan", "torn", "--json").stdout)["damage"]["kind"] == "torn"


@pytest.mark.parametrize("maker", ["clean", "crashed", "torn", "torn_and_open", "damaged"])
def test_recovery_appends_as_many_events_as_the_plan_says(world: World, maker: str) -> None:
    if maker == "torn_and_open":
        with world.crashed("s").open("ab") as file:
            file.write(b'{"seq":8,"pr')
    else:
        getattr(world, maker)("s")
    planned = json.loads(run("plan", "s", "--json").stdout)["appended"]
    text = run("plan", "s").stdout

    appended = json.loads(run("recover", "s", "--accept-loss", "--json").stdout)["appended"]

    assert planned == len(appended)
    assert ("session_resume" in text) is bool(appended)
    if maker not in ("clean", "damaged"):
        assert f"recovery would append {planned} events" in text


def test_findings_are_told(world: World) -> None:
    path = world.clean()
    add_line(path, "turn_end", {"turn": 9})

    assert json.loads(run("plan", "clean", "--json").stdout)["findings"][0]["code"] == "stray_turn_end"
    assert "finding  stray_turn_end at seq 7: " in run("plan", "clean").stdout
