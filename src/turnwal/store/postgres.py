"""PostgreSQL: sessions of many machines in one database.

Promises:
- An append is one statement that checks the epoch, the lease and the head, and inserts; appends of many sessions of
  this process that wait at the same time share one transaction.
- An owner is alive as long as its lease has not expired by the clock of the database; a later owner's epoch fences it
  off however late it wakes.
- Whatever goes wrong with an append, a notice of the server included, leaves its outcome unknown and closes the claim.

Does not: lock anything beyond a statement, make its tables unasked, or use what other servers of the protocol lack.
"""

import os
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final

from turnwal.core.chain import EMPTY, Head
from turnwal.core.errors import (
    ClosedAfterFailure,
    OwnershipLost,
    SessionHeld,
    SessionNotFound,
)
from turnwal.core.limits import PENDING_BYTES_MAX, READ_BYTES
from turnwal.core.line import GENESIS, Unreadable, read
from turnwal.store.batch import check_batch, check_history, taken
from turnwal.store.committing import GroupCommit, Pending
from turnwal.store.frames import frames
from turnwal.store.hints import open_from
from turnwal.store.lease import Keeper, Lease
from turnwal.store.names import NOT_FOUND_HINT, check_id
from turnwal.store.owner import describe, told, written
from turnwal.store.postgres_append import Tail, Work, append_alone, append_together, check_notices, insert_lines
from turnwal.store.postgres_link import Link, Links, durability_of
from turnwal.store.postgres_schema import check_schema
from turnwal.store.protocol import Gap, Presence, Record

_POLL_S: Final = 0.05
_ROWS: Final = 256
_KEY_BYTES: Final = 1000
"""How much of an id stands in the index as it is; an index entry has its limit in every database."""

_LOOK: Final = (
    "SELECT s.number, s.epoch, s.size, s.owner, coalesce(l.expires > CURRENT_TIMESTAMP, FALSE) "
    "FROM turnwal_session s LEFT JOIN turnwal_lease l ON l.id = s.lease WHERE s.key = %s"
)
_MAKE: Final = "INSERT INTO turnwal_session (key, id, hash) VALUES (%s, %s, %s) ON CONFLICT (key) DO NOTHING"
_TAKE: Final = (
    "UPDATE turnwal_session SET epoch = epoch + 1, lease = %s, owner = %s WHERE number = %s AND epoch = %s "
    "AND EXISTS (SELECT 1 FROM turnwal_lease WHERE id = %s AND expires > CURRENT_TIMESTAMP) "
    "RETURNING epoch, events, hash, size, open_from"
)
_ALIVE: Final = "SELECT 1 FROM turnwal_lease WHERE id = %s AND expires > CURRENT_TIMESTAMP"
_FINISH: Final = "UPDATE turnwal_session SET events = %s, hash = %s, size = %s, open_from = %s WHERE number = %s"


class PostgresClaim:
    """Ownership of one session in a PostgreSQL database."""

    def __init__(self, store: "PostgresStore", session: str, number: int, epoch: int, lease: Lease, tail: Tail) -> None:
        """Hold an epoch that was written, and the end of the session at that moment."""
        self._store = store
        self._session = session
        self._number = number
        self._epoch = epoch
        self._lease = lease
        self._tail = tail
        self._pid = os.getpid()
        self._in_doubt = False
        self._released = False

    @property
    def session(self) -> str:
        """The id of the session that is owned."""
        return self._session

    @property
    def released(self) -> bool:
        """Whether the session was given up."""
        return self._released

    def append(self, lines: Sequence[bytes], after: Head) -> None:
        """Make a batch of lines durable, all or nothing; see `Claim.append`."""
        if self._pid != os.getpid():
            raise self._lost("this process was forked from the owner", "open the session in the child by itself")
        if self._released:
            raise self._lost("the claim was released", "claim the session again")
        if self._in_doubt:
            raise ClosedAfterFailure(
                "an earlier append failed and its outcome is unknown",
                action="append",
                subject=self._session,
                hint="open the session anew; recovery describes what is there",
            )
        if self._lease.lost:
            raise self._lost("the lease of this process expired", "open the session anew")
        head = check_batch(lines, after, session=self._session)
        if not lines:
            return
        work = Work(self._number, self._session, self._epoch, self._lease, lines, after, head, self._tail)
        self._in_doubt = True
        try:
            self._store.commit(work)
        except OwnershipLost:
            self._in_doubt = False
            raise
        self._in_doubt = False

    def release(self) -> None:
        """Give the session up; idempotent."""
        if self._pid == os.getpid() and not self._released:
            self._released = True
            self._store.free(self._lease, self._number, self._epoch)

    def end(self) -> None:
        """Be released without a word to the server, which hears that the whole lease ended."""
        self._released = True

    def _lost(self, reason: str, hint: str) -> OwnershipLost:
        return OwnershipLost(reason, action="append", subject=self._session, hint=hint)


