"""The demo holds, says so plainly, and would say if it did not."""

import json
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest

from turnwal.cli.demo import Demo
from turnwal.testing.agent import World


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "turnwal", "demo", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)


def test_the_demo_holds_in_less_than_twenty_seconds() -> None:
    began = time.monotonic()

    done = run("--json")

    summary = json.loads(done.stdout)
    assert [fact["fact"] for fact in summary["facts"] if not fact["holds"]] == []
    assert (done.returncode, done.stderr, summary["ok"], len(summary["facts"]) > 10) == (0, "", True, True)
    assert summary["verdicts"] == {"refund": "tool_outcome_unknown", "send_mail": "tool_not_started"}
    assert not Path(summary["directory"]).exists()
    assert time.monotonic() - began < 20


def test_the_demo_is_plain_text_and_keeps_the_directory_that_is_named(tmp_path: Path) -> None:
    done = run("--dir", str(tmp_path / "demo"))

    assert done.returncode == 0, done.stdout
    assert {char for char in done.stdout if unicodedata.category(char) == "Cc"} == {"\n"}
    assert len(World(tmp_path / "demo").refunds()) == 1
    assert "All of it held." in done.stdout


def test_the_demo_does_not_play_in_a_directory_that_is_in_use(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()

    done = run("--dir", str(tmp_path))

    assert done.returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


class RefundedTwice(Demo):
    def _look(self) -> None:
        super()._look()
        (refund,) = self.world.refunds()
        self.world.pay(refund["order"], refund["amount"], refund["key"])


class SentBefore(Demo):
    def _kill(self) -> None:
        super()._kill()
        self.world.send("customer@example.com", "too early", "no key")


class LedgerLost(Demo):
    def _kill(self) -> None:
        super()._kill()
        self.world.ledger.write_bytes(b"")


@pytest.mark.parametrize(
    ("defect", "false"),
    [
        (RefundedTwice, {"the refund was made once (the ledger has 2)"}),
        (
            SentBefore,
            {
                "send_mail is told as not started, and the outbox is empty",
                "the e-mail was sent once (the outbox has 2)",
            },
        ),
        (
            LedgerLost,
            {
                "refund is told as unknown, and the ledger has it",
                "the log says the refund happened, and on what evidence",
            },
        ),
    ],
)
def test_the_demo_says_what_does_not_hold(defect: type[Demo], false: set[str], tmp_path: Path) -> None:
    played = defect(World(tmp_path / "demo"), lambda _: None)

    played.play()

    assert {sentence for sentence, holds in played.facts if not holds} == false
    assert not played.ok
