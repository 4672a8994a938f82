"""Looking at files as doctor does, and holding it to writing nothing."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from turnwal.formats import Diagnosis, examine


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
