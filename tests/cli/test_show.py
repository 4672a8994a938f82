import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cli.worlds import World, add_line, asking, command, cut_off, environment, holder, rot, run, shell, tell


def lines_of(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("show", "--json", *arguments).stdout.splitlines()]


def test_each_event_is_a_line_with_seq_offset_word_and_text(world: World) -> None:
    world.crashed()

    lines = run("show", "crashed").stdout.splitlines()

    assert lines[0] == "crashed: interrupted"
    assert lines[1].startswith("8 events, last at ")
    assert lines[2].split()[:3] == ["0", "+0.000s", "session"]
    assert "user               Refund order 7" in lines[4]
    assert '[4.1 refund {"order":7}]' in lines[6]
    assert "dispatch           4.0 policy {}" in lines[7]
    assert "result             4.0 policy a policy" in lines[8]


def test_the_crash_and_every_owed_call_are_visible(world: World) -> None:
    world.crashed()

    block = run("show", "crashed").stdout.split("--- interrupted here: what recovery would append ---")[1]

    assert "4.1   refund  outcome unknown              1  4, 7" in block
    assert "The call was dispatched, or may have been the one that was." in block
    assert "4.2   mail    did not start (declared)     4  1, 4" in block
    assert "the step that began at seq 3 ends, interrupted" in block
    assert "the turn that began at seq 1 ends, interrupted" in block


def test_nothing_is_called_interrupted_while_the_owner_is_alive(world: World) -> None:
    with holder(world, "held"):
        result = run("show", "held")

    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].startswith("held: open, writer alive (the night shift (pid ")
    assert "interrupted" not in result.stdout


def test_it_reads_on_past_damage_and_marks_it_in_its_place(world: World) -> None:
    world.damaged()

    result = run("show", "damaged")
    lines = result.stdout.splitlines()

    assert result.exit_code == 4
    mark = next(index for index, line in enumerate(lines) if "!!!  damage" in line)
    assert lines[mark - 1].split()[0] == "1"
    assert "line 3, offset" in lines[mark]
    assert "4 readable records follow" in lines[mark]
    assert lines[mark + 1].split()[0] == "3"
    assert "not linked" in lines[mark + 1]
    assert "accept-loss" in result.stdout


def test_damage_in_a_turn_that_ended_is_damage_too(world: World) -> None:
    rot(world.clean("s", turns=2), 4)

    result = run("show", "s")

    assert result.exit_code == 4
    assert "!!!  damage" in result.stdout
    assert "interrupted" not in result.stdout
    assert run("show", "s", "--json").exit_code == 4


def test_f22_behind_an_unreadable_first_line_everything_readable_is_shown(world: World) -> None:
    path = world.damaged_start("s")
    before = path.read_bytes()

    result = run("show", "s")
    lines = lines_of("s")

    assert (result.exit_code, result.stderr) == (4, "")
    assert "line 1, offset 0: the first line begins with NUL bytes" in result.stdout
    assert "6 readable records behind it" in result.stdout
    assert result.stdout.count("not linked") == 6
    assert "an answer" in result.stdout
    assert "would append" not in result.stdout
    assert [line["kind"] for line in lines] == ["session", "damage", *["event"] * 6]
    assert path.read_bytes() == before
    assert "hint: `turnwal show` looks" in run("head", "s").stderr


def test_a_torn_tail_is_told_and_is_no_corruption(world: World) -> None:
    world.torn()

    result = run("show", "torn")

    assert "12 bytes that are no record (torn)" in result.stdout
    assert "interrupted here" in result.stdout
    assert result.exit_code == 0


def test_since_and_run_choose_the_events(world: World) -> None:
    with world.sessions.session("family") as session, session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant({"parts": [asking("delegate")]})
        call.dispatch()
        with call.sub("helper", user="look") as inner, inner.step() as inside:
            inside.assistant({"parts": [{"type": "text", "content": "found"}]})
        call.result("done")

    kinds = [line for line in lines_of("family", "--run", "4.0") if line["kind"] == "event"]
    assert {line["event"]["run"] for line in kinds} == {"4.0"}
    assert next(line["event"]["seq"] for line in lines_of("family", "--since", "12") if line["kind"] == "event") == 12
    text = run("show", "family").stdout
    assert "user       4.0     look" in text
    assert "dispatch           4.0 delegate {}" in text


def test_json_is_one_object_a_line(world: World) -> None:
    path = world.crashed()

    lines = lines_of("crashed")

    assert [line["kind"] for line in lines] == ["session", *["event"] * 8, *["repair"] * 4]
    stored = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [line["event"] for line in lines if line["kind"] == "event"] == stored
    assert all(line["sound"] for line in lines if line["kind"] == "event")


def test_json_marks_what_stands_behind_damage(world: World) -> None:
    world.damaged()

    lines = lines_of("damaged")

    assert [line["kind"] for line in lines[:5]] == ["session", "event", "event", "damage", "event"]
    assert lines[3]["damage"]["readable_behind"] == 4
    assert lines[4]["sound"] is False


def test_a_newer_session_is_shown_with_a_warning(world: World) -> None:
    world.too_new()

    result = run("show", "newer")

    assert result.exit_code == 1
    assert "too_new" in result.stdout.splitlines()[0]
    assert "session_merge" in result.stdout
    assert "what recovery would append" not in result.stdout


def test_an_empty_session_is_no_damaged_one(world: World) -> None:
    world.empty()

    assert run("show", "empty").exit_code == 0
    assert run("show", "empty").stdout.startswith("empty: empty")


