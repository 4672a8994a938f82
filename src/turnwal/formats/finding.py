"""Finding sessions: by content, whatever a file is called, in the paths that were named and the folders below them,
and in the PostgreSQL databases whose URLs were named.

Promises: one path that cannot be read never stops the others; it is given with the reason.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turnwal.formats.database import DatabaseBusy
from turnwal.formats.diagnosis import Verdict
from turnwal.formats.format import Format, Found, Sample
from turnwal.formats.registry import FORMATS, format_of
from turnwal.formats.sampling import sample
from turnwal.store.urls import shown

_SERVER: Final = re.compile(r"postgres(ql)?://.*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Unread:
    """A path that could not be looked at."""

    path: Path | None
    """None for a server."""
    verdict: Verdict
    problem: str
    url: str | None = None

    @property
    def where(self) -> str:
        """The path, or the server without its password."""
        return str(self.path) if self.url is None else shown(self.url)


def find(paths: Iterable[Path | str]) -> Iterator[Found | Unread]:
    """Yield the sessions at these paths and below, in the order of their names; text may be the URL of a server.

    A path that was named and holds no session is `Unread`; below a folder such files are stepped over.
    """
    seen: set[tuple[int, int]] = set()
    for named in paths:
        if isinstance(named, str) and _SERVER.fullmatch(named):
            yield from _at(named)
            continue
        path = Path(named)
        count = 0
        for found in _below(path, seen, named=True):
            count += 1
            yield found
        if not count:
            yield Unread(path, "unreadable", _nothing(path))


def _at(url: str) -> Iterator[Found | Unread]:
    """The sessions in the database of a server."""
    count = 0
    try:
        for name in FORMATS:
            serves = format_of(name).serves
            for found in () if serves is None else serves(url):
                count += 1
                yield found
    except OSError as error:
        yield Unread(None, "unreadable", str(error), url)
    else:
        if not count:
            yield Unread(None, "unreadable", "there is no session of a known format in it", url)


def known_places() -> list[Path]:
    """The places where the known tools keep sessions and that are there."""
    places: dict[Path, None] = {}
    for name in FORMATS:
        for place in format_of(name).places:
            path = Path(os.path.expandvars(place)).expanduser()  # an unset variable leaves a path that is not there
            if "$" not in str(path) and path.exists():
                places[path] = None
    return list(places)


def _nothing(path: Path) -> str:
    if not path.exists():
        return "there is no such path"
    return "there is no session of a known format in it"


def _below(path: Path, seen: set[tuple[int, int]], *, named: bool) -> Iterator[Found | Unread]:
    try:
        status = path.stat()
        if (status.st_dev, status.st_ino) in seen:
            return
        seen.add((status.st_dev, status.st_ino))
        sampled = sample(path)
        if sampled is not None:
            known = recognised(sampled)
            if known is not None:
                if named or known.part_of is None or not known.part_of(path):
                    yield from _sessions(known, sampled)
                return
        if path.is_dir():
            for below in sorted(path.iterdir()):
                yield from _below(below, seen, named=False)
    except DatabaseBusy as error:
        yield Unread(path, "busy", str(error))
    except OSError as error:
        if named or not isinstance(error, FileNotFoundError):
            yield Unread(path, "unreadable", f"{error.strerror or error}")


def recognised(sampled: Sample) -> Format | None:
    """The format of what was looked at, or None."""
    for name in FORMATS:
        known = format_of(name)
        if known.recognises(sampled):
            return known
    return None


def _sessions(known: Format, sampled: Sample) -> Iterator[Found]:
    if known.sessions is None:
        yield Found(known, sampled.path)
    else:
        yield from known.sessions(sampled)
