import json
import os
import re
from pathlib import Path

import pytest

import turnwal
from tests.cli.worlds import World, add_line, chain_anew, holder, rot, run
from turnwal.session.inspection import Glance
from turnwal.session.sessions import Sessions


def states(world: World, *arguments: str) -> dict[str, str]:
    del world
    return {row["session"]: row["state"] for row in json.loads(run("ls", "--json", *arguments).stdout)}


def test_it_names_the_state_of_each_session(world: World) -> None:
    world.clean()
    world.crashed()
    world.waiting()
    world.damaged()
    world.damaged_start()
    world.empty()
    world.too_new()
    world.torn()
    world.clean("held")
    with holder(world, "held"):
        assert states(world) == {
            "clean": "clean",
            "crashed": "interrupted",
            "waiting": "waiting",
            "damaged": "damaged",
            "headless": "damaged",
            "empty": "empty",
            "newer": "too_new",
            "torn": "interrupted",
            "held": "open",
        }


def test_a_first_line_of_a_newer_format_is_too_new_whatever_is_open(world: World) -> None:
    path = world.crashed("s")
    path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":2', 1))
    chain_anew(path)

    assert states(world) == {"s": "too_new"}
    assert run("recover", "s").stderr.startswith("error too_new: ")
    assert run("recover", "--all").exit_code == 1


def test_damage_in_a_turn_that_ended_is_for_others_to_find(world: World) -> None:
    rot(world.clean("s", turns=2), 4)

    assert states(world) == {"s": "clean"}
    assert (run("show", "s").exit_code, run("verify", "s").exit_code) == (4, 4)


def test_each_row_counts_what_is_open(world: World) -> None:
    world.crashed()

    (row,) = json.loads(run("ls", "--json").stdout)

    assert (row["events"], row["open_turns"], row["owed"], row["not_started"], row["unknown"]) == (8, [1], 2, 1, 1)
    assert row["head"].startswith("8:")


def test_the_table_is_aligned_and_says_local_time(world: World) -> None:
    world.crashed()
    world.clean("a-much-longer-name")

    lines = run("ls").stdout.splitlines()

    column = lines[0].index("state")
    assert {line[column:].split()[0] for line in lines[1:]} == {"interrupted", "clean"}
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", lines[1])


@pytest.mark.parametrize(
    ("makers", "arguments", "code"),
    [
        ([], [], 0),
        (["clean", "crashed", "waiting", "empty", "too_new"], [], 0),
        (["clean", "waiting", "empty"], ["--interrupted"], 0),
        (["clean", "crashed"], ["--interrupted"], 3),
        (["torn"], ["--interrupted"], 3),
        (["clean", "damaged"], [], 4),
        (["crashed", "damaged"], ["--interrupted"], 4),
        (["damaged_start"], [], 4),
    ],
)
def test_its_exit_code_says_what_it_found(world: World, makers: list[str], arguments: list[str], code: int) -> None:
    for maker in makers:
        getattr(world, maker)()

    assert run("ls", *arguments).exit_code == code
    assert run("ls", "--json", *arguments).exit_code == code


def test_interrupted_shows_only_what_needs_somebody(world: World) -> None:
    world.clean()
    world.crashed()
    world.damaged()

    assert set(states(world, "--interrupted")) == {"crashed", "damaged"}


def test_interrupted_looks_only_at_what_an_index_names(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.clean()
    world.crashed()
    store = turnwal.open_store(url := f"sqlite:{tmp_path / 'agents.db'}")
    for session in ("clean", "crashed"):
        store.store.put(session, world.path(session).read_bytes().splitlines())
    looked: list[str] = []
    glance = Sessions.glance

    def noting(sessions: Sessions, id: str) -> Glance:
        looked.append(id)
        return glance(sessions, id)

    monkeypatch.setattr(Sessions, "glance", noting)

    result = run("ls", "--interrupted", "--json", "--store", url)
    assert [row["session"] for row in json.loads(result.stdout)] == looked == ["crashed"]
    assert result.exit_code == 3
    store.session("crashed").open().close()
    assert "no session is interrupted" in run("ls", "--interrupted", "--store", url).stderr
    store.store.close()


def test_nothing_to_list_is_said(world: World) -> None:
    assert str(world.root) in run("ls").stderr
    world.clean()
    assert "no session is interrupted" in run("ls", "--interrupted").stderr
    assert json.loads(run("ls", "--interrupted", "--json").stdout) == []


def test_one_bad_session_never_stops_a_listing(world: World) -> None:
    world.clean("a")
    (world.root / "b.jsonl").mkdir()
    world.clean("c").write_bytes(os.urandom(100_000))
    world.clean("d")
    world.clean("e").rename(world.root / "Not Ours.jsonl")

    result = run("ls", "--json")
    rows = {row["session"]: row for row in json.loads(result.stdout)}

    assert rows["a"]["state"] == rows["d"]["state"] == "clean"
    assert rows["b"]["state"] == "unreadable"
    assert rows["c"]["state"] == "damaged"
    assert rows["sessions/Not Ours.jsonl"]["state"] == "clean"
    assert result.exit_code == 4


def test_a_file_without_an_id_is_reached_by_the_name_in_the_list(world: World) -> None:
    world.clean("e").rename(world.root / "Not Ours.jsonl")

    assert run("verify", "sessions/Not Ours.jsonl").exit_code == 0


def test_a_session_that_cannot_be_read_is_an_error_but_no_damage(world: World) -> None:
    world.clean("a")
    (world.root / "b.jsonl").mkdir()

    assert run("ls").exit_code == 1


@pytest.mark.parametrize("data", ['{"parts":7}', '{"parts":[7]}', '{"call":[],"parts":{}}', '{"waiting":7,"open":"x"}'])
@pytest.mark.parametrize("type", ["assistant_message", "tool_result", "tool_call", "turn_start", "damage"])
def test_lines_that_no_writer_makes_stop_no_listing(world: World, type: str, data: str) -> None:
    path = world.clean("a")
    add_line(path, type, json.loads(data))
    world.clean("b")

    rows = json.loads(run("ls", "--json").stdout)

    assert [row["session"] for row in rows] == ["a", "b"]
