"""`turnwal export`: the lines of a session, byte for byte.

Promises: a file is whole and durable when it is there under its name; one that exists is never written over. Nothing is
written to a terminal, which would obey the bytes.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from turnwal.cli import exits
from turnwal.cli.places import Place, at, json_option, refuse_empty, session_argument, store_option
from turnwal.cli.screen import Screen, note, print_json

_STDOUT = "-"


@click.command(short_help="Write the lines of a session.")
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
@store_option
@json_option
def export(*, session: str, output: str, copied: bool, salvage: bool, store: str | None, as_json: bool) -> int:
    """Write the lines of a session as they are stored, so that the copy keeps every hash.

    A session with open work is owned meanwhile, so that nobody goes on with it (exit 5 when an owner is alive);
    --copied copies it all the same. Stops at damage (exit 4) unless --salvage is said: what that writes is to look at
    and no session that could go on. With --json a summary follows on standard output, if the lines go to a file.
    """
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


def _readable(place: Place, left_out: list[int]) -> Iterator[bytes]:
    """Yield the readable lines, and note the length of each piece that is none. Owns nothing."""
    from turnwal.store.protocol import Gap

    for item in place.sessions.store.read(place.id, past_damage=True):
        if isinstance(item, Gap):
            left_out.append(item.length)
        else:
            yield item.line


@contextmanager
def _opened(output: str) -> Iterator[BinaryIO]:
    if output == _STDOUT:
        if sys.stdout.isatty():
            raise click.UsageError("standard output is a terminal; say -o FILE, or let a pipe read it")
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    # a session holds what tools and people said: nobody else may read its copy
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        Path(output).unlink()
        raise
