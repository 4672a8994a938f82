"""Patching a list of messages that has no log: what is unanswered is answered in place, all else is as it was."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transcript.test_laws import law
from turnwal.core.errors import InvalidEvent, InvalidName
from turnwal.testing.strategies import Row, log_of, session_rows
from turnwal.transcript.check import check
from turnwal.transcript.patching import LOST, patch
from turnwal.transcript.render import render
from turnwal.transcript.targets import TARGETS

targets = pytest.mark.parametrize("target", sorted(TARGETS))


def answers(value: Any) -> int:
    """How often the words of an unknown outcome stand in JSON data."""
    if isinstance(value, str):
        return value.count(LOST)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(answers, items))


@targets
@law(80)
@given(rows=session_rows())
def test_a_healthy_list_comes_back_equal(target: str, rows: list[Row]) -> None:
    messages = render(log_of(rows), target, waiting="placeholder").messages
    assert patch(target, messages) == messages


@targets
@law(120)
@given(rows=session_rows(), data=st.data())
def test_a_list_that_was_cut_anywhere_is_answered(target: str, rows: list[Row], data: st.DataObject) -> None:
    messages = render(log_of(rows), target, waiting="placeholder").messages
    cut = messages[: data.draw(st.integers(0, len(messages)), label="cut")]
    before = copy.deepcopy(cut)
    broken = [problem for problem in check(target, cut) if problem.code == "unanswered_call"]
    patched = patch(target, cut)
    assert cut == before
    assert [problem for problem in check(target, patched) if problem.code in ("unanswered_call", "results_apart")] == []
    assert (answers(patched) > answers(cut)) is bool(broken)
    assert patch(target, patched) == patched


@targets
def test_what_is_no_list_of_messages_is_refused(target: str) -> None:
    with pytest.raises(InvalidEvent, match="no list"):
        patch(target, "messages")  # type: ignore[arg-type]
    with pytest.raises(InvalidEvent, match="no list"):
        patch(target, [1])  # type: ignore[list-item]


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(InvalidName, match="no such target"):
        patch("gpt", [])
