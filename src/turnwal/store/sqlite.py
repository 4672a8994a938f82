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
# ruff: noqa: PTH100, PTH118, PTH119, PTH120

import errno
import os
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, NamedTuple

import apsw

from turnwal.core.chain import EMPTY, Head
from turnwal.core.chain import after as after_line
from turnwal.core.errors import (
    ClosedAfterFailure,
    HistoryError,
    OverLimit,
    OwnershipLost,
    SessionHeld,
    SessionNotFound,
    StoreFailed,
    StoreFull,
    TurnwalError,
)
from turnwal.core.limits import OWNER_RETRY_S, PENDING_BYTES_MAX
from turnwal.core.line import GENESIS, Unreadable, read
from turnwal.store.batch import check_batch, check_head, check_history, taken
from turnwal.store.committing import GroupCommit, Pending
from turnwal.store.covering import check_covered
from turnwal.store.disk import Disk
from turnwal.store.frames import frames
from turnwal.store.hints import open_from
from turnwal.store.lifelock import LifeLock, check_supported, is_held
from turnwal.store.names import check_id
from turnwal.store.owner import describe, told, written
from turnwal.store.protocol import Gap, Presence, Record
from turnwal.store.sqlite_file import check_path, check_version
from turnwal.store.sqlite_reading import Reader
from turnwal.store.sqlite_writing import Writer

_POLL_S = 0.01
_INSERT_LINE = "INSERT INTO line (session, position, line) VALUES (?, ?, ?)"
_UPDATE_SESSION = "UPDATE session SET events = ?, hash = ?, size = ?, open_from = ? WHERE number = ?"
_ADVANCE = f"{_UPDATE_SESSION} AND epoch = ? AND events = ? AND hash = ?"
_OWN = "UPDATE session SET epoch = epoch + 1, owner = ? WHERE number = ? RETURNING epoch, size, open_from"
_FIND = "SELECT number, size, owner FROM session WHERE id = ?"
_LINES = (
    "SELECT position, line FROM line WHERE session = ?1 AND position < ?3 AND position >= "
    "coalesce((SELECT max(position) FROM line WHERE session = ?1 AND position <= ?2), 0) ORDER BY position LIMIT ?4"
)
_NEWEST = "SELECT position, line FROM line WHERE session = ? AND position < ? ORDER BY position DESC LIMIT ?"
_IDS = "SELECT id FROM session WHERE id > ? ORDER BY id LIMIT ?"
_INTERRUPTED = "SELECT id FROM session WHERE open_from IS NOT NULL AND id > ? ORDER BY id LIMIT ?"
_ROWS = 256
"""Lines read at a time; between two reads nobody is held up."""


class Work(NamedTuple):
    """One append: whose, what, behind which head, and what the session's row says after it."""

    session: str
    number: int
    epoch: int
    after: Head
    head: Head
    size: int
    opened: int | None
    rows: list[tuple[int, int, bytes]]


