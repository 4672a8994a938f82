"""The surface: the events that a model sees, in the order it sees them.

Promises:
- Derived from events alone; it filters nothing and re-stamps nothing, and nothing is removed from the log.
- An ordinary event extends it; only a replace rebuilds it.
- `check_replace` refuses a replace that would make the surface a lie: one that parts a call from its result, hides an
  owed or waiting call, cuts through an earlier replace, or covers nothing (F27).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from turnwal.core import keys
from turnwal.core.calls import id_of
from turnwal.core.errors import InvalidEvent
from turnwal.core.line import Event
from turnwal.core.scan import Scan
from turnwal.core.types import SURFACE


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
        if replaced is None:
            self._positions.append(event.seq)
            self._events.append(event)
            return
        start = bisect_left(self._positions, replaced[0])
        stop = bisect_left(self._positions, replaced[1] + 1)
        self._positions[start:stop] = [replaced[0]]
        self._events[start:stop] = [event]

    def within(self, first: int, last: int) -> list[Event]:
        """The visible events whose position lies between two seqs, both included."""
        return self._events[bisect_left(self._positions, first) : bisect_left(self._positions, last + 1)]


def range_of(data: Mapping[str, Any]) -> tuple[int, int] | None:
    """The range that an event replaces."""
    value = data.get("replace")
    return (value[0], value[1]) if isinstance(value, list) else None


def check_replace(events: Iterable[Event], type: str, data: Mapping[str, Any], run: str) -> None:
    """Return if an event with a `replace` may come after `events`; raise `InvalidEvent` naming the seqs if not."""
    first, last = range_of(data) or (0, -1)
    surface, scan = Surface(), Scan()
    scan.pairs = []
    for event in events:
        scan.feed(event)
        if event.run == run:
            surface.add(event)
    if type not in SURFACE:
        _refuse(first, last, f"a {type} is not on the surface, so it replaces nothing")
    covered = surface.within(first, last)
    if not covered:
        _refuse(first, last, "covers nothing that is visible in its run")
    for event in surface:
        earlier = range_of(event.data)
        if earlier is not None and (earlier[0] < first <= earlier[1] or earlier[0] <= last < earlier[1]):
            _refuse(first, last, f"cuts through the replace of [{earlier[0]}, {earlier[1]}] at seq {event.seq}")
    inside = {event.seq for event in covered}
    visible = {event.seq for event in surface}
    _check_pairs(scan.pairs, first, last, inside, visible, type, data, covered)
    for call in scan.run(run).unanswered():
        if keys.seq_of(call.key) in inside and (
            call.waiting is not None or (call.turn is not None and call.turn.seq >= 0)
        ):
            state = "waiting" if call.waiting is not None else "owed a result"
            _refuse(first, last, f"covers the call {keys.text(call.key)}, which is {state}")


def _check_pairs(
    pairs: list[tuple[int, int]],
    first: int,
    last: int,
    inside: set[int],
    visible: set[int],
    type: str,
    data: Mapping[str, Any],
    covered: list[Event],
) -> None:
    if type == "tool_result":
        answered = {seq: key for key, seq in pairs}
        for event in covered:
            key = answered.get(event.seq, keys.parse(event.data.get("call")))
            same = (
                key == keys.parse(data["call"])
                if "call" in data and key is not None
                else id_of(event.data) == id_of(data)
            )
            if event.type != "tool_result" or not same:
                _refuse(first, last, f"a result may replace only a result of its own call, not seq {event.seq}")
        return
    for key, result in pairs:
        asked = keys.seq_of(key)
        if {asked, result} <= visible and (asked in inside) != (result in inside):
            _refuse(first, last, f"parts the call {keys.text(key)} from its result at seq {result}")


def _refuse(first: int, last: int, why: str) -> None:
    message = f"the replace of [{first}, {last}] {why}"
    raise InvalidEvent(message, action="append", hint="choose a range that begins and ends between steps")
