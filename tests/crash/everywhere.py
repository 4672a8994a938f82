"""An interrupt at every instruction where the interpreter delivers one, one after another.

CPython looks for signals when a function begins and when a call of a C function has returned. A profile function is
called at just these instants, and an exception that it raises appears where Ctrl-C would. So every instant of a
scenario is tried in turn, which random signals would take for ever to do. Left out is the first instruction of a
block's `__exit__`, where nothing of it can run any more.
"""

import faulthandler
import json
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Final

from tests.crash import forking, marks
from tests.crash.interrupts import Interruptible, came_of_interrupt
from tests.crash.marks import Marks
from tests.crash.witness import Totals, Witness
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.store.file import FileStore

SESSION: Final = "everywhere"
SCENARIOS: Final = ("serial", "side_by_side", "by_halves", "sub_run", "approval")
_DOORS: Final = ("Owning.__exit__", "Turn.__exit__", "Step.__exit__")
_HERE: Final = str(Path(__file__).parent)
_STUCK_S: Final = 20.0
NEVER: Final = 1 << 40


class Interrupt:
    """A profile function that interrupts at one instant, and keeps where each of them was."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.passed = 0
        self.places: dict[str, list[int]] = {}
        """By place in the code: the first instants there."""
        self.where = ""

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        at_the_door = event == "call" and code.co_qualname in _DOORS
        if event not in ("call", "c_return") or code.co_filename.startswith(_HERE) or at_the_door:
            return
        what = "" if event == "call" else f" behind {getattr(arg, '__name__', arg)}"
        where = f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_qualname}{what}" if self._counts else ""
        if self._counts:
            self.places.setdefault(where, []).append(self.passed)
        self.passed += 1
        if self.passed > self.target:
            sys.setprofile(None)
            self.where = f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_qualname}{what}"
            raise KeyboardInterrupt

    @property
    def _counts(self) -> bool:
        return self.target == NEVER


class Interrupted(Interruptible):
    """A short life of one kind, the same each time."""

    def __init__(self, root: Path, kind: str, interrupt: Interrupt, *, inside: bool) -> None:
        super().__init__(root, SESSION, f"everywhere {kind}", "inside" if inside else "outside")
        self.kind = kind
        self.interrupt = interrupt
        self.said = Marks(root / "said")

    def pauses(self) -> tuple[float, float, int]:
        return 0.0, 0.0, 10

    def hear(self, session: Session) -> None:
        """Subscribers live in threads of their own; here only the writer is interrupted."""

    def count(self) -> None:
        """Pass every instant, and keep where they were."""
        self.go()
        (self.root / "places").write_text(json.dumps(self.interrupt.places), "utf-8")

    def go(self) -> None:
        """Be interrupted at the instant, then see what the session is good for."""
        faulthandler.register(signal.SIGUSR1)
        sessions = Sessions(FileStore(self.root / "sessions"))
        how = "passed"
        try:
            if self.mode == "inside":
                how = self.interrupted_inside(sessions)
            else:
                sys.setprofile(self.interrupt)
                with sessions.session(self.id) as session:
                    self.scenario(session)
                sys.setprofile(None)
        except BaseException as error:
            if not came_of_interrupt(error):
                raise
            how = "outside"
        self.said.write(f"{how} {self.interrupt.where}")
        self.open_again(sessions)

    def interrupted_inside(self, sessions: Sessions) -> str:
        how = "passed"
        with sessions.session(self.id) as session:
            try:
                sys.setprofile(self.interrupt)
                self.scenario(session)
                sys.setprofile(None)
            except BaseException as error:
                if not came_of_interrupt(error):
                    raise
                how = self.try_again(session)
        return how

    def scenario(self, session: Session) -> None:
        getattr(self, self.kind)(session)
        getattr(self, self.kind)(session)


class Everywhere:
    """Every place of every scenario, or a sample of them; at each the first instant and another one."""

    def __init__(self) -> None:
        self.totals = Totals()
        self.ends: Counter[str] = Counter()
        self.places: set[str] = set()

    def run(self, share: float, seed: int, scenarios: Iterable[str] = SCENARIOS) -> Totals:
        """Interrupt at a share of the places."""
        chosen = random.Random(f"everywhere {seed}")
        for kind in scenarios:
            for inside in (True, False):
                places = self.places_of(kind, inside=inside)
                self.places |= places.keys()
                for instants in places.values():
                    if chosen.random() < share:
                        for instant in {instants[0], chosen.choice(instants)}:
                            self.interrupt_at(kind, instant, inside=inside)
        return self.totals

    def places_of(self, kind: str, *, inside: bool) -> dict[str, list[int]]:
        """The instants of a scenario that nobody interrupts, by place."""
        with tempfile.TemporaryDirectory(prefix="turnwal-everywhere-") as name:
            root = Path(name)
            life = Interrupted(root, kind, Interrupt(NEVER), inside=inside)
            forking.wait(forking.fork(life.count, root / "errors"))
            places: dict[str, list[int]] = json.loads((root / "places").read_text("utf-8"))
            return places

    def interrupt_at(self, kind: str, target: int, *, inside: bool) -> None:
        """Interrupt one process at one instant."""
        with tempfile.TemporaryDirectory(prefix="turnwal-everywhere-") as name:
            root = Path(name)
            life = Interrupted(root, kind, Interrupt(target), inside=inside)
            pid = forking.fork(life.go, root / "errors")
            code = forking.wait_for(pid, _STUCK_S)
            if code is None:
                os.kill(pid, signal.SIGUSR1)
                code = forking.end(pid, signal.SIGKILL, 0.2)
            how, _, where = [*marks.lines(root / "said"), "stuck "][0].partition(" ")
            self.ends[how] += 1
            witness = Witness(root, SESSION, self.totals, name=f"{kind} interrupted {target=} {inside=} at {where}")
            if code != 0:
                witness.say(f"it ended with {code}: " + " | ".join(marks.lines(root / "errors")[-60:]))
            else:
                witness.after_death(Sessions(FileStore(root / "sessions")))
                witness.after_recovery(Sessions(FileStore(root / "sessions")))
