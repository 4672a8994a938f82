"""`turnwal recover`: append what closes interrupted work, once."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from turnwal.cli import exits
from turnwal.cli.places import Place, json_option, place_of, store_of, store_option
from turnwal.cli.screen import Screen, print_json

if TYPE_CHECKING:
    from turnwal.core.errors import TurnwalError
    from turnwal.core.line import Event
    from turnwal.core.recovery import Plan
    from turnwal.session.session import Session
    from turnwal.session.sessions import Sessions


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of one session."""

    name: str
    plan: "Plan | None"
    appended: "list[Event]"
    head: str

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        import msgspec

        plan = {"repairs": [], "findings": []} if self.plan is None else self.plan.to_json()
        appended = [msgspec.to_builtins(event) for event in self.appended]
        value = {"session": self.name, "recovered": bool(self.appended), "appended": appended}
        return value | {"repairs": plan["repairs"], "findings": plan["findings"], "head": self.head}


@click.command(short_help="Close what a crash left open, by appending.")
@click.argument("session", metavar="SESSION", required=False)
@click.option("--all", "everything", is_flag=True, help="Recover every session of the store; goes on past bad ones.")
@click.option("--accept-loss", is_flag=True, help="Go on behind damage that lost something, saying so in the log.")
@click.option(
    "--wait", metavar="S", type=click.FloatRange(min=0), default=0.0, help="Seconds to wait for an owner to go."
)
@store_option
@json_option
def recover(
    *, session: str | None, everything: bool, accept_loss: bool, wait: float, store: str | None, as_json: bool
) -> int:
    """Close what a crash left open in a session, by appending; nothing is cut and nothing rewritten.

    A second run finds nothing to do. A session whose owner is alive is left alone (exit 5), and so is a damaged one
    (exit 4) unless the loss is accepted. --all goes on past both and exits with the worst it met.
    """
    if everything == (session is not None):
        raise click.UsageError("name one SESSION, or say --all")
    if session is None:
        with store_of(store) as sessions:
            return _recover_all(sessions, accept_loss=accept_loss, wait=wait, as_json=as_json)
    place = place_of(session, store)
    with place.sessions:
        recovered = _recover(place, accept_loss=accept_loss, wait=wait)
    if as_json:
        print_json(recovered.to_json())
    else:
        _print(recovered)
    return exits.OK


def _recover_all(sessions: "Sessions", *, accept_loss: bool, wait: float, as_json: bool) -> int:
    from turnwal.cli.failing import report
    from turnwal.cli.ls import glances
    from turnwal.core.errors import TurnwalError

    codes = {exits.OK}
    idle = True
    for place, seen in glances(sessions):
        if seen.state in ("clean", "waiting", "empty"):
            continue
        idle = False
        try:
            recovered = _recover(place, accept_loss=accept_loss, wait=wait)
        except TurnwalError as error:
            _name(error, place.name)
            codes.add(report(error, as_json=as_json))
            continue
        if as_json:
            print_json(recovered.to_json())
        else:
            _print(recovered)
    if idle and not as_json:
        Screen().line(("nothing to do", "green"))
    return next(code for code in (exits.DAMAGED, exits.HELD, exits.ERROR, exits.OK) if code in codes)


def _name(error: "TurnwalError", name: str) -> None:
    if not error.subject:
        error.subject = name


def _recover(place: Place, *, accept_loss: bool, wait: float) -> Recovered:
    if place.sessions.store.probe(place.id).empty:
        return Recovered(place.name, None, [], "")
    with place.sessions.session(place.id, create=False, wait=wait, accept_loss=accept_loss) as session:
        return Recovered(place.name, session.recovered, _appended(place, session), str(session.head))


def _appended(place: Place, session: "Session") -> "list[Event]":
    """The batch that recovery made: the repairs, what says who goes on, and the damage before it."""
    if session.recovered is None:
        return []
    batch: list[Event] = []
    count = len(session.recovered.repairs) + 1
    for record in place.sessions.store.newest(place.id):
        if record is None or (len(batch) >= count and record.event.type != "damage"):
            break
        batch.append(record.event)
        if len(batch) > count:
            break
    return batch[::-1]


def _print(recovered: Recovered) -> None:
    from turnwal.cli.telling import tell_findings, tell_plan
    from turnwal.cli.words import text

    screen = Screen()
    if recovered.plan is None:
        screen.line((f"{recovered.name}: nothing to do", "green"))
        return
    first, last = recovered.appended[0].seq, recovered.appended[-1].seq
    screen.line((f"{recovered.name}: recovered", "bold green"), f"; appended seq {first} to {last}")
    for event in recovered.appended:
        if event.type == "damage":
            screen.line(("damage  ", "bold red"), text(event, {}))
    tell_plan(screen, recovered.plan)
    tell_findings(screen, recovered.plan.findings)
    screen.line(f"head  {recovered.head}")
