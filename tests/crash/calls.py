"""Kill a fixed piece of work at every system call that it makes, one after another.

The work opens a store, takes turns of all kinds in a session, copies the session, and goes on with it in a store that
is opened anew. Between two calls nothing outside the process changes, so these are all the deaths there are. On
PostgreSQL they are what the client sends and asks for; what the server does with its files is its own.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.crash import marks, tracing
from tests.crash.life import BIG, Life
from tests.crash.marks import Marks
from tests.crash.places import PLACES, Place
from tests.crash.planted import LateStore
from tests.crash.witness import Totals, Witness
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions

_ON_DISK: Final = (
    *("openat", "close", "write", "pwrite64", "fdatasync", "fsync", "ftruncate", "flock", "fcntl"),
    *("unlink", "unlinkat", "rename", "renameat", "renameat2", "link", "linkat"),
    *("mkdir", "mkdirat", "mknod", "mknodat", "chmod", "fchmod", "fchmodat"),
)
CALLS: Final[Mapping[str, Sequence[str]]] = {
    "file": _ON_DISK,
    "sqlite": _ON_DISK,
    "postgres": ("sendto", "recvfrom"),
}
KINDS: Final = ("serial", "by_halves", "sub_run", "approval", "approval", "undeclared", "by_hand")
"""What runs in one thread, and so makes the same calls each time."""


class Fixed(Life):
    """The same work each time, with a result of many pages in it."""

    def __init__(self, place: Place, session: str, kinds: Sequence[str] = KINDS) -> None:
        super().__init__(place.root, session, "fixed", kinds=kinds)
        self.place = place
        self.copies = Marks(place.root / f"{session}.copies")

    def pauses(self) -> tuple[float, float, int]:
        return 0.0, 0.0, self.random.choice([10, 10, 10, BIG])

    def hear(self, session: Session) -> None:
        """Subscribers live in threads of their own."""

    def may_repeat(self, call: object) -> bool:
        del call
        return False

    def go(self) -> None:
        with closing(Sessions(self.place.make())) as sessions:
            with sessions.session(self.id) as session:
                for kind in self.kinds:
                    getattr(self, kind)(session)
            copy = list(sessions.export(self.id))
            digest = hashlib.sha256(b"".join(line + b"\n" for line in copy)).hexdigest()
            self.copies.write(f"COPYING {digest}")
            sessions.take_in(copy_of(self.id), copy)
            self.copies.write(f"COPIED {digest}")
        with closing(Sessions(self.place.make())) as sessions, sessions.session(self.id) as session:
            self.serial(session)


def copy_of(session: str) -> str:
    """The id of a session's copy."""
    return f"{session}-copy"


