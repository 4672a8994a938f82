"""The example of the documentation, as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)


def example(directory: Path) -> None:
    """Write the files of the example."""
    page = (ROOT / "docs" / "testing.md").read_text("utf-8")
    section = page[page.index("## Power failures") :].split("\n## ")[0]
    files = dict(_BLOCK.findall(section))
    assert set(files) == {"agent.py", "test_power.py"}
    for name, text in files.items():
        (directory / name).write_text(text, "utf-8")


def outcome(directory: Path) -> "subprocess.CompletedProcess[str]":
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-vv",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:turnwal",
        "-c",
        "/dev/null",
        "--rootdir=.",
    ]
    return subprocess.run([*command, "test_power.py"], cwd=directory, capture_output=True, text=True, check=False)


def test_the_example_holds(tmp_path: Path) -> None:
    example(tmp_path)

    done = outcome(tmp_path)

    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_the_example_catches_an_acknowledgement_before_its_barrier(tmp_path: Path) -> None:
    example(tmp_path)
    agent = tmp_path / "agent.py"
    hasty = agent.read_text("utf-8").replace("session.flush().count", "len(session)")
    assert "flush()" not in hasty
    agent.write_text(hasty, "utf-8")

    done = outcome(tmp_path)

    assert done.returncode == 1
    assert "events were acknowledged" in done.stdout
