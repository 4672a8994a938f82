"""Anthropic's own tools: their calls and what they found go together, also where code of theirs calls tools of ours."""

from typing import Any

import pytest

from tests.core.build import Row, log_of, result
from tests.transcript.test_anthropic import (
    FOUND,
    SEARCH,
    TARGET,
    THINKING,
    USER,
    Block,
    Wire,
    answer,
    call,
    codes,
    model,
    rendered,
    replied,
    text,
    told,
    user,
)
from turnwal.transcript.check import check
from turnwal.transcript.kept import merged
from turnwal.transcript.parsing import Log
from turnwal.transcript.render import render
from turnwal.transcript.target import Target
from turnwal.transcript.words import BRIDGE

CODE: Block = {"type": "server_tool_use", "id": "srvtoolu_2", "name": "code_execution", "input": {"code": "query()"}}
RAN: Block = {
    "type": "code_execution_tool_result",
    "tool_use_id": "srvtoolu_2",
    "content": {"type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0, "content": []},
}


def by_code(id: str, code: str = "srvtoolu_2") -> Block:
    return call(id) | {"caller": {"type": "code_execution_20250825", "tool_id": code}}


ASKS, GOES_ON, ENDS = model(text("I'll query."), CODE, by_code("c1")), model(by_code("c2")), model(RAN, text("done"))
WAITS = [USER, ASKS, user(answer("c1"))]
WHOLE = [*WAITS, GOES_ON, user(answer("c2")), ENDS]

PROGRAMS: list[list[Wire]] = [
    WAITS,
    [*WAITS, ENDS],
    [*WAITS, ENDS, user(text("and?"))],
    [*WAITS, GOES_ON, user(answer("c2"))],
    WHOLE,
    [*WHOLE, user(text("and?"))],
    [USER, model(CODE, by_code("c1"), by_code("c2")), user(answer("c1"), answer("c2")), ENDS],
]


@pytest.mark.parametrize("messages", PROGRAMS, ids=range(len(PROGRAMS)))
def test_code_that_calls_tools_waits_for_them_and_goes_back_as_it_came(messages: list[Wire]) -> None:
    assert check(TARGET, messages) == []
    made = render(Log.seed(TARGET, messages), TARGET)
    assert [message["content"] for message in made.messages[1:]] == [message["content"] for message in messages[1:]]
    assert made.findings == ()


def test_code_waits_for_tools_in_a_session_too() -> None:
    rows = [told("go"), replied(*ASKS["content"]), result("c1", "1.2")]
    assert rendered(*rows).messages[1:] == [ASKS, user(answer("c1"))]
    found = rendered(*rows, replied(*ENDS["content"]), told("and?"))
    assert found.messages[1:] == [ASKS, user(answer("c1")), ENDS, {"role": "user", "content": "and?"}]
    assert codes(found) == []


ALONE = [model(text("I'll query."), call("c1")), user(answer("c1"))]
LOST: list[tuple[list[Row], list[Wire]]] = [
    # something else is said before the code went on
    ([told("stop")], [model(text("I'll query."), call("c1")), user(answer("c1"), text("stop"))]),
    # the model goes on without it
    (
        [replied(text("so")), told("on")],
        [*ALONE, model(text("so"))],
    ),
    # another code goes on
    (
        [replied(by_code("c2", "srvtoolu_9")), result("c2", "3.0"), replied(RAN, text("so")), told("on")],
        [*ALONE, model(call("c2")), user(answer("c2"))],
    ),
]


@pytest.mark.parametrize(("rows", "expected"), LOST, ids=range(len(LOST)))
def test_a_call_whose_code_does_not_go_on_is_the_models_own(rows: list[Row], expected: list[Wire]) -> None:
    found = rendered(told("go"), replied(*ASKS["content"]), result("c1", "1.2"), *rows)
    assert found.messages[1 : 1 + len(expected)] == expected
    assert "part_left_out" in codes(found)
    assert check(TARGET, found.messages) == []


def test_a_call_of_code_that_a_summary_hides_is_the_models_own() -> None:
    log = log_of(
        told("go"), replied(CODE, by_code("c1")), result("c1", "1.1"), replied(by_code("c2")), result("c2", "3.0")
    )
    log.append("user_message", {"parts": [{"type": "text", "content": "summary"}], "replace": [1, 2]})
    assert render(log, TARGET).messages[1:] == [model(call("c2")), user(answer("c2"))]


BOTH, THEN = model(text("I do both."), SEARCH, call("c1")), model(FOUND, text("done"))
ANSWERED = [USER, BOTH, user(answer("c1"))]
SEARCHED = [*ANSWERED, THEN]

MIXED: list[list[Wire]] = [
    ANSWERED,
    SEARCHED,
    [*SEARCHED, user(text("and?"))],
    [USER, model(THINKING, SEARCH, call("c1")), user(answer("c1")), model(FOUND, call("c2")), user(answer("c2"))],
    [USER, model(SEARCH, call("c1") | {"caller": {"type": "direct"}}), user(answer("c1")), THEN],
    [USER, model(call("c1"), SEARCH, call("c2")), user(answer("c1"), answer("c2")), THEN],
]


@pytest.mark.parametrize("messages", MIXED, ids=range(len(MIXED)))
def test_a_server_tool_beside_one_of_ours_waits_for_its_result_and_goes_back_as_it_came(messages: list[Wire]) -> None:
    assert check(TARGET, messages) == []
    made = render(Log.seed(TARGET, messages), TARGET)
    assert [message["content"] for message in made.messages[1:]] == [message["content"] for message in messages[1:]]
    assert made.findings == ()


def test_a_server_tool_beside_one_of_ours_waits_in_a_session_too() -> None:
    rows = [told("go"), replied(*BOTH["content"]), result("c1", "1.2")]
    assert rendered(*rows).messages[1:] == ANSWERED[1:]
    found = rendered(*rows, replied(*THEN["content"]), told("and?"))
    assert found.messages[1:] == [*SEARCHED[1:], {"role": "user", "content": "and?"}]
    assert codes(found) == []


@pytest.mark.parametrize(
    "rows",
    [
        [told("stop")],
        [replied(text("so")), told("on")],
        # what was found comes one message too late
        [replied(call("c2")), result("c2", "3.0"), replied(FOUND, text("so")), told("on")],
    ],
    ids=["words beside the result", "nothing found", "found too late"],
)
def test_a_server_tool_beside_one_of_ours_that_finds_nothing_next_is_not_sent(rows: list[Row]) -> None:
    found = rendered(told("go"), replied(*BOTH["content"]), result("c1", "1.2"), *rows)
    assert found.messages[1] == model(text("I do both."), call("c1"))
    assert str(found.messages).count(SEARCH["id"]) == 0
    assert "part_left_out" in codes(found)
    assert check(TARGET, found.messages) == []


BROKEN: list[tuple[str, str, list[Any]]] = [
    ("unanswered_call", "messages[1].content[1]", [*WAITS[:2], user(answer("c1"), text("stop"))]),
    ("unanswered_call", "messages[1].content[1]", [*WAITS, model(text("so"))]),
    ("unanswered_call", "messages[1].content[1]", [*WAITS, model(call("c2")), user(answer("c2")), ENDS]),
    ("orphan_result", "messages[5].content[0]", [*WAITS, model(call("c2")), user(answer("c2")), ENDS]),
    ("orphan_result", "messages[3].content[0]", [USER, ASKS, user(answer("c1"), text("stop")), ENDS]),
    ("orphan_result", "messages[3].content[0]", [USER, model(by_code("c1")), user(answer("c1")), ENDS]),
    ("unanswered_call", "messages[1].content[1]", [*ANSWERED[:2], user(answer("c1"), text("stop")), THEN]),
    ("orphan_result", "messages[3].content[0]", [*ANSWERED[:2], user(answer("c1"), text("stop")), THEN]),
    ("unanswered_call", "messages[1].content[1]", [*ANSWERED, model(text("so"))]),
    ("unanswered_call", "messages[1].content[1]", [*ANSWERED, model(call("c2")), user(answer("c2")), THEN]),
    ("orphan_result", "messages[5].content[0]", [*ANSWERED, model(call("c2")), user(answer("c2")), THEN]),
    ("unanswered_call", "messages[1].content[0]", [USER, model(SEARCH, by_code("c1")), user(answer("c1")), THEN]),
    ("orphan_result", "messages[1].content[0]", [USER, ENDS]),
    ("orphan_result", "messages[0].content[0]", [ENDS]),
    ("unanswered_call", "messages[1].content[0]", [USER, model(CODE, by_code("c1", "x")), user(answer("c1")), ENDS]),
]


@pytest.mark.parametrize(("code", "position", "messages"), BROKEN, ids=range(len(BROKEN)))
def test_code_that_cannot_go_on_is_found_where_it_is(code: str, position: str, messages: list[Any]) -> None:
    assert (code, position) in [(problem.code, problem.position) for problem in check(TARGET, messages)]


def test_a_pause_may_be_gone_on_with_in_a_message_of_its_own() -> None:
    assert check(TARGET, [USER, model(text("a"), SEARCH), model(FOUND, text("b")), USER]) == []


@pytest.mark.parametrize("more", [{"complete": False}, {}], ids=["broke off", "pause"])
def test_words_before_a_search_that_never_ended_are_a_message_before_the_thinking_that_follows(
    more: dict[str, Any],
) -> None:
    rows = [replied(text("I will search."), SEARCH, **more), replied(THINKING, call("c1")), result("c1", "2.1")]
    found = rendered(told("go"), *rows)
    bridge = {"role": "user", "content": BRIDGE}
    apart = [model(text("I will search.")), bridge, model(THINKING, call("c1")), user(answer("c1"))]
    assert found.messages[1:] == apart
    assert codes(found)[-2:] == ["part_left_out", "bridge_added"]
    assert check(TARGET, found.messages) == []


def test_thinking_before_a_search_that_never_ended_is_not_the_last_of_its_message() -> None:
    found = rendered(told("go"), replied(text("a"), THINKING, SEARCH), told("on"))
    assert found.messages[1] == model(text("a"))
    assert codes(found) == ["part_left_out", "reasoning_left_out"]
    assert check(TARGET, found.messages) == []


def test_what_stands_before_thinking_with_calls_stays_with_their_results() -> None:
    found = rendered(told("go"), replied(call("c1"), SEARCH, THINKING, text("a")), result("c1", "1.0"), told("on"))
    assert found.messages[1:3] == [model(call("c1"), THINKING, text("a")), user(answer("c1"), text("on"))]
    assert check(TARGET, found.messages) == []


COMPACTION: Block = {"type": "compaction", "content": "what was said"}


@pytest.mark.parametrize(
    "blocks",
    [
        (text("Let me look."), THINKING, call("c1")),
        (COMPACTION, THINKING, call("c1")),
        (THINKING, text("so"), THINKING, call("c1")),
        (call("c1"), THINKING, text("a")),
    ],
    ids=["words first", "compaction first", "thinking twice", "call first"],
)
def test_a_reply_that_thinks_behind_other_blocks_goes_back_whole_and_is_not_refused(blocks: tuple[Block, ...]) -> None:
    index = blocks.index(call("c1"))
    found = rendered(told("go"), replied(*blocks), result("c1", f"1.{index}"))
    assert found.messages[1:] == [model(*blocks), user(answer("c1"))]
    assert check(TARGET, found.messages) == []


def test_thinking_goes_on_behind_a_compaction_that_came_alone() -> None:
    rows = [told("go"), replied(COMPACTION), replied(THINKING, call("c1")), result("c1", "2.1")]
    found = rendered(*rows)
    assert found.messages[1:] == [model(COMPACTION, THINKING, call("c1")), user(answer("c1"))]
    assert codes(found) == []
    assert check(TARGET, [USER, model(COMPACTION), model(THINKING, call("c1")), user(answer("c1"))]) == []


@pytest.mark.parametrize("before", [model(text("I will")), {"role": "assistant", "content": "I will"}])
def test_words_of_another_reply_before_thinking_are_refused(before: Wire) -> None:
    problems = check(TARGET, [USER, before, model(THINKING, call("c1")), user(answer("c1"))])
    assert [(problem.code, problem.position) for problem in problems] == [("reasoning_not_first", "messages[2]")]
    assert check(TARGET, [USER, model(text("a"), SEARCH, FOUND), model(THINKING, call("c1")), user(answer("c1"))]) == []


def test_what_a_search_found_behind_thinking_stays_in_its_message() -> None:
    found = rendered(told("go"), replied(text("a"), SEARCH, CODE, THINKING, FOUND, text("b")), told("on"))
    assert found.messages[1] == model(text("a"), SEARCH, THINKING, FOUND, text("b"))
    assert codes(found) == ["part_left_out"]


def test_code_stays_in_one_message_with_what_it_asks_for() -> None:
    rows = [replied(text("a"), CODE, SEARCH, THINKING, by_code("c1")), result("c1", "1.4")]
    found = rendered(told("go"), *rows)
    assert found.messages[1:] == [model(text("a"), CODE, THINKING, by_code("c1")), user(answer("c1"))]


def test_what_stood_on_both_sides_of_a_message_that_is_left_out_is_one() -> None:
    found = rendered(told("go"), replied(SEARCH), told("on"))
    assert found.messages == [user(text("go"), text("on"))]


def test_thinking_that_goes_on_with_code_of_before_stays_in_its_message() -> None:
    rows = [replied(CODE, by_code("c1")), result("c1", "1.1"), replied(text("a"), SEARCH, THINKING, RAN), told("on")]
    found = rendered(told("go"), *rows)
    assert found.messages[3] == model(text("a"), THINKING, RAN)


def test_thinking_on_both_sides_of_a_search_stays_in_one_message() -> None:
    found = rendered(told("go"), replied(text("a"), THINKING, SEARCH, THINKING, text("b")), told("on"))
    assert found.messages[1] == model(text("a"), THINKING, THINKING, text("b"))


def test_a_file_that_code_of_the_model_left_in_its_container_goes_back_and_is_not_refused() -> None:
    upload = {"type": "container_upload", "file_id": "file_1"}
    found = rendered(told("go"), replied(text("Here"), upload), told("thanks"))
    assert found.messages[1] == model(text("Here"), upload)
    assert check(TARGET, found.messages) == []


def test_what_was_merged_is_not_merged_again_where_every_block_has_its_other_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = log_of(told("go"), replied(SEARCH, FOUND, text("a")), told("and?"))
    before = render(log, TARGET).messages
    again: list[Any] = []

    def counted(pieces: list[list[Wire]], target: Target) -> list[Wire]:
        again.append(pieces)
        return merged(pieces, target)

    monkeypatch.setattr("turnwal.transcript.anthropic.render.merged", counted)
    assert render(log, TARGET).messages == before
    assert again == []
    log.append(*replied(SEARCH, text("b"))[:2])
    log.append(*told("on")[:2])
    assert render(log, TARGET).messages[-2] == model(text("b"))
    assert len(again) == 1
