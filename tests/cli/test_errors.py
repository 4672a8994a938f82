"""Exit codes, pipes and bad input: an error is a code, a sentence and a hint, never a traceback."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.worlds import World, command, environment, holder, run, shell
from turnwal.cli import exits
from turnwal.core import errors


@pytest.mark.parametrize(
    ("store", "code"),
    [
        ("sqllite:x", "invalid_store_url"),
        ("memry:", "invalid_store_url"),
        ("file:", "invalid_store_url"),
        (" ", "invalid_store_url"),
    ],
)
def test_a_mistyped_store_is_named(world: World, store: str, code: str) -> None:
    world.clean()

    for verb in (["ls"], ["show", "clean"], ["recover", "--all"]):
        result = run(*verb, "--store", store)
        assert (result.exit_code, result.stderr.split(":")[0]) == (1, f"error {code}")
        assert "hint: " in result.stderr


@pytest.mark.parametrize("url", ["sesions/", "file:sesions", "sqlite:sesions.db"])
def test_a_store_that_is_named_and_not_there_is_no_empty_one(world: World, tmp_path: Path, url: str) -> None:
    path = world.clean()

    for verb in (["ls"], ["ls", "--interrupted"], ["show", "clean"], ["recover", "clean"], ["recover", "--all"]):
        result = run(*verb, "--store", url)
        assert (result.exit_code, result.stderr.split(":")[0], result.stdout) == (1, "error store_not_found", "")
        assert "hint: look at the spelling" in result.stderr
    assert [found.name for found in tmp_path.iterdir()] == ["sessions"]
    assert run("import", str(path), "--store", url).exit_code == 0
    assert run("recover", "--all", "--store", url).stdout == "nothing to do\n"


def test_a_store_that_will_be_may_be_absent_and_is_told_of(world: World) -> None:
    result = run("recover", "--all")

    assert (result.exit_code, result.stdout) == (0, "nothing to do\n")
    assert result.stderr == f"there is no store at {world.root} yet\n"
    assert run("recover", "--all", "--json").stderr == ""


def test_an_empty_store_is_not_the_default_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNWAL_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    path = World(tmp_path / ".turnwal").crashed()
    before = path.read_bytes()

    for verb in (["ls"], ["recover", "--all"], ["show", "crashed"], ["migrate"]):
        result = run(*verb, "--store", "")
        assert (result.exit_code, result.stderr.split(":")[0]) == (1, "error invalid_store_url")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("verb", "waits"), [(["recover", "held"], True), (["settle", "held", "4.0", "happened"], False)]
)
def test_the_hint_of_a_held_session_names_the_option_that_there_is(world: World, verb: list[str], waits: bool) -> None:
    with holder(world, "held"):
        result = run(*verb)

    assert result.exit_code == 5
    assert ("hint: wait for it to end, or say --wait S; " in result.stderr) is waits
    assert ("hint: wait for it to end; " in result.stderr) is not waits


@pytest.mark.usefixtures("world")
def test_a_store_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    assert run("ls", "--store", "file").stderr.startswith("error invalid_store_url: ")
    assert run("show", "s", "--store", "file/below").exit_code == 1


def test_a_directory_that_may_not_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    verbs = (["ls"], ["show", "clean"], ["recover", "--all"])
    with tempfile.TemporaryDirectory() as parent, nobody_above(Path(parent)) as no_root:
        world = World(Path(parent, "sessions"))
        world.clean()
        monkeypatch.setenv("TURNWAL_STORE", str(world.root))
        no_root(world.root)
        # read once as whoever it is, so that it is the mode that refuses the second time
        assert {run(*verb).exit_code for verb in verbs} == {0}
        world.root.chmod(0)
        try:
            results = [run(*verb) for verb in verbs]
        finally:
            world.root.chmod(0o700)

    assert {result.exit_code for result in results} == {1}
    assert {result.stderr.split(":")[0] for result in results} == {"error store_failed"}


@contextmanager
def nobody_above(parent: Path) -> Iterator[Callable[[Path], None]]:
    """Root may read everything: give what is below a directory to another user, and be that one until the end."""
    if os.geteuid() != 0:
        yield lambda _: None
        return

    def step_down(root: Path) -> None:
        for path in (parent, root, *root.iterdir()):
            os.chown(path, _NOBODY, -1)
        os.seteuid(_NOBODY)

    try:
        yield step_down
    finally:
        os.seteuid(0)


_NOBODY = 65_534


@pytest.mark.parametrize("verb", ["show", "plan", "verify", "head", "recover", "export"])
def test_a_file_that_is_a_directory_is_an_error(world: World, tmp_path: Path, verb: str) -> None:
    (tmp_path / "dir.jsonl").mkdir()
    (world.root / "inside.jsonl").mkdir(parents=True)

    for name in ("dir.jsonl", "inside"):
        result = run(verb, name)
        assert (result.exit_code, result.stderr.split(":")[0]) == (1, "error store_unsupported")
    assert run("import", "dir.jsonl").exit_code == 1


ODD = [
    "/",
    "..",
    "../x",
    "a/b",
    "\0",
    "a\0b",
    "🙂",
    "x" * 300,
    "x" * 2_000,
    ".",
    "-",
    "~",
    "%",
    "CON",
    "a.b",
    "\udcff",
    " ",
    "é",
]


@pytest.mark.parametrize("id", ODD)
def test_odd_ids_are_ids(world: World, tmp_path: Path, id: str) -> None:
    world.clean(id)

    assert run("verify", "--", id).exit_code == 0
    assert run("show", "--", id).exit_code == 0
    assert run("recover", "--", id).exit_code == 0
    assert [row["session"] for row in json.loads(run("ls", "--json").stdout)] == [id]
    assert run("ls").exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["sessions"]


@pytest.mark.parametrize("id", ["", "x" * 2_001, "\0.jsonl", "x" * 300 + ".jsonl", "\ud83d\ude42"])
def test_what_can_be_no_id_and_no_path_is_refused(world: World, id: str) -> None:
    world.clean()

    for verb in ("show", "plan", "verify", "head", "recover", "export"):
        result = run(verb, id)
        assert result.exit_code == 1
        assert "unexpected" not in result.stderr


def test_a_store_that_was_named_makes_the_argument_an_id(world: World, tmp_path: Path) -> None:
    world.clean("x.jsonl")
    (tmp_path / "x.jsonl").write_bytes(world.clean("other").read_bytes())

    by_path = json.loads(run("show", "x.jsonl", "--json").stdout.splitlines()[1])["event"]["data"]["id"]
    by_id = json.loads(run("show", "x.jsonl", "--store", str(world.root), "--json").stdout.splitlines()[1])["event"]

    assert (by_path, by_id["data"]["id"]) == ("other", "x.jsonl")


def test_the_default_store_is_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNWAL_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    World(tmp_path / ".turnwal").clean()

    assert "clean" in run("ls").stdout


def test_json_errors_have_every_field(world: World) -> None:
    world.clean()
    with holder(world, "held"):
        held = json.loads(run("recover", "held", "--json").stderr)["error"]
    missing = json.loads(run("show", "nobody", "--json").stderr)["error"]
    usage = run("show", "--json")

    fields = ["code", "action", "subject", "message", "hint", "retriable"]
    assert list(missing) == fields
    assert [held["code"], held["retriable"]] == ["session_held", True]
    assert held["holder"].startswith("the night shift")
    assert list(json.loads(usage.stderr)["error"]) == fields
    assert (usage.exit_code, usage.stdout) == (2, "")


def test_every_error_has_an_exit_code() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.TurnwalError)]

    codes = {kind.code: exits.exit_code(kind("why")) for kind in kinds}

    assert {code for code, exit in codes.items() if exit == 4} == {"damaged", "damaged_start", "head_mismatch"}
    assert {code for code, exit in codes.items() if exit == 5} == {"session_held"}
    assert {code for code, exit in codes.items() if exit == 3} == {"interrupted"}
    assert set(codes.values()) == {1, 3, 4, 5}


@pytest.mark.parametrize(
    "arguments", [["nope"], ["show"], ["ls", "extra"], ["show", "--since", "x", "s"], ["fork", "a", "b"]]
)
def test_usage_errors_point_to_the_help(world: World, arguments: list[str]) -> None:
    del world

    result = run(*arguments)

    assert result.exit_code == 2
    assert result.stderr.startswith("error usage: ")
    assert "--help` explains the arguments" in result.stderr


def test_no_argument_is_a_question_for_help() -> None:
    result = shell()

    assert b"Usage: turnwal" in result.stdout + result.stderr
    assert result.returncode == 2


@pytest.mark.usefixtures("world")
def test_what_nobody_foresaw_is_told_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("odd\x1b[31m")

    monkeypatch.setattr("turnwal.session.sessions.Sessions.glance", fail)

    plain = run("head", "s")
    debugged = run("head", "s", env={"TURNWAL_DEBUG": "1"})

    assert plain.exit_code == debugged.exit_code == 1
    assert plain.stderr.startswith("error unexpected: ZeroDivisionError: odd\\x1b[31m\nhint: ")
    assert "Traceback" not in plain.stderr
    assert "Traceback" in debugged.stderr
    assert "\x1b" not in debugged.stderr


def test_a_closed_pipe_ends_quietly(world: World) -> None:
    world.clean(turns=100, user="w" * 10_000)
    for form in ([], ["--json"]):
        with subprocess.Popen(
            command("show", "clean", *form), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.stdout.close()
            process.wait(timeout=30)
            assert process.stderr is not None
            assert (process.returncode, process.stderr.read()) == (141, b"")


def test_a_pipe_that_was_closed_before_ends_quietly(world: World) -> None:
    world.clean()
    reader, writer = os.pipe()
    os.close(reader)
    for verb in ("ls", "verify", "export", "head"):
        arguments = [verb] if verb == "ls" else [verb, "clean"]
        result = subprocess.run(
            command(*arguments), stdout=writer, stderr=subprocess.PIPE, env=environment(), check=False, timeout=30
        )
        assert (result.returncode, result.stderr) == (141, b""), verb
    os.close(writer)


def test_a_full_disk_behind_standard_output_is_an_error(world: World) -> None:
    world.clean()
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            command("show", "clean"), stdout=full, stderr=subprocess.PIPE, env=environment(), check=False, timeout=30
        )

    assert result.returncode == 1
    assert result.stderr.startswith(b"error store_full: ")
    assert b"Traceback" not in result.stderr
    assert b"Exception ignored" not in result.stderr


def test_ctrl_c_ends_without_a_traceback(world: World) -> None:
    with (
        holder(world, "held"),
        subprocess.Popen(
            command("recover", "held", "--wait", "30"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        ) as process,
    ):
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=1.5)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)

    assert (process.returncode, said.strip()) == (130, b"")


def test_starting_imports_no_verb_and_no_library_but_click() -> None:
    script = (
        "import sys; sys.argv = ['turnwal', '--version']\n"
        "import turnwal.cli\n"
        "try: turnwal.cli.main()\n"
        "except SystemExit as end: assert end.code == 0, end.code\n"
        "loaded = sorted(name for name in sys.modules if name.split('.')[0] in ('turnwal', 'rich', 'msgspec'))\n"
        "assert loaded == ['turnwal', 'turnwal.cli', 'turnwal.cli.app'], loaded\n"
    )

    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=30)

    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("turnwal ")


def test_rich_is_imported_for_terminals_alone(world: World) -> None:
    world.crashed()
    script = (
        "import sys; sys.argv = ['turnwal', *sys.argv[1:]]\n"
        "import turnwal.cli\n"
        "try: turnwal.cli.main()\n"
        "except SystemExit: pass\n"
        "assert not any(name.split('.')[0] == 'rich' for name in sys.modules)\n"
    )

    for verb in (["ls"], ["show", "crashed"], ["plan", "crashed"], ["recover", "crashed"], ["verify", "crashed"]):
        result = subprocess.run([sys.executable, "-c", script, *verb], capture_output=True, check=False, timeout=30)
        assert result.returncode == 0, result.stderr


def test_turnwal_alone_shows_how_it_is_used() -> None:
    result = run()

    assert result.exit_code == 2
    assert result.stderr.startswith("Usage: ")
    assert "\\n" not in result.stderr
    assert "recover" in result.stderr
