"""Kill an agent at random instants, many times, and look at what its log says each time.

Sessions go on over many deaths. Recovery is killed too, up to five times in a row. Most lives are forks of this
process; some have an interpreter of their own; some are ended by SIGTERM or SIGHUP, which by default kill just the
same.
"""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final, NamedTuple

from tests.crash import forking, marks
from tests.crash.life import KINDS, Life
from tests.crash.places import Place, place_in
from tests.crash.planted import CuttingStore, EagerStore, TearingDisk, UnsyncedDisk, unsynced_sqlite
from tests.crash.witness import Totals, Witness

DEAD_S: Final = 0.5
"""A life that kills itself in a write has done so by then, or is killed anyway."""
NESTED_MAX: Final = 5
DEATHS_MAX: Final = 12
"""A session is retired after so many, so that reading it again each time stays cheap."""
_FRESH_SHARE: Final = 0.08
_OTHER_SHARE: Final = 0.1
_OTHERS: Final = (signal.SIGTERM, signal.SIGHUP)
_TORN_SHARE: Final = 0.15
_WAITING_SHARE: Final = 0.05
"""How many of the dead keep their leases until they expire; of the others it is as if the time had passed."""


class Campaign:
    """One run from one seed; only the instants of death are not its own."""

    def __init__(
        self,
        seed: int,
        place: Place,
        *,
        kinds: Sequence[str] = KINDS,
        fresh: float = _FRESH_SHARE,
    ) -> None:
        self.seed = seed
        self.random = random.Random(f"kills {seed}")
        self.totals = Totals()
        self.place = place
        self.root = place.root
        self._kinds = kinds
        self._fresh = fresh
        self._torn = _TORN_SHARE if place.name == "file" else 0.0
        self._witness: Witness | None = None
        self._deaths = 0

    def run(self, kills: int, *, until_s: float = float("inf"), until: str | None = None) -> Totals:
        """Kill so many times, or until the time is up, or until a violation says so."""
        deadline = time.monotonic() + until_s
        while self.totals.kills < kills and time.monotonic() < deadline:
            self.kill_once()
            if until is not None and any(until in violation for violation in self.totals.violations):
                break
        self._retire()
        return self.totals

    def clear(self) -> None:
        """Remove the files."""
        shutil.rmtree(self.root)

    def kill_once(self) -> None:
        """One life, its death, what is left, recovery (which may die too), and what is left then."""
        witness = self._next()
        seed = f"{self.seed} {self.totals.kills}"
        self.totals.kills += 1
        self._deaths += 1
        errors = self.root / f"{witness.id}.errors"
        code = self._live_and_die(witness.id, seed, errors)
        if code >= 0:
            witness.say(f"a life ended by itself, with {code}, before it was killed")
        with self.place.sessions() as sessions:
            witness.after_death(sessions)
        for _ in range(self.random.randrange(NESTED_MAX + 1)):
            self._bury()
            pid = forking.fork(lambda: self._recover(witness.id), errors)
            code = forking.end(pid, signal.SIGKILL, self.random.uniform(0, self.place.recovery_s))
            self.totals.kills_in_recovery += code < 0
            witness.look()
        self._bury()
        self._recover(witness.id)
        with self.place.sessions() as sessions:
            witness.after_recovery(sessions)
        witness.totals.violations += [f"{witness.id}: {line}" for line in marks.lines(errors)]
        errors.unlink(missing_ok=True)

    def _live_and_die(self, session: str, seed: str, errors: Path) -> int:
        number = self.random.choice(_OTHERS) if self.random.random() < _OTHER_SHARE else signal.SIGKILL
        after_s = self.random.uniform(0, self.place.life_s)
        fresh = self.random.random() < self._fresh
        torn = not fresh and self.random.random() < self._torn
        kind = "an interpreter of its own" if fresh else "a fork that dies inside a write" if torn else "a fork"
        self.totals.deaths[f"{'SIGKILL' if torn else signal.Signals(number).name} to {kind}"] += 1
        if fresh:
            return self._fresh_life(session, seed, errors, number, after_s)
        more = {"disk": TearingDisk(self.random.randrange(40), self.random.random())} if torn else {}

        def live() -> None:
            Life(self.root, session, seed, kinds=self._kinds).live(self.place.make(**more))

        pid = forking.fork(live, errors)
        return forking.end(pid, number, DEAD_S if torn else after_s)

    def _fresh_life(self, session: str, seed: str, errors: Path, number: int, after_s: float) -> int:
        where = [self.place.url, json.dumps(dict(self.place.options))]
        with errors.open("ab") as file:
            child = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.life", str(self.root), session, seed, *where],
                stdout=subprocess.PIPE,
                stderr=file,
                cwd=Path(__file__).parents[2],
            )
            with child:
                if child.stdout is not None:
                    child.stdout.readline()
                time.sleep(after_s)
                child.send_signal(number)
        return child.returncode

    def _bury(self) -> None:
        if self.random.random() >= _WAITING_SHARE:
            self.place.bury()

    def _recover(self, session: str) -> None:
        """What an application does at its next start."""
        with self.place.sessions() as sessions:
            sessions.session(session, wait=5.0).open().close()

    def _next(self) -> Witness:
        witness = self._witness
        if witness is None or self._deaths >= DEATHS_MAX or self.random.random() < 0.1:
            self._retire()
            self._deaths = 0
            session = f"s{self.totals.sessions}"
            read = lambda: self.place.bytes_of(session)  # noqa: E731
            witness = self._witness = Witness(self.root, session, self.totals, read=read)
        return witness

    def _retire(self) -> None:
        if self._witness is not None:
            self._witness.conclude()


