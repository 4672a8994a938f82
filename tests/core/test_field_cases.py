"""Histories that broke in public, as small logs. The number of each test is the number of its case."""

from typing import Any

import pytest

import turnwal
from tests.core.build import (
    DURABLE,
    SILENT,
    STEP,
    STEP_END,
    TURN_END,
    Row,
    ask,
    codes,
    dispatch,
    extend,
    log_of,
    note,
    result,
    risks,
)
from turnwal.core import keys
from turnwal.core.chain import digest
from turnwal.core.errors import InvalidEvent, Refused, TooNew
from turnwal.core.fork import check_boundary
from turnwal.core.line import GENESIS, Event, Unreadable, read
from turnwal.core.log import Log
from turnwal.core.recovery import Repair, interrupted, plan, recover

USER: Row = ("user_message", {"parts": [{"type": "text", "content": "go"}]})
INTERRUPTED = [("step_end", "interrupted"), ("turn_end", "interrupted")]


def ends(log: Log) -> list[tuple[str, str]]:
    """How recovery closes what is no call."""
    return [
        (repair.type, repair.data.get("outcome") or repair.data["reason"])
        for repair in plan(log).repairs
        if repair.type in ("step_end", "turn_end")
    ]


def lost(log: Log, key: str) -> Repair:
    return next(repair for repair in plan(log).lost_calls() if repair.data["call"] == key)


def text(repair: Repair) -> str:
    words: str = repair.data["parts"][0]["content"]
    return words


def test_f01_a_dangling_call_at_the_tail_is_closed_by_appending_once() -> None:
    log = log_of(DURABLE, USER, STEP, ask("c1"), dispatch("c1", "3.0"))
    before = list(log.lines())

    assert risks(log) == {"3.0": "unknown"}
    assert ends(log) == INTERRUPTED
    recover(log)

    assert list(log.lines())[: len(before)] == before
    assert [event.type for event in log.since(len(before))] == ["tool_result", "step_end", "turn_end"]
    assert not recover(log)


def test_f01_without_a_dispatch_the_call_did_not_start() -> None:
    log = log_of(DURABLE, USER, STEP, ask("c1"))

    assert risks(log) == {"3.0": "declared"}
    assert lost(log, "3.0").data["metadata"]["retry"] == "safe"


def test_f02_a_log_that_only_says_running_or_pending_claims_nothing_it_does_not_show() -> None:
    running = log_of(SILENT, USER, STEP, ask("c1"), dispatch("c1"))
    pending = log_of(SILENT, USER, STEP, ask("c1"))

    assert risks(running) == {"3.0": "unknown"}
    assert risks(pending) == {"3.0": "unknown"}
    assert ends(running) == ends(pending) == INTERRUPTED


def test_f03_a_history_that_ends_on_a_call_is_interrupted_though_nothing_marks_it() -> None:
    log = log_of(DURABLE, USER, ask("c1"), dispatch("c1", "2.0"))

    assert interrupted(log)
    assert risks(log) == {"2.0": "unknown"}
    assert ends(log) == [("turn_end", "interrupted")]


def test_f04_of_three_parallel_calls_only_the_unanswered_one_is_answered() -> None:
    asked = (DURABLE, USER, STEP, ask("c1", "c2", "c3"))
    log = log_of(*asked, *(dispatch(f"c{n + 1}", f"3.{n}") for n in range(3)), result("c1", "3.0"), result("c3", "3.2"))
    siblings = log_of(*asked, dispatch("c1", "3.0"), dispatch("c3", "3.2"), result("c1", "3.0"), result("c3", "3.2"))
    real = [event for event in log if event.type == "tool_result"]

    assert risks(log) == {"3.1": "unknown"}
    assert risks(siblings) == {"3.1": "declared"}
    recover(log)
    assert [event for event in log if event.type == "tool_result"][:2] == real


@pytest.mark.parametrize(("again", "says"), [("v1", "the same content"), ("v2", "different content")])
@pytest.mark.parametrize("key", ["1.0", None], ids=["by key", "by id"])
def test_f07_a_second_result_is_a_finding_that_says_whether_it_differs(again: str, says: str, key: str | None) -> None:
    log = log_of(DURABLE, ask("c1"), dispatch("c1", "1.0"), result("c1", "1.0", text="v1"), TURN_END)
    extend(log, [DURABLE, result("c1", key, text=again)])

    found = [finding for finding in plan(log).findings if finding.seqs == (6,)]

    assert [finding.code for finding in found] == ["duplicate_result" if key else "orphan_result"]
    if key:
        assert says in found[0].message
    assert risks(log) == {}


