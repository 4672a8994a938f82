"""What is measured of a process that writes: its memory, its descriptors, and how long a durable event takes."""

import math
import resource
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

_PER_E: Final = 20
"""Buckets of a time for each power of e, so that one is about 5 % wide."""


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * resource.getpagesize()


def descriptors() -> int:
    """How many files this process has open."""
    # the listing has one open itself
    return sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1


def bucket_of(seconds: float) -> int:
    """Where a time is counted."""
    return round(math.log(max(seconds, 1e-7)) * _PER_E)


def quantile(buckets: Counter[int], share: float) -> float:
    """The seconds that this share of the counted times does not exceed, to about 5 %."""
    wanted = share * buckets.total()
    seen = 0
    for bucket in sorted(buckets):
        seen += buckets[bucket]
        if seen >= wanted:
            return math.exp(bucket / _PER_E)
    raise ValueError("nothing was counted")


def average(buckets: Counter[int]) -> float:
    """The mean of the counted times in seconds, to about 5 %."""
    return sum(math.exp(bucket / _PER_E) * count for bucket, count in buckets.items()) / buckets.total()


def mean(values: Iterable[float]) -> float:
    """Their mean; 0 of none."""
    given = list(values)
    return sum(given) / len(given) if given else 0.0


def tenths(values: Sequence[float], warm_up: float) -> tuple[float, float]:
    """The means of the first tenth behind the warm-up, and of the last."""
    width = max(1, len(values) // 10)
    begin = int(len(values) * warm_up)
    return mean(values[begin : begin + width]), mean(values[-width:])
