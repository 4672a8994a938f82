"""`turnwal head`: the commitment to a whole history, to keep somewhere else."""

import click

from turnwal.cli import exits
from turnwal.cli.places import at, json_option, session_argument, store_option
from turnwal.cli.screen import Screen, note, print_json


@click.command(short_help="Print the head, COUNT:HASH.")
@session_argument()
@store_option
@json_option
def head(*, session: str, store: str | None, as_json: bool) -> int:
    """Print the head of a session as COUNT:HASH.

    Keep it elsewhere: `turnwal verify --expect` tells later whether the history is still the one it was taken from.
    """
    with at(session, store) as place:
        seen = place.sessions.glance(place.id)
    if seen.head is None and seen.state != "empty":
        from turnwal.core.errors import DamagedStart, TooNew

        kind = TooNew if seen.state == "too_new" else DamagedStart
        raise kind(seen.problem, action="head", subject=place.name, hint="`turnwal show` looks as far as it can")
    from turnwal.core.chain import EMPTY

    reached = seen.head or EMPTY
    if as_json:
        value = {"session": place.name, "events": reached.count, "hash": reached.hash, "head": str(reached)}
        print_json(value | {"state": seen.state})
    else:
        Screen().line(str(reached))
        if seen.problem:
            note(f"{seen.state}: {seen.problem}")
    return {"damaged": exits.DAMAGED, "too_new": exits.ERROR}.get(seen.state, exits.OK)
