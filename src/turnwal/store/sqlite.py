"""SQLite: one file, many sessions, an index of the interrupted ones.

Promises:
- An acknowledged append is committed with `synchronous=FULL`, under the epoch and behind the last line that the same
  statement checked, into the `-wal` that the path still names.
- Appends of many sessions of this process that wait at the same time share one commit.
- An owner is alive as long as the kernel holds its lock on one byte of `<file>-owners`; a later owner's epoch fences it
  off whatever happened to the lock.
- Heads are kept in `<file>-heads/`, or another directory, where they are asked for or there already.
- A clean close leaves no `-wal` behind.

Does not: open the file by path itself, keep a connection across a fork, or interpret more of a line than whether a
turn is open after it.
"""

# pathlib would take a quarter of the time that importing turnwal may add
# ruff: noqa: PTH100, PTH118, PTH119, PTH120

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence

from turnwal.core.chain import Head
from turnwal.core.errors import SessionHeld
from turnwal.core.limits import OWNER_RETRY_S
from turnwal.store.batch import taken
from turnwal.store.committing import GroupCommit, Pending
from turnwal.store.disk import Disk
from turnwal.store.frames import frames
from turnwal.store.gathering import gathered
from turnwal.store.heads import Heads, Option, in_directory, outstanding
from turnwal.store.lifelock import LifeLock, check_supported, is_held
from turnwal.store.names import check_id, not_found
from turnwal.store.owner import describe, told, written
from turnwal.store.protocol import Gap, Kept, Presence, Record
from turnwal.store.rowclaim import Ownership, RowClaim, Work
from turnwal.store.sqlite_append import Made, append, insert_whole, is_one_statement, number_of, own
from turnwal.store.sqlite_file import check_path, check_version
from turnwal.store.sqlite_queries import IDS, INTERRUPTED, Found, chunks, find, names, newest
from turnwal.store.sqlite_reading import Reader
from turnwal.store.sqlite_writing import Writer
from turnwal.store.surely import surely

_POLL_S = 0.01


class SqliteClaim(RowClaim):
    """Ownership of one session in a SQLite file, as long as its lock is held."""

    def __init__(self, store: "SqliteStore", session: str, owned: Ownership, generation: int, lock: LifeLock) -> None:
        """Hold the lock until the release."""
        super().__init__(store, session, owned, store.heads.file(session))
        self._file = store
        self._generation = generation
        self._lock = lock

    def _commit(self, work: Work) -> None:
        self._file.commit(Made(work, self._generation))

    def _let_go(self) -> None:
        self._lock.close()


