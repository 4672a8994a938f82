"""Connections to PostgreSQL: how they are made, how long they may make one wait, and what their errors mean.

Promises:
- No wait is longer than the patience that was given, also where the server or the network says nothing at all.
- A connection on which something failed is closed and not used again; one that the server closed while it lay idle is
  noticed before anything is sent on it.
- An interrupt, wherever it comes, takes no connection away from a store for good.

Does not: share a connection with a forked child, or say anything twice by itself.
"""

import os
import re
import select
import sys
import threading
import time
import weakref
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

import psycopg
from psycopg import errors, pq
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict

from turnwal.core.errors import InvalidStoreUrl, StoreFailed
from turnwal.store.postgres_errors import TooSlow, Translated, failure

T = TypeVar("T")

_BOUNDING_SERVER: Final = 170_000
_SERVERS_SHARE: Final = 0.7
"""How much of the patience the server has for a statement. The rest is for its answer to come: where it comes too late,
whoever shares the transaction fails with the one that had to wait."""
_LINKS_MAX: Final = 8
"""Connections of one store; whoever comes when all are busy waits for one."""
_RECOUNT_S: Final = 1.0
"""How long whoever waits for one believes that those who have them give them back."""

_kept_from_parent: Final[list[object]] = []
"""Connections that a forked child inherited: closing them would end the parent's."""


class Prepared(NamedTuple):
    """A statement that is prepared on each connection that uses it; its values go over in binary form."""

    name: bytes
    text: bytes
    types: tuple[int, ...]
    formats: tuple[pq.Format, ...]

    @classmethod
    def of(cls, name: str, statement: str, types: Sequence[str]) -> "Prepared":
        """The statement of a text with `%s` for each value, of these types."""
        number = count(1)
        text = re.sub("%s", lambda _: f"${next(number)}", statement)
        oids = tuple(psycopg.postgres.types[type].oid for type in types)
        return cls(name.encode(), text.encode(), oids, (pq.Format.BINARY,) * len(oids))


class Place:
    """The right to have one of the connections of a store.

    Whoever is interrupted on the way with it drops it, and that it is gone shows that nobody has it.
    """

    __slots__ = ("__weakref__",)


