"""What a life leaves behind outside its store: marks that outlive the kill, since the page cache does.

One line of JSON and one write call each, at the end of a file, so no mark is ever half there.
"""

import os
from pathlib import Path
from typing import Any, Literal

import msgspec

What = Literal["enter", "leave", "raise", "changed", "ack"]


class Mark(msgspec.Struct, omit_defaults=True):
    """One thing that a life did."""

    what: What
    """`enter`, `leave` and `raise` are of a tool's body; `changed`: one that is declared read-only changed the world;
    `ack`: a write was acknowledged."""
    session: str
    call: str = ""
    key: str = ""
    """Of a body: the idempotency key of its call."""
    tool: str = ""
    arguments: str = ""
    read_only: bool = False
    idempotent: bool = False
    keyed: bool = False
    count: int = 0
    """Of an `ack`: how many events there are."""
    hash: str = ""
    """Of an `ack`: that of the last line."""


class Marks:
    """An append-only file of marks."""

    def __init__(self, path: Path) -> None:
        """Open the file, and make it where it is not there."""
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, what: What, session: str, **more: Any) -> None:
        """Leave a mark."""
        os.write(self._descriptor, msgspec.json.encode(Mark(what, session, **more)) + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def read_marks(path: Path) -> list[Mark]:
    """The marks of a file, in order; none where it is absent."""
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=Mark) for line in path.read_bytes().split(b"\n") if line]
