"""What docs/testing.md shows runs, and fails as it says."""

import re
from pathlib import Path

import pytest

from tests.testing.test_plugin import run
from turnwal.testing.crash.report import RULES
from turnwal.testing.faults import CALLS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text("utf-8")


@pytest.fixture
def example(tmp_path: Path) -> Path:
    # the section of power failures is run by a test of its own
    crashes, _, _ = PAGE.partition("\n## Power failures")
    for name, code in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", crashes, re.DOTALL):
        (tmp_path / name).write_text(code, "utf-8")
    assert {path.name for path in tmp_path.iterdir()} == {"refunds.py", "test_refunds.py", "test_a_lie.py"}
    return tmp_path


@pytest.mark.timeout(120)
def test_the_agent_of_the_page_passes(example: Path) -> None:
    for options in ([], ["--turnwal-crash"]):
        done = run(example, "test_refunds.py", *options)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(120)
def test_the_lie_of_the_page_fails_as_it_says(example: Path) -> None:
    (told,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)

    done = run(example, "test_a_lie.py", "--turnwal-crash")

    assert done.returncode == 1, done.stdout + done.stderr
    said = "\n".join(line.removeprefix("E").strip() for line in done.stdout.splitlines())
    assert "\n".join(map(str.strip, told.splitlines())) in said, done.stdout


def test_the_other_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    blocks = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "turnwal.testing.fa" in block]
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "testing.md", "exec"), namespace)  # noqa: S102 - the example is the test


def test_every_rule_and_every_call_is_documented() -> None:
    assert (
        dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE.split("| rule |")[1].split("\n\n")[0], re.MULTILINE)) == RULES
    )
    assert list(RULES) == sorted(RULES)
    for call in CALLS:
        assert f"`{call}`" in PAGE
