"""The pass of `show` over a session, and the two forms it is printed in.

Promises: one pass, in order, holding nothing but what is open; events are printed as they are read.
"""

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from turnwal.cli.places import Place
from turnwal.cli.screen import Screen, Span, print_json
from turnwal.cli.telling import counted, gap_text, moment, tell_findings, tell_plan
from turnwal.cli.words import STYLES, text, word
from turnwal.core import keys
from turnwal.core.chain import EMPTY, Head
from turnwal.core.findings import Finding
from turnwal.core.line import Event
from turnwal.core.recovery import final_findings
from turnwal.core.scan import Scan
from turnwal.session.inspection import Glance
from turnwal.session.verifying import gap_to_json
from turnwal.store.protocol import Gap, Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from turnwal.session.inspection import Inspection

_POLL_S: Final = 0.2
_MINUTE: Final = 60
_WORD_WIDTH: Final = 9
_OFFSET_WIDTH: Final = 10
_LANE_WIDTH: Final = 6


class Form(Protocol):
    """How the parts of a session are printed."""

    def header(self, seen: Glance) -> None:
        """What state the session is in."""
        ...

    def event(self, event: Event, asked: "Mapping[int, str]", *, sound: bool) -> None:
        """One event; `asked` has the keys of the calls that it asks for."""
        ...

    def gap(self, gap: Gap) -> None:
        """Bytes that are no record, in their place."""
        ...

    def ending(self, view: "Inspection") -> None:
        """What recovery would append."""
        ...

    def findings(self, found: "Sequence[Finding]") -> None:
        """What is odd."""
        ...


class Shown:
    """One session, read once from its first event to its last and then followed."""

    def __init__(self, place: Place, seen: Glance, form: Form, *, since: int, run: str | None) -> None:
        """Show the events from a seq on, and only those of one run if it is named."""
        self._place = place
        self._seen = seen
        self._form = form
        self._since = since
        self._run = run
        self._scan = Scan()
        self._last: Record | None = None
        self._gaps: set[int] = set()

    def header(self) -> None:
        """Print what state the session is in."""
        self._form.header(replace(self._seen, id=self._place.name))

    def events(self) -> None:
        """Print what is stored, past damage too."""
        for item in self._place.sessions.store.read(self._place.id, past_damage=True):
            self._item(item)

    def follow(self) -> None:
        """Print what is appended from now on; never returns."""
        store = self._place.sessions.store
        while True:
            sys.stdout.flush()
            time.sleep(_POLL_S)
            if self._last is None:
                if not store.probe(self._place.id).empty:
                    self.events()
                continue
            last = self._last.event
            head = Head(last.seq, last.prev) if last.seq else EMPTY
            for item in store.read(self._place.id, self._last.position, after=head):
                if isinstance(item, Gap) or item.event.seq > last.seq:
                    self._item(item)

    def ending(self) -> None:
        """Print what recovery would append, and what is odd."""
        if self._seen.state in ("interrupted", "damaged"):
            self._form.ending(self._place.sessions.inspect(self._place.id))
        self._form.findings(final_findings(self._scan))

    def _item(self, item: Record | Gap) -> None:
        if isinstance(item, Gap):
            if item.position not in self._gaps:
                self._gaps.add(item.position)
                self._form.gap(item)
            return
        event = item.event
        asked: dict[int, str] = {}
        if item.sound:
            self._last = item
            self._scan.feed(event)
            if event.type == "assistant_message":
                asked = {index: keys.text(key) for index, key in self._scan.asked_last.items()}
        if event.seq >= self._since and self._run in (None, event.run):
            self._form.event(event, asked, sound=item.sound)


class JsonLines:
    """One JSON object a line: its `kind`, and under that name what it is about."""

    def header(self, seen: Glance) -> None:
        """Kind `session`."""
        print_json({"kind": "session", "session": seen.to_json()})

    def event(self, event: Event, asked: "Mapping[int, str]", *, sound: bool) -> None:
        """Kind `event`."""
        del asked
        print_json({"kind": "event", "sound": sound, "event": msgspec.to_builtins(event)})

    def gap(self, gap: Gap) -> None:
        """Kind `damage`."""
        print_json({"kind": "damage", "damage": gap_to_json(gap)})

    def ending(self, view: "Inspection") -> None:
        """Kind `repair`, one for each."""
        for repair in view.plan.repairs:
            print_json({"kind": "repair", "repair": repair.to_json()})

    def findings(self, found: "Sequence[Finding]") -> None:
        """Kind `finding`, one for each."""
        for finding in found:
            print_json({"kind": "finding", "finding": finding.to_json()})


class Timeline:
    """Lines for people: seq, time since the first event, word, run, text."""

    def __init__(self, seen: Glance) -> None:
        """Make room for the seqs that the session has."""
        self._screen = Screen()
        self._width = max(len(str(seen.events)), 3)
        self._began: int | None = None

    def header(self, seen: Glance) -> None:
        """Name, state and size; when an owner is alive, who it is."""
        line = self._screen.line
        if seen.owner is not None and seen.state in ("open", "empty"):
            line((f"{seen.id}: open, writer alive", "bold cyan"), f" ({seen.owner})", wrap=True)
        else:
            line((f"{seen.id}: {seen.state}", "bold"), f"; {seen.problem}" if seen.problem else "", wrap=True)
        facts = [counted(seen.events, "event"), f"last at {moment(seen.time)}" if seen.time else ""]
        facts += [counted(len(seen.turns), "open turn") if seen.turns else ""]
        facts += [f"{counted(seen.owed, 'call')} without a result" if seen.owed else ""]
        facts += [f"{counted(seen.waiting, 'call')} waiting" if seen.waiting else ""]
        line(", ".join(filter(None, facts)))

    def event(self, event: Event, asked: "Mapping[int, str]", *, sound: bool) -> None:
        """One line."""
        if self._began is None:
            self._began = event.time
        style = STYLES.get(event.type, "") if sound else "dim"
        lane = "" if event.run == "main" else event.run
        spans: list[Span] = [
            (f"{event.seq:>{self._width}}  {offset(event.time - self._began):>{_OFFSET_WIDTH}}  ", "dim"),
            (f"{word(event):<{_WORD_WIDTH}}  ", style),
            (f"{lane:<{_LANE_WIDTH}}  ", "blue"),
            "" if sound else ("not linked  ", "red"),
            text(event, asked),
        ]
        self._screen.line(*spans)

    def gap(self, gap: Gap) -> None:
        """A marked line."""
        self._screen.line((f"{'!!!':>{self._width}}  damage  ", "bold red"), gap_text(gap), wrap=True)

    def ending(self, view: "Inspection") -> None:
        """A marked block."""
        if view.gap is not None and view.gap.corrupt:
            self._screen.line(("--- damaged: what `recover --accept-loss` would append ---", "bold red"))
        else:
            self._screen.line(("--- interrupted here: what recovery would append ---", "bold yellow"))
        tell_plan(self._screen, view.plan)

    def findings(self, found: "Sequence[Finding]") -> None:
        """A line for each."""
        tell_findings(self._screen, found)


def offset(milliseconds: int) -> str:
    """A time since the beginning, as short as its size allows."""
    sign = "-" if milliseconds < 0 else "+"
    seconds, rest = divmod(abs(milliseconds), 1_000)
    if seconds < _MINUTE:
        return f"{sign}{seconds}.{rest:03}s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    clock = f"{hours}:{minutes:02}:{seconds:02}" if hours or days else f"{minutes}:{seconds:02}"
    return f"{sign}{days}d {clock}" if days else f"{sign}{clock}"
