"""PostgreSQL: sessions of many machines in one database.

Promises:
- An append is one statement that checks the epoch, the lease and the place, and inserts; appends of many sessions of
  this process that wait at the same time share one transaction.
- An owner is alive as long as its lease has not expired by the clock of the database; a later owner's epoch fences it
  off however late it wakes.
- Whatever goes wrong with an append, a notice of the server included, leaves its outcome unknown and closes the claim.

Does not: lock anything beyond a statement, make its tables unasked, or use what other servers of the protocol lack.
"""

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from turnwal.core.chain import Head
from turnwal.core.errors import InvalidStoreUrl, OwnershipLost, SessionHeld
from turnwal.store.batch import taken
from turnwal.store.committing import GroupCommit, Pending
from turnwal.store.disk import Disk
from turnwal.store.frames import frames
from turnwal.store.gathering import gathered
from turnwal.store.heads import Heads, Option, outstanding
from turnwal.store.lease import Hold, Keeper, Lease
from turnwal.store.names import not_found
from turnwal.store.owner import describe, told, written
from turnwal.store.postgres_append import MAKE, Leased, append_alone, append_together, check_notices, insert_whole
from turnwal.store.postgres_link import durability_of
from turnwal.store.postgres_links import Links
from turnwal.store.postgres_queries import IDS, INTERRUPTED, SIZE, Found, chunks, find, id_of, key_of, names, newest
from turnwal.store.postgres_schema import check_schema
from turnwal.store.protocol import Gap, Kept, Presence, Record
from turnwal.store.rowclaim import Ownership, RowClaim, Work
from turnwal.store.surely import surely

_POLL_S: Final = 0.05

_TAKE: Final = (
    "UPDATE turnwal_session SET epoch = %s, lease = %s, owner = %s WHERE number = %s AND epoch = %s "
    "AND EXISTS (SELECT 1 FROM turnwal_lease WHERE id = %s AND expires > CURRENT_TIMESTAMP) "
    "RETURNING open_from"
)
_ALIVE: Final = "SELECT 1 FROM turnwal_lease WHERE id = %s AND expires > CURRENT_TIMESTAMP"


class PostgresClaim(RowClaim):
    """Ownership of one session in a PostgreSQL database, as long as the lease of this process lasts."""

    def __init__(self, store: "PostgresStore", session: str, owned: Ownership, lease: Lease) -> None:
        """Point to the lease until the release."""
        super().__init__(store, session, owned, store.heads.file(session))
        self._database = store
        self._lease = lease
        self._told = False

    def end(self) -> None:
        """Be released without a word to the server, which hears that the whole lease ended."""
        self._told = self._standing.released = True

    def _commit(self, work: Work) -> None:
        if self._lease.lost:
            raise self._standing.loss("the lease of this process expired")
        self._database.commit(Leased(work, self._lease))

    def _let_go(self) -> None:
        if not self._told:
            self._database.free(self._lease, (self._number, self._epoch))
            self._told = True


