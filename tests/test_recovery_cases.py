"""The worked cases: small logs with the right answer. They are part of the specification."""

import json
from pathlib import Path
from typing import Any

import pytest

from turnwal.core.log import Log
from turnwal.core.recovery import Repair, interrupted, plan, recover

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "cases" / "recovery.json").read_text("utf-8"))[1:]


def log_of(case: dict[str, Any]) -> Log:
    log = Log()
    for event in case["events"]:
        log.append(event["type"], event["data"], run=event["run"])
    return log


def told(repair: Repair) -> dict[str, Any]:
    """A repair in the terms of the cases."""
    data, metadata = repair.data, repair.data.get("metadata", {})
    found: dict[str, Any] = {"run": repair.run, "type": repair.type}
    match repair.type:
        case "tool_result":
            found |= {"id": data["id"], "risk": metadata["risk"]}
            if "basis" in metadata:
                found["basis"] = metadata["basis"]
        case "tool_outcome":
            found |= {"id": data["id"], "outcome": data["outcome"]}
        case "approval_response":
            found |= {"id": data["id"], "decision": data["decision"]}
        case "step_end":
            found |= {"outcome": data["outcome"]}
        case "turn_end":
            found |= {"reason": data["reason"], "turn": data.get("turn")}
        case other:
            raise AssertionError(f"recovery appends no {other}")
    return found


def expected(repair: dict[str, Any]) -> dict[str, Any]:
    return {"turn": None} | repair if repair["type"] == "turn_end" else repair


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_plan_of_a_worked_case_is_the_right_answer(case: dict[str, Any]) -> None:
    planned = plan(log_of(case))

    assert [told(repair) for repair in planned.repairs] == [expected(repair) for repair in case["repairs"]]
    assert set(case["findings"]) <= {finding.code for finding in planned.findings}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_recovering_a_worked_case_appends_once(case: dict[str, Any]) -> None:
    log = log_of(case)
    before = list(log.lines())

    first = recover(log)
    lines = list(log.lines())
    second = recover(log)

    assert lines[: len(before)] == before
    assert len(lines) == len(before) + len(first.repairs)
    assert not second
    assert list(log.lines()) == lines
    assert not interrupted(log)
