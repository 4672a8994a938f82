"""Connections to PostgreSQL: how they are made, how long they may make one wait, and what their errors mean.

Promises:
- No wait is longer than the patience that was given, also where the server or the network says nothing at all.
- What the server says becomes an error of ours with a hint; no password is in it.
- A connection on which something failed is closed and not used again; one that the server closed while it lay idle is
  noticed before anything is sent on it.

Does not: share a connection with a forked child, or say anything twice by itself.
"""

import os
import select
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors, pq
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict

from turnwal.core.errors import InvalidStoreUrl, StoreError, StoreFailed, StoreFull, StoreUnsupported

T = TypeVar("T")

_LINKS_MAX: Final = 8
"""Connections of one store; whoever comes when all are busy waits for one."""

_ANSWER_TO: Final = (
    ("password authentication failed", "check the user and the password of the URL"),
    ("no password supplied", "give the password in the URL, in PGPASSWORD or in a password file"),
    ("does not exist", "check the names of the user and of the database in the URL"),
    ("timeout", "the server does not answer: check the host, the port and the network between"),
)

_kept_from_parent: Final[list[object]] = []
"""Connections that a forked child inherited: closing them would end the parent's."""


class TooSlow(psycopg.OperationalError):
    """The server did not answer in the time that it was given."""


class Link(psycopg.Connection[tuple[Any, ...]]):
    """A connection on which no wait is longer than its patience, and that keeps the notices of the server."""

    patience: float = 10.0
    notices: list[str]

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Wait for the server; raise `TooSlow` where it takes longer than the patience."""
        bounded = _bounded(gen, time.monotonic() + self.patience)
        # older ones have no such parameter, and never pass it
        return super().wait(bounded, interval) if timeout is None else super().wait(bounded, interval, timeout)


class Links:
    """The connections of one store."""

    def __init__(self, dsn: str, patience: float) -> None:
        """Stand for a server; nothing is connected yet. Raises `InvalidStoreUrl` for text that names none."""
        self.subject = subject_of(dsn)
        self._dsn = dsn
        self._patience = patience
        self._begin()

    def connect(self) -> Link:
        """Return a connection of one's own. Raises `StoreFailed`."""
        with Translated("connect", self.subject):
            asked = conninfo_to_dict(self._dsn).get("connect_timeout")
            link = Link.connect(
                self._dsn,
                autocommit=True,
                fallback_application_name="turnwal",
                connect_timeout=int(asked) if asked else _whole(self._patience),
            )
            try:
                link.patience = self._patience
                notices: list[str] = []
                link.notices = notices
                link.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
                link.execute(f"SET statement_timeout = {int(self._patience * 1000)}".encode())
                # a cancelled wait for a standby is told as a warning, and must not be kept from us
                link.execute("SET client_min_messages = notice")
                if _setting(link, "synchronous_commit") == "off":
                    link.execute("SET synchronous_commit = on")
            except BaseException:
                link.close()
                raise
        return link

    @contextmanager
    def take(self, action: str) -> Iterator[Link]:
        """A connection for the length of a block. What psycopg raises there becomes an error of ours."""
        if self._pid != os.getpid():
            _kept_from_parent.append(self._idle)
            self._begin()
        free = self._free
        if not free.acquire(timeout=self._patience):
            raise StoreFailed(
                f"all {_LINKS_MAX} connections were busy for {self._patience:g} seconds",
                action=action,
                subject=self.subject,
                hint="the server is slow, or too many threads use one store",
            )
        try:
            link = self._from_idle() or self.connect()
            try:
                with Translated(action, self.subject):
                    yield link
            except BaseException:
                link.close()
                raise
            if link.pgconn.transaction_status == pq.TransactionStatus.IDLE:
                self._idle.append(link)
            else:
                link.close()
        finally:
            free.release()

    def close(self) -> None:
        """Close what lies idle."""
        if self._pid == os.getpid():
            while self._idle:
                self._idle.pop().close()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._idle: list[Link] = []
        self._free = threading.BoundedSemaphore(_LINKS_MAX)

    def _from_idle(self) -> Link | None:
        while self._idle:
            try:
                link = self._idle.pop()
            except IndexError:
                return None
            if _is_quiet(link):
                return link
            link.close()
        return None


