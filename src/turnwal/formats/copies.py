"""Copies of a database that cannot be read where it is: made aside, gone when nobody reads them.

Promises: a copy is one state of the database and of the file beside it; while its tool writes there is none.
"""

import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_STEADY_S: Final = 0.1
"""How long nothing was written before a copy is begun: two writes in one tick of a file's clock look like one."""

_State = tuple[tuple[int, int, int], ...]


class Unsteady(Exception):
    """The files are being written to, or went away."""


class _Copy:
    """A copy, as long as there is a reference to it."""

    def __init__(self, path: Path, suffix: str) -> None:
        self.state = _state(path, suffix)
        if _is_fresh(self.state):
            raise Unsteady
        directory = tempfile.mkdtemp(prefix="turnwal-")
        weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
        self.path = Path(directory, "copy.db")
        try:
            shutil.copyfile(path, self.path)
            shutil.copyfile(f"{path}{suffix}", f"{self.path}{suffix}")
        except FileNotFoundError as error:
            raise Unsteady from error
        if _state(path, suffix) != self.state:
            raise Unsteady


@contextmanager
def copied(path: Path, suffix: str) -> Iterator[Path]:
    """A copy of a database with the file beside it that has this suffix. Raises `Unsteady` and `OSError`."""
    copy = _Copy(path, suffix)
    yield copy.path


def _state(path: Path, suffix: str) -> _State:
    try:
        found = [file.stat() for file in (path, Path(f"{path}{suffix}"))]
    except FileNotFoundError as error:
        raise Unsteady from error
    return tuple((status.st_ino, status.st_size, status.st_mtime_ns) for status in found)


def _is_fresh(state: _State) -> bool:
    """Whether one of the files was written to so lately that a further write may not show; in the past."""
    now = time.time()
    return any(abs(now - written / 1e9) < _STEADY_S for _, _, written in state)
