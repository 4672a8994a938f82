"""What is written into a PostgreSQL database for a session: its lines, and what the index says.

Promises:
- A line is inserted only where the epoch and the lease are those of the append, at that moment: the session's row is
  locked by the statement that inserts, so nobody becomes the owner between the check and the commit. And only where
  the session is the one that was claimed and ends where the line belongs: a server that was restored, or promoted
  without the last lines, is told from the one that acknowledged them.
- What a group is told: durable, refused with a reason, or unknown; a statement of one that fails leaves the others be.
- An append that opens and closes nothing changes no row: what would be a dead version of the session's row each time
  is a lock.

Does not: retry anything whose outcome is unknown.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import psycopg
from psycopg import errors, pq

from turnwal.core.errors import OwnershipLost, StoreFailed
from turnwal.core.limits import READ_BYTES
from turnwal.store.committing import Pending
from turnwal.store.hints import open_from
from turnwal.store.lease import Lease
from turnwal.store.postgres_errors import failure
from turnwal.store.postgres_link import Link, Prepared
from turnwal.store.postgres_queries import id_of
from turnwal.store.rowclaim import Work
from turnwal.store.rows import Row, end_of

MAKE: Final = "INSERT INTO turnwal_session (key, id) VALUES (%s, %s) ON CONFLICT (key) DO NOTHING"

_END: Final = (
    "coalesce((SELECT l.position + octet_length(l.line) + 1 FROM turnwal_line l WHERE l.session = number "
    "ORDER BY l.position DESC LIMIT 1), 0)"
)
"""Where the next line of a session belongs. The server knows a line's length without reading the line."""
_ALLOWED: Final = (
    "number = %s AND id = %s AND epoch = %s AND lease = %s "  # noqa: S608 - of constants, as what follows
    "AND EXISTS (SELECT 1 FROM turnwal_lease WHERE id = %s AND expires > CURRENT_TIMESTAMP) "
    f"AND {_END} = %s"
)
_HELD: Final = f"WITH mine AS (SELECT number FROM turnwal_session WHERE {_ALLOWED} FOR UPDATE) "  # noqa: S608 - constant
_MOVED: Final = f"WITH mine AS (UPDATE turnwal_session SET open_from = %s WHERE {_ALLOWED} RETURNING number) "  # noqa: S608 - as above
_ONE: Final = "INSERT INTO turnwal_line (session, position, line) SELECT number, %s, %s FROM mine"
"""One line, the usual case: it takes half the time of an array of one."""
_MANY: Final = (
    "INSERT INTO turnwal_line (session, position, line) SELECT mine.number, new.position, new.line "
    "FROM mine CROSS JOIN unnest(%s::bigint[], %s::bytea[]) AS new (position, line)"
)
_USUAL: Final = Prepared.of(
    "turnwal_one", _HELD + _ONE, ("int8", "bytea", "int8", "text", "text", "int8", "int8", "bytea")
)
_GATHERED: Final = (
    "INSERT INTO turnwal_line (session, position, line) SELECT %s::bigint, new.position, new.line "
    "FROM unnest(%s::bigint[], %s::bytea[]) AS new (position, line)"
)
_OPENED: Final = "UPDATE turnwal_session SET open_from = %s WHERE number = %s"
_WHY: Final = (
    "SELECT epoch, lease, EXISTS (SELECT 1 FROM turnwal_lease WHERE id = %s AND expires > CURRENT_TIMESTAMP), "  # noqa: S608 - as above
    f"{_END} FROM turnwal_session WHERE number = %s AND id = %s"
)


class Leased(NamedTuple):
    """An append, and the lease under which it is made."""

    work: Work
    lease: Lease


def append_alone(link: Link, pending: Pending[Leased]) -> None:
    """Append in one round trip. Sets the error of what is refused; raises where the outcome is unknown."""
    work, lease = pending.work
    try:
        if len(work.lines) == 1 and work.opened == work.before:
            written = link.write(_USUAL, _usual(work, lease))
        else:
            written = link.execute(*_statement(work, lease)).rowcount
    except errors.UniqueViolation:
        written = 0
    check_notices(link, work.session)
    if written != len(work.lines):
        pending.error = _refusal(link, work, lease)


