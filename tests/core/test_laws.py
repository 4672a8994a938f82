"""The laws of recovery, on logs that a session wrote and on logs that nobody sane wrote."""

import copy
import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core import oracle
from tests.core.build import risks
from turnwal.core.errors import InvalidEvent
from turnwal.core.log import Log
from turnwal.core.recovery import Plan, Repair, interrupted, open_turns, plan, plan_of, recover
from turnwal.core.scan import Scan
from turnwal.testing.strategies import Row, foreign_rows, log_of, session_rows

TIMES = int(os.environ.get("TURNWAL_EXAMPLES", "1"))
"""How many times the usual number of examples to try; more than one tries other examples in every run."""


def law(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The same examples in every run, so that a failure on one machine is a failure on all."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        max_examples=examples * TIMES, derandomize=TIMES == 1, database=None, deadline=None, suppress_health_check=slow
    )


AFTERMATHS: dict[str, tuple[Row, ...]] = {
    "nothing more": (),
    "a torn tail": (Row("damage", {"kind": "torn", "length": 3}),),
    "a run of NULs": (Row("damage", {"kind": "nul", "length": 3}),),
    "an unknown kind of damage": (Row("damage", {"kind": "of_tomorrow", "length": 3}),),
    "a copy": (Row("session_copied", {}),),
    "a new owner's torn first write": (
        Row("session_resume", {"format": 1}),
        Row("damage", {"kind": "nul", "length": 3}),
    ),
    "a new owner's torn later write": (
        Row("session_resume", {"format": 1}),
        Row("x.note", {}),
        Row("damage", {"kind": "torn", "length": 3}),
    ),
}


@st.composite
def session_logs(draw: st.DrawFn, *, plain: bool = False) -> Log:
    """A log that a session wrote until it died, and what came after it."""
    dispatch = (
        "durable" if plain else draw(st.sampled_from(["durable", "durable", None, None, None, "none", "sometimes"]))
    )
    log = log_of(draw(session_rows(dispatch=dispatch)))
    for row in () if plain else AFTERMATHS[draw(st.sampled_from([*["nothing more"] * 6, *AFTERMATHS]))]:
        data = row.data | ({"after": len(log) - 1} if row.type == "damage" else {})
        log.append(row.type, data)
    return log


def foreign_logs() -> st.SearchStrategy[Log]:
    return foreign_rows().map(log_of)


def any_logs() -> st.SearchStrategy[Log]:
    return session_logs() | foreign_logs()


def closers(planned: Plan) -> list[oracle.Closer]:
    """The repairs in the terms of the oracle."""
    return [oracle.Closer(repair.type, repair.run, about(repair), repair.rule) for repair in planned.repairs]


def about(repair: Repair) -> object:
    data = repair.data
    match repair.type:
        case "tool_outcome":
            return (data["call"], data["attempt"])
        case "tool_result" | "approval_response":
            return data["call"]
        case "step_end":
            return data.get("step")
        case _:
            return data.get("turn")


def without_time(planned: Plan) -> list[dict[str, Any]]:
    return [repair.to_json() for repair in planned.repairs]


@law(85)
@given(any_logs())
def test_recovering_twice_appends_once(log: Log) -> None:
    before = list(log.lines())

    first = recover(log)
    once = list(log.lines())
    second = recover(log)

    assert once[: len(before)] == before
    assert len(once) == len(before) + len(first.repairs)
    assert not second
    assert not interrupted(log)
    assert open_turns(log) == []
    assert list(log.lines()) == once
    assert Log.read(once).head == log.head


@law(350)
@given(session_logs())
def test_what_is_owed_and_why_is_what_the_oracle_finds(log: Log) -> None:
    planned = plan(log)

    assert closers(planned) == oracle.repairs(log.events)
    ends = [repair.data for repair in planned.repairs if repair.type == "turn_end"]
    assert [end["open"] for end in ends] == still_open(log)
    assert all([entry["call"] for entry in end["waiting"]] == oracle.waiting(log.events) for end in ends)
    assert [doubted(end) for end in ends[-1:]] == [oracle.in_doubt(log.events)] * len(ends[-1:])


def doubted(boundary: dict[str, Any]) -> list[str]:
    """The calls that a boundary says are in doubt, in the order of their keys."""
    named = [*boundary["waiting"], *boundary.get("granted", [])]
    found = [entry["call"] for entry in named if entry.get("doubt")]
    return sorted(found, key=lambda key: [int(number) for number in key.split(".")])


def still_open(log: Log) -> list[list[int]]:
    """What each end of a turn leaves open: the turns that the later ends close."""
    starts = [event.seq for event in open_turns(log)]
    assert sorted(starts) == oracle.open_seqs(log.events)
    return [sorted(starts[index + 1 :]) for index in range(len(starts))]


