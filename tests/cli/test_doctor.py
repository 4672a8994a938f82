"""`turnwal doctor`, `turnwal repair` and the import of another tool's session, as a person uses them."""

import json
import os
import pickle
import shutil
import time
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from tests.cli.worlds import ATTACK, World, run, shell
from tests.formats.databases import held
from tests.formats.seen import DATA, digests, untouched
from tests.formats.test_goose import HEALTHY, stored
from turnwal.cli import exits

KEYS = {"path", "format", "version", "session", "calls", "answered", "verdict", "open", "damage", "on_resume"}


def asking(*ids: str, name: str = "pay") -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": id, "name": name, "input": {"n": 7}} for id in ids],
    }


def answering(*ids: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "paid"} for id in ids]}


GO = {"role": "user", "content": "go"}
CLEAN = [GO, asking("a"), answering("a")]
KILLED = [GO, asking("a", "b"), answering("a")]


def written(path: Path, value: object, *, ago: float = 3_600) -> Path:
    """A file, last written to so many seconds ago."""
    path.write_text(json.dumps(value))
    os.utime(path, (time.time() - ago, time.time() - ago))
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a healthy session, an interrupted one, and files that are none."""
    root = tmp_path / "home"
    (root / "deep" / "er").mkdir(parents=True)
    written(root / "clean.json", CLEAN)
    written(root / "deep" / "er" / "killed.json", {"model": "m", "messages": KILLED})
    written(root / "settings.json", {"theme": "dark"})
    (root / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (root / "evil.pickle").write_bytes(pickle.dumps(os.getcwd))
    (root / "empty.jsonl").touch()
    return root


def diagnoses(*arguments: str) -> tuple[list[dict[str, Any]], int]:
    result = run("doctor", "--json", *arguments)
    return json.loads(result.stdout), result.exit_code


def test_a_folder_is_walked_and_nothing_in_it_is_changed(home: Path) -> None:
    with untouched(home):
        told, code = diagnoses(str(home))
    assert code == exits.INTERRUPTED
    assert [(Path(each["path"]).name, each["verdict"]) for each in told] == [
        ("clean.json", "clean"),
        ("killed.json", "interrupted"),
    ]
    assert all(each.keys() >= KEYS for each in told)
    (call,) = told[1]["open"]
    assert (call["id"], call["name"], call["evidence"], call["risk"]) == (
        "b",
        "pay",
        "requested",
        "tool_outcome_unknown",
    )
    assert call["because"][0] == "messages[1]: asked for"


def test_a_person_reads_what_to_look_at_and_what_the_tool_would_do(home: Path) -> None:
    result = run("doctor", str(home))
    assert result.exit_code == exits.INTERRUPTED
    said = result.stdout
    for words in (
        "Anthropic Messages",
        "interrupted",
        '{"n":7}',
        "may have run",
        "the provider refuses it",
        "turnwal repair",
    ):
        assert words in said
    assert "2 sessions: 1 clean, 1 interrupted" in said


@pytest.mark.parametrize(("format", "scene"), [("openhands", "agreed"), ("strands", "agreed"), ("strands", "waiting")])
def test_of_a_call_that_waits_nobody_says_that_it_has_not_run(format: str, scene: str) -> None:
    result = run("doctor", str(DATA / format / scene))
    assert result.exit_code == exits.OK
    said = " ".join(result.stdout.split())
    assert "They wait as far as the file shows; if a person has agreed since, they may have run." in said
    assert "None of them may have run" not in said


def test_where_only_invented_answers_are_left_the_tool_goes_on_and_that_is_said() -> None:
    result = run("doctor", str(DATA / "strands" / "restarted"))
    assert result.exit_code == exits.INTERRUPTED
    said = " ".join(result.stdout.split())
    assert "it goes on" in said
    assert "The model takes the answers that the tool invented for what happened." in said
    assert "The SDK answers such a call" not in said


def test_of_calls_of_which_some_wait_each_is_said_what_is_known(tmp_path: Path) -> None:
    copy = shutil.copytree(DATA / "openhands" / "confirming", tmp_path / "c")
    last = max((copy / "00000000000040008000000000000001" / "events").glob("event-*.json"))
    event = json.loads(last.read_text()) | {"id": "11111111-2222", "llm_response_id": "other", "tool_call_id": "more"}
    last.with_name("event-00003-11111111-2222.json").write_text(json.dumps(event))
    said = " ".join(run("doctor", str(copy)).stdout.split())
    assert "look whether they happened" in said
    assert "Some wait as far as the file shows; if a person has agreed since, they may have run." in said


def test_healthy_sessions_are_no_reason_to_worry(home: Path) -> None:
    told, code = diagnoses(str(home / "clean.json"))
    assert (code, told[0]["verdict"], told[0]["open"], told[0]["damage"]) == (exits.OK, "clean", [], [])


def test_what_cannot_be_read_is_named_and_the_others_go_on(home: Path) -> None:
    paths = [str(home / name) for name in ("nothing", "picture.png", "evil.pickle", "empty.jsonl", "clean.json")]
    told, code = diagnoses(*paths)
    assert [each["verdict"] for each in told] == ["unreadable"] * 4 + ["clean"]
    assert all(each["problem"] and each["format"] is None for each in told[:4])
    assert code == exits.ERROR


def test_a_file_without_permission_is_named_and_the_others_go_on(home: Path) -> None:
    (home / "clean.json").chmod(0)
    root = os.geteuid() == 0
    if root:  # who may read everything becomes somebody who may not
        above = takewhile(lambda folder: folder.stat().st_mode & 0o005 != 0o005, home.parents)
        for folder in (home, *above, home / "deep", home / "deep" / "er"):
            folder.chmod(0o755)
        os.seteuid(65534)
    try:
        told, code = diagnoses(str(home))
    finally:
        if root:
            os.seteuid(0)
    assert [(each["verdict"], each["problem"]) for each in told] == [
        ("unreadable", "Permission denied"),
        ("interrupted", ""),
    ]
    assert code == exits.INTERRUPTED


def test_damage_has_the_exit_code_of_damage(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(CLEAN)[:-3])
    told, code = diagnoses(str(tmp_path / "x.json"))
    assert code == exits.DAMAGED
    assert [fault["kind"] for fault in told[0]["damage"]] == ["torn"]


def test_a_path_or_known_is_needed() -> None:
    assert run("doctor").exit_code == exits.USAGE


def test_known_looks_where_the_tools_keep_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCODE_DB", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    result = run("doctor", "--known")
    assert (result.exit_code, result.stdout) == (exits.OK, "")
    place = tmp_path / ".local" / "share" / "goose" / "sessions"
    place.mkdir(parents=True)
    lines = [
        {"working_dir": "/w", "description": "d"},
        {"role": "user", "created": 1, "content": [{"type": "text", "text": "x"}]},
    ]
    (place / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    told, code = diagnoses("--known")
    assert [(each["format"], each["verdict"]) for each in told] == [("goose", "clean")]
    assert code == exits.OK


def test_no_control_character_of_a_session_reaches_the_terminal(tmp_path: Path) -> None:
    path = written(tmp_path / "x.json", [GO, asking(ATTACK, name=ATTACK)])
    said = run("doctor", str(path)).stdout
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_a_repaired_copy_has_an_answer_and_the_original_stays(home: Path, tmp_path: Path) -> None:
    before = digests(home)
    path, out = str(home / "deep" / "er" / "killed.json"), str(tmp_path / "repaired.json")
    result = run("repair", path, "-o", out)
    assert (result.exit_code, digests(home)) == (exits.OK, before)
    assert "b  pay: answered as unknown" in result.stdout
    told, code = diagnoses(out)
    assert (code, told[0]["verdict"], told[0]["open"]) == (exits.OK, "clean", [])
    assert run("check", "--target", "anthropic", out).exit_code == exits.OK


def test_a_session_that_was_just_written_to_may_be_in_use(tmp_path: Path) -> None:
    lines = [
        {"type": "session", "version": 0, "id": "S", "createdAt": 1767225600000, "cwd": "/w", "delegationDepth": 0},
        {"type": "turn/start", "seq": 0, "time": 1767225600001, "data": {"turn": 0}},
        {"type": "step/start", "seq": 1, "time": 1767225600002, "data": {"turn": 0, "step": 0}},
        {
            "type": "assistant/message",
            "seq": 2,
            "time": 1767225600003,
            "data": {
                "turn": 0,
                "step": 0,
                "message": {
                    "role": "assistant",
                    "content": [{"type": "tool-call", "id": "c1", "name": "bash", "arguments": "{}"}],
                },
            },
        },
    ]
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (fresh,), code = diagnoses(str(path))
    assert code == exits.INTERRUPTED
    assert "may still be at work" in fresh["problem"]
    assert [call["risk"] for call in fresh["open"]] == ["tool_outcome_unknown"]
    refused = run("repair", str(path), "-o", str(tmp_path / "out"))
    assert refused.exit_code == exits.ERROR
    assert "may still be at work" in refused.stderr
    assert not (tmp_path / "out").exists()
    os.utime(path, (1, 1))
    (old,), _ = diagnoses(str(path))
    assert old["problem"] == ""
    assert [call["risk"] for call in old["open"]] == ["tool_not_started"]


def test_a_repair_of_a_live_session_is_made_when_it_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path / "x.json", KILLED, ago=0)
    assert run("repair", str(path), "-o", str(tmp_path / "out")).exit_code == exits.ERROR
    assert run("repair", str(path), "--live", "-o", str(tmp_path / "out")).exit_code == exits.OK


def test_a_repair_never_writes_over_anything(home: Path) -> None:
    path = str(home / "clean.json")
    for out in (path, str(home / "settings.json")):
        before = digests(home)
        result = run("repair", path, "-o", out)
        assert result.exit_code == exits.ERROR
        assert "something is there already" in result.stderr
        assert digests(home) == before


def test_a_repair_of_what_is_no_session_says_so(home: Path, tmp_path: Path) -> None:
    for path, words in (
        (home / "picture.png", "no session of a known format"),
        (home / "nothing", "there is no such path"),
    ):
        result = run("repair", str(path), "-o", str(tmp_path / "out"))
        assert result.exit_code == exits.ERROR
        assert words in result.stderr
        assert not (tmp_path / "out").exists()


def test_a_database_that_its_tool_holds_is_neither_repaired_nor_imported(tmp_path: Path) -> None:
    path = stored(tmp_path / "sessions.db", HEALTHY)
    with held(path):
        (told,), code = diagnoses(str(path))
        assert (told["verdict"], code) == ("busy", exits.HELD)
        assert run("repair", str(path), "-o", str(tmp_path / "out")).exit_code == exits.HELD
        assert run("import", str(path), "--pick", "20260101_1").exit_code == exits.HELD
    assert not (tmp_path / "out").exists()


def test_of_several_sessions_one_has_to_be_picked(home: Path, tmp_path: Path) -> None:
    result = run("repair", str(home), "-o", str(tmp_path / "out"))
    assert result.exit_code == exits.ERROR
    assert "there are 2 sessions" in result.stderr
    assert "--pick" in result.stderr


def test_an_imported_session_is_planned_and_exported_as_any_other(world: World, home: Path) -> None:
    result = run("import", str(home / "deep" / "er" / "killed.json"))
    assert result.exit_code == exits.OK
    assert "killed: imported" in result.stdout
    planned = json.loads(run("plan", "killed", "--json").stdout)
    lost = [repair["data"] for repair in planned["repairs"] if repair["type"] == "tool_result"]
    assert [(each["id"], each["metadata"]["risk"]) for each in lost] == [("b", "tool_outcome_unknown")]
    assert run("verify", "killed").exit_code == exits.OK
    sent = run("export", "killed", "--to", "openai-chat", "--check")
    assert sent.exit_code == exits.OK
    assert run("recover", "killed").exit_code == exits.OK
    again = run("import", str(home / "deep" / "er" / "killed.json"))
    assert again.exit_code == exits.ERROR
    assert "killed" in [
        each["id"] if "id" in each else each["session"] for each in json.loads(run("ls", "--json").stdout)
    ]
    assert world.root.exists()


def test_an_imported_session_says_where_it_came_from(world: World, home: Path) -> None:
    path = str(home / "clean.json")
    assert run("import", path, "taken").exit_code == exits.OK
    first = json.loads(world.path("taken").read_bytes().splitlines()[0])
    assert first["data"]["imported"] == {"format": "anthropic", "path": path}
    assert not json.loads(run("plan", "taken", "--json").stdout)["interrupted"]


def test_in_a_pipe_the_whole_is_plain_text(home: Path) -> None:
    done = shell("doctor", str(home))
    assert done.returncode == exits.INTERRUPTED
    assert b"\x1b" not in done.stdout
    assert done.stdout.isascii() or "…" not in done.stdout.decode()
