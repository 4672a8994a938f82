"""Mistral chat completions: what is sent, what is refused, and what a reply becomes."""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.core.build import DURABLE, STEP, Row, ask, dispatch, log_of, note, result
from turnwal.transcript.check import check
from turnwal.transcript.parsing import Log, parse
from turnwal.transcript.render import Rendering, render
from turnwal.transcript.words import BRIDGE

TARGET = "mistral"
USER = {"role": "user", "content": "go"}


def said(*texts: str, **data: Any) -> Row:
    return ("assistant_message", {"parts": [{"type": "text", "content": text} for text in texts], **data})


def told(*texts: str) -> Row:
    return ("user_message", {"parts": [{"type": "text", "content": text} for text in texts]})


def ordered(*texts: str) -> Row:
    return ("system_message", {"parts": [{"type": "text", "content": text} for text in texts]})


def rendered(*rows: Row, **options: Any) -> Rendering:
    found = render(log_of(*rows), TARGET, **options)
    assert check(TARGET, found.messages) == []
    return found


def codes(found: Rendering) -> list[str]:
    return [finding.code for finding in found.findings]


def roles(found: Rendering) -> list[str]:
    return [message["role"] for message in found.messages]


def call(id: str, name: str = "tool", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asking(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": [call(id) for id in ids]}


def answer(id: str, content: str = "done") -> dict[str, Any]:
    return {"role": "tool", "content": content, "tool_call_id": id}


C1, C2 = "aaaaaaaa1", "aaaaaaaa2"


def test_f04_a_call_without_a_result_is_answered_beside_the_others() -> None:
    rows = (DURABLE, told("go"), STEP, ask(C1, C2), dispatch(C1, "3.0"), dispatch(C2, "3.1"), result(C2, "3.1"))
    found = rendered(*rows)
    assert found.messages[1:2] == [asking(C1, C2)]
    assert [message["tool_call_id"] for message in found.messages[2:]] == [C1, C2]
    assert "may have run" in found.messages[2]["content"]


def test_f05_each_result_is_a_message_of_its_own() -> None:
    found = rendered(told("go"), ask(C1, C2), result(C2, text="two"), result(C1, text="one"))
    assert found.messages == [USER, asking(C1, C2), answer(C1, "one"), answer(C2, "two")]
    assert found.findings == ()


def test_f09_what_came_while_a_tool_ran_stands_behind_its_result() -> None:
    found = rendered(told("go"), ask(C1), told("hurry"), result(C1))
    assert roles(found) == ["user", "assistant", "tool", "assistant", "user"]


def test_f32_a_bridge_stands_between_a_result_and_the_user_and_in_no_log() -> None:
    log = log_of(told("go"), ask(C1), result(C1), told("next"), said("ok"), told("more"))
    found = render(log, TARGET)
    bridge = {"role": "assistant", "content": BRIDGE}
    assert found.messages[2:5] == [answer(C1), bridge, {"role": "user", "content": "next"}]
    assert check(TARGET, found.messages) == []
    assert codes(found) == ["bridge_added"]
    assert len(log) == 6
    assert render(log, TARGET) == found


def test_f32_a_late_outcome_is_bridged_too() -> None:
    rows = (told("go"), ask(C1), result(C1), note("tool_outcome", C1, "1.0", outcome="happened"))
    assert roles(rendered(*rows)) == ["user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize("arguments", ['{"path":"a.txt","text":"hel', "[1]", '{"x":NaN}'])
def test_f30_arguments_that_are_no_object_stand_inside_one(arguments: str) -> None:
    found = rendered(told("go"), ask(C1, arguments=arguments), result(C1))
    sent = found.messages[1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"incomplete_arguments": arguments}
    assert codes(found) == ["arguments_wrapped"]


def test_free_text_stands_inside_an_object() -> None:
    part = {"type": "tool_call", "id": C1, "name": "tool", "arguments": "print(1)", "format": "text"}
    found = rendered(told("go"), ("assistant_message", {"parts": [part]}), result(C1))
    assert found.messages[1]["tool_calls"][0] == call(C1, arguments='{"input":"print(1)"}')
    assert codes(found) == ["arguments_wrapped"]


def test_f31_a_message_with_nothing_in_it_is_left_out() -> None:
    found = rendered(told("go"), ("assistant_message", {"parts": []}), said(""), told("again"))
    assert found.messages == [USER, {"role": "user", "content": "again"}]
    assert codes(found) == ["empty_message", "empty_message"]


def test_f40_an_id_is_nine_letters_and_digits() -> None:
    foreign = ("call_abc", "toolu_01", "", "k" * 86, C1)
    found = rendered(told("go"), ask(*foreign), *(result(id) for id in foreign))
    ids = [each["id"] for each in found.messages[1]["tool_calls"]]
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", id) for id in ids)
    assert len(set(ids)) == 5
    assert ids[4] == C1
    assert [message["tool_call_id"] for message in found.messages[2:]] == ids
    assert codes(found) == ["id_rewritten"] * 4


def test_system_text_stands_where_it_stood_but_behind_an_answer_it_is_the_users() -> None:
    found = rendered(
        ordered("a"), told("go"), ordered("b"), said("ok"), ordered("c"), ask(C1), result(C1), ordered("d")
    )
    assert roles(found) == ["system", "user", "system", "assistant", "user", "assistant", "tool", "assistant", "user"]
    assert [found.messages[index]["content"] for index in (4, 8)] == ["c", "d"]
    assert codes(found) == ["system_in_place", "bridge_added", "system_in_place"]


def test_system_text_that_becomes_the_users_holds_no_thinking() -> None:
    history: list[dict[str, Any]] = [
        {"role": "system", "content": [THINKING, TEXT]},
        {"role": "system", "content": [THINKING]},
    ]
    log = log_of(told("go"), said("ok"))
    for event in Log.seed(TARGET, history).events:
        log.append(event.type, event.data)
    found = render(log, TARGET)
    assert found.messages[2:] == [{"role": "user", "content": "Hi"}, history[1]]
    assert check(TARGET, found.messages) == []
    assert codes(found) == ["system_in_place", "reasoning_left_out"]


def test_the_last_message_is_not_the_assistants() -> None:
    found = rendered(told("go"), said("ok"))
    assert found.messages == [USER, {"role": "assistant", "content": "ok"}, {"role": "user", "content": BRIDGE}]
    assert codes(found) == ["bridge_added"]


def test_calls_do_not_begin_the_list() -> None:
    found = rendered(ask(C1), result(C1))
    assert found.messages == [{"role": "user", "content": BRIDGE}, asking(C1), answer(C1)]
    assert codes(found) == ["bridge_added"]


def test_equal_neighbours_stay_apart() -> None:
    found = rendered(told("a"), told("b"), said("c"), said("d"), told("e"))
    assert roles(found) == ["user", "user", "assistant", "assistant", "user"]
    assert found.findings == ()


def test_a_prefix_is_the_last_message_alone() -> None:
    prefix: dict[str, Any] = {"role": "assistant", "content": "It is", "prefix": True}
    log = Log.seed(TARGET, [USER, prefix])
    assert render(log, TARGET).messages == [USER, prefix]
    log.append(*told("no")[:2])
    found = render(log, TARGET)
    assert found.messages == [USER, {"role": "assistant", "content": "It is"}, {"role": "user", "content": "no"}]
    assert codes(found) == ["part_left_out"]
    alone = render(Log.seed(TARGET, [prefix]), TARGET)
    assert alone.messages == [{"role": "user", "content": BRIDGE}, prefix]


MEDIA = [
    (
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AAAA"},
        {"type": "image_url", "image_url": "data:image/png;base64,AAAA"},
    ),
    (
        {"type": "uri", "modality": "image", "uri": "https://a.example/b.png"},
        {"type": "image_url", "image_url": "https://a.example/b.png"},
    ),
    (
        {"type": "uri", "modality": "document", "uri": "https://a.example/b.pdf"},
        {"type": "document_url", "document_url": "https://a.example/b.pdf"},
    ),
    (
        {"type": "blob", "modality": "document", "mime_type": "application/pdf", "content": "AAAA"},
        {"type": "document_url", "document_url": "data:application/pdf;base64,AAAA"},
    ),
    ({"type": "blob", "modality": "audio", "content": "AAAA"}, {"type": "input_audio", "input_audio": "AAAA"}),
]


@pytest.mark.parametrize(("part", "block"), MEDIA)
def test_what_a_user_shows_is_a_chunk_and_a_part_again(part: dict[str, Any], block: dict[str, Any]) -> None:
    found = rendered(("user_message", {"parts": [{"type": "text", "content": "see"}, part]}))
    assert found.messages == [{"role": "user", "content": [{"type": "text", "text": "see"}, block]}]
    assert Log.seed(TARGET, found.messages).events[0].data["parts"][1] == part


@pytest.mark.parametrize(
    "part",
    [
        {"type": "blob", "modality": "image", "mime_type": "image/tiff", "content": "AAAA"},
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "A" * 14_000_000},
        {"type": "uri", "modality": "image", "uri": "gs://bucket/a.png"},
    ],
    ids=["type", "size", "uri"],
)
def test_words_stand_for_what_is_not_taken(part: dict[str, Any]) -> None:
    found = rendered(("user_message", {"parts": [part]}))
    assert "not sent here" in found.messages[0]["content"]
    assert codes(found) == ["part_replaced"]


THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "signature": "s", "closed": True}
TEXT = {"type": "text", "text": "Hi"}


def reply(message: dict[str, Any], finish: str = "stop", **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    return {"id": "r1", "model": "magistral-medium-2509", "choices": [choice], **fields}


def test_a_reply_becomes_parts_with_what_is_known_of_it() -> None:
    message = {"content": "", "prefix": False, "tool_calls": [call(C1, arguments='{"a": 1}')]}
    assert parse(TARGET, reply(message, "tool_calls", usage={"total_tokens": 3})) == {
        "parts": [{"type": "tool_call", "id": C1, "name": "tool", "arguments": '{"a": 1}'}],
        "provider": TARGET,
        "model": "magistral-medium-2509",
        "response_id": "r1",
        "stop": "tool_calls",
        "usage": {"total_tokens": 3},
    }


@pytest.mark.parametrize(
    ("came", "goes"),
    [
        ({"content": "Hi", "tool_calls": None}, {"content": "Hi"}),
        ({"content": "", "tool_calls": [call(C1)]}, {"content": "", "tool_calls": [call(C1)]}),
        ({"content": [THINKING, TEXT]}, {"content": [THINKING, TEXT]}),
        (
            {"content": "", "tool_calls": [{**call(C1, arguments={"a": 1}), "index": 0}]},
            {"content": "", "tool_calls": [{**call(C1, arguments={"a": 1}), "index": 0}]},
        ),
        (
            {"content": [TEXT, {"type": "reference", "reference_ids": [1]}]},
            {"content": [TEXT, {"type": "reference", "reference_ids": [1]}]},
        ),
    ],
)
def test_a_reply_goes_back_to_its_model_as_it_came(came: dict[str, Any], goes: dict[str, Any]) -> None:
    found = rendered(told("go"), ("assistant_message", parse(TARGET, reply(came))), told("next"))
    assert found.messages[1] == {"role": "assistant", **goes}


def test_thinking_goes_to_the_model_that_wrote_it_alone() -> None:
    data = parse(TARGET, reply({"content": [THINKING, TEXT]}))
    assert data["parts"][0]["content"] == "hm"
    rows = (told("go"), ("assistant_message", data), told("next"))
    same = rendered(*rows, model="magistral-medium-2509")
    other = rendered(*rows, model="magistral-small-2509")
    assert [same.messages[1]["content"], other.messages[1]["content"]] == [[THINKING, TEXT], "Hi"]
    assert codes(other) == ["reasoning_left_out"]
    openai = render(log_of(*rows), "openai-chat")
    assert openai.messages[1] == {"role": "assistant", "content": "Hi"}
    assert codes(openai) == ["reasoning_left_out"]


def test_a_reply_that_the_model_broke_off_never_completed() -> None:
    assert parse(TARGET, reply({"content": "It"}, "error"))["complete"] is False


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"data": {"id": "r1", "model": "magistral-medium-2509", "choices": choices}}


def thought(text: str, **fields: Any) -> dict[str, Any]:
    return chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}], **fields}]})


