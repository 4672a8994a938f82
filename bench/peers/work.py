"""The work that every peer does, and how it is timed. Runs in each peer's own environment, so it needs Python alone.

Promises: each peer stores the same messages of 1 KB, appended one at a time, and is timed between the call and its
return. Bytes on disk are those that the file system has allocated.

Does not: know whether what returned is durable. The driver counts the syncs.
"""

import asyncio
import os
import signal
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

MESSAGE_BYTES: Final = 1000
SIZES: Final = (10, 1_000, 10_000)
"""Messages that stand in a session before the ones that are timed."""
TIMES: Final = 30
"""Appends that are timed at each size."""
LOADS: Final = 3
SIBLING_S: Final = 0.4
"""How long the tool that dies lets the ones beside it finish."""

TOOLS: Final = ("look", "charge", "mail")
"""What the agent is asked to do side by side; it is killed inside the second."""
DONE: Final = "Done."


class Peer(ABC):
    """One way to keep a session."""

    name: str
    durability: str = "default"
    package: str = ""
    """Whose version is told beside the figures."""
    sizes: tuple[int, ...] = SIZES

    @abstractmethod
    def fill(self, folder: Path, count: int) -> None:
        """Have a session of so many messages there."""

    @abstractmethod
    def append(self, folder: Path, times: int) -> list[float]:
        """Append to the session that was filled, one message at a time; the seconds that each took."""

    @abstractmethod
    def load(self, folder: Path) -> int:
        """Load what is needed to resume; how many messages came."""

    def play(self, folder: Path) -> None:
        """Run an agent that asks for the three tools at once and is killed inside the second."""
        raise NotImplementedError

    def resume(self, folder: Path) -> str:
        """Go on as the documentation says; in words, what the model or the caller is told of the calls."""
        raise NotImplementedError


def text(number: int) -> str:
    """A message of 1 KB, unlike the others."""
    return f"{number} ".ljust(MESSAGE_BYTES, "x")


def spent(call: Callable[[int], object], times: int) -> list[float]:
    """Seconds of each call."""
    found = []
    for number in range(times):
        began = time.perf_counter()
        call(number)
        found.append(time.perf_counter() - began)
    return found


def spent_async(call: Callable[[int], Awaitable[object]], times: int) -> list[float]:
    """Seconds of each call, all in one event loop."""

    async def every() -> list[float]:
        found = []
        for number in range(times):
            began = time.perf_counter()
            await call(number)
            found.append(time.perf_counter() - began)
        return found

    return asyncio.run(every())


def bare(folder: Path, times: int) -> list[float]:
    """Seconds of a write and a sync of as many bytes, into a file beside."""
    descriptor = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:

        def write(number: int) -> None:
            os.write(descriptor, text(number).encode())
            os.fdatasync(descriptor)

        return spent(write, times)
    finally:
        os.close(descriptor)
        (folder / "bare").unlink()


def measured(peer: Peer, folder: Path) -> dict[str, Any]:
    """What the peer costs at each size, beside the bare disk at the same moment."""
    found: dict[str, Any] = {"append_us": {}, "bare_us": {}, "load_ms": {}}
    for size in peer.sizes:
        place = folder / str(size)
        place.mkdir(parents=True)
        peer.fill(place, size)
        disk = bare(folder, TIMES)
        taken = peer.append(place, TIMES)
        disk += bare(folder, TIMES)
        found["append_us"][size] = statistics.median(taken) * 1e6
        found["bare_us"][size] = statistics.median(disk) * 1e6
        loads = []
        for _ in range(LOADS):
            began = time.perf_counter()
            count = peer.load(place)
            loads.append(time.perf_counter() - began)
            if count < size + TIMES:
                raise AssertionError(f"{peer.name} loaded {count} of {size + TIMES} messages")
        found["load_ms"][size] = min(loads) * 1e3
    return found


def bytes_per_message(peer: Peer, folder: Path, count: int) -> float:
    """Bytes that the file system holds for each message of a session that grew one message at a time."""
    folder.mkdir(parents=True)
    peer.fill(folder, 1)
    peer.append(folder, count - 1)
    blocks = sum(path.lstat().st_blocks for path in folder.rglob("*") if path.is_file())
    return blocks * 512 / count


def effect(folder: Path, name: str) -> None:
    """What a tool does in the world: a line that stays."""
    with (folder / "effects").open("a") as file:
        file.write(f"{name}\n")


def effects(folder: Path) -> dict[str, int]:
    """How often each tool had its effect."""
    lines = (folder / "effects").read_text().split()
    return {name: lines.count(name) for name in TOOLS}


def fatal(folder: Path) -> None:
    """Kill this process the first time, once what runs beside it had time to finish."""
    if not (folder / "killed").exists():
        time.sleep(SIBLING_S)
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)


def acted(folder: Path, name: str) -> str:
    """The body of a tool, its effect first."""
    effect(folder, name)
    if name == "charge":
        fatal(folder)
    return f"{name}: ok"


async def acted_async(folder: Path, name: str) -> str:
    """As `acted`, for tools that share an event loop: the one that dies lets the others run."""
    effect(folder, name)
    if name == "charge":
        await asyncio.sleep(SIBLING_S)
        fatal(folder)
    return f"{name}: ok"
