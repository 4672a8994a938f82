"""Agents that run tools, are stopped at some instant, are succeeded, and go on: is a tool run that nobody announced?

The work is that of the crash campaigns, and so is the witness: no effect without a durable dispatch, nothing called not
started that has one, nothing acknowledged that is gone.
"""

import random
from collections.abc import Sequence
from contextlib import closing
from typing import Final

from tests.crash import marks
from tests.crash.forking import without_threads
from tests.crash.life import KINDS, Life
from tests.crash.marks import Marks
from tests.crash.witness import Totals, Witness
from tests.races.places import Place
from tests.races.stopping import Seen, Stopped, succeed
from turnwal.core.errors import TurnwalError
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions

DELAY_S: Final = 0.06
REFUSALS: Final = ("ownership_lost", "closed_after_failure")
"""The second is what a verb hears that runs beside the one that was told first."""
TURNS: Final = 2
_CHILDREN: Final = frozenset({"asynchronous", "gathered"})
"""What leaves threads behind: not for the successor, who lives in a process that forks."""


class Agents:
    """Rounds on one store, from one seed; only the instants are not its own."""

    def __init__(self, place: Place, seed: int, *, kinds: Sequence[str] = KINDS) -> None:
        self._place = place
        self._seed = seed
        self._random = random.Random(f"agents {seed}")
        self._kinds = kinds
        self.seen = Seen()
        self.totals = Totals()

    def run(self, rounds: int, *, until: str | None = None) -> Seen:
        """So many rounds, or until a violation says so."""
        for number in range(rounds):
            self.round(f"a{number}")
            if until is not None and any(until in violation for violation in self.totals.violations):
                break
        self.seen.acknowledged = self.totals.acknowledged
        self.seen.effects = self.totals.effects
        self.seen.violations += self.totals.violations
        return self.seen

    def round(self, session: str) -> None:
        """One agent, its stop, its successor, and its second life."""
        place, seen = self._place, self.seen
        seen.rounds += 1
        effects, told = place.root / f"{session}.effects", place.root / f"{session}.told"
        work = lambda: self._work(session, Marks(told))  # noqa: E731
        owner = Stopped(place, session, work, lambda: len(marks.lines(effects)) > 0)
        owner.stop(self._random.uniform(0, DELAY_S))
        read = lambda: b"".join(line + b"\n" for line in place.lines(session))  # noqa: E731
        witness = Witness(place.root, session, self.totals, read=read)
        try:
            with Sessions(place.open()) as sessions:
                self._succeed(sessions, witness, owner)
        finally:
            owner.kill()
        without_threads()
        heard = marks.lines(told)
        seen.ways["went on and was refused" if heard else "killed"] += 1
        if owner.code not in (0, -9) or (owner.code == 0 and (len(heard) != 1 or heard[0] not in REFUSALS)):
            seen.violations.append(f"{session}: the old agent ended with {owner.code} and heard {heard}")
        seen.violations += [f"{session}: {line}" for line in marks.lines(owner.errors)[-20:]]

    def _succeed(self, sessions: Sessions, witness: Witness, owner: Stopped) -> None:
        effects = witness.effects
        life = Life(self._place.root, witness.id, f"{self._seed} successor", kinds=self._own_kinds())

        def enter(wait: float) -> Session:
            return sessions.session(witness.id, create=False, wait=wait).open()

        by_force = self.seen.rounds % 3 != 0
        with closing(succeed(self._place, witness.id, owner, enter, self.seen, by_force=by_force)) as session:
            life.ack(session)
            before = len(marks.lines(effects))
            owner.go_on()
            if not owner.end():
                self.seen.violations.append(f"{witness.id}: the old agent goes on although it was succeeded")
            self.seen.effects_late += len(marks.lines(effects)) - before
            witness.after_death(sessions)
            for _ in range(TURNS):
                life.turn(session)
            life.ack(session)
        witness.after_recovery(sessions)
        witness.look()
        witness.conclude()

    def _own_kinds(self) -> Sequence[str]:
        return [kind for kind in KINDS if kind not in _CHILDREN]

    def _work(self, session: str, told: Marks) -> None:
        """Take turns until something is refused."""
        life = Life(self._place.root, session, f"{self._seed} {session}", kinds=self._kinds)
        with closing(self._place.open()) as store:
            try:
                life.live(store)
            except TurnwalError as error:
                told.write(error.code)
