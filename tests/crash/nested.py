"""Kill recovery at every system call that it makes, then the recovery of that, five deep.

However often it was interrupted, in the end the log holds the same events, and the same bytes but for the name of who
recovered it. Where a write of recovery itself is torn, it stays and is covered, and the repairs are the same.
"""

import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.crash import forking, marks, tracing
from tests.crash.calls import CALLS
from tests.crash.life import Life
from tests.crash.places import PLACES, Place
from tests.crash.planted import PiecemealStore, TearingDisk
from tests.crash.reading import read_log
from tests.crash.witness import NOT_STARTED, UNKNOWN, Totals, Witness
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions

SESSION: Final = "nested"
DEPTH: Final = 5


class Victim(Life):
    """An agent that dies in the middle of everything: a sub-run, a call asked about, one dispatched and one neither."""

    def pauses(self) -> tuple[float, float, int]:
        return 0.0, 0.0, 10

    def hear(self, session: Session) -> None:
        """Nobody listens."""

    def live_and_die(self, sessions: Sessions) -> None:
        session = sessions.session(self.id).open()
        self.by_halves(session)
        self.approval(session)
        step = session.open_turn("go").step().begin()
        calls = step.assistant({"parts": [self._part(f"call-{number}") for number in range(4)]})
        calls[0].run(self.tools)
        calls[1].dispatch()
        inner = calls[1].sub("helper", user="help").begin()
        for call in inner.step().begin().assistant({"parts": [self._part("inner"), self._part("later")]})[:1]:
            call.dispatch()
            self.effects.write(call.key)
        calls[2].ask({"may": "act"})
        self.ack(session)
        os.kill(os.getpid(), signal.SIGKILL)

    def _part(self, id: str) -> dict[str, Any]:
        arguments = {"before": 0.0, "behind": 0.0, "size": len(id)}
        return {"type": "tool_call", "id": id, "name": "act", "arguments": arguments}


