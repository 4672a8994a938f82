"""Calls that recovery leaves open, behind bytes that may have held their dispatch."""

from typing import Any

import pytest

from tests.core.build import DURABLE, STEP, STEP_END, Row, ask, dispatch, extend, log_of, note, result
from turnwal.core.log import Log
from turnwal.core.recovery import plan, recover
from turnwal.core.scan import Scan

NONE: Row = ("turn_start", {"turn": 2, "dispatch": "none"})
NEXT: Row = ("turn_start", {"turn": 2, "dispatch": "durable"})
WEAK: Row = ("step_start", {"step": 1, "dispatch": "none"})
ASKED = note("approval_request", "a", "2.0")
SUSPENDED = note("tool_suspended", "a", "2.0")
END: Row = ("turn_end", {"turn": 1, "reason": "suspended", "open": [], "waiting": [{"call": "2.0", "id": "a"}]})
GRANTED = note("approval_response", "a", "2.0", decision="granted")
RESUMED: Row = ("session_resume", {"format": 1})
NOTE: Row = ("x.note", {})
WAITS = (DURABLE, STEP, ask("a"), ASKED, SUSPENDED, STEP_END, END)
MAY_RUN = (*WAITS, GRANTED)


def damage(kind: str, after: int = 99) -> Row:
    return ("damage", {"kind": kind, "after": after})


def held(*rows: Row) -> list[tuple[str, bool]]:
    """Key of each call that may still be dispatched, and whether the next boundary says that it is in doubt."""
    data = Scan().feed_all(log_of(*rows)).boundary([])
    return [(entry["call"], entry.get("doubt", False)) for entry in [*data["waiting"], *data.get("granted", [])]]


DOUBTED: dict[str, tuple[Row, ...]] = {
    "granted, then NULs": (*MAY_RUN, damage("nul")),
    "granted, then corrupt bytes": (*MAY_RUN, damage("corrupt")),
    "granted, then a loss": (*MAY_RUN, damage("lost")),
    "granted, then damage of an unknown kind": (*MAY_RUN, damage("of_tomorrow")),
    "pending, then NULs": (*WAITS, damage("nul")),
    "suspended without a question": (DURABLE, STEP, ask("a"), SUSPENDED, STEP_END, END, damage("nul")),
    "NULs in a later turn": (*MAY_RUN, NEXT, damage("nul")),
    "NULs in the turn that asked": (DURABLE, STEP, ask("a"), ASKED, SUSPENDED, damage("nul")),
    "a torn tail in a turn that declares nothing": (*MAY_RUN, ("turn_start", {"turn": 2}), damage("torn")),
    "a torn tail in a turn that records no dispatch": (*MAY_RUN, NONE, damage("torn")),
    "a torn tail in a step that weakens its turn": (*MAY_RUN, NEXT, WEAK, damage("torn")),
    "NULs behind an owner whose recovery was done": (*MAY_RUN, RESUMED, damage("nul")),
    "a loss behind an owner who repaired only": (*MAY_RUN, NEXT, RESUMED, damage("lost")),
    "NULs of long ago": (*MAY_RUN, damage("nul"), RESUMED, NEXT, ("turn_end", {"turn": 2})),
    "settled as unknown": (*MAY_RUN, damage("nul"), note("tool_outcome", "a", "2.0", outcome="unknown")),
    "settled before": (*MAY_RUN, note("tool_outcome", "a", "2.0", outcome="did_not_happen"), damage("nul")),
    "the settling of another call": (
        *MAY_RUN,
        damage("nul"),
        note("tool_outcome", "a", "2.1", outcome="did_not_happen"),
    ),
}

SURE: dict[str, tuple[Row, ...]] = {
    "nothing was lost": MAY_RUN,
    "NULs before the request": (DURABLE, STEP, ask("a"), ASKED, SUSPENDED, STEP_END, END, damage("nul", 1)),
    "a torn tail in a durable turn": (*MAY_RUN, NEXT, damage("torn")),
    "a torn tail behind the last turn": (*MAY_RUN, damage("torn")),
    "NULs of a recovery that was torn": (*MAY_RUN, NEXT, RESUMED, damage("nul")),
    "settled since": (*MAY_RUN, damage("nul"), note("tool_outcome", "a", "2.0", outcome="did_not_happen")),
    "granted behind the damage": (DURABLE, damage("nul", 0), ask("a"), ASKED, SUSPENDED, GRANTED, END),
}