@law(60)
@given(any_logs())
def test_every_owed_call_gets_one_result_by_key_in_key_order(log: Log) -> None:
    planned = plan(log)

    named: dict[tuple[str, str], int] = {}
    turn: list[tuple[int, int]] = []
    for repair in planned.repairs:
        if repair.type == "tool_result":
            seq, index = repair.data["call"].split(".")
            turn.append((int(seq), -1 if index == "d" else int(index)))
            named[repair.run, repair.data["call"]] = named.get((repair.run, repair.data["call"]), 0) + 1
            assert repair.data["metadata"]["synthetic"] is True
            assert repair.rule in range(1, 10)
        elif repair.type == "turn_end":
            assert turn == sorted(turn)
            turn = []
    assert set(named.values()) <= {1}


@law(40)
@given(any_logs())
def test_a_log_whose_every_turn_is_closed_is_left_alone(log: Log) -> None:
    recover(log)
    seqs = {event.seq for event in log}

    assert not plan(log).repairs
    assert {event.seq for event in log} == seqs
    assert not interrupted(log)


@law(85)
@given(any_logs(), st.data())
def test_a_prefix_and_then_the_rest_is_the_whole(log: Log, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(log)))
    scan = Scan().feed_all(log.events[:cut])
    at_the_cut = plan_of(scan).to_json()
    again = plan_of(scan).to_json()

    scan.feed_all(log.events[cut:])

    assert at_the_cut == again == plan(log.events[:cut]).to_json()
    assert plan_of(scan).to_json() == plan(log).to_json()


@law(110)
@given(session_logs())
def test_the_tail_from_the_oldest_open_turn_plans_what_the_whole_plans(log: Log) -> None:
    whole = plan(log)
    starts = open_turns(log)
    if not starts:
        assert not whole
        return

    tail = plan(log.since(min(event.seq for event in starts)))

    assert without_time(tail) == without_time(whole)
    assert tail.time == whole.time


@law(110)
@given(session_logs(), st.sampled_from(list(AFTERMATHS.values())))
def test_the_tail_from_a_boundary_behind_which_nothing_is_open_holds_what_the_whole_holds(
    log: Log, aftermath: tuple[Row, ...]
) -> None:
    recover(log)
    for row in aftermath:
        log.append(row.type, row.data | ({"after": len(log) - 1} if row.type == "damage" else {}))
    whole = Scan().feed_all(log)
    held = whole.boundary([])

    assert doubted(held) == oracle.in_doubt(log.events)
    for event in log:
        if event.data.get("open") == []:
            assert Scan().feed_all(log.since(event.seq)).boundary([]) == held


@law(70)
@given(session_logs(plain=True))
def test_what_a_session_writes_is_odd_only_where_it_was_cut(log: Log) -> None:
    expected = {"clock_went_back", "damage", "doubtful_call"}

    assert {finding.code for finding in plan(log).findings} <= expected


@law(70)
@given(session_logs(plain=True))
def test_the_boundaries_of_a_session_say_what_the_scan_finds(log: Log) -> None:
    scan = Scan()
    for event in log:
        scan.feed(event)
        if "open" in event.data:
            assert event.data["open"] == scan.open_seqs()
            assert event.data["waiting"] == scan.waiting()
            assert event.data.get("granted", []) == scan.granted()


@law(85)
@given(any_logs(), st.data())
def test_a_recovery_that_was_torn_is_finished_with_the_same_verdicts(log: Log, data: st.DataObject) -> None:
    planned = plan(log)
    if not planned:
        return
    done = data.draw(st.integers(0, len(planned.repairs)))
    kind = data.draw(st.sampled_from(["torn", "nul", "corrupt"]))
    log.append("session_resume", {"format": 1})
    for repair in planned.repairs[:done]:
        log.append(repair.type, repair.data, run=repair.run)
    log.append("damage", {"kind": kind, "after": len(log) - 1})

    rest = plan(log)

    answered = {
        (repair.run, repair.data["call"]) for repair in planned.lost_calls() if repair in planned.repairs[:done]
    }
    assert [(repair.type, repair.run, repair.data, repair.rule) for repair in rest.repairs] == [
        (repair.type, repair.run, repair.data, repair.rule)
        for repair in planned.repairs[done:]
        if repair.type != "approval_response" or (repair.run, repair.data["call"]) not in answered
    ]


@law(85)
@given(foreign_logs())
def test_planning_a_foreign_log_neither_raises_nor_changes_it(log: Log) -> None:
    events = copy.deepcopy(log.events)

    assert plan(log).to_json() == plan(iter(events)).to_json()
    assert plan(log, strict=True).time == plan(log).time

    assert log.events == events