def test_f07_a_message_stored_twice_in_its_step_does_not_owe_two_results() -> None:
    log = log_of(DURABLE, STEP, ask("c1"), ask("c1"), dispatch("c1", "2.0"), result("c1", "2.0"))

    assert risks(log) == {}
    assert codes(log) == ["duplicate_call"]


def test_f07_a_message_stored_again_after_its_answer_is_the_same_call_in_its_step_only() -> None:
    inside = log_of(DURABLE, STEP, ask("c1"), dispatch("c1", "2.0"), result("c1", "2.0"), ask("c1"))
    outside = log_of(DURABLE, ask("c1"), dispatch("c1", "1.0"), result("c1", "1.0"), ask("c1"))

    assert risks(inside) == {}
    assert risks(outside) == {"4.0": "unknown"}


def test_f08_an_id_that_is_used_again_in_the_next_turn_is_a_new_call() -> None:
    log = log_of(DURABLE, ask("k"), dispatch("k"), result("k"), TURN_END, DURABLE, ask("k"))

    assert risks(log) == {"6.0": "declared"}


@pytest.mark.parametrize("id", ["k", ""])
def test_f08_equal_ids_in_one_message_are_paired_by_position(id: str) -> None:
    asked = (DURABLE, STEP, ask(id, id))

    assert risks(log_of(*asked, dispatch(id), dispatch(id), result(id))) == {"2.1": "unknown"}
    assert risks(log_of(*asked, dispatch(id), dispatch(id), result(id), result(id))) == {}
    assert risks(log_of(*asked, dispatch(id))) == {"2.0": "unknown", "2.1": "unknown"}
    assert risks(log_of(*asked, dispatch(id, "2.1"))) == {"2.0": "declared", "2.1": "unknown"}


def test_f10_a_sub_agent_in_the_log_of_its_parent_has_a_lane_of_its_own() -> None:
    log = log_of(
        DURABLE,
        ask("c1", "c2", "c3"),
        result("c1"),
        ("turn_start", {"turn": 1, "dispatch": "durable"}, "sub"),
        ask("c2", run="sub"),
        result("c2"),
        dispatch("c2", run="sub"),
        result("c3"),
    )

    planned = plan(log)

    assert [(repair.run, repair.type) for repair in planned.repairs] == [
        ("sub", "tool_result"),
        ("sub", "turn_end"),
        ("main", "turn_end"),
    ]
    assert [repair.data["open"] for repair in planned.repairs if repair.type == "turn_end"] == [[0], []]


def test_f11_a_clock_that_goes_backwards_is_recorded_and_changes_nothing() -> None:
    rows = (DURABLE, ask("c1"), dispatch("c1", "1.0"), result("c1", "1.0"), ask("c2"))
    steady, backwards = log_of(*rows), Log()
    for row, time in zip(rows, (2000, 1441, 1400, 1382, 1383), strict=True):
        backwards.append(row[0], row[1], time=time)

    assert [event.time for event in backwards] == [2000, 1441, 1400, 1382, 1383]
    assert [repair.to_json() for repair in plan(backwards).repairs] == [
        repair.to_json() for repair in plan(steady).repairs
    ]
    assert codes(backwards) == ["clock_went_back"] * 3
    recover(backwards)
    assert {event.time for event in backwards.since(5)} == {1383}


def test_f14_equal_histories_give_equal_keys_and_a_fork_keeps_them() -> None:
    log, twin, other = (log_of(DURABLE, USER, ask("c1", "c2", run=run)) for run in ("main", "main", "sub"))
    recover(log)
    forked = turnwal.fork(log, len(log), "fork")
    assert isinstance(forked, Log)
    assert [event.type for event in forked.since(len(log))] == ["session_fork"]
    hashes = [digest(list(each.lines())[2]) for each in (log, twin, other, forked)]

    first = keys.idempotency_key(hashes[0], 0)

    assert first == keys.idempotency_key(hashes[1], 0) == keys.idempotency_key(hashes[3], 0)
    assert len({first, keys.idempotency_key(hashes[0], 1), keys.idempotency_key(hashes[2], 0)}) == 3
    assert len(first) == 32
    assert set(first) <= set("0123456789abcdef")


