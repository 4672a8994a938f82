"""The campaigns in the size that every change can afford. `make races` runs them longer, from a seed of the day."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "arguments",
    [
        ["--store", "memory"],
        ["--store", "file"],
        ["--store", "sqlite"],
        ["--store", "postgres"],
        ["--only", "canaries"],
        ["--only", "cuts"],
        ["--only", "failovers"],
    ],
    ids=lambda arguments: arguments[1],
)
def test_one_session_has_one_history_whoever_wants_it(arguments: list[str]) -> None:
    # in a process of its own: only one that has no threads may fork
    done = subprocess.run(
        [sys.executable, "-m", "tests.races", "--seed", "1", "--times", "1", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
