"""The laws of transcripts, for every target, on logs that a session wrote and on logs that nobody sane wrote."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core.test_laws import TIMES
from turnwal.core.log import Log
from turnwal.core.recovery import recover
from turnwal.testing.strategies import Row, foreign_rows, log_of, session_rows
from turnwal.transcript.check import check
from turnwal.transcript.conversation import Outcomes
from turnwal.transcript.render import Rendering, render
from turnwal.transcript.targets import TARGETS

targets = pytest.mark.parametrize("target", sorted(TARGETS))


def law(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The same examples in every run."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        max_examples=examples * TIMES, derandomize=TIMES == 1, database=None, deadline=None, suppress_health_check=slow
    )


def rendered(log: Log, target: str, outcomes: Outcomes = "note") -> Rendering:
    """What the provider would be sent, waiting calls included."""
    return render(log, target, waiting="placeholder", outcomes=outcomes, partial=True)


@targets
@law(150)
@given(rows=session_rows(), outcomes=st.sampled_from(["note", "replace"]))
def test_what_a_session_leaves_at_any_moment_is_a_request_that_checks(
    target: str, rows: list[Row], outcomes: Outcomes
) -> None:
    log = log_of(rows)
    before = rendered(log, target, outcomes)
    assert check(target, before.messages, system=before.system) == []
    recover(log)
    after = rendered(log, target, outcomes)
    assert check(target, after.messages, system=after.system) == []


@targets
@law(250)
@given(rows=foreign_rows())
def test_what_nobody_sane_wrote_is_a_request_that_checks(target: str, rows: list[Row]) -> None:
    made = rendered(log_of(rows), target)
    assert check(target, made.messages, system=made.system) == []


@targets
@law(60)
@given(rows=session_rows())
def test_rendering_again_and_again_gives_what_rendering_once_gives(target: str, rows: list[Row]) -> None:
    growing = Log()
    again = rendered(growing, target)
    for row in rows:
        growing.append(row.type, row.data, run=row.run, time=row.time)
        again = rendered(growing, target)
    once = rendered(log_of(rows), target)
    assert json.dumps(again.messages) == json.dumps(once.messages)
    assert again == once


@targets
@law(60)
@given(rows=session_rows())
def test_what_a_caller_does_to_the_messages_changes_no_later_rendering(target: str, rows: list[Row]) -> None:
    log = log_of(rows)
    first = rendered(log, target)
    kept = json.dumps(first.messages)
    _spoil(first.messages)
    assert json.dumps(rendered(log, target).messages) == kept


def _spoil(value: Any) -> None:
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _spoil(item)
    if isinstance(value, (dict, list)):
        value.clear()
