"""The soak in the size that every change can afford. `make soak` writes 3.5 million events."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.soak import measures
from tests.soak.soak import chain_of

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("store", "events", "more"), [("file", 20_000, "--canaries"), ("sqlite", 10_000, "--no-canaries")]
)
def test_agents_that_are_killed_lose_nothing_and_do_not_grow(store: str, events: int, more: str) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.soak", "--seed", "1", "--store", store, more),
            *("--events", str(events), "--agents", "4", "--session-events", "60", "--kill-every", "0.5"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_chain_that_breaks_is_said() -> None:
    line = b'{"seq":0,"prev":"' + b"0" * 64 + b'","time":1,"type":"x.note","data":{}}\n'

    assert chain_of(line) == ([chain_of(line)[0][0]], "")
    assert chain_of(line + b'{"seq":1,"pre\n')[1] == "bytes at the end are no record and not covered"
    assert chain_of(line + b"torn")[1] == "bytes at the end are no record and not covered"


def test_a_quantile_is_found_to_five_percent() -> None:
    times = Counter(measures.bucket_of(seconds / 1000) for seconds in range(1, 101))

    assert measures.quantile(times, 0.5) == pytest.approx(0.05, rel=0.05)
    assert measures.quantile(times, 0.99) == pytest.approx(0.099, rel=0.05)
