"""Looking at files as doctor does, and holding it to writing nothing."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from turnwal.core.log import Log
from turnwal.formats import Diagnosis, Found, examine, find
from turnwal.formats.doctor import diagnose
from turnwal.formats.importing import lines_of

DATA = Path(__file__).parent / "data"
"""What the tools themselves have written."""


def digests(root: Path) -> dict[str, str]:
    """The digest of every file below a path."""
    files = sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@contextmanager
def untouched(root: Path) -> Iterator[None]:
    """A block in which nothing below a path is changed, made or removed."""
    before = digests(root)
    yield
    assert digests(root) == before


def diagnosis_of(path: Path) -> Diagnosis:
    """What is said of the one session at a path; nothing is written meanwhile."""
    with untouched(path):
        (found,) = examine([path])
    return found


def open_ids(diagnosis: Diagnosis) -> list[str]:
    """The ids of the calls without a true outcome."""
    return [call.id for call in diagnosis.open]


def found_at(path: Path) -> Found:
    """The one session at a path."""
    (found,) = find([path])
    assert isinstance(found, Found)
    return found


def repaired(path: Path, out: Path) -> Path:
    """Where the repaired copy of the one session at a path is; the session itself is untouched."""
    found = found_at(path)
    assert found.format.repair is not None
    with untouched(path):
        found.format.repair(found, diagnose(found), out)
    return out


def imported(path: Path) -> Log:
    """The one session at a path as one of turnwal's."""
    return Log.read(lines_of(found_at(path), "s", nonce="0" * 32, time=1, writer={}))
