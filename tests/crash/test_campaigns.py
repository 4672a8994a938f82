"""The campaigns in the size that every change can afford. `make crash` runs them longer, from a seed of the day."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "arguments",
    [
        ["--only", "points"],
        ["--only", "kills", "--kills", "300", "--cap", "120"],
        ["--only", "canaries", "--kills", "300"],
        ["--only", "interrupts", "--interrupts", "120"],
        ["--only", "everywhere", "--share", "0.02"],
        ["--only", "full", "--stride", "1009"],
    ],
    ids=lambda arguments: arguments[1],
)
def test_a_log_stays_whole_and_true_whatever_ends_its_writer(arguments: list[str]) -> None:
    # in a process of its own: only one that has no threads may fork
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash", "--seed", "1", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
