"""The laws of transcripts, for every target, on logs that a session wrote and on logs that nobody sane wrote.

What was sent stays sent: an event changes nothing before the place that it belongs to. Two things lie at the end of a
list and go when it goes on, and are exceptions from that: Mistral's last message is the user's, be it a bridge; and
Gemini's bypass of a lost signature stands in the current turn alone.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core.test_laws import TIMES
from turnwal.core.line import Event
from turnwal.core.log import Log
from turnwal.core.recovery import recover
from turnwal.session.sessions import open_store
from turnwal.testing.conversations import conversation_rows
from turnwal.testing.replies import message_of, replies
from turnwal.testing.strategies import Row, foreign_rows, log_of, session_rows
from turnwal.transcript.check import Problem, check
from turnwal.transcript.conversation import Outcomes
from turnwal.transcript.gemini.render import BYPASS
from turnwal.transcript.parsing import Log as SeededLog
from turnwal.transcript.parsing import parse
from turnwal.transcript.render import Rendering, render
from turnwal.transcript.targets import TARGETS
from turnwal.transcript.words import BRIDGE

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


def refused(target: str, made: Rendering) -> list[Problem]:
    """What the provider would refuse; a log in which nothing is said makes no request."""
    return check(target, made.messages, system=made.system) if made.messages else []


def rendered_of(events: Iterable[Event], target: str) -> Rendering:
    """The same of events that are in no log in memory."""
    return render(events, target, waiting="placeholder", partial=True)


@targets
@law(50)
@given(rows=session_rows(), outcomes=st.sampled_from(["note", "replace"]))
def test_what_a_session_leaves_at_any_moment_is_a_request_that_checks(
    target: str, rows: list[Row], outcomes: Outcomes
) -> None:
    log = log_of(rows)
    before = rendered(log, target, outcomes)
    assert refused(target, before) == []
    recover(log)
    after = rendered(log, target, outcomes)
    assert refused(target, after) == []


@targets
@law(40)
@given(rows=conversation_rows(), outcomes=st.sampled_from(["note", "replace"]))
def test_what_is_carried_from_any_model_to_any_other_is_a_request_that_checks(
    target: str, rows: list[Row], outcomes: Outcomes
) -> None:
    log = log_of(rows)
    before = rendered(log, target, outcomes)
    assert refused(target, before) == []
    recover(log)
    after = rendered(log, target, outcomes)
    assert refused(target, after) == []


@targets
@law(40)
@given(rows=conversation_rows())
def test_a_clean_history_is_rendered_as_it_was_seeded(target: str, rows: list[Row]) -> None:
    sent = rendered(log_of(rows), target)
    seeded = SeededLog.seed(target, deepcopy(sent.messages), system=sent.system)
    again = render(seeded, target)
    assert json.dumps(again.messages) == json.dumps(sent.messages)
    assert again.system == sent.system


@targets
@law(35)
@given(data=st.data())
def test_a_reply_goes_back_as_it_came(target: str, data: st.DataObject) -> None:
    reply = data.draw(replies(target))
    before = deepcopy(reply)
    parsed = parse(target, reply)
    rows = [Row("user_message", SAID), Row("assistant_message", parsed)]
    for index, part in enumerate(parsed["parts"]):
        if part["type"] == "tool_call":
            about = {"call": f"1.{index}", "id": part["id"], "name": part["name"]}
            rows.append(Row("tool_result", about | SAID))
    found = render(log_of([*rows, Row("user_message", SAID)]), target)
    expected = message_of(target, reply)
    assert found.messages[1 : 1 + len(expected)] == expected
    assert check(target, found.messages) == []
    assert reply == before


@targets
@law(80)
@given(rows=foreign_rows())
def test_what_nobody_sane_wrote_is_a_request_that_checks(target: str, rows: list[Row]) -> None:
    made = rendered(log_of(rows), target)
    assert refused(target, made) == []


@targets
@law(20)
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
@law(20)
@given(rows=session_rows())
def test_what_a_caller_does_to_the_messages_changes_no_later_rendering(target: str, rows: list[Row]) -> None:
    log = log_of(rows)
    first = rendered(log, target)
    kept = json.dumps(first.messages)
    _spoil(first.messages)
    assert json.dumps(rendered(log, target).messages) == kept


@targets
@law(40)
@given(rows=conversation_rows(turns=3), outcomes=st.sampled_from(["note", "replace"]))
def test_an_event_changes_nothing_before_the_place_it_belongs_to(
    target: str, rows: list[Row], outcomes: Outcomes
) -> None:
    growing = Log()
    before = standing(growing, target, outcomes)
    for seq, row in enumerate(rows):
        growing.append(row.type, row.data, run=row.run, time=row.time)
        after = standing(growing, target, outcomes)
        same = next((at for at, (one, two) in enumerate(zip(before, after, strict=False)) if one != two), len(before))
        if same < len(before):
            # the last message before the place may have been merged with what comes there
            assert same >= messages_before(place_of(rows[:seq], row), rows[:seq], target, outcomes) - 1
        before = after


def messages_before(place: int, rows: list[Row], target: str, outcomes: Outcomes) -> int:
    """How many messages the rows before a place make; none where a later compaction changed their number."""
    if any("replace" in row.data for row in rows[place:]):
        return 0
    while place and rows[place - 1].type == "assistant_delta":
        place -= 1  # its message is at the place, or text without one
    return len(standing(log_of(rows[:place]), target, outcomes))


def standing(log: Log, target: str, outcomes: Outcomes) -> list[str]:
    """The messages of a request, without what stands there only because it is the end."""
    messages = rendered(log, target, outcomes).messages
    if target == "mistral" and messages and messages[-1]["role"] == "user" and messages[-1]["content"] == BRIDGE:
        messages.pop()
    for message in messages if target == "gemini" else ():
        for part in message["parts"]:
            if part.get("thoughtSignature") == BYPASS:
                del part["thoughtSignature"]
    return [json.dumps(message) for message in messages]


def place_of(before: list[Row], row: Row) -> int:
    """The seq that an event belongs to: its own where it is new on the surface, else that of what it changes.

    What is no message may change what is said of every call that has no answer yet.
    """
    data = row.data
    if "replace" in data and row.type != "tool_result":
        return int(data["replace"][0])
    if row.type in ("user_message", "system_message"):
        return len(before)
    open_calls = set()
    for seq, earlier in enumerate(before):
        if earlier.type == "assistant_message":
            open_calls |= {(seq, i) for i, part in enumerate(earlier.data["parts"]) if part["type"] == "tool_call"}
        if earlier.type == "tool_result":
            open_calls.discard(call_of(earlier))
    places = [seq for seq, _ in open_calls]
    if "call" in data:
        places.append(call_of(row)[0])
    if "completes" in data:
        places.append(data["completes"])
    if row.type.startswith("assistant_"):
        places += [seq for seq, earlier in enumerate(before) if earlier.type == "assistant_delta"]
    return min([*places, len(before)])


def call_of(row: Row) -> tuple[int, int]:
    seq, index = row.data["call"].split(".")
    return int(seq), int(index)


SAID = {"parts": [{"type": "text", "content": "go on"}]}

_RENDERER = """
import hashlib, json, sys
from turnwal.core.log import Log
from turnwal.transcript.render import render
for text in sys.stdin:
    log = Log.read([line.encode() for line in json.loads(text)])
    for target in sys.argv[1:]:
        made = render(log, target, waiting="placeholder", partial=True)
        told = [made.messages, made.system, [finding.to_json() for finding in made.findings]]
        print(hashlib.sha256(json.dumps(told).encode()).hexdigest())
