"""What is written into a SQLite file: sessions, their owners, and lines.

Promises:
- A line is inserted only where the statement that inserts finds the session under the number, the id and the epoch
  of the append, and its last line ending where this one begins: no line too many, and none too few.
- A claim writes to the database that it was made in alone: one of another generation (see `Writer`) is refused.
- An append that opens and closes nothing touches the line and its index alone. The session's row holds only what
  changes with owners and turns, so the usual commit writes no page for it.

Does not: begin or end a transaction. Each function runs inside one, or is one statement.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import apsw

from turnwal.core.errors import OwnershipLost, StoreFailed
from turnwal.store.batch import taken
from turnwal.store.committing import Pending
from turnwal.store.hints import open_from
from turnwal.store.rowclaim import Ownership, Work
from turnwal.store.rows import end_of

LAST: Final = "SELECT position, length(line) FROM line WHERE session = ? ORDER BY position DESC LIMIT 1"

_NUMBER: Final = "SELECT number FROM session WHERE id = ?"
_MAKE: Final = "INSERT INTO session (id) VALUES (?) ON CONFLICT (id) DO NOTHING"
_OWN: Final = "UPDATE session SET epoch = epoch + 1, owner = ? WHERE number = ? AND id = ? RETURNING epoch, open_from"
_EPOCH: Final = "SELECT epoch FROM session WHERE number = ? AND id = ?"
_INSERT: Final = "INSERT INTO line (session, position, line) VALUES (?, ?, ?)"
_INSERT_OWNED: Final = (
    "INSERT INTO line (session, position, line) "
    "VALUES ((SELECT number FROM session WHERE number = ?3 AND id = ?4 AND epoch = ?5 "
    "AND ?1 = coalesce((SELECT position + length(line) + 1 FROM line WHERE session = ?3 "
    "ORDER BY position DESC LIMIT 1), 0)), ?1, ?2)"
)
"""Without a session it inserts nothing, as its number may not be NULL. A SELECT of the table that it inserts into would
copy each line into a temporary table first."""
_OPENED: Final = "UPDATE session SET open_from = ? WHERE number = ?"


class Made(NamedTuple):
    """An append, and the generation of the database that its claim was made in."""

    work: Work
    generation: int


def number_of(connection: apsw.Connection, name: bytes) -> int:
    """The number of a session, which is made where it is missing."""
    connection.execute(_MAKE, (name,))
    number: int = connection.execute(_NUMBER, (name,)).get
    return number


def own(connection: apsw.Connection, number: int, name: bytes, description: str) -> Ownership:
    """Write a new owner; every earlier one is fenced off. Raises `StoreFailed` where the session is gone."""
    found = connection.execute(_OWN, (description, number, name)).fetchone()
    if found is None:
        hint = "try again, and find out what replaces the database"
        subject = name.decode("utf-8", "replace")
        raise StoreFailed("another database came in its place", action="claim", subject=subject, hint=hint)
    epoch, opened = found
    last = connection.execute(LAST, (number,)).fetchone()
    return Ownership(number, epoch, end_of(*last) if last else 0, opened)


def is_one_statement(work: Work) -> bool:
    """Whether an append is made by one statement: one line, which opens and closes nothing."""
    return len(work.lines) == 1 and work.opened == work.before


def append(connection: apsw.Connection, group: Sequence[Pending[Made]], generation: int) -> None:
    """Insert what each append holds; the error of one that is refused is set, and leaves the others alone."""
    for pending in group:
        work, made_in = pending.work
        pending.error = _insert(connection, work) if made_in == generation else _outlived(work)


def insert_whole(connection: apsw.Connection, name: bytes, session: str, gathered: Iterable[bytes]) -> None:
    """Insert a whole history, each line with its newline. Raises `SessionExists` where its id is taken."""
    if connection.execute(_NUMBER, (name,)).get is not None:
        raise taken(session)
    number = number_of(connection, name)
    place, opened = 0, None
    for row in gathered:
        line = row[:-1]
        opened = open_from((line,), opened)
        connection.execute(_INSERT, (number, place, line))
        place = end_of(place, len(line))
    if opened is not None:
        connection.execute(_OPENED, (opened, number))


def _insert(connection: apsw.Connection, work: Work) -> OwnershipLost | None:
    places, lines = work.places, work.lines
    name = work.session.encode("utf-8", "surrogatepass")
    try:
        connection.execute(_INSERT_OWNED, (places[0], lines[0], work.number, name, work.epoch))
    except apsw.ConstraintError:
        # what the statement did is undone, the transaction goes on
        return work.refused(connection.execute(_EPOCH, (work.number, name)).get)
    for index in range(1, len(lines)):
        connection.execute(_INSERT, (work.number, places[index], lines[index]))
    if work.opened != work.before:
        connection.execute(_OPENED, (work.opened, work.number))
    return None


def _outlived(work: Work) -> OwnershipLost:
    return OwnershipLost(
        "the database was removed or replaced, in part or as a whole, since this claim was made",
        action="append",
        subject=work.session,
        hint="open the session anew, and find out what moves or deletes the database or files beside it",
    )
