"""What a batch says about what is open after it."""

import json

import pytest

from tests.store.building import lines_of
from turnwal.core.chain import Chained
from turnwal.core.line import read
from turnwal.core.log import Log
from turnwal.store.hints import open_from


def log_with(*events: tuple[str, dict[str, object]]) -> list[bytes]:
    log = Log()
    log.append("session_start", {"id": "s", "format": 1})
    for type, data in events:
        log.append(type, data)
    return lines_of(log)


START = ("turn_start", {"turn": 1, "format": 1, "open": [1], "waiting": []})
END = ("turn_end", {"turn": 1, "reason": "complete", "open": [], "waiting": []})
MESSAGE = ("user_message", {"parts": [{"type": "text", "content": "hello"}]})


def quoting(type: str) -> tuple[str, dict[str, object]]:
    """A message that holds what looks like an event of a type."""
    return "user_message", {"parts": [{"type": type, "open": [7]}]}


@pytest.mark.parametrize(
    ("events", "before", "expected"),
    [
        ([MESSAGE], None, None),
        ([MESSAGE], 3, 3),
        ([START, MESSAGE], None, 1),
        ([START, MESSAGE, END], None, None),
        ([START, MESSAGE, END], 0, None),
        ([("turn_start", {"turn": 1})], None, 1),
        ([("assistant_message", {"parts": []}), MESSAGE], None, 1),
        ([("tool_call", {"id": "a", "name": "f", "arguments": "{}"})], None, 1),
        ([quoting("tool_call"), quoting("turn_start"), quoting("turn_end")], None, None),
        ([START, quoting("turn_end")], None, 1),
    ],
)
def test_the_last_boundary_says_and_else_what_may_leave_something_open(
    events: list[tuple[str, dict[str, object]]], before: int | None, expected: int | None
) -> None:
    assert open_from(log_with(*events), before) == expected


@pytest.mark.parametrize(("event", "expected"), [(START, 1), (END, None)])
def test_a_line_in_another_order_of_keys_says_the_same(
    event: tuple[str, dict[str, object]], expected: int | None
) -> None:
    line = json.loads(log_with(event)[1])
    for keys in (sorted(line), sorted(line, reverse=True)):
        shuffled = json.dumps({key: line[key] for key in keys}, separators=(",", ":")).encode()
        assert open_from([shuffled], 5) == expected


STEP = ("step_start", {"turn": 1, "step": 1})
QUIET_START = ("turn_start", {"turn": 1})
QUIET_END = ("turn_end", {"turn": 1, "reason": "complete"})
CALL = ("tool_call", {"id": "a", "name": "f", "arguments": "{}"})

SPELLINGS = {
    "spaces": lambda line: json.dumps(line).encode(),
    "spaces in the data alone": lambda line: json.dumps(line, separators=(",", ":")).encode().replace(b"[", b"[ "),
    "a space behind open": lambda line: (
        json.dumps(line, separators=(",", ":")).encode().replace(b'"open":', b'"open" : ')
    ),
    "sorted": lambda line: json.dumps(line, separators=(",", ":"), sort_keys=True).encode(),
    "sorted with spaces": lambda line: json.dumps(line, sort_keys=True).encode(),
    "spaces at the ends": lambda line: b" " + json.dumps(line, separators=(",", ":")).encode() + b"\t",
    "an escaped type": lambda line: json.dumps(line, separators=(",", ":")).encode().replace(b"turn_", b"turn\\u005f"),
    "an escaped key": lambda line: json.dumps(line, separators=(",", ":")).encode().replace(b'"open"', b'"op\\u0065n"'),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    ("events", "before", "expected"),
    [
        ([START, MESSAGE], None, 1),
        ([START, MESSAGE, END], None, None),
        ([START, MESSAGE, END], 0, None),
        ([QUIET_START, MESSAGE], None, 1),
        ([START, END, QUIET_START, STEP, CALL], None, 3),
        ([QUIET_START, QUIET_END], None, 1),
        ([MESSAGE, STEP, MESSAGE], None, 2),
        ([CALL, MESSAGE], None, 1),
        ([MESSAGE, quoting("tool_call")], None, None),
    ],
)
def test_lines_say_the_same_however_they_are_spelt(
    spelling: str, events: list[tuple[str, dict[str, object]]], before: int | None, expected: int | None
) -> None:
    lines = log_with(*events)
    spelt = [SPELLINGS[spelling](json.loads(line)) for line in lines]
    assert [read(line).data for line in spelt] == [read(line).data for line in lines]

    assert open_from(spelt, before) == expected
    opened = before
    for line in spelt:
        opened = open_from([line], opened)
    assert (opened is None) == (expected is None)


@pytest.mark.parametrize(
    "events",
    [
        [START, MESSAGE],
        [START, MESSAGE, END],
        [QUIET_START, MESSAGE],
        [START, END, QUIET_START, STEP, CALL],
        [MESSAGE, STEP, MESSAGE],
        [MESSAGE, quoting("tool_call")],
    ],
)
def test_lines_that_know_their_event_say_the_same_whatever_became_of_its_data(
    events: list[tuple[str, dict[str, object]]],
) -> None:
    lines = log_with(*events)
    chained = [Chained.of(line, read(line)) for line in lines]
    for line in chained:
        line.event.data.clear()

    for count in range(len(lines) + 1):
        assert open_from(chained[:count], 7) == open_from(lines[:count], 7)
