"""What is asked of a PostgreSQL database, each question answered from an index.

Promises: sessions, and the lines of one from any byte on, without looking at others; a few at a time, each question a
transaction of its own, and of bytes as of rows: a long line is read alone. A session's size is that of its lines: there
is no second account of it to be wrong.

Does not: keep a snapshot over several reads.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Final, NamedTuple

from turnwal.core.limits import READ_BYTES
from turnwal.store.names import check_id
from turnwal.store.postgres_links import Links
from turnwal.store.protocol import Record
from turnwal.store.rows import ROWS, Row, bytes_of, newest_records

IDS: Final = "SELECT key, id FROM turnwal_session WHERE key > %s ORDER BY key LIMIT %s"
INTERRUPTED: Final = (
    "SELECT key, id FROM turnwal_session WHERE open_from IS NOT NULL AND key > %s ORDER BY key LIMIT %s"
)
SIZE: Final = (
    "SELECT position + octet_length(line) + 1 FROM turnwal_line WHERE session = %s ORDER BY position DESC LIMIT 1"
)

_KEY_BYTES: Final = 1000
"""How much of an id stands in the index as it is; an index entry has its limit in every database."""
_FIND: Final = (
    "SELECT s.number, s.epoch, coalesce((SELECT n.position + octet_length(n.line) + 1 FROM turnwal_line n "
    "WHERE n.session = s.number ORDER BY n.position DESC LIMIT 1), 0), s.owner, "
    "coalesce(l.expires > CURRENT_TIMESTAMP, FALSE) "
    "FROM turnwal_session s LEFT JOIN turnwal_lease l ON l.id = s.lease WHERE s.key = %s"
)
_LINE_AT: Final = "SELECT max(position) FROM turnwal_line WHERE session = %s AND position <= %s"
_LINE_FROM: Final = "SELECT min(position) FROM turnwal_line WHERE session = %s AND position >= %s"
_LINES: Final = (
    "SELECT position, line FROM turnwal_line WHERE session = %s AND position >= %s AND position < %s ORDER BY position"
)
_NEWEST: Final = (
    "SELECT position, line FROM turnwal_line WHERE session = %s AND position < %s AND position >= %s "
    "ORDER BY position DESC LIMIT %s"
)


class Found(NamedTuple):
    """A session of the database."""

    number: int
    epoch: int
    size: int
    owner: str
    """What its last owner said of itself."""
    alive: bool
    """Whether the lease of that one has not expired, by the clock of the database."""


def id_of(session: str) -> bytes:
    """The bytes of an id. Raises `InvalidName` for what is none."""
    return check_id(session).encode("utf-8", "surrogatepass")


def key_of(session: str) -> bytes:
    """What stands for an id in the index: sorted as the ids are, up to the length that an index can hold."""
    name = id_of(session)
    if len(name) <= _KEY_BYTES:
        return name
    # no text holds the byte FF
    return name[:_KEY_BYTES] + b"\xff" + sha256(name).digest()


def find(links: Links, key: bytes, action: str) -> Found | None:
    """A session by its key, None when it is absent."""
    with links.take(action) as link:
        row = link.execute(_FIND, (key,)).fetchone()
    return None if row is None else Found(*row)


def chunks(links: Links, found: Found, start: int) -> Iterator[bytes]:
    """The bytes of a session from `start` to the size that was found."""
    return bytes_of(_rows(links, found, start), start, found.size)


def newest(links: Links, found: Found) -> Iterator[Record | None]:
    """The lines of a session from the newest to the oldest; what is held at a time is bounded, or is one line."""

    def fetch(before: int, count: int) -> list[Row]:
        return ask(before, before - READ_BYTES, count) or ask(before, 0, 1)

    def ask(before: int, start: int, count: int) -> list[Row]:
        with links.take("read") as link:
            rows: list[Row] = link.execute(_NEWEST, (found.number, before, start, count), binary=True).fetchall()
        return rows

    return newest_records(fetch, found.size)


def names(links: Links, statement: str) -> Iterator[str]:
    """Ids, sorted: of all sessions (`IDS`) or of those that may have something open (`INTERRUPTED`)."""
    last = b""
    while True:
        with links.take("list") as link:
            rows = link.execute(statement.encode(), (last, ROWS)).fetchall()
        for _, name in rows:
            yield name.decode("utf-8", "surrogatepass")
        if len(rows) < ROWS:
            return
        last = rows[-1][0]


def _rows(links: Links, found: Found, start: int) -> Iterator[Row]:
    """Positions count bytes, so that a range of them bounds what is held at a time."""
    if start:
        place = _place(links, _LINE_AT, found.number, start)
        start = start if place is None else place
    while start < found.size:
        until = min(start + READ_BYTES, found.size)
        with links.take("read") as link:
            rows = link.execute(_LINES, (found.number, start, until), binary=True).fetchall()
        yield from rows
        if rows:
            start = rows[-1][0] + 1
        else:
            place = _place(links, _LINE_FROM, found.number, until)
            start = found.size if place is None else place


def _place(links: Links, statement: str, number: int, place: int) -> int | None:
    with links.take("read") as link:
        row = link.execute(statement.encode(), (number, place)).fetchone()
    return None if row is None else row[0]
