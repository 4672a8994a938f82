"""The pass of `show` over a session, and the two forms it is printed in.

Promises: one pass, in order, holding nothing but what is open; events are printed as they are read. Following goes on
from the newest line that can be read, behind damage too.
"""

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from turnwal.cli.places import Place
from turnwal.cli.screen import Screen, Span, print_json
from turnwal.cli.telling import RESUMED, counted, gap_text, moment, tell_findings, tell_plan
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
    from collections.abc import Iterator, Mapping, Sequence

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
        self._sound: Record | None = None
        self._newest: Record | None = None
        self._shown_to = -1
        self._linked = True
        self._gaps: set[int] = set()

    @property
    def damaged(self) -> bool:
        """Whether something recorded was lost before records that are readable."""
        return not self._linked

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
            if self._newest is not None:
                self._go_on(self._newest)
            elif not store.probe(self._place.id).empty:
                self.events()

    def ending(self) -> None:
        """Print what recovery would append, and what is odd."""
        # without a head there is a first line that nothing can be appended to
        if self._seen.state in ("interrupted", "damaged") and self._seen.head is not None:
            self._form.ending(self._place.sessions.inspect(self._place.id))
        # what has no answer before a gap may have one behind it
        self._form.findings(final_findings(self._scan) if self._linked else list(self._scan.findings))

    def _go_on(self, last: Record) -> None:
        """Print what stands behind a record, whether the chain vouches for that record or not."""
        held: Gap | None = None
        for item in self._read_from(last):
            if isinstance(item, Record) and not self._linked and self._is_new(item) and item.event.type == "damage":
                # a person may have accepted the loss: what the chain vouches for is asked from before it
                self._ask_again()
                return
            if held is not None:
                self._item(held)
            held = item if isinstance(item, Gap) else None
            if isinstance(item, Record):
                self._item(item)
        if held is not None:
            self._item(held)

    def _ask_again(self) -> None:
        self._linked = True
        if self._sound is None:
            self.events()
            return
        for item in self._read_from(self._sound):
            self._item(item)

    def _read_from(self, record: Record) -> "Iterator[Record | Gap]":
        event = record.event
        head = Head(event.seq, event.prev) if event.seq else EMPTY
        return self._place.sessions.store.read(self._place.id, record.position, after=head, past_damage=True)

    def _is_new(self, record: Record) -> bool:
        return record.position > self._shown_to

    def _item(self, item: Record | Gap) -> None:
        if isinstance(item, Gap):
            self._linked = self._linked and not item.corrupt
            if item.position not in self._gaps:
                self._gaps.add(item.position)
                self._form.gap(item)
            return
        event = item.event
        sound = item.sound and self._linked
        asked: dict[int, str] = {}
        if sound and (self._sound is None or item.position > self._sound.position):
            self._sound = item
            self._scan.feed(event)
            if event.type == "assistant_message":
                asked = {index: keys.text(key) for index, key in self._scan.asked_last.items()}
        if sound or not self._linked:
            # what is readable in a torn tail is passed over: the next owner covers it
            self._newest = item
        if not self._is_new(item):
            return
        self._shown_to = item.position
        if event.seq >= self._since and self._run in (None, event.run):
            self._form.event(event, asked, sound=sound)


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
        self._screen.line(RESUMED)
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
