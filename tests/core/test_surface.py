"""What a model sees: the fold against a naive one, and every refusal of a replace."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.build import DURABLE, STEP, STEP_END, TURN_END, Row, ask, dispatch, extend, log_of, note, result
from turnwal.core.errors import InvalidEvent
from turnwal.core.line import Event
from turnwal.core.log import Log
from turnwal.core.surface import Surface

TALK: tuple[Row, ...] = (
    ("user_message", {"parts": []}),
    ask("a", "b"),
    result("a", "1.0"),
    result("b", "1.1"),
    ("user_message", {"parts": []}),
    ask("c"),
    result("c", "5.0"),
)

PRUNED: tuple[Row, ...] = (TALK[0], ask("a"), result("a", "1.0"), result("a", "1.0", replace=[2, 2]))


def summary(first: int, last: int) -> Row:
    return ("user_message", {"parts": [], "replace": [first, last]})


def seen(log: Log, run: str = "main") -> list[int]:
    return [event.seq for event in log.surface(run)]


def naive(events: list[Event], run: str) -> list[int]:
    """The rule, word by word, over a whole list."""
    surface = ("system_message", "user_message", "assistant_message", "tool_result", "tool_outcome")
    placed: list[tuple[int, int, Event]] = []
    for event in events:
        if event.run != run or event.type not in surface:
            continue
        replaced = event.data.get("replace")
        completes = event.data.get("completes") if event.type == "assistant_message" else None
        position = event.seq
        if replaced is not None:
            position = replaced[0]
            placed = [entry for entry in placed if not replaced[0] <= entry[0] <= replaced[1]]
        elif completes is not None:
            for entry in placed:
                if entry[2].seq == completes and entry[2].type == "assistant_message":
                    position = entry[0]
                    placed.remove(entry)
                    break
        placed.append((position, event.seq, event))
    return [seq for _, seq, _ in sorted(placed, key=lambda entry: entry[:2])]


@st.composite
def surface_rows(draw: st.DrawFn) -> list[Row]:
    rows: list[Row] = []
    for seq in range(draw(st.integers(1, 25))):
        run = draw(st.sampled_from(["main", "main", "sub"]))
        data: dict[str, Any] = {"parts": []}
        type = draw(st.sampled_from(["user_message", "assistant_message", "tool_result", "turn_start", "x.note"]))
        if type in ("user_message", "assistant_message") and draw(st.booleans()):
            first = draw(st.integers(0, seq))
            data["replace"] = [first, draw(st.integers(first, seq))]
        elif type == "assistant_message" and draw(st.booleans()):
            data["completes"] = draw(st.integers(0, seq))
        rows.append((type, data, run))
    return rows


@settings(max_examples=150, derandomize=True, deadline=None)
@given(surface_rows())
def test_the_fold_is_the_naive_one_and_the_memoised_one(rows: list[Row]) -> None:
    log, folds = Log(), {"main": Surface(), "sub": Surface()}
    for row in rows:
        try:
            extend(log, [row])
        except InvalidEvent:
            continue
        folds[log.events[-1].run].add(log.events[-1])
        for run, fold in folds.items():
            assert seen(log, run) == [event.seq for event in fold] == naive(list(log), run)
    again = Log.read(log.lines())
    assert seen(again) == seen(log)
    assert seen(again, "sub") == seen(log, "sub")


@settings(max_examples=150, derandomize=True, deadline=None)
@given(surface_rows())
def test_the_fold_of_a_log_that_nobody_checked_is_the_naive_one(rows: list[Row]) -> None:
    prev = "0" * 64
    events = [
        Event(seq=seq, prev=prev, time=0, type=row[0], data=row[1], run=row[2] if len(row) == 3 else "main")
        for seq, row in enumerate(rows)
    ]
    for run in ("main", "sub"):
        fold = Surface()
        for event in events:
            if event.run == run:
                fold.add(event)
        assert [event.seq for event in fold] == naive(events, run)


def test_two_compactions_in_a_row_come_out_right() -> None:
    log = log_of(*TALK, summary(0, 3), ("user_message", {"parts": []}), summary(0, 6))

    assert seen(log) == [9, 8]


def test_a_pruned_result_goes_into_a_later_summary() -> None:
    log = log_of(*TALK, result("a", "1.0", replace=[2, 2]))
    assert seen(log) == [0, 1, 7, 3, 4, 5, 6]

    extend(log, [summary(1, 3)])
    assert seen(log) == [0, 8, 4, 5, 6]


def test_a_pruned_result_may_be_pruned_again() -> None:
    log = log_of(*TALK, result("a", "1.0", replace=[2, 2]), result("a", "1.0", replace=[2, 2]))

    assert seen(log) == [0, 1, 8, 3, 4, 5, 6]


def test_a_later_version_of_a_message_takes_the_place_of_the_earlier_one() -> None:
    log = log_of(
        DURABLE,
        STEP,
        ask("a", complete=False),
        dispatch("a", "2.0"),
        result("a", "2.0"),
        ask("a", "b", complete=False, completes=2),
        ask("a", "b", completes=5),
    )

    assert seen(log) == [6, 4]


def test_a_version_of_a_message_that_is_hidden_stands_where_it_was_written() -> None:
    log = log_of(*TALK, summary(0, 3), ask(completes=1))

    assert seen(log) == [7, 4, 5, 6, 8]


@pytest.mark.parametrize(
    ("rows", "replace", "says"),
    [
        (TALK, [0, 1], r"parts the call 1\.0 from its result at seq 2"),
        (TALK, [0, 2], r"parts the call 1\.1 from its result at seq 3"),
        (TALK, [2, 4], r"parts the call 1\.0 from its result at seq 2"),
        (TALK, [6, 6], r"parts the call 5\.0 from its result at seq 6"),
        (TALK, [9, 12], r"reaches past the last event, which has seq 6"),
        (TALK, [0, 7], r"reaches past the last event, which has seq 6"),
        ((*TALK, summary(0, 4)), [2, 6], r"cuts through the replace of \[0, 4\] at seq 7"),
        ((*TALK, summary(1, 4)), [0, 3], r"cuts through the replace of \[1, 4\] at seq 7"),
        ((*TALK, summary(0, 4)), [1, 3], r"covers nothing that is visible"),
        ((DURABLE, STEP, ask("a")), [0, 2], r"covers the call 2\.0, which is owed a result"),
        ((DURABLE, STEP, ask("a"), dispatch("a", "2.0")), [2, 2], r"covers the call 2\.0, which is owed a result"),
        (
            (DURABLE, STEP, ask("a"), note("tool_suspended", "a", "2.0"), STEP_END, TURN_END),
            [2, 2],
            r"covers the call 2\.0, which is waiting",
        ),
        ((*PRUNED,), [0, 1], r"parts the call 1\.0 from its result at seq 3"),
        ((*PRUNED, result("a", "1.0", replace=[2, 2])), [2, 2], r"parts the call 1\.0 from its result at seq 4"),
        (
            (DURABLE, STEP, ask("a", complete=False), ask("a", completes=2), result("a", "2.0"), STEP_END, TURN_END),
            [2, 3],
            r"parts the call 2\.0 from its result at seq 4",
        ),
        (
            (DURABLE, STEP, ask("a", complete=False), ask("a", "b", completes=2), dispatch("b", "3.1")),
            [2, 3],
            r"covers the call 2\.0, which is owed a result",
        ),
        (
            (DURABLE, STEP, ask("a"), ask("a"), result("a", "2.0"), STEP_END, TURN_END),
            [3, 3],
            r"parts the call 2\.0 from its result at seq 4",
        ),
        (
            (DURABLE, STEP, ask("a"), ask("a"), result("a", "2.0"), STEP_END, TURN_END),
            [3, 4],
            r"parts the call 2\.0 from its result at seq 4",
        ),
    ],
)
def test_a_replace_that_would_make_the_surface_a_lie_is_refused_naming_the_seqs(
    rows: tuple[Row, ...], replace: list[int], says: str
) -> None:
    log = log_of(*rows)
    before, visible, head = list(log.lines()), seen(log), log.head

    with pytest.raises(InvalidEvent, match=re.escape(f"the replace of [{replace[0]}, {replace[1]}] ") + says):
        log.append("user_message", {"parts": [], "replace": replace})

    assert (list(log.lines()), seen(log), log.head) == (before, visible, head)


def test_the_parts_of_an_incomplete_message_that_nobody_dispatched_are_not_owed_and_may_be_hidden() -> None:
    log = log_of(DURABLE, STEP, ask("a", complete=False), summary(2, 2))

    assert seen(log) == [3]


def test_a_result_replaces_only_a_result_of_its_own_call() -> None:
    log = log_of(*TALK)

    for range in ([2, 3], [1, 2], [3, 3], [4, 4]):
        with pytest.raises(InvalidEvent, match=r"only a result of its own call, not seq \d"):
            log.append("tool_result", {"call": "1.0", "id": "a", "parts": [], "replace": range})


@pytest.mark.parametrize("replace", [[], [1], [1, 0], [-1, 0], [0, 1, 2], ["0", 1], [True, 1], "0-1", {"0": 1}, 5])
def test_a_replace_that_is_no_range_is_refused(replace: object) -> None:
    log = log_of(*TALK)

    with pytest.raises(InvalidEvent, match=r"data\.replace is .*, not a list of two seqs"):
        log.append("user_message", {"replace": replace})


@pytest.mark.parametrize("replace", [[], [0, 0], "text"])
def test_what_no_model_sees_replaces_nothing(replace: object) -> None:
    log = log_of(*TALK)

    with pytest.raises(InvalidEvent, match="a turn_start is not on the surface"):
        log.append("turn_start", {"replace": replace})


def test_an_application_may_call_a_field_of_its_own_replace() -> None:
    log = log_of(*TALK, ("x.edit", {"replace": "old", "with": "new"}))

    assert log.events[-1].data == {"replace": "old", "with": "new"}


def test_a_replace_of_null_is_none() -> None:
    log = log_of(DURABLE, ask("a"), ("tool_result", {"call": "1.0", "replace": None}))

    assert seen(log) == [1, 2]
