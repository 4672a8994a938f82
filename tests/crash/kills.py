"""Kill an agent at random instants, many times, and look at what its log says each time.

Sessions go on over many deaths. Recovery is killed too, up to five times in a row. Most lives are forks of this
process; some have an interpreter of their own; some are ended by SIGTERM, which kills by default just the same.
"""

import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.crash import forking, marks
from tests.crash.life import KINDS, Life
from tests.crash.planted import CuttingStore, EagerStore, TearingDisk
from tests.crash.witness import Totals, Witness
from turnwal.session.sessions import Sessions
from turnwal.store.disk import Disk
from turnwal.store.file import FileStore

LIFE_S: Final = 0.09
DEAD_S: Final = 0.5
"""A life that kills itself in a write has done so by then, or is killed anyway."""
RECOVERY_S: Final = 0.004
NESTED_MAX: Final = 5
DEATHS_MAX: Final = 12
"""A session is retired after so many, so that reading it again each time stays cheap."""
_FRESH_SHARE: Final = 0.08
_TERM_SHARE: Final = 0.1
_TORN_SHARE: Final = 0.15


class Campaign:
    """One run from one seed; only the instants of death are not its own."""

    def __init__(
        self,
        seed: int,
        *,
        store: type[FileStore] = FileStore,
        kinds: Sequence[str] = KINDS,
        fresh: float = _FRESH_SHARE,
    ) -> None:
        self.seed = seed
        self.random = random.Random(f"kills {seed}")
        self.totals = Totals()
        self._kinds = kinds
        self._store = store
        self._fresh = fresh
        self.root = Path(tempfile.mkdtemp(prefix="turnwal-crash-"))
        self._sessions = Sessions(store(self.root / "sessions"))
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
        witness.after_death(self._sessions)
        for _ in range(self.random.randrange(NESTED_MAX + 1)):
            pid = forking.fork(lambda: self._recover(witness.id), errors)
            code = forking.end(pid, signal.SIGKILL, self.random.uniform(0, RECOVERY_S))
            self.totals.kills_in_recovery += code < 0
            witness.look()
        self._recover(witness.id)
        witness.after_recovery(self._sessions)
        witness.totals.violations += [f"{witness.id}: {line}" for line in marks.lines(errors)]
        errors.unlink(missing_ok=True)

    def _live_and_die(self, session: str, seed: str, errors: Path) -> int:
        number = signal.SIGTERM if self.random.random() < _TERM_SHARE else signal.SIGKILL
        after_s = self.random.uniform(0, LIFE_S)
        fresh = self.random.random() < self._fresh
        torn = not fresh and self.random.random() < _TORN_SHARE
        kind = "an interpreter of its own" if fresh else "a fork that dies inside a write" if torn else "a fork"
        self.totals.deaths[f"{'SIGKILL' if torn else signal.Signals(number).name} to {kind}"] += 1
        if fresh:
            return self._fresh_life(session, seed, errors, number, after_s)
        disk = TearingDisk(self.random.randrange(40), self.random.random()) if torn else Disk()
        store = self._store(self.root / "sessions", disk=disk)
        pid = forking.fork(lambda: Life(self.root, session, seed, kinds=self._kinds).live(store), errors)
        return forking.end(pid, number, DEAD_S if torn else after_s)

    def _fresh_life(self, session: str, seed: str, errors: Path, number: int, after_s: float) -> int:
        with errors.open("ab") as file:
            child = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.life", str(self.root), session, seed],
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

    def _recover(self, session: str) -> None:
        """What an application does at its next start."""
        self._sessions.session(session, wait=5.0).open().close()

    def _next(self) -> Witness:
        witness = self._witness
        if witness is None or self._deaths >= DEATHS_MAX or self.random.random() < 0.1:
            self._retire()
            self._deaths = 0
            witness = self._witness = Witness(self.root, f"s{self.totals.sessions}", self.totals)
        return witness

    def _retire(self) -> None:
        if self._witness is not None:
            self._witness.conclude()


class Canary(NamedTuple):
    """A planted defect and what shows it."""

    name: str
    campaign: Campaign
    shown_by: str


def canaries(seed: int, kills: int) -> dict[str, int | None]:
    """Run each planted defect; says after how many kills it was caught, None for one that was not."""
    planted = (
        Canary("acknowledges before it writes", Campaign(seed, store=EagerStore, fresh=0), "events were acknowledged"),
        Canary("cuts a torn tail off", Campaign(seed, store=CuttingStore, fresh=0), "are gone or changed"),
        Canary(
            "runs bodies before the barrier", Campaign(seed, kinds=("hasty",), fresh=0), "is called not started and"
        ),
        Canary("runs bodies before the barrier", Campaign(seed, kinds=("hasty",), fresh=0), "effects of key"),
    )
    caught: dict[str, int | None] = {}
    for name, campaign, shown_by in planted:
        totals = campaign.run(kills, until=shown_by)
        shown = any(shown_by in violation for violation in totals.violations)
        caught[f"{name}: '… {shown_by} …'"] = totals.kills if shown else None
        campaign.clear()
    return caught
