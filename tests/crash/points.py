"""Kill the demo's agent at every point of its turn: around each durable write and around each effect.

The agent is run once to count the points, then once for each point, and dies there. A second process recovers, looks in
the world what became of the unknown calls, and finishes the conversation; for some of the points it dies as well.
"""

import os
import random
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from tests.crash import forking, marks
from tests.crash.marks import Marks
from tests.crash.planted import WrappedClaim, WrappedStore
from tests.crash.witness import Totals, Witness
from turnwal.core.chain import Head
from turnwal.session.parallel import Parallel
from turnwal.session.sessions import Sessions
from turnwal.store.file import FileStore
from turnwal.store.fileclaim import FileClaim
from turnwal.store.protocol import Claim
from turnwal.testing.agent import DONE, SESSION, World, go_on, last_words, settle_unknown

RESUMES_MAX: Final = 8
PARALLEL: Final = (None, True)
"""How the agent runs its calls: one after another, and side by side."""
NEVER: Final = 1 << 30


@dataclass
class Points:
    """Counts the points that are passed, and kills the process at one of them."""

    target: int = NEVER
    passed: int = 0
    names: list[str] = field(default_factory=list)

    def at(self, name: str) -> None:
        self.names.append(name)
        self.passed += 1
        if self.passed > self.target:
            os.kill(os.getpid(), signal.SIGKILL)


class PointedClaim(WrappedClaim):
    """A claim with a point before and behind each write, and an acknowledgement behind the latter."""

    def __init__(self, claim: FileClaim, points: Points, acks: Marks) -> None:
        super().__init__(claim)
        self._points = points
        self._acks = acks

    def append(self, lines: Sequence[bytes], after: Head) -> None:
        self._points.at("before a write")
        super().append(lines, after)
        self._acks.write(f"ACK {after.count + len(lines)} {sha256(lines[-1]).hexdigest()}")
        self._points.at("behind a write")


class PointedStore(WrappedStore):
    """A file store whose claims have points."""

    def __init__(self, root: Path, points: Points, acks: Marks) -> None:
        super().__init__(root)
        self._points = points
        self._acks = acks

    def wrap(self, claim: FileClaim) -> Claim:
        return PointedClaim(claim, self._points, self._acks)


class PointedWorld(World):
    """A world with a point before and behind each effect, and a mark with the key of each."""

    def __init__(self, root: Path, points: Points) -> None:
        super().__init__(root)
        self._points = points
        self._marks = Marks(root / f"{SESSION}.effects")

    def pay(self, order: int, amount: str, key: str) -> None:
        self._points.at("before the refund")
        super().pay(order, amount, key)
        self._marks.write(key)
        self._points.at("behind the refund")

    def send(self, to: str, text: str, key: str) -> None:
        self._points.at("before the e-mail")
        super().send(to, text, key)
        self._marks.write(key)
        self._points.at("behind the e-mail")

    def read(self, key: str) -> str:
        self._points.at("before the reading")
        text = super().read(key)
        self._marks.write(key)
        self._points.at("behind the reading")
        return text


class Deaths:
    """Every point once, each in a world of its own."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"points {seed}")
        self.totals = Totals()
        self.names: set[str] = set()

    def run(self) -> Totals:
        for parallel in PARALLEL:
            for target in range(self.count(parallel)):
                self.die_at(target, parallel)
        return self.totals

    def count(self, parallel: Parallel) -> int:
        """How many points an agent passes that nobody kills."""
        with self._world() as root:
            points = Points()
            agent(root, points, parallel)
            self.names |= set(points.names)
            return points.passed

    def die_at(self, target: int, parallel: Parallel) -> None:
        """Die at one point, then let others finish, some of which die as well."""
        with self._world() as root:
            sessions = Sessions(FileStore(root / "sessions"))
            witness = Witness(root, SESSION, self.totals)
            errors = root / "errors"
            for number in range(RESUMES_MAX):
                points = Points(
                    target if number == 0 else self.random.choice([NEVER, self.random.randrange(target + 2)])
                )
                code = forking.wait(forking.fork(lambda: agent(root, points, parallel), errors))  # noqa: B023
                if code == 0:
                    break
                if code != -signal.SIGKILL:
                    witness.say(f"a life ended with {code}: {marks.lines(errors)}")
                self.totals.kills += 1
                self.totals.kills_in_recovery += number > 0
                witness.after_death(sessions)
            else:
                forking.wait(forking.fork(lambda: agent(root, Points(), parallel), errors))
            witness.after_recovery(sessions)
            witness.conclude()
            world = World(root)
            with sessions.session(SESSION) as session:
                said = last_words(session)
            if (len(world.refunds()), len(world.mails()), said) != (1, 1, DONE):
                witness.say(f"killed at {target}: {world.refunds()}, {world.mails()}, {said!r}")

    @contextmanager
    def _world(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="turnwal-points-") as name:
            root = Path(name)
            World(root).prepare()
            yield root


def agent(root: Path, points: Points, parallel: Parallel) -> None:
    """Recover, look what became of what is unknown, and finish the conversation."""
    world = PointedWorld(root, points)
    store = PointedStore(root / "sessions", points, Marks(root / f"{SESSION}.acks"))
    with Sessions(store).session(SESSION) as session:
        settle_unknown(session, world)
        go_on(session, world, parallel=parallel)
