"""Fuzzing in the size that every change can afford, from one seed; `make fuzz` lets coverage decide, for hours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(600)
def test_nothing_that_a_stranger_wrote_makes_a_reader_crash_hang_or_fill_memory() -> None:
    # what takes longest is no measure here, only what never ends: other work may be beside it
    done = fuzz("--hang", "60")

    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr


def test_a_violation_is_told_with_the_command_that_repeats_it(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(
        "import sys\n"
        "from tests.fuzz import __main__ as campaign\n"
        "from tests.fuzz.planted import CANARIES\n"
        "with CANARIES['half a character in a path'].there():\n"
        "    sys.exit(campaign.main(['--seed', '1', '--only', 'text', '--inputs', '80']))\n"
    )
    done = run([str(planted)])

    assert done.returncode == 1
    assert "VIOLATED: text: UnicodeEncodeError" in done.stdout
    assert "to repeat: python -m tests.fuzz --only text --input " in done.stdout


def test_a_campaign_that_came_to_nothing_says_that_it_has_seen_too_little() -> None:
    done = fuzz("--only", "format-codex", "--inputs", "1", "--seed", "2")
    told = fuzz("--only", "nothing-of-that-name")

    assert "sessions diagnosed" in done.stdout
    assert told.returncode == 2
    assert "no target is called so" in told.stderr


def fuzz(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return run(["-m", "tests.fuzz", "--seed", "1", *arguments])


def run(arguments: list[str]) -> "subprocess.CompletedProcess[str]":
    # in a process of its own: what it holds at most is watched, and the signal of its processor's time
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
    )
