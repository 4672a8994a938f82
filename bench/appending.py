"""What one event costs: in memory, made durable on its own, asynchronously, and by eight threads at once."""

import asyncio
import os
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.rows import Row, each_us, interleaved_us
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.store.file import FileStore
from turnwal.store.memory import MemoryStore

TEXT_BYTES = 830
"""Makes a line of 1 KB."""
DATA: dict[str, Any] = {"parts": [{"type": "text", "content": "x" * TEXT_BYTES}]}


def append(session: Session) -> None:
    """One event of 1 KB."""
    session.append("user_message", DATA)


def measure(folder: Path) -> Iterator[Row]:
    """The rows of this module."""
    sessions = Sessions(FileStore(folder / "append"))
    with sessions.session("hot") as session:
        yield from _overhead(session)
    with sessions.session("durable") as session:
        yield from _durable(session, folder / "bare")
        with Sessions(FileStore(folder / "heads", heads=True)).session("kept") as keeping:
            yield _with_head(session, keeping)
    yield _threads(sessions)


def _overhead(session: Session) -> Iterator[Row]:
    def hot() -> None:
        append(session)

    best = float("inf")
    for _ in range(9):
        best = min(best, each_us(hot, 1000))
        session.flush()
    yield Row("append, hot, 1 KB", best, "the allowance", 10.0, "at most 10 µs", best <= 10)

    with Sessions(MemoryStore()).session("s") as memory:

        def cold() -> float:
            started = time.perf_counter()
            append(memory)
            spent = time.perf_counter() - started
            memory.flush()
            os.sched_yield()
            return spent

        spent = sorted(cold() for _ in range(4000))[2000] * 1e6
    yield Row("append between barriers, 1 KB", spent, "the allowance", 20.0, "at most 20 µs", spent <= 20)


def _durable(session: Session, path: Path) -> Iterator[Row]:
    bare = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    line = b"x" * 1000 + b"\n"

    def write_and_sync() -> None:
        os.write(bare, line)
        os.fdatasync(bare)

    def durable() -> None:
        append(session)
        session.flush()

    reference, measured = interleaved_us([write_and_sync, durable], 25, 150)
    holds = measured <= 1.4 * reference or measured <= reference + 40
    yield Row("one event made durable, file", measured, "write + fdatasync", reference, "1.4 × or + 40 µs", holds)
    yield asyncio.run(asynchronous(session, "one event made durable, async"))
    os.close(bare)


def _with_head(session: Session, keeping: Session) -> Row:
    """The same event where its head is kept beside the log, which is a second sync."""

    def durable() -> None:
        append(session)
        session.flush()

    def kept() -> None:
        append(keeping)
        keeping.flush()

    reference, measured = interleaved_us([durable, kept], 25, 150)
    allowed = "2.2 × or + 80 µs"
    holds = measured <= 2.2 * reference or measured <= reference + 80
    return Row("one event made durable, head kept, file", measured, "no head kept", reference, allowed, holds)


async def asynchronous(session: Session, what: str) -> Row:
    """An awaited event beside one that is waited for by its thread, plus what the way to a thread and back costs."""
    loop = asyncio.get_running_loop()
    clock = time.perf_counter
    found: list[tuple[float, float, float]] = []
    # they take turns one by one, so that none of the three finds the caches warmer than the others do
    for _ in range(2000):
        started = clock()
        append(session)
        session.flush()
        flushed = clock()
        await loop.run_in_executor(None, int)
        hopped = clock()
        append(session)
        await session.aflush()
        found.append((flushed - started, hopped - flushed, clock() - hopped))
    sync, hop, measured = (statistics.median(column) * 1e6 for column in zip(*found, strict=True))
    allowed = sync + 1.5 * hop
    cost = "the synchronous one plus 1.5 empty hops to a thread"
    return Row(what, measured, "sync + 1.5 hops", allowed, cost, measured <= allowed)


def _threads(sessions: Sessions) -> Row:
    each = 150

    def work(session: Session) -> None:
        for _ in range(each):
            append(session)
            session.flush()

    def spent(count: int, name: str) -> float:
        with sessions.session(name) as session:
            threads = [threading.Thread(target=work, args=(session,)) for _ in range(count)]
            started = time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return (time.perf_counter() - started) / (count * each) * 1e6

    alone = sorted(spent(1, f"alone-{n}") for n in range(5))[2]
    eight = sorted(spent(8, f"eight-{n}") for n in range(5))[2]
    return Row(
        "one event made durable, 8 threads", eight, "1 thread", alone, "threads share syncs: below 1 ×", eight < alone
    )
