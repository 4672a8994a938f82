"""`turnwal copy`: sessions from one store to another, byte for byte."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from turnwal.cli import exits
from turnwal.cli.places import json_option, store_of
from turnwal.cli.screen import Screen, Span, note

if TYPE_CHECKING:
    from turnwal.session.copying import Copy


@click.command(short_help="Copy sessions to another store.")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.argument("session", metavar="[SESSION]...", nargs=-1)
@click.option(
    "--copied",
    is_flag=True,
    help="Copy sessions with open work while their owners go on; such a copy says so at its end, and calls open there "
    "are never said to be not started.",
)
@click.option("--report", metavar="FILE", help="Write the JSON report to a new file as well.")
@json_option
def copy(*, source: str, target: str, session: tuple[str, ...], copied: bool, report: str | None, as_json: bool) -> int:
    """Copy sessions from the store FROM to the store TO, so that they keep every hash; all of them where none is named.

    Nothing in TO is written over. What is there with the same head is done, so a copy that was stopped or killed goes
    on when the same command is given again; another history under the same id is named and passed by (exit 1). A
    session with open work is owned meanwhile; where its owner is alive it is left out (exit 5), unless --copied is
    said. A damaged one is passed by (exit 4).
    """
    from turnwal.cli.fleet import Fleet, print_figures
    from turnwal.session.copying import CopyReport

    figures = CopyReport()
    fleet = Fleet("copy", as_json=as_json, report_to=report)
    with store_of(source) as origin, store_of(target) as into:
        code = fleet.run(
            lambda stop: origin.copy_all(into, session or None, copied=copied, stop=stop),
            figures,
            _lines,
            total=lambda: len(session) or sum(1 for _ in origin),
            unsaid="there",
        )
    if as_json:
        return code
    if any(figures.sessions.values()):
        Screen().line()
        print_figures(figures.sessions)
        Screen().line(f"{figures.events:,} events, {figures.bytes:,} bytes copied")
    elif code == exits.OK:
        note(f"no session in {source}")
    return code


def _lines(copy: "Copy") -> Iterator[tuple[Span, ...]]:
    """What is said of one session."""
    from turnwal.cli.telling import counted

    yield (f"; {counted(copy.events, 'event')}, head {copy.head}",) if copy.outcome == "copied" else ()
