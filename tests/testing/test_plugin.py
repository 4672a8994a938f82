"""The plugin of pytest, in runs of pytest of its own."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

GOOD = """
from tests.testing import agents

def test_good(crash_points):
    crash_points(agents.good, effects=agents.effects)
"""
BAD = """
import os
from tests.testing import agents

def test_bad(crash_points):
    crash_points(agents.asks_again, effects=agents.effects)
"""
PROCESS = """
import os

def test_process(crash_points):
    seen = []
    crash_points(lambda sessions: seen.append(os.getpid()))
    assert seen == [os.getpid()]
"""


def run(directory: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    # an installation that is older than the entry point has to be told
    known = any(each.value == "turnwal.testing.plugin" for each in entry_points(group="pytest11"))
    plugin = [] if known else ["-p", "turnwal.testing.plugin"]
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *plugin, *arguments]
    paths = [str(ROOT), str(ROOT / "src"), str(directory), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("options", [[], ["--turnwal-crash"]])
def test_a_good_agent_passes_plainly_and_under_fire(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "test_good.py").write_text(GOOD, "utf-8")

    done = run(tmp_path, *options)

    assert done.returncode == 0, done.stdout + done.stderr


def test_without_the_option_the_agent_runs_in_the_process_of_the_test(tmp_path: Path) -> None:
    (tmp_path / "test_process.py").write_text(PROCESS, "utf-8")

    done = run(tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_planted_defect_shows_only_under_fire_and_one_command_shows_it_again(tmp_path: Path) -> None:
    (tmp_path / "test_bad.py").write_text(BAD, "utf-8")

    assert run(tmp_path).returncode == 0
    fire = run(tmp_path, "--turnwal-crash")
    assert fire.returncode == 1
    assert "ran_again, killed at send#1:after" in fire.stdout
    assert "pytest test_bad.py::test_bad --turnwal-crash-point='send#1:after'" in fire.stdout

    again = run(tmp_path, "test_bad.py::test_bad", "--turnwal-crash-point=send#1:after")
    assert again.returncode == 1
    assert "killed 1 times at 1 points" in again.stdout


def test_loading_it_loads_nothing_of_turnwal() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import turnwal.testing.plugin; "
        "print(*sorted(name for name in set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == ["turnwal", "turnwal.testing", "turnwal.testing.plugin"]
