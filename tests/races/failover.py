"""A standby is promoted while its primary lives on, cut off, with eight writers connected to it.

What the old primary acknowledged is in the history of the promoted one, and once that one has a successor writing, the
old primary acknowledges nothing more: neither to the writers that are still connected, nor after a restart.
"""

import signal
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, NamedTuple

from tests.store.postgres_writer import Writer
from tests.store.server import Server, fresh_schema, running_server
from turnwal.core.errors import StoreFailed, TurnwalError
from turnwal.store.postgres import PostgresStore
from turnwal.store.protocol import Record

WRITERS: Final = 8
APPENDS: Final = 20
LEASE_S: Final = 1.5
TIMEOUT_S: Final = 1.0


class Ack(NamedTuple):
    """What a writer was told is durable."""

    session: str
    events: int
    hash: str


@dataclass
class Seen:
    """What came of it."""

    acknowledged: int = 0
    """Events that the old primary acknowledged."""
    continued: int = 0
    """Events that the successors wrote at the promoted one."""
    unknown: int = 0
    """Writers of the old primary that were told that nobody knows."""
    refused: int = 0
    """Later attempts at the old primary, while it was cut off and after its restart, that came to nothing."""
    split: int = 0
    """The canary: acknowledgements of an old primary that waits for no standby, which the promoted one contradicts."""
    violations: list[str] = field(default_factory=list)


class Old:
    """A thread that writes one session at the old primary for as long as it is let."""

    def __init__(self, url: str, session: str, *, most: int = 1_000_000) -> None:
        self.session = session
        self.store = PostgresStore(url, lease_s=LEASE_S, timeout_s=TIMEOUT_S)
        self.acks: list[Ack] = []
        self.failure: TurnwalError | None = None
        self._most = most
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            writer = Writer(self.store, self.session, wait=2 * LEASE_S)
            for _ in range(self._most):
                writer.write()
                self.acks.append(Ack(self.session, writer.head.count, writer.head.hash))
        except TurnwalError as error:
            self.failure = error


def run() -> Seen:
    """One pair of servers, from its beginning to the restart of the old primary."""
    seen = Seen()
    with running_server() as primary, fresh_schema(primary) as url, running_server(primary) as standby:
        _wait_for_each_commit(primary)
        schema = url.rpartition("%3D")[2]
        olds = _writing(url)
        _until_busy(olds)
        standby.execute("SELECT pg_promote()")
        promoted = standby.url(schema)
        _told(olds, seen)
        acks = [ack for old in olds for ack in old.acks]
        seen.acknowledged = len(acks)
        _go_on(promoted, seen)
        _try_again(url, "while it was cut off", seen)
        primary.stop(signal.SIGQUIT)
        primary.start()
        _try_again(url, "after its restart", seen)
        seen.violations += contradictions(acks, promoted)
        canary = _ended(_writing(f"{url}%20-csynchronous_commit%3Dlocal", APPENDS))
        seen.split = len(contradictions([ack for old in canary for ack in old.acks], promoted))
    return seen


def contradictions(acks: Sequence[Ack], url: str) -> list[str]:
    """Each acknowledged event that the history at a server does not have."""
    found = []
    with closing(PostgresStore(url)) as store:
        hashes = {
            name: [sha256(each.line).hexdigest() for each in store.read(name) if isinstance(each, Record)]
            for name in store.sessions()
        }
    for session, events, line_hash in acks:
        there = hashes.get(session, [])
        if len(there) < events or there[events - 1] != line_hash:
            found.append(f"{session}: event {events - 1} was acknowledged, and is not in the history that goes on")
    return found


def _wait_for_each_commit(primary: Server) -> None:
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.execute("SELECT pg_reload_conf()")
    deadline = time.monotonic() + 30
    while primary.execute("SELECT sync_state FROM pg_stat_replication") != [("sync",)]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _writing(url: str, most: int = 1_000_000) -> list[Old]:
    """Eight writers that have begun."""
    olds = [Old(url, f"s{index}", most=most) for index in range(WRITERS)]
    for old in olds:
        old.start()
    return olds


def _until_busy(olds: Sequence[Old]) -> None:
    while min(len(old.acks) for old in olds) < APPENDS:
        assert all(old.failure is None for old in olds), [old.failure for old in olds]
        time.sleep(0.01)


def _ended(olds: Sequence[Old]) -> Sequence[Old]:
    for old in olds:
        old.join()
        old.store.close()
    return olds


def _told(olds: Sequence[Old], seen: Seen) -> None:
    for old in _ended(olds):
        if isinstance(old.failure, StoreFailed):
            seen.unknown += 1
        else:
            seen.violations.append(f"{old.session}: the writer of the old primary heard {old.failure!r}")


def _go_on(promoted: str, seen: Seen) -> None:
    with closing(PostgresStore(promoted, lease_s=60)) as store:
        for index in range(WRITERS):
            successor = Writer(store, f"s{index}", wait=20)
            for _ in range(2):
                successor.write()
                seen.continued += 1


def _try_again(url: str, when: str, seen: Seen) -> None:
    """Whoever comes to the old primary, new or not, is told nothing that is durable."""
    for old in _ended(_writing(url, 1)):
        if old.acks or not isinstance(old.failure, StoreFailed):
            seen.violations.append(f"{old.session}: {when} the old primary told {old.acks} and {old.failure!r}")
        seen.refused += not old.acks
