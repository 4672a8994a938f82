import json
from pathlib import Path

import pytest

from tests.cli.worlds import World, add_line, asking, holder, rot, run


@pytest.mark.parametrize(
    ("maker", "code"),
    [
        ("clean", 0),
        ("waiting", 0),
        ("crashed", 0),
        ("empty", 0),
        ("torn", 4),
        ("damaged", 4),
        ("damaged_start", 4),
        ("too_new", 1),
    ],
)
def test_its_exit_code_says_whether_the_log_is_whole(world: World, maker: str, code: int) -> None:
    getattr(world, maker)("s")

    assert run("verify", "s").exit_code == code
    assert run("verify", "s", "--json").exit_code == code


def test_a_session_that_is_not_there_is_told_with_where_to_look(world: World) -> None:
    world.clean()

    for verb in ("verify", "head", "show", "recover"):
        result = run(verb, "absent")
        assert result.exit_code == 1
        assert result.stderr.startswith("error session_not_found: ")
        assert "hint: `turnwal ls`" in result.stderr


def test_count_and_head_are_printed(world: World) -> None:
    world.clean()

    lines = run("verify", "clean").stdout.splitlines()

    assert lines[:2] == ["clean: 7 events", f"head  {run('head', 'clean').stdout.strip()}"]


def test_a_log_is_called_intact_only_where_a_head_from_elsewhere_names_its_end(world: World) -> None:
    world.clean()
    early = run("head", "clean").stdout.strip()
    assert "sound; the tail is not verifiable" in run("verify", "clean").stdout
    assert json.loads(run("verify", "clean", "--json").stdout)["verdict"] == "tail_not_verifiable"
    assert run("verify", "clean", "--expect", early).stdout.splitlines()[-1].startswith("intact")
    world.clean(turns=2)

    behind = run("verify", "clean", "--expect", early).stdout

    assert "intact" not in behind
    assert "nothing is missing up to the head that was kept at 7 events" in " ".join(behind.split())


def test_a_head_is_saved_to_a_file_and_expected_from_it(world: World, tmp_path: Path) -> None:
    path = world.clean(turns=2)
    kept = tmp_path / "kept head"
    assert run("head", "clean", "--save", str(kept)).exit_code == 0
    plain = tmp_path / "plain"
    plain.write_text(run("head", "clean").stdout)
    for file in (kept, plain):
        assert run("verify", "clean", "--expect", str(file)).stdout.splitlines()[-1].startswith("intact")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:7]))
    before = kept.read_bytes()

    assert run("verify", "clean", "--expect", str(kept)).exit_code == 4
    refused = run("head", "clean", "--save", str(kept))

    assert refused.exit_code == 1
    assert refused.stderr.startswith("error refused: save the head in ")
    assert kept.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.endswith(".new")] == []


def test_interrupted_work_is_said_to_be_no_damage(world: World) -> None:
    world.crashed()

    text = run("verify", "crashed").stdout

    assert "interrupted work: the turn that began at seq 1 is open; that is no damage" in text
    assert "sound; the tail is not verifiable" in text


def test_an_expected_head_may_be_an_earlier_one(world: World) -> None:
    world.clean()
    early = run("head", "clean").stdout.strip()
    world.clean(turns=3)

    assert run("verify", "clean", "--expect", early).exit_code == 0
    assert json.loads(run("verify", "clean", "--expect", early, "--json").stdout)["expected"] is True
    assert json.loads(run("verify", "clean", "--json").stdout)["expected"] is None


@pytest.mark.parametrize("change", ["cut", "other"])
def test_another_history_is_not_the_expected_one(world: World, change: str) -> None:
    path = world.clean(turns=2)
    head = run("head", "clean").stdout.strip()
    if change == "cut":
        path.write_bytes(b"".join(line + b"\n" for line in path.read_bytes().splitlines()[:7]))
    else:
        path.unlink()
        world.clean(turns=2)

    result = run("verify", "clean", "--expect", head)
    value = run("verify", "clean", "--expect", head, "--json")

    assert result.exit_code == value.exit_code == 4
    assert result.stderr.startswith("error head_mismatch: verify clean: ")
    assert json.loads(value.stdout)["expected"] is False
    assert json.loads(value.stderr)["error"]["code"] == "head_mismatch"


@pytest.mark.parametrize("text", ["", "7", "7:abc", "-1:" + "0" * 64, "7:" + "G" * 64, "x:" + "0" * 64])
def test_what_is_no_head_is_a_usage_error(world: World, text: str) -> None:
    world.clean()

    assert run("verify", "clean", "--expect", text).exit_code == 2


def test_every_changed_byte_is_found(world: World) -> None:
    path = world.clean()
    head = run("head", "clean").stdout.strip()
    good = path.read_bytes()

    for at in range(0, len(good), 7):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        assert run("verify", "clean", "--expect", head).exit_code in (1, 4), at


def test_damage_is_placed(world: World) -> None:
    world.damaged()

    damage = json.loads(run("verify", "damaged", "--json").stdout)["damage"]

    assert (damage["line"], damage["after"], damage["readable_behind"]) == (3, 1, 4)
    assert "line 3, offset" in run("verify", "damaged").stdout


def test_f12_behind_damage_no_turn_is_called_open_that_has_ended(world: World) -> None:
    path = world.clean("s", turns=2)
    rot(path, 4)

    text = run("verify", "s")
    value = json.loads(run("verify", "s", "--json").stdout)

    assert text.exit_code == 4
    assert "interrupted work" not in text.stdout
    assert (value["interrupted"], value["open_turns"]) == (False, [])


def test_f12_behind_damage_the_turn_that_is_open_is_named(world: World) -> None:
    world.clean("s", turns=1)
    path = world.crashed("s")
    rot(path, 4)

    value = json.loads(run("verify", "s", "--json").stdout)

    assert (value["interrupted"], value["open_turns"]) == (
        True,
        json.loads(run("ls", "--json").stdout)[0]["open_turns"],
    )
    assert value["open_turns"] > [6]


def test_f12_nothing_is_said_of_open_work_that_damage_hides(world: World) -> None:
    world.damaged("s")

    text = run("verify", "s").stdout
    value = json.loads(run("verify", "s", "--json").stdout)

    assert (value["interrupted"], value["open_turns"]) == (None, None)
    assert "interrupted work" not in text
    assert "what is open at the end cannot be said" in text


def test_f12_a_call_that_may_be_answered_behind_damage_is_no_finding(world: World) -> None:
    path = world.clean("s")
    add_line(path, "assistant_message", {"parts": [asking("mail")]})
    add_line(path, "x.note", {})
    add_line(path, "tool_result", {"call": "7.0", "id": "id of mail", "name": "mail", "parts": []})
    assert json.loads(run("verify", "s", "--json").stdout)["findings"] == []
    rot(path, 8)

    assert json.loads(run("verify", "s", "--json").stdout)["findings"] == []
    assert "finding" not in run("show", "s").stdout


def test_a_torn_tail_lost_nothing_acknowledged(world: World) -> None:
    world.torn()

    assert "nothing acknowledged was lost there" in run("verify", "torn").stdout


def test_a_live_session_is_verified_as_far_as_it_goes(world: World) -> None:
    with holder(world, "held"):
        result = run("verify", "held")

    assert result.exit_code == 0
    assert "open, writer alive (the night shift" in result.stdout
    assert "interrupted" not in result.stdout
