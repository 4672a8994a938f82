"""`turnwal plan`: what recovery would append and why, with nothing written."""

from typing import TYPE_CHECKING

import click

from turnwal.cli import exits
from turnwal.cli.places import at, json_option, session_argument, store_option
from turnwal.cli.screen import Screen, print_json

if TYPE_CHECKING:
    from turnwal.cli.places import Place
    from turnwal.session.inspection import Inspection


@click.command(short_help="Show what recovery would append, and why.")
@session_argument()
@click.option("--strict", is_flag=True, help="Call unknown what the log lets only infer to be not started.")
@store_option
@json_option
def plan(*, session: str, strict: bool, store: str | None, as_json: bool) -> int:
    """Show what recovery would append to a session, and why. Writes nothing.

    Each lost call has a class, the rule that gives it, the seqs the rule rests on, and how the call may be repeated.
    Exits 3 when there is interrupted work, 4 when there is damage, and 5 when an owner is alive: then nothing is
    interrupted, and the plan says what a crash at this moment would leave.
    """
    from turnwal.session.opening import is_empty

    with at(session, store) as place:
        presence = place.sessions.store.probe(place.id)
        if presence.empty and is_empty(place.sessions.store, place.id, "plan"):
            return _empty(place, presence.owner, as_json=as_json)
        view = place.sessions.inspect(place.id, strict=strict)
        owner = place.sessions.store.probe(place.id).owner
    (_print_json if as_json else _print)(place, view, owner)
    if view.gap is not None and view.gap.corrupt:
        return exits.DAMAGED
    if owner is not None:
        return exits.HELD
    return exits.INTERRUPTED if view.plan or view.gap is not None else exits.OK


def _empty(place: "Place", owner: str | None, *, as_json: bool) -> int:
    if as_json:
        value = {"session": place.name, "interrupted": False, "repairs": [], "findings": []}
        print_json(value | {"owner": owner, "damage": None, "appended": 0})
    else:
        Screen().line(f"{place.name}: empty, it never began; nothing to do")
    return exits.OK if owner is None else exits.HELD


def _print_json(place: "Place", view: "Inspection", owner: str | None) -> None:
    from turnwal.session.verifying import gap_to_json

    damage = None if view.gap is None else gap_to_json(view.gap)
    unfinished = bool(view.plan) or damage is not None
    value = view.plan.to_json() | {"interrupted": unfinished and owner is None}
    print_json({"session": place.name, **value, "owner": owner, "damage": damage, "appended": _appended(view)})


def _print(place: "Place", view: "Inspection", owner: str | None) -> None:
    from turnwal.cli.telling import RESUMED, gap_text, tell_findings, tell_plan

    screen = Screen()
    corrupt = view.gap is not None and view.gap.corrupt
    if owner is not None:
        screen.line(
            (f"{place.name}: open, writer alive", "bold cyan"), f" ({owner}); nothing is interrupted", wrap=True
        )
        if view.plan:
            screen.line(f"after a crash at this moment recovery would append {_count(view)}:", wrap=True)
    elif corrupt:
        screen.line((f"{place.name}: damaged", "bold red"), "; this is what `recover --accept-loss` would append")
    elif view.plan or view.gap is not None:
        screen.line((f"{place.name}: interrupted", "bold yellow"), f"; recovery would append {_count(view)}")
    else:
        screen.line((f"{place.name}: nothing to do", "green"))
    if view.gap is not None:
        screen.line(("damage  ", "bold red"), gap_text(view.gap), wrap=True)
    if _appended(view):
        screen.line(RESUMED)
    tell_plan(screen, view.plan)
    tell_findings(screen, view.plan.findings)


def _count(view: "Inspection") -> str:
    from turnwal.cli.telling import counted

    return counted(_appended(view), "event")


def _appended(view: "Inspection") -> int:
    """How many events recovery would append: the damage, who goes on, and the repairs; 0 for nothing to do."""
    damage = view.gap is not None
    return damage + 1 + len(view.plan.repairs) if damage or view.plan else 0
