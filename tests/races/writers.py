"""Many writers want one session, and take it from each other in good order."""

import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

from tests.crash import forking, marks
from tests.crash.marks import Marks
from tests.races.history import acknowledged, handovers, held, lines_behind, problems
from tests.races.places import Place
from tests.store.building import head_of
from turnwal.core.chain import Head
from turnwal.core.errors import OwnershipLost, SessionHeld
from turnwal.store.protocol import Store

WRITERS: Final = 8
WAIT_S: Final = 100.0
PAUSE_S: Final = 0.06
"""After giving the session up, so that another gets it, whose polling is slower than the one who asks again at once."""


@dataclass
class Seen:
    """What came of it."""

    acknowledged: int = 0
    claims: int = 0
    refused: int = 0
    """How often a writer that did not wait heard that another holds the session."""
    handovers: int = 0
    """How often the session went from one writer to another."""
    violations: list[str] = field(default_factory=list)


@dataclass
class Writer:
    """One of the writers: so many claims, each with so many appends of one to three lines."""

    name: str
    claims: int
    appends: int
    marks: Marks
    stubborn: bool = False
    """Defective on purpose: whoever is refused looks where the session ends, and appends there."""

    def work(self, store: Store, session: str) -> None:
        for number in range(self.claims):
            try:
                claim = store.claim(session)
            except SessionHeld:
                self.marks.write("REFUSED")
                claim = store.claim(session, wait=WAIT_S)
            since = time.monotonic_ns()
            life, count = f"{self.name}.{number}", 0
            head = end_of(store, session)
            for index in range(self.appends):
                size = 1 + index % 3
                while True:
                    lines, after = lines_behind(head, life, count, size)
                    try:
                        claim.append(lines, head)
                        break
                    except OwnershipLost:
                        if not self.stubborn:
                            raise
                        head = end_of(store, session)
                head = after
                count += size
                self.marks.write(acknowledged(life, head))
            self.marks.write(held(life, since, time.monotonic_ns()))
            claim.release()
            time.sleep(PAUSE_S)


def end_of(store: Store, session: str) -> Head:
    newest = [record.line for record in [next(store.newest(session), None)] if record is not None]
    return head_of(newest)


def run(
    place: Place, claims: int, appends: int, *, stubborn: bool = False, planted: Callable[[], Store] | None = None
) -> Seen:
    """Let them fight: processes, or threads where one process alone can see the store."""
    opened = planted or place.open
    path = place.root / "writers"
    errors = place.root / "errors"
    names = [f"w{number}" for number in range(WRITERS)]

    def work(name: str) -> None:
        with closing(opened()) as store:
            Writer(name, claims, appends, Marks(path), stubborn=stubborn).work(store, "s")

    seen = Seen()
    if place.url:
        pids = [forking.fork(lambda name=name: work(name), errors) for name in names]  # type: ignore[misc]
        for name, pid in zip(names, pids, strict=True):
            if code := forking.wait(pid):
                seen.violations.append(f"writer {name} ended with {code}")
    else:
        threads = [threading.Thread(target=work, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    marked = marks.lines(path)
    seen.refused = marked.count("REFUSED")
    told = [mark for mark in marked if mark != "REFUSED"]
    seen.claims = sum(mark.startswith("HELD") for mark in told)
    lines = place.lines("s")
    seen.acknowledged = len(lines)
    seen.handovers = handovers(lines)
    seen.violations += problems(lines, told)
    seen.violations += marks.lines(errors)[-20:]
    wanted = WRITERS * claims * sum(1 + index % 3 for index in range(appends))
    if not stubborn and len(lines) != wanted:
        seen.violations.append(f"{wanted} lines were acknowledged, {len(lines)} are there")
    return seen