def test_f14_a_lost_call_carries_its_key_and_is_never_said_to_be_safe_to_repeat() -> None:
    log = log_of(DURABLE, ask("pay"), dispatch("pay", "1.0", key="5" * 32, keyed=True))

    metadata = lost(log, "1.0").data["metadata"]

    assert metadata["key"] == "5" * 32
    assert metadata["retry"] == "same_key"
    assert metadata["dispatch_seq"] == 2


def test_f16_an_answer_that_says_unknown_closes_its_call() -> None:
    metadata = {"synthetic": True, "risk": "tool_outcome_unknown", "retry": "verify_first"}
    log = log_of(DURABLE, STEP, ask("c1"), dispatch("c1", "2.0"), result("c1", "2.0", is_error=True, metadata=metadata))

    assert risks(log) == {}
    assert ends(log) == INTERRUPTED
    assert codes(log) == []


@pytest.mark.parametrize(
    ("replace", "says"),
    [([1, 2], r"\[1, 2\] parts the call 1\.1 from its result at seq 3"), ([3, 4], r"parts the call 1\.1")],
)
def test_f27_a_compaction_between_a_call_and_its_result_is_refused(replace: list[int], says: str) -> None:
    log = log_of(USER, ask("c1", "c2"), result("c1"), result("c2"), USER)

    with pytest.raises(InvalidEvent, match=says):
        log.append("user_message", {"parts": [], "replace": replace})


@pytest.mark.parametrize(
    "more", [{"is_error": True}, {"metadata": {"synthetic": True}}, {"parts": []}], ids=["error", "synthetic", "empty"]
)
def test_f27_every_kind_of_answer_counts_as_one(more: dict[str, Any]) -> None:
    log = log_of(DURABLE, ask("c1"), ("tool_result", {"call": "1.0", "id": "c1", **more}))

    log.append("user_message", {"parts": [], "replace": [1, 2]})

    assert [event.seq for event in log.surface()] == [3]


def test_f28_a_call_whose_approval_was_pending_did_not_start_and_the_question_is_void() -> None:
    log = log_of(DURABLE, STEP, ask("c1"), note("approval_request", "c1", "2.0"))

    recover(log)

    told = [(event.type, event.data.get("decision")) for event in log.since(4)]
    assert told == [("tool_result", None), ("approval_response", "void"), ("step_end", None), ("turn_end", None)]
    assert log.events[4].data["metadata"]["basis"] == "declared"


def test_f28_approved_but_not_begun_did_not_start() -> None:
    approved = (note("approval_request", "c1", "2.0"), note("approval_response", "c1", "2.0", decision="granted"))

    assert risks(log_of(DURABLE, STEP, ask("c1"), *approved)) == {"2.0": "declared"}
    assert risks(log_of(SILENT, STEP, ask("c1"), *approved)) == {"2.0": "unknown"}
    assert risks(log_of(SILENT, STEP, ask("c1"), approved[0])) == {"2.0": "inferred"}


def test_f28_a_stale_answer_does_not_approve_a_later_call() -> None:
    log = log_of(SILENT, ask("c1"), note("approval_request", "c1", "1.0"))
    recover(log)
    extend(
        log,
        [
            SILENT,
            ask("c1"),
            note("approval_request", "c1"),
            note("approval_response", "c1", "1.0", decision="granted"),
        ],
    )

    assert risks(log) == {"7.0": "inferred"}


def test_f30_arguments_that_were_cut_off_reach_no_tool() -> None:
    cut = ask("c1", arguments='{"path":"a.txt","text":"hel')
    log = log_of(SILENT, STEP, cut)

    assert risks(log) == {"2.0": "inferred"}
    assert risks(log_of(DURABLE, STEP, cut)) == {"2.0": "declared"}
    assert risks(log_of(SILENT, STEP, cut, dispatch("c1", "2.0"))) == {"2.0": "unknown"}
    recover(log)
    assert log.events[2].data["parts"][0]["arguments"] == '{"path":"a.txt","text":"hel'


@pytest.mark.parametrize(
    ("arguments", "more", "basis"),
    [
        ("[]", {}, "inferred"),
        ("5", {}, "inferred"),
        ("null", {}, "inferred"),
        ("", {}, "unknown"),
        (" \n", {}, "unknown"),
        ("{}", {}, "unknown"),
        ({"x": 1}, {}, "unknown"),
        ("SELECT 1", {"format": "text"}, "unknown"),
        ("[" * 100_000, {}, "inferred"),
        ('{"n":' + "9" * 9_999 + "}", {}, "inferred"),
    ],
)
def test_f30_arguments_are_an_object_or_free_text(arguments: object, more: dict[str, Any], basis: str) -> None:
    part = {"type": "tool_call", "id": "c1", "name": "tool", "arguments": arguments, **more}

    assert risks(log_of(SILENT, STEP, ("assistant_message", {"parts": [part]}))) == {"2.0": basis}