STREAM = [
    chunk({"role": "assistant", "content": ""}),
    thought("h"),
    thought("m", signature="s", closed=True),
    chunk({"content": [{"type": "text", "text": "H"}]}),
    chunk({"content": "i"}),
    chunk({"tool_calls": [{**call(C1, arguments='{"a": 1}'), "index": 0}, {**call(C2), "index": 1}]}, "tool_calls"),
]


def test_the_chunks_of_a_stream_are_the_reply_that_they_make() -> None:
    before = deepcopy(STREAM)
    whole = reply({"content": [THINKING, TEXT], "tool_calls": [call(C1, arguments='{"a": 1}'), call(C2)]}, "tool_calls")
    assert parse(TARGET, iter(STREAM)) == parse(TARGET, whole)
    assert before == STREAM


@pytest.mark.parametrize("length", range(5))
def test_a_stream_without_its_end_never_completed(length: int) -> None:
    assert parse(TARGET, STREAM[:length])["complete"] is False


HISTORIES: list[list[dict[str, Any]]] = [
    [{"role": "system", "content": "be brief"}, USER, {"role": "assistant", "content": "Hi"}, USER],
    [{"role": "system", "content": [TEXT, THINKING, TEXT]}, USER],
    [USER, asking(C1, C2), answer(C1), answer(C2), {"role": "assistant", "content": "done"}, USER],
    [USER, {**asking(C1), "content": None}, {**answer(C1, ""), "name": "tool"}],
    [USER, {"role": "assistant", "tool_calls": [call(C1, arguments={"a": 1})]}, answer(C1)],
    [USER, {"role": "assistant", "tool_calls": [{"id": C1, "function": {"name": "a", "arguments": "{}"}}]}, answer(C1)],
    [USER, {"role": "assistant", "content": "a", "prefix": False, "tool_calls": []}, USER],
    [USER, {"role": "assistant", "content": [THINKING, TEXT], "tool_calls": [call(C1)]}, answer(C1)],
    [USER, {"role": "assistant", "content": "It is", "prefix": True}],
    [{"role": "user", "content": [TEXT]}],
    [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a", "detail": "high"}}]}],
    [{"role": "user", "content": [{"type": "document_url", "document_url": "https://a", "document_name": "b"}]}],
    [{"role": "user", "content": [{"type": "file", "file_id": "f1"}]}],
    [{"role": "user", "content": [block for _, block in MEDIA]}],
]


@pytest.mark.parametrize("history", HISTORIES, ids=range(len(HISTORIES)))
def test_a_history_is_rendered_as_it_was_seeded(history: list[dict[str, Any]]) -> None:
    assert check(TARGET, history) == []
    before = deepcopy(history)
    found = render(Log.seed(TARGET, history), TARGET)
    assert found.messages == history == before
    assert found.findings == ()


VALID = [
    {"role": "system", "content": "be brief"},
    USER,
    {"role": "assistant", "content": "ok", "tool_calls": [call(C1), call(C2)]},
    answer(C1),
    answer(C2),
    {"role": "assistant", "content": [THINKING, TEXT]},
    {"role": "user", "content": [TEXT, MEDIA[0][1]]},
]


def mutations() -> Iterator[tuple[str, str, list[Any]]]:
    where = "messages[2].tool_calls"
    yield "unanswered_call", f"{where}[1]", VALID[:4]
    yield "unanswered_call", f"{where}[1]", [*VALID[:4], VALID[5], USER]
    yield "orphan_result", "messages[2]", [*VALID[:2], answer(C1)]
    yield "duplicate_result", "messages[5]", [*VALID[:5], answer(C2)]
    yield "role_order", "messages[5]", [*VALID[:5], USER]
    yield "role_order", "messages[5]", [*VALID[:5], VALID[0], USER]
    yield "role_order", "messages[6]", [*VALID[:6], VALID[0], USER]
    yield "role_order", "messages[1].prefix", [USER, {"role": "assistant", "content": "a", "prefix": True}, USER]
    yield "last_role", "messages[5]", VALID[:6]
    yield "first_role", "messages[0]", [{"role": "assistant", "content": "a", "prefix": True}]
    yield "first_role", "messages[0]", VALID[2:]
    yield "empty_message", "messages[1]", [USER, {"role": "assistant", "content": ""}, USER]
    yield "bad_shape", "messages[0]", [{"role": "developer", "content": "a"}]
    yield "bad_shape", "messages[0].content[0]", [{"role": "user", "content": [THINKING]}]
    for bad in ("call_abc", "aaaaaaaa", "aaaaaaaa_", "null", "", None):
        changed: Any = deepcopy(VALID)
        changed[2]["tool_calls"][0]["id"] = changed[3]["tool_call_id"] = bad
        yield "bad_id", f"{where}[0].id", changed
        yield "bad_id", "messages[3].tool_call_id", changed
    twice: Any = deepcopy(VALID)
    twice[2]["tool_calls"][1]["id"] = C1
    yield "duplicate_id", f"{where}[1].id", twice
    for field, value, code in (
        ("name", "a.b", "bad_name"),
        ("arguments", "{", "bad_arguments"),
        ("arguments", [1], "bad_arguments"),
        ("arguments", {"a": "\ud83d"}, "surrogate"),
    ):
        broken: Any = deepcopy(VALID)
        broken[2]["tool_calls"][0]["function"][field] = value
        at = f"{where}[0].function.{field}"
        yield code, f"{at}.a" if isinstance(value, dict) else at, broken
    custom: Any = deepcopy(VALID)
    custom[2]["tool_calls"][0] = {"id": C1, "type": "custom", "custom": {"name": "a", "input": "b"}}
    yield "bad_shape", f"{where}[0].type", custom


@pytest.mark.parametrize(("code", "position", "messages"), [*mutations()])
def test_a_planted_break_is_found_where_it_stands(code: str, position: str, messages: list[Any]) -> None:
    assert (code, position) in [(problem.code, problem.position) for problem in check(TARGET, messages)]


def test_a_valid_list_has_no_problem() -> None:
    assert check(TARGET, VALID) == []


def test_no_odd_value_anywhere_makes_the_check_fail() -> None:
    def planted(value: Any, odd: object) -> Iterator[Any]:
        yield odd
        if isinstance(value, (dict, list)):
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                for changed in planted(item, odd):
                    copy = value.copy()
                    copy[key] = changed
                    yield copy

    odds: list[Any] = [None, 7, "", "a", [], {}, [None], {"type": []}, [{"type": "text"}], {"id": []}]
    for odd in odds:
        found = [check(TARGET, messages) for messages in planted(VALID, odd) if isinstance(messages, list)]
        assert any(found)
