"""`turnwal verify`: the whole log, from the first byte to the last."""

from typing import TYPE_CHECKING, Any

import click

from turnwal.cli import exits
from turnwal.cli.places import at, json_option, session_argument, store_option
from turnwal.cli.screen import Screen, print_json

if TYPE_CHECKING:
    from turnwal.core.chain import Head
    from turnwal.session.verifying import Report


class HeadType(click.ParamType["Head"]):
    """COUNT:HASH on the command line."""

    name = "COUNT:HASH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> "Head":
        """Read a head; what is none is a usage error."""
        from turnwal.core.chain import Head
        from turnwal.core.errors import InvalidName

        try:
            return value if isinstance(value, Head) else Head.parse(value)
        except InvalidName as error:
            self.fail(f"{error.message}; {error.hint}", param, ctx)


@click.command(short_help="Check every byte of a session.")
@session_argument()
@click.option("--expect", type=HeadType(), help="A head that the log must have gone through, from `turnwal head`.")
@store_option
@json_option
def verify(*, session: str, expect: "Head | None", store: str | None, as_json: bool) -> int:
    """Check every byte of a session: the chain, the seqs, what each boundary says is open, and damage.

    Prints the count and the head. Exits 4 when bytes are no record and no event covers them, and 1 when the log is not
    the one that was expected. Interrupted work is no damage: a log may be interrupted and intact.
    """
    from turnwal.session.verifying import verify as check

    with at(session, store) as place:
        found = check(place.sessions.store, place.id, expect=expect)
    if as_json:
        value = {"session": place.name, **found.to_json()}
        print_json(value | ({"expected": None} if expect is None else {}))
    else:
        _print(place.name, found)
    if found.mismatch is not None:
        from turnwal.cli.failing import report

        found.mismatch.action, found.mismatch.subject = "verify", place.name
        report(found.mismatch, as_json=as_json)
    if found.gap is not None:
        return exits.DAMAGED
    return exits.ERROR if found.mismatch is not None or found.newer else exits.OK


def _print(name: str, found: "Report") -> None:
    from turnwal.cli.telling import counted, gap_text, seqs_text, tell_findings

    screen = Screen()
    screen.line(f"{name}: {counted(found.events, 'event')}")
    screen.line(f"head  {found.head}")
    if found.newer:
        screen.line(("too new  ", "red"), found.newer, "; only its place in the chain was checked", wrap=True)
    if found.gap is not None:
        screen.line(("damage  ", "bold red"), gap_text(found.gap), wrap=True)
        if not found.gap.readable and found.gap.kind == "torn":
            screen.line("It is the beginning of a line whose write was cut off: nothing acknowledged was lost there.")
    tell_findings(screen, found.findings)
    if found.owner is not None:
        screen.line(f"open, writer alive ({found.owner}): verified up to the head above", wrap=True)
    elif found.open_turns is None:
        screen.line("what is open at the end cannot be said: reading from there meets the damage too")
    elif found.open_turns:
        screen.line(
            f"interrupted work: the turn that began at seq {seqs_text(found.open_turns)} is open; that is no damage"
        )
    if found.intact:
        screen.line(("intact", "green") if found.events else "empty: it never began")
