"""Text that was shown and whose message never came: where it stands, what takes its place, and what hides it."""

import pytest

from turnwal.core.recovery import plan, recover
from turnwal.core.scan import Scan
from turnwal.transcript.check import check
from turnwal.transcript.parsing import Log
from turnwal.transcript.render import render
from turnwal.transcript.targets import TARGETS

targets = pytest.mark.parametrize("target", sorted(TARGETS))


def said(text: str) -> dict[str, object]:
    return {"parts": [{"type": "text", "content": text}]}


def streaming(*texts: str, index: int = 0) -> Log:
    """A turn whose step died after it had shown these texts."""
    log = Log()
    log.append("turn_start", {"turn": 1, "dispatch": "durable"})
    log.append("user_message", said("go"))
    log.append("step_start", {"turn": 1, "step": 1})
    for text in texts:
        log.append("assistant_delta", {"step": 1, "index": index, "text": text})
    return log


def texts_of(log: Log, *, partial: bool = True) -> list[str]:
    return [
        block["text"]
        for message in render(log, "anthropic", partial=partial).messages
        for block in ([{"text": message["content"]}] if isinstance(message["content"], str) else message["content"])
    ]


def partials(log: Log) -> list[tuple[int, ...]]:
    return [finding.seqs for finding in plan(log).findings if finding.code == "partial_message"]


def test_what_was_shown_is_a_finding_of_the_plan_and_after_recovery() -> None:
    log = streaming("Hel", "lo")
    assert partials(log) == [(3, 4)]
    recover(log)
    assert partials(log) == [(3, 4)]
    assert texts_of(log) == ["go", "Hello"]
    assert texts_of(log, partial=False) == ["go"]


def test_one_delta_is_named_once() -> None:
    assert partials(streaming("Hel")) == [(3,)]


def test_a_message_takes_the_place_of_what_was_shown_of_it() -> None:
    log = streaming("Hel", "lo")
    log.append("assistant_message", said("Hello there"))
    assert texts_of(log) == ["go", "Hello there"]
    recover(log)
    assert partials(log) == []


def test_what_another_run_says_takes_no_place() -> None:
    log = streaming("Hel")
    log.append("assistant_message", said("mine"), run="sub")
    assert partials(log) == [(3,)]
    assert texts_of(log) == ["go", "Hel"]


def test_what_was_shown_in_two_steps_is_two_messages_though_nothing_stands_between() -> None:
    log = streaming("one")
    log.append("step_end", {"turn": 1, "step": 1, "outcome": "error"})
    log.append("step_start", {"turn": 1, "step": 2})
    log.append("assistant_delta", {"step": 2, "index": 0, "text": "two"})
    assert partials(log) == [(3,), (6,)]
    assert texts_of(log) == ["go", "one", "two"]
    log.append("assistant_message", said("two and more"))
    assert texts_of(log) == ["go", "one", "two and more"]


def test_a_live_scan_says_the_same_as_one_of_the_whole() -> None:
    log = streaming("Hel")
    live = Scan()
    for event in log:
        live.feed(event)
    recover(log)
    for event in log.since(live.last_seq + 1):
        live.feed(event)
    assert list(live.findings) == [finding for finding in plan(log).findings if finding.code == "partial_message"]


def test_a_summary_moves_what_stands_behind_it_and_hides_what_it_covers() -> None:
    log = Log()
    for text in ("one", "two", "three"):
        log.append("user_message", said(text))
    log.append("assistant_delta", {"step": 1, "index": 0, "text": "shown"})
    log.append("step_end", {"turn": 1, "step": 1, "outcome": "interrupted"})
    log.append("user_message", said("four"))
    assert texts_of(log) == ["one", "two", "three", "shown", "four"]
    log.append("user_message", said("sum") | {"replace": [0, 2]})
    assert texts_of(log) == ["sum", "shown", "four"]
    log.append("user_message", said("all") | {"replace": [0, 5]})
    assert texts_of(log) == ["all"]
    log.append("user_message", said("five"))
    assert texts_of(log) == ["all", "five"]


def test_a_summary_that_begins_before_what_was_shown_covers_it() -> None:
    log = Log()
    log.append("user_message", said("one"))
    log.append("assistant_delta", {"step": 1, "index": 0, "text": "shown"})
    log.append("step_end", {"turn": 1, "step": 1, "outcome": "interrupted"})
    log.append("user_message", said("two"))
    assert texts_of(log) == ["one", "shown", "two"]
    log.append("user_message", said("sum") | {"replace": [1, 3]})
    assert texts_of(log) == ["one", "sum"]


@targets
def test_what_was_shown_is_sent_to_every_provider(target: str) -> None:
    log = streaming("Hel", "lo")
    recover(log)
    log.append("user_message", said("and now?"))
    made = render(log, target, partial=True)
    assert check(target, made.messages, system=made.system) == []
    assert "Hello" in str(made.messages)
    assert [finding.seqs for finding in made.findings if finding.code == "partial_message"] == [(3,)]
    assert "Hello" not in str(render(log, target).messages)
