"""An interrupt at instants all over a short life of a session in a database, as `everywhere` does it with files.

Another session waits with an append when the life begins, and shares its first commit. Afterwards the same process has
the session again, other sessions of it go on, and what was acknowledged is there.
"""

import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from itertools import count
from pathlib import Path

import pytest

import turnwal
from tests.crash.everywhere import NEVER, Interrupt
from tests.crash.interrupts import came_of_interrupt
from tests.store.server import fresh_schema
from turnwal.core.errors import StoreError
from turnwal.session.sessions import Sessions
from turnwal.store.postgres import PostgresStore
from turnwal.store.protocol import Record
from turnwal.store.sqlite import SqliteStore

WAIT_S = 5.0
"""PostgreSQL may be told by the renewal of the lease that a session was given up."""


@contextmanager
def company(sessions: Sessions, id: str) -> Iterator[None]:
    """Another session whose append shares the first commit that this thread makes in the block."""
    assert isinstance(sessions.store, PostgresStore | SqliteStore)
    group = sessions.store._group
    begun, held, over = threading.Event(), threading.Event(), threading.Event()
    told = []

    def append() -> None:
        # its commit may be broken off with the other's
        with suppress(StoreError), sessions.session(id) as session:
            session.flush()
            begun.set()
            held.wait(WAIT_S)
            session.append("x.note", {"text": "shared"})
            told.append(session.flush().count)
            over.wait(WAIT_S)  # it shares one commit, not now this and now that one

    thread = threading.Thread(target=append)
    thread.start()
    assert begun.wait(WAIT_S)
    group._turn.acquire()
    held.set()
    end = time.monotonic() + WAIT_S
    while not group._waiting:
        assert time.monotonic() < end
        time.sleep(0.001)
    try:
        yield
    finally:
        # an interrupt ahead of the taking of it lets go of what was taken here
        with suppress(RuntimeError):
            group._turn.release()
        over.set()
        group._wake_next()
        thread.join()
    assert not told or len(list(sessions.store.read(id))) >= told[0]


class Life:
    """One session from its beginning to its end, and what it was told is durable."""

    def __init__(self, url: str, session: str) -> None:
        self.url = url
        self.id = session
        self.told = 0

    def live(self, sessions: Sessions) -> None:
        with sessions.session(self.id) as session:
            with session.turn(user="go"):
                session.append("x.note", {"text": "noted"})
                self.told = session.flush().count
            self.told = session.flush().count

    def go(self, interrupt: Interrupt, *, alone: bool = False) -> None:
        """Live with an interrupt, then see what the sessions and the store are good for."""
        options = {"lease_s": 3.0} if self.url.startswith("postgresql") else {}
        with closing(turnwal.open_store(self.url, **options)) as sessions:
            with sessions.session("beside") as beside:
                beside.flush()
            with nullcontext() if alone else company(sessions, "shared"):
                try:
                    sys.setprofile(interrupt)
                    self.live(sessions)
                except BaseException as error:
                    if not came_of_interrupt(error):
                        raise
                finally:
                    sys.setprofile(None)
            for id, wait in ((self.id, WAIT_S), ("beside", 0.0), ("shared", WAIT_S)):
                with sessions.session(id, wait=wait) as session:
                    session.append("x.note", {"text": "afterwards"})
                    head = session.flush()
                assert self.seqs(sessions, id)[: head.count] == list(range(head.count)), interrupt.where
            assert len(self.seqs(sessions, self.id)) > self.told, interrupt.where

    def seqs(self, sessions: Sessions, id: str) -> list[int]:
        found = list(sessions.store.read(id))
        assert all(isinstance(each, Record) for each in found)
        return [each.event.seq for each in found if isinstance(each, Record)]


@contextmanager
def database(kind: str, root: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:{root / 'agents.db'}"
        return
    with fresh_schema() as url:
        yield url


# an interrupt in a generator that is being thrown away is printed and forgotten by the interpreter itself
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("kind", "places", "shared"), [("sqlite", 25, 0), ("postgresql", 10, 20)])
def test_an_interrupt_anywhere_leaves_a_session_that_goes_on(
    kind: str, places: int, shared: int, tmp_path: Path
) -> None:
    """At so many of the 400 to 500 places in the code that such a life passes, and of those in a shared commit."""
    with database(kind, tmp_path) as url:
        names = (f"s{number}" for number in count())
        Life(url, next(names)).go(Interrupt(NEVER))  # imports what is imported late
        alone, together = Interrupt(NEVER), Interrupt(NEVER)
        Life(url, next(names)).go(alone, alone=True)
        Life(url, next(names)).go(together)
        assert len(together.places) > 300
        chosen = random.Random(f"databases {kind}")
        sharing = sorted(together.places.keys() - alone.places.keys())
        for place in (*chosen.sample(sorted(together.places), places), *chosen.sample(sharing, shared)):
            interrupt = Interrupt(chosen.choice(together.places[place]))
            Life(url, next(names)).go(interrupt)
            assert interrupt.where
