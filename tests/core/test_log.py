"""The log in memory, its chain and its forks: what an append that fails leaves, and what is refused."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.core.build import DURABLE, TURN_END, ask, dispatch, log_of, result
from turnwal.core.chain import EMPTY, Head
from turnwal.core.errors import Damaged, InvalidEvent, InvalidName, OverLimit, Refused, TurnwalError
from turnwal.core.fork import check_boundary
from turnwal.core.log import Log
from turnwal.core.recovery import open_turns, plan


class Texty(str):
    """Text of a type of its own."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("type", "data", "more"),
    [
        ("nonsense", {}, {}),
        ("x.", {}, {}),
        (5, {}, {}),
        ("user_message", [], {}),
        ("user_message", {"parts": "text"}, {}),
        ("user_message", {"parts": [{"type": 5}]}, {}),
        ("user_message", {"parts": ({"type": "text"},)}, {}),
        ("user_message", {}, {"run": ""}),
        ("user_message", {}, {"run": "r" * 1001}),
        ("user_message", {}, {"time": 1.5}),
        ("user_message", {}, {"time": True}),
        ("user_message", {}, {"time": 2**63}),
        ("user_message", {}, {"ignorable": True}),
        ("tool_call", {"attempt": -1}, {}),
        ("tool_call", {"attempt": "2"}, {}),
        ("tool_call", {"call": None}, {}),
        ("x.a", {1: 2}, {}),
        ("x.a", {"v": {1, 2}}, {}),
    ],
)
def test_an_append_that_is_refused_changes_nothing(type: Any, data: Any, more: dict[str, Any]) -> None:
    log = log_of(DURABLE, ask("a"))
    before = (log.head, list(log.lines()), log.events, log.surface())

    with pytest.raises((InvalidEvent, InvalidName, OverLimit)):
        log.append(type, data, **more)

    assert (log.head, list(log.lines()), log.events, log.surface()) == before


def test_an_event_holds_what_a_reader_reads_never_the_object_of_the_caller() -> None:
    data = {"parts": [{"type": "text", "content": Texty("hi")}]}
    log = Log()

    event = log.append("user_message", data)
    data["parts"].append({"type": "text", "content": "later"})

    assert event.data == {"parts": [{"type": "text", "content": "hi"}]}
    assert type(event.data["parts"][0]["content"]) is str


@pytest.mark.parametrize("name", ["\ud83d\ude00", "\ud83d", "a\ud83d\ude00\udc00"])
def test_the_names_of_runs_and_types_read_back_as_they_are_held(name: str) -> None:
    log = Log()
    log.append(f"x.{name}", {}, run=name)

    again = Log.read(log.lines())

    assert again.events == log.events


def test_a_log_is_never_falsy_and_counts_its_events() -> None:
    log = Log()

    assert log
    assert len(log) == 0
    assert log.head == EMPTY
    assert log.since(0) == ()


@pytest.mark.parametrize("change", ["swap", "drop", "edit", "repeat"])
def test_reading_refuses_lines_that_do_not_follow_from_each_other(change: str) -> None:
    lines = list(log_of(DURABLE, ask("a"), dispatch("a"), result("a"), TURN_END).lines())
    match change:
        case "swap":
            lines[1], lines[2] = lines[2], lines[1]
        case "drop":
            del lines[2]
        case "edit":
            lines[3] = lines[3].replace(b"done", b"none")
        case _:
            lines.insert(2, lines[2])

    with pytest.raises(Damaged):
        Log.read(lines)


@pytest.mark.parametrize(
    "text", ["", "1", "1:", "x:" + "0" * 64, "1:" + "g" * 64, "-1:" + "0" * 64, "9" * 5000 + ":" + "0" * 64]
)
def test_text_that_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        Head.parse(text)


def test_a_head_reads_back() -> None:
    head = log_of(DURABLE).head

    assert Head.parse(str(head)) == head


def test_a_fork_inside_an_open_turn_is_refused_naming_the_turn() -> None:
    log = log_of(("user_message", {}), DURABLE, ask("a", "b"), dispatch("a"), result("a"))

    with pytest.raises(Refused, match="turn 1, started at seq 1, is open after 5 events") as refused:
        check_boundary(log, 5)

    assert "fork at 1" in refused.value.hint
    check_boundary(log, 1)


def test_a_fork_names_the_open_turn_that_began_first_in_whatever_run() -> None:
    log = log_of(("user_message", {}), ("turn_start", {"turn": 7}, "sub"), DURABLE)

    with pytest.raises(Refused, match="turn 7 of run 'sub', started at seq 1"):
        check_boundary(log, 3)


@pytest.mark.parametrize("at", [-1, 0, 4, 10**9])
def test_a_fork_outside_the_log_is_refused_never_clamped(at: int) -> None:
    with pytest.raises(Refused):
        check_boundary(log_of(("user_message", {}), DURABLE, TURN_END), at)


@pytest.mark.parametrize("at", ["x", None, 1.5, True])
def test_a_boundary_that_is_no_number_of_events_is_refused_by_name(at: object) -> None:
    with pytest.raises(Refused, match="is no number of events"):
        check_boundary(log_of(("user_message", {}), DURABLE, TURN_END), at)


def test_open_turns_are_innermost_first_and_runs_before_the_run_they_serve() -> None:
    log = log_of(
        DURABLE,
        ("turn_start", {"turn": 2}),
        ("turn_start", {"turn": 1}, "a"),
        ("turn_start", {"turn": 1}, "b"),
        ("turn_start", {"turn": 3}),
    )

    assert [event.seq for event in open_turns(log)] == [3, 2, 4, 1, 0]


def test_a_plan_changes_nothing_and_needs_only_an_iterator() -> None:
    log = log_of(DURABLE, ask("a"), dispatch("a"))

    def once() -> Iterator[Any]:
        yield from log

    before = list(log.lines())
    assert plan(once()).to_json() == plan(log).to_json()
    assert list(log.lines()) == before


def test_every_refusal_is_one_of_ours_and_says_what_to_do() -> None:
    log = Log()

    with pytest.raises(TurnwalError) as refused:
        log.append("nonsense", {})

    assert refused.value.code == "invalid_event"
    assert refused.value.hint
