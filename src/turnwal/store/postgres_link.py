"""One connection to PostgreSQL: how long it may make one wait, and what is sent on it together.

Promises:
- No wait is longer than the patience that was given, also where the server or the network says nothing at all.
- What failed first is what is raised, and an interrupt comes out as itself.

Does not: say anything twice by itself.
"""

import re
import select
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

import psycopg
from psycopg import errors, pq
from psycopg.abc import PQGen

from turnwal.store.postgres_errors import TooSlow

T = TypeVar("T")

_BOUNDING_SERVER: Final = 170_000


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
    waits = setting(link, "synchronous_commit") in ("on", "remote_apply")
    return "replicated" if waits and setting(link, "synchronous_standby_names") else "machine"


def setting(link: Link, name: str) -> str:
    """A setting of the server, empty where it has none of that name."""
    try:
        row = link.execute(f"SHOW {name}".encode()).fetchone()
    except (errors.UndefinedObject, errors.InsufficientPrivilege):
        return ""
    return "" if row is None else str(row[0])
