"""fork, export, import and head: histories that move keep their bytes."""

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

import turnwal
from tests.cli.worlds import World, command, environment, holder, run, shell


def test_head_is_count_and_hash(world: World) -> None:
    world.clean()

    text = run("head", "clean").stdout
    value = json.loads(run("head", "clean", "--json").stdout)

    assert text == value["head"] + "\n" == f"{value['events']}:{value['hash']}\n"
    assert value["state"] == "clean"


@pytest.mark.parametrize(
    ("maker", "code"), [("empty", 0), ("torn", 0), ("damaged", 4), ("too_new", 1), ("damaged_start", 4)]
)
def test_head_says_when_it_is_not_of_a_whole_log(world: World, maker: str, code: int) -> None:
    getattr(world, maker)("s")

    assert run("head", "s").exit_code == code


def test_a_fork_begins_with_the_same_bytes(world: World) -> None:
    path = world.clean(turns=2)

    result = run("fork", "clean", "other", "--at", "7")

    assert result.exit_code == 0
    assert world.path("other").read_bytes().startswith(b"".join(path.read_bytes().splitlines(keepends=True)[:7]))
    assert f"head  {run('head', 'other').stdout.strip()}" in result.stdout
    value = json.loads(run("fork", "clean", "third", "--at", "7", "--json").stdout)
    assert (value["session"], value["parent"], value["at"]) == ("third", "clean", 7)


@pytest.mark.parametrize("at", ["0", "-1", "3", "8", "99"])
def test_a_fork_elsewhere_is_refused(world: World, at: str) -> None:
    world.clean()

    result = run("fork", "clean", "other", "--at", at)

    assert result.exit_code == 1
    assert result.stderr.startswith("error refused: ")
    assert not world.path("other").exists()


def test_a_fork_takes_no_id_that_is_taken(world: World) -> None:
    world.clean()

    assert run("fork", "clean", "clean", "--at", "7").stderr.startswith("error session_exists: ")


def test_a_file_is_forked_into_a_file(world: World, tmp_path: Path) -> None:
    path = world.clean()

    assert run("fork", str(path), str(tmp_path / "copy.jsonl"), "--at", "7").exit_code == 0
    assert run("verify", str(tmp_path / "copy.jsonl")).exit_code == 0


@pytest.mark.parametrize("maker", ["clean", "waiting", "crashed"])
def test_export_and_import_keep_every_byte(world: World, tmp_path: Path, maker: str) -> None:
    getattr(world, maker)("s")
    stored = world.path("s").read_bytes()

    piped = shell("export", "s")
    assert (piped.returncode, piped.stdout, piped.stderr) == (0, stored, b"")
    filed = run("export", "s", "-o", "copy.jsonl", "--json")
    assert (tmp_path / "copy.jsonl").read_bytes() == stored
    assert (tmp_path / "copy.jsonl").stat().st_mode & 0o777 == 0o600
    assert json.loads(filed.stdout)["bytes"] == len(stored)

    for source, name in (("copy.jsonl", "by-file"), ("-", "by-pipe")):
        result = run("import", source, name, stdin=stored)
        assert result.exit_code == 0
        assert world.path(name).read_bytes() == stored
        assert f"head  {run('head', 's').stdout.strip()}" in result.stdout


def test_the_id_comes_from_the_log(world: World, tmp_path: Path) -> None:
    world.clean("a")
    run("fork", "a", "b", "--at", "7")
    run("export", "b", "-o", "copy.jsonl")
    elsewhere = tmp_path / "elsewhere"

    first = run("import", "copy.jsonl", "--store", str(elsewhere), "--json")
    second = run("import", "copy.jsonl", "--store", str(elsewhere))

    assert json.loads(first.stdout)["session"] == "b"
    assert (second.exit_code, second.stderr.split(":")[0]) == (1, "error session_exists")
    assert run("ls", "--store", str(elsewhere)).exit_code == 0


