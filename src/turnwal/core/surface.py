"""The surface: the events that a model sees, in the order it sees them.

Promises:
- Derived from events alone; it filters nothing and re-stamps nothing, and nothing is removed from the log.
- An ordinary event extends it; only a replace rebuilds it.

Does not: judge a replace; see `replacing.py`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import Any, overload

from turnwal.core.line import Event
from turnwal.core.types import SURFACE, is_range


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

    @overload
    def __getitem__(self, index: int) -> Event: ...

    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...

    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        """The visible event at an index, from 0, or those of a slice."""
        return self._events[index]

    def add(self, event: Event) -> int | None:
        """Take the next event of the run in; returns the index from which the surface changed.

        None for one that no model sees: nothing changed.
        """
        if event.type not in SURFACE:
            return None
        data, positions, seq = event.data, self._positions, event.seq
        replaced = range_of(data) if "replace" in data else None
        if replaced is not None:
            start, stop = bisect_left(positions, replaced[0]), bisect_right(positions, replaced[1])
            positions[start:stop] = [replaced[0]]
            self._events[start:stop] = [event]
            return start
        earlier = self._earlier_version(event) if "completes" in data else None
        if earlier is not None:
            self._events[earlier] = event
            return earlier
        at = bisect_right(positions, seq) if positions and positions[-1] > seq else len(positions)
        positions.insert(at, seq)
        self._events.insert(at, event)
        return at

    def position(self, index: int) -> int:
        """The seq whose place the visible event at an index has: its own, or that of what it replaces or completes."""
        return self._positions[index]

    def before(self, seq: int) -> int:
        """The index of the last visible event whose position is not behind a seq; -1 where there is none."""
        return bisect_right(self._positions, seq) - 1

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
