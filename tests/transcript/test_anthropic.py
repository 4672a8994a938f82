"""Anthropic Messages: what is sent, what is refused, and what a reply becomes."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.core.build import DURABLE, STEP, STEP_END, TURN_END, Row, ask, dispatch, extend, log_of, note, result
from turnwal.core.errors import InvalidEvent
from turnwal.core.recovery import recover
from turnwal.transcript.check import check
from turnwal.transcript.parsing import Log, parse
from turnwal.transcript.render import Rendering, render
from turnwal.transcript.words import BRIDGE

TARGET = "anthropic"
Block = dict[str, Any]
Wire = dict[str, Any]

SONNET = "claude-sonnet-4-5-20250929"
USER: Wire = {"role": "user", "content": "go"}


def text(content: str) -> Block:
    return {"type": "text", "text": content}


def call(id: str, name: str = "tool", **arguments: Any) -> Block:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def answer(id: str, content: Any = "done", **more: Any) -> Block:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def user(*blocks: Block) -> Wire:
    return {"role": "user", "content": list(blocks)}


def model(*blocks: Block) -> Wire:
    return {"role": "assistant", "content": list(blocks)}


THINKING: Block = {"type": "thinking", "thinking": "hm", "signature": "abc"}
REDACTED: Block = {"type": "redacted_thinking", "data": "xyz"}
SEARCH: Block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "a"}}
FOUND: Block = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
PNG: Block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
PDF: Block = {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}
CITATION: Block = {
    "type": "char_location",
    "cited_text": "y",
    "document_index": 0,
    "document_title": "a",
    "start_char_index": 0,
    "end_char_index": 1,
}
CITED: Block = text("yes") | {"citations": [CITATION]}

HISTORIES: list[list[Wire]] = [
    [USER, model(text("Hi"))],
    [USER, {"role": "assistant", "content": "Hi"}, user(text("a"), text("b"))],
    [user(PNG, text("what is it?"), PDF), model(CITED)],
    [USER, model(text("look"), call("c1", n=2**60), call("c2")), user(answer("c1"), answer("c2"))],
    [USER, model(call("c1")), user(answer("c1", [text("a"), PNG]), text("and?")), model(text("no"))],
    [USER, model(call("c1")), user(answer("c1", "no such file", is_error=True))],
    [USER, model(THINKING, REDACTED, call("c1")), user(answer("c1") | {"cache_control": {"type": "ephemeral"}})],
    [USER, model(SEARCH, FOUND, text("found")), user(text("more") | {"cache_control": {"type": "ephemeral"}})],
    [USER, model(call("c1") | {"caller": {"type": "direct"}}), user({"type": "tool_result", "tool_use_id": "c1"})],
]


def told(*texts: str) -> Row:
    return ("user_message", {"parts": [{"type": "text", "content": each} for each in texts]})


def said(*texts: str, **data: Any) -> Row:
    return ("assistant_message", {"parts": [{"type": "text", "content": each} for each in texts], **data})


def replied(*blocks: Block, model_name: str = SONNET, **more: Any) -> Row:
    reply = {"id": "msg_1", "model": model_name, "role": "assistant", "content": list(blocks), **more}
    return ("assistant_message", parse(TARGET, reply))


def rendered(*rows: Row, **options: Any) -> Rendering:
    found = render(log_of(*rows), TARGET, **options)
    assert check(TARGET, found.messages, system=found.system) == []
    return found


def codes(found: Rendering) -> list[str]:
    return [finding.code for finding in found.findings]


# --- what is sent


def test_f01_a_call_that_was_lost_is_answered_as_unknown_before_and_after_recovery() -> None:
    log = log_of(DURABLE, told("go"), STEP, ask("c1"), dispatch("c1", "3.0"))
    before = render(log, TARGET)
    recover(log)
    after = render(log, TARGET)
    assert before.messages == after.messages
    assert before.messages[:2] == [USER, model(call("c1"))]
    (block,) = before.messages[2]["content"]
    assert (block["tool_use_id"], block["is_error"]) == ("c1", True)
    assert "may have run" in block["content"]
    assert (codes(before), codes(after)) == (["unanswered_call"], [])


def test_f03_a_turn_that_was_left_on_its_first_call_goes_on_with_it_answered() -> None:
    log = log_of(DURABLE, told("go"), STEP, ask("c1"), dispatch("c1", "3.0"))
    recover(log)
    extend(log, [("turn_start", {"turn": 2}), told("again")])
    found = render(log, TARGET)
    assert check(TARGET, found.messages) == []
    assert [block["type"] for block in found.messages[2]["content"]] == ["tool_result", "text"]


def test_f04_a_call_without_a_result_is_answered_beside_the_others_in_call_order() -> None:
    rows = (DURABLE, told("go"), STEP, ask("c1", "c2", "c3"), *(dispatch(f"c{n}", f"3.{n - 1}") for n in (1, 2, 3)))
    found = rendered(*rows, result("c3", "3.2", text="three"), result("c1", "3.0", text="one"))
    results = found.messages[2]["content"]
    assert [block["tool_use_id"] for block in results] == ["c1", "c2", "c3"]
    assert (results[0], results[2]) == (answer("c1", "one"), answer("c3", "three"))
    assert "may have run" in results[1]["content"]


def test_f05_the_results_of_one_message_stand_in_one_message() -> None:
    found = rendered(told("go"), ask("c1", "c2"), result("c1", text="one"), result("c2", text="two"))
    assert found.messages[2] == user(answer("c1", "one"), answer("c2", "two"))
    assert found.findings == ()


def test_f06_a_result_without_its_call_is_left_out_and_said() -> None:
    found = rendered(told("go"), result("c9"), said("ok"))
    assert found.messages == [USER, model(text("ok"))]
    assert codes(found) == ["orphan_result"]


def test_f07_a_call_that_is_asked_for_again_is_sent_once_with_its_first_result() -> None:
    rows = (told("go"), DURABLE, STEP, ask("c1"), dispatch("c1", "3.0"), result("c1", "3.0", text="v1"), ask("c1"))
    found = rendered(*rows, result("c1", "3.0", text="v2"))
    assert found.messages == [USER, model(call("c1")), user(answer("c1", "v1"))]
    assert codes(found) == ["duplicate_call", "empty_message", "duplicate_result"]


@pytest.mark.parametrize("ids", [("k", "k"), ("", ""), ("call 1", "call/1"), ("x" * 65, "ü")])
def test_f08_f40_ids_that_repeat_or_break_a_rule_are_other_ones_on_both_sides(ids: tuple[str, str]) -> None:
    found = rendered(
        told("go"), ask(*ids), *(result(ids[n], f"1.{n}", text=str(n)) for n in (0, 1)), ask(ids[0]), result(ids[0])
    )
    first, second = (block["id"] for block in found.messages[1]["content"])
    (third,) = (block["id"] for block in found.messages[3]["content"])
    assert len({first, second, third}) == 3
    assert found.messages[2] == user(answer(first, "0"), answer(second, "1"))
    assert found.messages[4] == user(answer(third))
    assert set(codes(found)) == {"id_rewritten"}


def test_f09_what_came_while_a_tool_ran_stands_behind_its_result() -> None:
    found = rendered(told("go"), ask("c1"), told("hurry"), result("c1"))
    assert found.messages[2] == user(answer("c1"), text("hurry"))
    assert found.findings == ()


def test_f12_a_call_of_a_turn_that_has_ended_is_of_unknown_outcome_here_alone() -> None:
    log = log_of(DURABLE, told("go"), STEP, ask("c1"), STEP_END, TURN_END)
    found = render(log, TARGET)
    assert check(TARGET, found.messages) == []
    assert "may have run" in found.messages[2]["content"][0]["content"]
    assert codes(found) == ["unanswered_call"]
    assert len(log) == 6


def test_f13_f15_no_word_says_that_the_call_failed_or_who_interrupted_it() -> None:
    found = rendered(DURABLE, told("go"), STEP, ask("c1"))
    words = found.messages[2]["content"][0]["content"].lower()
    assert "did not run" in words
    for word in ("fail", "cancel", "abort", "user"):
        assert word not in words


def test_f27_two_compactions_in_a_row_stand_where_what_they_replace_stood() -> None:
    first = {"parts": [{"type": "text", "content": "summary"}], "replace": [0, 2]}
    second = {"parts": [{"type": "text", "content": "shorter"}], "replace": [0, 3]}
    rows = (told("go"), ask("c1"), result("c1"), ("user_message", first), told("more"), ("user_message", second))
    assert rendered(*rows[:5]).messages == [user(text("summary"), text("more"))]
    assert rendered(*rows).messages == [user(text("shorter"), text("more"))]


def test_f29_signed_blocks_go_back_verbatim_to_their_model_and_else_not_at_all() -> None:
    rows = (told("go"), replied(THINKING, REDACTED, call("c1")), result("c1"))
    assert rendered(*rows).messages[1] == model(THINKING, REDACTED, call("c1"))
    assert rendered(*rows, model="claude-sonnet-4-5").messages[1] == model(THINKING, REDACTED, call("c1"))
    other = rendered(*rows, model="claude-opus-4-5")
    assert other.messages[1] == model(call("c1"))
    assert codes(other) == ["reasoning_left_out", "reasoning_left_out"]


@pytest.mark.parametrize("block", [THINKING | {"signature": ""}, THINKING | {"thinking": 1}, REDACTED | {"data": ""}])
def test_f29_a_block_that_lost_its_signature_or_has_no_text_is_left_out(block: Block) -> None:
    found = rendered(told("go"), replied(block, text("ok")))
    assert found.messages[1] == model(text("ok"))
    assert codes(found) == ["reasoning_left_out"]


@pytest.mark.parametrize("block", [THINKING, REDACTED])
def test_f31_thinking_is_not_sent_alone_and_not_as_the_last_of_a_message(block: Block) -> None:
    alone = rendered(told("go"), replied(block), told("on"))
    assert alone.messages == [user(text("go"), text("on"))]
    assert codes(alone) == ["reasoning_left_out", "empty_message"]
    last = rendered(told("go"), replied(THINKING, text("ok"), block, block), told("on"))
    assert last.messages[1] == model(THINKING, text("ok"))
    assert codes(last) == ["reasoning_left_out", "reasoning_left_out"]


@pytest.mark.parametrize("block", [THINKING, REDACTED])
def test_words_of_a_stream_that_broke_off_are_a_message_before_the_thinking_that_follows(block: Block) -> None:
    rows = [told("go"), replied(THINKING, text("I will"), complete=False)]
    before = rendered(*rows).messages
    found = rendered(*rows, replied(block, call("c1")), result("c1", "2.1"))
    assert found.messages[:2] == before
    bridge = {"role": "user", "content": BRIDGE}
    assert found.messages[1:] == [model(text("I will")), bridge, model(block, call("c1")), user(answer("c1"))]
    assert codes(found) == ["incomplete_message", "reasoning_left_out", "bridge_added"]
    assert check(TARGET, found.messages) == []


def test_thinking_goes_on_behind_the_call_of_a_server_tool() -> None:
    found = rendered(told("go"), replied(text("a"), SEARCH), replied(THINKING, text("b")))
    assert [message["role"] for message in found.messages] == ["user", "assistant"]


ODD: list[str] = [
    '{"x": NaN}',
    '{"x": 1e999}',
    '{"x":' * 250 + "1" + "}" * 250,
    '{"x": ' + "9" * 5_000 + "}",
    '{"cut":',
]


@pytest.mark.parametrize("arguments", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("block", [call("c1") | {"caller": {"type": "direct"}}, SEARCH], ids=["call", "server"])
def test_a_streamed_call_whose_arguments_no_event_holds_as_data_is_recorded(block: Block, arguments: str) -> None:
    chunks = [
        {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "model": SONNET, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": arguments}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
        {"type": "message_stop"},
    ]
    data = parse(TARGET, chunks)
    assert data["parts"][0]["arguments"] == arguments
    found = rendered(told("go"), ("assistant_message", data))
    (made, *_) = found.messages[1]["content"]
    expected = {"incomplete_arguments": arguments} if block is not SEARCH else {}
    assert made == block | {"input": expected if "9" * 9 not in arguments else made["input"]}
    assert check(TARGET, found.messages) == []


def test_a_reply_whose_arguments_no_event_holds_as_data_is_recorded() -> None:
    found = rendered(told("go"), replied(call("c1") | {"input": {"x": float("nan")}}))
    assert found.messages[1] == model(call("c1", incomplete_arguments='{"x":NaN}'))


def test_thinking_whose_text_was_omitted_goes_back_with_its_signature() -> None:
    omitted = THINKING | {"thinking": ""}
    found = rendered(told("go"), replied(omitted, call("c1")), result("c1"))
    assert found.messages[1] == model(omitted, call("c1"))
    assert codes(found) == []
    assert check(TARGET, found.messages) == []


def test_f29_a_signed_block_of_a_message_that_never_completed_is_left_out() -> None:
    found = rendered(told("go"), replied(THINKING, text("half"), complete=False))
    assert found.messages[1] == model(text("half"))
    assert codes(found) == ["incomplete_message", "reasoning_left_out"]


@pytest.mark.parametrize("arguments", ['{"path":"a.txt","te', "[1]", '"text"'])
def test_f30_arguments_that_are_no_object_stand_inside_one(arguments: str) -> None:
    found = rendered(told("go"), ask("c1", arguments=arguments), result("c1"))
    assert found.messages[1] == model(call("c1", incomplete_arguments=arguments))
    assert codes(found) == ["arguments_wrapped"]


def test_f31_a_message_with_nothing_in_it_is_left_out() -> None:
    found = rendered(told("go"), ("assistant_message", {"parts": []}), said(""), said(" \n"), told("again"))
    assert found.messages == [user(text("go"), text("again"))]
    assert codes(found) == ["empty_message"] * 3


def test_f32_the_first_message_is_the_users_and_a_bridge_is_in_no_log() -> None:
    log = log_of(said("Hello."), told("go"))
    found = render(log, TARGET)
    assert check(TARGET, found.messages) == []
    assert found.messages == [{"role": "user", "content": BRIDGE}, model(text("Hello.")), USER]
    assert codes(found) == ["bridge_added"]
    assert len(log) == 2


def test_f35_half_a_character_is_replaced_on_the_way_out() -> None:
    found = rendered(told("a\ud83d"), ask("c1", arguments='{"n":"\\ud83d"}'), result("c1", text="\udc8f"))
    assert found.messages[0]["content"] == "a\ufffd"
    assert found.messages[1] == model(call("c1", n="\ufffd"))
    assert found.messages[2] == user(answer("c1", "\ufffd"))
    assert set(codes(found)) == {"surrogate_replaced"}


def test_f36_a_big_integer_goes_out_as_it_came() -> None:
    digits = "7" * 3_000
    found = rendered(told("go"), ask("c1", arguments=f'{{"n":{digits}}}'), result("c1"))
    assert found.messages[1] == model(call("c1", n=int(digits)))


def test_a_name_that_is_not_allowed_is_another_one() -> None:
    found = rendered(told("go"), ask("c1", name="mcp/read file"), result("c1"))
    assert found.messages[1] == model(call("c1", "mcp_read_file"))
    assert codes(found) == ["name_rewritten"]


def test_system_text_at_the_beginning_stands_apart_and_later_text_is_the_users() -> None:
    system: Row = ("system_message", {"parts": [{"type": "text", "content": "be brief"}]})
    found = rendered(system, system, told("go"), said("ok"), system)
    assert found.system == "be brief\n\nbe brief"
    assert found.messages[-1] == {"role": "user", "content": "be brief"}
    assert codes(found) == ["system_in_place"]


def test_what_has_no_form_here_is_words_or_left_out() -> None:
    parts = [
        {"type": "blob", "modality": "audio", "mime_type": "audio/wav", "content": "AAAA"},
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "A" * (5 * 1024 * 1024 + 1)},
        {"type": "of_tomorrow"},
    ]
    given = rendered(("user_message", {"parts": parts}))
    assert [block["type"] for block in given.messages[0]["content"]] == ["text"] * 3
    assert given.messages[0]["content"][0]["text"] == "[audio/wav, 3 bytes: not sent here]"
    assert codes(given) == ["part_replaced"] * 3
    answered = rendered(told("go"), ("assistant_message", {"parts": [*parts, {"type": "text", "content": "ok"}]}))
    assert [block["type"] for block in answered.messages[1]["content"]] == ["text"] * 3
    assert codes(answered) == ["part_replaced", "part_replaced", "part_left_out"]


def test_a_search_without_what_it_found_is_left_out_unless_it_is_a_pause_at_the_end() -> None:
    rows = (told("go"), replied(SEARCH, text("so")))
    assert rendered(*rows).messages[1] == model(SEARCH, text("so"))
    found = rendered(*rows, told("and?"))
    assert found.messages[1] == model(text("so"))
    assert codes(found) == ["part_left_out"]


def test_a_waiting_call_is_refused_or_held_open_by_a_placeholder() -> None:
    rows = (told("go"), ask("c1"), note("tool_suspended", "c1", "1.0"))
    found = rendered(*rows, waiting="placeholder")
    (block,) = found.messages[2]["content"]
    assert "waits for an answer" in block["content"]
    assert "is_error" not in block
    assert codes(found) == ["waiting_call"]


def test_a_late_outcome_is_a_note_where_it_was_learnt_or_stands_for_the_result() -> None:
    rows = (told("go"), ask("c1"), result("c1", text="lost"), said("hm"))
    late = note("tool_outcome", "c1", "1.0", outcome="happened", parts=[{"type": "text", "content": "receipt"}])
    noted = rendered(*rows, late)
    assert noted.messages[2] == user(answer("c1", "lost"))
    assert noted.messages[4]["content"][1] == text("receipt")
    replaced = rendered(*rows, late, outcomes="replace")
    assert replaced.messages[:2] == noted.messages[:2]
    assert replaced.messages[2]["content"][0]["content"][1] == text("receipt")
    assert len(replaced.messages) == 4
    assert codes(replaced) == ["outcome_in_place"]


def test_white_space_at_the_end_of_a_last_answer_is_not_sent() -> None:
    assert rendered(told("go"), said("ok \n")).messages[1] == model(text("ok"))
    assert rendered(told("go"), said("ok \n"), told("go")).messages[1] == model(text("ok \n"))


# --- what is refused


@pytest.mark.parametrize(
    "block",
    [
        {"type": "fallback", "from": {"model": "claude-opus-4-6"}, "to": {"model": SONNET}},
        {"type": "mcp_tool_listing", "mcp_server_name": "files", "tools": []},
    ],
    ids=lambda block: block["type"],
)
def test_a_block_that_is_sent_back_where_it_came_is_not_refused(block: Block) -> None:
    found = rendered(told("go"), replied(THINKING, block, THINKING, text("ok")), told("on"))
    assert found.messages[1] == model(THINKING, block, THINKING, text("ok"))
    assert codes(found) == []
    assert ("bad_shape", "messages[0].content[0]") in [
        (problem.code, problem.position) for problem in check(TARGET, [user(block)])
    ]


@pytest.mark.parametrize("history", HISTORIES, ids=range(len(HISTORIES)))
def test_valid_histories_break_no_rule(history: list[Wire]) -> None:
    assert check(TARGET, history) == []


CALLS = [USER, model(call("c1"), call("c2")), user(answer("c1"), answer("c2"))]

PLANTED: list[tuple[str, str, list[Any]]] = [
    ("first_role", "messages[0]", [model(text("Hi")), USER]),
    ("bad_shape", "messages[0]", [{"role": "narrator", "content": "a"}]),
    ("bad_shape", "messages[1]", [USER, 7]),
    ("bad_shape", "messages[0]", [{"role": "user", "content": 7}]),
    ("bad_shape", "messages[0].content[0]", [user({"type": "of_tomorrow"})]),
    ("bad_shape", "messages[0].content[0]", [{"role": "user", "content": [7]}]),
    ("bad_shape", "messages[0].content[0]", [user(THINKING)]),
    ("bad_shape", "messages[1].content[0]", [USER, model(PNG)]),
    ("bad_shape", "messages[2].content[0].content[0]", [USER, model(call("c1")), user(answer("c1", [THINKING]))]),
    ("empty_message", "messages[0]", [{"role": "user", "content": ""}]),
    ("empty_message", "messages[0]", [{"role": "user", "content": []}]),
    ("empty_message", "messages[0].content[1]", [user(text("a"), text(" \n"))]),
    ("empty_message", "messages[1]", [USER, {"role": "assistant", "content": "ok "}]),
    ("empty_message", "messages[1].content[0]", [USER, model(text("ok "))]),
    (
        "empty_message",
        "messages[2].content[0].content",
        [USER, model(call("c1")), user(answer("c1", "", is_error=True))],
    ),
    ("empty_message", "messages[2].content[0].content[0]", [USER, model(call("c1")), user(answer("c1", [text("")]))]),
    ("bad_id", "messages[1].content[0].id", [USER, model(call("a b")), user(answer("a b"))]),
    ("bad_id", "messages[1].content[0].id", [USER, model(call("")), user(answer(""))]),
    ("bad_name", "messages[1].content[0].name", [USER, model(call("c1", "a b")), user(answer("c1"))]),
    ("bad_name", "messages[1].content[0].name", [USER, model(call("c1", "a" * 129)), user(answer("c1"))]),
    ("bad_arguments", "messages[1].content[0].input", [USER, model(call("c1") | {"input": "{}"}), user(answer("c1"))]),
    ("duplicate_id", "messages[1].content[1].id", [USER, model(call("c1"), call("c1")), user(answer("c1"))]),
    ("duplicate_id", "messages[3].content[0].id", [*CALLS, model(call("c1")), user(answer("c1"))]),
    ("duplicate_result", "messages[2].content[2]", [*CALLS[:2], user(answer("c1"), answer("c2"), answer("c1"))]),
    ("orphan_result", "messages[0].content[0]", [user(answer("c9"))]),
    ("orphan_result", "messages[2].content[2]", [*CALLS[:2], user(answer("c1"), answer("c2"), answer("c9"))]),
    ("orphan_result", "messages[1].content[0]", [USER, model(FOUND, text("a"))]),
    ("unanswered_call", "messages[1].content[1]", [*CALLS[:2], user(answer("c1"))]),
    ("unanswered_call", "messages[1].content[0]", [USER, model(call("c1"))]),
    ("unanswered_call", "messages[1].content[0]", [USER, model(call("c1")), USER, user(answer("c1"))]),
    ("unanswered_call", "messages[1].content[0]", [USER, model(SEARCH, text("a")), USER]),
    ("results_not_first", "messages[2].content[1]", [USER, model(call("c1")), user(text("a"), answer("c1"))]),
    ("unsigned_reasoning", "messages[1].content[0]", [USER, model(THINKING | {"signature": ""}, text("a"))]),
    ("unsigned_reasoning", "messages[1].content[0]", [USER, model(REDACTED | {"data": ""}, text("a"))]),
    ("surrogate", "messages[0].content", [{"role": "user", "content": "a\ud83d"}]),
    (
        "surrogate",
        "messages[1].content[0].input",
        [USER, model(call("c1") | {"input": {"\ud83d": 1}}), user(answer("c1"))],
    ),
]


@pytest.mark.parametrize(("code", "position", "messages"), PLANTED, ids=range(len(PLANTED)))
def test_a_planted_violation_is_found_where_it_is(code: str, position: str, messages: list[Any]) -> None:
    before = copy.deepcopy(messages)
    found = [(problem.code, problem.position) for problem in check(TARGET, messages)]
    assert (code, position) in found
    assert messages == before


def test_a_violation_does_not_hide_another() -> None:
    found = check(TARGET, [model(call("a b"))])
    assert {problem.code for problem in found} == {"first_role", "bad_id", "unanswered_call"}


def test_results_of_one_message_may_stand_in_several_of_the_user() -> None:
    asks = model(call("c1"), call("c2"))
    assert check(TARGET, [USER, asks, user(answer("c1")), user(answer("c2")), user(text("on"))]) == []
    found = check(TARGET, [USER, asks, user(answer("c1"), text("on")), user(answer("c2"))])
    assert [problem.position for problem in found] == ["messages[1].content[1]", "messages[3].content[0]"]
    assert [problem.code for problem in found] == ["unanswered_call", "results_not_first"]


@pytest.mark.parametrize("system", [" ", [text("")], [text("be"), text(" \n")]])
def test_system_text_that_is_blank_is_refused_and_not_rendered(system: Any) -> None:
    assert [problem.code for problem in check(TARGET, [USER], system=system)] == ["empty_message"]
    assert rendered(("system_message", {"parts": [{"type": "text", "content": " "}]}), told("go")).system is None


def test_system_text_that_is_none_is_refused() -> None:
    assert [problem.position for problem in check(TARGET, [USER], system=7)] == ["system"]
    assert check(TARGET, [USER], system=[text("be brief")]) == []


Spoil = Callable[[list[Any]], None]
SPOILT: list[tuple[str, Spoil]] = [
    ("unanswered_call", lambda messages: messages[2]["content"].pop(1)),
    ("orphan_result", lambda messages: messages[1]["content"].pop(1)),
    ("unanswered_call", lambda messages: messages.insert(2, model(text("hm")))),
    ("results_not_first", lambda messages: messages[2]["content"].insert(0, text("a"))),
    ("duplicate_result", lambda messages: messages[2]["content"].append(answer("c1"))),
    ("duplicate_id", lambda messages: messages[1]["content"].append(call("c1"))),
    ("first_role", lambda messages: messages.pop(0)),
    ("empty_message", lambda messages: messages[0].update(content="")),
    ("bad_arguments", lambda messages: messages[1]["content"][0].pop("input")),
    ("bad_shape", lambda messages: messages[0].pop("role")),
]


@pytest.mark.parametrize(("code", "spoil"), SPOILT, ids=range(len(SPOILT)))
def test_a_valid_request_that_is_spoilt_is_refused(code: str, spoil: Spoil) -> None:
    messages = copy.deepcopy(CALLS)
    assert check(TARGET, messages) == []
    spoil(messages)
    assert code in {problem.code for problem in check(TARGET, messages)}


# --- histories and replies


@pytest.mark.parametrize("history", HISTORIES, ids=range(len(HISTORIES)))
def test_a_history_is_rendered_as_it_was_seeded(history: list[Wire]) -> None:
    before = copy.deepcopy(history)
    found = render(Log.seed(TARGET, history, system="be brief"), TARGET)
    assert found.messages == before == history
    assert found.system == "be brief"
    assert found.findings == ()


def test_signed_blocks_of_a_message_whose_model_is_not_known_go_to_any() -> None:
    found = render(Log.seed(TARGET, HISTORIES[6]), TARGET, model="claude-opus-4-5")
    assert found.messages == HISTORIES[6]


def reply(*content: Block, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 2}
    made = {"id": "msg_1", "type": "message", "role": "assistant", "model": SONNET, "content": list(content)}
    return made | {"stop_reason": "tool_use", "stop_sequence": None, "usage": usage} | more


REPLIES = [
    reply(text("Hi"), stop_reason="end_turn"),
    reply(THINKING, text("look"), call("c1", n=2**60, none=None), call("c2")),
    reply(REDACTED, SEARCH, FOUND, CITED),
    reply(SEARCH, stop_reason="pause_turn"),
]


@pytest.mark.parametrize("answered", REPLIES, ids=range(len(REPLIES)))
def test_a_reply_goes_back_as_it_came(answered: dict[str, Any]) -> None:
    data = parse(TARGET, answered)
    assert data["provider"] == "anthropic"
    assert (data["model"], data["response_id"], data["stop"]) == (SONNET, "msg_1", answered["stop_reason"])
    assert data["usage"] == {"input_tokens": 1, "output_tokens": 2}
    assert rendered(told("go"), ("assistant_message", data)).messages[1] == model(*answered["content"])


STREAM: list[dict[str, Any]] = [
    {"type": "message_start", "message": reply(stop_reason=None)},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "h"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "m"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "abc"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": text("")},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "lo"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "ok"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": call("c1")},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"n": 1'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ".50}"}},
    {"type": "content_block_stop", "index": 2},
    {"type": "content_block_start", "index": 3, "content_block": call("c2")},
    {"type": "content_block_stop", "index": 3},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]


def test_a_stream_is_put_together_with_the_arguments_as_the_model_wrote_them() -> None:
    data = parse(TARGET, STREAM)
    assert [part["type"] for part in data["parts"]] == ["reasoning", "text", "tool_call", "tool_call"]
    assert [part["arguments"] for part in data["parts"][2:]] == ['{"n": 1.50}', "{}"]
    assert (data["stop"], data["usage"], "complete" in data) == (
        "tool_use",
        {"input_tokens": 1, "output_tokens": 9},
        False,
    )
    expected = model(THINKING, text("look"), call("c1", n=1.5), call("c2"))
    assert rendered(told("go"), ("assistant_message", data)).messages[1] == expected


@pytest.mark.parametrize("length", range(len(STREAM)))
def test_a_stream_that_was_cut_off_never_completed_and_its_calls_are_not_sent(length: int) -> None:
    data = parse(TARGET, STREAM[:length])
    assert data["complete"] is False
    found = rendered(DURABLE, told("go"), STEP, ("assistant_message", data))
    assert not any(block["type"] != "text" for message in found.messages[1:] for block in message["content"])


@pytest.mark.parametrize("odd", [None, 7, [7], {"content": 7}, {"content": [7]}, "text"])
def test_what_is_no_reply_is_refused_by_name(odd: Any) -> None:
    with pytest.raises(InvalidEvent):
        parse(TARGET, odd)


@pytest.mark.parametrize("odd", ["messages", [7], [{"role": "user", "content": 7}], [{"role": "user", "content": [7]}]])
def test_what_is_no_history_is_refused_by_name(odd: Any) -> None:
    with pytest.raises(InvalidEvent):
        Log.seed(TARGET, odd)


@pytest.mark.parametrize("arguments", ['{"n":NaN}', '{"n":-Infinity}', '{"n":1e400}', f'{{"n":{"7" * 5_000}}}'])
def test_f36_a_number_that_no_request_can_hold_stands_as_text(arguments: str) -> None:
    found = rendered(told("go"), ask("c1", arguments=arguments), result("c1"))
    assert found.messages[1] == model(call("c1", incomplete_arguments=arguments))
    assert json.loads(json.dumps(found.messages, allow_nan=False)) == found.messages


@pytest.mark.parametrize(
    "arguments", ['{"n":1.5e3}', '{"n":1E5,"m":-0.0}', f'{{"n":{2**64}}}', f'{{"n":"{"7" * 5_000}"}}']
)
def test_arguments_go_out_as_the_value_that_they_are(arguments: str) -> None:
    found = rendered(told("go"), ask("c1", arguments=arguments), result("c1"))
    assert repr(found.messages[1]["content"][0]["input"]) == repr(json.loads(arguments))