class PostgresStore:
    """Sessions in a PostgreSQL database, for many machines."""

    kind = "postgresql"

    def __init__(self, dsn: str, *, lease_s: float = 10.0, timeout_s: float = 10.0, heads: Option = False) -> None:
        """Stand for a database; nothing is connected yet. Raises `InvalidStoreUrl`.

        `lease_s` is how long after its death a process is still held to be alive. Nothing waits longer for an answer
        of the server than `timeout_s`. `heads` names a directory in which the head of every session is kept.
        """
        if heads is True:
            raise InvalidStoreUrl(
                "heads are kept on a machine of yours, and a database names no directory there",
                action="open",
                subject="postgresql:",
                hint="name the directory: heads=DIR, on a disk that does not go down with the database's",
            )
        self.heads = Heads(Disk(), heads, None)
        """Where the heads of the sessions are kept."""
        self._links = Links(dsn, timeout_s)
        self._keeper = Keeper(self._links, lease_s)
        self._group: GroupCommit[Leased] = GroupCommit(self._commit)
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
        key = key_of(session)
        self._check_own()
        self._check()
        deadline = time.monotonic() + wait
        description = written(describe(owner)).decode().rstrip("\n")
        while True:
            claim, holder = self._attempt(session, key, description, create=create)
            if claim is not None:
                return claim
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

    def read(
        self, session: str, position: int = 0, *, after: Head | None = None, past_damage: bool = False
    ) -> Iterator[Record | Gap]:
        """Yield the records from a position on; see `Store.read`."""
        kept = self.heads.kept(session)
        found = self._known(session)
        yield from frames(
            lambda start: chunks(self._links, found, start),
            position,
            after=after,
            past_damage=past_damage,
            kept=outstanding(kept, after, lambda: newest(self._links, found)),
            subject=session,
        )

    def newest(self, session: str) -> Iterator[Record | None]:
        """Yield the lines from the newest to the oldest; see `Store.newest`."""
        yield from newest(self._links, self._known(session))

    def probe(self, session: str) -> Presence:
        """Say whether a session exists, is empty, and is owned now."""
        found = self._find(key_of(session), "probe")
        if found is None:
            return Presence(exists=False, empty=False, owner=None)
        return Presence(exists=True, empty=not found.size, owner=told(found.owner.encode()) if found.alive else None)

    def kept(self, session: str) -> Kept | None:
        """The head that is kept of a session; see `Store.kept`."""
        return self.heads.kept(session)

    def sessions(self) -> Iterator[str]:
        """Yield the ids of all sessions, sorted."""
        self._check()
        yield from names(self._links, IDS)

    def interrupted(self) -> Iterator[str]:
        """Yield the ids of the sessions that may have something open, sorted, from the index; an owner may be alive.

        None with an open turn is left out. One whose lines do not say what they leave open is in it.
        """
        self._check()
        yield from names(self._links, INTERRUPTED)

    def put(self, session: str, lines: Iterable[bytes]) -> Head:
        """Keep a whole history under a new id, all or nothing; see `Store.put`.

        The lines are gathered first, so that the transaction lasts only while they are inserted.
        """
        key = key_of(session)
        if self._find(key, "put") is not None:
            raise taken(session)
        with (
            gathered(lines, session=session, subject=self._links.subject) as (rows, head),
            self._links.take("put") as link,
        ):
            stored = insert_whole(link, key, id_of(session), session, rows)
        if not stored:
            raise taken(session)
        self.heads.stored(session, head)
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

    def commit(self, work: Leased) -> None:
        """Return when an append is durable, together with whatever waits at the same time."""
        self._group.append(work)

    def free(self, lease: Lease, hold: Hold) -> None:
        """Give a session up; may be repeated."""
        self._keeper.free(lease, hold)

    def _commit(self, group: Sequence[Pending[Leased]]) -> None:
        with self._links.take("append") as link:
            link.notices.clear()
            if len(group) == 1:
                append_alone(link, group[0])
            else:
                append_together(link, group, self._links.subject)

    # Owners

    def _attempt(
        self, session: str, key: bytes, description: str, *, create: bool
    ) -> tuple[PostgresClaim | None, str | None]:
        """A claim, or who holds the session; neither where somebody came in between."""
        found = self._find(key, "claim")
        if found is None:
            if not create:
                raise not_found(session, "claim")
            with self._links.take("claim") as link:
                link.execute(MAKE, (key, id_of(session)))
            found = self._find(key, "claim")
            if found is None:
                return None, None
        if found.alive:
            return None, told(found.owner.encode())
        claim: PostgresClaim | None = None

        def undo() -> None:
            # the session may point to the lease by now: it is freed when the server can be told
            self._keeper.owe(lease, hold)
            if claim is not None:
                claim.end()

        lease, hold = self._keeper.hold(description, found.number, found.epoch)
        try:
            owned = self._take(found, session, lease, hold, description)
            if owned is None:
                self._keeper.drop(lease, hold)
                return None, None
            claim = PostgresClaim(self, session, owned, lease)
            with self._mutex:
                self._claims = [*(held for held in self._claims if not held.released), claim]
        except BaseException:
            surely(undo)
            raise
        return claim, None

    def _take(self, found: Found, session: str, lease: Lease, hold: Hold, description: str) -> Ownership | None:
        """Write the new owner, and see where the session ends; None where somebody came in between."""
        number, epoch = hold
        with self._links.take("claim") as link:
            link.notices.clear()
            row = link.execute(_TAKE, (epoch, lease.id, description, number, found.epoch, lease.id)).fetchone()
            check_notices(link, session)
            if row is None:
                lease.lost = link.execute(_ALIVE, (lease.id,)).fetchone() is None
                return None
            # not before: what an earlier owner was inserting is there by now, or is refused
            end = link.execute(SIZE, (number,)).fetchone()
        return Ownership(number, epoch, 0 if end is None else end[0], row[0])

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

    def _find(self, key: bytes, action: str) -> Found | None:
        self._check()
        return find(self._links, key, action)

    def _known(self, session: str) -> Found:
        found = self._find(key_of(session), "read")
        if found is None:
            raise not_found(session, "read")
        return found
