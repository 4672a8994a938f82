"""`turnwal recover`: append what closes interrupted work, once."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from turnwal.cli import exits
from turnwal.cli.places import Place, json_option, place_of, store_of, store_option
from turnwal.cli.screen import Column, Screen, Span, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnwal.cli.fleet import Fleet
    from turnwal.core.line import Event
    from turnwal.core.recovery import Plan
    from turnwal.session.fleet_report import FleetReport, Recovery
    from turnwal.session.session import Session
    from turnwal.session.sessions import Sessions

_TOOLS: Final = (
    Column("calls to", shrinks=True),
    Column("outcome unknown", right=True),
    Column("did not start (declared)", right=True),
    Column("did not start (inferred)", right=True),
)


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
@click.option("--all", "everything", is_flag=True, help="Recover every interrupted session of the store.")
@click.option("--accept-loss", is_flag=True, help="Go on behind damage that lost something, saying so in the log.")
@click.option(
    "--wait", metavar="S", type=click.FloatRange(min=0), default=0.0, help="Seconds to wait for owners to go."
)
@click.option("--report", metavar="FILE", help="With --all: write the JSON report to a new file as well.")
@store_option
@json_option
def recover(
    *,
    session: str | None,
    everything: bool,
    accept_loss: bool,
    wait: float,
    report: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Close what a crash left open in a session, by appending; nothing is cut and nothing rewritten.

    A second run finds nothing to do. A session whose owner is alive is left alone (exit 5), and so is a damaged one
    (exit 4) unless the loss is accepted. --all goes on past both, ends with a table, and exits with the worst it met;
    it may run on several machines at once, and be stopped and begun again.
    """
    if everything == (session is not None):
        raise click.UsageError("name one SESSION, or say --all")
    if report is not None and session is not None:
        raise click.UsageError("--report is the report of --all")
    if session is None:
        from turnwal.cli.fleet import Fleet

        fleet = Fleet("recover", as_json=as_json, report_to=report)
        with store_of(store) as sessions:
            return _recover_all(sessions, fleet, accept_loss=accept_loss, wait=wait, as_json=as_json)
    place = place_of(session, store)
    with place.sessions:
        recovered = _recover(place, accept_loss=accept_loss, wait=wait)
    if as_json:
        print_json(recovered.to_json())
    else:
        _print(recovered)
    return exits.OK


def _recover_all(sessions: "Sessions", fleet: "Fleet", *, accept_loss: bool, wait: float, as_json: bool) -> int:
    from turnwal.cli.fleet import print_figures
    from turnwal.session.fleet import members
    from turnwal.session.fleet_report import FleetReport

    figures = FleetReport()
    code = fleet.run(
        lambda stop: sessions.recover_all(accept_loss=accept_loss, wait=wait, stop=stop),
        figures,
        _lines,
        total=lambda: sum(1 for _ in members(sessions, interrupted=True)),
        unsaid="nothing_to_do",
    )
    if as_json:
        return code
    if figures.looked_at > figures.sessions["nothing_to_do"]:
        Screen().line()
        print_figures(figures.sessions)
        _print_calls(figures)
    elif code == exits.OK:
        Screen().line(("nothing to do", "green"))
    return code


def _lines(recovery: "Recovery") -> "Iterator[tuple[Span, ...]]":
    """What is said of one session: how many calls were lost, and each that may have run."""
    from turnwal.cli.telling import counted
    from turnwal.cli.words import RETRIES, risk_of

    unknown = [call for call in recovery.calls if call.may_have_run]
    unstarted = len(recovery.calls) - len(unknown)
    facts = [f"{counted(len(unknown), 'call')} may have run" if unknown else ""]
    facts += [f"{unstarted:,} did not start" if unstarted else ""]
    said = ", ".join(filter(None, facts))
    yield (f"; {said}",) if said else ()
    for call in unknown:
        attempt = f", attempt {call.attempt}" if call.attempt > 1 else ""
        risk = risk_of({"risk": call.risk, "basis": call.basis})
        name = f"  call {call.call} {call.name or ''}".rstrip()
        yield (f"{name} (id {call.id}{attempt}): ", (risk, "bold red"), f"; {RETRIES[call.retry]}")


def _print_calls(figures: "FleetReport") -> None:
    calls = figures.calls()
    if calls:
        screen = Screen()
        screen.line()
        rows = [
            [name, *(f"{counts[basis]:,}" for basis in ("unknown", "declared", "inferred"))] for name, counts in calls
        ]
        screen.table(_TOOLS, rows)


def _recover(place: Place, *, accept_loss: bool, wait: float) -> Recovered:
    from turnwal.session.opening import is_empty

    if is_empty(place.sessions.store, place.id, "recover"):
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
