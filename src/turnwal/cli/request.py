"""`turnwal export --to`: the messages of a request, made of a session as recovery would leave it. Reads only.

Promises: nothing is written to the session and nobody is kept from it; what is not as it was recorded is said, never
done in silence.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from turnwal.cli.screen import dump, note

if TYPE_CHECKING:
    from turnwal.cli.places import Place
    from turnwal.core.findings import Finding
    from turnwal.core.line import Event
    from turnwal.session.inspection import Inspection
    from turnwal.transcript.check import Problem
    from turnwal.transcript.conversation import Outcomes, Waiting


@dataclass(frozen=True, slots=True)
class Wish:
    """What request somebody wants."""

    target: str
    run: str
    model: str | None
    waiting: "Waiting"
    outcomes: "Outcomes"
    partial: bool
    check: bool


@dataclass(frozen=True, slots=True)
class Made:
    """A request, what was changed on the way to it, and what its target would refuse of it."""

    body: dict[str, Any]
    messages: int
    findings: "tuple[Finding, ...]"
    problems: "list[Problem]"
    """Empty where nobody asked."""


def made(place: "Place", wish: Wish) -> Made:
    """The request. Raises `Damaged` where recovery would, `Refused` where calls wait, and `InvalidName` for a run that
    the session has not.
    """
    from turnwal.core.errors import InvalidName, Refused
    from turnwal.session.opening import damaged
    from turnwal.transcript.check import check
    from turnwal.transcript.render import renderer_of
    from turnwal.transcript.requesting import body

    view = place.sessions.inspect(place.id)
    if view.gap is not None and view.gap.corrupt:
        raise damaged(place.id, view.gap, action="export")
    renderer = renderer_of(wish.target, wish.run, model=wish.model, outcomes=wish.outcomes, partial=wish.partial)
    runs: dict[str, None] = {"main": None}
    renderer.conversation.feed_all(_noting_runs(view, runs))
    if wish.run not in runs:
        shown = ", ".join([*runs][:_RUNS_SHOWN]) + ", …" * (len(runs) > _RUNS_SHOWN)
        raise InvalidName("the session has no such run", action="export", subject=wish.run, hint=f"it has {shown}")
    try:
        rendering = renderer.render(waiting=wish.waiting)
    except Refused as error:
        error.hint = "answer them first (`turnwal approve`), or say --waiting placeholder"
        raise
    _note_state(place, view)
    problems = check(wish.target, rendering.messages, system=rendering.system) if wish.check else []
    return Made(body(wish.target, rendering), len(rendering.messages), rendering.findings, problems)


def told(kind: str, items: "Iterable[Finding | Problem]", *, as_json: bool) -> None:
    """Say findings or problems on standard error, a line each."""
    for item in items:
        fields = item.to_json()
        if as_json:
            sys.stderr.write(dump({kind: fields}) + "\n")
            continue
        seqs = fields.get("seqs")
        where = fields.get("position") or (f"at seq {', '.join(map(str, seqs))}" if seqs else "")
        note(f"{kind} {fields['code']}{f' {where}' if where else ''}: {fields['message']}")


_RUNS_SHOWN: Final = 10


def _noting_runs(events: "Iterable[Event]", runs: dict[str, None]) -> "Iterator[Event]":
    for event in events:
        runs[event.run] = None
        yield event


def _note_state(place: "Place", view: "Inspection") -> None:
    """Say where the request rests on what is not in the log."""
    if not view.plan:
        return
    owner = place.sessions.store.probe(place.id).owner
    if owner is None:
        note("interrupted: this is what a model would see after `turnwal recover`; nothing was written")
    else:
        note(f"open, writer alive ({owner}): this is what a model would see after a crash at this moment")
