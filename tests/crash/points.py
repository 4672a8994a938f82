"""Kill the demo's agent at every point of its turn: around each durable write and around each effect.

The runs, their points and their marks are those of the harness that is shipped, and so is the first of two judges. The
second is the witness of the other campaigns, which takes nothing from turnwal but the plan that is on trial: it reads
the bytes of the file. For some of the points the processes that take up again die as well.
"""

import random
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.crash.witness import Totals, Witness
from turnwal.session.parallel import Parallel
from turnwal.session.sessions import Sessions
from turnwal.store.file import FileStore
from turnwal.testing.agent import DONE, SESSION, World, go_on, last_words, settle_unknown
from turnwal.testing.crash.marks import read_marks
from turnwal.testing.crash.reading import Clean, Effect
from turnwal.testing.crash.runs import Run, Subject

RESUMES_MAX: Final = 8
PARALLEL: Final = (None, True)
"""How the agent runs its calls: one after another, and side by side."""


@dataclass
class Kept:
    """A place that the witness knows."""

    root: Path

    def open(self) -> FileStore:
        return FileStore(self.root / "sessions")

    def bury(self) -> None:
        """The lock of a dead owner is free."""


@contextmanager
def place() -> Iterator[Kept]:
    with TemporaryDirectory(prefix="turnwal-points-") as root:
        yield Kept(Path(root))


class Deaths:
    """Every point once, each in a world of its own."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"points {seed}")
        self.totals = Totals()
        self.names: set[str] = set()
        """What there is a point before or behind."""

    def run(self) -> Totals:
        for parallel in PARALLEL:
            subject = subject_of(parallel)
            with subject.run() as run:
                points = run.count()
                look = run.look_at_the_end(None)
            self.totals.violations += map(str, look.failures)
            self.names |= {re.sub(r"#\d+", "", point) for point in points}
            for target in points:
                self.die_at(subject, target, points, look.clean)
        return self.totals

    def die_at(self, subject: Subject, target: str, points: list[str], clean: Clean | None) -> None:
        """Die at one point, then let others finish, some of which die as well."""
        with subject.run() as run:
            root = kept(run)
            sessions = Sessions(FileStore(root / "sessions"))
            witness = Witness(root, SESSION, self.totals, name=f"killed at {target}")
            for life in range(RESUMES_MAX):
                at = target if life == 0 else self.random.choice([None, self.random.choice(points)])
                code = run.until_death(life, at)
                if code == 0:
                    break
                if code != -signal.SIGKILL:
                    witness.say(f"a life ended with {code}: {run.said()}")
                self.totals.kills += 1
                self.totals.kills_in_recovery += life > 0
                tell(run)
                witness.after_death(sessions)
                self.hear(witness, run.look_after_death().failures)
            else:
                run.until_death(RESUMES_MAX, None)
            tell(run)
            witness.after_recovery(sessions)
            witness.conclude()
            self.hear(witness, run.look_at_the_end(clean).failures)
            world = World(run.world)
            with sessions.session(SESSION) as session:
                said = last_words(session)
            if (len(world.refunds()), len(world.mails()), said) != (1, 1, DONE):
                witness.say(f"{world.refunds()}, {world.mails()}, {said!r}")

    def hear(self, witness: Witness, failures: list[Any]) -> None:
        """Take in what the shipped judge has found."""
        for failure in failures:
            witness.say(str(failure))


def subject_of(parallel: Parallel) -> Subject:
    def agent(sessions: Sessions, root: Path) -> None:
        """Recover, look what became of what is unknown, and finish the conversation."""
        world = World(root)
        with sessions.session(SESSION) as session:
            settle_unknown(session, world)
            go_on(session, world, parallel=parallel)

    return Subject(
        agent=agent,
        places=place,
        session=None,
        prepare=lambda root: World(root).prepare(),
        effects=effects,
        sent=lambda _: (),
        target="anthropic",
        timeout_s=60.0,
    )


def effects(root: Path) -> list[Effect]:
    """What the world shows, each with the key of its call."""
    world = World(root)
    mails = [mail.read_text("utf-8") for mail in world.mails()]
    return [
        *(Effect("refund", line["key"]) for line in world.refunds()),
        *(Effect("e-mail", mail.split("<")[1].split("@")[0]) for mail in mails),
    ]


def kept(run: Run) -> Path:
    """The directory of the store."""
    assert isinstance(run.place, Kept)
    return run.place.root


def tell(run: Run) -> None:
    """Put the marks of the lives where the witness looks for what was acknowledged and what was done."""
    marks = read_marks(run.marks)
    acks = [f"ACK {mark.count} {mark.hash}\n" for mark in marks if mark.what == "ack"]
    done = [f"{mark.key}\n" for mark in marks if mark.what == "leave"]
    (kept(run) / f"{SESSION}.acks").write_text("".join(acks), "utf-8")
    (kept(run) / f"{SESSION}.effects").write_text("".join(done), "utf-8")
