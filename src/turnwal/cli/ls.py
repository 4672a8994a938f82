"""`turnwal ls`: every session of a store with its state. One bad session never stops the listing."""

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import click

from turnwal.cli import exits
from turnwal.cli.places import STORE_DEFAULT, Place, json_option, store_of, store_option
from turnwal.cli.screen import Column, Screen, Span, note, print_json

if TYPE_CHECKING:
    from turnwal.session.inspection import Glance
    from turnwal.session.sessions import Sessions

_STYLES: Final = {
    "clean": "green",
    "open": "cyan",
    "waiting": "blue",
    "interrupted": "bold yellow",
    "damaged": "bold red",
    "too_new": "red",
    "unreadable": "red",
}


@click.command(short_help="List the sessions of a store and their states.")
@click.option("--interrupted", is_flag=True, help="Only sessions with interrupted work or damage; exits 3 or 4 if any.")
@store_option
@json_option
def ls(*, interrupted: bool, store: str | None, as_json: bool) -> int:
    """List the sessions of a store, with their states.

    A session is clean, open (its owner is alive), waiting (a call waits for an answer), interrupted, damaged, empty,
    too_new (a newer turnwal wrote it) or unreadable. Exits 4 when one is damaged, 1 when one is unreadable.
    """
    with store_of(store) as sessions:
        indexed = getattr(sessions.store, "interrupted", None) if interrupted else None
        found = [seen for _, seen in glances(sessions, None if indexed is None else indexed())]
    told = [glance for glance in found if not interrupted or glance.state in ("interrupted", "damaged")]
    if as_json:
        print_json([glance.to_json() for glance in told])
    elif told:
        _print(told)
    elif found or indexed:
        note("no session is interrupted")
    else:
        from turnwal.store.urls import shown

        note(f"no session in {shown(store or STORE_DEFAULT)}")
    states = {glance.state for glance in found}
    if "damaged" in states:
        return exits.DAMAGED
    if interrupted and "interrupted" in states:
        return exits.INTERRUPTED
    return exits.ERROR if "unreadable" in states else exits.OK


def glances(sessions: "Sessions", ids: Iterable[str] | None = None) -> Iterator[tuple[Place, "Glance"]]:
    """Each session of a store, or each that is named, with a glance at it, whatever is wrong with it.

    A file whose id cannot be known is a place of its own, named by its path.
    """
    from turnwal.session.sessions import Sessions
    from turnwal.store.plain import PlainFile

    for session in sessions if ids is None else ids:
        place = Place(sessions, session, session)
        yield place, _glance(place)
    for path in getattr(sessions.store, "strays", tuple)() if ids is None else ():
        file = PlainFile(path)
        place = Place(Sessions(file), file.session, os.path.relpath(path))
        yield place, _glance(place)


def _glance(place: Place) -> "Glance":
    from dataclasses import replace

    from turnwal.core.errors import HistoryError, TurnwalError
    from turnwal.session.inspection import Glance

    try:
        return replace(place.sessions.glance(place.id), id=place.name)
    except HistoryError as error:
        return Glance(place.name, "damaged", problem=error.message)
    except TurnwalError as error:
        return Glance(place.name, "unreadable", problem=f"{error.code}: {error.message}")
    except Exception as error:  # noqa: BLE001 - a foreign line may be odd in ways that nobody foresaw; the list goes on
        return Glance(place.name, "unreadable", problem=f"unexpected: {type(error).__name__}: {error}")


def _print(told: "list[Glance]") -> None:
    from turnwal.cli.telling import moment, seqs_text

    columns = [
        Column("session", shrinks=True),
        Column("state"),
        Column("unknown", right=True),
        Column("unstarted", right=True),
        Column("waits", right=True),
        Column("open", shrinks=True),
        Column("events", right=True),
        Column("last event"),
        Column("owner or problem", below=True),
    ]
    rows: list[list[Span]] = [
        [
            glance.id,
            (glance.state, _STYLES.get(glance.state, "")),
            str(glance.owed - glance.not_started or ""),
            str(glance.not_started or ""),
            str(glance.waiting or ""),
            seqs_text(glance.turns),
            str(glance.events),
            moment(glance.time),
            "; ".join(filter(None, (glance.owner, glance.problem))),
        ]
        for glance in told
    ]
    Screen().table(columns, rows)