class Canary(NamedTuple):
    """A planted defect, where it is planted, and what shows it."""

    name: str
    place: str
    plant: Callable[[Place], Place]
    kinds: Sequence[str]
    shown_by: str


def _eager(place: Place) -> Place:
    return place._replace(make=lambda **more: EagerStore(place.make(**more)))


def _cutting(place: Place) -> Place:
    return place._replace(make=lambda **more: CuttingStore(place.url, **more))


def _nothing(place: Place) -> Place:
    return place


def _unsynced(place: Place) -> Place:
    return place._replace(make=lambda **more: place.make(**{"disk": UnsyncedDisk(), **more}))


CANARIES: Final = (
    *(
        Canary("acknowledges before it writes", name, _eager, KINDS, "events were acknowledged")
        for name in ("file", "sqlite", "postgres")
    ),
    Canary("cuts a torn tail off", "file", _cutting, KINDS, "are gone or changed"),
    Canary("runs bodies before the barrier", "file", _nothing, ("hasty",), "is called not started and"),
    Canary("runs bodies before the barrier", "file", _nothing, ("hasty",), "effects of key"),
)


def canaries(seed: int, kills: int) -> dict[str, int | None]:
    """Run each planted defect; says after how many kills it was caught, None for one that was not."""
    caught: dict[str, int | None] = {}
    for name, store, plant, kinds, shown_by in CANARIES:
        with place_in(store) as place:
            campaign = Campaign(seed, plant(place), kinds=kinds, fresh=0)
            totals = campaign.run(kills, until=shown_by)
            shown = any(shown_by in violation for violation in totals.violations)
            caught[f"{store} {name}: '… {shown_by} …'"] = totals.kills if shown else None
            campaign.clear()
    return caught


def unsynced(seed: int, kills: int) -> dict[str, Totals]:
    """What kills find of a store that never syncs: nothing, since only the loss of power tells. Of file and SQLite."""
    found = {}
    for name in ("file", "sqlite"):
        settings: AbstractContextManager[None] = unsynced_sqlite() if name == "sqlite" else nullcontext()
        with place_in(name) as place, settings:
            campaign = Campaign(seed, _unsynced(place), fresh=0)
            found[name] = campaign.run(kills)
            campaign.clear()
    return found
