"""`turnwal show`: a session as a timeline, what a crash left open, and damage in its place. Reads only."""

from typing import TYPE_CHECKING

import click

from turnwal.cli import exits
from turnwal.cli.places import Place, at, json_option, session_argument, store_option

if TYPE_CHECKING:
    from turnwal.cli.timeline import Shown
    from turnwal.session.inspection import Glance


@click.command(short_help="Print a session as a timeline.")
@session_argument()
@click.option("--follow", is_flag=True, help="Go on printing events as they come, until Ctrl-C. Needs no ownership.")
@click.option("--since", metavar="N", type=click.IntRange(min=0), default=0, help="Begin at this seq.")
@click.option("--run", metavar="NAME", help="Only this run: main, or the call that a sub-agent serves.")
@store_option
@json_option
def show(*, session: str, follow: bool, since: int, run: str | None, store: str | None, as_json: bool) -> int:
    """Print a session event by event, then what recovery would append to it.

    Reads on past damage and marks it in its place (exit 4), be it in turns that ended long ago. While an owner is alive
    nothing is called interrupted. With --json there is one object a line.
    """
    with at(session, store) as place:
        seen = place.sessions.glance(place.id)
        shown = _shown(place, seen, as_json=as_json, since=since, run=run)
        try:
            shown.header()
            if seen.state != "empty":
                shown.events()
            if follow:
                shown.follow()
        except KeyboardInterrupt:
            if not follow:
                raise
            return exits.OK
        shown.ending()
    if shown.damaged or seen.state == "damaged":
        return exits.DAMAGED
    return exits.ERROR if seen.state == "too_new" else exits.OK


def _shown(place: Place, seen: "Glance", *, as_json: bool, since: int, run: str | None) -> "Shown":
    from turnwal.cli.timeline import JsonLines, Shown, Timeline

    return Shown(place, seen, JsonLines() if as_json else Timeline(seen), since=since, run=run)
