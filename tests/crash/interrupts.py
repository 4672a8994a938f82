"""Ctrl-C at random instants: a real SIGINT to a process whose main thread writes a session.

SIGTERM and SIGHUP, which kill unless the application hears them (`kills`), come here to one that does: with a handler
that raises `SystemExit`, or cancels what asyncio runs, as is the custom.

Afterwards the session is usable or closed, never stuck: the next verb works, or raises that the session is closed. In
the same process the session opens again, and what it says is held against the marks, as after a kill.
"""

import asyncio
import faulthandler
import json
import os
import random
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

from tests.crash import forking, marks
from tests.crash.life import Life
from tests.crash.marks import Marks
from tests.crash.witness import Totals, Witness
from turnwal.core.errors import ClosedAfterFailure, SessionClosed, SessionHeld
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.store.file import FileStore

WITHIN_S: Final = 0.05
OTHERS: Final = (signal.SIGTERM, signal.SIGHUP)
OTHER_SHARE: Final = 0.4
STUCK_S: Final = 20.0
SYNC_KINDS: Final = ("serial", "side_by_side", "side_by_side", "by_halves", "sub_run", "approval")
ASYNC_KINDS: Final = ("asynchronous", "gathered")
AGAIN_SHARE: Final = 0.5
AGAIN_WITHIN_S: Final = 0.003
"""Who presses Ctrl-C presses it twice; the second comes while the first is being dealt with. Not to asyncio: it raises
the second wherever its loop stands, and may lose a task's wake-up there."""
HELD: Final = "held until the process ends"
LEFT_BEHIND: Final = ("in __exit__\n    def __exit__(", "in create_task\n")
"""Where an interrupt leaves the session held by its process, and another process recovers it as after a kill: at the
first instruction of a block's end, when nothing of it can run any more; and where asyncio makes a task, which it then
runs but does not know of, so that nobody can cancel it."""
SWALLOWED_S: Final = 2.0
"""A signal that Python handles in a weak reference's callback is printed and forgotten; a person presses again."""
SIGNALS_MAX: Final = 2
MODES: Final = ("inside", "outside", "async_inside", "async_outside")
"""Where the application catches it: inside the session's block, or around it."""
SETTLE_S: Final = 0.01
"""A body in a thread may still be in its effect when the session is closed; its mark comes within this time."""


@dataclass
class Interrupted:
    """What a campaign of interrupts saw."""

    interrupted: int = 0
    """Processes that were in the middle of something when their first signal came, and say so."""
    interrupts: int = 0
    """Signals that were sent, second ones included."""
    signals: Counter[str] = field(default_factory=Counter)
    """How many processes got which."""
    ends: Counter[str] = field(default_factory=Counter)
    """`usable`, `closed`, or `outside` where the block was left."""
    stuck: int = 0
    totals: Totals = field(default_factory=Totals)


class Interruptible(Life):
    """A life that is interrupted once, and then looks at what it has."""

    def __init__(self, root: Path, session: str, seed: str, mode: str, *, number: int = signal.SIGINT) -> None:
        kinds = ASYNC_KINDS if mode.startswith("async") else SYNC_KINDS
        super().__init__(root, session, seed, kinds=kinds)
        self.mode = mode
        self.number = number
        self.task: asyncio.Task[Any] | None = None
        self.how = ""
        self.story = ""
        self.reopened = False
        self.heard = False
        self.report = Marks(root / f"{session}.report")

    def be_interrupted(self, store: FileStore) -> None:
        """Live until Ctrl-C comes, then say how it went."""
        signal.signal(self.number, signal.default_int_handler if self.number == signal.SIGINT else self.leave)
        faulthandler.register(signal.SIGUSR1)
        self.report.write(json.dumps({"ready": True}))
        sessions = Sessions(store)
        for _ in range(SIGNALS_MAX + 1):
            try:
                self.go_on(sessions)
                said = {"how": self.how or "outside", "reopened": self.reopened, "heard": self.heard}
                self.report.write(json.dumps(said))
            except (KeyboardInterrupt, SystemExit):
                self.heard = True
                continue
            else:
                return

    @property
    def signalled(self) -> bool:
        """Whether an interrupt is on its way or was here. A handler of our own would end asyncio's better one."""
        return (self.root / f"{self.id}.signalled").exists()

    def go_on(self, sessions: Sessions) -> None:
        """Live until an interrupt has come, then open the session again. Another interrupt may come at any time."""
        while not self.signalled:
            try:
                self.live_until_interrupted(sessions)
            except BaseException as error:
                if not came_of_interrupt(error):
                    raise
                self.heard = True
                self.left_block()
                self.story = traceback.format_exc()
        while not self.reopened:
            try:
                self.open_again(sessions)
            except (KeyboardInterrupt, SystemExit):
                self.heard = True
                self.story += traceback.format_exc()
            except SessionHeld as error:
                if not any(place in self.story for place in LEFT_BEHIND):
                    raise AssertionError(f"it does not open again after {self.story}") from error
                self.how, self.reopened = HELD, True

    def left_block(self) -> None:
        """An interrupt came out of the session's block; what was found inside counts before it."""
        self.how = self.how or "outside"

    def live_until_interrupted(self, sessions: Sessions) -> None:
        if self.mode.endswith("inside"):
            self.inside(sessions)
        else:
            self.outside(sessions)

    def inside(self, sessions: Sessions) -> None:
        """Catch it while the session is open, and go on."""
        with sessions.session(self.id, wait=5.0) as session:
            try:
                while self.goes_on:
                    self.turn(session)
            except BaseException as error:
                if not came_of_interrupt(error):
                    raise
                self.heard = True
                self.how = self.try_again(session)

    def outside(self, sessions: Sessions) -> None:
        """Let it leave the block."""
        if self.mode == "async_outside":
            asyncio.run(self.alive(sessions))
        with sessions.session(self.id, wait=5.0) as session:
            while self.goes_on:
                self.turn(session)

    async def alive(self, sessions: Sessions) -> None:
        self.task = asyncio.current_task()
        async with sessions.session(self.id, wait=5.0) as session:
            while self.goes_on:
                await self.aconverse(session, gathered=self.random.random() < 0.5)

    async def aconverse(self, session: Session, *, gathered: bool) -> None:
        self.task = asyncio.current_task()
        await super().aconverse(session, gathered=gathered)

    def leave(self, number: int, frame: FrameType | None) -> None:
        """What an application does that is told to end: it unwinds."""
        del frame
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise SystemExit(128 + number) from None
        if self.task is not None:
            loop.call_soon_threadsafe(self.task.cancel)

    @property
    def goes_on(self) -> bool:
        """A loop that is at its end hears of nothing any more, and what comes then is seen between two turns."""
        return self.number == signal.SIGINT or not self.signalled

    def try_again(self, session: Session) -> str:
        """The next verbs of an application that goes on after Ctrl-C."""
        try:
            with session.turn(user="again") as turn, turn.step() as step:
                step.assistant(self.saying())
            self.ack(session)
        except (ClosedAfterFailure, SessionClosed):
            return "closed"
        return "usable"

    def open_again(self, sessions: Sessions) -> None:
        # an opening that was cancelled is undone behind its caller's back
        with sessions.session(self.id, wait=5.0) as session:
            self.ack(session)
        self.reopened = True


