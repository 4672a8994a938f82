"""Kill an agent around one call at each of the four instants that decide what becomes of it.

Ahead of its dispatch it did not start, by declaration; behind that, and behind its effect, it may have run; behind its
result it has that result. Here the class is known beforehand, whatever else the agent was doing at the time.
"""

import asyncio
import json
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import turnwal
from tests.crash import forking, marks
from tests.crash.life import Life
from tests.crash.places import Place
from tests.crash.planted import Around, WrappedClaim
from tests.crash.witness import NOT_STARTED, UNKNOWN, Totals, Witness
from turnwal.core.chain import Head
from turnwal.session.call import Call
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.session.step import Step
from turnwal.store.protocol import Claim, Store

VICTIM: Final = "victim"
EXPECTED: Final = {
    "before the dispatch": (NOT_STARTED, "declared"),
    "behind the dispatch": (UNKNOWN, None),
    "behind the effect": (UNKNOWN, None),
    "behind the result": None,
}
"""The class and the basis by the instant of death; None where the tool's own result stands."""
WAYS: Final = ("one_by_one", "together", "async_together", "by_halves_of_ours", "in_a_sub_run")
ROUNDS_OF_A_SESSION: Final = 8
_ENDED_S: Final = 20.0


class DeadlyClaim(WrappedClaim):
    """Kills the process before or behind the batch that holds the victim's dispatch or result."""

    def __init__(self, claim: Claim, instant: str) -> None:
        super().__init__(claim)
        self._when, _, what = instant.partition(" the ")
        self._type = {"dispatch": "tool_call", "result": "tool_result"}.get(what)

    def append(self, lines: Sequence[bytes], after: Head) -> None:
        events = [json.loads(line) for line in lines]
        hit = any(event["type"] == self._type and event["data"]["id"] == VICTIM for event in events)
        if hit and self._when == "before":
            die()
        super().append(lines, after)
        if hit:
            die()


class DeadlyStore(Around):
    """A store that kills whoever writes of the victim."""

    def __init__(self, store: Store, instant: str) -> None:
        super().__init__(store)
        self._instant = instant

    def wrap(self, claim: Claim) -> Claim:
        return DeadlyClaim(claim, self._instant)


class Doomed(Life):
    """An agent with one call among others at which it dies."""

    def __init__(self, place: Place, session: str, seed: str, instant: str, *, hasty: bool = False) -> None:
        super().__init__(place.root, session, seed)
        self.place = place
        self.instant = instant
        self.way = "hastily" if hasty else self.random.choice(WAYS)
        self.tools = {"act": turnwal.tool(keyed=True)(partial(self.touch))}

    def touch(self, victim: bool, key: str) -> str:
        self.effects.write(key)
        if victim and self.instant == "behind the effect":
            die()
        return "done"

    def go(self) -> None:
        sessions = Sessions(DeadlyStore(self.place.make(), self.instant))
        with sessions.session(self.id, wait=5.0) as session:
            self.ack(session)
            getattr(self, self.way)(session)
        raise AssertionError(f"it outlived {self.instant} {self.way}")

    def ask(self, session: Session, step: Step) -> list[Call]:
        """One to four calls, one of which is the victim; that they are asked for is durable."""
        most = self.random.randrange(1, 5)
        chosen = self.random.randrange(most)
        parts = [
            {
                "type": "tool_call",
                "id": VICTIM if number == chosen else f"call-{number}",
                "name": "act",
                "arguments": json.dumps({"victim": number == chosen}),
            }
            for number in range(most)
        ]
        calls = step.assistant({"parts": parts})
        self.ack(session)
        return calls

    def one_by_one(self, session: Session, *, parallel: bool = False) -> None:
        with session.turn(user=self.text()) as turn, turn.step() as step:
            step.run(self.ask(session, step), self.tools, parallel=parallel)

    def together(self, session: Session) -> None:
        self.one_by_one(session, parallel=True)

    def async_together(self, session: Session) -> None:
        async def run() -> None:
            async with session.turn(user=self.text()) as turn, turn.step() as step:
                await step.arun(self.ask(session, step), self.tools, parallel=self.random.choice([None, True]))

        asyncio.run(run())

    def by_halves_of_ours(self, session: Session) -> None:
        with session.turn(user=self.text()) as turn, turn.step() as step:
            for call in self.ask(session, step):
                call.dispatch()
                call.result(self.touch(call.id == VICTIM, call.key))

    def in_a_sub_run(self, session: Session) -> None:
        outer = {"parts": [{"type": "tool_call", "id": "outer", "name": "act", "arguments": "{}"}]}
        with session.turn(user=self.text()) as turn, turn.step() as step:
            (call,) = step.assistant(outer)
            call.dispatch()
            with call.sub("helper", user="help") as inner, inner.step() as inner_step:
                inner_step.run(self.ask(session, inner_step), self.tools)

    def hastily(self, session: Session) -> None:
        """Defective on purpose: the bodies run before the barrier behind their dispatches."""
        with session.turn(user=self.text()) as turn, turn.step() as step:
            for call in self.ask(session, step):
                call.note_dispatch()
                call.result(self.touch(call.id == VICTIM, call.key))