class Link(psycopg.Connection[tuple[Any, ...]]):
    """A connection on which no wait is longer than its patience, and that keeps the notices of the server."""

    patience: float = 10.0
    notices: list[str]
    place: Place | None = None
    """What it is lent under."""
    closings: int = 0
    """How often the store had been closed when it was lent."""

    def prepare_to_work(self, patience: float) -> None:
        """Begin to be patient, and to keep notices; once, after the connection is made."""
        self.patience = patience
        notices: list[str] = []
        self.notices = notices
        self.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
        self._known: set[bytes] = set()
        self._heard = select.poll()
        self._heard.register(self.fileno(), select.POLLIN)

    @property
    def bounds_transactions(self) -> bool:
        """Whether the server can end a transaction that takes too long; PostgreSQL can from 17 on."""
        return self.info.server_version >= _BOUNDING_SERVER

    def is_quiet(self) -> bool:
        """Whether it is open and the server said nothing since the last answer: what it says then is goodbye."""
        return not self.closed and not self._heard.poll(0)

    def write(self, statement: Prepared, values: Sequence[bytes]) -> int:
        """How many rows a statement wrote; it is prepared when it is first used here.

        The driver's cursor does this too, for any statement and any value, and takes a quarter of a lone append.
        Raises as `execute` does.
        """
        pgconn = self.pgconn
        deadline = time.monotonic() + self.patience
        if statement.name not in self._known:
            pgconn.send_prepare(statement.name, statement.text, statement.types)
            self._answer(deadline)
            self._known.add(statement.name)
        pgconn.send_query_prepared(statement.name, values, statement.formats)
        return self._answer(deadline).command_tuples or 0

    @contextmanager
    def one_trip(self) -> Iterator[None]:
        """Send what is executed in the block together; raises what failed first, an interrupt before anything else.

        The driver would print what else it cannot end then. What it fails with behind an interrupt it raises instead.
        """
        failed: BaseException | None = None
        # who appends where an interrupt is dealt with is not interrupted again
        outside = sys.exc_info()[1]
        try:
            with self.pipeline():
                try:
                    yield
                except BaseException as error:  # noqa: BLE001 - raised again behind the pipeline
                    failed = error
        except Exception as error:  # noqa: BLE001 - as above
            failed = _interrupt_behind(error, outside) or failed or error
        if failed is not None:
            raise failed

    def roll_back(self) -> None:
        """End the transaction with nothing of it done."""
        self.execute("ROLLBACK")
        # the driver may have deallocated everything by now, ours too; what it keeps is not ours to take away
        while self._known:
            with suppress(errors.InvalidSqlStatementName):
                self.execute(b"DEALLOCATE " + self._known.pop(), prepare=False)

    def _answer(self, deadline: float) -> pq.abc.PGresult:
        """The answer to what was sent, to its end."""
        pgconn = self.pgconn
        while pgconn.flush():
            self._ready(select.POLLIN | select.POLLOUT, deadline)
            pgconn.consume_input()
        found: list[pq.abc.PGresult] = []
        while True:
            while pgconn.is_busy():
                if not self._heard.poll(max(deadline - time.monotonic(), 0) * 1000):
                    raise TooSlow("the server did not answer in time")
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:
                break
            found.append(result)
        if not found or found[-1].status != pq.ExecStatus.COMMAND_OK:
            raise errors.error_from_result(found[-1]) if found else psycopg.OperationalError("no answer")
        return found[-1]

    def _ready(self, events: int, deadline: float) -> None:
        """Wait until the socket takes more, or has something to say."""
        poller = select.poll()
        poller.register(self.fileno(), events)
        if not poller.poll(max(deadline - time.monotonic(), 0) * 1000):
            raise TooSlow("the server did not take what was sent in time")

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Wait for the server; raise `TooSlow` where it takes longer than the patience."""
        bounded = self._bounded(gen, time.monotonic() + self.patience)
        try:
            # older ones have no such parameter, and never pass it
            return super().wait(bounded, interval) if timeout is None else super().wait(bounded, interval, timeout)
        except BaseException:
            # what an interrupt left waiting ends here: the collector would print how it fails
            with suppress(psycopg.Error, RuntimeError):
                gen.close()
            raise

    def _bounded(self, gen: Generator[Any, Any, T], deadline: float) -> Generator[Any, Any, T]:
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > deadline:
                    self._give_up(gen)
                wanted = gen.send(ready)
        except StopIteration as end:
            value: T = end.value
            return value

    def _give_up(self, gen: Generator[Any, Any, Any]) -> NoReturn:
        """Close the connection, so that nothing on it is waited for again, and raise `TooSlow`."""
        slow = TooSlow("the server did not answer in time")
        self.pgconn.finish()
        # what waited ends here: the collector would print how it fails
        with suppress(psycopg.Error):
            gen.throw(slow)
        raise slow


class Links:
    """The connections of one store."""

    def __init__(self, dsn: str, patience: float) -> None:
        """Stand for a server; nothing is connected yet. Raises `InvalidStoreUrl` for text that names none."""
        self.subject = subject_of(dsn)
        self._connect_s = _connect_seconds(dsn, self.subject, patience)
        self._dsn = dsn
        self._patience = patience
        self._closings = 0
        self._begin()

    def connect(self) -> Link:
        """Return a connection of one's own. Raises `StoreFailed`."""
        with Translated("connect", self.subject):
            link = Link.connect(
                self._dsn,
                autocommit=True,
                fallback_application_name="turnwal",
                connect_timeout=self._connect_s,
            )
            try:
                link.prepare_to_work(self._patience)
                link.execute(f"SET statement_timeout = {int(_SERVERS_SHARE * self._patience * 1000)}".encode())
                if link.bounds_transactions:
                    # a process that is stopped in a transaction must not keep what it locked; a slow statement of
                    # one that goes on ends by its own bound before
                    link.execute(f"SET transaction_timeout = {int(2 * self._patience * 1000)}".encode())
                # an append waits for whoever has the row, and then sees what that one wrote
                link.execute("SET default_transaction_isolation = 'read committed'")
                # a cancelled wait for a standby is told as a warning, and must not be kept from us
                link.execute("SET client_min_messages = notice")
                if _setting(link, "synchronous_commit") == "off":
                    link.execute("SET synchronous_commit = on")
            except BaseException:
                link.close()
                raise
        return link

    def take(self, action: str) -> "Taken":
        """A connection for the length of a block. What psycopg raises there becomes an error of ours."""
        return Taken(self, action)

    def lend(self, action: str) -> Link:
        """Return a connection that nobody else uses until it is given back. Raises `StoreFailed`."""
        closings = self._closings
        if self._pid != os.getpid():
            _kept_from_parent.append(self._idle)
            self._begin()
        try:
            place = self._free.get_nowait()
        except Empty:
            place = self._wait_for_place(action)
        try:
            link = self._from_idle() or self.connect()
        except BaseException:
            # the error keeps this frame, and the place with it
            self._free.put(place)
            raise
        link.place, link.closings = place, closings
        return link

    def give_back(self, link: Link, *, failed: bool) -> None:
        """Have others use a connection that was lent.

        It is closed where something failed or was left undone, and where the store was closed in the meantime.
        """
        # before others have it, under a place of their own
        place, link.place, closings = link.place, None, link.closings
        try:
            if failed or link.pgconn.transaction_status != pq.TransactionStatus.IDLE:
                link.close()
            else:
                self._idle.append(link)
                # not before: a close that comes in between finds it idle
                if closings != self._closings:
                    self._close_idle()
        finally:
            if place is not None:
                self._free.put(place)

    def close(self) -> None:
        """Close what lies idle now, and what is lent when it is given back. What is lent later is kept again."""
        if self._pid == os.getpid():
            self._closings += 1
            self._close_idle()

    def _begin(self) -> None:
        places = [Place() for _ in range(_LINKS_MAX)]
        free: SimpleQueue[Place] = SimpleQueue()
        for place in places:
            free.put(place)
        self._idle: list[Link] = []
        self._free = free
        self._places = [weakref.ref(place) for place in places]
        self._mutex = threading.Lock()
        # last: what is interrupted before is begun again
        self._pid = os.getpid()

    def _wait_for_place(self, action: str) -> Place:
        """A place that somebody gave back, or lost. Raises `StoreFailed`."""
        deadline = time.monotonic() + self._patience
        while (left := deadline - time.monotonic()) > 0:
            self._recount()
            with suppress(Empty):
                return self._free.get(timeout=min(left, _RECOUNT_S))
        raise StoreFailed(
            f"all {_LINKS_MAX} connections were busy for {self._patience:g} seconds",
            action=action,
            subject=self.subject,
            hint="the server is slow, or too many threads use one store",
        )

    def _recount(self) -> None:
        """Replace the places that are gone."""
        with self._mutex:
            for index, known in enumerate(self._places):
                if known() is None:
                    place = Place()
                    # known before others can have it: what is interrupted in between is gone again
                    self._places[index] = weakref.ref(place)
                    self._free.put(place)

    def _close_idle(self) -> None:
        # another may take the last one in the meantime
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _from_idle(self) -> Link | None:
        while self._idle:
            try:
                link = self._idle.pop()
            except IndexError:
                return None
            if link.is_quiet():
                return link
            link.close()
        return None


