"""One agent of many: turn after turn, session after session, until it is killed or told to stop.

What it was told is durable stands in a small file that outlives it, written over each time; a successor goes on with
the session that stands there. Between two sessions it says what it has grown to.
"""

import json
import os
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import turnwal
from tests.crash.marks import Marks
from tests.crash.places import Place
from tests.soak import measures
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions

CALLS: Final = 2
WAIT_S: Final = 60.0
"""A lease has to expire first, and every other agent wants the disk too."""
_LINE: Final = 128


class Told(NamedTuple):
    """What an agent was told last."""

    session: int
    """Which of its sessions it is in."""
    before: int
    """How many events its finished sessions hold."""
    events: int
    hash: str
    """The head of this session that was said to be durable."""


class Ledger:
    """The file with what an agent was told; one write of less than a page, which a kill does not tear."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def read(self) -> Told:
        line = os.pread(self._descriptor, _LINE, 0).decode().split()
        return Told(int(line[0]), int(line[1]), int(line[2]), line[3]) if line else Told(0, 0, 0, "-")

    def write(self, told: Told) -> None:
        os.pwrite(self._descriptor, " ".join(str(each) for each in told).ljust(_LINE).encode(), 0)


class Agent:
    """One process of one agent."""

    def __init__(self, place: Place, number: int, session_events: int, *, leaks: bool = False) -> None:
        """`leaks` plants what must be caught: memory and a descriptor are kept at each session."""
        self.place = place
        self.name = f"a{number}"
        self.session_events = session_events
        self.ledger = Ledger(place.root / f"{self.name}.told")
        self.done = Marks(place.root / f"{self.name}.done")
        self.report = Marks(place.root / f"{self.name}.report")
        self.times: Counter[int] = Counter()
        self._leaks = leaks
        self._kept: list[object] = []
        self._sessions_done = 0

    def live(self) -> None:
        """Write until there is a file that says to stop."""
        with closing(Sessions(self.place.make())) as sessions:
            while not (self.place.root / "stop").exists():
                self.live_in_one(sessions, self.ledger.read())

    def live_in_one(self, sessions: Sessions, told: Told) -> None:
        """Write one session to its end, whoever began it."""
        id = session_id(self.name, told.session)
        with sessions.session(id, wait=WAIT_S) as session:
            self.tell(session, told)
            while len(session) < self.session_events:
                self.turn(session, told)
        head = session.head
        self.done.write(f"{id} {head.count} {head.hash}")
        self.ledger.write(Told(told.session + 1, told.before + head.count, 0, "-"))
        self._sessions_done += 1
        if self._leaks:
            self._kept += [bytearray(b"x" * (1 << 20)), os.open("/dev/null", os.O_RDONLY)]
        self.say()

    def turn(self, session: Session, told: Told) -> None:
        with session.turn(user="What is the state of the order?") as turn:
            with turn.step() as step:
                step.run(step.assistant(self.asking()), {"look": look})
                self.tell(session, told)
            with turn.step() as step:
                step.assistant({"parts": [{"type": "text", "content": "It is on its way. " * 10}], "stop": "end"})
            session.append("x.note", {"text": "measured " * 20})
            began = time.perf_counter()
            session.flush()
            self.times[measures.bucket_of(time.perf_counter() - began)] += 1
        self.tell(session, told)

    def tell(self, session: Session, told: Told) -> None:
        head = session.flush()
        self.ledger.write(told._replace(events=head.count, hash=head.hash))

    def asking(self) -> dict[str, Any]:
        arguments = json.dumps({"order": 7, "detail": "d" * 100})
        parts = [
            {"type": "tool_call", "id": f"call-{number}", "name": "look", "arguments": arguments}
            for number in range(CALLS)
        ]
        return {"parts": parts, "stop": "tool_use"}

    def say(self) -> None:
        """How much this process has grown to, and how long its durable events took since it last said so."""
        said = {
            "at": time.monotonic(),
            "lived": self._sessions_done,
            "resident": measures.resident(),
            "descriptors": measures.descriptors(),
            "times": list(self.times.items()),
        }
        self.times.clear()
        self.report.write(json.dumps(said))


@turnwal.tool(idempotent=True)
def look(order: int, detail: str) -> str:
    """The only tool; it is quick, so that nearly all that is measured is turnwal."""
    return f"order {order}: {detail}"


def session_id(agent: str, index: int) -> str:
    """The id of one session of an agent."""
    return f"{agent}-{index}"
