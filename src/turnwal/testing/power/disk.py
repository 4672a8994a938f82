"""What a disk has when the power fails: what was synced, and anything of the rest.

Promises, for each point of a recording: what is certain to be on the disk there, and what may be; both are values, and
the same for everybody who asks.

The model is an adversary. Of what was not synced it may keep any part, in any order, where a real file system keeps
some order. What it never does: lose what a sync returned for, or mix bytes below a sector.

Does not: choose among the states that it allows; `states` does.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from turnwal.testing.power.operations import (
    ROOT,
    Change,
    Mark,
    Move,
    Name,
    Recording,
    Resize,
    SyncBegins,
    SyncEnds,
    SyncFails,
    Tree,
    Unname,
    Write,
)

PAGE: Final = 4096
"""What the kernel keeps as one piece: a write to any part of it makes all of it be written again."""


class Names(Enum):
    """When a name is on the disk."""

    WITH_FILE = "with the file"
    """When its directory is synced, or the file that it leads to, as ext4, XFS and Btrfs have it."""
    WITH_DIRECTORY = "with the directory"
    """Only when its directory is synced, which is all that POSIX promises."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A change that is in order behind what the tree has."""

    change: Change
    certain: bool
    """It is on the disk; it stands here since one before it, of the same file or directory, may not be."""


@dataclass(frozen=True)
class Point:
    """A moment at which the power may fail."""

    number: int
    """How many operations had been done."""
    tree: Tree
    """What is certain, as far as nothing uncertain stands before it. Copy it before you apply anything."""
    pending: tuple[Pending, ...]
    marks: tuple[str, ...]
    """What the workload had said by then."""


def points(recording: Recording, names: Names = Names.WITH_DIRECTORY) -> Iterator[Point]:
    """Every moment of a recording at which a disk may hold, or has to hold, something new."""
    disk = _Disk(recording.before.copy(), names)
    marks: list[str] = []
    for number, operation in enumerate(recording.operations, 1):
        match operation:
            case Mark(text):
                marks.append(text)
            case SyncBegins(sync, node):
                disk.begin(sync, node)
            case SyncEnds(sync):
                disk.end(sync)
            case SyncFails(sync):
                disk.fail(sync)
            case Write() | Resize() | Name() | Unname() | Move():
                disk.take(operation)
        if not isinstance(operation, SyncBegins | SyncEnds):
            # what a sync leaves uncertain was so before, and more
            yield Point(number, disk.tree.copy(), disk.pending(), tuple(marks))


@dataclass(slots=True, eq=False)
class _Entry:
    """A change, and the nodes whose sync it waits for."""

    change: Change
    waits: set[int] = field(default_factory=set)
    clean: bool = False
    """A sync of it failed: the kernel believes it written, and no later sync will write it."""


class _Disk:
    def __init__(self, tree: Tree, names: Names) -> None:
        self.tree = tree
        self._names = names
        self._entries: list[_Entry] = []
        self._syncs: dict[int, tuple[int | None, list[_Entry]]] = {}
        self._parents = {node: directory for (directory, _), node in tree.names.items()}

    def take(self, change: Change) -> None:
        if isinstance(change, Name):
            self._parents[change.node] = change.directory
        elif isinstance(change, Move):
            self._parents[change.node] = change.into
        elif isinstance(change, Write):
            self._dirty(change)
        # a rename is one step: the sync of the directory that the name went to makes it certain as a whole
        self._entries.append(_Entry(change, {change.into} if isinstance(change, Move) else set(_places(change))))

    def pending(self) -> tuple[Pending, ...]:
        return tuple(Pending(entry.change, certain=not entry.waits) for entry in self._entries)

    def begin(self, sync: int, node: int | None) -> None:
        covered = [entry for entry in self._entries if not entry.clean and self._covers(node, entry)]
        self._syncs[sync] = node, covered

    def end(self, sync: int) -> None:
        node, covered = self._syncs.pop(sync)
        for entry in covered:
            if entry.clean:
                continue
            if node is None or node not in entry.waits:
                entry.waits.clear()
            else:
                entry.waits.discard(node)
        self._settle()

    def fail(self, sync: int) -> None:
        """Content that was to be synced counts as written from now on. Names and sizes are the journal's, and stay."""
        _, covered = self._syncs.pop(sync)
        failed = {id(entry) for entry in covered if entry.waits and isinstance(entry.change, Write)}
        entries: list[_Entry] = []
        for entry in self._entries:
            if id(entry) in failed and isinstance(entry.change, Write):
                entries += [_Entry(piece, set(entry.waits), clean=True) for piece in _pages(entry.change)]
            else:
                entries.append(entry)
        self._entries = entries

    def _covers(self, node: int | None, entry: _Entry) -> bool:
        if not entry.waits:
            return False
        if node is None or node in entry.waits:
            return True
        change = entry.change
        named = change.node if isinstance(change, Name | Move) else None
        return self._names is Names.WITH_FILE and named is not None and named in self._way_to(node)

    def _way_to(self, node: int) -> set[int]:
        """A file and the directories above it."""
        way = {node}
        while node != ROOT and (above := self._parents.get(node)) is not None and above not in way:
            way.add(above)
            node = above
        return way

    def _dirty(self, write: Write) -> None:
        """Have what a failed sync left in the pages of a write be written with them."""
        first, last = write.offset // PAGE, (write.end - 1) // PAGE
        for entry in self._entries:
            piece = entry.change
            if entry.clean and isinstance(piece, Write) and piece.node == write.node:
                entry.clean = not first <= piece.offset // PAGE <= last

    def _settle(self) -> None:
        """Let what is certain become part of the tree, unless something uncertain comes before it."""
        uncertain: set[int] = set()
        left: list[_Entry] = []
        for entry in self._entries:
            places = _places(entry.change)
            if entry.waits or uncertain.intersection(places):
                left.append(entry)
                uncertain.update(places)
            else:
                self.tree.apply(entry.change)
        self._entries = left


def _places(change: Change) -> tuple[int, ...]:
    """The nodes of which a change is part, and within which changes are in order."""
    match change:
        case Write(node) | Resize(node):
            return (node,)
        case Name(directory) | Unname(directory):
            return (directory,)
        case Move(directory, _, into):
            return (directory, into)


def _pages(write: Write) -> list[Write]:
    """A write as one for each page."""
    pieces: list[Write] = []
    offset = write.offset
    while offset < write.end:
        end = min((offset // PAGE + 1) * PAGE, write.end)
        pieces.append(Write(write.node, offset, write.data[offset - write.offset : end - write.offset]))
        offset = end
    return pieces
