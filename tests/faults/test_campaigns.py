"""The campaigns in the size that every change can afford. `make faults` fails every call."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "arguments",
    [["--only", "files", "--every", "20"], ["--only", "canaries"]],
    ids=lambda arguments: arguments[1],
)
def test_a_disk_that_fails_costs_nothing_that_was_acknowledged(arguments: list[str]) -> None:
    # in a process of its own: only one that has no threads may fork
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", "--seed", "1", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
