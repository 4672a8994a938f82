"""`turnwal check`: what a provider would refuse of a request that somebody has in a file.

Promises: a file of any content gets an answer or a named error; of many broken rules the first are told, the rest
counted.
"""

import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from turnwal.cli import exits
from turnwal.cli.places import json_option
from turnwal.cli.screen import Column, Screen, print_json
from turnwal.transcript.targets import TARGETS

if TYPE_CHECKING:
    from turnwal.core.errors import InvalidEvent
    from turnwal.transcript.check import Problem
    from turnwal.transcript.requesting import Request

_STDIN: Final = "-"
_BYTES_MAX: Final = 128 * 1024 * 1024
"""A request. The largest that a provider takes are 100 MB, with media in it."""
_TOLD_MAX: Final = 1_000
"""Broken rules that are told; a list of something else breaks one with every item."""


@click.command(short_help="Say what a provider would refuse of a request in a file.")
@click.argument("file", metavar="FILE")
@click.option(
    "--target", metavar="TARGET", required=True, type=click.Choice([*TARGETS]), help=f"One of {', '.join(TARGETS)}."
)
@json_option
def check(*, file: str, target: str, as_json: bool) -> int:
    """Check the messages of a request in FILE (- for standard input) by the rules of a provider.

    FILE holds a JSON list of messages, or the whole request as a JSON object. Each broken rule is told with its code
    and its position. Exits 0 where none is broken, 1 where one is.
    """
    request = _read(file, target)
    problems, more = _first(target, request)
    count = len(request.messages)
    if as_json:
        told = [problem.to_json() for problem in problems]
        print_json({"file": file, "target": target, "messages": count, "problems": told, "more": more})
    else:
        _print(file, target, count, problems, more)
    return exits.ERROR if problems else exits.OK


def _print(file: str, target: str, count: int, problems: "list[Problem]", more: int) -> None:
    from turnwal.cli.telling import counted

    screen = Screen()
    messages = counted(count, "message")
    if not problems:
        screen.line((f"{file}: no rule of {target} is broken", "green"), f" ({messages})", wrap=True)
        return
    columns = (Column("position", shrinks=True), Column("rule"), Column("why", below=True))
    screen.table(columns, [(each.position, (each.code, "bold red"), each.message) for each in problems])
    total = counted(len(problems) + more, "broken rule")
    rest = f"; the last {more:,} are not shown" if more else ""
    screen.line((f"{file}: {total} of {target}", "bold red"), f" in {messages}{rest}", wrap=True)


def _first(target: str, request: "Request") -> "tuple[list[Problem], int]":
    """The broken rules that are told, by the names of the request, and how many more there are."""
    from turnwal.transcript.check import problems

    found = problems(target, request.messages, system=request.system)
    kept: list[Problem] = []
    more = 0
    for problem in found:
        if len(kept) < _TOLD_MAX:
            kept.append(replace(problem, position=_named(problem.position, request)))
        else:
            more += 1
    return kept, more


def _named(position: str, request: "Request") -> str:
    """A position by the names that the request has for its fields."""
    for ours, theirs in (("messages", request.messages_field), ("system", request.system_field)):
        if position.startswith(ours):
            return theirs + position.removeprefix(ours)
    return position


def _read(file: str, target: str) -> "Request":
    """The request in a file. Raises `OverLimit`, and `InvalidEvent` for what is no JSON and for what is no request."""
    from turnwal.core.errors import InvalidEvent
    from turnwal.transcript.requesting import taken_from

    try:
        return taken_from(target, _parsed(_bytes_of(file), file))
    except InvalidEvent as error:
        error.subject = file
        raise


def _bytes_of(file: str) -> bytes:
    from turnwal.core.errors import OverLimit

    with nullcontext(sys.stdin.buffer) if file == _STDIN else Path(file).open("rb") as stream:
        content = stream.read(_BYTES_MAX + 1)
    if len(content) > _BYTES_MAX:
        raise OverLimit(
            f"it has more than {_BYTES_MAX:,} bytes",
            action="check",
            subject=file,
            hint="no provider takes a request of that size: send media by address",
        )
    return content


def _parsed(content: bytes, file: str) -> Any:
    import json

    try:
        return json.loads(content, parse_constant=_refuse)
    except RecursionError as error:
        raise _no_json(file, "it is nested too deep") from error
    except ValueError as error:  # undecodable bytes and numbers of too many digits too
        raise _no_json(file, f"it is no JSON: {error}") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is none of its numbers")


def _no_json(file: str, message: str) -> "InvalidEvent":
    from turnwal.core.errors import InvalidEvent

    hint = "pass a list of messages, or the object that a request is, as JSON in UTF-8"
    return InvalidEvent(message, action="check", subject=file, hint=hint)