class Calls:
    """Every call of the work on one store, or some of them."""

    def __init__(
        self, store: str, seed: int, *, plant: Callable[[Place], Place] | None = None, kinds: Sequence[str] = KINDS
    ) -> None:
        self.store = store
        self.random = random.Random(f"calls {seed} {store}")
        self.totals = Totals()
        self.counts: Counter[str] = Counter()
        """How many calls of each name the work makes."""
        self.killed: Counter[str] = Counter()
        self.survived = 0
        """Works that made fewer calls than were counted: on a network, answers come in as many pieces as they like."""
        self._plant = plant or (lambda place: place)
        self._kinds = kinds
        self._works = 0

    def run(self, every: int, *, until: str | None = None) -> Totals:
        """Kill at every so-manieth call of each name, at one of them at least; at all of them where `every` is 1."""
        with self._places() as places:
            with places() as place:
                code, trace = self._work(place, f"w{self._works}", None)
                assert code == 0, f"the work fails by itself: {self._complaints(place, 'w0')}"
            self.counts = tracing.counted(trace)
            points = []
            for call, most in sorted(self.counts.items()):
                first = self.random.randrange(min(every, most))
                points += [(call, number + 1) for number in range(first, most, every)]
            self.random.shuffle(points)
            for call, number in points:
                with places() as place:
                    self._die_at(place, call, number)
                if until is not None and any(until in violation for violation in self.totals.violations):
                    break
        return self.totals

    def _die_at(self, place: Place, call: str, number: int) -> None:
        session = f"w{self._works}"
        code, _ = self._work(place, session, (call, number))
        read = lambda: place.bytes_of(session)  # noqa: E731
        witness = Witness(place.root, session, self.totals, name=f"{place.name} killed at {call} {number}", read=read)
        if code == -9:
            self.killed[call] += 1
            self.totals.kills += 1
        else:
            self.survived += 1
            if code != 0:
                witness.say(f"it ended with {code}: {self._complaints(place, session)}")
        with place.sessions() as sessions:
            witness.after_death(sessions)
            self._check_copy(place, session, witness)
        place.bury()
        with place.sessions() as sessions:
            sessions.session(session, wait=5.0).open().close()
        with place.sessions() as sessions:
            witness.after_recovery(sessions)
            self._copy_again(place, session, sessions, witness)
        witness.conclude()

    def _check_copy(self, place: Place, session: str, witness: Witness) -> None:
        """A copy is there whole or not at all; and whole when its maker was told so."""
        copy = place.bytes_of(copy_of(session))
        said = [line.split(" ") for line in marks.lines(place.root / f"{session}.copies")]
        if copy and [word for word, digest in said if digest == hashlib.sha256(copy).hexdigest()][:1] != ["COPYING"]:
            witness.say("a copy is there that is not whole")
        if not copy and any(word == "COPIED" for word, _ in said):
            witness.say("a copy that was acknowledged is not there")

    def _copy_again(self, place: Place, session: str, sessions: Sessions, witness: Witness) -> None:
        """Where a death left no copy it can be made, and nothing else is in the store than the two."""
        if not place.bytes_of(copy_of(session)):
            sessions.take_in(copy_of(session), sessions.export(session))
            if place.bytes_of(copy_of(session)) != place.bytes_of(session):
                witness.say("a copy made after the death is another one")
        strange = {id for id in sessions if id.startswith(session)} - {session, copy_of(session)}
        if strange:
            witness.say(f"sessions that nobody made: {sorted(strange)}")

    def _work(self, place: Place, session: str, kill_at: tuple[str, int] | None) -> tuple[int, str]:
        """How the work ended, and what it called."""
        self._works += 1
        errors = place.root / f"{session}.errors"
        work = lambda: Fixed(self._plant(place), session, self._kinds).go()  # noqa: E731
        code = tracing.traced(work, CALLS[self.store], errors, kill_at=kill_at)
        return code, tracing.trace_of(errors).read_text("utf-8", "replace")

    def _complaints(self, place: Place, session: str) -> str:
        return " | ".join(marks.lines(place.root / f"{session}.errors")[-30:])

    @contextmanager
    def _places(self) -> Iterator[Callable[[], AbstractContextManager[Place]]]:
        """What gives a store to each death: one of its own on disk, the same for all in a database server."""

        @contextmanager
        def fresh() -> Iterator[Place]:
            with TemporaryDirectory(prefix="turnwal-calls-") as name, PLACES[self.store](Path(name)) as place:
                yield place

        if self.store != "postgres":
            yield fresh
            return
        with fresh() as shared:

            @contextmanager
            def same() -> Iterator[Place]:
                yield shared

            yield same


def canaries(seed: int, stores: Iterable[str]) -> dict[str, int | None]:
    """Run a planted defect on each store; says at how many deaths it was caught, None where it was not."""
    caught: dict[str, int | None] = {}
    for store in stores:
        late = lambda place: place._replace(make=lambda: LateStore(place.make()))  # noqa: E731
        campaign = Calls(store, seed, plant=late, kinds=("serial", "by_halves"))
        shown = "events were acknowledged"
        totals = campaign.run(5, until=shown)
        found = any(shown in violation for violation in totals.violations)
        caught[f"{store} acknowledges a batch before it writes it"] = totals.kills if found else None
    return caught