class SqliteClaim:
    """Ownership of one session in a SQLite file."""

    def __init__(self, store: "SqliteStore", session: str, number: int, row: tuple[int, int, int | None]) -> None:
        """Hold what was written when the session became owned: epoch, size, and where the oldest open turn starts."""
        self._store = store
        self._session = session
        self._number = number
        self._epoch, self._size, self._opened = row
        self._lock: LifeLock | None = None
        self._pid = os.getpid()
        self._in_doubt = False
        self._released = False

    def hold(self, lock: LifeLock) -> None:
        """Keep the lock until the release."""
        self._lock = lock

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
        rows = []
        size = self._size
        for line in lines:
            rows.append((self._number, size, line))
            size += len(line) + 1
        opened = open_from(lines, self._opened)
        self._in_doubt = True
        try:
            self._store.commit(Work(self._session, self._number, self._epoch, after, head, size, opened, rows))
        except (OwnershipLost, HistoryError, OverLimit):
            self._in_doubt = False
            raise
        self._size, self._opened = size, opened
        self._in_doubt = False

    def release(self) -> None:
        """Give the session up; idempotent."""
        if self._pid == os.getpid():
            self._released = True
            if self._lock is not None:
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
        path = os.path.abspath(os.fspath(path))
        # SQLite follows no symbolic link here, and a directory may well be one
        self._path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        check_supported(self._path)
        check_path(self._path)
        disk = disk or Disk()
        # the writer first: a fork enters them in this order, as an append that looks for damage does
        self._writer = Writer(self._path, disk)
        self._reader = Reader(self._path, disk)
        self._group: GroupCommit[Work] = GroupCommit(self._commit)
        self._entering = threading.Lock()
        self._claims: list[SqliteClaim] = []

    # The door

    def claim(self, session: str, *, create: bool = True, wait: float = 0.0, owner: str = "") -> SqliteClaim:
        """Become the owner of a session; see `Store.claim`."""
        name = _bytes_of(session)
        self._writer.check_process()
        row = self._row(name)
        if row is None and not create:
            raise self._unknown(session, "claim")
        number = row[0] if row else self._writer.run("claim", lambda connection: _number_of(connection, name))
        description = written(describe(owner)).decode().rstrip("\n")
        lock = LifeLock(f"{self._path}-owners", number)
        try:
            self._wait_for(lock, session, name, wait or OWNER_RETRY_S)
            found = self._writer.run("claim", lambda connection: next(connection.execute(_OWN, (description, number))))
            claim = SqliteClaim(self, session, number, found)
            claim.hold(lock)
            with self._entering:
                self._claims = [*(held for held in self._claims if not held.released), claim]
        except BaseException:
            lock.close()
            raise
        return claim

    def read(
        self, session: str, position: int = 0, *, after: Head | None = None, past_damage: bool = False
    ) -> Iterator[Record | Gap]:
        """Yield the records from a position on; see `Store.read`."""
        number, size = self._known(session, "read")
        yield from self._frames(session, number, size, position, after=after, past_damage=past_damage)

    def _frames(
        self,
        session: str,
        number: int,
        size: int,
        position: int = 0,
        *,
        after: Head | None = None,
        past_damage: bool = False,
    ) -> Iterator[Record | Gap]:
        def chunks(start: int) -> Iterator[bytes]:
            for rows in self._lines(number, start, size):
                chunk = b"\n".join([line for _, line in rows]) + b"\n"
                yield chunk[max(start - rows[0][0], 0) :]

        yield from frames(chunks, position, after=after, past_damage=past_damage, subject=session)

    def newest(self, session: str) -> Iterator[Record | None]:
        """Yield the lines from the newest to the oldest; see `Store.newest`."""
        number, size = self._known(session, "read")
        reach = 4
        while size > 0:
            rows = self._reader.rows(_NEWEST, (number, size, reach))
            if not rows:
                return
            for place, line in rows:
                size = place
                try:
                    yield Record(place, line, read(line))
                except Unreadable:
                    yield None
            reach = min(2 * reach, _ROWS)

    def probe(self, session: str) -> Presence:
        """Say whether a session exists, is empty, and is owned now."""
        row = self._row(_bytes_of(session))
        if row is None:
            return Presence(exists=False, empty=False, owner=None)
        return Presence(exists=True, empty=not row[1], owner=self._owner(row[0], row[2]))

    def made(self) -> bool:
        """Whether the file is there; the first session makes it."""
        return os.path.lexists(self._path)

    def sessions(self) -> Iterator[str]:
        """Yield the ids of all sessions, sorted."""
        yield from self._names(_IDS)

    def interrupted(self) -> Iterator[str]:
        """Yield the ids of the sessions that may have something open, sorted, from the index; an owner may be alive.

        None with an open turn is left out. One whose lines do not say what they leave open is in it.
        """
        yield from self._names(_INTERRUPTED)

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
                _gather(gathered, piece, self._path)
                head = reached
            gathered.seek(0)
            self._writer.run("put", lambda connection: _insert_whole(connection, name, session, gathered, head))
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

    def commit(self, work: Work) -> None:
        """Return when an append is durable, together with whatever waits at the same time."""
        self._group.append(work)

    def _commit(self, group: Sequence[Pending[Work]]) -> None:
        def body(connection: apsw.Connection) -> None:
            for pending in group:
                pending.error = self._insert(connection, pending.work)

        self._writer.run("append", body)

    def _insert(self, connection: apsw.Connection, work: Work) -> TurnwalError | None:
        """Insert behind the epoch and the head that the file has; what is refused leaves the others alone."""
        head, after = work.head, work.after
        values = (head.count, head.hash, work.size, work.opened, work.number)
        connection.execute(_ADVANCE, (*values, work.epoch, after.count, after.hash))
        if not connection.changes():
            try:
                self._check_refused(connection, work)
            except (OwnershipLost, HistoryError, OverLimit) as refused:
                return refused
            connection.execute(_UPDATE_SESSION, values)
        for row in work.rows:
            connection.execute(_INSERT_LINE, row)
        return None

    def _check_refused(self, connection: apsw.Connection, work: Work) -> None:
        """Return if the batch covers damaged lines, so that it goes on all the same; else raise why it is refused."""
        row = connection.execute("SELECT epoch, events, hash, size FROM session WHERE number = ?", (work.number,)).get
        if row is None or row[0] != work.epoch:
            raise OwnershipLost(
                "the session is gone from the file"
                if row is None
                else f"another owner came since (epoch {row[0]}, this one is {work.epoch})",
                action="append",
                subject=work.session,
                hint="open the session anew",
            )
        reached = EMPTY
        for found in self._frames(work.session, work.number, row[3]):
            if isinstance(found, Gap):
                check_head(work.after, reached, session=work.session)
                check_covered(work.rows[0][2], found, session=work.session)
                return
            reached = after_line(found.line, found.event)
        check_head(work.after, Head(row[1], row[2]), session=work.session)

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
        return told(description.encode()) if is_held(f"{self._path}-owners", number) else None

    # Reading

    def _lines(self, number: int, start: int, end: int) -> Iterator[list[tuple[int, bytes]]]:
        """The lines of a session that reach behind `start`, up to the size that was known, some at a time."""
        while start < end:
            rows = self._reader.rows(_LINES, (number, start, end, _ROWS))
            if not rows:
                return
            yield rows
            place, line = rows[-1]
            start = max(place + len(line) + 1, start + 1)

    def _row(self, name: bytes) -> tuple[int, int, str] | None:
        """Number, size and owner of a session, None when it is absent."""
        rows = self._reader.rows(_FIND, (name,))
        return rows[0] if rows else None

    def _known(self, session: str, action: str) -> tuple[int, int]:
        row = self._row(_bytes_of(session))
        if row is None:
            raise self._unknown(session, action)
        return row[0], row[1]

    def _names(self, statement: str) -> Iterator[str]:
        last = b""
        while True:
            rows = self._reader.rows(statement, (last, _ROWS), "list")
            if not rows:
                return
            for (name,) in rows:
                yield name.decode("utf-8", "surrogatepass")
            last = rows[-1][0]

    def _unknown(self, session: str, action: str) -> SessionNotFound:
        return SessionNotFound(
            "no such session", action=action, subject=repr(session), hint="`sessions()` lists what there is"
        )


