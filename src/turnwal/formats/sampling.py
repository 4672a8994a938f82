"""Looking at as much of a path as is needed to know its format by content."""

import itertools
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec

from turnwal.formats import zstd, zstd_frames
from turnwal.formats.arrays import elements
from turnwal.formats.database import MAGIC, reading
from turnwal.formats.format import Sample
from turnwal.formats.items import Fault
from turnwal.formats.lenient import value_of
from turnwal.formats.lines import LINE_MAX

HEAD: Final = 256 * 1024
"""Bytes of a file that are looked at."""
_RECORDS: Final = 200
"""Lines of a file that are looked at: some tools write dozens that say nothing before the first that tells them."""
_FEW: Final = 24
"""Elements of an array that are looked at."""
_NAMES: Final = 1_000
"""Entries of a directory that are looked at."""
_WHOLE_MAX: Final = 32 * 1024 * 1024
_CHUNK: Final = 1 << 20

_FIELD: Final = re.compile(r'[\s,]*("(?:[^"\\]|\\.)*")\s*:\s*')
"""The name of a field up to its value."""

_python = json.JSONDecoder()


def sample(path: Path) -> Sample | None:
    """What a path begins with, or None where it holds nothing that a session could be in.

    Raises `OSError`, `DatabaseBusy` for a database that its tool holds, and `apsw.Error` for one that is damaged.
    """
    if path.is_dir():
        with os.scandir(path) as entries:
            names = frozenset(entry.name for entry in itertools.islice(entries, _NAMES))
        return Sample(path, "directory", names=names)
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(HEAD)
    if head.startswith(MAGIC):
        return _database(path)
    return (
        Sample(path, "zstd", _objects(zstd_frames.head(path, HEAD)))
        if head.startswith(zstd.MAGIC)
        else _text(path, head)
    )


def _text(path: Path, head: bytes) -> Sample | None:
    begins = head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\0")[:1]
    if begins == b"[":
        listed = _elements(head) or _first(path, None)
        if listed:
            return Sample(path, "json", listed, array=True)
    first, feed, _ = head.partition(b"\n")
    if begins == b"{" and not _objects(first):
        # a value over several lines may have a line that is an object too
        whole = _whole(path) if path.stat().st_size <= _WHOLE_MAX else ()
        if whole:
            return Sample(path, "json", whole)
    objects = _objects(head)
    if len(head) == HEAD and not head.endswith(b"\n") and len(objects) < _RECORDS and (feed or not objects):
        # a long record at the beginning, of which nothing can be told, must not hide those behind it
        objects += _objects(_behind(path, head.rfind(b"\n") + 1))
    begun = _beginning(path, head) if not objects and begins == b"{" else ()
    if begun:
        return Sample(path, "json", begun)
    return Sample(path, "lines", objects) if objects else None


def _behind(path: Path, at: int) -> bytes:
    """What stands behind a line that begins at a place and is longer than what is looked at."""
    with path.open("rb") as file:
        file.seek(at)
        read = 0
        while read < LINE_MAX and (more := file.readline(_CHUNK)):
            read += len(more)
            if more.endswith(b"\n"):
                return file.read(HEAD)
    return b""


def _database(path: Path) -> Sample:
    tables: dict[str, frozenset[str]] = {}
    with reading(path) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            # of a virtual table whose module is not here nothing can be said
            with suppress(apsw.SQLError):
                columns = connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
                tables[str(table)] = frozenset(str(name) for (name,) in columns)
    return Sample(path, "sqlite", tables=tables)


def _objects(head: bytes) -> tuple[Any, ...]:
    """The objects that stand on lines of their own; broken lines are stepped over, a cut last one too."""
    found: list[Any] = []
    for line in head.split(b"\n"):
        if len(found) == _RECORDS:
            break
        try:
            value = value_of(line.strip(b"\0 \t\r"))
        except msgspec.MsgspecError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return tuple(found)


def _beginning(path: Path, head: bytes) -> tuple[Any, ...]:
    """What an object begins with that was cut off, or is too long to be looked at as a whole: its first fields, and of
    the array that goes on behind what is looked at its first elements.
    """
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n\0")
    found: dict[str, Any] = {}
    at = 1
    while (begin := _FIELD.match(text, at)) is not None:
        try:
            name = str(value_of(begin[1].encode("utf-8", "replace")))
        except msgspec.MsgspecError:
            break
        try:
            found[name], at = _python.raw_decode(text, begin.end())
        except (ValueError, RecursionError):
            if text.startswith("[", begin.end()):
                found[name] = list(_listed(text, begin.end() + 1) or _first(path, name))
            break
    return (found,) if found else ()


def _elements(head: bytes) -> tuple[Any, ...]:
    """The first elements of an array."""
    return _listed(head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n\0"), 1)


def _first(path: Path, key: str | None) -> tuple[Any, ...]:
    """The first elements of an array, the first of which is longer than what is looked at."""
    found = itertools.islice(elements(path, key), _FEW)
    return tuple(item[1] for item in found if not isinstance(item, Fault))


def _listed(text: str, at: int) -> tuple[Any, ...]:
    """The first elements of an array, from behind its bracket on."""
    found: list[Any] = []
    while len(found) < _FEW:
        while at < len(text) and text[at] in ", \t\r\n":
            at += 1
        try:
            value, at = _python.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        found.append(value)
    return tuple(found)


def _whole(path: Path) -> tuple[Any, ...]:
    """The one object that a file is."""
    try:
        value = value_of(path.read_bytes())
    except msgspec.MsgspecError:
        return ()
    return (value,) if isinstance(value, dict) else ()
