"""The rows of the table: what was measured beside what, and whether the design's cost holds."""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the table. Times are microseconds unless the name says otherwise."""

    what: str
    measured: float
    beside: str
    reference: float
    cost: str
    """What the design allows, in words."""
    holds: bool
    unit: str = "µs"

    @property
    def ratio(self) -> float:
        """Measured over reference."""
        return self.measured / self.reference if self.reference else float("nan")

    def to_json(self) -> dict[str, Any]:
        """The row as plain values."""
        return asdict(self) | {"ratio": round(self.ratio, 3)}


def each_us(work: Callable[[], object], times: int) -> float:
    """Microseconds of one call, over one stretch of calls."""
    started = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - started) / times * 1e6


def interleaved_us(works: list[Callable[[], object]], times: int, rounds: int) -> list[float]:
    """Microseconds of one call of each work: the median over rounds that take turns, so that all share the weather."""
    found: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for index, work in enumerate(works):
            found[index].append(each_us(work, times))
    return [statistics.median(stretch) for stretch in found]


def best_us(work: Callable[[], object], times: int, rounds: int = 7) -> float:
    """Microseconds of one call: the best of several stretches, for work that touches no disk."""
    return min(each_us(work, times) for _ in range(rounds))


def peak_mb() -> float:
    """The peak memory of this process alone; what getrusage tells begins with that of the one it was forked from."""
    (peak,) = (line for line in Path("/proc/self/status").read_text("ascii").splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1000


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    lines = [
        "| what | measured | beside | reference | ratio | allowed | holds |",
        "| --- | ---: | --- | ---: | ---: | --- | --- |",
    ]
    for row in rows:
        numbers = f"{row.measured:,.1f} {row.unit} | {row.beside} | {row.reference:,.1f} {row.unit} | {row.ratio:.2f}"
        lines.append(f"| {row.what} | {numbers} | {row.cost} | {'yes' if row.holds else '**no**'} |")
    return "\n".join(lines)
