"""The campaigns in the size that every change can afford. `make power` runs them longer, from a seed of the day."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "arguments",
    [
        ["--only", "files", "--states", "13000"],
        ["--only", "sqlite", "--states", "7000"],
        ["--only", "faults", "--stride", "9", "--subsets", "0"],
        ["--only", "canaries"],
    ],
    ids=lambda arguments: arguments[1],
)
def test_nothing_acknowledged_is_lost_whenever_the_power_fails(arguments: list[str]) -> None:
    done = power(*arguments)

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_campaign_is_refused_where_a_sync_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "libeatmydata.so")  # the loader says that there is none, and goes on

    done = power("--only", "files", "--states", "1")

    assert done.returncode == 1
    assert "LD_PRELOAD names eatmydata" in done.stdout


def power(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tests.power", "--seed", "1", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
