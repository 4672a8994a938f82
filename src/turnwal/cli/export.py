"""`turnwal export`: the lines of a session, byte for byte; or with `--to` the request that a provider would be sent.

Promises: a file is whole and durable when it is there under its name; one that exists is never written over. No line is
written to a terminal, which would obey the bytes.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import click

from turnwal.cli import exits
from turnwal.cli.places import Place, at, json_option, refuse_empty, session_argument, store_option
from turnwal.cli.request import Wish, made, told
from turnwal.cli.screen import Screen, dump, note, print_json
from turnwal.store.wholefile import whole_file
from turnwal.transcript.targets import TARGETS

_STDOUT = "-"


@click.command(short_help="Write the lines of a session, or the request that a provider would be sent.")
@session_argument()
@click.option("-o", "--output", metavar="FILE", default=_STDOUT, help="Write to a new file instead of standard output.")
@click.option(
    "--copied",
    is_flag=True,
    help="Copy a session with open work while its owner goes on; the copy says so at its end, and calls open there "
    "are never said to be not started.",
)
@click.option(
    "--salvage",
    is_flag=True,
    help="Write every readable line of a damaged session, past the damage and behind an unreadable first line; exits 4 "
    "where something is left out.",
)
@click.option(
    "--to", metavar="TARGET", type=click.Choice([*TARGETS]), help=f"Write a request instead: {', '.join(TARGETS)}."
)
@click.option("--run", metavar="NAME", default="main", help="With --to: this run; main unless told.")
@click.option("--model", metavar="NAME", help="With --to: the model to be asked; signed blocks go back to their own.")
@click.option(
    "--waiting",
    type=click.Choice(["refuse", "placeholder"]),
    default="refuse",
    help="With --to: what becomes of calls that wait for an answer; refuse unless told.",
)
@click.option(
    "--outcomes",
    type=click.Choice(["note", "replace"]),
    default="note",
    help="With --to: a late outcome is a note at its place, or replaces the result; note unless told.",
)
@click.option("--partial", is_flag=True, help="With --to: send text that was shown and whose message never came.")
@click.option("--findings", is_flag=True, help="With --to: say on standard error what was changed on the way, and why.")
@click.option("--check", is_flag=True, help="With --to: look for broken rules; exits 1 where there is one.")
@store_option
@json_option
@click.pass_context
def export(context: click.Context, /, **options: Any) -> int:
    """Write the lines of a session as they are stored, so that the copy keeps every hash.

    A session with open work is owned meanwhile, so that nobody goes on with it (exit 5 when an owner is alive);
    --copied copies it all the same. Stops at damage (exit 4) unless --salvage is said: what that writes is to look at
    and no session that could go on. With --json a summary follows on standard output, if the lines go to a file.

    With --to the messages of a request are written as JSON, such as a provider takes them, whatever befell the session:
    calls that a crash left open are answered as `recover` would answer them. Nothing is owned or written then.
    """
    if options["to"] is not None:
        for name in ("copied", "salvage"):
            if options[name]:
                raise click.UsageError(f"--{name} is about lines, and --to writes none; say one")
        return _request(**options)
    for name in ("run", "model", "waiting", "outcomes", "partial", "findings", "check"):
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} is about a request; say --to as well")
    return _lines(**options)


def _lines(
    *, session: str, output: str, copied: bool, salvage: bool, store: str | None, as_json: bool, **_: Any
) -> int:
    if salvage and copied:
        raise click.UsageError("--salvage writes what is readable and --copied a session that can go on; say one")
    left_out: list[int] = []
    with at(session, store) as place, _opened(output) as stream:
        refuse_empty(place, "export")
        count = size = 0
        for line in _readable(place, left_out) if salvage else place.sessions.export(place.id, copied=copied):
            stream.write(line)
            stream.write(b"\n")
            count, size = count + 1, size + len(line) + 1
    if left_out:
        note(
            f"left out {sum(left_out):,} bytes that are no record; the chain breaks there, so nothing can go on from it"
        )
    code = exits.DAMAGED if left_out else exits.OK
    if output == _STDOUT:
        return code
    if as_json:
        value = {"session": place.name, "file": output, "events": count, "bytes": size}
        print_json(value | {"left_out_bytes": sum(left_out)})
    else:
        Screen().line(f"{place.name}: {count} events, {size:,} bytes in {output}")
    return code


def _request(
    *, session: str, output: str, to: str, findings: bool, store: str | None, as_json: bool, **options: Any
) -> int:
    wish = Wish(to, **{name: options[name] for name in ("run", "model", "waiting", "outcomes", "partial", "check")})
    with at(session, store) as place:
        refuse_empty(place, "export")
        found = made(place, wish)
        with _opened(output, to_terminal=True) as stream:
            stream.write(dump(found.body).encode("ascii") + b"\n")
    if findings:
        told("finding", found.findings, as_json=as_json)
    told("problem", found.problems, as_json=as_json)
    code = exits.ERROR if found.problems else exits.OK
    if output == _STDOUT:
        return code
    if as_json:
        value = {"session": place.name, "file": output, "target": to, "messages": found.messages}
        print_json(value | {"findings": len(found.findings), "problems": len(found.problems)})
    else:
        from turnwal.cli.telling import counted

        Screen().line(f"{place.name}: {counted(found.messages, 'message')} for {to} in {output}")
    return code


def _readable(place: Place, left_out: list[int]) -> Iterator[bytes]:
    """Yield the readable lines, and note the length of each piece that is none. Owns nothing."""
    from turnwal.store.protocol import Gap

    for item in place.sessions.store.read(place.id, past_damage=True):
        if isinstance(item, Gap):
            left_out.append(item.length)
        else:
            yield item.line


@contextmanager
def _opened(output: str, *, to_terminal: bool = False) -> Iterator[BinaryIO]:
    if output == _STDOUT:
        if sys.stdout.isatty() and not to_terminal:
            raise click.UsageError("standard output is a terminal; say -o FILE, or let a pipe read it")
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with whole_file(Path(output)) as stream:
        yield stream
