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
    """COUNT:HASH, or a file that holds one, on the command line."""

    name = "HEAD"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> "Head":
        """Read a head; what is none, and names no file with one, is a usage error."""
        from turnwal.core.chain import Head
        from turnwal.core.errors import InvalidName

        if isinstance(value, Head):
            return value
        try:
            return Head.parse(value)
        except InvalidName as error:
            found = _in_file(value)
            if found is None:
                self.fail(f"{error.message}, and names no file with one; {error.hint}", param, ctx)
            return found


def _in_file(path: str) -> "Head | None":
    """The newest head in a file, None where there is none."""
    from turnwal.core.kept import SLOT_BYTES, SLOTS, heads_in, newest

    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a path that is none is not found, whatever it holds
            return newest(heads_in(file.read(SLOTS * SLOT_BYTES)))
    except (OSError, ValueError):
        return None


@click.command(short_help="Check every byte of a session.")
@session_argument()
@click.option(
    "--expect",
    type=HeadType(),
    help="A head that the log must have gone through: COUNT:HASH, or a file from `head --save`.",
)
@store_option
@json_option
def verify(*, session: str, expect: "Head | None", store: str | None, as_json: bool) -> int:
    """Check every byte of a session: the chain, the seqs, what each boundary says is open, and damage.

    Prints the count and the head. Exits 4 when bytes are no record and no event covers them, and when the log is not
    the one that --expect, or the head that its store keeps, was taken from. Interrupted work is no damage. A log is
    called intact only where a head from elsewhere names its end: a shorter chain is a valid chain.
    """
    from turnwal.session.verifying import verify as check

    with at(session, store) as place:
        found = check(place.sessions.store, place.id, expect=expect)
    if as_json:
        value = {"session": place.name, **found.to_json()}
        print_json(value | ({"expected": None} if expect is None and found.kept is None else {}))
    else:
        _print(place.name, found)
    if found.mismatch is not None:
        from turnwal.cli.failing import report

        found.mismatch.action, found.mismatch.subject = "verify", place.name
        report(found.mismatch, as_json=as_json)
    if not found.sound:
        return exits.DAMAGED
    return exits.ERROR if found.newer else exits.OK


def _print(name: str, found: "Report") -> None:
    from turnwal.cli.telling import counted, gap_text, seqs_text, tell_findings
    from turnwal.core.breaks import SENTENCES

    screen = Screen()
    screen.line(f"{name}: {counted(found.events, 'event')}")
    screen.line(f"head  {found.head}")
    if found.newer:
        screen.line(("too new  ", "red"), found.newer, "; only its place in the chain was checked", wrap=True)
    if found.gap is not None:
        screen.line(("damage  ", "bold red"), gap_text(found.gap), wrap=True)
        if not found.gap.corrupt and found.gap.kind == "torn":
            screen.line("It is the beginning of a line whose write was cut off: nothing acknowledged was lost there.")
    if found.looks is not None:
        screen.line("it looks as if ", SENTENCES[found.looks], wrap=True)
    tell_findings(screen, found.findings)
    if found.owner is not None:
        screen.line(f"open, writer alive ({found.owner}): verified up to the head above", wrap=True)
    elif found.open_turns is None:
        screen.line("what is open at the end cannot be said: reading from there meets the damage too")
    elif found.open_turns:
        screen.line(
            f"interrupted work: the turn that began at seq {seqs_text(found.open_turns)} is open; that is no damage"
        )
    if found.sound:
        _print_end(screen, found)


def _print_end(screen: Screen, found: "Report") -> None:
    """Print what can be said of the end of a log in which nothing is wrong."""
    from turnwal.cli.telling import counted

    if not found.events:
        screen.line("empty: it never began")
        return
    if found.verdict == "intact":
        screen.line(("intact", "green"), ": a head that is kept elsewhere names the last event")
        return
    sound = ("sound", "green")
    if found.anchor is None:
        rest = "; the tail is not verifiable: no head is kept elsewhere, so nobody can say whether events are missing"
        screen.line(sound, f"{rest} at the end (`turnwal head --save` keeps one)", wrap=True)
        return
    if found.doubtful:
        rest = ": one of the two places of the kept head cannot be read, so that a newer one may be lost; the tail"
        screen.line(sound, f"{rest} behind {counted(found.anchor.count, 'event')} is not verifiable", wrap=True)
        return
    behind = counted(found.head.count - found.anchor.count, "event")
    rest = f", and nothing is missing up to the head that was kept at {counted(found.anchor.count, 'event')}"
    screen.line(sound, f"{rest}; the tail of {behind} behind it is not verifiable", wrap=True)
