"""SQLite: one file, many sessions, an index of the interrupted ones.

Promises:
- An acknowledged append is committed with `synchronous=FULL`, behind the head and the epoch that the same transaction
  checked, into the `-wal` that the path still names.
- Appends of many sessions of this process that wait at the same time share one commit.
- An owner is alive as long as the kernel holds its lock on one byte of `<file>-owners`; a later owner's epoch fences it
  off whatever happened to the lock.
- A clean close leaves no `-wal` behind.

Does not: open the file by path itself, keep a connection across a fork, or interpret more of a line than whether a
turn is open after it.
"""

# pathlib would take a quarter of the time that importing turnwal may add
# ruff: noqa: PTH100, PTH120

import os
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import apsw

from turnwal.core.chain import EMPTY, Head
from turnwal.core.errors import (
    ClosedAfterFailure,
    OwnershipLost,
    SessionExists,
    SessionHeld,
    SessionNotFound,
    StoreFailed,
)
from turnwal.core.limits import OWNER_RETRY_S, PENDING_BYTES_MAX
from turnwal.core.line import GENESIS, Unreadable, read
from turnwal.store.batch import check_batch, check_head, check_history, taken
from turnwal.store.committing import GroupCommit, Pending
from turnwal.store.disk import Disk
from turnwal.store.frames import frames
from turnwal.store.hints import open_from
from turnwal.store.lifelock import LifeLock
from turnwal.store.names import check_id
from turnwal.store.owner import describe, told, written
from turnwal.store.protocol import Gap, Presence, Record
from turnwal.store.sqlite_file import Translated, check_version, connect_to_read, connect_to_write

_POLL_S = 0.01
_INSERT_LINE = "INSERT INTO line (session, position, seq, line) VALUES (?, ?, ?, ?)"
_UPDATE_SESSION = "UPDATE session SET events = ?, hash = ?, size = ?, open_from = ? WHERE number = ?"
_ROWS = 256
"""Lines read at a time; between two reads nobody is held up."""


class Work(NamedTuple):
    """One append: whose, what, behind which head, and the head after it."""

    number: int
    session: str
    epoch: int
    lines: Sequence[bytes]
    after: Head
    head: Head


class SqliteClaim:
    """Ownership of one session in a SQLite file."""

    def __init__(self, store: "SqliteStore", session: str, number: int, epoch: int, lock: LifeLock) -> None:
        """Hold a lock that was taken and an epoch that was written."""
        self._store = store
        self._session = session
        self._number = number
        self._epoch = epoch
        self._lock = lock
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
        head = check_batch(lines, after, session=self._session)
        if not lines:
            return
        self._in_doubt = True
        try:
            self._store.commit(Work(self._number, self._session, self._epoch, lines, after, head))
        except OwnershipLost:
            self._in_doubt = False
            raise
        self._in_doubt = False

    def release(self) -> None:
        """Give the session up; idempotent."""
        if self._pid == os.getpid():
            self._released = True
            self._lock.close()

    def _lost(self, reason: str, hint: str) -> OwnershipLost:
        return OwnershipLost(reason, action="append", subject=self._session, hint=hint)