class Taken:
    """A connection for the length of a block.

    A class of its own, and a queue instead of a semaphore: those of the library, in Python, took 12 of the 85
    microseconds that turnwal adds to a lone append.
    """

    def __init__(self, links: Links, action: str) -> None:
        """Name what is attempted; nothing is taken yet."""
        self._links = links
        self._action = action

    def __enter__(self) -> Link:
        """Take it."""
        self._link = self._links.lend(self._action)
        return self._link

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Give it back. Raises what `failure` makes of an error of psycopg."""
        self._links.give_back(self._link, failed=error is not None)
        if isinstance(error, psycopg.Error):
            raise failure(error, self._action, self._links.subject) from error


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


def _connect_seconds(dsn: str, subject: str, patience: float) -> int:
    """How long to wait for a connection: as the URL says, else the patience. Raises `InvalidStoreUrl`."""
    asked = conninfo_to_dict(dsn).get("connect_timeout")
    try:
        return int(asked) if asked else max(2, round(patience))
    except ValueError:
        raise InvalidStoreUrl(
            f"connect_timeout={asked:.40} is no whole number of seconds",
            action="open",
            subject=subject,
            hint="write it as in connect_timeout=5",
        ) from None


def _interrupt_behind(error: BaseException, outside: BaseException | None) -> BaseException | None:
    """The interrupt that was being raised when an error came instead, if there was one inside of `outside`."""
    found: BaseException | None = error
    while found is not None and found is not outside:
        if isinstance(found, KeyboardInterrupt | SystemExit):
            return found
        found = found.__context__
    return None


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
