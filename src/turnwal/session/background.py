"""The threads that wait for barriers on behalf of an event loop.

They are apart from the loop's own pool, where a tool that runs long could keep a barrier from its turn.
"""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

BARRIER_THREADS = 8
"""Barriers of one session share syncs, so this bounds sessions that sync at once, not waiters."""

_pool: "ThreadPoolExecutor | None" = None


def barrier_pool() -> "ThreadPoolExecutor":
    """The pool of this process, made when it is first needed."""
    global _pool  # noqa: PLW0603 - one pool a process, as threads are
    if _pool is None:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - a synchronous program never pays for it

        _pool = ThreadPoolExecutor(BARRIER_THREADS, "turnwal-barrier")
    return _pool


def _forget() -> None:
    global _pool  # noqa: PLW0603 - the threads stayed in the parent
    _pool = None


os.register_at_fork(after_in_child=_forget)


def loop_is_running() -> bool:
    """Whether this thread runs an event loop now; does not import asyncio to find out."""
    events = sys.modules.get("asyncio.events")
    return events is not None and events._get_running_loop() is not None  # noqa: SLF001 - the one that does not raise
