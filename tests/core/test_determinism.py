"""The same history gives the same bytes and the same plan, whatever the process was started with."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from turnwal.core.log import Log
from turnwal.core.recovery import plan, recover

GOLDEN = {
    "lines": "8964a6d862623a3985abd935545da3492aefaaeb94a3d3be91baddfc23d737f1",
    "plans": "a51d3e22707192c4d0e4b4a9335e94f9789110d8a6b48acca6a43f7c81915790",
    "recovered": "b8c633c71bf76ff7e0a3d75ebc47cf281de8741baa24094dd921490b7efd9ec9",
}
"""Digests of what `told` hashes. They change only when the format or the words of a plan do, and never by accident."""

CASES = Path(__file__).parent.parent / "cases" / "recovery.json"


def logs() -> Iterator[Log]:
    """Every worked case, and one log of odd values."""
    for case in json.loads(CASES.read_text("utf-8"))[1:]:
        log = Log()
        for event in case["events"]:
            log.append(event["type"], event["data"], run=event["run"], time=1_764_500_000_000 + event["seq"])
        yield log
    log = Log()
    log.append("turn_start", {"dispatch": "durable", "é": [1.0, -0.0, 1e22, 2**70, 10**3999, "\ud83d", "\u2028", None]})
    log.append(
        "assistant_message", {"parts": [{"type": "tool_call", "id": "\ud800", "name": "é", "arguments": {"b": 1}}]}
    )
    log.append("tool_call", {"id": "\ud800", "hints": {"read_only": True}, "hints_from": "declared"}, run="main")
    log.append("turn_start", {}, run="1.0")
    log.append("turn_start", {}, run="\ud83d")
    yield log


def told() -> dict[str, str]:
    """Digests of the lines, the plans and the lines after recovery."""
    sums = {name: hashlib.sha256() for name in GOLDEN}
    for log in logs():
        sums["lines"].update(b"\n".join(log.lines()))
        for strict in (False, True):
            sums["plans"].update(json.dumps(plan(log, strict=strict).to_json()).encode())
        recover(log)
        sums["recovered"].update(b"\n".join(log.lines()))
    return {name: sum.hexdigest() for name, sum in sums.items()}


@pytest.mark.parametrize(
    ("flags", "more"),
    [
        ((), {"PYTHONHASHSEED": "0"}),
        ((), {"PYTHONHASHSEED": "1"}),
        ((), {"PYTHONHASHSEED": "random"}),
        ((), {"TZ": "UTC"}),
        ((), {"TZ": "Asia/Tokyo", "LC_ALL": "C"}),
        (("-O",), {}),
        (("-OO",), {}),
        (("-X", "utf8=0"), {"LC_ALL": "POSIX"}),
    ],
    ids=str,
)
def test_bytes_and_plans_do_not_depend_on_the_process(flags: tuple[str, ...], more: dict[str, str]) -> None:
    code = "import json; from tests.core.test_determinism import told; print(json.dumps(told()))"
    root = str(Path(__file__).parents[2])
    command = [sys.executable, *flags, "-c", code]
    done = subprocess.run(command, cwd=root, env=os.environ | more, capture_output=True, check=True, text=True)

    assert json.loads(done.stdout) == GOLDEN


def test_this_process_says_the_same() -> None:
    assert told() == GOLDEN
