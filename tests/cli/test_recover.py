import json
import subprocess

import pytest

from tests.cli.worlds import World, command, environment, holder, run


def test_it_appends_once_and_then_finds_nothing_to_do(world: World) -> None:
    path = world.crashed()
    before = path.read_bytes()

    first = run("recover", "crashed")
    after = path.read_bytes()
    second = run("recover", "crashed")

    assert first.exit_code == second.exit_code == 0
    assert after.startswith(before)
    assert "crashed: recovered; appended seq 8 to 12" in first.stdout
    assert "outcome unknown" in first.stdout
    assert second.stdout == "crashed: nothing to do\n"
    assert path.read_bytes() == after
    assert run("plan", "crashed").exit_code == 0


def test_json_says_what_was_appended(world: World) -> None:
    path = world.crashed()

    value = json.loads(run("recover", "crashed", "--json").stdout)

    stored = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert value["recovered"] is True
    assert value["appended"] == stored[8:]
    assert [repair["type"] for repair in value["repairs"]] == ["tool_result", "tool_result", "step_end", "turn_end"]
    assert value["head"] == run("head", "crashed").stdout.strip()
    again = json.loads(run("recover", "crashed", "--json").stdout)
    assert (again["recovered"], again["appended"], again["repairs"]) == (False, [], [])


def test_a_torn_tail_is_covered(world: World) -> None:
    path = world.torn()
    before = path.read_bytes()

    result = run("recover", "torn")

    assert "damage  12 bytes that are no record, torn, behind seq 6" in result.stdout
    assert path.read_bytes().startswith(before)
    assert run("verify", "torn").exit_code == 0


@pytest.mark.parametrize("maker", ["clean", "waiting", "empty"])
def test_what_needs_nothing_is_not_written_to(world: World, maker: str) -> None:
    getattr(world, maker)("s")
    before = world.path("s").read_bytes()

    result = run("recover", "s")

    assert (result.exit_code, result.stdout) == (0, "s: nothing to do\n")
    assert world.path("s").read_bytes() == before


def test_damage_is_refused_until_the_loss_is_accepted(world: World) -> None:
    path = world.damaged()
    before = path.read_bytes()

    refused = run("recover", "damaged")

    assert refused.exit_code == 4
    assert refused.stderr.startswith("error damaged: ")
    assert "line 3" in refused.stderr
    assert "4 readable records follow" in refused.stderr
    assert "--accept-loss" in refused.stderr
    assert path.read_bytes() == before

    accepted = run("recover", "damaged", "--accept-loss")

    assert accepted.exit_code == 0
    assert "lost" in accepted.stdout
    assert path.read_bytes().startswith(before)
    assert run("verify", "damaged").exit_code == 0
    assert run("ls").exit_code == 0


def test_accepting_a_loss_that_is_none_changes_nothing(world: World) -> None:
    path = world.clean()
    before = path.read_bytes()

    assert run("recover", "clean", "--accept-loss").exit_code == 0
    assert path.read_bytes() == before


def test_a_live_owner_is_left_alone(world: World) -> None:
    with holder(world, "held"):
        before = world.path("held").read_bytes()
        result = run("recover", "held")

        assert result.exit_code == 5
        assert result.stderr.startswith("error session_held: ")
        assert "the night shift" in result.stderr
        assert world.path("held").read_bytes() == before


def test_wait_waits_for_the_owner_to_go(world: World) -> None:
    with (
        holder(world, "held") as owner,
        subprocess.Popen(
            command("recover", "held", "--wait", "20", "--json"), stdout=subprocess.PIPE, env=environment()
        ) as waiting,
    ):
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(timeout=1)
        owner.kill()
        output, _ = waiting.communicate(timeout=20)

    assert waiting.returncode == 0
    assert json.loads(output)["recovered"] is True


def test_of_two_that_recover_together_one_does_it(world: World) -> None:
    world.crashed()
    processes = [
        subprocess.Popen(
            command("recover", "crashed", "--wait", "20", "--json"), stdout=subprocess.PIPE, env=environment()
        )
        for _ in range(4)
    ]
    values = [json.loads(process.communicate(timeout=30)[0]) for process in processes]

    assert sorted(value["recovered"] for value in values) == [False, False, False, True]


@pytest.mark.parametrize("maker", ["too_new", "damaged_start"])
def test_what_must_not_be_written_to_is_not(world: World, maker: str) -> None:
    path = getattr(world, maker)("s")
    before = path.read_bytes()

    result = run("recover", "s", "--accept-loss")

    assert result.exit_code == {"too_new": 1, "damaged_start": 4}[maker]
    assert result.stderr.startswith(f"error {maker}: ")
    assert path.read_bytes() == before


def test_all_goes_on_past_bad_and_held_sessions(world: World) -> None:
    for name in ("a", "z"):
        world.crashed(name)
    world.damaged("b")
    world.damaged_start("c")
    world.too_new("d")
    world.clean("e")
    with holder(world, "held"):
        result = run("recover", "--all")

    assert result.exit_code == 4
    assert "a: recovered" in result.stdout
    assert "z: recovered" in result.stdout
    assert "e: " not in result.stdout
    assert "held: skipped, owner alive (the night shift (pid " in result.stdout
    codes = [line.split(":")[0] for line in result.stderr.splitlines() if line.startswith("error ")]
    assert sorted(codes) == ["error damaged", "error damaged_start", "error too_new"]


@pytest.mark.parametrize(("makers", "code"), [(["clean", "crashed"], 0), (["too_new", "crashed"], 1), ([], 0)])
def test_all_exits_with_the_worst_it_met(world: World, makers: list[str], code: int) -> None:
    for maker in makers:
        getattr(world, maker)()

    assert run("recover", "--all").exit_code == code


def test_all_exits_5_when_the_worst_is_a_live_owner(world: World) -> None:
    world.too_new()
    with holder(world, "held"):
        assert run("recover", "--all").exit_code == 5


def test_all_says_when_there_is_nothing_to_do(world: World) -> None:
    world.clean()

    assert run("recover", "--all").stdout == "nothing to do\n"
    report = json.loads(run("recover", "--all", "--json").stdout)
    assert (report["sessions"], report["looked_at"], report["nothing_to_do"]) == ([], 1, 1)


def test_one_session_or_all_has_to_be_said(world: World) -> None:
    world.clean()

    assert run("recover").exit_code == 2
    assert run("recover", "clean", "--all").exit_code == 2


def test_a_session_that_is_not_there_is_not_made(world: World) -> None:
    world.clean()

    result = run("recover", "nobody")

    assert result.exit_code == 1
    assert result.stderr.startswith("error session_not_found: ")
    assert not world.path("nobody").exists()
