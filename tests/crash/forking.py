"""Children of a warm process, as they are shipped; here under the name that the campaigns use."""

import threading

from turnwal.testing.forking import end, fork, wait, wait_for

__all__ = ["end", "fork", "wait", "wait_for", "without_threads"]


def without_threads() -> None:
    """Wait for the threads of what was closed: only a process that has none may fork."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(10)
    assert threading.active_count() == 1, threading.enumerate()