@law(85)
@given(any_logs())
def test_strict_says_not_started_only_where_it_is_declared(log: Log) -> None:
    loose, strict = plan(log), plan(log, strict=True)

    assert [about(repair) for repair in strict.repairs] == [about(repair) for repair in loose.repairs]
    for one, other in zip(loose.lost_calls(), strict.lost_calls(), strict=True):
        basis = other.data["metadata"].get("basis")
        assert basis != "inferred"
        assert (other.data["metadata"]["risk"] == "tool_not_started") == (basis == "declared")
        assert (one.data["metadata"].get("basis") == "declared") == (basis == "declared")


@law(110)
@given(any_logs())
def test_a_call_with_a_dispatch_by_its_key_is_never_said_to_have_not_started(log: Log) -> None:
    dispatched = {(event.run, event.data.get("call")) for event in log if event.type == "tool_call"}

    for repair in plan(log).lost_calls():
        if (repair.run, repair.data["call"]) in dispatched:
            assert repair.data["metadata"]["risk"] == "tool_outcome_unknown"


@law(110)
@given(foreign_logs(), st.data())
def test_a_dispatch_of_nothing_but_an_id_declares_no_call_that_was_unknown(log: Log, data: st.DataObject) -> None:
    rows = [Row(event.type, dict(event.data), event.run, event.time) for event in log]
    known = [at for at, row in enumerate(rows) if row.type == "tool_call" and set(row.data) & {"name", "arguments"}]
    if not known:
        return
    before = plan(log)
    at = data.draw(st.sampled_from(known))
    rows[at].data.pop("name", None)
    rows[at].data.pop("arguments", None)

    after = plan(log_of(rows))

    unknown = {key for key, basis in risks(before).items() if basis != "declared"}
    declared = {key for key, basis in risks(after).items() if basis == "declared"}
    assert not unknown & declared


@law(50)
@given(any_logs(), st.randoms(use_true_random=False))
def test_clocks_change_nothing_but_the_time_of_the_repairs(log: Log, random: Any) -> None:
    turned = Log()
    for event in log:
        time = random.randrange(-(10**12), 10**12)
        turned.append(event.type, event.data, run=event.run, time=time)

    assert without_time(plan(turned)) == without_time(plan(log))
    real = [event.time for event in turned if event.type not in ("session_resume", "damage")]
    assert plan(turned).time == (real[-1] if real else 0)


@law(40)
@given(any_logs())
def test_repairs_rest_on_lines_of_the_log(log: Log) -> None:
    for repair in plan(log).repairs:
        assert list(repair.because) == sorted(set(repair.because))
        assert all(0 <= seq < len(log) for seq in repair.because)


@law(40)
@given(any_logs())
def test_findings_are_a_sentence_each_about_lines_of_the_log(log: Log) -> None:
    for finding in plan(log).findings:
        assert finding.message
        assert all(0 <= seq < len(log) for seq in finding.seqs)


@law(50)
@given(foreign_logs(), foreign_logs())
def test_runs_do_not_touch_each_other(one: Log, other: Log) -> None:
    """Two logs, each in runs of its own and without marks that hold for all runs, plan alone as they plan together."""
    quiet = {"damage", "session_copied", "session_resume"}
    mixed, alone = Log(), (Log(), Log())
    both = [
        (which, log.events[at])
        for at in range(max(len(one), len(other)))
        for which, log in enumerate((one, other))
        if at < len(log) and log.events[at].type not in quiet
    ]
    for which, event in both:
        data = {name: value for name, value in event.data.items() if name not in ("call", "completes")}
        mixed.append(event.type, data, run=f"{which} {event.run}")
        alone[which].append(event.type, data, run=f"{which} {event.run}")
        alone[1 - which].append("x.gap", {})
    for which in (0, 1):
        theirs = [repair for repair in plan(mixed).repairs if repair.run.startswith(f"{which} ")]
        assert [bare(repair) for repair in theirs] == [bare(repair) for repair in plan(alone[which]).repairs]


def bare(repair: Repair) -> dict[str, Any]:
    """A repair without what it says of other runs."""
    told = repair.to_json()
    return told | {"data": {name: value for name, value in told["data"].items() if name not in ("open", "waiting")}}


@pytest.mark.parametrize("type", ["user_message", "x.note", "turn_start"])
def test_an_append_that_raises_leaves_the_plan_as_it_was(type: str) -> None:
    log = log_of([Row("turn_start", {"turn": 1})])
    before = plan(log).to_json()

    with pytest.raises(InvalidEvent):
        log.append(type, {"parts": float("nan"), "turn": float("nan")})

    assert plan(log).to_json() == before
