"""Proof of life across machines: a lease that belongs to the process, timed by the clock of the database.

Promises:
- One renewal keeps all sessions of a store alive, however many they are.
- A lease that expired is never renewed: whoever had it is told, and what comes later begins a new one.
- A store that owns nothing renews nothing.
- What was given up is freed, however often giving it up was interrupted: it is owed from before the server is told
  until the server has answered. No epoch is tried twice under a lease, so what is owed for one try frees no other.
- What cannot be freed now, as somebody has locked it, holds up neither the renewal nor the rest of what is owed.

Does not: keep a stale owner from writing. The epoch in the session's row does that, in the append itself.
"""

import secrets
import threading
import time
from contextlib import suppress
from typing import Final

import psycopg
from psycopg import pq

from turnwal.core.errors import StoreError
from turnwal.store.postgres_link import Link
from turnwal.store.postgres_links import Links

_RENEW: Final = (
    "UPDATE turnwal_lease SET expires = CURRENT_TIMESTAMP + %s * INTERVAL '1 second' "
    "WHERE id = %s AND expires > CURRENT_TIMESTAMP"
)
_BEGIN: Final = (
    "INSERT INTO turnwal_lease (id, expires, owner) VALUES (%s, CURRENT_TIMESTAMP + %s * INTERVAL '1 second', %s)"
)
_END: Final = "DELETE FROM turnwal_lease WHERE id = %s"
_SWEEP: Final = "DELETE FROM turnwal_lease WHERE expires < CURRENT_TIMESTAMP - INTERVAL '1 day'"
_FREE: Final = "UPDATE turnwal_session SET lease = NULL WHERE number = %s AND epoch = %s AND lease = %s"

_LOCKED_SHARE: Final = 0.01
"""How much of a lease one locked session may take, as an append locks its own for a moment."""

Hold = tuple[int, int]
"""One try to own a session: its number, and the epoch that it is owned under."""


class Lease:
    """One lease, from its beginning to its end."""

    def __init__(self) -> None:
        """Have a name that no other lease has."""
        self.id = secrets.token_hex(16)
        self.lost = False
        self.held: set[Hold] = set()
        """What points to the lease, or is about to."""
        self.owed: dict[Hold, None] = {}
        """What is given up and not known to be freed, the next to try first: behind a renewal the server is told."""
        self.tried: dict[int, int] = {}
        """By the number of a session the greatest epoch that was tried and is not known to be passed."""


class Keeper:
    """Begins leases and renews the present one in the background."""

    def __init__(self, links: Links, seconds: float) -> None:
        """Begin nothing yet."""
        self._links = links
        self._seconds = seconds
        self._mutex = threading.Lock()
        self._lease: Lease | None = None
        self._ended = threading.Event()

    def hold(self, owner: str, number: int, epoch: int) -> tuple[Lease, Hold]:
        """Return a lease, and under which epoch a session that was found with another may point to it.

        It is renewed until `drop` or `free`. Raises `StoreFailed`.
        """
        with self._mutex:
            lease = self._lease
            if lease is None or lease.lost:
                lease = Lease()
                with self._links.take("claim") as link:
                    link.execute(_SWEEP)
                    link.execute(_BEGIN, (lease.id, self._seconds, owner))
                self._ended.set()
                self._ended = threading.Event()
                self._lease = lease
                threading.Thread(
                    target=self._keep, args=(lease, self._ended), name="turnwal-lease", daemon=True
                ).start()
            hold = (number, max(epoch, lease.tried.get(number, 0)) + 1)
            lease.tried[number] = hold[1]
            lease.held.add(hold)
            return lease, hold

    def drop(self, lease: Lease, hold: Hold) -> None:
        """Have a session not point to a lease that it was refused for; may be repeated."""
        with self._mutex:
            lease.held.discard(hold)

    def owe(self, lease: Lease, hold: Hold) -> None:
        """Have the renewal free a session that may point to a lease; may be repeated."""
        with self._mutex:
            lease.owed.setdefault(hold)
            lease.held.discard(hold)

    def free(self, lease: Lease, hold: Hold) -> None:
        """Give one session up; where the server cannot be told now, the renewal tells it. May be repeated.

        Raises nothing but an interrupt, behind which the renewal tells it too.
        """
        self.owe(lease, hold)
        if not lease.lost:
            with suppress(StoreError), self._links.take("release") as link:
                self._free(link, lease, hold)

    def end(self) -> None:
        """End the present lease, and with it every ownership that points to it. Never raises."""
        with self._mutex:
            lease, self._lease = self._lease, None
            self._ended.set()
        if lease is not None and not lease.lost:
            lease.lost = True
            with suppress(StoreError), self._links.take("release") as link:
                link.execute(_END, (lease.id,))

    def _keep(self, lease: Lease, ended: threading.Event) -> None:
        link: Link | None = None
        pause = self._seconds / 3
        while not ended.wait(pause) and not lease.lost:
            if self._leave_if_unused(lease):
                break
            try:
                link = link or self._connect()
                due = time.monotonic() + self._seconds / 3
                lease.lost = not self.renew(link, lease)
                if not lease.lost:
                    self._free_owed(link, lease, due)
                pause = max(due - time.monotonic(), 0)
            except (StoreError, psycopg.Error):
                _close(link)
                link = None
                pause = self._seconds / 10
        _close(link)

    def renew(self, link: Link, lease: Lease) -> bool:
        """Prolong a lease, and say whether it was alive by the clock of the database."""
        return link.execute(_RENEW, (self._seconds, lease.id)).rowcount == 1

    def _connect(self) -> Link:
        """A connection on which no locked row is waited for for long."""
        link = self._links.connect()
        try:
            link.execute(f"SET lock_timeout = {max(round(self._seconds * _LOCKED_SHARE * 1000), 1)}".encode())
        except BaseException:
            link.close()
            raise
        return link

    def _free_owed(self, link: Link, lease: Lease, until: float) -> None:
        """Free what is owed, as far as the time goes; what fails now comes last the next time."""
        with self._mutex:
            owed = list(lease.owed)
        for hold in owed:
            if time.monotonic() >= until:
                return
            try:
                self._free(link, lease, hold)
            except psycopg.Error:
                if link.pgconn.transaction_status != pq.TransactionStatus.IDLE:
                    raise
                with self._mutex:
                    if hold in lease.owed:
                        del lease.owed[hold]
                        lease.owed.setdefault(hold)

    def _free(self, link: Link, lease: Lease, hold: Hold) -> None:
        number, epoch = hold
        freed = link.execute(_FREE, (number, epoch, lease.id)).rowcount
        with self._mutex:
            lease.owed.pop(hold, None)
            # the session is known to have come as far, so whoever finds it tries a greater one anyway
            if freed and lease.tried.get(number) == epoch:
                del lease.tried[number]

    def _leave_if_unused(self, lease: Lease) -> bool:
        with self._mutex:
            if lease.held or lease.owed or self._lease is not lease:
                return False
            self._lease = None
            return True


def _close(link: Link | None) -> None:
    if link is not None:
        link.close()