"""


def test_every_process_renders_the_same_bytes_whatever_its_hash_seed() -> None:
    logs: list[Log] = []

    @law(15)
    @given(rows=conversation_rows())
    def gather(rows: list[Row]) -> None:
        logs.append(log_of(rows))

    gather()
    here = []
    for log in logs:
        for target in TARGETS:
            made = rendered(log, target)
            told = [made.messages, made.system, [finding.to_json() for finding in made.findings]]
            here.append(sha256(json.dumps(told).encode()).hexdigest())
    lines = "".join(json.dumps([line.decode() for line in log.lines()]) + "\n" for log in logs)
    for seed in ("0", "1", "4711"):
        command = [sys.executable, "-W", "error", "-c", _RENDERER, *TARGETS]
        there = subprocess.run(
            command, input=lines, env={"PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True
        )
        assert there.stdout.split() == here


CUT = {"assistant_message", "assistant_delta", "tool_call", "tool_result", "step_end"}
LAST_LINE_BYTES_MAX = 260
"""Each byte of it is a crash to recover from."""


def test_a_file_that_was_cut_anywhere_in_its_last_line_is_recovered_into_requests_that_check(tmp_path: Path) -> None:
    ends: dict[str, list[bytes]] = {}

    @law(40)
    @given(rows=conversation_rows(turns=2))
    def gather(rows: list[Row]) -> None:
        lines = list(log_of(rows).lines())
        for at, row in enumerate(rows[4:], 4):
            if row.type in CUT and len(lines[at]) <= LAST_LINE_BYTES_MAX:
                ends.setdefault(row.type, lines[: at + 1])

    gather()
    assert ends.keys() == CUT
    for lines in ends.values():
        whole, last = b"".join(line + b"\n" for line in lines[:-1]), lines[-1] + b"\n"
        for length in range(len(last) + 1):
            path = tmp_path / "s.jsonl"
            path.write_bytes(whole + last[:length])
            _recover_and_render(tmp_path)
            path.unlink()


def _recover_and_render(root: Path) -> None:
    """Look at the session, open it, and hold what each provider would be sent to the rules."""
    with open_store(root) as store:
        seen = list(store.inspect("s"))
        store.session("s").open().close()
        stored = list(store.inspect("s"))
    for target in TARGETS:
        before, after = rendered_of(seen, target), rendered_of(stored, target)
        assert refused(target, after) == []
        assert (before.messages, before.system) == (after.messages, after.system)


def _spoil(value: Any) -> None:
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _spoil(item)
    if isinstance(value, (dict, list)):
        value.clear()
