"""The tree that the records of a file hang in, in a few bytes a record.

Promises:
- `strict` is the chain that the tool shows to the model: from the newest leaf up by `parentUuid`, never across a
  compaction, with the lines of the same API message.
- `bridged` is the same and more: it goes on above a compaction, and where a parent is missing at the record before.
- A circle of parents ends a walk; it is named once.

Source of the rules: `_build_conversation_chain` of claude-agent-sdk-python 0.2.189.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

SPOKEN: Final = 1
"""A record of the user or the assistant."""
BARRED: Final = 2
"""One that the tool takes for no leaf: of a sub-agent, of a team, or not meant for a person."""
ASIDE: Final = 4
"""One of a sub-agent."""
PROGRESS: Final = 8
"""One that only shows progress: a fork leaves it out."""
DROPPED: Final = 16
"""One that a repaired copy leaves out."""

NONE: Final = -1


class Tree:
    """The records of one file that have a `uuid`, by their number in the order of the file."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        """By the hash of its `uuid`: the number of each record."""
        self.up = array("q")
        """The number of the parent, or `NONE`."""
        self.flags = bytearray()
        self._speaking = array("q")
        """The records that are a line of an API message, and the hash of which one."""
        self._messages = array("q")
        self._across: dict[int, int] = {}
        """Of a compaction: the hash of the record before it."""
        self._pending: dict[int, tuple[int, int]] = {}
        """Of records whose parent is not there yet: its hash, and the line of the record."""
        self._lanes: dict[int, int] = {}
        self._lane_count = 0
        self.broken: dict[int, tuple[int, str]] = {}
        """Records whose parent is missing or in a circle, with the line and what is wrong; filled by `settle`."""
        self._bridges: dict[int, int] = {}
        """The parents that they have instead."""

    def __len__(self) -> int:
        return len(self.up)

    def __contains__(self, uuid: str) -> bool:
        return hash(uuid) in self.numbers

    def add(self, uuid: str, parent: str | None, line: int, flags: int) -> int:
        """Take the next record; returns its number, or `NONE` for a copy of one that is there."""
        numbers = self.numbers
        key, number = hash(uuid), len(self.flags)
        if numbers.setdefault(key, number) != number:
            return NONE
        up = NONE
        if parent is not None:
            above = hash(parent)
            up = numbers.get(above, NONE)
            if up == NONE or up == number:  # noqa: PLR1714, SIM109 - a hot path
                up = NONE
                self._pending[number] = above, line
        self.up.append(up)
        self.flags.append(flags)
        if flags & ASIDE:
            self._lanes[number] = self._lane(up)
        return number

    def belongs(self, number: int, message: str) -> None:
        """A record is a line of an API message."""
        self._speaking.append(number)
        self._messages.append(hash(message))

    def crosses(self, number: int, before: str) -> None:
        """A record begins anew after a compaction, behind another one."""
        self._across[number] = hash(before)

    def lane(self, number: int) -> int:
        """Which inline sub-agent a record is of, from 1; 0 for the main conversation."""
        return self._lanes.get(number, 0)

    def _lane(self, up: int) -> int:
        lane = self.lane(up)
        if not lane:
            self._lane_count += 1
            lane = self._lane_count
        return lane

    def settle(self, outer: "Tree | None" = None) -> None:
        """Look for the parents that were not there yet. `outer`: records of another file that may be parents too.

        The first record of a file may hang under one of an earlier file: nothing is missing then.
        """
        late: list[int] = []
        for number, (parent, line) in self._pending.items():
            up = self.numbers.get(parent, NONE)
            if up != NONE:
                self.up[number] = up
                late.append(number)
            elif number and not (outer is not None and parent in outer.numbers):
                self.broken[number] = line, "it hangs under a record that is not there"
        looked = bytearray(len(self))
        for number in late:  # a circle has a record that came before its parent
            path: list[int] = []
            at = number
            while at != NONE and not looked[at]:
                looked[at] = 1
                path.append(at)
                at = self.up[at]
            if at != NONE and at in path:
                first = min(path[path.index(at) :])
                self.up[first] = NONE
                self.broken[first] = self._pending[first][1], "its parents go round in a circle"
        self._pending.clear()

        for number in sorted(self.broken):
            self._bridges[number] = self._bridge(number)

    def _bridge(self, number: int) -> int:
        """The last record before one in the same conversation, where that does not hang under it, or `NONE`."""
        lane = self.lane(number)
        bridge = at = next((at for at in range(number - 1, NONE, -1) if self.lane(at) == lane), NONE)
        while at not in (NONE, number):
            at = self.parent(at)
        return bridge if at == NONE else NONE

    def number(self, uuid: str) -> int:
        """The number of a record, or `NONE`."""
        return self.numbers.get(hash(uuid), NONE)

    def parent(self, number: int) -> int:
        """The parent of a record; where it is missing or in a circle, the record before."""
        return self._bridges.get(number, NONE) if number in self.broken else self.up[number]

    def leaf(self) -> int:
        """The record that the tool resumes at, or `NONE`."""
        inner = bytearray(len(self))
        for up in self.up:
            if up != NONE:
                inner[up] = 1
        best = {True: NONE, False: NONE}
        for number in range(len(self)):
            if inner[number]:
                continue
            at = number
            while at != NONE and not self.flags[at] & SPOKEN:
                at = self.up[at]
            if at != NONE:
                barred = bool(self.flags[at] & BARRED)
                best[barred] = max(best[barred], at)
        return best[False] if best[False] != NONE else best[True]

    def strict(self) -> bytearray:
        """A 1 for each record that resuming shows to the model."""
        return self._marked(self._walk(self.leaf(), bridged=False))

    def bridged(self) -> bytearray:
        """A 1 for each record of the conversation that led to where the tool resumes."""
        return self._marked(self._walk(self.leaf(), bridged=True))

    def _walk(self, number: int, *, bridged: bool) -> Iterator[int]:
        seen = bytearray(len(self))
        while number != NONE and not seen[number]:
            seen[number] = 1
            yield number
            up = self.parent(number) if bridged else self.up[number]
            if up == NONE and bridged and number in self._across:
                up = self.numbers.get(self._across[number], NONE)
            number = up

    def _marked(self, path: Iterator[int]) -> bytearray:
        marks = bytearray(len(self))
        for number in path:
            marks[number] = 1
        lines = list(zip(self._speaking, self._messages, strict=True))
        shown = {message for number, message in lines if marks[number]}
        for number, message in lines:
            if message in shown:
                marks[number] = 1
        return marks

    def message(self, number: int) -> int | None:
        """A hash of the API message that a record is a line of."""
        at = bisect_left(self._speaking, number)
        return self._messages[at] if at < len(self._speaking) and self._speaking[at] == number else None

    def last_of_message(self, number: int) -> int:
        """The last line of the API message that a line is of."""
        message = self.message(number)
        if message is None:
            return number
        return self._speaking[max(at for at, other in enumerate(self._messages) if other == message)]

    def same_message(self, one: int, other: int) -> bool:
        """Whether two lines are of one API message."""
        message = self.message(one)
        return message is not None and message == self.message(other)
