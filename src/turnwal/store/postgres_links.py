"""The connections of one store: making them, lending them, and how a server is called.

Promises:
- A connection on which something failed is closed and not used again; one that the server closed while it lay idle is
  noticed before anything is sent on it.
- An interrupt, wherever it comes, takes no connection away from a store for good.

Does not: share a connection with a forked child.
"""

import os
import threading
import time
import weakref
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from turnwal.core.errors import InvalidStoreUrl, StoreFailed
from turnwal.store.postgres_errors import Translated, failure
from turnwal.store.postgres_link import Link, Place, setting

_SERVERS_SHARE: Final = 0.7
"""How much of the patience the server has for a statement. The rest is for its answer to come: where it comes too late,
whoever shares the transaction fails with the one that had to wait."""
_LINKS_MAX: Final = 8
"""Connections of one store; whoever comes when all are busy waits for one."""
_RECOUNT_S: Final = 1.0
"""How long whoever waits for one believes that those who have them give them back."""

_kept_from_parent: Final[list[object]] = []
"""Connections that a forked child inherited: closing them would end the parent's."""


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
                if setting(link, "synchronous_commit") == "off":
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