class PostgresStore:
    """Sessions in a PostgreSQL database, for many machines."""

    kind = "postgresql"

    def __init__(self, dsn: str, *, lease_s: float = 10.0, timeout_s: float = 10.0) -> None:
        """Stand for a database; nothing is connected yet. Raises `InvalidStoreUrl`.

        `lease_s` is how long after its death a process is still held to be alive. Nothing waits longer for an answer
        of the server than `timeout_s`.
        """
        self._links = Links(dsn, timeout_s)
        self._keeper = Keeper(self._links, lease_s)
        self._group: GroupCommit[Work] = GroupCommit(self._commit)
        self._mutex = threading.Lock()
        self._durability: str | None = None
        self._pid = os.getpid()
        self._claims: list[PostgresClaim] = []

    @property
    def durability(self) -> str:
        """`replicated` where a commit waits for a standby, else `machine`, as the server says. Raises `StoreFailed`."""
        self._check()
        return self._durability or "machine"

    # The door

    def claim(self, session: str, *, create: bool = True, wait: float = 0.0, owner: str = "") -> PostgresClaim:
        """Become the owner of a session; see `Store.claim`."""
        key = _key_of(session)
        self._check_own()
        self._check()
        deadline = time.monotonic() + wait
        description = written(describe(owner)).decode().rstrip("\n")
        while True:
            claim, holder = self._attempt(session, key, description, create=create)
            if claim is not None:
                break
            if holder is not None:
                if time.monotonic() >= deadline:
                    raise SessionHeld(
                        f"held by {holder}",
                        holder=holder,
                        action="claim",
                        subject=session,
                        hint="wait for it to end, or pass `wait`",
                    )
                time.sleep(_POLL_S)
        with self._mutex:
            self._claims = [*(held for held in self._claims if not held.released), claim]
        return claim

    def read(
        self, session: str, position: int = 0, *, after: Head | None = None, past_damage: bool = False
    ) -> Iterator[Record | Gap]:
        """Yield the records from a position on; see `Store.read`."""
        number, size = self._known(session, "read")

        def chunks(start: int) -> Iterator[bytes]:
            for place, line in self._lines(number, start, size):
                yield (line + b"\n")[max(start - place, 0) :]

        yield from frames(chunks, position, after=after, past_damage=past_damage, subject=session)

    def newest(self, session: str) -> Iterator[Record | None]:
        """Yield the lines from the newest to the oldest; see `Store.newest`."""
        number, size = self._known(session, "read")
        statement = (
            "SELECT position, line FROM turnwal_line WHERE session = %s AND position < %s "
            "ORDER BY position DESC LIMIT %s"
        )
        reach = 4
        while True:
            with self._links.take("read") as link:
                rows = link.execute(statement, (number, size, reach)).fetchall()
            for place, line in rows:
                size = place
                try:
                    yield Record(place, line, read(line))
                except Unreadable:
                    yield None
            if len(rows) < reach:
                return
            reach = min(2 * reach, _ROWS)

    def probe(self, session: str) -> Presence:
        """Say whether a session exists, is empty, and is owned now."""
        row = self._look(_key_of(session), "probe")
        if row is None:
            return Presence(exists=False, empty=False, owner=None)
        _, _, size, owner, alive = row
        return Presence(exists=True, empty=not size, owner=told(owner.encode()) if alive else None)

    def sessions(self) -> Iterator[str]:
        """Yield the ids of all sessions, sorted."""
        yield from self._names("SELECT key, id FROM turnwal_session WHERE key > %s ORDER BY key LIMIT %s")

    def interrupted(self) -> Iterator[str]:
        """Yield the ids of the sessions with an open turn, sorted, from the index; an owner may be alive."""
        yield from self._names(
            "SELECT key, id FROM turnwal_session WHERE open_from IS NOT NULL AND key > %s ORDER BY key LIMIT %s"
        )

    def put(self, session: str, lines: Iterable[bytes]) -> Head:
        """Keep a whole history under a new id, all or nothing; see `Store.put`.

        The lines are gathered first, so that the transaction lasts only while they are inserted.
        """
        key = _key_of(session)
        if self._look(key, "put") is not None:
            raise taken(session)
        with tempfile.SpooledTemporaryFile(max_size=PENDING_BYTES_MAX) as gathered:
            head = EMPTY
            for piece, reached in check_history(lines, session=session):
                gathered.write(b"".join(line + b"\n" for line in piece))
                head = reached
            gathered.seek(0)
            with self._links.take("put") as link:
                stored = self._put_whole(link, session, key, gathered, head)
                check_notices(link, session)
        if not stored:
            raise taken(session)
        return head

    def close(self) -> None:
        """Release the claims and the connections."""
        with self._mutex:
            claims, self._claims = self._claims, []
        if self._pid != os.getpid():
            return
        for claim in claims:
            claim.end()
        self._keeper.end()
        self._links.close()

    # Writing

    def commit(self, work: Work) -> None:
        """Return when an append is durable, together with whatever waits at the same time."""
        self._group.append(work)

    def free(self, lease: Lease, number: int, epoch: int) -> None:
        """Give a session up."""
        self._keeper.free(lease, number, epoch)

    def _commit(self, group: Sequence[Pending[Work]]) -> None:
        with self._links.take("append") as link:
            link.notices.clear()
            if len(group) == 1:
                append_alone(link, group[0])
            else:
                append_together(link, group, self._links.subject)

    def _put_whole(self, link: Link, session: str, key: bytes, gathered: Iterable[bytes], head: Head) -> bool:
        """Insert a history in one transaction; False where the id is taken."""
        link.notices.clear()
        link.execute("BEGIN")
        made = link.execute(f"{_MAKE} RETURNING number", (key, _bytes_of(session), GENESIS)).fetchone()
        if made is None:
            link.execute("ROLLBACK")
            return False
        place, opened = 0, None
        piece: list[tuple[int, int, bytes]] = []
        size = 0
        for row in gathered:
            line = row[:-1]
            opened = open_from((line,), opened)
            piece.append((place, read(line).seq, line))
            place += len(row)
            size += len(row)
            if size >= READ_BYTES:
                insert_lines(link, made[0], piece)
                piece, size = [], 0
        insert_lines(link, made[0], piece)
        link.execute(_FINISH, (head.count, head.hash, place, opened, made[0]))
        link.execute("COMMIT")
        return True

    # Owners

    def _attempt(
        self, session: str, key: bytes, description: str, *, create: bool
    ) -> tuple[PostgresClaim | None, str | None]:
        """A claim, or who holds the session; neither where somebody came in between."""
        row = self._look(key, "claim")
        if row is None:
            if not create:
                raise self._unknown(session, "claim")
            with self._links.take("claim") as link:
                link.execute(_MAKE, (key, _bytes_of(session), GENESIS))
            row = self._look(key, "claim")
            if row is None:
                return None, None
        number, epoch, _, owner, alive = row
        if alive:
            return None, told(owner.encode())
        lease = self._keeper.hold(description)
        try:
            with self._links.take("claim") as link:
                link.notices.clear()
                found = link.execute(_TAKE, (lease.id, description, number, epoch, lease.id)).fetchone()
                check_notices(link, session)
                if found is None and link.execute(_ALIVE, (lease.id,)).fetchone() is None:
                    lease.lost = True
        except BaseException:
            # the session may point to the lease by now: it is freed when the server can be told
            lease.owed.append((number, epoch + 1))
            self._keeper.drop(lease)
            raise
        if found is None:
            self._keeper.drop(lease)
            return None, None
        taken_epoch, events, digest, size, opened = found
        tail = Tail(Head(events, digest), size, opened)
        return PostgresClaim(self, session, number, taken_epoch, lease, tail), None

    def _check(self) -> None:
        """Return if the tables are ours; asked of the server once."""
        if self._durability is None:
            with self._links.take("open") as link:
                check_schema(link, self._links.subject)
                self._durability = durability_of(link)

    def _check_own(self) -> None:
        if self._pid != os.getpid():
            raise OwnershipLost(
                "this store was opened by the parent of this process",
                action="open",
                subject=self._links.subject,
                hint="open the store again in the child",
            )

    # Reading

    def _look(self, key: bytes, action: str) -> tuple[int, int, int, str, bool] | None:
        """Number, epoch, size, owner of a session and whether that one is alive; None when it is absent."""
        self._check()
        with self._links.take(action) as link:
            row = link.execute(_LOOK, (key,)).fetchone()
        return None if row is None else (row[0], row[1], row[2], row[3], row[4])

    def _known(self, session: str, action: str) -> tuple[int, int]:
        row = self._look(_key_of(session), action)
        if row is None:
            raise self._unknown(session, action)
        return row[0], row[2]

    def _lines(self, number: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """The lines of a session that reach behind `start`, up to the size that was known, with their positions.

        Positions count bytes, so that a range of them bounds what is held at a time.
        """
        if start:
            statement = "SELECT max(position) FROM turnwal_line WHERE session = %s AND position <= %s"
            with self._links.take("read") as link:
                row = link.execute(statement, (number, start)).fetchone()
            start = row[0] if row is not None and row[0] is not None else start
        statement = (
            "SELECT position, line FROM turnwal_line WHERE session = %s AND position >= %s AND position < %s "
            "ORDER BY position"
        )
        while start < end:
            with self._links.take("read") as link:
                rows = link.execute(statement, (number, start, min(start + READ_BYTES, end))).fetchall()
            yield from rows
            start = rows[-1][0] + len(rows[-1][1]) + 1 if rows else start + READ_BYTES

    def _names(self, statement: str) -> Iterator[str]:
        self._check()
        last = b""
        while True:
            with self._links.take("list") as link:
                rows = link.execute(statement, (last, _ROWS)).fetchall()
            for _, name in rows:
                yield name.decode("utf-8", "surrogatepass")
            if len(rows) < _ROWS:
                return
            last = rows[-1][0]

    def _unknown(self, session: str, action: str) -> SessionNotFound:
        return SessionNotFound("no such session", action=action, subject=repr(session), hint=NOT_FOUND_HINT)


def _bytes_of(session: str) -> bytes:
    check_id(session)
    return session.encode("utf-8", "surrogatepass")


def _key_of(session: str) -> bytes:
    """What stands for an id in the index: sorted as the ids are, up to the length that an index can hold."""
    name = _bytes_of(session)
    if len(name) <= _KEY_BYTES:
        return name
    # no text holds the byte FF
    return name[:_KEY_BYTES] + b"\xff" + sha256(name).digest()
