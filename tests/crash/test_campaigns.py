"""The campaigns in the size that every change can afford. `make crash` runs them longer, from a seed of the day."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.__main__ import held_interrupts
from tests.crash.interrupts import Interrupted
from tests.crash.reporting import Report

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "arguments",
    [
        ["--only", "points"],
        ["--only", "kills", "--store", "file", "--kills", "300", "--cap", "240"],
        ["--only", "kills", "--store", "sqlite", "--kills", "60"],
        ["--only", "kills", "--store", "postgres", "--kills", "20"],
        ["--only", "canaries", "--kills", "300"],
        ["--only", "calls", "--store", "file", "--every", "30"],
        ["--only", "calls", "--store", "sqlite", "--every", "200"],
        ["--only", "calls", "--store", "postgres", "--every", "60"],
        ["--only", "nested", "--every", "20"],
        ["--only", "classes", "--deaths", "6"],
        ["--only", "memory", "--starved", "8"],
        ["--only", "interrupts", "--interrupts", "120"],
        ["--only", "everywhere", "--share", "0.02"],
        ["--only", "full", "--stride", "1009"],
    ],
    ids=lambda arguments: " ".join(word for word in arguments if word[0] != "-" and not word[0].isdigit()),
)
def test_a_log_stays_whole_and_true_whatever_ends_its_writer(arguments: list[str]) -> None:
    done = crash(*arguments)

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_campaign_that_had_no_time_says_that_it_has_seen_too_little() -> None:
    done = crash("--only", "kills", "--store", "file", "--kills", "300", "--cap", "1")

    assert done.returncode == 1
    assert "DID NOT HOLD: at least 300 kills" in done.stdout


def test_interrupts_that_come_too_late_do_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    for heard, enough in ((99, False), (100, True)):
        report = Report()
        held_interrupts(report, Interrupted(interrupted=heard, interrupts=240), asked=120)
        assert report.ok is enough
    assert "DID NOT HOLD: at least 100 processes" in capsys.readouterr().out


def crash(*arguments: str) -> "subprocess.CompletedProcess[str]":
    # in a process of its own: only one that has no threads may fork
    return subprocess.run(
        [sys.executable, "-m", "tests.crash", "--seed", "1", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
