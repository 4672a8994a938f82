"""`turnwal repair`: a repaired copy of another tool's session, which the tool loads. The original is untouched."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from turnwal.cli import exits
from turnwal.cli.foreign import one_of, pick_option
from turnwal.cli.places import json_option
from turnwal.cli.screen import Screen, note, print_json

if TYPE_CHECKING:
    from turnwal.formats.diagnosis import Diagnosis
    from turnwal.formats.format import Found


@click.command(short_help="Write a repaired copy of another tool's session.")
@click.argument("path", metavar="PATH")
@click.option("-o", "--out", metavar="OUT", required=True, help="Where the copy goes: a path that is not there yet.")
@pick_option
@click.option(
    "--live", is_flag=True, help="Also one that was written to a moment ago, as the tool is known not to run."
)
@json_option
def repair(*, path: str, out: str, pick: str | None, live: bool, as_json: bool) -> int:
    """Write a copy of the session at PATH in which every call has an answer, in the tool's own format.

    A call without an outcome is answered by what is known: that it may have run, or that it did not start. PATH stays
    as it is. A copy of a session with nothing to repair is that session; the repair of a copy is that copy. One that
    was written to a moment ago is refused: its tool may still be at work.
    """
    from turnwal.formats.doctor import diagnose, write_copy
    from turnwal.formats.liveness import written_ago

    found = one_of(path, pick, action="repair")
    ago = None if live else written_ago(found, time.time())
    diagnosis = diagnose(found)
    if ago is not None and diagnosis.verdict == "interrupted":
        _refuse(
            found,
            f"it was written to {ago:.0f} s ago, so its tool may still be at work",
            "end the tool, and say --live if it has ended",
        )
    if diagnosis.verdict in ("busy", "unreadable", "too_new"):
        _refuse(found, f"it is {diagnosis.verdict} ({_why(diagnosis)})", "`turnwal doctor` says more")
    write_copy(found, diagnosis, Path(out))
    _tell(diagnosis, found, out, as_json=as_json)
    return exits.OK


def _why(diagnosis: "Diagnosis") -> str:
    return diagnosis.problem or next((fault.what for fault in diagnosis.damage if fault.kind == "too_new"), "")


def _refuse(found: "Found", message: str, hint: str) -> NoReturn:
    from turnwal.core.errors import Refused

    raise Refused(message, action="repair", subject=found.name, hint=hint)


def _tell(diagnosis: "Diagnosis", found: "Found", out: str, *, as_json: bool) -> None:
    from turnwal.cli.telling import counted

    closed = [call for call in diagnosis.open if call.evidence != "waiting"]
    waiting = len(diagnosis.open) - len(closed)
    if as_json:
        calls = [call.to_json() for call in closed]
        print_json({"path": diagnosis.path, "out": out, "format": found.format.name, "answered": calls})
        return
    screen = Screen()
    for call in closed:
        screen.line(
            f"{call.id}  {call.name or ''}: answered as ",
            "unknown" if call.risk != "tool_not_started" else "not started",
            wrap=True,
        )
    screen.line(f"{out}: {counted(len(closed), 'call')} answered", wrap=True)
    if waiting:
        note(f"{counted(waiting, 'call')} waiting by design, left as it is")
