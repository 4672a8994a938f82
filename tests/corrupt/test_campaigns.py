"""The campaigns in the size that every change can afford. `make corrupt` runs them whole, from a seed of the day."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(300)
def test_every_change_of_content_is_told_and_looking_changes_nothing() -> None:
    sizes = ["--stride", "37", "--database-stride", "331", "--edits", "1000", "--histories", "1000"]

    done = subprocess.run(
        [sys.executable, "-m", "tests.corrupt", "--seed", "1", *sizes],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
