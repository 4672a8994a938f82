"""Which call a record is about, and what is owed: logs at the edges of the rules."""

import pytest

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
    log_of,
    note,
    result,
    risks,
)
from turnwal.core.log import Log
from turnwal.core.recovery import plan, recover


def test_a_result_with_a_lone_surrogate_is_a_result() -> None:
    log = log_of(DURABLE, ask("a"), dispatch("a", "1.0"), result("a", "1.0", text="ab\ud83d"))

    assert risks(log) == {}


def test_a_repeated_result_with_lone_surrogates_has_the_same_content() -> None:
    log = log_of(
        DURABLE,
        ask("a"),
        result("a", "1.0", text="\ud83d"),
        result("a", "1.0", text="\ud83d"),
        result("a", "1.0", text="\udc00"),
    )

    says = [finding.message for finding in plan(log).findings if finding.code == "duplicate_result"]
    assert [("the same content" in message) for message in says] == [True, False]


def test_a_later_attempt_of_a_call_without_result_is_its_dispatch() -> None:
    log = log_of(DURABLE, ask("a"), dispatch("a", "1.0", attempt=2))

    assert risks(log) == {"1.0": "unknown"}
    assert [repair.type for repair in plan(log).repairs] == ["tool_result", "tool_outcome", "turn_end"]


def test_a_later_attempt_without_a_key_leaves_no_call_that_it_fits_not_started() -> None:
    log = log_of(DURABLE, ask("a"), result("a"), ask("a"), dispatch("a", attempt=2))

    assert risks(log) == {"3.0": "unknown"}


def test_a_later_attempt_ends_the_waiting_of_a_call_without_result() -> None:
    log = log_of(DURABLE, ask("a"), note("tool_suspended", "a", "1.0"), dispatch("a", "1.0", attempt=2))

    assert risks(log) == {"1.0": "unknown"}


def test_a_later_attempt_keeps_the_key_of_a_dispatch_on_line_0() -> None:
    log = log_of(dispatch("a"), DURABLE, dispatch("a", "0.d", attempt=2))

    outcomes = [repair.data for repair in plan(log).repairs if repair.type == "tool_outcome"]
    assert [data["call"] for data in outcomes] == ["0.d"]


@pytest.mark.parametrize("rows", [(DURABLE,), (DURABLE, STEP)], ids=["outside a step", "inside a step"])
def test_a_dispatch_that_names_a_message_to_come_is_kept_when_the_message_comes(rows: tuple[Row, ...]) -> None:
    key = f"{len(rows) + 1}.0"

    log = log_of(*rows, dispatch("z", key), ask("a"))

    assert risks(log) == {key: "unknown"}


def test_a_call_answered_by_its_key_before_it_was_asked_for_is_not_said_to_have_never_started() -> None:
    log = log_of(DURABLE, dispatch("z", "3.0"), result("z", "3.0"), ask("a"))

    assert risks(log) == {"3.0": "unknown"}


def test_a_dispatch_whose_own_key_was_named_before_is_owed_once() -> None:
    log = log_of(DURABLE, dispatch("a", "2.d"), dispatch("b"))

    recover(log)

    assert not plan(log)


def test_a_completed_message_does_not_owe_a_part_that_was_answered() -> None:
    log = log_of(
        DURABLE, ask("a", complete=False), dispatch("a", "1.0"), result("a", "1.0"), ask("a", "b", completes=1)
    )

    assert risks(log) == {"4.1": "declared"}


def test_a_completed_message_does_not_owe_a_part_that_was_answered_in_a_closed_step() -> None:
    log = log_of(
        DURABLE,
        STEP,
        ask("a", complete=False),
        dispatch("a", "2.0"),
        result("a", "2.0"),
        STEP_END,
        ask("a", completes=2),
    )

    assert risks(log) == {}


def test_a_third_version_keeps_the_keys_of_the_first_and_the_second() -> None:
    log = log_of(
        DURABLE,
        STEP,
        ask("a", complete=False),
        ask("a", "b", complete=False, completes=2),
        ask("a", "b", "c", completes=3),
    )

    assert risks(log) == {"2.0": "declared", "3.1": "declared", "4.2": "declared"}


def test_a_message_cannot_complete_itself_or_a_later_one() -> None:
    log = log_of(DURABLE, ask("a", completes=1), ask("b", completes=9))

    assert risks(log) == {"1.0": "declared", "2.0": "declared"}


def test_an_equal_call_asked_again_outside_a_step_counts_a_dispatch_that_left_its_arguments_out() -> None:
    log = log_of(DURABLE, ("tool_call", {"id": "a"}), result("a"), ask("a"))

    assert risks(log) == {"3.0": "unknown"}


