"""`export --to`: a session of any state as the request that a provider would be sent."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.worlds import World, asking, cut_off, holder, rot, run, shell, tell
from turnwal.transcript.check import check
from turnwal.transcript.targets import TARGETS

targets = pytest.mark.parametrize("target", sorted(TARGETS))

FIELDS = {
    "anthropic": {"messages"},
    "openai-chat": {"messages"},
    "openai-responses": {"input"},
    "gemini": {"contents"},
    "bedrock": {"messages"},
    "mistral": {"messages"},
}


def request(*arguments: str) -> dict[str, Any]:
    result = run("export", *arguments)
    assert result.exit_code == 0, result.stderr
    value = json.loads(result.stdout)
    assert isinstance(value, dict)
    return value


def texts(value: Any) -> str:
    return json.dumps(value)


@targets
def test_a_clean_session_is_its_messages(world: World, target: str) -> None:
    world.clean()

    value = request("clean", "--to", target)

    assert value.keys() == FIELDS[target]
    assert "hello" in texts(value)
    assert "an answer" in texts(value)


@targets
def test_a_crashed_session_is_what_recovery_would_leave_and_stays_as_it_is(world: World, target: str) -> None:
    path = world.crashed()
    before = path.read_bytes()

    shown = run("export", "crashed", "--to", target)

    assert shown.exit_code == 0
    assert path.read_bytes() == before
    assert shown.stderr == "interrupted: this is what a model would see after `turnwal recover`; nothing was written\n"
    assert run("recover", "crashed").exit_code == 0
    after = run("export", "crashed", "--to", target)
    assert (after.stdout, after.stderr) == (shown.stdout, "")
    value = json.loads(shown.stdout)
    (field,) = FIELDS[target]
    assert check(target, value[field]) == []
    assert "may have run" in shown.stdout


@targets
def test_system_text_stands_where_the_target_wants_it(world: World, target: str) -> None:
    with world.sessions.session("told") as session:
        session.append("system_message", {"parts": [{"type": "text", "content": "be brief"}]})
        with session.turn(user="hello") as turn, turn.step() as step:
            step.assistant({"parts": [{"type": "text", "content": "hi"}]})

    value = request("told", "--to", target)

    assert {
        "anthropic": value.get("system") == "be brief",
        "openai-chat": value.get("messages", [{}])[0] == {"role": "system", "content": "be brief"},
        "openai-responses": value.get("instructions") == "be brief",
        "gemini": value.get("systemInstruction") == {"parts": [{"text": "be brief"}]},
        "bedrock": value.get("system") == [{"text": "be brief"}],
        "mistral": value.get("messages", [{}])[0] == {"role": "system", "content": "be brief"},
    }[target]
    Path("request.json").write_text(json.dumps(value))
    problems = json.loads(run("check", "--target", target, "request.json", "--json").stdout)["problems"]
    assert problems == []


def test_what_was_changed_is_said_beside_it(world: World) -> None:
    world.crashed()

    result = run("export", "crashed", "--to", "mistral", "--findings")

    lines = result.stderr.splitlines()
    assert lines[1] == "finding id_rewritten at seq 4: the call of part 0 has the id " + lines[1].split()[-2] + " here"
    assert json.loads(result.stdout)["messages"][1]["tool_calls"][0]["id"] == lines[1].split()[-2]
    said = [
        json.loads(line)
        for line in run("export", "crashed", "--to", "mistral", "--findings", "--json").stderr.splitlines()[1:]
    ]
    assert said[0]["finding"]["code"] == "id_rewritten"
    assert said[0]["finding"]["seqs"] == [4]


def test_a_broken_rule_is_told_and_the_exit_code_says_so(world: World) -> None:
    block = {"type": "of_tomorrow"}
    native = {"provider": "anthropic", "message": {"role": "user", "content": [block]}}
    with world.sessions.session("odd") as session:
        session.append("user_message", {"parts": [block], "native": native})

    unchecked = run("export", "odd", "--to", "anthropic")
    checked = run("export", "odd", "--to", "anthropic", "--check")

    assert (unchecked.exit_code, unchecked.stderr) == (0, "")
    assert checked.exit_code == 1
    assert checked.stdout == unchecked.stdout
    assert checked.stderr.startswith("problem bad_shape messages[0].content[0]: ")
    assert run("export", "odd", "--to", "openai-chat", "--check").exit_code == 0
    problem = json.loads(run("export", "odd", "--to", "anthropic", "--check", "--json").stderr)["problem"]
    assert (problem["code"], problem["position"]) == ("bad_shape", "messages[0].content[0]")


def test_a_waiting_call_is_refused_unless_a_placeholder_is_asked_for(world: World) -> None:
    key = world.waiting()

    refused = run("export", "waiting", "--to", "anthropic")

    assert refused.exit_code == 1
    assert refused.stdout == ""
    assert refused.stderr.startswith(f"error refused: render anthropic: calls wait for an answer: {key}\n")
    assert "--waiting placeholder" in refused.stderr
    assert "waits for an answer" in texts(request("waiting", "--to", "anthropic", "--waiting", "placeholder"))


def test_a_late_outcome_is_a_note_or_replaces_the_result(world: World) -> None:
    world.crashed()
    run("recover", "crashed")
    run("settle", "crashed", "4.1", "happened", "--evidence", "receipt 4711")

    noted = texts(request("crashed", "--to", "anthropic"))
    replaced = texts(request("crashed", "--to", "anthropic", "--outcomes", "replace"))

    assert "Learnt later" in noted
    assert "may have run" in noted
    assert "Learnt later" in replaced
    assert "may have run" not in replaced


def test_text_that_was_shown_is_sent_when_it_is_asked_for(world: World) -> None:
    with world.sessions.session("cut") as session, session.turn(user="go") as turn, turn.step():
        delta = {"step": 1, "index": 0, "text": "half an ans"}
        session.append("assistant_delta", delta, ignorable=True)
        kept = len(session)
    cut_off(world.path("cut"), kept)

    assert "half an ans" not in texts(request("cut", "--to", "anthropic"))
    assert "half an ans" in texts(request("cut", "--to", "anthropic", "--partial"))


def test_signed_blocks_go_back_to_the_model_that_wrote_them(world: World) -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "abc"}
    parts = [
        {"type": "reasoning", "content": "hm", "native": {"provider": "anthropic", "block": thinking}},
        {"type": "text", "content": "hi"},
    ]
    with world.sessions.session("signed") as session, session.turn(user="hello") as turn, turn.step() as step:
        step.assistant({"parts": parts, "provider": "anthropic", "model": "claude-sonnet-4-5-20250929"})

    assert "thinking" in texts(request("signed", "--to", "anthropic"))
    assert "thinking" in texts(request("signed", "--to", "anthropic", "--model", "claude-sonnet-4-5"))
    assert "thinking" not in texts(request("signed", "--to", "anthropic", "--model", "claude-opus-4-5"))


def test_a_run_is_chosen_and_a_misspelt_one_refused(world: World) -> None:
    with world.sessions.session("family") as session, session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant({"parts": [asking("delegate")]})
        call.dispatch()
        with call.sub("helper") as sub:
            sub.append("user_message", {"parts": [{"type": "text", "content": "look it up"}]})
        call.result("done")
        key = call.call_key

    assert "look it up" not in texts(request("family", "--to", "anthropic"))
    assert "look it up" in texts(request("family", "--to", "anthropic", "--run", key))
    wrong = run("export", "family", "--to", "anthropic", "--run", "mian")
    assert wrong.exit_code == 1
    assert wrong.stderr == f"error invalid_name: export mian: the session has no such run\nhint: it has main, {key}\n"


def test_a_session_that_is_being_written_is_looked_at_and_not_disturbed(world: World) -> None:
    with holder(world, "held", owner="ada") as process:
        result = run("export", "held", "--to", "anthropic")
        tell(process, "it goes on")

    assert result.exit_code == 0
    assert "held" in result.stdout
    assert result.stderr.startswith("open, writer alive (ada ")
    assert result.stderr.endswith("): this is what a model would see after a crash at this moment\n")


@pytest.mark.parametrize(
    ("maker", "code", "said"),
    [
        ("empty", 1, "error empty_session: "),
        ("too_new", 1, "error too_new: "),
        ("damaged", 4, "error damaged: "),
        ("damaged_start", 4, "error damaged_start: "),
    ],
)
def test_what_cannot_be_read_whole_is_refused(world: World, tmp_path: Path, maker: str, code: int, said: str) -> None:
    getattr(world, maker)("s")

    result = run("export", "s", "--to", "anthropic", "-o", "request.json")

    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith(said)
    assert not (tmp_path / "request.json").exists()


def test_damage_in_turns_that_have_ended_is_refused(world: World) -> None:
    rot(world.clean("old", turns=3), 2)

    result = run("export", "old", "--to", "anthropic")

    assert result.exit_code == 4
    assert result.stderr.startswith("error damaged: ")


def test_a_torn_tail_is_no_damage(world: World) -> None:
    world.torn()

    assert "an answer" in texts(request("torn", "--to", "anthropic"))


def test_a_file_is_whole_and_its_summary_counts(world: World, tmp_path: Path) -> None:
    world.crashed()
    path = tmp_path / "request.json"

    plain = run("export", "crashed", "--to", "anthropic", "-o", "request.json")

    assert plain.stdout == "crashed: 3 messages for anthropic in request.json\n"
    assert path.read_text("ascii") == run("export", "crashed", "--to", "anthropic").stdout
    assert path.stat().st_mode & 0o777 == 0o600
    again = run("export", "crashed", "--to", "anthropic", "-o", "request.json")
    assert again.stderr.splitlines()[-2].startswith("error file_exists: ")
    summary = run("export", "crashed", "--to", "mistral", "-o", "other.json", "--json", "--check", "--findings")
    assert json.loads(summary.stdout) == {
        "session": "crashed",
        "file": "other.json",
        "target": "mistral",
        "messages": 5,
        "findings": 3,
        "problems": 0,
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ["--to", "gpt"],
        ["--to", "anthropic", "--copied"],
        ["--to", "anthropic", "--salvage"],
        ["--run", "main"],
        ["--model", "m"],
        ["--waiting", "placeholder"],
        ["--outcomes", "note"],
        ["--partial"],
        ["--findings"],
        ["--check"],
    ],
)
def test_options_that_do_not_go_together_are_not_understood(world: World, arguments: list[str]) -> None:
    world.clean()

    result = run("export", "clean", *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error usage: ")


def test_processes_of_any_hash_seed_print_the_same_bytes(world: World) -> None:
    world.crashed()

    for target in TARGETS:
        printed = {shell("export", "crashed", "--to", target, env={"PYTHONHASHSEED": seed}).stdout for seed in "012"}
        assert len(printed) == 1
