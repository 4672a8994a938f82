"""The surface: the events that a model sees, in the order it sees them.

Promises:
- Derived from events alone; it filters nothing and re-stamps nothing, and nothing is removed from the log.
- An ordinary event extends it; only a replace rebuilds it.
- `check_replace` refuses a replace that would make the surface a lie: one that parts a call from its result, hides an
  owed or waiting call, cuts through an earlier replace, or covers nothing (F27).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from turnwal.core import keys
from turnwal.core.errors import InvalidEvent
from turnwal.core.line import Event
from turnwal.core.scan import Scan
from turnwal.core.types import SURFACE, is_range
from turnwal.core.values import id_of


class Surface:
    """The surface of one run."""

    def __init__(self) -> None:
        """Begin empty."""
        self._positions: list[int] = []
        self._events: list[Event] = []

    def __len__(self) -> int:
        """How many events are visible."""
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        """The visible events in the order a model sees them."""
        return iter(self._events)

    def add(self, event: Event) -> None:
        """Take the next event of the run in; one that no model sees changes nothing."""
        if event.type not in SURFACE:
            return
        replaced = range_of(event.data)
        if replaced is not None:
            start, stop = bisect_left(self._positions, replaced[0]), bisect_right(self._positions, replaced[1])
            self._positions[start:stop] = [replaced[0]]
            self._events[start:stop] = [event]
            return
        earlier = self._earlier_version(event)
        if earlier is not None:
            self._events[earlier] = event
            return
        at = bisect_right(self._positions, event.seq)
        self._positions.insert(at, event.seq)
        self._events.insert(at, event)

    def within(self, first: int, last: int) -> list[Event]:
        """The visible events whose position lies between two seqs, both included."""
        return self._events[bisect_left(self._positions, first) : bisect_right(self._positions, last)]

    def _earlier_version(self, event: Event) -> int | None:
        """Where the message stands that this one completes, if it is visible."""
        seq = event.data.get("completes")
        if event.type != "assistant_message" or not isinstance(seq, int):
            return None
        at = bisect_left(self._positions, seq)
        if at == len(self._events) or self._events[at].seq != seq:  # it is a later version itself
            at = next((at for at, visible in enumerate(self._events) if visible.seq == seq), len(self._events))
        return at if at < len(self._events) and self._events[at].type == "assistant_message" else None


def range_of(data: Mapping[str, Any]) -> tuple[int, int] | None:
    """The range that an event replaces."""
    value = data.get("replace")
    return (value[0], value[1]) if isinstance(value, list) and is_range(value) else None


def check_replace(events: Iterable[Event], type: str, data: Mapping[str, Any], run: str) -> None:
    """Return if an event with a `replace` may come after `events`; raise `InvalidEvent` naming the seqs if not."""
    if type not in SURFACE:
        message = f"a {type} is not on the surface, so it replaces nothing"
        raise InvalidEvent(message, action="append", hint=f"only these replace: {', '.join(sorted(SURFACE))}")
    first, last = range_of(data) or (0, -1)
    seen = _Pairs(run)
    for event in events:
        seen.feed(event)
    covered = seen.surface.within(first, last)
    if not covered:
        _refuse(first, last, "covers nothing that is visible in its run")
    for event in seen.surface:
        earlier = range_of(event.data)
        if earlier is not None and (earlier[0] < first <= earlier[1] or earlier[0] <= last < earlier[1]):
            _refuse(first, last, f"cuts through the replace of [{earlier[0]}, {earlier[1]}] at seq {event.seq}")
    if type == "tool_result":
        _check_same_call(seen, first, last, data, covered)
        return
    inside = {event.seq for event in covered}
    _check_pairs(seen, first, last, inside)
    hidden = {key for seq in inside for key in seen.asks.get(seq, ())}
    for call in seen.scan.run(run).unanswered():
        owed = call.owed and call.turn is not None and call.turn.seq >= 0
        if (call.key in hidden or keys.seq_of(call.key) in inside) and (owed or call.waiting is not None):
            state = "waiting" if call.waiting is not None else "owed a result"
            _refuse(first, last, f"covers the call {keys.text(call.key)}, which is {state}")


class _Pairs:
    """The surface of one run, and which calls each event asks for and answers."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.surface, self.scan = Surface(), Scan()
        self._new_asks: list[tuple[int, int]] = []
        self._new_answers: list[tuple[int, int]] = []
        self.scan.asks, self.scan.pairs = self._new_asks, self._new_answers
        self.asks: dict[int, set[int]] = {}
        """By seq of the message: the keys of the calls it asks for."""
        self.answers: dict[int, set[int]] = {}
        """By seq of the result: the keys of the calls it answers; a result that replaces another answers its call."""

    def feed(self, event: Event) -> None:
        """Take the next event of the log in."""
        self.scan.feed(event)
        for found, new in ((self.asks, self._new_asks), (self.answers, self._new_answers)):
            for key, seq in new:
                found.setdefault(seq, set()).add(key)
            new.clear()
        if event.run != self.run:
            return
        replaced = range_of(event.data)
        if event.type == "tool_result" and replaced is not None:
            self.answers[event.seq] = {
                key for covered in self.surface.within(*replaced) for key in self.answers.get(covered.seq, ())
            }
        self.surface.add(event)


def _check_same_call(seen: _Pairs, first: int, last: int, data: Mapping[str, Any], covered: list[Event]) -> None:
    named = keys.parse(data.get("call"))
    for event in covered:
        answered = seen.answers.get(event.seq) or {keys.parse(event.data.get("call"))} - {None}
        same = named in answered if answered and "call" in data else id_of(event.data) == id_of(data)
        if event.type != "tool_result" or not same:
            _refuse(first, last, f"a result may replace only a result of its own call, not seq {event.seq}")


def _check_pairs(seen: _Pairs, first: int, last: int, inside: set[int]) -> None:
    outside = {event.seq for event in seen.surface} - inside
    for asking, answering in ((inside, outside), (outside, inside)):
        asked = {key for seq in asking for key in seen.asks.get(seq, ())}
        for seq in sorted(answering):
            parted = asked & seen.answers.get(seq, set())
            if parted:
                _refuse(first, last, f"parts the call {keys.text(min(parted))} from its result at seq {seq}")


def _refuse(first: int, last: int, why: str) -> None:
    message = f"the replace of [{first}, {last}] {why}"
    raise InvalidEvent(message, action="append", hint="choose a range that begins and ends between steps")
