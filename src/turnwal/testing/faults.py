"""Which call of the disk fails, how, and whether it works again: a plan that a test hands to a file store.

    plan = FaultPlan("sync#2=EIO")                        # the second sync fails, once
    store = Sessions(FileStore("sessions/", disk=plan.disk()))

Promises:
- The Nth call of a kind fails as the operating system would fail it, below everything that turnwal makes of a failure:
  its loop over short writes, its hints and its error classes are on trial too.
- A plan is text and back, so that what failed can be repeated; `every_fault` names each fault that a workload can meet.
- `counts` says how many calls of each kind were made, `fired` which faults took place: a fault that no call met proves
  nothing.

Does not: reach SQLite or PostgreSQL, which make their calls themselves, nor forget what was written before a sync that
failed. Most interrupted calls (EINTR) are repeated by Python itself (PEP 475); a plan shows each of them, which is
harsher.
"""

import errno
import os
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from turnwal.store.disk import Disk, System

CALLS: Final = ("open", "write", "sync", "link", "unlink", "mkdir")
"""The kinds of calls. A sync of a directory is a sync, and needs an `open` of its own."""
SHORT: Final = "short"
"""A write takes half of what it is given, at least a byte, and says so."""
HOWS: Final = ("EIO", "ENOSPC", "EINTR", SHORT)
"""What `every_fault` tries; a fault may be any other error that the system has a name for."""

_TEXT: Final = re.compile(r"(\w+)#([1-9]\d*)=(\w+)(\+?)")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: the Nth call of a kind, counted from 1, fails in a way, once or from then on."""

    call: str
    nth: int
    how: str
    """The name of an error (`EIO`, `ENOSPC`, …), or `short`."""
    lasting: bool = False

    def __post_init__(self) -> None:
        """Raises `ValueError` for a fault that no call can have."""
        if self.call not in CALLS:
            raise ValueError(f"{self.call!r} is no call that a plan knows; they are {', '.join(CALLS)}")
        if self.nth < 1:
            raise ValueError(f"calls are counted from 1, so there is none of number {self.nth}")
        if self.how == SHORT and self.call != "write":
            raise ValueError(f"only a write can be short, not {self.call!r}")
        if self.how != SHORT and not hasattr(errno, self.how):
            raise ValueError(f"{self.how!r} is no error of this system; pass a name like EIO, or {SHORT!r}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """The fault that `str` has written: `write#3=EIO`, with a `+` behind it where it lasts. Raises `ValueError`."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is no fault; one is written write#3=EIO, or write#3=EIO+ from then on")
        return cls(match[1], int(match[2]), match[3], lasting=bool(match[4]))

    def meets(self, number: int) -> bool:
        """Whether the call of that number fails."""
        return number >= self.nth if self.lasting else number == self.nth

    def __str__(self) -> str:
        return f"{self.call}#{self.nth}={self.how}{'+' if self.lasting else ''}"


class FaultPlan:
    """Faults, and how many calls were made. One plan serves one workload, whatever its threads."""

    def __init__(self, *faults: Fault | str) -> None:
        """Plan faults, or their text; none at all to count the calls. Raises `ValueError` for text that is none."""
        self.faults: tuple[Fault, ...] = tuple(
            fault if isinstance(fault, Fault) else Fault.parse(fault) for fault in faults
        )
        self.counts: Counter[str] = Counter()
        """How many calls of each kind were made, failed ones included."""
        self.fired: list[Fault] = []
        """What took place, in order; a lasting fault once for each call that it met."""
        self._mended = False
        self._mutex = threading.Lock()

    def disk(self) -> Disk:
        """A disk to make a `FileStore` with, whose calls fail as planned."""
        return Disk(_FaultySystem(self))

    def mend(self) -> None:
        """Let every later call work; they are still counted."""
        self._mended = True

    def __str__(self) -> str:
        return " ".join(map(str, self.faults))

    def next_call(self, call: str) -> Fault | None:
        """Count a call, and return the fault that it is to have."""
        with self._mutex:
            self.counts[call] += 1
            number = self.counts[call]
            if self._mended:
                return None
            for fault in self.faults:
                if fault.call == call and fault.meets(number):
                    self.fired.append(fault)
                    return fault
            return None


def every_fault(counts: Mapping[str, int], hows: Sequence[str] = HOWS) -> Iterator[Fault]:
    """Each fault of a workload that made so many calls, once and from then on; `counts` of an empty plan has them."""
    for call in CALLS:
        for nth in range(1, counts.get(call, 0) + 1):
            for how in hows:
                if how != SHORT or call == "write":
                    yield Fault(call, nth, how)
                    yield Fault(call, nth, how, lasting=True)


class _FaultySystem(System):
    """The operating system, but for what a plan says."""

    def __init__(self, plan: FaultPlan) -> None:
        self._plan = plan

    def open(self, path: str, flags: int, mode: int = 0) -> int:
        self._pass("open", path)
        return super().open(path, flags, mode)

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        return super().write(descriptor, self._taken(data))

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> int:
        return super().write_at(descriptor, self._taken(data), offset)

    def sync(self, descriptor: int) -> None:
        self._pass("sync")
        super().sync(descriptor)

    def sync_names(self, descriptor: int) -> None:
        self._pass("sync")
        super().sync_names(descriptor)

    def link(self, path: str, name: str) -> None:
        self._pass("link", name)
        super().link(path, name)

    def unlink(self, path: str) -> None:
        self._pass("unlink", path)
        super().unlink(path)

    def make_directory(self, path: str, mode: int) -> None:
        self._pass("mkdir", path)
        super().make_directory(path, mode)

    def _pass(self, call: str, path: str | None = None) -> None:
        fault = self._plan.next_call(call)
        if fault is not None:
            raise _error(fault, path)

    def _taken(self, data: bytes | memoryview) -> bytes | memoryview:
        fault = self._plan.next_call("write")
        if fault is None:
            return data
        if fault.how == SHORT:
            return data[: max(1, len(data) // 2)]
        raise _error(fault, None)


def _error(fault: Fault, path: str | None) -> OSError:
    code: int = getattr(errno, fault.how)
    return OSError(code, os.strerror(code)) if path is None else OSError(code, os.strerror(code), path)
