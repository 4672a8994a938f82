"""docs/cli.md and docs/errors.md have every verb, option, exit code and code, and their examples are understood."""

import re
import shlex
from pathlib import Path

import click
import pytest

from turnwal.cli import exits
from turnwal.cli.app import VERBS, app
from turnwal.core import errors, findings

DOCS = Path(__file__).parents[2] / "docs"
CLI = (DOCS / "cli.md").read_text("utf-8")
ERRORS = (DOCS / "errors.md").read_text("utf-8")


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
    for code in {kind.code for kind in kinds} | {"usage", "unexpected"}:
        assert re.search(rf"^\| `{code}` \| .+ \| .*\|$", ERRORS, re.MULTILINE), code


def test_every_finding_is_documented_with_what_to_do() -> None:
    table = ERRORS.split("## Findings")[1]
    for code in findings.CODES:
        assert re.search(rf"^\| `{code}` \| .+ \| .+ \|$", table, re.MULTILINE), code


def test_no_code_is_documented_that_does_not_exist() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.TurnwalError)]
    known = {kind.code for kind in kinds} | set(findings.CODES) | {"usage", "unexpected"}

    assert set(re.findall(r"^\| `(\w+)` \|", ERRORS, re.MULTILINE)) == known


EXAMPLES = re.findall(r"^    (?:[^\n{]*\| )?turnwal ([a-z][^\n]*)$", CLI, re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_understood(example: str) -> None:
    verb, *arguments = shlex.split(example.replace("…", "0" * 60).split(" | ")[0])

    command(verb).make_context(verb, arguments)


def test_there_are_examples_of_every_verb() -> None:
    assert {example.split()[0] for example in EXAMPLES} == set(VERBS)
