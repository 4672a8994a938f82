"""Running one input, and saying what was wrong with it: a crash, a hang, or memory.

A hang is counted in processor time of this process, so that what else the machine does decides nothing.
"""

import re
import resource
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from tests.fuzz.targets import Fuzzed

HANG_S: Final = 1.0
"""Processor time that a small input may take."""
MEMORY_MAX: Final = 256 * 1024 * 1024
"""By how much one input may raise what the process has held at most."""
_KIB: Final = 1024
_CLEAR: Final = Path("/proc/self/clear_refs")
_STATUS: Final = Path("/proc/self/status")


class Hang(BaseException):
    """The input took longer than it may. No `Exception`, since readers may catch those."""


@dataclass(frozen=True, slots=True)
class Violation:
    """What one input did."""

    kind: str
    """The class of the exception, `Hang` or `Memory`."""
    where: str
    """The innermost place of turnwal, by which equal ones are known."""
    told: str

    @property
    def same(self) -> tuple[str, str]:
        return self.kind, self.where


def watched(fuzzed: Fuzzed, data: bytes, *, hang_s: float = HANG_S) -> Violation | None:
    """What was wrong with one input, or None."""
    _forget_peak()
    before = _held_at_most()
    try:
        with _limited(hang_s):
            fuzzed(data)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        return Violation(type(error).__name__, _place(error), "".join(traceback.format_exception(error, limit=-8)))
    grown = _held_at_most() - before
    return Violation("Memory", "", f"{grown:,} bytes") if grown > MEMORY_MAX else None


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> NoReturn:
        raise Hang(f"more than {seconds:g} s of the processor")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _forget_peak() -> None:
    """Let what the process has held at most be what it holds now, where the system can."""
    with suppress(OSError):
        _CLEAR.write_text("5")


def _held_at_most() -> int:
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())
        if found is not None:
            return int(found[1]) * _KIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/turnwal/" in frame.filename] or list(frames)
    return f"{ours[-1].filename.rpartition('/src/')[2]}:{ours[-1].name}" if ours else ""