class Interrupts:
    """One run from one seed; only the instants are not its own."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(f"interrupts {seed}")
        self.seen = Interrupted()
        self.root = Path(tempfile.mkdtemp(prefix="turnwal-interrupts-"))

    def run(self, interrupts: int) -> Interrupted:
        for number in range(interrupts):
            self.interrupt_once(f"i{number}", MODES[number % len(MODES)])
        return self.seen

    def interrupt_once(self, session: str, mode: str) -> None:
        """One process, one SIGINT, one look at what is left."""
        store = FileStore(self.root / "sessions")
        witness = Witness(self.root, session, self.seen.totals)
        errors = self.root / f"{session}.errors"
        report = self.root / f"{session}.report"
        number = self.random.choice(OTHERS) if self.random.random() < OTHER_SHARE else signal.SIGINT
        self.seen.signals[signal.Signals(number).name] += 1
        life = Interruptible(self.root, session, f"{self.seed} {session}", mode, number=number)
        pid = forking.fork(lambda: life.be_interrupted(store), errors)
        _until(lambda: bool(marks.lines(report)))
        code = forking.wait_for(pid, self.random.uniform(0, WITHIN_S))
        if code is None:
            (self.root / f"{session}.signalled").touch()
            os.kill(pid, number)
            self.seen.interrupts += 1
            if not mode.startswith("async") and self.random.random() < AGAIN_SHARE:
                code = forking.wait_for(pid, self.random.uniform(0, AGAIN_WITHIN_S))
                if code is None:
                    os.kill(pid, number)
                    self.seen.interrupts += 1
            code = forking.wait_for(pid, SWALLOWED_S) if code is None else code
            if code is None and any("Exception ignored" in line for line in marks.lines(errors)):
                os.kill(pid, number)
                self.seen.interrupts += 1
            code = forking.wait_for(pid, STUCK_S) if code is None else code
        if code is None:
            self.seen.stuck += 1
            os.kill(pid, signal.SIGUSR1)
            time.sleep(0.2)
            code = forking.end(pid, signal.SIGKILL, 0)
        said: dict[str, Any] = {}
        for line in marks.lines(report):
            said |= json.loads(line)
        self.seen.ends[f"{mode}: {said.get('how', 'stuck')}"] += 1
        self.seen.interrupted += said.get("heard") is True
        if code != 0 or not said.get("reopened"):
            witness.say(f"{mode}: it ended with {code} after {said}: " + " | ".join(marks.lines(errors)[-60:]))
        witness.after_death(Sessions(store))
        if said.get("how") == HELD:
            Sessions(store).session(session).open().close()
        witness.after_recovery(Sessions(store))
        witness.conclude()

    def clear(self) -> None:
        """Remove the files."""
        shutil.rmtree(self.root)


def came_of_interrupt(error: BaseException | None) -> bool:
    """Whether an interrupt is behind it: `threading` may turn one into 'release unlocked lock'."""
    while error is not None and not isinstance(error, (KeyboardInterrupt, SystemExit, asyncio.CancelledError)):
        error = error.__context__ if isinstance(error, RuntimeError) else None
    return error is not None


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + STUCK_S
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("a child did not begin")
        time.sleep(0.001)
