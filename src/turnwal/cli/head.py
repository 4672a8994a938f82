"""`turnwal head`: the commitment to a whole history, to keep somewhere else."""

import os
from typing import TYPE_CHECKING, Final

import click

from turnwal.cli import exits
from turnwal.cli.places import at, json_option, session_argument, store_option
from turnwal.cli.screen import Screen, note, print_json

if TYPE_CHECKING:
    from turnwal.core.chain import Head

_READ_BYTES: Final = 8192


@click.command(short_help="Print the head, COUNT:HASH, or keep it.")
@session_argument()
@click.option("--save", metavar="FILE", help="Keep it in FILE as well, in place of what that held; whole and durable.")
@store_option
@json_option
def head(*, session: str, save: str | None, store: str | None, as_json: bool) -> int:
    """Print the head of a session as COUNT:HASH.

    Keep it elsewhere: `turnwal verify --expect` tells later whether the history is still the one it was taken from.
    --save keeps it in a file, on another disk best, and never that of a session with damage.
    """
    with at(session, store) as place:
        seen = place.sessions.glance(place.id)
    if seen.head is None and seen.state != "empty":
        from turnwal.core.errors import DamagedStart, TooNew

        kind = TooNew if seen.state == "too_new" else DamagedStart
        raise kind(seen.problem, action="head", subject=place.name, hint="`turnwal show` looks as far as it can")
    from turnwal.core.chain import EMPTY

    reached = seen.head or EMPTY
    if save is not None:
        _save(save, reached, place.name, problem=seen.problem if seen.state in ("damaged", "too_new") else "")
    if as_json:
        value = {"session": place.name, "events": reached.count, "hash": reached.hash, "head": str(reached)}
        print_json(value | {"state": seen.state})
    else:
        Screen().line(str(reached))
        if seen.problem:
            note(f"{seen.state}: {seen.problem}")
    return {"damaged": exits.DAMAGED, "too_new": exits.ERROR}.get(seen.state, exits.OK)


def _save(path: str, head: "Head", name: str, *, problem: str) -> None:
    """Make a file hold a head: on return durably, and after a crash that head or what it held before.

    Raises `Refused` for a session that is damaged, and where the file holds a head that is newer.
    """
    from turnwal.core.errors import Refused
    from turnwal.core.kept import heads_in, newest, sentence
    from turnwal.store.disk import Disk

    disk = Disk()
    if problem:
        hint = "look with `turnwal verify`; a head that was kept before still tells what is missing"
        raise Refused(
            f"a head before damage says nothing: {problem}", action="save the head of", subject=name, hint=hint
        )
    earlier = newest(heads_in(disk.glance(path, _READ_BYTES)))
    if earlier is not None and earlier.count > head.count:
        hint = f"`turnwal verify {name} --expect {path}` says what is missing; remove the file to keep this one"
        message = f"the file has a head of {earlier.count:,} events, and this one counts {head.count:,}"
        raise Refused(message, action="save the head in", subject=path, hint=hint)
    disk.write_whole(path, sentence(head) + b"\n", new=f"{path}.{os.getpid()}.new")