@pytest.mark.parametrize("maker", ["damaged", "damaged_start", "too_new", "empty"])
def test_what_is_no_whole_log_is_not_imported(world: World, maker: str) -> None:
    path = getattr(world, maker)("s")

    for source in (str(path), "-"):
        result = run("import", source, "copy", stdin=path.read_bytes())
        assert result.exit_code == {"damaged": 4, "damaged_start": 4, "too_new": 1, "empty": 1}[maker]
        assert not world.path("copy").exists()


@pytest.mark.parametrize("verb", ["import", "export"])
def test_a_damage_event_stands_in_the_place_of_a_torn_tail(world: World, verb: str) -> None:
    path = world.torn()
    torn = path.read_bytes()

    result = (
        run("import", str(path), "copy") if verb == "import" else run("export", "torn", "-o", str(world.path("copy")))
    )

    assert result.exit_code == 0
    whole, _, tail = torn.rpartition(b"\n")
    copied = world.path("copy").read_bytes()
    assert copied.startswith(whole + b"\n")
    (line,) = copied[len(whole) + 1 :].splitlines()
    assert json.loads(line)["data"]["length"] == len(tail) == 12
    assert run("verify", "copy").exit_code == 0
    assert path.read_bytes() == torn


def test_covered_damage_does_not_stop_a_move(world: World) -> None:
    path = world.torn()
    run("recover", "torn")

    result = run("import", str(path), "copy")

    assert result.exit_code == 0
    assert run("head", "copy").stdout == run("head", "torn").stdout
    assert run("verify", "copy").exit_code == 0


def test_a_session_with_an_owner_is_exported_only_as_a_copy(world: World) -> None:
    with holder(world, "held"):
        refused = run("export", "held", "-o", "no.jsonl")
        copied = run("export", "held", "--copied", "-o", "copy.jsonl")

    assert refused.exit_code == 5
    assert not Path("no.jsonl").exists()
    assert copied.exit_code == 0
    lines = Path("copy.jsonl").read_bytes().splitlines()
    assert json.loads(lines[-1])["type"] == "session_copied"
    assert run("plan", "copy.jsonl").exit_code == 3


@pytest.mark.parametrize("verb", ["import", "fork"])
def test_f38_what_a_full_disk_stops_is_not_there_and_can_be_done_again(world: World, verb: str) -> None:
    path = world.clean(user="x" * 200_000)
    arguments = ["import", str(path), "copy"] if verb == "import" else ["fork", "clean", "copy", "--at", "7"]
    starved = ["/bin/sh", "-c", 'ulimit -f 100 && exec "$@"', "sh", *command(*arguments)]

    full = subprocess.run(starved, capture_output=True, text=True, check=False, env=environment())

    assert full.returncode == 1
    assert full.stderr.startswith("error store_full: ")
    assert "hint: make room and try again" in full.stderr
    assert [path.name for path in world.root.iterdir()] == ["clean.jsonl"]
    assert "copy" not in run("ls").stdout
    assert run(*arguments).exit_code == 0
    assert run("verify", "copy").exit_code == 0


def test_an_import_takes_no_id_of_an_empty_session(world: World) -> None:
    path = world.clean()
    world.empty()

    result = run("import", str(path), "empty")

    assert (result.exit_code, result.stderr.split(":")[0]) == (1, "error session_exists")
    assert "hint: " in result.stderr
    assert world.path("empty").read_bytes() == b""


def test_export_stops_at_damage_and_leaves_no_half_file(world: World) -> None:
    world.damaged()

    result = run("export", "damaged", "-o", "copy.jsonl")

    assert result.exit_code == 4
    assert not Path("copy.jsonl").exists()


