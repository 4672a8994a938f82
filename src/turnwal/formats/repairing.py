"""Writing repaired copies: a new file, whole or not there, never the one that was read."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import UUID, uuid5

from turnwal.core.errors import Refused
from turnwal.store.wholefile import whole_file


@contextmanager
def fresh(out: Path) -> Iterator[BinaryIO]:
    """A new file to write a copy to, for its owner's eyes only; whole and durable when the block ends, else not there.

    Raises `Refused` where something is there already, and `OSError`.
    """
    try:
        with whole_file(out) as file:
            yield file
    except FileExistsError as error:
        if error.filename != str(out):
            raise
        raise _taken(out) from None


def write_lines(out: Path, lines: Iterable[bytes]) -> None:
    """Write lines, given without their newline, as a new file; see `fresh`."""
    with fresh(out) as file:
        for line in lines:
            file.write(line + b"\n")


@contextmanager
def fresh_directory(out: Path) -> Iterator[Path]:
    """A new directory to write a copy into: under a name of its own until the block ends, gone when it fails.

    Raises `Refused` where something is there already, and `OSError`.
    """
    if out.exists() or out.is_symlink():
        raise _taken(out)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.absolute().parent) as directory:
        copy = Path(directory, out.name)
        copy.mkdir(mode=0o700)
        yield copy
        for path in [copy, *sorted(copy.rglob("*"))]:
            # of a directory, the names that are in it
            if not path.is_symlink() and (path.is_file() or path.is_dir()):
                _sync(path)
        try:
            copy.rename(out)
        except OSError as error:
            if out.exists():
                raise _taken(out) from error
            raise
    _sync(out.absolute().parent)


def uuid_of(space: UUID, name: str) -> UUID:
    """The UUID of a name in a space, also where it holds half a character."""
    return uuid5(space, name.encode("utf-8", "backslashreplace").decode())


def unloadable(path: Path, tool: str, why: str) -> Refused:
    """What is raised where a copy would not be loaded by its tool, so that none is written."""
    return Refused(
        f"no copy can be made that {tool} loads: {why}",
        action="repair",
        subject=str(path),
        hint="`turnwal import` takes the session into a store, where it can be recovered",
    )


def _taken(out: Path) -> Refused:
    return Refused(
        "something is there already", action="repair", subject=str(out), hint="name one that is not there yet"
    )


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
