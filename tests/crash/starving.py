"""Take an agent's memory away, so that it meets `MemoryError` at some place of the code, many times.

The kernel's limit on the address space stands in for a machine that has no more. The application hoards all that there
is but a few small pieces, goes on until the library says that there is none, gives its hoard back, and looks what the
session is good for. What is in the log is held against the marks, as after a kill; which it is where a library written
in C does not ask whether it got what it asked for.
"""

import faulthandler
import json
import os
import random
import re
import resource
import shutil
import signal
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Final

from tests.crash import forking, marks
from tests.crash.life import Life
from tests.crash.marks import Marks
from tests.crash.places import Place
from tests.crash.witness import Totals, Witness
from turnwal.core.errors import ClosedAfterFailure, SessionClosed, TurnwalError
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions

KINDS: Final = ("serial", "by_halves", "sub_run", "approval")
"""None with threads: where there is no memory to begin one in, the interpreter may wait for it for ever."""
ROOM: Final = 4 << 20
"""How much more address space than it has a process may get; the hoard takes it."""
PIECES: Final = (1 << 20, 1 << 16, 1 << 12, 2048, 512, 256, 128, 64, 48, 32)
LEFT_MAX: Final = 400
"""How many of the smallest pieces are given back at most, for the library to work with."""
TURNS_MAX: Final = 15
_ENDED_S: Final = 20.0


class Hungry(Life):
    """An agent whose memory ends."""

    def __init__(self, place: Place, session: str, seed: str) -> None:
        super().__init__(place.root, session, seed, kinds=KINDS)
        self.place = place
        self.report = Marks(place.root / f"{session}.report")
        self.hoard: list[bytes] = []
        del self.tools["look"]  # what is read-only runs in threads

    def pauses(self) -> tuple[float, float, int]:
        return 0.0, 0.0, self.random.choice([10, 100, 50_000])

    def hear(self, session: Session) -> None:
        """Subscribers live in threads of their own."""

    def act(self, before: float, behind: float, size: int, key: str) -> str:
        del before, behind
        try:
            self.effects.write(key)
        except MemoryError:
            # a tool whose effect needs memory; here it always has it
            self.hoard.clear()
            self.effects.write(key)
        return "x" * size

    def live_and_starve(self) -> None:
        """Say how it ended: `usable` or `closed`, and what was heard."""
        faulthandler.enable(all_threads=True)
        faulthandler.register(signal.SIGUSR1, all_threads=True)
        sessions = Sessions(self.place.make())
        said = {"heard": "nothing", "how": "left"}
        try:
            with sessions.session(self.id, wait=5.0) as session:
                for kind in KINDS:
                    getattr(self, kind)(session)  # what is loaded late is loaded
                self.take_all()
                said["heard"] = self.until_it_hears(session)
                self.hoard.clear()
                said["how"] = self.try_again(session)
        except (MemoryError, TurnwalError) as error:
            self.hoard.clear()
            said["heard"] = type(error).__name__
        self.report.write(json.dumps(said))
        with sessions.session(self.id, wait=5.0) as session:
            self.ack(session)
        self.report.write(json.dumps({"reopened": True}))
        sessions.close()

    def take_all(self) -> None:
        """Let the process grow no more, take what there is, and give some small pieces back."""
        status = Path("/proc/self/status").read_text("utf-8")
        found = re.search(r"VmSize:\s+(\d+) kB", status)
        assert found is not None
        limit = int(found[1]) * 1024 + ROOM
        left = self.random.randrange(LEFT_MAX)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        hoard = self.hoard
        for size in PIECES:
            try:
                while True:
                    hoard.append(bytes(size))
            except MemoryError:
                pass
        del hoard[len(hoard) - left :]

    def until_it_hears(self, session: Session) -> str:
        """Take turns until there is no memory, and say as what that was heard."""
        try:
            for _ in range(TURNS_MAX):
                self.turn(session)
        except MemoryError:
            return "MemoryError"
        except TurnwalError as error:
            return type(error).__name__
        return "nothing"

    def try_again(self, session: Session) -> str:
        """The next verbs of an application that has memory again."""
        try:
            with session.turn(user="again") as turn, turn.step() as step:
                step.assistant(self.saying())
            self.ack(session)
        except (ClosedAfterFailure, SessionClosed):
            return "closed"
        return "usable"


class Starving:
    """Starvations on one store, from one seed."""

    def __init__(self, place: Place, seed: int) -> None:
        self.place = place
        self.seed = seed
        self.random = random.Random(f"starving {seed} {place.name}")
        self.totals = Totals()
        self.heard: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()

    def run(self, times: int) -> Totals:
        """Starve so many agents."""
        for number in range(times):
            self._starve(f"m{number}")
        return self.totals

    def clear(self) -> None:
        """Remove the files."""
        shutil.rmtree(self.place.root)

    def _starve(self, session: str) -> None:
        place = self.place
        errors, report = (place.root / f"{session}.{name}" for name in ("errors", "report"))
        witness = Witness(place.root, session, self.totals, read=partial(place.bytes_of, session))
        work = lambda: Hungry(place, session, f"{self.seed} {session}").live_and_starve()  # noqa: E731
        code = forking.wait_for(pid := forking.fork(work, errors), _ENDED_S)
        if code is None:
            os.kill(pid, signal.SIGUSR1)
            forking.end(pid, signal.SIGKILL, 0.2)
        said: dict[str, str] = {}
        for line in marks.lines(report):
            said |= json.loads(line)
        self.heard[said.get("heard", "no word")] += 1
        died = code == -signal.SIGSEGV
        self.ends["died in a library that does not ask" if died else said.get("how", f"ended with {code}")] += 1
        if not died and (code != 0 or not said.get("reopened")):
            witness.say(f"it ended with {code} after {said}: " + " | ".join(marks.lines(errors)[-40:]))
        with place.sessions() as sessions:
            witness.after_death(sessions)
        place.bury()
        with place.sessions() as sessions:
            sessions.session(session, wait=5.0).open().close()
        with place.sessions() as sessions:
            witness.after_recovery(sessions)
        witness.conclude()
