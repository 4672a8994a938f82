"""Agents on one store for as many events as are asked for, one of which is killed every now and then.

The first agent is never killed: what grows with time grows in it. When all is written every session is read, without
code of turnwal, and held against what its agent was told.
"""

import hashlib
import json
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tests.crash import forking, marks
from tests.crash.places import Place
from tests.crash.reading import GENESIS
from tests.soak.agent import Agent, Ledger, session_id

TICK_S: Final = 0.05
STOPPED_S: Final = 300.0
"""How long an agent may take to end its session once it is told to stop; most wait for one another's commits."""
WAL_MAX: Final = 64 << 20
LEASE_S: Final = 5.0
"""Longer than in other campaigns: with so many agents for so few cores, a renewal may have to wait."""


class Said(NamedTuple):
    """What an agent said of itself between two sessions."""

    at: float
    lived: int
    """How many sessions this process has written."""
    resident: int
    descriptors: int
    times: Counter[int]


@dataclass
class Seen:
    """What came of it."""

    events: int = 0
    sessions: int = 0
    kills: int = 0
    seconds: float = 0.0
    wal_max: int = 0
    lost: int = 0
    kept: list[Said] = field(default_factory=list)
    """What the agent said that was never killed."""
    killed: list[Said] = field(default_factory=list)
    """What the others said, in order."""
    violations: list[str] = field(default_factory=list)

    @property
    def all(self) -> list[Said]:
        return sorted(self.kept + self.killed)


class Soak:
    """One run on one store."""

    def __init__(
        self,
        place: Place,
        seed: int,
        *,
        agents: int,
        session_events: int,
        kill_every_s: float,
        leaks: bool = False,
    ) -> None:
        if place.name == "postgres":
            make = place.make
            place = place._replace(make=lambda: make(lease_s=LEASE_S))
        self.place = place
        self.random = random.Random(f"soak {seed} {place.name}")
        self.seen = Seen()
        self._agents = agents
        self._session_events = session_events
        self._kill_every_s = kill_every_s
        self._leaks = leaks
        self._ledgers = [Ledger(place.root / f"a{number}.told") for number in range(agents)]
        self._pids: dict[int, int] = {}
        self._heads: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        """By session what somebody was told is durable."""

    def run(self, events: int) -> Seen:
        """Write so many events and more, then read them all."""
        began = time.monotonic()
        for number in range(self._agents):
            self._start(number)
        try:
            self._until(events)
        finally:
            (self.place.root / "stop").touch()
            self._wait()
        self.seen.seconds = time.monotonic() - began
        self._read_all()
        self._hear()
        return self.seen

    def _until(self, events: int) -> None:
        next_kill = time.monotonic() + self._kill_every_s
        while self._written() < events and not self.seen.violations:
            time.sleep(TICK_S)
            self._look()
            if time.monotonic() >= next_kill:
                victim = self.random.randrange(1, self._agents)
                os.kill(self._pids[victim], signal.SIGKILL)
                self._ended(victim, forking.wait(self._pids[victim]))
                self._note(victim)
                self._start(victim)
                self.seen.kills += 1
                next_kill = time.monotonic() + self._kill_every_s

    def _start(self, number: int) -> None:
        agent = lambda: Agent(self.place, number, self._session_events, leaks=self._leaks).live()  # noqa: E731
        self._pids[number] = forking.fork(agent, self.place.root / f"a{number}.errors")

    def _ended(self, number: int, code: int) -> None:
        if code != -signal.SIGKILL:
            complaint = " | ".join(marks.lines(self.place.root / f"a{number}.errors")[-30:])
            self.seen.violations.append(f"agent {number} ended by itself with {code}: {complaint}")

    def _look(self) -> None:
        """See how long the `-wal` is, and whether the agent that nobody kills is alive."""
        wal = self.place.root / "agents.db-wal"
        if wal.exists():
            self.seen.wal_max = max(self.seen.wal_max, wal.stat().st_size)
        code = forking.wait_for(self._pids[0], TICK_S / 10)
        if code is not None:
            del self._pids[0]
            self._ended(0, code)

    def _wait(self) -> None:
        deadline = time.monotonic() + STOPPED_S
        for number, pid in self._pids.items():
            code = forking.wait_for(pid, max(1.0, deadline - time.monotonic()))
            if code is None:
                os.kill(pid, signal.SIGKILL)
                forking.wait(pid)
                self.seen.violations.append(f"agent {number} did not stop")
            elif code != 0:
                self._ended(number, code)

    def _written(self) -> int:
        return sum(told.before + told.events for told in (ledger.read() for ledger in self._ledgers))

    def _read_all(self) -> None:
        """Every session is dense and chained, and as long as its agent was told, with the same hash there."""
        for number in range(self._agents):
            for line in marks.lines(self.place.root / f"a{number}.done"):
                id, events, digest = line.split(" ")
                self._heads[id].append((int(events), digest))
            self._note(number)
        for id, heads in self._heads.items():
            self._read_one(id, heads)

    def _note(self, number: int) -> None:
        """Keep what an agent was told last; its successor writes over it."""
        told = self._ledgers[number].read()
        if told.events:
            self._heads[session_id(f"a{number}", told.session)].append((told.events, told.hash))

    def _read_one(self, id: str, heads: Sequence[tuple[int, str]]) -> None:
        hashes, problem = chain_of(self.place.bytes_of(id))
        self.seen.sessions += 1
        self.seen.events += len(hashes)
        if problem:
            self.seen.violations.append(f"{id}: {problem}")
        for events, digest in heads:
            if len(hashes) < events or hashes[events - 1] != digest:
                self.seen.lost += 1
                found = f"{len(hashes)} are there" if len(hashes) < events else "the head there is another one"
                self.seen.violations.append(f"{id}: {events} events were acknowledged, {found}")

    def _hear(self) -> None:
        for number in range(self._agents):
            said = [_said(json.loads(line)) for line in marks.lines(self.place.root / f"a{number}.report")]
            (self.seen.killed if number else self.seen.kept).extend(said)
        self.seen.killed.sort()


def chain_of(data: bytes) -> tuple[Sequence[str], str]:
    """The hashes of the lines, and what is wrong with the first that does not follow; whole lines that are covered by
    a damage event stand between others on files, and are stepped over.
    """
    hashes: list[str] = []
    loose = 0
    for line in data.split(b"\n")[:-1]:
        try:
            event: Any = json.loads(line)
        except ValueError:
            event = None
        prev = hashes[-1] if hashes else GENESIS
        if not isinstance(event, dict) or event.get("seq") != len(hashes) or event.get("prev") != prev:
            loose += 1
            continue
        if loose and event["type"] != "damage":
            return hashes, f"bytes ahead of seq {len(hashes)} are no record and not covered"
        loose = 0
        hashes.append(hashlib.sha256(line).hexdigest())
    return hashes, "bytes at the end are no record and not covered" if loose or not data.endswith(b"\n") else ""


def _said(found: dict[str, Any]) -> Said:
    times = Counter({int(bucket): int(count) for bucket, count in found["times"]})
    return Said(found["at"], found["lived"], found["resident"], found["descriptors"], times)
