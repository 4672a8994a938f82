"""A conversation that grows says at every moment what one that is read anew says."""

import pytest

from tests.core.build import Row, ask, dispatch, extend, log_of, note, result
from turnwal.core.log import Log
from turnwal.transcript.conversation import Outcomes
from turnwal.transcript.render import Rendering, render


def told(text: str, **data: object) -> Row:
    return "user_message", {"parts": [{"type": "text", "content": text}], **data}


def learnt(outcome: str) -> Row:
    return note("tool_outcome", "a", "1.0", outcome=outcome, parts=[])


def anew(log: Log, outcomes: Outcomes = "note") -> Rendering:
    return render(iter(list(log.events)), "openai-chat", outcomes=outcomes, waiting="placeholder")


@pytest.mark.parametrize("outcomes", ["note", "replace"])
@pytest.mark.parametrize(
    ("replaced", "said"),
    [([3, 7], "timed out"), ([7, 7], "it did not happen"), ([3, 6], "it happened"), ([4, 6], "it happened")],
)
def test_a_late_outcome_that_a_summary_hides_stands_in_place_of_no_result(
    outcomes: Outcomes, replaced: list[int], said: str
) -> None:
    log = log_of(told("pay"), ask("a"), result("a", "1.0", text="timed out", is_error=True), told("and?"))
    extend(log, [told("so?"), learnt("did_not_happen"), told("sure?"), learnt("happened"), told("more")])
    before = render(log, "openai-chat", outcomes=outcomes)
    extend(log, [told("summary", replace=replaced)])

    after = render(log, "openai-chat", outcomes=outcomes)

    assert after == anew(log, outcomes)
    shown = after.messages[2]["content"]
    assert (said if outcomes == "replace" else "timed out") in shown
    assert "it happened" in before.messages[2]["content"] or outcomes == "note"


def test_an_attempt_that_nobody_knows_the_end_of_is_told_behind_an_outcome_that_stands_in_place() -> None:
    log = log_of(told("pay"), ask("a"), result("a", "1.0", text="timed out", is_error=True), told("and?"))
    extend(log, [learnt("did_not_happen"), told("again")])
    render(log, "openai-chat", outcomes="replace")
    lost = note("tool_outcome", "a", "1.0", outcome="unknown", attempt=2, metadata={"synthetic": True}, parts=[])
    extend(log, [lost, told("so?")])

    found = render(log, "openai-chat", outcomes="replace")

    assert found == anew(log, "replace")
    assert "it did not happen" in found.messages[2]["content"]
    assert "it is still unknown" in str(found.messages[3:])
    assert "it did not happen" not in str(found.messages[3:])
    extend(log, [learnt("happened")])
    found = render(log, "openai-chat", outcomes="replace")
    assert found == anew(log, "replace")
    assert "it happened" in found.messages[2]["content"]
    assert "it is still unknown" not in str(found.messages)


def test_an_outcome_is_told_again_where_the_later_one_that_stood_for_it_is_hidden() -> None:
    log = log_of(told("pay"), ask("a"), learnt("happened"), result("a", "1.0", text="timed out", is_error=True))
    extend(log, [told("and?"), learnt("did_not_happen"), told("so?")])
    assert "it happened" not in str(render(log, "openai-chat", outcomes="replace").messages)

    extend(log, [told("summary", replace=[5, 5])])

    found = render(log, "openai-chat", outcomes="replace")
    assert found == anew(log, "replace")
    assert "timed out" in found.messages[2]["content"]
    assert "it happened" in str(found.messages[3:])


CLOSED: list[Row] = [
    ("turn_start", {}),
    told("go"),
    ask("a"),
    ("turn_end", {}),
]


@pytest.mark.parametrize(
    "later",
    [
        [note("tool_suspended", "a", "2.0", until="approval")],
        [("turn_start", {}), dispatch("a", "2.0")],
        [("turn_start", {"dispatch": "durable"}), note("approval_response", "a", "2.0", decision="granted")],
    ],
    ids=["suspended", "dispatched", "granted"],
)
def test_what_is_said_by_key_of_a_call_of_a_turn_that_has_ended_is_heard(later: list[Row]) -> None:
    log = log_of(*CLOSED)
    before = render(log, "openai-chat")
    assert before == anew(log)

    for row in later:
        extend(log, [row])
        assert render(log, "openai-chat", waiting="placeholder") == anew(log)


@pytest.mark.parametrize("whole", [True, False], ids=["a whole reply follows", "none follows"])
def test_a_call_of_two_messages_that_broke_off_is_shown_by_the_first_once_it_is_answered(whole: bool) -> None:
    log = log_of(told("go"), *[ask("a", complete=False)] * 2, *[ask("a")] * whole)
    render(log, "openai-chat", waiting="placeholder")

    extend(log, [result("a"), told("on")])

    found = render(log, "openai-chat")
    assert found == anew(log)
    assert [call["id"] for message in found.messages for call in message.get("tool_calls", ())] == ["a"]
    assert [message["role"] for message in found.messages[:3]] == ["user", "assistant", "tool"]
