"""What is asked of a SQLite file, each question answered from an index.

Promises: sessions, and the lines of one from any byte on, without looking at others; a few at a time, so that nobody is
held up and memory is bounded. A session's size is that of its lines: there is no second account of it to be wrong.

Does not: keep a snapshot over several reads. What was committed between two of them is seen where it is asked for.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from turnwal.store.protocol import Record
from turnwal.store.rows import ROWS, Row, bytes_of, newest_records
from turnwal.store.sqlite_reading import Reader

FIND: Final = (
    "SELECT number, CAST(coalesce((SELECT position + length(CAST(line AS BLOB)) + 1 FROM line WHERE session = number "
    "ORDER BY position DESC LIMIT 1), 0) AS INTEGER), CAST(owner AS BLOB) FROM session WHERE id = ?"
)
_ROW: Final = "SELECT coalesce(CAST(position AS INTEGER), 0), coalesce(CAST(line AS BLOB), x'') FROM line "
"""A bit that went bad may give a value another type; whatever it has, it is read as the one that was stored."""
LINES: Final = _ROW + "WHERE session = ? AND position >= ? AND position < ? ORDER BY position LIMIT ?"
NEWEST: Final = _ROW + "WHERE session = ? AND position < ? ORDER BY position DESC LIMIT ?"
IDS: Final = "SELECT CAST(id AS BLOB) FROM session WHERE id > ? ORDER BY id LIMIT ?"
INTERRUPTED: Final = "SELECT CAST(id AS BLOB) FROM session WHERE open_from IS NOT NULL AND id > ? ORDER BY id LIMIT ?"

_BYTES: Final = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
_BELIEVED_BYTES: Final = 64 * 1024 * 1024
"""A session that is said to be longer is compared with the file: what is missing between lines is read as NULs."""

_LINE_AT: Final = "SELECT max(position) FROM line WHERE session = ? AND position <= ?"


class Found(NamedTuple):
    """A session of the file."""

    number: int
    size: int
    owner: bytes
    """What its last owner said of itself, whatever stands there: it is for people, and no reason not to read."""


def find(reader: Reader, name: bytes) -> Found | None:
    """A session by its id, None when it is absent."""
    rows = reader.rows(FIND, (name,))
    if not rows:
        return None
    found = Found(*rows[0])
    if found.size > _BELIEVED_BYTES:
        ((most,),) = reader.rows(_BYTES, ())
        if found.size > most:
            raise reader.broken(f"a line of it is said to stand at byte {found.size:,}, in a file of {most:,}")
    return found


def chunks(reader: Reader, found: Found, start: int) -> Iterator[bytes]:
    """The bytes of a session from `start` to the size that was found."""
    return bytes_of(_rows(reader, found, start), start, found.size)


def newest(reader: Reader, found: Found) -> Iterator[Record | None]:
    """The lines of a session from the newest to the oldest."""

    def fetch(before: int, count: int) -> list[Row]:
        rows: list[Row] = reader.rows(NEWEST, (found.number, before, count))
        _check_order(reader, [-before, *(-place for place, _ in rows)])
        return rows

    return newest_records(fetch, found.size)


def names(reader: Reader, statement: str) -> Iterator[str]:
    """Ids, sorted: of all sessions (`IDS`) or of those that may have something open (`INTERRUPTED`)."""
    last = b""
    while rows := reader.rows(statement, (last, ROWS), "list"):
        _check_order(reader, [last, *(name for (name,) in rows)])
        for (name,) in rows:
            yield _text(name)
        last = rows[-1][0]


def _text(name: bytes) -> str:
    """An id; one whose bytes went bad is told as such, and names nothing."""
    try:
        return name.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return name.decode("utf-8", "backslashreplace")


def _rows(reader: Reader, found: Found, start: int) -> Iterator[Row]:
    if start:
        ((place,),) = reader.rows(_LINE_AT, (found.number, start)) or [(None,)]
        start = start if place is None else place
    while start < found.size:
        rows = reader.rows(LINES, (found.number, start, found.size, ROWS))
        if not rows:
            return
        _check_order(reader, [start - 1, *(place for place, _ in rows)])
        yield from rows
        start = rows[-1][0] + 1


def _check_order(reader: Reader, keys: Sequence[int] | Sequence[bytes]) -> None:
    """Return if each key is greater than the one before: whoever asks for what follows the last would ask for ever."""
    if any(later <= earlier for earlier, later in pairwise(keys)):  # type: ignore[operator]
        raise reader.broken("an index of it is out of order")