def _insert_whole(
    connection: apsw.Connection, name: bytes, session: str, gathered: Iterable[bytes], head: Head
) -> None:
    if connection.execute("SELECT 1 FROM session WHERE id = ?", (name,)).get is not None:
        raise taken(session)
    number = _number_of(connection, name)
    place, opened = 0, None
    for row in gathered:
        line = row[:-1]
        opened = open_from((line,), opened)
        connection.execute(_INSERT_LINE, (number, place, line))
        place += len(line) + 1
    connection.execute(_UPDATE_SESSION, (head.count, head.hash, place, opened, number))


def _number_of(connection: apsw.Connection, name: bytes) -> int:
    connection.execute("INSERT INTO session (id, hash) VALUES (?, ?) ON CONFLICT (id) DO NOTHING", (name, GENESIS))
    number: int = connection.execute("SELECT number FROM session WHERE id = ?", (name,)).get
    return number


def _gather(file: IO[bytes], piece: Sequence[bytes], path: str) -> None:
    try:
        file.write(b"".join(line + b"\n" for line in piece))
    except OSError as error:
        reason = f"the history cannot be gathered in {tempfile.gettempdir()} ({error.strerror})"
        kind = StoreFull if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else StoreFailed
        raise kind(reason, action="put", subject=path, hint="make room there, or set TMPDIR") from error


def _bytes_of(session: str) -> bytes:
    check_id(session)
    return session.encode("utf-8", "surrogatepass")
