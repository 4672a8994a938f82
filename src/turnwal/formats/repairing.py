"""Writing repaired copies: a new file, whole or not there, never the one that was read."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from turnwal.core.errors import Refused


@contextmanager
def fresh(out: Path) -> Iterator[BinaryIO]:
    """A new file to write a copy to, for its owner's eyes only; durable when the block ends, gone when it fails.

    Raises `Refused` where something is there already, and `OSError`.
    """
    try:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise Refused(
            "something is there already", action="repair", subject=str(out), hint="name a file that does not exist yet"
        ) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        directory = os.open(out.absolute().parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except BaseException:
        out.unlink(missing_ok=True)
        raise


def write_lines(out: Path, lines: Iterable[bytes]) -> None:
    """Write lines, given without their newline, as a new file; see `fresh`."""
    with fresh(out) as file:
        for line in lines:
            file.write(line + b"\n")
