"""The append to a session in PostgreSQL: one statement that checks and inserts, or writes nothing.

Promises:
- Nothing is inserted unless the epoch, the lease and the head are, at that moment, those that the append builds on.
- What a group is told: durable, refused with a reason, or unknown; a statement of one that fails leaves the others be.

Does not: retry anything whose outcome is unknown.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import psycopg
from psycopg import pq

from turnwal.core.chain import Head
from turnwal.core.errors import OwnershipLost, StoreFailed
from turnwal.store.batch import check_head
from turnwal.store.committing import Pending
from turnwal.store.hints import open_from
from turnwal.store.lease import Lease
from turnwal.store.postgres_link import Link, failure

_MOVE: Final = (
    "WITH moved AS ("
    "UPDATE turnwal_session SET events = %s, hash = %s, size = %s, open_from = %s "
    "WHERE number = %s AND epoch = %s AND events = %s AND hash = %s AND lease = %s AND EXISTS ("
    "SELECT 1 FROM turnwal_lease WHERE id = %s AND expires > CURRENT_TIMESTAMP) "
    "RETURNING number) "
    "INSERT INTO turnwal_line (session, position, seq, line) "
)
_ONE: Final = _MOVE + "SELECT number, %s, %s, %s FROM moved"  # noqa: S608 - both are constants
"""One line, the usual case: it takes half the time of an array of one."""
_MANY: Final = (
    _MOVE + "SELECT moved.number, new.position, new.seq, new.line FROM moved CROSS JOIN "  # noqa: S608 - as above
    "unnest(%s::bigint[], %s::bigint[], %s::bytea[]) AS new (position, seq, line)"
)
_INSERT: Final = (
    "INSERT INTO turnwal_line (session, position, seq, line) "
    "SELECT %s::bigint, new.position, new.seq, new.line "
    "FROM unnest(%s::bigint[], %s::bigint[], %s::bytea[]) AS new (position, seq, line)"
)
_WHY: Final = (
    "SELECT epoch, events, hash, lease, "
    "EXISTS (SELECT 1 FROM turnwal_lease WHERE id = %s AND expires > CURRENT_TIMESTAMP) "
    "FROM turnwal_session WHERE number = %s"
)


class End(NamedTuple):
    """Where a session ends, and what is open there."""

    head: Head
    size: int
    opened: int | None


class Tail:
    """The end of an owned session as its owner knows it; changed only by a commit."""

    def __init__(self, head: Head, size: int, opened: int | None) -> None:
        """Begin where the session ended when it was claimed."""
        self.end = End(head, size, opened)


class Work(NamedTuple):
    """One append: whose, what, behind which head, and the head after it."""

    number: int
    session: str
    epoch: int
    lease: Lease
    lines: Sequence[bytes]
    after: Head
    head: Head
    tail: Tail


def append_alone(link: Link, pending: Pending[Work]) -> None:
    """Append in one round trip. Sets the error of what is refused; raises where the outcome is unknown."""
    work = pending.work
    statement, values, end = _statement(work, work.tail.end)
    count = link.execute(statement, values).rowcount
    check_notices(link, work.session)
    if count == len(work.lines):
        work.tail.end = end
    else:
        pending.error = _refusal(link, work)


def append_together(link: Link, group: Sequence[Pending[Work]], subject: str) -> None:
    """Append for many in one transaction of two round trips, one of them the commit."""
    try:
        counts, ends = _insert_all(link, group)
    except psycopg.Error:
        if link.pgconn.transaction_status != pq.TransactionStatus.INERROR:
            raise
        # the commit was not sent, so nothing is there; the one at fault is found by asking each
        link.execute("ROLLBACK")
        _append_each(link, group, subject)
        return
    link.execute("COMMIT")
    check_notices(link, subject)
    for pending, count, end in zip(group, counts, ends, strict=True):
        if count == len(pending.work.lines):
            pending.work.tail.end = end
        else:
            pending.error = _refusal(link, pending.work)


def insert_lines(link: Link, number: int, rows: Sequence[tuple[int, int, bytes]]) -> None:
    """Insert lines (position, seq, bytes) of a session that nobody sees yet."""
    if rows:
        places, seqs, lines = zip(*rows, strict=True)
        link.execute(_INSERT, (number, list(places), list(seqs), list(lines)))


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


def _insert_all(link: Link, group: Sequence[Pending[Work]]) -> tuple[list[int], list[End]]:
    ends: list[End] = []
    expected: dict[int, End] = {}
    with link.pipeline():
        link.execute("BEGIN")
        cursors = []
        for pending in group:
            work = pending.work
            before = expected.get(work.number, work.tail.end)
            if before.head != work.after:
                before = work.tail.end
            statement, values, end = _statement(work, before)
            expected[work.number] = end
            ends.append(end)
            cursors.append(link.execute(statement, values))
    return [cursor.rowcount for cursor in cursors], ends


def _append_each(link: Link, group: Sequence[Pending[Work]], subject: str) -> None:
    for pending in group:
        try:
            append_alone(link, pending)
        except psycopg.Error as error:
            if link.pgconn.transaction_status != pq.TransactionStatus.IDLE:
                raise
            pending.error = failure(error, "append", subject)
        except StoreFailed as error:
            pending.error = error


def _statement(work: Work, before: End) -> tuple[str, tuple[object, ...], End]:
    places, size = [], before.size
    for line in work.lines:
        places.append(size)
        size += len(line) + 1
    end = End(work.head, size, open_from(work.lines, before.opened))
    seqs = list(range(work.head.count - len(work.lines), work.head.count))
    moved = (work.head.count, work.head.hash, size, end.opened)
    where = (work.number, work.epoch, work.after.count, work.after.hash, work.lease.id, work.lease.id)
    if len(seqs) == 1:
        return _ONE, (*moved, *where, places[0], seqs[0], bytes(work.lines[0])), end
    return _MANY, (*moved, *where, places, seqs, [bytes(line) for line in work.lines]), end


def _refusal(link: Link, work: Work) -> OwnershipLost:
    """Why nothing was written: somebody else came, the lease expired, or the head is another."""
    row = link.execute(_WHY, (work.lease.id, work.number)).fetchone()
    if row is None:
        reason = "the session is not there any more"
    else:
        epoch, events, digest, lease, alive = row
        if (epoch, lease) != (work.epoch, work.lease.id):
            reason = f"another owner came since (epoch {epoch}, this one is {work.epoch})"
        elif not alive:
            work.lease.lost = True
            reason = "the lease of this process expired"
        else:
            try:
                check_head(work.after, Head(events, digest), session=work.session)
            except OwnershipLost as lost:
                return lost
            reason = "the session changed while it was written"
    return OwnershipLost(reason, action="append", subject=work.session, hint="open the session anew")
