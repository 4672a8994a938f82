"""A summary that is accepted anywhere in any history leaves a request that checks, and one that is refused nothing."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transcript.test_laws import law, rendered
from turnwal.core.errors import InvalidEvent
from turnwal.core.log import Log
from turnwal.core.recovery import recover
from turnwal.testing.strategies import Row, foreign_rows, log_of, session_rows
from turnwal.transcript.check import check
from turnwal.transcript.render import render
from turnwal.transcript.targets import TARGETS

targets = pytest.mark.parametrize("target", sorted(TARGETS))


def holds(log: Log, target: str) -> None:
    """What a renderer that grew with the log sends checks, and is what one of the whole sends."""
    made = rendered(log, target)
    assert made.messages == [] or check(target, made.messages, system=made.system) == []
    again = Log.read(log.lines())
    assert rendered(again, target) == made


# of Mistral a history is known that does not check behind a summary
@pytest.mark.parametrize("target", sorted(TARGETS.keys() - {"mistral"}))
@law(60)
@given(rows=session_rows() | foreign_rows(), data=st.data())
def test_a_summary_anywhere_leaves_a_request_that_checks(target: str, rows: list[Row], data: st.DataObject) -> None:
    log = log_of(rows)
    rendered(log, target)
    for number in range(data.draw(st.integers(1, 3))):
        first = data.draw(st.integers(0, len(log)))
        last = data.draw(st.integers(first, len(log)))
        type = data.draw(st.sampled_from(["user_message", "system_message"]))
        text = {"type": "text", "content": f"summary {number}"}
        before = log.head
        try:
            log.append(type, {"parts": [text], "replace": [first, last]})
        except InvalidEvent:
            assert log.head == before
        holds(log, target)
    recover(log)
    holds(log, target)


@targets
@law(60)
@given(rows=session_rows(), data=st.data())
def test_a_pruned_result_leaves_a_request_that_checks(target: str, rows: list[Row], data: st.DataObject) -> None:
    log = log_of(rows)
    rendered(log, target)
    results = [event for event in log if event.type == "tool_result"]
    for event in data.draw(st.lists(st.sampled_from(results), max_size=3)) if results else ():
        pruned = {"parts": [{"type": "text", "content": "(pruned)"}], "replace": [event.seq, event.seq]}
        with suppress(InvalidEvent):  # pruned before
            log.append("tool_result", {"call": event.data["call"], "id": event.data["id"], **pruned}, run=event.run)
        holds(log, target)
    if results:
        with suppress(InvalidEvent):  # something is owed or waits
            log.append("user_message", {"parts": [], "replace": [0, len(log) - 1]})
    holds(log, target)


@targets
def test_a_summary_of_the_end_of_a_long_history_is_merged_with_what_stands_before_it(target: str) -> None:
    rows = [("user_message", "before")]
    for number in range(50):
        rows += [("user_message", f"question {number}"), ("assistant_message", f"answer {number}")]
    last = len(rows) - 1
    for first in range(60, len(rows)):
        log = Log()
        for type, text in rows:
            log.append(type, {"parts": [{"type": "text", "content": text}]})
        render(log, target)
        summary = {"type": "text", "content": "summary"}
        log.append("user_message", {"parts": [summary], "replace": [first, last]})
        assert render(log, target) == render(log.events, target)
