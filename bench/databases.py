"""What both databases are measured by: one event beside a bare commit of one row, and many sessions at once."""

import asyncio
import statistics
import threading
import time
from collections.abc import Callable, Iterator

from bench.appending import TEXT_BYTES, append, asynchronous
from bench.rows import Row, interleaved_us
from turnwal.core.chain import EMPTY, Head, after
from turnwal.core.line import make
from turnwal.core.log import draft
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.store.protocol import Claim

SESSIONS = 64
TIMES = 25
ROUNDS = 100
LINE = b"x" * 1000
"""What the bare commit holds: as many bytes as the line of the event beside it."""


def durable(sessions: Sessions, bare: Callable[[], object], name: str) -> Iterator[Row]:
    """One event made durable, by the door alone and by a session, beside `bare`: a one-row commit by its driver."""
    claim = sessions.store.claim("claim")
    made = _lines(claim)

    def appended() -> None:
        line, head = next(made)
        claim.append([line], head)

    with sessions.session("session") as session:

        def flushed() -> None:
            append(session)
            session.flush()

        reference, door, whole = interleaved_us([bare, appended, flushed], TIMES, ROUNDS)
        claim.release()
        beside = "a bare one-row commit"
        what = f"one line made durable by the store, {name}"
        yield Row(what, door, beside, reference, "1.5 ×", door <= 1.5 * reference)
        what = f"one event made durable, {name}"
        yield Row(what, whole, beside, reference, "1.5 ×", whole <= 1.5 * reference)
        yield asyncio.run(asynchronous(session, f"one event made durable, async, {name}"))


def _lines(claim: Claim) -> Iterator[tuple[bytes, Head]]:
    """Lines of 1 KB with the heads they build on, all made ahead: only storing them is measured."""
    head = EMPTY
    line, event = make(draft("session_start", {"id": "s", "format": 1}, run="main", time=1, ignorable=False, head=head))
    claim.append([line], head)
    head = after(line, event)
    data = {"parts": [{"type": "text", "content": "x" * TEXT_BYTES}]}
    made = []
    for _ in range(TIMES * ROUNDS):
        line, event = make(draft("user_message", data, run="main", time=1, ignorable=False, head=head))
        made.append((line, head))
        head = after(line, event)
    return iter(made)


def together(sessions: Sessions, name: str) -> Row:
    """One event of many sessions that flush at once, beside one session that does it alone."""

    def spent(count: int, each: int, kind: str) -> float:
        def work(session: Session) -> None:
            for _ in range(each):
                append(session)
                session.flush()

        opened = [sessions.session(f"{kind}-{number}").open() for number in range(count)]
        threads = [threading.Thread(target=work, args=(session,)) for session in opened]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - started
        for session in opened:
            session.close()
        return took / (count * each) * 1e6

    # the one does many, so that it does not pay alone for what the others left to be checkpointed
    found = [(spent(1, 800, f"one-{n}"), spent(SESSIONS, 40, f"many-{n}")) for n in range(7)]
    alone, many = (statistics.median(column) for column in zip(*found, strict=True))
    what = f"one event made durable, {name}, {SESSIONS} sessions at once"
    return Row(what, many, "1 session", alone, "sessions share commits: below 1 ×", many < alone)
