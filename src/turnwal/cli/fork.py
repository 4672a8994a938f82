"""`turnwal fork`: a new session that shares a beginning."""

import click

from turnwal.cli import exits
from turnwal.cli.places import at, json_option, session_argument, store_option
from turnwal.cli.screen import Screen, print_json


@click.command(short_help="Begin a session with the events of another.")
@session_argument()
@session_argument("new")
@click.option(
    "--at", "count", metavar="COUNT", type=int, required=True, help="How many events to keep, from the first."
)
@store_option
@json_option
def fork(*, session: str, new: str, count: int, store: str | None, as_json: bool) -> int:
    """Begin the session NEW with the first COUNT events of SESSION, byte for byte.

    A place inside an open turn is refused: the fork would owe results for work that goes on elsewhere. So is a place
    past the end.
    """
    with at(session, store) as place, at(new, store, new=True) as target:
        head = place.sessions.fork(place.id, count, target.id, into=target.sessions)
    if as_json:
        print_json({"session": target.name, "parent": place.name, "at": count, "head": str(head)})
    else:
        Screen().line(f"{target.name}: forked from {place.name} behind {count} events")
        Screen().line(f"head  {head}")
    return exits.OK
