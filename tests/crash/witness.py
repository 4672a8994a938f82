"""Follows one session over its lives and deaths and holds what it says against marks that its lives left outside.

Everything is judged from the bytes of its lines (`reading`), except the plan, which is what is on trial.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash import marks
from tests.crash.reading import GENESIS, Reading, read_log
from turnwal.session.sessions import Sessions

NOT_STARTED = "tool_not_started"
UNKNOWN = "tool_outcome_unknown"


@dataclass
class Totals:
    """What a campaign saw."""

    kills: int = 0
    deaths: Counter[str] = field(default_factory=Counter)
    """Which signal ended what kind of process."""
    kills_in_recovery: int = 0
    sessions: int = 0
    acknowledged: int = 0
    effects: int = 0
    torn_tails: int = 0
    recovered: Counter[str] = field(default_factory=Counter)
    """Calls that recovery answered: `declared`, `inferred`, `unknown`."""
    live: Counter[str] = field(default_factory=Counter)
    """What lives recorded themselves: `answered`, `not started`, `unknown`, `rejected`."""
    misclassified: int = 0
    cautious: int = 0
    """Calls that could be called not started and are called unknown, since bytes behind them might be corrupt: a write
    that was torn behind a closing brace, and ended by the newline of a recovery that was torn too, looks so."""
    unannounced: int = 0
    lost: int = 0
    violations: list[str] = field(default_factory=list)

    def violation(self, session: str, what: str) -> None:
        self.violations.append(f"{session}: {what}")


class Witness:
    """What is known of one session."""

    def __init__(
        self,
        root: Path,
        session: str,
        totals: Totals,
        *,
        name: str = "",
        read: Callable[[], bytes] | None = None,
    ) -> None:
        """Follow a session whose marks are in a directory; `read` returns its lines where they are in no file there."""
        self.id = session
        self.name = name or session
        self.totals = totals
        self.path = root / "sessions" / f"{session}.jsonl"
        self.acks = root / f"{session}.acks"
        self.effects = root / f"{session}.effects"
        self._read = read or self._read_file
        self.seen = b""
        self.marked: Counter[str] = Counter()
        """How many effects each key has."""
        self.verdicts: dict[str, tuple[str, str | None]] = {}
        """What was planned for each lost call when its life had just ended."""
        self.doubt = False
        self.recovered: set[str] = set()
        """The calls that recovery, not a life, answered."""

    def say(self, what: str) -> None:
        self.totals.violation(self.name, what)

    def look(self) -> Reading:
        """Read it again; what was there must still be there, byte for byte."""
        data = self._read()
        if not data.startswith(self.seen):
            self.say("bytes that were in the log are gone or changed")
        self.seen = data
        self.marked = marks.counted(self.effects)
        reading = read_log(data)
        for problem in reading.problems:
            self.say(problem)
        return reading

    def after_death(self, sessions: Sessions) -> Reading:
        """A life has ended: nothing acknowledged may be missing, no effect unannounced, and the plan must be true."""
        reading = self.look()
        self._check_acks(reading)
        self._check_effects(reading)
        if reading.events:
            inspection = sessions.inspect(self.id)
            self.doubt = inspection.gap is not None and inspection.gap.kind != "torn"
            for repair in inspection.plan.lost_calls():
                call, metadata = repair.data["call"], repair.data["metadata"]
                verdict = (metadata["risk"], metadata.get("basis"))
                self._check_same(reading, call, self.verdicts.setdefault(call, verdict), verdict)
                self._judge(reading, call, *verdict)
        return reading

    def after_recovery(self, sessions: Sessions) -> Reading:
        """It was recovered: nothing is owed, everything is as it was planned, and a second opening writes nothing."""
        reading = self.look()
        self._check_acks(reading)
        self._check_effects(reading)
        if reading.tail:
            self.say(f"{len(reading.tail)} bytes at the end are no record and not covered")
        self._check_closed(reading)
        for call, (risk, basis) in self.verdicts.items():
            told = reading.stand_in.get(call, {})
            self._check_same(reading, call, (risk, basis), (told.get("risk"), told.get("basis")))
            self.totals.recovered[basis or "unknown"] += 1
        self.recovered |= self.verdicts.keys()
        self.verdicts = {}
        with sessions.session(self.id, create=False) as session:
            if session.recovered is not None:
                self.say("opening again found something to recover")
        if self._read() != self.seen:
            self.say("opening again wrote something")
        state = sessions.glance(self.id).state
        if state not in ("clean", "waiting"):
            self.say(f"after recovery its state is {state!r}")
        return reading

    def _read_file(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""

    def conclude(self) -> None:
        """Count the session when nobody will work on it any more."""
        reading = read_log(self.seen)
        totals = self.totals
        totals.sessions += 1
        totals.acknowledged += max((count for count, _ in self._acknowledged()), default=0)
        totals.effects += self.marked.total()
        totals.torn_tails += reading.covered
        totals.live["answered"] += len(reading.real)
        totals.live["rejected"] += len(reading.rejected)
        for call, metadata in reading.stand_in.items():
            if call not in self.recovered:
                totals.live["not started" if metadata.get("risk") == NOT_STARTED else "unknown"] += 1

    def _acknowledged(self) -> list[tuple[int, str]]:
        """Counts of events that somebody was told are durable, with the hash of the last of them."""
        heads = []
        for line in marks.lines(self.acks):
            word, number, digest = line.split(" ")
            heads.append((int(number), digest))
            if word == "HEARD":
                heads.append((int(number) + 1, ""))
        return heads

    def _check_acks(self, reading: Reading) -> None:
        hashes = [GENESIS, *reading.hashes]
        missing = [head for head in self._acknowledged() if head[0] >= len(hashes)]
        changed = [
            head for head in self._acknowledged() if head[0] < len(hashes) and head[1] not in ("", hashes[head[0]])
        ]
        if missing:
            self.totals.lost += 1
            self.say(f"{max(missing)[0]} events were acknowledged, {len(reading.hashes)} are there")
        if changed:
            self.say(f"the head acknowledged at {changed[0][0]} is another one now")

    def _check_effects(self, reading: Reading) -> None:
        for key, count in self.marked.items():
            if count > reading.dispatches[key]:
                self.totals.unannounced += 1
                self.say(f"{count} effects of key {key}, {reading.dispatches[key]} dispatches")
        for call in reading.real:
            asked = reading.asked.get(call)
            if asked is None:
                self.say(f"call {call} is answered and was never asked for")
            elif not self.marked[asked.key]:
                self._misjudged(f"call {call} has a real result and left no mark")
        for call, metadata in reading.stand_in.items():
            self._judge(reading, call, metadata.get("risk"), metadata.get("basis"))

    def _judge(self, reading: Reading, call: str, risk: str | None, basis: str | None) -> None:
        """Hold a verdict against the marks and against what the log itself can know."""
        asked = reading.asked.get(call)
        if asked is None:
            self.say(f"call {call} has a verdict and was never asked for")
            return
        happened = self.marked[asked.key]
        if risk == NOT_STARTED:
            if happened:
                self._misjudged(f"call {call} is called not started and has {happened} effects")
            if call in reading.dispatched:
                self._misjudged(f"call {call} is called not started and was dispatched")
            if (basis == "declared") != asked.durable:
                self._misjudged(f"call {call} is called not started ({basis}), and its turn declares {asked.durable}")
        elif risk == UNKNOWN:
            if asked.durable and call not in reading.dispatched and not self._doubtful(reading):
                self._misjudged(f"call {call} is called unknown, and its durable turn has no dispatch of it")
        else:
            self._misjudged(f"call {call} has the class {risk!r}")

    def _check_same(
        self, reading: Reading, call: str, planned: tuple[str, str | None], told: tuple[str | None, str | None]
    ) -> None:
        """Hold a verdict against an earlier one of the same call."""
        if planned[0] == NOT_STARTED and told == (UNKNOWN, None) and self._doubtful(reading):
            self.totals.cautious += 1
        elif planned != told:
            self.say(f"call {call} was planned as {planned} and is told as {told}")

    def _doubtful(self, reading: Reading) -> bool:
        """Whether something in the log is called damage that is no torn write."""
        damage = [event["data"]["kind"] for event in reading.events if event["type"] == "damage"]
        return self.doubt or any(kind != "torn" for kind in damage)

    def _misjudged(self, what: str) -> None:
        self.totals.misclassified += 1
        self.say(what)

    def _check_closed(self, reading: Reading) -> None:
        kinds: Counter[str] = Counter(event["type"] for event in reading.events)
        for start, end in (("turn_start", "turn_end"), ("step_start", "step_end")):
            if kinds[start] != kinds[end]:
                self.say(f"{kinds[start]} {start} and {kinds[end]} {end}")
        for call in reading.asked.keys() - reading.answered:
            waits = call in reading.suspended or (call in reading.granted and call not in reading.dispatched)
            if not waits:
                self.say(f"call {call} has no result and does not wait")