def test_a_child_session_is_named(world: World) -> None:
    with world.sessions.session("parent") as session, session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant({"parts": [asking("delegate")]})
        with call.child(world.sessions, "child-7"):
            pass
        kept = len(session)
    cut_off(world.path("parent"), kept)

    assert "call 4.0 had the session child-7; it is recovered on its own" in run("show", "parent").stdout
    assert "child session child-7" in run("show", "parent").stdout


def test_a_plain_file_is_shown_by_its_path(world: World) -> None:
    path = world.crashed()

    assert run("show", str(path)).stdout.splitlines()[0] == f"{path}: interrupted"
    path.rename(path.with_name("renamed.log"))
    assert run("show", str(path.with_name("renamed.log"))).exit_code == 0


def test_pipes_get_whole_texts(world: World) -> None:
    world.clean(user="w" * 5_000)

    assert "w" * 5_000 in shell("show", "clean").stdout.decode()


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_follow_prints_events_as_a_live_writer_makes_them(world: World, form: list[str]) -> None:
    with (
        holder(world, "held") as writer,
        subprocess.Popen(
            command("show", "held", "--follow", *form),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        ) as follower,
    ):
        assert follower.stdout is not None
        watchdog = threading.Timer(20, follower.kill)
        watchdog.start()
        seen: list[str] = []
        for text in ("first", "second", "third"):
            tell(writer, text)
            while text not in "".join(seen):
                line = follower.stdout.readline().decode()
                assert line
                seen.append(line)
        follower.send_signal(signal.SIGINT)
        rest, errors = follower.communicate(timeout=20)
        watchdog.cancel()

    assert follower.returncode == 0
    assert errors == b""
    whole = "".join(seen) + rest.decode()
    assert [whole.count(text) for text in ("first", "second", "third")] == [1, 1, 1]
    assert "interrupted" not in whole


def test_follow_goes_on_over_a_change_of_owner_and_a_torn_tail(world: World) -> None:
    world.crashed("s")
    with subprocess.Popen(
        command("show", "s", "--follow", "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as follower:
        assert follower.stdout is not None
        watchdog = threading.Timer(20, follower.kill)
        watchdog.start()
        for _ in range(9):
            follower.stdout.readline()
        with world.path("s").open("ab") as file:
            file.write(b'{"seq":8,"pr')
        gap = json.loads(follower.stdout.readline())
        run("recover", "s")
        events = [json.loads(follower.stdout.readline())["event"] for _ in range(6)]
        follower.send_signal(signal.SIGINT)
        _, errors = follower.communicate(timeout=20)
        watchdog.cancel()

    assert gap["kind"] == "damage"
    assert [event["type"] for event in events][:3] == ["damage", "session_resume", "tool_result"]
    assert (follower.returncode, errors) == (0, b"")


@pytest.mark.parametrize("first", [False, True], ids=["a gap", "no first line"])
def test_follow_goes_on_behind_a_gap(world: World, first: bool) -> None:
    path = world.clean("s", turns=2)
    rot(path, 0 if first else 4)
    shown = 12
    with following("s") as follower:
        seen = [json.loads(next(follower)) for _ in range(shown + 2)]
        assert [line["kind"] for line in seen].count("damage") == 1
        for text in ("one", "two"):
            add_line(path, "x.note", {"text": text})
            line = json.loads(next(follower))
            assert (line["event"]["data"], line["sound"]) == ({"text": text}, False)
        with path.open("ab") as file:
            file.write(b'{"seq":15,"pr')
        assert json.loads(next(follower))["damage"]["kind"] == "torn"


def test_follow_says_what_the_chain_vouches_for_once_a_loss_is_accepted(world: World) -> None:
    world.damaged("s")
    with following("s") as follower:
        seen = [json.loads(next(follower)) for _ in range(9)]
        assert [line["kind"] for line in seen].count("damage") == 1
        run("recover", "s", "--accept-loss")
        (damage, *rest) = [json.loads(next(follower)) for _ in range(3)]
        assert damage["event"]["data"]["kind"] == "lost"
        assert all(line["sound"] for line in (damage, *rest))


@contextmanager
def following(session: str) -> Iterator[Iterator[bytes]]:
    """The lines that `show --follow --json` prints, as they come."""
    with subprocess.Popen(
        command("show", session, "--follow", "--json"), stdout=subprocess.PIPE, env=environment()
    ) as follower:
        assert follower.stdout is not None
        watchdog = threading.Timer(20, follower.kill)
        watchdog.start()
        try:
            yield iter(follower.stdout.readline, b"")
            follower.send_signal(signal.SIGINT)
            assert follower.stdout.read() == b""
            assert follower.wait(timeout=20) == 0
        finally:
            watchdog.cancel()
            follower.kill()


def test_following_an_empty_session_waits_for_its_beginning(world: World) -> None:
    world.empty("s")
    with subprocess.Popen(
        command("show", "s", "--follow", "--json"), stdout=subprocess.PIPE, env=environment()
    ) as follower:
        assert follower.stdout is not None
        watchdog = threading.Timer(20, follower.kill)
        watchdog.start()
        follower.stdout.readline()
        with world.sessions.session("s"):
            pass
        assert json.loads(follower.stdout.readline())["event"]["type"] == "session_start"
        os.kill(follower.pid, signal.SIGINT)
        assert follower.wait(timeout=20) == 0
        watchdog.cancel()
