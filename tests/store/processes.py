"""Other processes that own sessions: started here, ended here."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

HOLDER = """
import os, sys, time
from turnwal.store.file import FileStore

claim = FileStore(sys.argv[1]).claim(sys.argv[2], owner="the holder")
{extra}
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def holder(root: Path, session: str = "s", extra: str = "") -> Iterator["subprocess.Popen[str]"]:
    """A process that owns a session until it is killed, or its standard input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER.format(extra=extra), str(root), session],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def in_child(body: Callable[[], None]) -> int:
    """Run a body in a forked child and return its exit status: 0 where it returned."""
    child = os.fork()
    if child == 0:
        _run_and_exit(body)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run_and_exit(body: Callable[[], None]) -> NoReturn:
    status = 1
    try:
        body()
        status = 0
    except BaseException as error:  # noqa: BLE001 - the child must not go on as a second pytest
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status)
