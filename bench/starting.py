"""What importing and starting cost, in fresh processes."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.rows import Row

_TIMED = "import time; t = time.perf_counter(); import {0}; print((time.perf_counter() - t) * 1e3)"


def measure(_: Path) -> Iterator[Row]:
    """The rows of this module."""
    msgspec, turnwal, everything = _imports("msgspec", "turnwal", "turnwal.session.sessions")
    yield Row("import turnwal", turnwal, "import msgspec", msgspec, "1.5 ×", turnwal <= 1.5 * msgspec, unit="ms")
    what = "the same, and `open_store` asked for"
    yield Row(what, everything, "import msgspec", msgspec, "(not limited)", holds=True, unit="ms")
    click, version = _processes([sys.executable, "-c", "import click"], [sys.executable, "-m", "turnwal", "--version"])
    yield Row(
        "turnwal --version, whole process", version, "import click", click, "2 ×", version <= 2 * click, unit="ms"
    )


def _imports(*modules: str) -> list[float]:
    found: list[list[float]] = [[] for _ in modules]
    for _ in range(15):
        for index, module in enumerate(modules):
            out = subprocess.run([sys.executable, "-c", _TIMED.format(module)], check=True, capture_output=True).stdout
            found[index].append(float(out))
    return [sorted(times)[7] for times in found]


def _processes(*commands: list[str]) -> list[float]:
    found: list[list[float]] = [[] for _ in commands]
    for _ in range(15):
        for index, command in enumerate(commands):
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            found[index].append((time.perf_counter() - started) * 1e3)
    return [sorted(times)[7] for times in found]
