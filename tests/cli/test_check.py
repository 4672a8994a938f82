"""`check`: what a provider would refuse of a request in a file, and what is no request."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.worlds import World, run, shell
from turnwal.transcript.targets import TARGETS

CALL = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
DANGLING = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [CALL]}]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def kept(value: Any) -> str:
    Path("request.json").write_text(json.dumps(value), "utf-8")
    return "request.json"


def problems(target: str, value: Any) -> list[tuple[str, str]]:
    result = run("check", "--target", target, kept(value), "--json")
    assert result.exit_code in (0, 1), result.stderr
    found = json.loads(result.stdout)
    assert (result.exit_code == 1) is bool(found["problems"])
    return [(problem["code"], problem["position"]) for problem in found["problems"]]


def test_a_clean_request_exits_with_0() -> None:
    result = run("check", "--target", "anthropic", kept(DANGLING[:1]))

    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "request.json: no rule of anthropic is broken (1 message)\n"


def test_each_broken_rule_is_told_with_its_position() -> None:
    result = run("check", "--target", "anthropic", kept(DANGLING))

    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[1].split()[:2] == ["messages[1].content[0]", "unanswered_call"]
    assert lines[-1] == "request.json: 1 broken rule of anthropic in 2 messages"


def test_a_list_and_a_whole_request_are_taken() -> None:
    broken = [("unanswered_call", "messages[1].content[0]")]
    assert problems("anthropic", DANGLING) == broken
    assert problems("anthropic", {"model": "m", "messages": DANGLING, "system": "be brief"}) == broken
    assert problems("anthropic", {"messages": DANGLING[:1], "system": 7}) == [("bad_shape", "system")]


def test_positions_bear_the_names_of_the_request() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{"}
    said = [("bad_arguments", "input[0].arguments"), ("unanswered_call", "input[0]")]
    assert problems("openai-responses", {"input": [call]}) == said
    assert problems("openai-responses", {"input": "hello"}) == []
    assert problems("openai-responses", {"input": [], "instructions": 7}) == [
        ("empty_message", "input"),
        ("bad_shape", "instructions"),
    ]
    empty = {"role": "user", "parts": [{"text": ""}]}
    assert problems("gemini", {"contents": [empty]}) == [("empty_message", "contents[0].parts[0]")]
    for name in ("systemInstruction", "system_instruction"):
        assert problems("gemini", {"contents": [], name: 7}) == [("empty_message", "contents"), ("bad_shape", name)]


def test_standard_input_is_read() -> None:
    result = shell("check", "--target", "anthropic", "-", stdin=json.dumps(DANGLING).encode())

    assert result.returncode == 1
    assert b"unanswered_call" in result.stdout


def test_half_a_character_is_found_wherever_it_stands() -> None:
    assert problems("anthropic", [{"role": "user", "content": "\ud83d"}]) == [("surrogate", "messages[0].content")]
    hello = {"role": "user", "content": "hello"}
    assert problems("anthropic", {"messages": [hello], "system": "\ud83d"}) == [("surrogate", "system")]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1,",
        b"\xff\xfe[",
        b"\x00",
        b"hello",
        b"[NaN]",
        b'[{"role":"user","content":Infinity}]',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" + b"1" * 5_000 + b"]",
    ],
    ids=["nothing", "cut", "cut list", "no utf-8", "nul", "text", "nan", "infinity", "deep", "deep objects", "digits"],
)
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_what_is_no_json_is_a_named_error(target: str, content: bytes) -> None:
    Path("request.json").write_bytes(content)

    result = run("check", "--target", target, "request.json")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error invalid_event: check request.json: it is ")
    assert "\nhint: pass a list of messages, or " in result.stderr


@pytest.mark.parametrize("value", [None, True, 7, "messages", {}, {"messages": None}, {"prompt": []}])
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_what_is_no_request_is_a_named_error(target: str, value: Any) -> None:
    result = run("check", "--target", target, kept(value))

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error invalid_event: check request.json: ")
    assert f"is no request of {target}" in result.stderr


@pytest.mark.parametrize("messages", [7, {"0": {}}, "hello"])
def test_messages_that_are_no_list_are_a_named_error(messages: Any) -> None:
    result = run("check", "--target", "gemini", kept({"contents": messages}))

    assert result.exit_code == 1
    assert result.stderr.startswith("error invalid_event: check request.json: its `contents` is a ")


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_a_list_of_anything_is_told_of_and_bounded(target: str) -> None:
    result = run("check", "--target", target, kept([7] * 5_000), "--json")

    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert len(found["problems"]) == 1_000
    assert len(found["problems"]) + found["more"] >= 5_000
    assert "are not shown" in run("check", "--target", target, "request.json").stdout


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_nesting_that_a_parser_takes_is_checked(target: str) -> None:
    deep: Any = "\ud83d"
    for _ in range(400):
        deep = [deep]

    found = json.loads(run("check", "--target", target, kept([{"role": "user", "content": deep}]), "--json").stdout)

    assert [each["position"] for each in found["problems"] if each["code"] == "surrogate"] == [
        "messages[0].content" + "[0]" * 400
    ]


def test_a_file_that_no_provider_would_take_is_over_the_limit() -> None:
    with Path("request.json").open("wb") as file:
        file.truncate(200 * 1024 * 1024)

    result = run("check", "--target", "anthropic", "request.json")

    assert result.exit_code == 1
    assert result.stderr.startswith("error over_limit: check request.json: it has more than 134,217,728 bytes\n")


def test_a_request_of_100_mb_is_checked() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 100_000_000}}

    assert problems("anthropic", [{"role": "user", "content": "A" * 100_000_000}]) == []
    position = "messages[0].content[0].source.data"
    assert problems("anthropic", [{"role": "user", "content": [image]}]) == [("too_large", position)]


@pytest.mark.parametrize(
    "arguments", [[], ["--target", "anthropic"], ["request.json"], ["--target", "gpt", "request.json"]]
)
def test_a_command_that_is_not_understood_exits_with_2(arguments: list[str]) -> None:
    assert run("check", *arguments).exit_code == 2


def test_a_file_that_is_not_there_is_said() -> None:
    assert run("check", "--target", "anthropic", "nowhere.json").stderr.startswith("error file_not_found: ")


def test_what_a_terminal_would_obey_is_escaped(world: World) -> None:
    del world
    call = CALL | {"id": "\x1b[2J"}

    result = run("check", "--target", "anthropic", kept([DANGLING[0], {"role": "assistant", "content": [call]}]))

    assert "\x1b" not in result.stdout
    assert "\\x1b" in result.stdout
