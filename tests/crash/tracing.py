"""A fork whose system calls are traced, and which can be killed at any one of them.

`strace` is attached when the fork stands ready and has done nothing yet, so only the calls of its work count, and no
time is lost on the start of an interpreter. A call that a process is killed at has not been made.
"""

import ctypes
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.crash import forking

_SET_PTRACER: Final = 0x59616D61
_ANY: Final = ctypes.c_ulong(-1)
_ENTERED: Final = re.compile(r"^(\d+) +(\w+)\(", re.MULTILINE)


def traced(work: Callable[[], object], calls: Sequence[str], errors: Path, *, kill_at: tuple[str, int] | None) -> int:
    """How a fork ended that did the work; with `kill_at`, one that is killed at a thread's nth call of that name.

    What it called stands in `trace_of(errors)` afterwards. Raises `AssertionError` where there is no strace, or it may
    not trace.
    """
    program = shutil.which("strace")
    assert program is not None, "this campaign needs strace, and there is none"
    waiting, ready = os.pipe()

    def begin() -> None:
        os.close(ready)
        # where a kernel lets nobody trace but a parent, strace, which is a brother, needs leave
        ctypes.CDLL(None).prctl(_SET_PTRACER, _ANY, 0, 0, 0)
        os.read(waiting, 1)
        work()

    pid = forking.fork(begin, errors)
    os.close(waiting)
    known = "trace=" + ",".join(f"?{call}" for call in calls)
    inject = [] if kill_at is None else ["-e", f"inject={kill_at[0]}:signal=KILL:when={kill_at[1]}"]
    command = [program, "-f", "-p", str(pid), "-o", str(trace_of(errors)), "-e", known, "-e", "signal=none", *inject]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None
        said = tracer.stderr.readline()
        os.close(ready)
        code = forking.wait(pid)
    assert said.endswith("attached\n"), f"strace cannot trace: {said}"
    return code


def trace_of(errors: Path) -> Path:
    """Where the calls of a fork are noted."""
    return errors.with_suffix(".trace")


def counted(trace: str) -> Counter[str]:
    """The most calls of each name that one thread made."""
    by_thread = Counter((thread, call) for thread, call in _ENTERED.findall(trace))
    most: Counter[str] = Counter()
    for (_, call), count in by_thread.items():
        most[call] = max(most[call], count)
    return most
