"""An interrupt at instants all over a short life of a session in a database, as `everywhere` does it with files.

Afterwards the same process has the session again, another session of it goes on, and what was acknowledged is there.
"""

import random
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import pytest

import turnwal
from tests.crash.everywhere import NEVER, Interrupt
from tests.crash.interrupts import came_of_interrupt
from tests.store.server import fresh_schema
from turnwal.session.sessions import Sessions
from turnwal.store.protocol import Record

WAIT_S = 5.0
"""PostgreSQL may be told by the renewal of the lease that a session was given up."""


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

    def go(self, interrupt: Interrupt) -> None:
        """Live with an interrupt, then see what the session and the store are good for."""
        options = {"lease_s": 3.0} if self.url.startswith("postgresql") else {}
        with closing(turnwal.open_store(self.url, **options)) as sessions:
            with sessions.session("beside") as beside:
                beside.flush()
            try:
                sys.setprofile(interrupt)
                self.live(sessions)
            except BaseException as error:
                if not came_of_interrupt(error):
                    raise
            finally:
                sys.setprofile(None)
            for id, wait in ((self.id, WAIT_S), ("beside", 0.0)):
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
@pytest.mark.parametrize(("kind", "places"), [("sqlite", 25), ("postgresql", 10)])
def test_an_interrupt_anywhere_leaves_a_session_that_goes_on(kind: str, places: int, tmp_path: Path) -> None:
    """At so many of the 400 to 500 places in the code that such a life passes."""
    with database(kind, tmp_path) as url:
        names = (f"s{number}" for number in count())
        Life(url, next(names)).go(Interrupt(NEVER))  # imports what is imported late
        uninterrupted = Interrupt(NEVER)
        Life(url, next(names)).go(uninterrupted)
        assert len(uninterrupted.places) > 300
        chosen = random.Random(f"databases {kind}")
        for place in chosen.sample(sorted(uninterrupted.places), places):
            interrupt = Interrupt(chosen.choice(uninterrupted.places[place]))
            Life(url, next(names)).go(interrupt)
            assert interrupt.where