class Classes:
    """Rounds on one store; each instant in turn."""

    def __init__(self, place: Place, seed: int, *, hasty: bool = False) -> None:
        self.place = place
        self.seed = seed
        self.totals = Totals()
        self.deaths: Counter[str] = Counter()
        self.told: Counter[str] = Counter()
        """What became of the victims."""
        self._hasty = hasty
        self._random = random.Random(f"classes {seed} {place.name}")
        self._witness: Witness | None = None

    def run(self, times: int, *, until: str | None = None) -> Totals:
        """Die so many times at each instant."""
        for number in range(times):
            for instant in EXPECTED:
                self.die_at(instant, f"{self.seed} {number}")
                if until is not None and any(until in violation for violation in self.totals.violations):
                    return self.totals
        if self._witness is not None:
            self._witness.conclude()
        return self.totals

    def clear(self) -> None:
        """Remove the files."""
        shutil.rmtree(self.place.root)

    def die_at(self, instant: str, seed: str) -> None:
        """One death, and what the log says of its victim."""
        place, witness = self.place, self._next()
        before = len(witness.seen)
        errors = place.root / f"{witness.id}.errors"
        doomed = lambda: Doomed(place, witness.id, f"{seed} {instant}", instant, hasty=self._hasty).go()  # noqa: E731
        code = forking.end(forking.fork(doomed, errors), signal.SIGKILL, _ENDED_S)
        self.deaths[instant] += 1
        self.totals.kills += 1
        if marks.lines(errors):
            witness.say(f"{instant}: it ended with {code}: " + " | ".join(marks.lines(errors)[-20:]))
        with place.sessions() as sessions:
            witness.after_death(sessions)
        place.bury()
        with place.sessions() as sessions:
            sessions.session(witness.id, wait=5.0).open().close()
        with place.sessions() as sessions:
            witness.after_recovery(sessions)
        self._judge(instant, witness, witness.seen[before:])

    def _judge(self, instant: str, witness: Witness, data: bytes) -> None:
        """Hold what is told of the victim against what its death makes of it."""
        events = [json.loads(line) for line in data.split(b"\n")[:-1]]
        results = [each["data"] for each in events if each["type"] == "tool_result" and each["data"]["id"] == VICTIM]
        metadata = results[0].get("metadata", {}) if results else {}
        found = (metadata["risk"], metadata.get("basis")) if metadata.get("synthetic") else None
        self.told[f"{instant}: {found[0] if found else 'its result'}"] += 1
        if len(results) != 1 or found != EXPECTED[instant]:
            self.totals.misclassified += 1
            witness.say(f"killed {instant} it has {len(results)} results and is told as {found}")

    def _next(self) -> Witness:
        witness = self._witness
        if witness is None or self.totals.kills % ROUNDS_OF_A_SESSION == 0:
            if witness is not None:
                witness.conclude()
            session = f"c{self.totals.sessions}"
            read: Callable[[], bytes] = partial(self.place.bytes_of, session)
            witness = self._witness = Witness(self.place.root, session, self.totals, read=read)
        return witness


def die() -> None:
    """End this process as the kernel would."""
    os.kill(os.getpid(), signal.SIGKILL)