def test_export_writes_over_nothing(world: World, tmp_path: Path) -> None:
    world.clean()
    (tmp_path / "mine").write_text("mine")

    result = run("export", "clean", "-o", "mine")

    assert result.exit_code == 1
    assert result.stderr.startswith("error file_exists: mine: ")
    assert "hint: nothing is written over" in result.stderr
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("arguments", [["import", "nofile"], ["export", "clean", "-o", "nowhere/copy"]])
def test_a_path_that_leads_nowhere_is_the_callers_mistake(world: World, arguments: list[str]) -> None:
    world.clean()

    result = run(*arguments)

    assert (result.exit_code, result.stderr.split(":")[0]) == (1, "error file_not_found")
    assert "hint: look at the spelling of the path" in result.stderr


def test_a_full_disk_stops_an_export_and_leaves_nothing(world: World, tmp_path: Path) -> None:
    world.clean(user="x" * 200_000)
    arguments = command("export", "clean", "-o", "copy.jsonl", "--json")
    starved = ["/bin/sh", "-c", 'ulimit -f 100 && exec "$@"', "sh", *arguments]

    full = subprocess.run(starved, capture_output=True, text=True, check=False, env=environment())

    error = json.loads(full.stderr)["error"]
    assert (full.returncode, error["code"], error["retriable"]) == (1, "store_full", True)
    assert error["hint"] == "make room and try again"
    assert [path.name for path in tmp_path.iterdir()] == ["sessions"]


@pytest.mark.parametrize("name", ["../escaped.jsonl", "mail", "{tmp}/escaped.jsonl"])
def test_a_log_does_not_choose_where_it_is_stored(world: World, tmp_path: Path, name: str) -> None:
    id = name.format(tmp=tmp_path)
    world.clean(id)
    run("export", "-o", "mail", "--store", str(world.root), "--", id)
    elsewhere = tmp_path / "elsewhere"

    result = run("import", "mail", env={"TURNWAL_STORE": str(elsewhere)})

    assert result.exit_code == 0
    assert [*turnwal.open_store(elsewhere)] == [id]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "mail", "sessions"]


def test_a_path_that_was_typed_is_where_an_import_goes(world: World, tmp_path: Path) -> None:
    path = world.clean()

    assert run("import", str(path), "typed.jsonl").exit_code == 0
    assert (tmp_path / "typed.jsonl").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(("maker", "left_out", "kept"), [("damaged_start", 1, 6), ("damaged", 1, 7), ("clean", 0, 7)])
def test_what_is_readable_can_be_salvaged(world: World, tmp_path: Path, maker: str, left_out: int, kept: int) -> None:
    path = getattr(world, maker)("s")
    before = path.read_bytes()
    whole = before.splitlines(keepends=True)

    result = run("export", "s", "--salvage", "-o", "readable.jsonl", "--json")

    value = json.loads(result.stdout)
    lines = (tmp_path / "readable.jsonl").read_bytes().splitlines(keepends=True)
    assert (result.exit_code, len(lines), value["events"]) == (4 if left_out else 0, kept, kept)
    assert set(lines) < set(whole) if left_out else lines == whole
    assert value["left_out_bytes"] == len(b"".join(whole)) - len(b"".join(lines))
    assert ("bytes that are no record" in result.stderr) is bool(left_out)
    assert path.read_bytes() == before
    assert run("show", "readable.jsonl").stdout.count(" assistant ") == 1


def test_a_copy_is_salvaged_or_made_to_go_on(world: World) -> None:
    world.clean()

    assert run("export", "clean", "--salvage", "--copied", "-o", "copy").exit_code == 2


def test_an_empty_session_is_not_exported(world: World) -> None:
    world.empty()

    assert run("export", "empty", "-o", "copy").stderr.startswith("error empty_session: ")
    assert not Path("copy").exists()


def test_a_named_pipe_is_imported(world: World, tmp_path: Path) -> None:
    path = world.clean()
    os.mkfifo(tmp_path / "fifo")
    writer = threading.Thread(target=lambda: (tmp_path / "fifo").write_bytes(path.read_bytes()))
    writer.start()

    assert run("import", "fifo", "copy").exit_code == 0
    writer.join()
    assert world.path("copy").read_bytes() == path.read_bytes()
