"""What a workload did to a directory, as plain values in the order in which the kernel was told.

Promises: a recording needs no disk to be read; a tree of files is a value, and applying a change to a copy of it leaves
the first as it was.

Does not: say what of it a disk keeps when the power fails; `disk` does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

ROOT: Final = 0
"""The node of the directory that was recorded. A node is a file or a directory, whatever it is called."""


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes were written at an offset of a file."""

    node: int
    offset: int
    data: bytes

    @property
    def end(self) -> int:
        """The offset behind the last byte."""
        return self.offset + len(self.data)


@dataclass(frozen=True, slots=True)
class Resize:
    """A file was given a size: cut, or made longer with NULs. With `grow` it is never cut."""

    node: int
    size: int
    grow: bool = False


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a directory leads to a node from now on: it was created, or linked."""

    directory: int
    name: str
    node: int


@dataclass(frozen=True, slots=True)
class Unname:
    """A name was removed from a directory."""

    directory: int
    name: str


@dataclass(frozen=True, slots=True)
class Move:
    """A name was given to what had another one, in one step; what had it before has it no more."""

    directory: int
    name: str
    into: int
    new_name: str
    node: int


Change: TypeAlias = Write | Resize | Name | Unname | Move
"""What a disk may keep or lose until it is synced."""


@dataclass(frozen=True, slots=True)
class SyncBegins:
    """A sync of a node was asked for, or of everything (None): it covers what had been done by then."""

    number: int
    node: int | None


@dataclass(frozen=True, slots=True)
class SyncEnds:
    """The sync returned, and what it covers is on the device."""

    number: int


@dataclass(frozen=True, slots=True)
class SyncFails:
    """The sync returned an error."""

    number: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A line that the workload wrote to its standard output: what it acknowledges, say."""

    text: str


Operation: TypeAlias = Change | SyncBegins | SyncEnds | SyncFails | Mark


@dataclass(slots=True)
class Tree:
    """Files and directories, and the names that lead to them."""

    names: dict[tuple[int, str], int] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)
    """Of files; a node without any is a directory."""

    def copy(self) -> "Tree":
        """Another tree that is equal to this one now."""
        return Tree(dict(self.names), dict(self.contents))

    def apply(self, change: Change) -> None:
        """Let a change take place. One whose predecessors were lost does what is left of it."""
        match change:
            case Write(node, offset, data):
                old = self.contents.get(node, b"")
                self.contents[node] = old[:offset].ljust(offset, b"\0") + data + old[change.end :]
            case Resize(node, size, grow):
                old = self.contents.get(node, b"")
                self.contents[node] = old.ljust(size, b"\0") if grow else old[:size].ljust(size, b"\0")
            case Name(directory, name, node):
                self.names[directory, name] = node
            case Unname(directory, name):
                self.names.pop((directory, name), None)
            case Move(directory, name, into, new_name, node):
                self.names.pop((directory, name), None)
                self.names[into, new_name] = node

    def files(self) -> dict[str, bytes | None]:
        """What can be reached by name: the content of each file by its path, None for a directory; parents first."""
        inside: dict[int, list[tuple[str, int]]] = {}
        for (directory, name), node in self.names.items():
            inside.setdefault(directory, []).append((name, node))
        found: dict[str, bytes | None] = {}
        todo = [("", ROOT)]
        for prefix, directory in todo:
            for name, node in sorted(inside.get(directory, ())):
                path = prefix + name
                found[path] = self.contents.get(node)
                if node not in self.contents:
                    todo.append((path + "/", node))
        return found


@dataclass(frozen=True)
class Recording:
    """A workload as it was seen from outside."""

    before: Tree
    """What the directory held when it began; files that were made later are in it, empty and without a name."""
    operations: tuple[Operation, ...]
    code: int
    """What the workload exited with."""
    command: tuple[str, ...] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        """What it wrote to its standard output, line by line."""
        return tuple(operation.text for operation in self.operations if isinstance(operation, Mark))

    def after(self) -> Mapping[str, bytes | None]:
        """The files that it left, as any process sees them that the power does not fail."""
        tree = self.before.copy()
        for operation in self.operations:
            if isinstance(operation, Change):
                tree.apply(operation)
        return tree.files()