class SqliteStore:
    """Sessions in one SQLite file."""

    kind = "sqlite"
    durability = "machine"

    def __init__(self, path: str | os.PathLike[str], *, disk: Disk | None = None, heads: Option = False) -> None:
        """Stand for a file, which is made with its first session. Raises `StoreUnsupported` for an old SQLite.

        `heads` keeps the head of every session in a directory beside the file, or in one that it names.
        """
        check_version()
        path = os.path.abspath(os.fspath(path))
        # SQLite follows no symbolic link here, and a directory may well be one
        self._path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        check_supported(self._path)
        check_path(self._path)
        disk = disk or Disk()
        self.heads = Heads(disk, heads, in_directory(f"{self._path}-heads"))
        """Where the heads of the sessions are kept."""
        # the writer first: a fork enters them in this order, as an append that looks for damage does
        self._writer = Writer(self._path, disk)
        self._reader = Reader(self._path)
        self._group: GroupCommit[Made] = GroupCommit(self._commit)
        self._entering = threading.Lock()
        self._claims: list[SqliteClaim] = []

    # The door

    def claim(self, session: str, *, create: bool = True, wait: float = 0.0, owner: str = "") -> SqliteClaim:
        """Become the owner of a session; see `Store.claim`."""
        name = _bytes_of(session)
        self._writer.check_process()
        # before the lock: a lock file that was made here would be taken for a sign that another process came
        self._writer.check("claim")
        found = find(self._reader, name)
        if found is None and not create:
            raise not_found(session, "claim")
        number = found.number if found else self._writer.run("claim", lambda connection: number_of(connection, name))
        description = written(describe(owner)).decode().rstrip("\n")
        lock = LifeLock(f"{self._path}-owners", number)
        try:
            self._wait_for(lock, session, name, wait or OWNER_RETRY_S)
            owned, generation = self._writer.run(
                "claim",
                lambda connection: (own(connection, number, name, description), self._writer.generation),
            )
            claim = SqliteClaim(self, session, owned, generation, lock)
            with self._entering:
                self._claims = [*(held for held in self._claims if not held.released), claim]
        except BaseException:
            surely(lock.close)
            raise
        return claim

    def read(
        self, session: str, position: int = 0, *, after: Head | None = None, past_damage: bool = False
    ) -> Iterator[Record | Gap]:
        """Yield the records from a position on; see `Store.read`."""
        kept = self.heads.kept(session)
        found = self._known(session)
        yield from frames(
            lambda start: chunks(self._reader, found, start),
            position,
            after=after,
            past_damage=past_damage,
            kept=outstanding(kept, after, lambda: newest(self._reader, found)),
            subject=session,
        )

    def newest(self, session: str) -> Iterator[Record | None]:
        """Yield the lines from the newest to the oldest; see `Store.newest`."""
        yield from newest(self._reader, self._known(session))

    def probe(self, session: str) -> Presence:
        """Say whether a session exists, is empty, and is owned now."""
        found = find(self._reader, _bytes_of(session))
        if found is None:
            return Presence(exists=False, empty=False, owner=None)
        return Presence(exists=True, empty=not found.size, owner=self._owner(found))

    def kept(self, session: str) -> Kept | None:
        """The head that is kept of a session; see `Store.kept`."""
        return self.heads.kept(session)

    def made(self) -> bool:
        """Whether the file is there; the first session makes it."""
        return os.path.lexists(self._path)

    def sessions(self) -> Iterator[str]:
        """Yield the ids of all sessions, sorted."""
        yield from names(self._reader, IDS)

    def interrupted(self) -> Iterator[str]:
        """Yield the ids of the sessions that may have something open, sorted, from the index; an owner may be alive.

        None with an open turn is left out. One whose lines do not say what they leave open is in it.
        """
        yield from names(self._reader, INTERRUPTED)

    def put(self, session: str, lines: Iterable[bytes]) -> Head:
        """Keep a whole history under a new id, all or nothing; see `Store.put`.

        The lines are gathered first, so that the file is locked for writing only while they are inserted.
        """
        name = _bytes_of(session)
        if find(self._reader, name) is not None:
            raise taken(session)
        with gathered(lines, session=session, subject=self._path) as (rows, head):
            self._writer.run("put", lambda connection: insert_whole(connection, name, session, rows))
        self.heads.stored(session, head)
        return head

    def close(self) -> None:
        """Release the claims and the connections; the last to close leaves no `-wal` behind."""
        with self._entering:
            claims, self._claims = self._claims, []
        for claim in claims:
            claim.release()
        self._reader.close()
        self._writer.close()

    # Writing

    def commit(self, made: Made) -> None:
        """Return when an append is durable, together with whatever waits at the same time."""
        self._group.append(made)

    def _commit(self, group: Sequence[Pending[Made]]) -> None:
        alone = len(group) == 1 and is_one_statement(group[0].work.work)
        run = self._writer.run_alone if alone else self._writer.run
        run("append", lambda connection: append(connection, group, self._writer.generation))

    # Owners

    def _wait_for(self, lock: LifeLock, session: str, name: bytes, wait: float) -> None:
        deadline = time.monotonic() + wait
        while not lock.take():
            if time.monotonic() >= deadline:
                found = find(self._reader, name)
                holder = told(found.owner if found else b"")
                raise SessionHeld(
                    f"held by {holder}",
                    holder=holder,
                    action="claim",
                    subject=session,
                    hint="wait for it to end, or pass `wait`",
                )
            time.sleep(_POLL_S)

    def _owner(self, found: Found) -> str | None:
        return told(found.owner) if is_held(f"{self._path}-owners", found.number) else None

    def _known(self, session: str) -> Found:
        found = find(self._reader, _bytes_of(session))
        if found is None:
            raise not_found(session, "read")
        return found


def _bytes_of(session: str) -> bytes:
    check_id(session)
    return session.encode("utf-8", "surrogatepass")
