"""Children of a warm process: forking costs milliseconds where a fresh interpreter costs a tenth of a second."""

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn


def fork(work: Callable[[], object], errors: Path) -> int:
    """Do the work in a child and return its pid; what it raises goes to a file. The parent must have no threads."""
    pid = os.fork()
    if pid == 0:
        _child(work, errors)
    return pid


def _child(work: Callable[[], object], errors: Path) -> NoReturn:
    status = 1
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        descriptor = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        work()
        status = 0
    except BaseException:  # noqa: BLE001 - the parent is told, whatever it is
        os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))
    finally:
        sys.stdout.flush()
        os._exit(status)


def end(pid: int, number: int, after_s: float) -> int:
    """Send a signal after a while and return how the child ended, as `os.waitstatus_to_exitcode` has it."""
    code = wait_for(pid, after_s)
    if code is None:
        os.kill(pid, number)
        code = wait(pid)
    return code


def wait(pid: int) -> int:
    """Return how a child ended: minus the signal's number, or its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def wait_for(pid: int, timeout_s: float) -> int | None:
    """As `wait`; None when the child is not done in time."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    return None


def without_threads() -> None:
    """Wait for the threads of what was closed: only a process that has none may fork."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(10)
    assert threading.active_count() == 1, threading.enumerate()