def append_together(link: Link, group: Sequence[Pending[Leased]], subject: str) -> None:
    """Append for many in one transaction of one round trip.

    The commit is sent with the rest: a process that is stopped in between would keep the rows of its sessions locked.
    """
    try:
        with link.one_trip():
            link.execute("BEGIN")
            cursors = [link.execute(*_statement(*pending.work)) for pending in group]
            link.execute("COMMIT")
        written = [cursor.rowcount for cursor in cursors]
    except psycopg.Error:
        if link.pgconn.transaction_status != pq.TransactionStatus.INERROR:
            raise
        # what follows a failed statement is skipped, the commit too; the one at fault is found by asking each
        link.roll_back()
        _append_each(link, group, subject)
        return
    check_notices(link, subject)
    for pending, count in zip(group, written, strict=True):
        if count != len(pending.work.work.lines):
            pending.error = _refusal(link, *pending.work)


def insert_whole(link: Link, key: bytes, id: bytes, session: str, gathered: Iterable[bytes]) -> bool:
    """Insert a whole history, each line with its newline, in one transaction; False where its id is taken."""
    link.notices.clear()
    link.execute("BEGIN")
    if link.bounds_transactions:
        link.execute("SET LOCAL transaction_timeout = 0")
    made = link.execute(f"{MAKE} RETURNING number", (key, id)).fetchone()
    if made is None:
        link.roll_back()
        return False
    place, opened = 0, None
    piece: list[Row] = []
    size = 0
    for row in gathered:
        line = row[:-1]
        opened = open_from((line,), opened)
        piece.append((place, line))
        place = end_of(place, len(line))
        size += len(row)
        if size >= READ_BYTES:
            _insert(link, made[0], piece)
            piece, size = [], 0
    _insert(link, made[0], piece)
    if opened is not None:
        link.execute(_OPENED, (opened, made[0]))
    link.execute("COMMIT")
    check_notices(link, session)
    return True


def check_notices(link: Link, subject: str) -> None:
    """Return if the server said nothing beside the commit; a cancelled wait for a standby is only a notice."""
    if link.notices:
        notice = "; ".join(link.notices)
        link.notices.clear()
        raise StoreFailed(
            f"the server added to its answer: {notice:.500}",
            action="append",
            subject=subject,
            hint="it may not be as durable as was asked for; open the session anew to see what is there",
        )


def _insert(link: Link, number: int, rows: Sequence[Row]) -> None:
    if rows:
        places, lines = zip(*rows, strict=True)
        link.execute(_GATHERED, (number, list(places), list(lines)))


def _append_each(link: Link, group: Sequence[Pending[Leased]], subject: str) -> None:
    for pending in group:
        try:
            append_alone(link, pending)
        except psycopg.Error as error:
            if link.pgconn.transaction_status != pq.TransactionStatus.IDLE:
                raise
            pending.error = failure(error, "append", subject)
        except StoreFailed as error:
            pending.error = error


def _usual(work: Work, lease: Lease) -> tuple[bytes, ...]:
    """The values of `_USUAL`, as the server wants them."""
    name = lease.id.encode()
    number, epoch, place = (
        work.number.to_bytes(8, "big"),
        work.epoch.to_bytes(8, "big"),
        work.places[0].to_bytes(8, "big"),
    )
    return number, id_of(work.session), epoch, name, name, place, place, work.lines[0]


def _statement(work: Work, lease: Lease) -> tuple[str, tuple[object, ...]]:
    session = id_of(work.session)
    allowed: tuple[object, ...] = (work.number, session, work.epoch, lease.id, lease.id, work.places[0])
    mine = _HELD
    if work.opened != work.before:
        mine, allowed = _MOVED, (work.opened, *allowed)
    if len(work.lines) == 1:
        return mine + _ONE, (*allowed, work.places[0], work.lines[0])
    return mine + _MANY, (*allowed, work.places, work.lines)


def _refusal(link: Link, work: Work, lease: Lease) -> OwnershipLost:
    """Why nothing was written: somebody else came, the lease ended, or the session ends elsewhere."""
    row = link.execute(_WHY, (lease.id, work.number, id_of(work.session))).fetchone()
    if row is None:
        return work.refused(None)
    epoch, held, alive, end = row
    if epoch != work.epoch:
        return work.refused(epoch)
    if not alive:
        lease.lost = True
        return _lost("the lease of this process expired", work)
    if held != lease.id:
        return _lost("the session was given up in the meantime", work)
    if end < work.places[0]:
        return _lost(
            f"the last {work.places[0] - end:,} bytes that were acknowledged are not there any more",
            work,
            hint="a copy of the database without them was put in its place; open the session anew to go on without",
        )
    return work.refused(epoch)


def _lost(reason: str, work: Work, hint: str = "open the session anew") -> OwnershipLost:
    return OwnershipLost(reason, action="append", subject=work.session, hint=hint)
