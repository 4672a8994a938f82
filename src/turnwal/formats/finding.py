"""Finding sessions: by content, whatever a file is called, in the paths that were named and the folders below them,
and in the PostgreSQL databases whose URLs were named.

Promises: one path that cannot be read never stops the others; it is given with the reason.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

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
    """Yield the sessions at these paths and below, in the order of their names, each file and folder once; text may be
    the URL of a server.

    A path that was named and holds no session is `Unread`; below a folder such files are stepped over.
    """
    before: set[_Identity] = set()
    for named in paths:
        if isinstance(named, str) and _SERVER.fullmatch(named):
            yield from _at(named)
            continue
        path = Path(named)
        walk = _Walk(path, before)
        told = False
        for found in walk.sessions():
            told = True
            yield found
        if not told and not walk.met_again:
            yield Unread(path, "unreadable", "there is no session of a known format in it")
        before |= walk.seen


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


_Identity = tuple[int, int]
"""Device and number of a file, whatever names it has."""


class _Walk:
    """Where the walk through one path is."""

    def __init__(self, top: Path, before: set[_Identity]) -> None:
        self._top = top
        self._before = before
        self.seen: set[_Identity] = set()
        self.met_again = False
        """Something here was looked at by an earlier walk."""

    def sessions(self) -> Iterator[Found | Unread]:
        """What is at the path and below."""
        left = [self._top]
        while left:
            path = left.pop()
            try:
                if self._is_new(path):
                    yield from self._looked_at(path, left)
            except FileNotFoundError as error:
                if os.path.lexists(path) and not path.is_symlink():
                    yield Unread(path, "unreadable", f"{error.filename or path} went away while it was read")
                elif path is self._top:
                    yield Unread(path, "unreadable", "there is no such path")
                elif not path.is_symlink():  # a link that leads nowhere is no session that was lost
                    yield Unread(path, "unreadable", "it went away while it was looked for")
            except (DatabaseBusy, OSError, apsw.Error) as error:
                yield _unread(path, error)

    def _looked_at(self, path: Path, left: list[Path]) -> Iterator[Found]:
        known, sampled = self._known(path)
        if known is None or sampled is None:
            left += sorted(path.iterdir(), reverse=True) if path.is_dir() else ()
        elif path is self._top or known.part_of is None or not known.part_of(path):
            yield from _sessions(known, sampled)

    def _is_new(self, path: Path) -> bool:
        status = path.stat()
        identity = (status.st_dev, status.st_ino)
        if identity in self._before:
            self.met_again = True
            return False
        new = identity not in self.seen
        self.seen.add(identity)
        return new

    def _known(self, path: Path) -> tuple[Format | None, Sample | None]:
        sampled = sample(path)
        return (recognised(sampled) if sampled is not None else None), sampled


def _unread(path: Path, error: Exception) -> Unread:
    if isinstance(error, DatabaseBusy):
        return Unread(path, "busy", str(error))
    if isinstance(error, OSError):
        return Unread(path, "unreadable", f"{error.strerror or error}")
    return Unread(path, "unreadable", f"the database cannot be read ({error})")


def recognised(sampled: Sample) -> Format | None:
    """The format of what was looked at, or None."""
    for name in FORMATS:
        known = format_of(name)
        # a value of any shape may stand where a format has text
        with suppress(AttributeError, IndexError, KeyError, TypeError, ValueError):
            if known.recognises(sampled):
                return known
    return None


def _sessions(known: Format, sampled: Sample) -> Iterator[Found]:
    if known.sessions is None:
        yield Found(known, sampled.path)
    else:
        yield from known.sessions(sampled)
