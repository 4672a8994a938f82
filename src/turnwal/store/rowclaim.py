"""Ownership of a session whose lines are rows of a database: what SQLite and PostgreSQL have in common.

Promises:
- The first append of a claim builds on the end that the store has, or covers the damage there; each later one builds
  on the one before it. What inserts checks the epoch and that the last line ends where the append begins, so it is
  refused where another wrote in between, and where what it builds on is there no more.
- A head that is kept elsewhere is renewed before the acknowledgement, and never before the commit.
- From the moment an append is handed to the store until it is known what became of it, the claim is in doubt.

Does not: know how a store writes, or how its owner proves to be alive.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from turnwal.core.chain import EMPTY, Head
from turnwal.core.chain import after as after_line
from turnwal.core.errors import OwnershipLost
from turnwal.store.batch import check_batch, check_head
from turnwal.store.claiming import Standing
from turnwal.store.covering import check_covered
from turnwal.store.heads import HeadFile, outstanding
from turnwal.store.hints import open_from
from turnwal.store.protocol import Gap, Record
from turnwal.store.rows import end_of


class Ownership(NamedTuple):
    """What was written and found when a session became owned."""

    number: int
    epoch: int
    size: int
    """Where the next line begins."""
    opened: int | None
    """Where the oldest open turn starts, as the index has it."""


class Work(NamedTuple):
    """One append: whose, which lines at which places, and what the index says before and after it."""

    session: str
    number: int
    epoch: int
    places: list[int]
    lines: list[bytes]
    before: int | None
    opened: int | None

    def refused(self, epoch: int | None) -> OwnershipLost:
        """Why nothing was inserted, given the epoch that the store has, None where the session is gone."""
        if epoch is None:
            reason = "the session is not there any more"
        elif epoch != self.epoch:
            reason = f"another owner came since (epoch {epoch}, this one is {self.epoch})"
        else:
            reason = "the stored log does not end where this one goes on"
        return OwnershipLost(reason, action="append", subject=self.session, hint="open the session anew")


class RowStore(Protocol):
    """What a claim needs of its store."""

    def newest(self, session: str) -> Iterator[Record | None]:
        """See `Store.newest`."""
        ...

    def read(self, session: str) -> Iterator[Record | Gap]:
        """See `Store.read`."""
        ...


class RowClaim(ABC):
    """Ownership of one session; each store adds how it writes, and what ends the ownership."""

    def __init__(self, store: RowStore, session: str, owned: Ownership, kept: HeadFile | None = None) -> None:
        """Hold what was written when the session became owned."""
        self._store = store
        self._standing = Standing(session)
        self._number = owned.number
        self._epoch = owned.epoch
        self._size = owned.size
        self._opened = owned.opened
        self._head: Head | None = None
        self._kept = kept

    @property
    def session(self) -> str:
        """The id of the session that is owned."""
        return self._standing.session

    @property
    def released(self) -> bool:
        """Whether the session was given up."""
        return self._standing.released

    def append(self, lines: Sequence[bytes], after: Head) -> None:
        """Make a batch of lines durable, all or nothing; see `Claim.append`."""
        standing = self._standing
        standing.check()
        session = standing.session
        if self._head is not None:
            check_head(after, self._head, session=session)
        head = check_batch(lines, after, session=session)
        if not lines:
            return
        if self._head is None:
            self._check_end(lines[0], after)
        kept = [bytes(line) for line in lines]
        places = []
        size = self._size
        for line in kept:
            places.append(size)
            size = end_of(size, len(line))
        opened = open_from(lines, self._opened)
        standing.in_doubt = True
        try:
            self._commit(Work(session, self._number, self._epoch, places, kept, self._opened, opened))
        except OwnershipLost:
            standing.in_doubt = False
            raise
        self._head, self._size, self._opened = head, size, opened
        if self._kept is not None:
            self._kept.keep(head)
        standing.in_doubt = False

    def release(self) -> None:
        """Give the session up; idempotent."""
        if not self._standing.inherited:
            self._standing.released = True
            if self._kept is not None:
                self._kept.close()
            self._let_go()

    @abstractmethod
    def _commit(self, work: Work) -> None:
        """Return when an append is durable. Raises `OwnershipLost` where nothing was written."""

    @abstractmethod
    def _let_go(self) -> None:
        """Let others in; called again where a release was interrupted, or repeated."""

    def _check_end(self, first: bytes, after: Head) -> None:
        """Return if `after` is the head that the store has, or `first` covers all that stands behind it."""
        session = self._standing.session
        newest = next(self._store.newest(session), None)
        if newest is not None and after_line(newest.line, newest.event) == after:
            known = None if self._kept is None else self._kept.kept()
            if outstanding(known, after, lambda: self._store.newest(session)) is None:
                return
        reached = EMPTY
        for found in self._store.read(session):
            if isinstance(found, Gap):
                check_head(after, reached, session=session)
                check_covered(first, found, session=session)
                return
            reached = after_line(found.line, found.event)
        check_head(after, reached, session=session)
