"""Owners that append, are stopped at some instant, are succeeded, and go on as if nothing had happened."""

import random
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count

from tests.crash import marks
from tests.crash.forking import without_threads
from tests.crash.marks import Marks
from tests.races.history import acknowledged, late_lines, lines_behind, problems
from tests.races.places import Place
from tests.races.stopping import Seen, Stopped, succeed
from tests.races.writers import end_of
from turnwal.core.errors import OwnershipLost
from turnwal.store.protocol import Claim, Store

DELAY_S = 0.01
PAUSE_S = 0.002
"""After every other append, so that some owners are stopped inside one and some between two."""
STUBBORN_LINES = 3


class Zombies:
    """Rounds on one store, from one seed; only the instants are not its own."""

    def __init__(
        self, place: Place, seed: int, *, stubborn: bool = False, planted: Callable[[], Store] | None = None
    ) -> None:
        """`stubborn` owners are a defect: refused, they look where the session ends, and append there."""
        self._place = place
        self._random = random.Random(f"zombies {seed}")
        self._stubborn = stubborn
        self._planted = planted or place.open
        self.seen = Seen()

    def run(self, rounds: int, *, until: str | None = None) -> Seen:
        """So many rounds, or until a violation says so."""
        for number in range(rounds):
            self.round(f"z{number}")
            if until is not None and any(until in violation for violation in self.seen.violations):
                break
        return self.seen

    def round(self, session: str) -> None:
        """One owner, its stop, its successor, and its second life."""
        place, seen = self._place, self.seen
        seen.rounds += 1
        path = place.root / f"{session}.acks"
        owner = Stopped(
            place, session, lambda: self._write_on(session, Marks(path)), lambda: len(marks.lines(path)) > 2
        )
        owner.stop(self._random.uniform(0, DELAY_S))
        try:
            with closing(place.open()) as store:
                self._succeed(session, owner, store, Marks(path))
        finally:
            owner.kill()
        without_threads()
        told = [mark for mark in marks.lines(path) if mark.startswith("TOLD")]
        seen.ways["went on and was refused" if told else "killed"] += 1
        if owner.code not in (0, -9) or (owner.code == 0 and told != ["TOLD ownership_lost"]):
            seen.violations.append(f"{session}: the old owner ended with {owner.code} and heard {told}")
        lines = place.lines(session)
        seen.acknowledged += len(lines)
        seen.late += late_lines(lines, "successor")
        acks = [mark for mark in marks.lines(path) if not mark.startswith("TOLD")]
        seen.violations += [f"{session}: {problem}" for problem in problems(lines, acks)]
        seen.violations += [f"{session}: {line}" for line in marks.lines(owner.errors)[-20:]]

    def _succeed(self, session: str, owner: Stopped, store: Store, told: Marks) -> None:
        enter: Callable[[float], Claim] = lambda wait: store.claim(session, wait=wait)  # noqa: E731
        claim = succeed(self._place, session, owner, enter, self.seen, by_force=self.seen.rounds % 3 != 0)
        head, number = end_of(store, session), 0
        for step in range(6):
            size = 1 + step % 3
            lines, after = lines_behind(head, "successor.0", number, size)
            try:
                claim.append(lines, head)
            except OwnershipLost as lost:
                self.seen.violations.append(f"{session}: the successor is refused: {lost}")
                break
            head, number = after, number + size
            told.write(acknowledged("successor.0", head))
            if step == 2:
                owner.go_on()
                if not owner.end():
                    self.seen.violations.append(f"{session}: the old owner goes on although it was succeeded")
        claim.release()

    def _write_on(self, session: str, told: Marks) -> None:
        """Append until one is refused; who is stubborn appends some more all the same."""
        with closing(self._planted()) as store:
            claim = store.claim(session, wait=5)
            head, number, left = end_of(store, session), 0, STUBBORN_LINES if self._stubborn else 0
            refused = ""
            for step in count():
                size = 1 + step % 3
                lines, after = lines_behind(head, "owner.0", number, size)
                try:
                    claim.append(lines, head)
                except OwnershipLost as lost:
                    refused = f"TOLD {lost.code}"
                    head = end_of(store, session)
                else:
                    head, number = after, number + size
                    told.write(acknowledged("owner.0", head))
                    time.sleep(PAUSE_S * (step % 2))
                left -= bool(refused)
                if left < 0:
                    told.write(refused)
                    return