def test_f33_the_lost_call_of_a_delegating_parent_says_which_child_it_was() -> None:
    log = log_of(DURABLE, ask("c1"), dispatch("c1", "1.0", child={"session": "child-7"}))

    assert lost(log, "1.0").data["metadata"]["child"] == {"session": "child-7"}


def test_f34_a_fork_in_the_middle_of_a_batch_is_refused_naming_the_turn() -> None:
    log = log_of(USER, DURABLE, ask("c1", "c2"), dispatch("c1", "2.0"), result("c1", "2.0"))

    for at in (2, 3, 4, 5):
        with pytest.raises(Refused, match="turn 1, started at seq 1"):
            check_boundary(log, at)
    check_boundary(log, 1)
    with pytest.raises(Refused, match="5 events, 6 were asked for"):
        check_boundary(log, 6)


@pytest.mark.parametrize("odd", ["ab\ud83d", "\udc8f", "\ude00\ud83d", "\ud83d" + "\ude00"], ids=ascii)
def test_f35_no_text_makes_an_append_a_plan_or_a_recovery_fail(odd: str) -> None:
    log = log_of(
        DURABLE,
        ("user_message", {"parts": [{"type": "text", "content": odd}]}),
        ask(odd, name=odd, arguments=f'{{"v":"{odd}"}}'),
        ("tool_call", {"id": odd, "name": odd, "arguments": f'{{"v":"{odd}"}}'}),
    )
    extend(log, [result(odd, text=odd), result(odd, text=odd), ask(odd, name=odd)])
    recover(log)

    again = Log.read(log.lines())

    assert again.events == log.events
    assert not plan(again)
    assert log.events[-2].data["id"] == read(list(log.lines())[2]).data["parts"][0]["id"]


def test_f36_the_text_of_arguments_is_kept_as_the_model_wrote_it() -> None:
    written = '{"id":2512292042121000001,"x":1e400, "y" : 1.0}'
    log = log_of(DURABLE, ask("c1", arguments=written))

    assert read(list(log.lines())[1]).data["parts"][0]["arguments"] == written
    assert log.append("x.n", {"v": 2**60 + 1}).data == {"v": 2**60 + 1}
    for number in (float("nan"), float("inf")):
        with pytest.raises(InvalidEvent, match=r"data\.v"):
            log.append("x.n", {"v": number})
    with pytest.raises(Unreadable, match="NaN"):
        read(list(log.lines())[2].replace(b'{"v":1152921504606846977}', b'{"v":NaN}'))


def event(type: str, data: dict[str, Any], *, ignorable: bool = False) -> Event:
    return Event(seq=0, prev=GENESIS, time=0, type=type, ignorable=ignorable, data=data)


def test_f39_old_events_are_accepted_with_what_they_lack() -> None:
    assert not plan([event("turn_end", {}), event("tool_result", {}), event("session_start", {})])


def test_f39_what_this_version_must_not_step_over_is_refused_naming_line_and_type() -> None:
    with pytest.raises(TooNew, match="line 0 has the unknown type 'new_kind'"):
        plan([event("new_kind", {"closes": "c1"})])
    with pytest.raises(TooNew, match="line 0 declares format 9, this version knows up to 1"):
        plan([event("turn_start", {"format": 9})])
    with pytest.raises(TooNew):
        interrupted([event("x.", {})])


def test_f39_what_may_be_stepped_over_is() -> None:
    assert not plan([event("new_kind", {}, ignorable=True), event("x.mine", {}), event("checkpoint", {})])
    assert not plan([event("user_message", {"parts": [{"type": "of_tomorrow"}], "field_of_tomorrow": 1})])


def test_no_synthetic_text_says_who_interrupted_or_that_a_call_failed() -> None:
    logs = (
        log_of(DURABLE, STEP, ask("c1"), dispatch("c1", "2.0")),
        log_of(DURABLE, STEP, ask("c1")),
        log_of(SILENT, STEP, ask("c1"), STEP_END),
    )

    for log in logs:
        words = text(plan(log).lost_calls()[0]).lower()
        assert not {"user", "fail", "cancel", "error", "succe", "abort"} & set(words.split())
        assert "interrupted" in words