class Translated:
    """A block in which what psycopg raises becomes an error of ours."""

    def __init__(self, action: str, subject: str) -> None:
        """Name what is attempted, and where."""
        self._action = action
        self._subject = subject

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Raise `StoreFull`, `StoreUnsupported` or `StoreFailed` for an error of psycopg."""
        if isinstance(error, psycopg.Error):
            raise failure(error, self._action, self._subject) from error


def failure(error: psycopg.Error, action: str, subject: str) -> StoreError:
    """The error of ours for one of psycopg."""
    reason = " ".join(str(error).split()) or type(error).__name__
    kind: type[StoreError] = StoreFailed
    match error:
        case errors.DiskFull():
            kind, hint = StoreFull, "make room on the server, then open the session again"
        case errors.UndefinedTable() | errors.InvalidSchemaName():
            hint = "make the tables with `turnwal migrate --store URL`, and check the search_path of the role"
        case errors.InsufficientPrivilege():
            hint = "grant the role what docs/postgres.md lists"
        case errors.ReadOnlySqlTransaction():
            hint = "this server takes no writes (a hot standby, or read-only): name the primary"
        case errors.QueryCanceled() | TooSlow():
            hint = "the server is slow or waits for a standby; open the session anew to see what is there"
        case errors.FeatureNotSupported() | errors.SyntaxError():
            kind, hint = StoreUnsupported, "the server is none that docs/postgres.md lists"
        case errors.TooManyConnections():
            hint = "raise max_connections, or share one store in each process"
        case psycopg.OperationalError() if action == "connect":
            hint = next(
                (told for part, told in _ANSWER_TO if part in reason), "is the server up, and is this its address?"
            )
        case _:
            hint = "look at the log of the server; open the session anew to see what is there"
    return kind(reason, action=action, subject=subject, hint=hint)


def subject_of(dsn: str) -> str:
    """How a server is called in messages: without the password. Raises `InvalidStoreUrl`."""
    try:
        parts = conninfo_to_dict(dsn)
    except (psycopg.Error, ValueError, UnicodeError):
        raise InvalidStoreUrl(
            "it is no URL of a PostgreSQL server",
            action="open",
            subject="postgresql:",
            hint="the form is postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
        ) from None
    host = parts.get("host") or parts.get("hostaddr") or ""
    user = f"{parts['user']}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{user}{host}{port}/{parts.get('dbname') or ''}"


def durability_of(link: Link) -> str:
    """What an acknowledged commit survives: the death of the `machine`'s processes, or more (`replicated`)."""
    waits = _setting(link, "synchronous_commit") in ("on", "remote_apply")
    return "replicated" if waits and _setting(link, "synchronous_standby_names") else "machine"


def _setting(link: Link, name: str) -> str:
    """A setting of the server, empty where it has none of that name."""
    try:
        row = link.execute(f"SHOW {name}".encode()).fetchone()
    except (errors.UndefinedObject, errors.InsufficientPrivilege):
        return ""
    return "" if row is None else str(row[0])


def _bounded(gen: Generator[Any, Any, T], deadline: float) -> Generator[Any, Any, T]:
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                raise TooSlow("the server did not answer in time")
            wanted = gen.send(ready)
    except StopIteration as end:
        value: T = end.value
        return value


def _is_quiet(link: Link) -> bool:
    """Whether an idle connection is open and the server said nothing on it: what it says there is goodbye."""
    if link.closed:
        return False
    poll = select.poll()
    poll.register(link.fileno(), select.POLLIN)
    return not poll.poll(0)


def _whole(seconds: float) -> int:
    return max(2, round(seconds))
