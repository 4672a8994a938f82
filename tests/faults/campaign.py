"""One fault after another in a fixed piece of work, and what is left of it on a disk that works again.

Held of each run: it ends, in success or in an error of turnwal with a name and no traceback; after a write or a sync
that failed nothing more is acknowledged on the same handle; what was acknowledged is there, and nothing else than was
written; the session opens, recovers and goes on in another process once the disk works.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.crash import forking, marks
from tests.crash.places import PLACES, Place
from tests.crash.witness import Totals, Witness
from tests.faults.work import Faulty
from turnwal.core.errors import StoreError, TurnwalError
from turnwal.store.disk import Disk
from turnwal.store.file import FileStore
from turnwal.store.protocol import Store
from turnwal.testing.faults import CALLS, FaultPlan, every_fault

SESSION: Final = "w"
HOWS: Final = ("EIO", "ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EMFILE", "EINTR", "short")
FULL: Final = frozenset({"ENOSPC", "EDQUOT", "EFBIG"})
"""What a disk without room says, whatever it is that has no room."""
_WRITES: Final = frozenset({"write", "sync"})
"""After these the handle has to be closed: what the disk has is not known."""
_STUCK_S: Final = 60.0


@dataclass
class Seen:
    """What a campaign saw."""

    runs: int = 0
    fired: int = 0
    heard: Counter[str] = field(default_factory=Counter)
    by_fault: Counter[str] = field(default_factory=Counter)
    totals: Totals = field(default_factory=Totals)


def files(
    seed: int,
    every: int,
    *,
    disk: Callable[[FaultPlan], Disk] = FaultPlan.disk,
    calls: Sequence[str] = CALLS,
    hows: Sequence[str] = HOWS,
    until: str | None = None,
) -> Seen:
    """Every so-manieth fault of the file store, by a plan that stands where the operating system does."""
    seen = Seen()
    counts = _counts(disk)
    chosen = random.Random(f"faults files {seed}")
    faults = [fault for fault in every_fault(counts, hows) if fault.call in calls]
    listed = [fault for fault in faults if chosen.random() < 1 / every]
    for fault in listed:
        with _place() as place:
            plan = FaultPlan(fault)

            def work(place: Place = place, plan: FaultPlan = plan) -> None:
                make: Callable[[], Store] = lambda: FileStore(place.root / "sessions", disk=disk(plan))  # noqa: E731
                Faulty(place, SESSION, make).go()
                if plan.fired:
                    (place.root / "fired").touch()

            pid = forking.fork(work, place.root / "errors")
            _judge(seen, place, str(fault), fault.call, fault.how, forking.wait_for(pid, _STUCK_S), pid)
        if until is not None and any(until in violation for violation in seen.totals.violations):
            break
    return seen


def _judge(seen: Seen, place: Place, name: str, call: str, how: str, code: int | None, pid: int | None) -> None:
    witness = Witness(
        place.root, SESSION, seen.totals, name=f"{place.name} {name}", read=lambda: place.bytes_of(SESSION)
    )
    seen.runs += 1
    fired = (place.root / "fired").exists()
    seen.fired += fired
    if code is None:
        witness.say("it hung")
        forking.end(pid or 0, 9, 0)
        return
    if code != 0:
        witness.say(f"it ended with {code}: " + " | ".join(marks.lines(place.root / "errors")[-12:]))
        return
    heard = [json.loads(line) for line in marks.lines(place.root / f"{SESSION}.heard")]
    for error in heard:
        seen.heard[error["code"]] += 1
    if fired:
        seen.by_fault[f"{call} {how}"] += 1
    first = heard[0] if heard else None
    if first is not None and first.get("again") and call in _WRITES and how != "EINTR":
        witness.say(f"it went on after: {first['said']}")
    if first is not None and how in FULL and call == "write" and first["code"] != "store_full":
        witness.say(f"a full disk is called {first['code']}: {first['said']}")
    if first is None and fired and call == "sync":
        witness.say("a sync failed, and nobody was told")
    if first is not None and not fired:
        witness.say(f"it failed although nothing did: {first['said']}")
    try:
        with place.sessions() as sessions:
            witness.after_death(sessions)
        with place.sessions() as sessions, sessions.session(SESSION, wait=5.0) as session:
            session.append("x.after", {})
            session.flush()
        with place.sessions() as sessions:
            witness.after_recovery(sessions)
    except TurnwalError as error:
        witness.say(f"on a disk that works it is refused: {error}")
        return
    witness.conclude()


def _counts(disk: Callable[[FaultPlan], Disk]) -> Counter[str]:
    """How many calls of each kind the work makes where none fails."""
    with _place() as place:
        plan = FaultPlan()

        def work() -> None:
            Faulty(place, SESSION, lambda: FileStore(place.root / "sessions", disk=disk(plan))).go()
            (place.root / "counts").write_text(json.dumps(plan.counts), "utf-8")

        code = forking.wait(forking.fork(work, place.root / "errors"))
        assert code == 0, marks.lines(place.root / "errors")
        found = Counter(json.loads((place.root / "counts").read_text("utf-8")))
    assert set(found) <= set(CALLS)
    return found


@contextmanager
def _place() -> Iterator[Place]:
    """A store in a directory that is removed again."""
    with TemporaryDirectory(prefix="turnwal-faults-") as name, PLACES["file"](Path(name)) as place:
        yield place


class Deaf(Disk):
    """Swallows what a sync fails with."""

    def __init__(self, plan: FaultPlan) -> None:
        super().__init__(plan.disk()._system)

    def sync(self, descriptor: int, path: str) -> None:
        with suppress(StoreError):
            super().sync(descriptor, path)


class Credulous(Disk):
    """Believes that a write took everything."""

    def __init__(self, plan: FaultPlan) -> None:
        super().__init__(plan.disk()._system)

    def write(self, descriptor: int, data: bytes, path: str) -> None:
        del path
        self._system.write(descriptor, data)


def canaries(seed: int) -> dict[str, bool]:
    """Whether each planted defect was caught."""
    return {
        "a failed sync is swallowed": _caught(files(seed, 1, disk=Deaf, calls=("sync",), until="nobody was told")),
        "a short write is believed": _caught(
            files(seed, 1, disk=Credulous, calls=("write",), hows=("short",), until="")
        ),
    }


def _caught(seen: Seen) -> bool:
    return bool(seen.totals.violations)
