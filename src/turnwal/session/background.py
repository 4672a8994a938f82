"""The threads that wait for barriers on behalf of an event loop.

They are apart from the loop's own pool, where a tool that runs long could keep a barrier from its turn.
"""

import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")

BARRIER_THREADS = 64
"""Barriers of one session share syncs, so this bounds the sessions that sync at once. Those of a database share a
commit if they wait for it together: with 8 threads, 64 sessions in PostgreSQL took up to 2.5 times as long an event.
A thread is made when a barrier finds none idle."""

_pool: "ThreadPoolExecutor | None" = None


def in_thread(work: "Callable[[], T]") -> "Future[T]":
    """Do work that may wait for long, for another owner say, in a thread of its own: no barrier waits behind it."""
    from concurrent.futures import Future  # noqa: PLC0415 - a synchronous program never pays for it

    future: Future[T] = Future()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - whoever waits for the future raises it
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name="turnwal-open", daemon=True).start()
    return future


def barrier_pool() -> "ThreadPoolExecutor":
    """The pool of this process, made when it is first needed."""
    global _pool  # noqa: PLW0603 - one pool a process, as threads are
    if _pool is None:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - a synchronous program never pays for it

        _pool = ThreadPoolExecutor(BARRIER_THREADS, "turnwal-barrier")
    return _pool


async def wait_in_pool(work: "Callable[[], object]") -> None:
    """Return when work was done in the pool, or raise what it raised. Cancelling the wait does not cancel the work.

    The outcome goes straight to the loop: chained futures under a shield took half a hop to a thread more.
    """
    import asyncio  # noqa: PLC0415 - a synchronous program never pays for it

    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if done.done():
            return  # whoever waited was cancelled
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            work()
        except BaseException as raised:  # noqa: BLE001 - whoever waits raises it
            error = raised
        # a loop that was closed meanwhile has nobody who waits
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, error)

    barrier_pool().submit(run)
    await done


_forks = 0


def forks() -> int:
    """How often this process and its parents were forked since they imported this: tells a child from its parent."""
    return _forks


def _forget() -> None:
    global _pool, _forks  # noqa: PLW0603 - the threads stayed in the parent
    _pool = None
    _forks += 1


os.register_at_fork(after_in_child=_forget)


def loop_is_running() -> bool:
    """Whether this thread runs an event loop now; does not import asyncio to find out."""
    events = sys.modules.get("asyncio.events")
    return events is not None and events._get_running_loop() is not None  # noqa: SLF001 - the one that does not raise
