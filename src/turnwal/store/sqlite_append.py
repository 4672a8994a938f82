"""What is written into a SQLite file: sessions, their owners, and lines.

Promises:
- A line is inserted only where the session's epoch is that of the append, by the statement that inserts, and only
  where no other line begins: the head cannot have moved under an owner that both allow.
- An append that opens and closes nothing touches the line and its index alone. The session's row holds only what
  changes with owners and turns, so the usual commit writes no page for it.

Does not: begin or end a transaction. Each function runs inside one, or is one statement.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import apsw

from turnwal.core.errors import OwnershipLost
from turnwal.store.batch import taken
from turnwal.store.committing import Pending
from turnwal.store.hints import open_from
from turnwal.store.rowclaim import Ownership, Work
from turnwal.store.rows import end_of

LAST: Final = "SELECT position, length(line) FROM line WHERE session = ? ORDER BY position DESC LIMIT 1"

_NUMBER: Final = "SELECT number FROM session WHERE id = ?"
_MAKE: Final = "INSERT INTO session (id) VALUES (?) ON CONFLICT (id) DO NOTHING"
_OWN: Final = "UPDATE session SET epoch = epoch + 1, owner = ? WHERE number = ? RETURNING epoch, open_from"
_EPOCH: Final = "SELECT epoch FROM session WHERE number = ?"
_INSERT: Final = "INSERT INTO line (session, position, line) VALUES (?, ?, ?)"
_INSERT_OWNED: Final = (
    "INSERT INTO line (session, position, line) SELECT number, ?, ? FROM session WHERE number = ? AND epoch = ?"
)
_OPENED: Final = "UPDATE session SET open_from = ? WHERE number = ?"


def number_of(connection: apsw.Connection, name: bytes) -> int:
    """The number of a session, which is made where it is missing."""
    connection.execute(_MAKE, (name,))
    number: int = connection.execute(_NUMBER, (name,)).get
    return number


def own(connection: apsw.Connection, number: int, description: str) -> Ownership:
    """Write a new owner; every earlier one is fenced off."""
    epoch, opened = next(connection.execute(_OWN, (description, number)))
    last = connection.execute(LAST, (number,)).fetchone()
    return Ownership(number, epoch, end_of(*last) if last else 0, opened)


def is_one_statement(work: Work) -> bool:
    """Whether an append is made by one statement: one line, which opens and closes nothing."""
    return len(work.lines) == 1 and work.opened == work.before


def append(connection: apsw.Connection, group: Sequence[Pending[Work]]) -> None:
    """Insert what each append holds; the error of one that is refused is set, and leaves the others alone."""
    for pending in group:
        pending.error = _insert(connection, pending.work)


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
    try:
        connection.execute(_INSERT_OWNED, (places[0], lines[0], work.number, work.epoch))
    except apsw.ConstraintError:
        # a line begins there already; what the statement did is undone, the transaction goes on
        inserted = False
    else:
        inserted = connection.changes() == 1
    if not inserted:
        return work.refused(connection.execute(_EPOCH, (work.number,)).get)
    for place, line in zip(places[1:], lines[1:], strict=True):
        connection.execute(_INSERT, (work.number, place, line))
    if work.opened != work.before:
        connection.execute(_OPENED, (work.opened, work.number))
    return None
