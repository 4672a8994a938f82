"""The connection to PostgreSQL is cut behind each byte of what an append says to the server, and of the answer.

Never a success that is none, and never "nothing was written" where something was: whoever is told that the outcome is
unknown opens the session anew, and finds all of the append or nothing of it.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any, Final
from unittest import mock

import psycopg

from tests.store.cutting import Direction, Proxy, proxy_before
from tests.store.postgres_writer import Writer
from tests.store.server import fresh_schema, shared_server
from turnwal.core.errors import ClosedAfterFailure, OwnershipLost, StoreFailed, TurnwalError
from turnwal.store import postgres
from turnwal.store.postgres import PostgresStore
from turnwal.store.postgres_append import append_alone
from turnwal.store.protocol import Record

GROUP: Final = 3
SYNC_BYTES: Final = 5
"""What is said behind a commit, and is not needed for it."""
PREPARED_AFTER: Final = 6
"""The driver prepares a statement when it has been used so often, and then says it in fewer bytes."""


@dataclass
class Seen:
    """What came of it."""

    cuts: Counter[str] = field(default_factory=Counter)
    """How many positions were tried of each conversation and direction."""
    lengths: dict[str, int] = field(default_factory=dict)
    """How many bytes each has."""
    written: int = 0
    """Appends that are there although their writers were told that nobody knows."""
    violations: list[str] = field(default_factory=list)


Told = list[TurnwalError | None]


class Cuts:
    """Sessions that are written through a proxy that cuts."""

    def __init__(self, url: str, proxy: Proxy) -> None:
        options = url.rpartition("&")[2]
        at = f"postgres@127.0.0.1:{proxy.port}/postgres"
        self.seen = Seen()
        self._proxy = proxy
        self._beside = PostgresStore(url)
        self._store = PostgresStore(f"postgresql://{at}?sslmode=disable&gssencmode=disable&{options}", lease_s=3_600)
        self._writers: list[Writer] = []
        self.acts: dict[str, Callable[[], Told]] = {
            "one line": lambda: [self._told(0)],
            "a batch": lambda: [self._told(0, 3)],
            "a group of sessions": self._together,
            "a batch on a new connection": self._anew,
        }

    def close(self) -> None:
        self._store.close()
        self._beside.close()

    def run(self, positions: int | None, *names: str) -> Seen:
        """Cut at every position, or at about so many of each conversation in each direction."""
        directions: tuple[Direction, ...] = ("up", "down")
        for name in names or self.acts:
            for direction in directions:
                self._conversation(name, direction, positions)
        return self.seen

    def _conversation(self, name: str, direction: Direction, positions: int | None) -> None:
        act, told = self.acts[name], f"{name}, {direction}"
        self._open(GROUP if "group" in name else 1)
        self._proxy.cut_after(None)
        for _ in range(PREPARED_AFTER):
            act()
        self._proxy.cut_after(None)
        assert not any(act())
        length = self._proxy.passed[direction]
        self.seen.lengths[told] = length
        for count in range(0, length, 1 if positions is None else max(1, length // positions)):
            self.seen.cuts[told] += 1
            before = [writer.head.count for writer in self._writers]
            self._proxy.cut_after(count, direction)
            failures = act()
            self._proxy.cut_after(None)
            found = [
                *self._wrongly_told(failures),
                *self._wrongly_there(before, said=direction == "down" or count >= length - SYNC_BYTES),
            ]
            self.seen.violations += [f"{told}, cut behind {count} of {length} bytes: {what}" for what in found]
            for _ in range(PREPARED_AFTER):
                act()
        self._give_up()

    def _wrongly_told(self, failures: Told) -> list[str]:
        """Each must have heard that nobody knows, and may not write on."""
        found = [f"a writer heard {failure!r}" for failure in failures if not isinstance(failure, StoreFailed)]
        again = [self._told(index) for index, failure in enumerate(failures) if isinstance(failure, StoreFailed)]
        return found + [f"the next append came to {failure!r}" for failure in again if not _is_closed(failure)]

    def _wrongly_there(self, before: list[int], *, said: bool) -> list[str]:
        """All of it or nothing, the same for all that shared a commit, and nothing where the commit was not said.

        Behind the commit only the synchronisation is said, which it does not wait for.
        """
        self._open(len(self._writers))
        grown = {writer.head.count - count for writer, count in zip(self._writers, before, strict=True)}
        self.seen.written += grown != {0}
        found = []
        if len(grown) != 1 or not grown <= {0, 1, 3}:
            found.append(f"the sessions grew by {sorted(grown)}")
        if not said and grown != {0}:
            found.append("what was not said to the end was written")
        for writer in self._writers:
            records = list(self._beside.read(writer.claim.session))
            seqs = [each.event.seq for each in records if isinstance(each, Record)]
            if seqs != list(range(writer.head.count)):
                found.append(f"{len(records)} records, {writer.head.count} were expected")
        return found

    def _open(self, count: int) -> None:
        self._give_up()
        self._writers = [Writer(self._store, f"s{index}", wait=10) for index in range(count)]

    def _give_up(self) -> None:
        for writer in self._writers:
            writer.claim.release()
        self._writers = []

    def _told(self, index: int, count: int = 1) -> TurnwalError | None:
        try:
            self._writers[index].write(count)
        except TurnwalError as error:
            return error
        return None

    def _anew(self) -> Told:
        self._store._links.close()
        return [self._told(0, 3)]

    def _together(self) -> Told:
        """All wait for the same commit: its turn is held until they do."""
        told: Told = [None] * len(self._writers)

        def write(index: int) -> None:
            told[index] = self._told(index)

        group = self._store._group
        threads = [threading.Thread(target=write, args=(index,)) for index in range(len(told))]
        with group._turn:
            for thread in threads:
                thread.start()
            while len(group._waiting) < len(threads):
                time.sleep(0.0005)
        group._wake_next()
        for thread in threads:
            thread.join()
        return told


def run(positions: int | None) -> Seen:
    """All conversations, on a server of the run."""
    # the driver warns of a pipeline that ends with its connection, which is the point here
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
    with ExitStack() as stack:
        return _begun(stack).run(positions)


def canaries() -> dict[str, bool]:
    """Planted defects: does the campaign see an append that takes a cut for a success, or for a refusal?"""
    caught = {}
    for name, outcome in (("a success", None), ("a refusal", OwnershipLost("it was cut"))):

        def mistaken(link: Any, pending: Any, outcome: Any = outcome) -> None:
            try:
                append_alone(link, pending)
            except psycopg.Error:
                pending.error = outcome

        with ExitStack() as stack, mock.patch.object(postgres, "append_alone", mistaken):
            violations = _begun(stack).run(4, "one line").violations
        caught[f"takes a cut for {name}"] = any("a writer heard" in violation for violation in violations)
    return caught


def _begun(stack: ExitStack) -> Cuts:
    url = stack.enter_context(fresh_schema())
    proxy = stack.enter_context(proxy_before(shared_server().root / ".s.PGSQL.5432"))
    return stack.enter_context(closing(Cuts(url, proxy)))


def _is_closed(failure: TurnwalError | None) -> bool:
    return isinstance(failure, ClosedAfterFailure)
