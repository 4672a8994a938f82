"""What a format is: how its files are known, read and repaired. One module a format holds one of these."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from turnwal.formats.diagnosis import Diagnosis, OnResume
from turnwal.formats.items import Item
from turnwal.store.urls import shown

Depth = Literal["calls", "whole"]
"""How much of a session is read. For `calls` the content of messages and results may be left out: what counts then is
which calls there are, with their names and arguments, and what is proved about them.
"""

SampleKind = Literal["lines", "json", "sqlite", "directory", "zstd"]
"""What a path holds: JSON objects a line, one JSON value, a SQLite database, a directory, Zstandard frames."""


@dataclass(frozen=True, slots=True)
class Sample:
    """As much of a path as is needed to know its format by content."""

    path: Path
    kind: SampleKind
    records: tuple[Any, ...] = ()
    """The first values: of lines (also those of a zstd file), of a JSON array, or the one JSON value."""
    array: bool = False
    """For `json`: the value is an array, and `records` are its first elements."""
    tables: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """For `sqlite`: the columns of each table."""
    names: frozenset[str] = frozenset()
    """For `directory`: what is in it."""


@dataclass(frozen=True, slots=True)
class Found:
    """One session that was found, not yet read."""

    format: "Format"
    path: Path
    """The file or directory, or the database that holds it among others."""
    session: str | None = None
    """Which one of a path that holds several."""
    files: tuple[Path, ...] = ()
    """Further files that belong to it."""
    url: str | None = None
    """The server that holds it, where it is in no path."""

    @classmethod
    def at(cls, format: "Format", url: str, session: str) -> Self:
        """One that a server holds."""
        return cls(format, Path(), session, url=url)

    @property
    def where(self) -> str:
        """The path, or the server without its password."""
        return str(self.path) if self.url is None else shown(self.url)

    @property
    def name(self) -> str:
        """What a person calls it."""
        return self.where if self.session is None else f"{self.where}#{self.session}"


@dataclass(frozen=True, slots=True)
class Format:
    """A format of another tool."""

    name: str
    """The name of its module."""
    title: str
    """The name of the tool, for a person."""
    on_resume: OnResume
    """What the tool does with an unanswered call when it resumes."""
    resume_text: str
    """The same in a sentence."""
    recognises: Callable[[Sample], bool]
    read: Callable[[Found, Depth], Iterator[Item]]
    """Read a session."""
    sessions: Callable[[Sample], Iterator[Found]] | None = None
    """The sessions in a path that was recognised; None where the path is one session."""
    serves: Callable[[str], Iterator[Found]] | None = None
    """The sessions in the PostgreSQL database of a URL, none where its tables are not there; None for a format that is
    kept in files alone. Raises `Unreachable`.
    """
    part_of: Callable[[Path], bool] | None = None
    """Whether a path is a part of a session that is found under another path."""
    repair: Callable[[Found, Diagnosis, Path], None] | None = None
    """Write a repaired copy to a path that is not there yet, answering what the diagnosis has open and does not wait;
    None where that cannot be done.
    """
    resumed: Callable[[Found], tuple[OnResume, str]] | None = None
    """What becomes of a session in which nothing is open when it is resumed, with the reason; None where the tool takes
    every such session.
    """
    unique_ids: bool = False
    """An id names one call of the whole session, so that the order of records does not matter to the pairing."""
    places: tuple[str, ...] = ()
    """Where its tool keeps sessions: paths with `~` and `$NAME`, the first variable that is set wins."""