@pytest.mark.parametrize("rows", DOUBTED.values(), ids=DOUBTED)
def test_a_call_whose_dispatch_may_be_lost_is_in_doubt(rows: tuple[Row, ...]) -> None:
    assert held(*rows) == [("2.0", True)]
    (finding,) = [finding for finding in plan(log_of(*rows)).findings if finding.code == "doubtful_call"]
    assert finding.seqs == (2,)
    assert "2.0" in finding.message


@pytest.mark.parametrize("rows", SURE.values(), ids=SURE)
def test_a_call_whose_dispatch_cannot_be_lost_is_not(rows: tuple[Row, ...]) -> None:
    assert held(*rows) == [("2.0", False)]
    assert "doubtful_call" not in {finding.code for finding in plan(log_of(*rows)).findings}


def test_an_owed_call_is_answered_and_not_doubted() -> None:
    log = log_of(DURABLE, STEP, ask("a"), ASKED, SUSPENDED, GRANTED, damage("nul"))

    planned = recover(log)

    assert [repair.rule for repair in planned.lost_calls()] == [2]
    assert "doubtful_call" not in {finding.code for finding in planned.findings}
    assert Scan().feed_all(log).boundary([]) == {"open": [], "waiting": []}


def test_an_answer_ends_the_doubt() -> None:
    assert held(*MAY_RUN, damage("nul"), result("a", "2.0")) == []


def test_the_doubt_about_a_call_of_a_sub_run_is_its_own() -> None:
    start: Row = ("turn_start", {"turn": 1, "dispatch": "durable"}, "x")
    end: Row = ("turn_end", {"turn": 1, "reason": "suspended"}, "x")
    rows = (start, ask("a", run="x"), note("tool_suspended", "a", "1.0", run="x"), end)
    weak: Row = ("turn_start", {"turn": 1, "dispatch": "none"})

    # a torn tail hides a dispatch of its own run only
    assert held(*rows, weak, damage("torn")) == [("1.0", False)]
    assert held(*rows, weak, damage("nul")) == [("1.0", True)]
    assert held(*rows, damage("nul"), note("tool_outcome", "a", "1.0", outcome="did_not_happen")) == [("1.0", True)]


@pytest.mark.parametrize(
    ("said", "doubted"),
    [({}, False), ({"doubt": True}, True), ({"doubt": False}, False), ({"doubt": "of_tomorrow"}, True)],
)
@pytest.mark.parametrize("name", ["waiting", "granted"])
def test_a_boundary_carries_the_doubt_on(name: str, said: dict[str, Any], doubted: bool) -> None:
    log = extend(Log(), [NOTE] * 5)
    entry = {"call": "2.0", "id": "a"} | said
    log.append("session_resume", {"open": [], "waiting": [], name: [entry]})

    data = Scan().feed_all(log.since(5)).boundary([])

    assert data[name] == [{"call": "2.0", "id": "a"} | ({"doubt": True} if doubted else {})]


def test_a_dispatch_of_a_call_in_doubt_is_unknown_like_any_other() -> None:
    log = log_of(*MAY_RUN, damage("nul"), NEXT, dispatch("a", "2.0"))

    assert [repair.rule for repair in plan(log).lost_calls()] == [1]


def test_an_attempt_outside_any_turn_is_told_until_its_outcome_comes() -> None:
    log = log_of(ask("a"), dispatch("a", "0.0"), result("a", "0.0"), dispatch("a", "0.0", attempt=2))
    assert not plan(log)
    (finding,) = [finding for finding in plan(log).findings if finding.code == "dangling_attempt"]
    assert finding.seqs == (3,)
    assert "attempt 2 of call 0.0" in finding.message

    extend(log, [NEXT, note("tool_outcome", "a", "0.0", attempt=2, outcome="happened")])

    assert "dangling_attempt" not in {finding.code for finding in plan(log).findings}
