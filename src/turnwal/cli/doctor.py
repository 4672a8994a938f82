"""`turnwal doctor`: what happened in the sessions that other tools left, and which of their calls need a person.

Promises: nothing that is looked at is changed; one session that cannot be read never stops the others.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from turnwal.cli import exits
from turnwal.cli.places import json_option
from turnwal.cli.screen import Column, Screen, Span, note, print_json_list

if TYPE_CHECKING:
    from turnwal.formats.diagnosis import Diagnosis, OpenCall

_STYLES: Final = {
    "clean": "green",
    "waiting": "blue",
    "blind": "magenta",
    "interrupted": "bold yellow",
    "damaged": "bold red",
    "too_new": "red",
    "busy": "cyan",
    "unreadable": "red",
}
_CODES: Final = {
    "interrupted": exits.INTERRUPTED,
    "damaged": exits.DAMAGED,
    "busy": exits.HELD,
    "too_new": exits.ERROR,
    "unreadable": exits.ERROR,
}
_RISKS: Final = {"tool_outcome_unknown": "may have run", "tool_not_started": "did not start", None: "waits"}

RESUMES: Final = {
    "continues": "it goes on",
    "refused": "the provider refuses it",
    "hides": "the calls are hidden from the model",
    "runs_again": "the calls are run again",
    "invents_answer": "an answer is invented",
    "unknown": "it cannot be said",
}
"""What a person reads for each thing that a tool may do when the session is resumed."""

_SESSIONS: Final = (
    Column("session", shrinks=True),
    Column("tool"),
    Column("verdict"),
    Column("calls", right=True),
    Column("answered", right=True),
    Column("open", right=True),
    Column("damage", right=True),
    Column("resumed as it is"),
    Column("note", below=True),
)
_CALLS: Final = (
    Column("call", shrinks=True),
    Column("tool"),
    Column("was to do", shrinks=True),
    Column("proved"),
    Column("risk"),
    Column("because", below=True),
)
_NOTE_FAULTS: Final = 3
_INVENTED: Final = "The model takes the answers that the tool invented for what happened."
_WAIT: Final = "wait as far as the file shows; if a person has agreed since, they may have run."


@click.command(short_help="Say what happened in the session files of other tools.")
@click.argument("paths", metavar="PATH…", nargs=-1)
@click.option("--known", is_flag=True, help="Look in every place where the known tools keep sessions.")
@json_option
def doctor(*, paths: tuple[str, ...], known: bool, as_json: bool) -> int:
    """Say what the session files of other agent tools prove: which calls have no outcome, and what is known of each.

    PATH is a file, a database, a folder that is walked, or the URL of a PostgreSQL database; formats are known by
    content. Nothing is changed. Exits 3 where a call has no true outcome, 4 where a session is damaged, 5 where a tool
    holds its database, 1 where one could not be read.
    """
    from turnwal.formats.finding import known_places

    wanted: list[Path | str] = [*paths]
    if known:
        wanted += known_places()
        if not wanted:
            note("none of the known tools keeps sessions here")
    elif not wanted:
        raise click.UsageError("name a PATH, or say --known")
    codes: set[int] = set()
    diagnoses = _noted(_examined(wanted), codes)
    if as_json:
        print_json_list(diagnosis.to_json() for diagnosis in diagnoses)
    else:
        _print(list(diagnoses))
    return exits.worst_found(codes)


def _examined(paths: Iterable[Path | str]) -> "Iterator[Diagnosis]":
    """The diagnoses, with how far it got on standard error."""
    from turnwal.cli.progress import Progress
    from turnwal.formats.doctor import diagnose, unread
    from turnwal.formats.finding import Unread, find

    found = list(find(paths))
    counts: Counter[str] = Counter()
    with Progress("doctor", lambda: len(found)) as bar:
        for each in found:
            diagnosis = unread(each) if isinstance(each, Unread) else diagnose(each, now=time.time())
            counts[diagnosis.verdict] += 1
            yield diagnosis
            bar.advance(_short(counts))


def _noted(diagnoses: "Iterable[Diagnosis]", codes: set[int]) -> "Iterator[Diagnosis]":
    """The same, with the exit code of each noted."""
    for diagnosis in diagnoses:
        codes.add(_CODES.get(diagnosis.verdict, exits.OK))
        if any(fault.kind not in ("duplicate", "fused", "raw_newline", "too_new") for fault in diagnosis.damage):
            codes.add(exits.DAMAGED)
        yield diagnosis


def _short(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items())


def _print(diagnoses: "list[Diagnosis]") -> None:
    from turnwal.cli.telling import counted

    screen = Screen()
    if diagnoses:
        screen.table(_SESSIONS, [_row(diagnosis) for diagnosis in diagnoses])
    shown = [diagnosis for diagnosis in diagnoses if diagnosis.open]
    for diagnosis in shown:
        screen.line("")
        screen.line((_name(diagnosis), "bold"), f": {counted(len(diagnosis.open), 'call')} to look at")
        screen.table(_CALLS, [_call_row(call) for call in diagnosis.open])
        screen.line(_advice(diagnosis), wrap=True)
    counts: Counter[str] = Counter(diagnosis.verdict for diagnosis in diagnoses)
    if len(diagnoses) > 1:
        screen.line("")
        screen.line(f"{counted(len(diagnoses), 'session')}: {_short(counts)}", wrap=True)


def _row(diagnosis: "Diagnosis") -> list[Span]:
    read = diagnosis.verdict not in ("busy", "unreadable")
    return [
        _name(diagnosis),
        _title(diagnosis),
        (diagnosis.verdict, _STYLES[diagnosis.verdict]),
        str(diagnosis.calls) if read else "",
        str(diagnosis.answered) if read else "",
        str(len(diagnosis.open) or ""),
        str(len(diagnosis.damage) or ""),
        RESUMES[diagnosis.on_resume],
        _note(diagnosis),
    ]


def _name(diagnosis: "Diagnosis") -> str:
    from turnwal.formats.registry import format_of

    one = diagnosis.format is None or format_of(diagnosis.format).sessions is None
    return diagnosis.path if one or diagnosis.session is None else f"{diagnosis.path}#{diagnosis.session}"


def _title(diagnosis: "Diagnosis") -> str:
    from turnwal.formats.registry import format_of

    return "" if diagnosis.format is None else format_of(diagnosis.format).title


def _note(diagnosis: "Diagnosis") -> str:
    notes = [diagnosis.problem] if diagnosis.problem else []
    notes += [f"{fault.place}: {fault.kind} ({fault.what})" for fault in diagnosis.damage[:_NOTE_FAULTS]]
    if len(diagnosis.damage) > _NOTE_FAULTS:
        notes.append(f"{len(diagnosis.damage) - _NOTE_FAULTS:,} more faults, which --json lists")
    if diagnosis.unknown:
        unknown = ", ".join(f"{count:,} {name}" for name, count in sorted(diagnosis.unknown.items()))
        notes.append(f"records of unknown types: {unknown}")
    return "; ".join(notes)


def _call_row(call: "OpenCall") -> list[Span]:
    style = "bold red" if call.risk == "tool_outcome_unknown" else "yellow"
    because = "; ".join(call.because)
    run = "" if call.run == "main" else f" ({call.run})"
    return [
        call.id + run,
        call.name or "",
        call.arguments or "",
        call.evidence.replace("_", " "),
        (_RISKS[call.risk], style),
        because,
    ]


def _advice(diagnosis: "Diagnosis") -> str:
    from turnwal.formats.registry import format_of

    waits = any(call.evidence == "waiting" for call in diagnosis.open)
    if any(call.risk == "tool_outcome_unknown" for call in diagnosis.open):
        known = format_of(str(diagnosis.format))
        repaired = "" if known.repair is None else "; then `turnwal repair` writes a copy that says so"
        resumed = _INVENTED if diagnosis.on_resume == "continues" else known.resume_text
        others = f" Some {_WAIT}" if waits else ""
        return f"Before it goes on, look whether they happened{repaired}. {resumed}{others}"
    if not waits:
        return "None of them may have run."
    if all(call.evidence == "waiting" for call in diagnosis.open):
        return f"They {_WAIT}"
    return f"Some {_WAIT} None of the others may have run."
