"""The threads that wait for barriers on behalf of an event loop.

They are apart from the loop's own pool, where a tool that runs long could keep a barrier from its turn.
"""

import os
import sys
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import asyncio
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


def in_barrier_thread(work: "Callable[[], object]") -> "asyncio.Future[None]":
    """Begin work in a thread of the pool; returns what the running event loop waits for, and raises what it raised.

    Cancelling the wait leaves the work alone: nothing but the loop's own future knows of it. That, and a future less on
    each side of the way back, is why `asyncio.wrap_future` and `asyncio.shield` are not used.
    """
    import asyncio  # noqa: PLC0415 - a synchronous program never pays for it

    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if waiter.done():
            return
        if error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)

    def run() -> None:
        error = None
        try:
            work()
        except BaseException as raised:  # noqa: BLE001 - whoever waits for the future raises it
            error = raised
        try:
            loop.call_soon_threadsafe(settle, error)
        except RuntimeError:
            # the loop was closed, and whoever waited in it is gone
            return

    _barrier_pool().submit(run)
    return waiter


def _barrier_pool() -> "ThreadPoolExecutor":
    """The pool of this process, made when it is first needed."""
    global _pool  # noqa: PLW0603 - one pool a process, as threads are
    if _pool is None:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - a synchronous program never pays for it

        _pool = ThreadPoolExecutor(BARRIER_THREADS, "turnwal-barrier")
    return _pool


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
