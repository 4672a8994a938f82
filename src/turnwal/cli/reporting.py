"""A report on many sessions as one JSON object, written as it comes about.

Promises: what is told of a session is written, a line each, before the next one is told, so a report is never held as a
whole, and the lines of one that was killed can still be read. Neither a report nor a file is ever written over.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from turnwal.cli.screen import dump
from turnwal.store.wholefile import sync_directory

_BEGIN: Final = '{"sessions":['
_END: Final = "],"


class JsonReport:
    """One JSON object: first `sessions`, then the figures."""

    def __init__(self, write: Callable[[str], object]) -> None:
        """Begin it."""
        self._write = write
        self._first = True
        write(_BEGIN)

    def entry(self, value: Mapping[str, Any]) -> None:
        """Add one session."""
        self._write(("" if self._first else ",") + "\n" + dump(value))
        self._first = False

    def end(self, figures: Mapping[str, Any]) -> None:
        """End it with the figures."""
        self._write("\n" + _END + dump(figures)[1:] + "\n")


@contextmanager
def report_file(path: str | None) -> Iterator[Callable[[str], object] | None]:
    """What writes to a new file, which nobody else may read; None without a path. Raises `FileExistsError`."""
    if path is None:
        yield None
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    # line by line: who was killed leaves what was done
    with os.fdopen(descriptor, "w", encoding="ascii", buffering=1) as file:
        sync_directory(Path(path).absolute().parent)
        yield file.write
        file.flush()
        os.fsync(file.fileno())
