"""The states of a disk that are tried: some at every point of a recording, and any number at random.

Promises: everything that may be lost is lost once alone, and all of it together; each prefix of it is kept; the last
write is torn at every sector, its rest missing or NULs. What is chosen at random is the same for the same seed.

Does not: say what of it is wrong; a judge does.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from turnwal.testing.power.disk import Pending, Point
from turnwal.testing.power.operations import Change, Resize, Tree, Write

SECTOR: Final = 512
"""What a disk writes as a whole or not at all."""

_SHARES: Final = (0.1, 0.5, 0.9)
"""How much of what may be lost is kept, at random."""
_TORN: Final = 0.3
_GROWN: Final = 0.3


@dataclass(frozen=True)
class State:
    """What a disk may have after the power failed."""

    point: Point
    how: str
    """What was kept of what had not been synced."""
    changes: tuple[Change, ...]

    def tree(self) -> Tree:
        """The files and directories."""
        tree = self.point.tree.copy()
        for change in self.changes:
            tree.apply(change)
        return tree


def systematic(point: Point) -> Iterator[State]:
    """The states that are tried at every point."""
    pending = point.pending
    free = [number for number, each in enumerate(pending) if not each.certain]
    yield _state(point, "nothing", lambda _: False)
    if not free:
        return
    yield _state(point, "everything", lambda _: True)
    for kept in range(1, len(free)):
        last = free[kept]
        yield _state(point, f"the first {kept} of {len(free)} changes", lambda number, last=last: number < last)  # type: ignore[misc]
    for number in free[:-1]:
        yield _state(point, f"all but change {number}", lambda other, lost=number: other != lost)  # type: ignore[misc]
    yield from _torn_last(point, free)


def by_chance(point: Point, seed: str, count: int) -> Iterator[State]:
    """So many states, each of a random part of what may be lost, some of it torn."""
    if all(each.certain for each in point.pending):
        return
    chance = random.Random(f"{seed} {point.number}")  # noqa: S311 - it only has to be repeatable
    for number in range(count):
        share = chance.choice(_SHARES)
        changes: list[Change] = []
        for each in point.pending:
            changes += [each.change] if each.certain else _part(each.change, share, chance)
        yield State(point, f"random subset {number} of seed {seed}", tuple(changes))


def torn(write: Write, kept: Callable[[int], bool]) -> list[Write]:
    """What is left of a write of which some sectors reached the disk; a sector is told by its number in the file."""
    pieces: list[Write] = []
    begin = write.offset
    while begin < write.end:
        end = begin
        holds = kept(begin // SECTOR)
        while end < write.end and kept(end // SECTOR) is holds:
            end = min((end // SECTOR + 1) * SECTOR, write.end)
        if holds:
            pieces.append(Write(write.node, begin, write.data[begin - write.offset : end - write.offset]))
        begin = end
    return pieces


def _torn_last(point: Point, free: Sequence[int]) -> Iterator[State]:
    writes = [number for number in free if isinstance(point.pending[number].change, Write)]
    if not writes:
        return
    last = writes[-1]
    write = point.pending[last].change
    assert isinstance(write, Write)  # noqa: S101 - found as one above
    first, behind = write.offset // SECTOR, (write.end - 1) // SECTOR
    for sector in range(first, behind + 1):
        kept = torn(write, lambda number, end=sector: number < end)  # type: ignore[misc]
        around = _around(point.pending, last)
        how = f"all, the last write torn at byte {max(sector * SECTOR, write.offset)}"
        yield State(point, how, (*around[0], *kept, *around[1]))
        yield State(
            point, f"{how}, then NULs", (*around[0], *kept, Resize(write.node, write.end, grow=True), *around[1])
        )


def _around(pending: Sequence[Pending], number: int) -> tuple[list[Change], list[Change]]:
    changes = [each.change for each in pending]
    return changes[:number], changes[number + 1 :]


def _part(change: Change, share: float, chance: random.Random) -> list[Change]:
    if not isinstance(change, Write):
        return [change] if chance.random() < share else []
    grown: list[Change] = [Resize(change.node, change.end, grow=True)] if chance.random() < _GROWN else []
    if chance.random() < _TORN:
        sectors = range(change.offset // SECTOR, (change.end - 1) // SECTOR + 1)
        kept = {sector for sector in sectors if chance.random() < share}
        return [*torn(change, kept.__contains__), *grown]
    return [change] if chance.random() < share else grown


def _state(point: Point, how: str, kept: Callable[[int], bool]) -> State:
    changes = (each.change for number, each in enumerate(point.pending) if each.certain or kept(number))
    return State(point, how, tuple(changes))
