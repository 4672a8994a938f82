"""The tree that the records of a file hang in, in a few bytes a record.

Promises:
- `strict` is the chain that the tool shows to the model: from the newest leaf up by `parentUuid`, never across a
  compaction, with the lines of the same API message.
- `bridged` is the same and more: it goes on above a compaction, and where a parent is missing at the record before.
- A circle of parents ends a walk; it is named once.

Source of the rules: `_build_conversation_chain` of claude-agent-sdk-python 0.2.189.
"""

from array import array
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
        self.lines = array("q")
        self._messages = array("q")
        """A hash of the API message that a line is of; 0 for none."""
        self._across: dict[int, int] = {}
        """Of a compaction: the hash of the record before it."""
        self._pending: dict[int, int] = {}
        """Of records whose parent is not there yet: its hash."""
        self.lanes = array("q")
        """Which inline sub-agent a record is of, from 1; 0 for the main conversation."""
        self._lane_count = 0
        self.broken: dict[int, str] = {}
        """Records whose parent is missing or in a circle, with what is wrong; filled by `settle`."""
        self._bridges: dict[int, int] = {}
        """The parents that they have instead."""

    def __len__(self) -> int:
        return len(self.up)

    def __contains__(self, uuid: str) -> bool:
        return hash(uuid) in self.numbers

    def add(self, uuid: str, parent: str | None, line: int, flags: int, message: str | None, across: str | None) -> int:
        """Take the next record; returns its number, or `NONE` for a copy of one that is there."""
        key, number = hash(uuid), len(self.up)
        if self.numbers.setdefault(key, number) != number:
            return NONE
        up = NONE
        if parent is not None:
            up = self.numbers.get(hash(parent), NONE)
            if up in (NONE, number):
                up = NONE
                self._pending[number] = hash(parent)
        if across is not None and parent is None:
            self._across[number] = hash(across)
        self.up.append(up)
        self.flags.append(flags)
        self.lines.append(line)
        self._messages.append(hash(message) if message is not None else 0)
        self.lanes.append(self._lane(up) if flags & ASIDE else 0)
        return number

    def _lane(self, up: int) -> int:
        if up != NONE and self.lanes[up]:
            return self.lanes[up]
        self._lane_count += 1
        return self._lane_count

    def settle(self, outer: "Tree | None" = None) -> None:
        """Look for the parents that were not there yet. `outer`: records of another file that may be parents too.

        The first record of a file may hang under one of an earlier file: nothing is missing then.
        """
        late: list[int] = []
        for number, parent in self._pending.items():
            up = self.numbers.get(parent, NONE)
            if up != NONE:
                self.up[number] = up
                late.append(number)
            elif number and not (outer is not None and parent in outer.numbers):
                self.broken[number] = "it hangs under a record that is not there"
        self._pending.clear()
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
                self.broken[first] = "its parents go round in a circle"

        for number in sorted(self.broken):
            self._bridges[number] = self._bridge(number)

    def _bridge(self, number: int) -> int:
        """The last record before one in the same conversation, where that does not hang under it, or `NONE`."""
        lane = self.lanes[number]
        bridge = at = next((at for at in range(number - 1, NONE, -1) if self.lanes[at] == lane), NONE)
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
        shown: set[int] = set()
        for number in path:
            marks[number] = 1
            if self._messages[number]:
                shown.add(self._messages[number])
        for number, message in enumerate(self._messages):
            if message and message in shown:
                marks[number] = 1
        return marks

    def last_of_message(self, number: int) -> int:
        """The last line of the API message that a line is of."""
        message = self._messages[number]
        if not message:
            return number
        return next(at for at in range(len(self) - 1, NONE, -1) if self._messages[at] == message)

    def same_message(self, one: int, other: int) -> bool:
        """Whether two lines are of one API message."""
        return self._messages[one] != 0 and self._messages[one] == self._messages[other]
