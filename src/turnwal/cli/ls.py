"""`turnwal ls`: every session of a store with its state. One bad session never stops the listing."""

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import click

from turnwal.cli import exits
from turnwal.cli.places import STORE_DEFAULT, json_option, store_of, store_option
from turnwal.cli.screen import Column, Screen, Span, note, print_json_list

if TYPE_CHECKING:
    from turnwal.session.inspection import Glance, State
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

_COLUMNS: Final = (
    Column("session", shrinks=True),
    Column("state"),
    Column("unknown", right=True),
    Column("unstarted", right=True),
    Column("waits", right=True),
    Column("open", shrinks=True),
    Column("events", right=True),
    Column("last event"),
    Column("owner or problem", below=True),
)


@click.command(short_help="List the sessions of a store and their states.")
@click.option("--interrupted", is_flag=True, help="Only sessions with interrupted work or damage; exits 3 or 4 if any.")
@store_option
@json_option
def ls(*, interrupted: bool, store: str | None, as_json: bool) -> int:
    """List the sessions of a store, with their states.

    A session is clean, open (its owner is alive), waiting (a call waits for an answer), interrupted, damaged, empty,
    too_new (a newer turnwal wrote it) or unreadable. Exits 4 when one is damaged, 1 when one is unreadable.
    """
    states: set[State] = set()
    with store_of(store) as sessions:
        indexed = interrupted and hasattr(sessions.store, "interrupted")
        told = (
            seen
            for seen in _noted(glances(sessions, interrupted=interrupted), states)
            if not interrupted or seen.state in ("interrupted", "damaged")
        )
        if as_json:
            print_json_list(glance.to_json() for glance in told)
        else:
            rows = [_row(glance) for glance in told]
            if rows:
                Screen().table(_COLUMNS, rows)
            elif states or indexed:
                note("no session is interrupted")
            else:
                from turnwal.store.urls import shown

                note(f"no session in {shown(STORE_DEFAULT if store is None else store)}")
    if "damaged" in states:
        return exits.DAMAGED
    if interrupted and "interrupted" in states:
        return exits.INTERRUPTED
    return exits.ERROR if "unreadable" in states else exits.OK


def glances(sessions: "Sessions", *, interrupted: bool = False) -> "Iterator[Glance]":
    """A glance at each session of a store, or at each that its index of open turns names, whatever is wrong with it.

    A file whose id cannot be known is named by its path.
    """
    from turnwal.session.fleet import members

    for sessions_of_one, id, name in members(sessions, interrupted=interrupted):
        yield _glance(sessions_of_one, id, name if name == id else os.path.relpath(name))


def _noted(seen: "Iterable[Glance]", states: "set[State]") -> "Iterator[Glance]":
    """The same, with each state noted: what is not told is not kept."""
    for glance in seen:
        states.add(glance.state)
        yield glance


def _glance(sessions: "Sessions", id: str, name: str) -> "Glance":
    from dataclasses import replace

    from turnwal.core.errors import HistoryError, TurnwalError
    from turnwal.session.inspection import Glance

    try:
        return replace(sessions.glance(id), id=name)
    except HistoryError as error:
        return Glance(name, "damaged", problem=error.message)
    except TurnwalError as error:
        return Glance(name, "unreadable", problem=f"{error.code}: {error.message}")
    except Exception as error:  # noqa: BLE001 - a foreign line may be odd in ways that nobody foresaw; the list goes on
        return Glance(name, "unreadable", problem=f"unexpected: {type(error).__name__}: {error}")


def _row(glance: "Glance") -> list[Span]:
    from turnwal.cli.telling import moment, seqs_text

    return [
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