class SqliteStore:
    """Sessions in one SQLite file."""

    kind = "sqlite"
    durability = "machine"

    def __init__(self, path: str | os.PathLike[str], *, disk: Disk | None = None) -> None:
        """Stand for a file, which is made with its first session. Raises `StoreUnsupported` for an old SQLite."""
        check_version()
        self._path = os.path.abspath(os.fspath(path))
        self._disk = disk or Disk()
        self._group: GroupCommit[Work] = GroupCommit(self._commit)
        self._mutex = threading.RLock()
        self._connection: apsw.Connection | None = None
        self._wal: tuple[int, int] | None = None
        self._pid = os.getpid()
        self._claims: list[SqliteClaim] = []

    # The door

    def claim(self, session: str, *, create: bool = True, wait: float = 0.0, owner: str = "") -> SqliteClaim:
        """Become the owner of a session; see `Store.claim`."""
        name = _bytes_of(session)
        if not create and self._row(name) is None:
            raise self._unknown(session, "claim")
        description = written(describe(owner)).decode().rstrip("\n")
        with self._mutex, Translated("claim", self._path):
            writer = self._writer()
            number = self._number_of(writer, name)
        lock = LifeLock(f"{self._path}-owners", number)
        try:
            self._wait_for(lock, session, name, max(wait, OWNER_RETRY_S if wait == 0 else wait))
            with self._mutex, Translated("claim", self._path):
                writer = self._writer()
                statement = "UPDATE session SET epoch = epoch + 1, owner = ? WHERE number = ? RETURNING epoch"
                epoch = writer.execute(statement, (description, number)).get
                self._check_wal()
            claim = SqliteClaim(self, session, number, epoch, lock)
        except BaseException:
            lock.close()
            raise
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
        statement = "SELECT position, line FROM line WHERE session = ? AND position < ? ORDER BY position DESC LIMIT ?"
        reach = 4
        while True:
            rows = self._rows(statement, (number, size, reach))
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
        row = self._row(_bytes_of(session))
        if row is None:
            return Presence(exists=False, empty=False, owner=None)
        return Presence(exists=True, empty=not row[1], owner=self._owner(row[0], row[2]))

    def sessions(self) -> Iterator[str]:
        """Yield the ids of all sessions, sorted."""
        yield from self._names("SELECT id FROM session WHERE id > ? ORDER BY id LIMIT ?")

    def interrupted(self) -> Iterator[str]:
        """Yield the ids of the sessions with an open turn, sorted, from the index; an owner may be alive."""
        yield from self._names("SELECT id FROM session WHERE open_from IS NOT NULL AND id > ? ORDER BY id LIMIT ?")

    def put(self, session: str, lines: Iterable[bytes]) -> Head:
        """Keep a whole history under a new id, all or nothing; see `Store.put`.

        The lines are gathered first, so that the file is locked for writing only while they are inserted.
        """
        name = _bytes_of(session)
        if self._row(name) is not None:
            raise taken(session)
        with tempfile.SpooledTemporaryFile(max_size=PENDING_BYTES_MAX) as gathered:
            head = EMPTY
            for piece, reached in check_history(lines, session=session):
                gathered.write(b"".join(line + b"\n" for line in piece))
                head = reached
            gathered.seek(0)
            with self._mutex:
                connection = self._writer()
                try:
                    with Translated("put", self._path):
                        self._insert_whole(connection, name, session, gathered, head)
                    self._check_wal()
                except SessionExists:
                    raise
                except BaseException:
                    self._drop_writer()
                    raise
        return head

    def _insert_whole(
        self, connection: apsw.Connection, name: bytes, session: str, gathered: Iterable[bytes], head: Head
    ) -> None:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("SELECT 1 FROM session WHERE id = ?", (name,)).get is not None:
            connection.execute("ROLLBACK")
            raise taken(session)
        number = self._number_of(connection, name)
        place, opened = 0, None
        for row in gathered:
            line = row[:-1]
            opened = open_from((line,), opened)
            connection.execute(_INSERT_LINE, (number, place, read(line).seq, line))
            place += len(line) + 1
        connection.execute(_UPDATE_SESSION, (head.count, head.hash, place, opened, number))
        connection.execute("COMMIT")

    def close(self) -> None:
        """Release the claims and the connection; the last to close leaves no `-wal` behind."""
        for claim in self._claims:
            claim.release()
        self._claims = []
        with self._mutex:
            connection, self._connection = self._connection, None
            if connection is not None and self._pid == os.getpid():
                connection.close()

    # Writing

    def commit(self, work: Work) -> None:
        """Return when an append is durable, together with whatever waits at the same time."""
        self._group.append(work)

    def _commit(self, group: Sequence[Pending[Work]]) -> None:
        with self._mutex:
            connection = self._writer()
            try:
                with Translated("append", self._path):
                    connection.execute("BEGIN IMMEDIATE")
                    for pending in group:
                        self._insert(connection, pending)
                    connection.execute("COMMIT")
                self._check_wal()
            except BaseException:
                self._drop_writer()
                raise

    def _insert(self, connection: apsw.Connection, pending: Pending[Work]) -> None:
        """Check epoch and head, then insert; what is refused here leaves the others of the group alone."""
        work = pending.work
        statement = "SELECT epoch, events, hash, size, open_from FROM session WHERE number = ?"
        ((epoch, events, digest, size, before),) = connection.execute(statement, (work.number,))
        try:
            _check_epoch(epoch, work)
            check_head(work.after, Head(events, digest), session=work.session)
        except OwnershipLost as refused:
            pending.error = refused
            return
        rows = []
        for index, line in enumerate(work.lines):
            rows.append((work.number, size, work.head.count - len(work.lines) + index, line))
            size += len(line) + 1
        connection.executemany(_INSERT_LINE, rows)
        after = (work.head.count, work.head.hash, size, open_from(work.lines, before), work.number)
        connection.execute(_UPDATE_SESSION, after)

    def _writer(self) -> apsw.Connection:
        if self._pid != os.getpid():
            raise OwnershipLost(
                "this store was opened by the parent of this process",
                action="open",
                subject=self._path,
                hint="open the store again in the child",
            )
        if self._connection is None:
            self._connection = connect_to_write(self._path, self._disk)
            self._wal = None
        return self._connection

    def _drop_writer(self) -> None:
        """Forget a connection on which something failed: what it believes may not be what the disk has."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except apsw.Error:
                return

    def _check_wal(self) -> None:
        """Return if the `-wal` that was written is still the one the path names; raise `StoreFailed` otherwise."""
        status = self._disk.status_of(f"{self._path}-wal")
        found = None if status is None else (status.st_dev, status.st_ino)
        if self._wal is None and found is not None:
            self._disk.sync_directory(os.path.dirname(self._path))
            self._wal = found
        if found is None or found != self._wal:
            raise StoreFailed(
                "its -wal was removed or replaced while it was open for writing",
                action="append",
                subject=self._path,
                hint="open the session anew, and find out what deletes files beside the database",
            )

    def _number_of(self, writer: apsw.Connection, name: bytes) -> int:
        writer.execute("INSERT INTO session (id, hash) VALUES (?, ?) ON CONFLICT (id) DO NOTHING", (name, GENESIS))
        number: int = writer.execute("SELECT number FROM session WHERE id = ?", (name,)).get
        return number

    # Owners

    def _wait_for(self, lock: LifeLock, session: str, name: bytes, wait: float) -> None:
        deadline = time.monotonic() + wait
        while not lock.take():
            if time.monotonic() >= deadline:
                row = self._row(name)
                holder = told((row[2] if row else "").encode())
                raise SessionHeld(
                    f"held by {holder}",
                    holder=holder,
                    action="claim",
                    subject=session,
                    hint="wait for it to end, or pass `wait`",
                )
            time.sleep(_POLL_S)

    def _owner(self, number: int, description: str) -> str | None:
        path = f"{self._path}-owners"
        if self._disk.status_of(path) is None:
            return None
        lock = LifeLock(path, number)
        try:
            return told(description.encode()) if lock.is_held() else None
        finally:
            lock.close()

    # Reading

    def _rows(self, statement: str, values: tuple[object, ...]) -> list[tuple[int, bytes]]:
        connection = connect_to_read(self._path)
        if connection is None:
            return []
        try:
            with Translated("read", self._path):
                return list(connection.execute(statement, values))
        finally:
            connection.close()

    def _lines(self, number: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """The lines of a session that reach behind `start`, up to the size that was known, with their positions."""
        statement = (
            "SELECT position, line FROM line WHERE session = ?1 AND position < ?3 AND position >= "
            "coalesce((SELECT max(position) FROM line WHERE session = ?1 AND position <= ?2), 0) "
            "ORDER BY position LIMIT ?4"
        )
        while True:
            rows = self._rows(statement, (number, start, end, _ROWS))
            yield from rows
            if len(rows) < _ROWS:
                return
            place, line = rows[-1]
            start = place + len(line) + 1

    def _row(self, name: bytes) -> tuple[int, int, str] | None:
        """Number, size and owner of a session, None when it is absent."""
        connection = connect_to_read(self._path)
        if connection is None:
            return None
        try:
            with Translated("read", self._path):
                rows = list(connection.execute("SELECT number, size, owner FROM session WHERE id = ?", (name,)))
        finally:
            connection.close()
        return rows[0] if rows else None

    def _known(self, session: str, action: str) -> tuple[int, int]:
        row = self._row(_bytes_of(session))
        if row is None:
            raise self._unknown(session, action)
        return row[0], row[1]

    def _names(self, statement: str) -> Iterator[str]:
        last = b""
        while True:
            connection = connect_to_read(self._path)
            if connection is None:
                return
            try:
                with Translated("list", self._path):
                    rows = [row[0] for row in connection.execute(statement, (last, _ROWS))]
            finally:
                connection.close()
            for name in rows:
                yield name.decode("utf-8", "surrogatepass")
            if len(rows) < _ROWS:
                return
            last = rows[-1]

    def _unknown(self, session: str, action: str) -> SessionNotFound:
        return SessionNotFound(
            "no such session", action=action, subject=repr(session), hint="`sessions()` lists what there is"
        )


def _check_epoch(epoch: int, work: Work) -> None:
    if epoch != work.epoch:
        raise OwnershipLost(
            f"another owner came since (epoch {epoch}, this one is {work.epoch})",
            action="append",
            subject=work.session,
            hint="open the session anew",
        )


def _bytes_of(session: str) -> bytes:
    check_id(session)
    return session.encode("utf-8", "surrogatepass")
