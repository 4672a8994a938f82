"""docs/cli.md and docs/errors.md have every verb, option, exit code and code, and their examples are understood."""

import json
import re
import shlex
from pathlib import Path

import click
import pytest

from tests.cli.worlds import World, run
from turnwal.cli import exits
from turnwal.cli.app import VERBS, app
from turnwal.core import errors, findings

DOCS = Path(__file__).parents[2] / "docs"
CLI = (DOCS / "cli.md").read_text("utf-8")
ERRORS = (DOCS / "errors.md").read_text("utf-8")


FILE_CODES = ("file_exists", "file_not_found")
"""What is wrong with a file that the command line itself opens."""


def command(verb: str) -> click.Command:
    found = app.get_command(click.Context(app), verb)
    assert found is not None
    return found


def section(verb: str) -> str:
    return CLI.split(f"\n## {verb}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_and_option_is_documented(verb: str) -> None:
    assert f"| [`{verb}`](#{verb}) |" in CLI
    for parameter in command(verb).params:
        if parameter.name not in ("store", "as_json", "session", "file", "new"):
            for name in parameter.opts if isinstance(parameter, click.Option) else [str(parameter.metavar)]:
                assert name in section(verb), name
    assert "--store URL" in CLI
    assert "--json` prints" in CLI or "--json`** prints" in CLI


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_and_option_explains_itself(verb: str) -> None:
    found = command(verb)
    assert found.help
    if verb == "demo":
        return
    assert found.short_help
    for parameter in found.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert parameter.help.rstrip()[-1] in ".;", parameter.name


def test_every_exit_code_is_documented() -> None:
    table = CLI.split("## Exit codes")[1].split("##")[0]
    for code, meaning in exits.MEANINGS.items():
        assert f"| {code} | {meaning}" in table


def test_every_error_is_documented_with_what_to_do() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.TurnwalError)]
    for code in {kind.code for kind in kinds} | {"usage", "unexpected"} | {*FILE_CODES}:
        assert re.search(rf"^\| `{code}` \| .+ \| .*\|$", ERRORS, re.MULTILINE), code


def test_every_finding_is_documented_with_what_to_do() -> None:
    table = ERRORS.split("## Findings")[1]
    for code in findings.CODES:
        assert re.search(rf"^\| `{code}` \| .+ \| .+ \|$", table, re.MULTILINE), code


def test_no_code_is_documented_that_does_not_exist() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.TurnwalError)]
    known = {kind.code for kind in kinds} | set(findings.CODES) | {"usage", "unexpected"} | {*FILE_CODES}

    assert set(re.findall(r"^\| `(\w+)` \|", ERRORS, re.MULTILINE)) == known


@pytest.mark.parametrize("verb", VERBS)
def test_the_json_of_every_verb_is_documented(verb: str) -> None:
    assert any(parameter.name == "as_json" for parameter in command(verb).params)
    assert re.search(r"^    \[?\{\"\w+\":", section(verb), re.MULTILINE), verb


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo"],
        ["ls"],
        ["plan", "crashed"],
        ["recover", "crashed"],
        ["settle", "crashed", "4.1", "happened"],
        ["approve", "waiting", "4.0"],
        ["verify", "clean"],
        ["head", "clean"],
        ["fork", "clean", "fork", "--at", "7"],
        ["export", "clean", "-o", "copy.jsonl"],
        ["check", "--target", "anthropic", "request.json"],
        ["import", "copy.jsonl", "copy"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_the_documented_json_has_the_keys_that_are_printed(world: World, arguments: list[str]) -> None:
    world.clean()
    world.crashed()
    world.waiting()
    if arguments[0] == "settle":
        run("recover", "crashed")
    if arguments[0] == "check":
        run("export", "clean", "--to", "anthropic", "-o", "request.json")
    if arguments[0] == "import":
        run("export", "clean", "-o", "copy.jsonl")

    value = json.loads(run(*arguments, "--json").stdout)

    printed = value[0] if isinstance(value, list) else value
    assert list(printed) == keys_of(section(arguments[0]))
    if arguments[0] == "demo":
        assert {*printed["facts"][0]} == {"fact", "holds"}
        assert printed["kept"] is False


def keys_of(text: str) -> list[str]:
    """The keys of the first JSON object in a section, those of what it holds left out."""
    shown = re.search(r"^    (\[?\{\".*?)(?=\n\n|\n?\Z)", text, re.MULTILINE | re.DOTALL)
    assert shown is not None
    whole = shown[1].strip().removeprefix("[").removesuffix("]")
    whole = whole.replace("{…}", "{}").replace("[…]", "[]")
    return list(json.loads(whole))


EXAMPLES = re.findall(r"^    (?:[^\n{]*\| )?turnwal ([a-z][^\n]*)$", CLI, re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_understood(example: str) -> None:
    verb, *arguments = shlex.split(example.replace("…", "0" * 60).split(" | ")[0])

    command(verb).make_context(verb, arguments)


def test_there_are_examples_of_every_verb() -> None:
    assert {example.split()[0] for example in EXAMPLES} == set(VERBS)
