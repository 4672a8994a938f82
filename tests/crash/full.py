"""A disk that fills up in the middle of a turn, at every length of the log in turn (F38).

The kernel's limit on the size of a file stands in for the disk: a write over it is cut short and then refused. The
caller hears of it, nothing more is dispatched, and when there is room again the session recovers, the partial bytes
covered by a damage event. Recovery on the full disk fails cleanly and can be done again.
"""

import json
import os
import resource
import signal
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.crash import forking, marks
from tests.crash.life import Life
from tests.crash.marks import Marks
from tests.crash.witness import Totals, Witness
from turnwal.core.errors import ClosedAfterFailure, StoreFull, TurnwalError
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.store.file import FileStore

SESSION: Final = "full"
KINDS: Final = ("serial", "side_by_side", "asynchronous", "by_halves", "sub_run")
ROOM: Final = 40
"""Bytes that recovery finds on the full disk: too few for a line."""
MARKS_BYTES: Final = 4_000
"""The marks are files too, and have to stay below the limit."""


@dataclass
class Filled:
    """What a campaign of full disks saw."""

    disks: int = 0
    heard: Counter[str] = field(default_factory=Counter)
    totals: Totals = field(default_factory=Totals)


class Starved(Life):
    """A life with no room behind some length of its log."""

    def __init__(self, root: Path, kind: str) -> None:
        super().__init__(root, SESSION, f"full {kind}", kinds=(kind,))
        self.report = Marks(root / "report")
        self.failed = False

    def pauses(self) -> tuple[float, float, int]:
        return 0.0, 0.0, 100

    def hear(self, session: Session) -> None:
        """Nobody listens here."""

    def act(self, before: float, behind: float, size: int, key: str) -> str:
        if self.failed:
            self.report.write(json.dumps({"late": key}))
        return super().act(before, behind, size, key)

    def fill(self, length: int) -> None:
        """Write until the disk is full; say what was heard, and what a second try says."""
        sessions = Sessions(FileStore(self.root / "sessions"))
        session = sessions.session(SESSION).open()
        limit_files_to(length)
        try:
            for _ in range(3):
                self.turn(session)
        except TurnwalError as error:
            self.failed = True
            # a call side by side may hear first that the session was closed by the failure of another
            cause = error.__cause__ if isinstance(error, ClosedAfterFailure) else error
            if not isinstance(cause, StoreFull):
                raise
            self.report.write(json.dumps({"heard": cause.code}))
            self.try_again(session)
        else:
            self.report.write(json.dumps({"heard": "nothing"}))
        session.close()

    def try_again(self, session: Session) -> None:
        try:
            self.turn(session)
        except ClosedAfterFailure as error:
            self.report.write(json.dumps({"again": error.code}))


class Filling:
    """Every length of the log, in strides."""

    def __init__(self) -> None:
        self.seen = Filled()

    def run(self, stride: int, first: int = MARKS_BYTES) -> Filled:
        """Fill the disk at lengths so far apart, with each kind of turn."""
        for kind in KINDS:
            length, full = first, True
            while full:
                full = self.fill_at(kind, length)
                length += stride
        return self.seen

    def fill_at(self, kind: str, length: int) -> bool:
        """Fill one disk; says whether it was full before the work was done."""
        with tempfile.TemporaryDirectory(prefix="turnwal-full-") as name:
            root = Path(name)
            witness = Witness(root, SESSION, self.seen.totals, name=f"{kind} full at {length}")
            life = Starved(root, kind)
            code = forking.wait_for(forking.fork(lambda: life.fill(length), root / "errors"), 20)
            said: dict[str, str] = {}
            for line in marks.lines(root / "report"):
                said |= json.loads(line)
            self.seen.disks += 1
            self.seen.heard[said.get("heard", "no word")] += 1
            if code != 0 or "late" in said or (said.get("heard") == "store_full") != ("again" in said):
                witness.say(f"it ended with {code} after {said}: {marks.lines(root / 'errors')[-20:]}")
            sessions = Sessions(FileStore(root / "sessions"))
            witness.after_death(sessions)
            self._recover_without_room(witness, root)
            sessions.session(SESSION).open().close()
            witness.after_recovery(sessions)
            witness.conclude()
            return said.get("heard") != "nothing"

    def _recover_without_room(self, witness: Witness, root: Path) -> None:
        """Recovery on the full disk fails and says why; what is there stays."""
        size = witness.path.stat().st_size
        interrupted = Sessions(FileStore(root / "sessions")).glance(SESSION).state == "interrupted"

        def recover() -> None:
            limit_files_to(size + ROOM)
            try:
                Sessions(FileStore(root / "sessions")).session(SESSION).open().close()
            except StoreFull:
                os._exit(3)

        code = forking.wait(forking.fork(recover, root / "errors"))
        if code != (3 if interrupted else 0):
            witness.say(f"recovery without room ended with {code}: {marks.lines(root / 'errors')[-20:]}")
        witness.look()


def limit_files_to(size: int) -> None:
    """Let no file of this process grow beyond a size; a write over it fails instead of ending the process."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