def test_a_call_that_a_closed_turn_asked_for_is_no_dispatch_without_request() -> None:
    log = log_of(DURABLE, ask("a"), TURN_END, DURABLE, dispatch("a", "1.0"))

    assert codes(log) == ["dangling_call"]
    assert risks(log) == {"1.0": "unknown"}


def test_an_older_place_of_lost_bytes_does_not_hide_a_newer_one() -> None:
    lost = [("damage", {"kind": "lost", "after": after}) for after in (1, -1)]

    assert risks(log_of(DURABLE, ask("a"), lost[0], lost[1])) == {"1.0": "unknown"}


def test_an_older_place_of_torn_bytes_does_not_hide_a_newer_one() -> None:
    torn = [("damage", {"kind": "torn", "after": after}) for after in (1, -1)]

    assert risks(log_of(SILENT, STEP, ask("a"), STEP_END, torn[0], torn[1])) == {"2.0": "inferred"}
    assert risks(log_of(SILENT, ask("a"), dispatch("b"), torn[0], torn[1])) == {"1.0": "unknown", "2.d": "unknown"}


def test_the_first_event_cannot_be_earlier_than_the_one_before_it() -> None:
    log = Log()
    log.append("user_message", {}, time=-5)

    assert codes(log) == []


def test_recovery_is_not_refused_where_the_hints_of_a_dispatch_are_as_deep_as_data_may_be() -> None:
    hints: dict[str, object] = {"read_only": True}
    for _ in range(198):
        hints = {"deeper": hints}
    log = log_of(DURABLE, ask("a"), dispatch("a", "1.0", hints=hints, hints_from="declared"))

    recover(log)

    assert not plan(log)


def test_a_field_named_format_is_a_version_only_where_a_version_stands() -> None:
    log = log_of(("user_message", {"format": 7}))

    assert not plan(log)


def test_results_come_in_the_order_of_their_keys_as_numbers_whenever_they_were_dispatched() -> None:
    log = log_of(
        DURABLE,
        STEP,
        ask(*"abcdefghijkl"),
        *(note("tool_suspended", "k", f"2.{index}") for index in range(12)),
        STEP_END,
        TURN_END,
        DURABLE,
        ask("new"),
        *(dispatch("k", f"2.{index}") for index in (11, 2, 10)),
    )

    assert list(risks(log)) == ["2.2", "2.10", "2.11", "18.0"]


def test_steps_and_turns_are_closed_innermost_first() -> None:
    steps = [("step_start", {"step": number}) for number in (1, 2)]
    log = log_of(DURABLE, *steps, ("turn_start", {"turn": 2}), ("step_start", {"step": 3}))

    closed = [(repair.type, repair.data.get("step", repair.data["turn"])) for repair in plan(log).repairs]

    assert closed == [("step_end", 3), ("turn_end", 2), ("step_end", 2), ("step_end", 1), ("turn_end", 1)]


def test_a_call_that_is_dispatched_later_belongs_to_the_turn_that_is_open_then() -> None:
    waiting = (DURABLE, STEP, ask("a"), note("tool_suspended", "a", "2.0"), STEP_END, TURN_END)
    again = ("turn_start", {"turn": 2, "dispatch": "durable", "resumes": "2.0"})

    assert risks(log_of(*waiting, again)) == {}
    assert risks(log_of(*waiting, again, dispatch("a", "2.0"))) == {"2.0": "unknown"}
    assert risks(log_of(*waiting, again, dispatch("a"))) == {"2.0": "unknown"}
    assert risks(log_of(*waiting, again, dispatch("a", "2.0"), ("turn_end", {"turn": 2}))) == {}


def test_a_call_that_may_have_been_dispatched_makes_its_repetition_outside_a_step_unknown() -> None:
    log = log_of(
        DURABLE,
        ask("a", arguments='{"x":1}'),
        ask("a", arguments='{"x":2}'),
        ("tool_call", {"id": "a"}),
        result("a"),
        result("a"),
        ask("a", arguments='{"x":1}'),
        ask("a", arguments='{"x":2}'),
    )

    assert risks(log) == {"6.0": "unknown", "7.0": "unknown"}


def test_a_dispatch_by_id_means_the_call_of_the_open_step_before_those_of_its_turn() -> None:
    log = log_of(DURABLE, ask("a"), STEP, ask("a", arguments='{"x":1}'), ("tool_call", {"id": "a"}))

    assert risks(log) == {"1.0": "declared", "3.0": "unknown"}


def test_a_key_reaches_a_call_of_an_outer_turn() -> None:
    log = log_of(DURABLE, ask("a", "b"), ("turn_start", {"turn": 2}), result("a", "1.0"))

    assert risks(log) == {"1.1": "declared"}
