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