class Nested:
    """Recoveries of one dead agent on one store."""

    def __init__(self, store: str, seed: int, *, plant: Callable[[Place], Place] | None = None) -> None:
        self.store = store
        self._plant = plant or (lambda place: place)
        self.random = random.Random(f"nested {seed} {store}")
        self.totals = Totals()
        self.counts: Counter[str] = Counter()
        """How many calls of each name a recovery makes."""
        self.depths: Counter[int] = Counter()
        """How many recoveries in a row were killed."""
        self.torn = 0
        self._rounds = 0

    def run(self, every: int) -> Totals:
        """Kill first at every so-manieth call of a recovery, then at any."""
        with TemporaryDirectory(prefix="turnwal-nested-") as name, PLACES[self.store](Path(name)) as place:
            self._die(place)
            with self._again(place) as (copy, session):
                assert self._recover(copy, session, None) == 0, marks.lines(copy.root / f"{session}.errors")
                expected = told(copy.bytes_of(session))
                self.counts = tracing.counted(self._trace(copy, session).read_text("utf-8", "replace"))
            points = [(call, number + 1) for call, most in sorted(self.counts.items()) for number in range(most)]
            for point in points[self.random.randrange(min(every, len(points))) :: every]:
                deaths = [point, *self.random.choices(points, k=DEPTH - 1)]
                self._round(place, expected, partial(self._at_calls, deaths))
            for _ in range(max(1, len(points) // every) if self.store == "file" else 0):
                self._round(place, expected, self._torn_in_writes, torn=True)
        return self.totals

    def _die(self, place: Place) -> None:
        """Leave a dead agent in a store."""
        errors = place.root / f"{SESSION}.errors"

        def live() -> None:
            Victim(place.root, SESSION, "nested").live_and_die(Sessions(place.make(), clock=lambda: 1_764_500_000_000))

        code = forking.wait(forking.fork(live, errors))
        assert code == -signal.SIGKILL, marks.lines(errors)
        place.bury()
        if place.name == "file":
            reading = read_log(place.bytes_of(SESSION))
            torn = f'{{"seq":{len(reading.events)},"prev":"{reading.hashes[-1]}","time":17645'
            with (place.root / "sessions" / f"{SESSION}.jsonl").open("ab") as log:
                log.write(torn.encode())

    @contextmanager
    def _again(self, place: Place) -> Iterator[tuple[Place, str]]:
        """The dead agent once more: what it left, and under which name."""
        self._rounds += 1
        if place.name == "postgres":
            session = f"{SESSION}{self._rounds}"
            with closing(place.make()) as store:
                store.put(session, place.bytes_of(SESSION).split(b"\n")[:-1])
            forking.without_threads()
            for kind in ("acks", "effects"):
                shutil.copyfile(place.root / f"{SESSION}.{kind}", place.root / f"{session}.{kind}")
            yield place, session
            return
        with TemporaryDirectory(prefix="turnwal-nested-") as name:
            shutil.copytree(place.root, name, dirs_exist_ok=True)
            with PLACES[place.name](Path(name)) as copy:
                yield copy, SESSION

    def _round(
        self, place: Place, expected: list[Any], interrupt: Callable[[Place, str], str], *, torn: bool = False
    ) -> None:
        with self._again(place) as (copy, session):
            read = lambda: copy.bytes_of(session)  # noqa: E731
            witness = Witness(copy.root, session, self.totals, name=f"{self.store} {self._rounds}", read=read)
            with copy.sessions() as sessions:
                witness.after_death(sessions)
            witness.name = interrupt(copy, session)
            witness.look()
            copy.bury()
            if (code := self._recover(copy, session, None)) != 0:
                witness.say(f"the last recovery ended with {code}: {marks.lines(copy.root / f'{session}.errors')}")
            with copy.sessions() as sessions:
                witness.after_recovery(sessions)
            witness.conclude()
            found = told(witness.seen)
            if torn:
                found, expected = _repairs(found), _repairs(expected)
                self.totals.cautious += _cautious(expected, found)
            if found != expected:
                witness.say(f"it is told as {found[-12:]} and uninterrupted as {expected[-12:]}")

    def _at_calls(self, deaths: list[tuple[str, int]], place: Place, session: str) -> str:
        """Kill one recovery after another at these calls, and say where."""
        killed = 0
        for death in deaths:
            place.bury()
            killed += self._recover(place, session, death) == -signal.SIGKILL
        self._count(killed)
        return f"{self.store} recovery killed at {deaths}"

    def _torn_in_writes(self, place: Place, session: str) -> str:
        """Kill recoveries inside their writes, and say at what shares of these."""
        shares = [self.random.random() for _ in range(DEPTH)]
        killed = 0
        for share in shares:
            killed += self._recover_in_fork(place, session, disk=TearingDisk(0, share)) == -signal.SIGKILL
        self._count(killed)
        self.torn += killed
        return f"{self.store} recovery torn at {shares}"

    def _count(self, killed: int) -> None:
        self.depths[killed] += 1
        self.totals.kills += killed
        self.totals.kills_in_recovery += killed

    def _recover(self, place: Place, session: str, kill_at: tuple[str, int] | None) -> int:
        work = lambda: _recover(self._plant(place), session)  # noqa: E731
        return tracing.traced(work, CALLS[self.store], place.root / f"{session}.errors", kill_at=kill_at)

    def _recover_in_fork(self, place: Place, session: str, **more: Any) -> int:
        errors = place.root / f"{session}.errors"
        return forking.wait(forking.fork(lambda: _recover(place, session, **more), errors))

    def _trace(self, place: Place, session: str) -> Path:
        return tracing.trace_of(place.root / f"{session}.errors")


def _recover(place: Place, session: str, **more: Any) -> None:
    sessions = Sessions(place.make(**more), clock=lambda: 1_764_600_000_000)
    sessions.session(session, wait=5.0).open().close()
    sessions.close()


def canary(seed: int) -> int | None:
    """Plant a store that writes a batch line by line; says at how many kills it was caught, None where it was not."""
    piecemeal = lambda place: place._replace(make=lambda: PiecemealStore(place.make()))  # noqa: E731
    totals = Nested("sqlite", seed, plant=piecemeal).run(30)
    shown = any("and uninterrupted as" in violation for violation in totals.violations)
    return totals.kills if shown else None


def told(data: bytes) -> list[Any]:
    """All that a log says but for hashes, which follow from it, and who recovered it."""
    events = []
    for event in read_log(data).events:
        del event["prev"]
        if event["type"] == "session_resume":
            del event["data"]["owner"]
        events.append(event)
    return events


def _repairs(events: list[Any]) -> list[Any]:
    """All but what is said of torn bytes: lines ahead of them count, those behind them come in a batch of their own."""
    kept = [event for event in events if event["type"] not in ("damage", "session_resume")]
    return [{name: value for name, value in event.items() if name not in ("seq", "batch")} for event in kept]


def _cautious(expected: list[Any], found: list[Any]) -> int:
    """How many calls are called unknown where they could be called not started; both are told alike from then on."""
    cautious = 0
    for one, other in zip(expected, found, strict=False):
        planned, said = (each["data"].get("metadata", {}) for each in (one, other))
        if planned.get("risk") == NOT_STARTED and said.get("risk") == UNKNOWN:
            other["data"] = one["data"]
            cautious += 1
    return cautious
