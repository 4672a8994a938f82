"""OpenAI Chat Completions: what is sent, what is refused, and what a reply becomes."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.core.build import DURABLE, STEP, TURN_END, Row, ask, dispatch, log_of, note, result
from turnwal.core.errors import InvalidEvent
from turnwal.transcript.check import check
from turnwal.transcript.parsing import Log, parse
from turnwal.transcript.render import Rendering, render

TARGET = "openai-chat"


def said(*texts: str, **data: Any) -> Row:
    return ("assistant_message", {"parts": [{"type": "text", "content": text} for text in texts], **data})


def told(*texts: str) -> Row:
    return ("user_message", {"parts": [{"type": "text", "content": text} for text in texts]})


def rendered(*rows: Row, **options: Any) -> Rendering:
    found = render(log_of(*rows), TARGET, **options)
    assert check(TARGET, found.messages) == []
    return found


def codes(found: Rendering) -> list[str]:
    return [finding.code for finding in found.findings]


def call(id: str, name: str = "tool", arguments: str = "{}") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asking(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [call(id) for id in ids]}


def answer(id: str, content: str = "done") -> dict[str, Any]:
    return {"role": "tool", "content": content, "tool_call_id": id}


USER = {"role": "user", "content": "go"}


def test_f01_a_call_that_was_lost_is_answered_as_unknown() -> None:
    found = rendered(DURABLE, told("go"), STEP, ask("c1"), dispatch("c1", "3.0"))
    assert found.messages[:2] == [USER, asking("c1")]
    assert found.messages[2]["tool_call_id"] == "c1"
    assert "may have run" in found.messages[2]["content"]
    assert codes(found) == ["unanswered_call"]


def test_f05_each_result_is_a_message_of_its_own_in_call_order() -> None:
    found = rendered(told("go"), ask("c1", "c2"), result("c2", text="two"), result("c1", text="one"), told("next"))
    assert found.messages == [
        USER,
        asking("c1", "c2"),
        answer("c1", "one"),
        answer("c2", "two"),
        {"role": "user", "content": "next"},
    ]
    assert found.findings == ()


def test_f06_a_result_without_its_call_is_left_out() -> None:
    found = rendered(told("go"), result("c9"))
    assert found.messages == [USER]
    assert codes(found) == ["orphan_result"]


def test_f08_only_ids_that_collide_or_are_empty_are_rewritten_alike_on_both_sides() -> None:
    found = rendered(told("go"), ask("k"), result("k", "1.0"), ask("k", ""), result("k", "3.0"), result("", "3.1"))
    first, again, empty = [each["id"] for message in found.messages for each in message.get("tool_calls", ())]
    assert first == "k"
    assert len({first, again, empty}) == 3
    assert [message["tool_call_id"] for message in found.messages if message["role"] == "tool"] == [first, again, empty]
    assert codes(found) == ["id_rewritten", "id_rewritten"]


def test_f09_nothing_stands_between_a_call_and_its_result() -> None:
    system = ("system_message", {"parts": [{"type": "text", "content": "be brief"}]})
    found = rendered(told("go"), ask("c1"), told("hurry"), system, result("c1"))
    assert [message["role"] for message in found.messages] == ["user", "assistant", "tool", "user", "system"]


@pytest.mark.parametrize("arguments", ['{"path":"a.txt","text":"hel', "[1]", '{"x":NaN}', "7"])
def test_f30_arguments_that_are_no_object_stand_inside_one(arguments: str) -> None:
    found = rendered(told("go"), ask("c1", arguments=arguments), result("c1"))
    sent = found.messages[1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"incomplete_arguments": arguments}
    assert codes(found) == ["arguments_wrapped"]


def test_f36_arguments_that_are_an_object_are_sent_as_the_model_wrote_them() -> None:
    written = '{ "id": 2512292042121000001,\n "x": 1e400 }'
    found = rendered(told("go"), ask("c1", arguments=written), result("c1"))
    assert found.messages[1]["tool_calls"][0]["function"]["arguments"] == written
    assert found.findings == ()


def test_f31_a_message_with_nothing_in_it_is_left_out() -> None:
    reasoning = ("assistant_message", {"parts": [{"type": "reasoning", "content": "hm"}]})
    found = rendered(told("go"), ("assistant_message", {"parts": []}), said(""), reasoning, told("again"))
    assert found.messages == [USER, {"role": "user", "content": "again"}]
    assert codes(found) == ["empty_message", "empty_message", "reasoning_left_out", "empty_message"]


def test_f32_no_bridge_stands_between_a_result_and_the_user() -> None:
    found = rendered(told("go"), ask("c1"), result("c1"), told("next"))
    assert [message["role"] for message in found.messages] == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ('{"a":"\\ud83d"}', '{"a":"\\ufffd"}'),
        ('{"a":"\\ude00\\ud83d"}', '{"a":"\\ufffd\\ufffd"}'),
        ('{"a":"\\\\ud83d"}', '{"a":"\\\\ud83d"}'),
        ('{"a":"\\ud83d\\ude00"}', '{"a":"\\ud83d\\ude00"}'),
        ('{"a":"\ud83d"}', '{"a":"\ufffd"}'),
    ],
)
def test_f35_half_characters_are_replaced_in_arguments_whether_escaped_or_not(written: str, sent: str) -> None:
    found = rendered(told("go"), ask("c1", arguments=written), result("c1"))
    assert found.messages[1]["tool_calls"][0]["function"]["arguments"] == sent
    assert codes(found) == ([] if written == sent else ["surrogate_replaced"])


def test_f35_half_characters_are_replaced_in_text() -> None:
    assert rendered(told("ab\ud83d")).messages == [{"role": "user", "content": "ab\ufffd"}]


def test_f40_an_id_has_at_most_40_characters() -> None:
    fits, long = "f" * 40, "l" * 41
    found = rendered(told("go"), ask(fits, long), result(fits), result(long))
    first, second = [each["id"] for each in found.messages[1]["tool_calls"]]
    assert first == fits
    assert second != long
    assert [message["tool_call_id"] for message in found.messages[2:]] == [first, second]
    assert rendered(told("go"), ask(fits, long), result(fits), result(long)).messages == found.messages


def test_a_late_outcome_is_the_users_word_behind_the_results() -> None:
    rows = (told("go"), ask("c1"), result("c1"), note("tool_outcome", "c1", "1.0", outcome="happened"))
    assert [message["role"] for message in rendered(*rows).messages] == ["user", "assistant", "tool", "user"]
    assert len(rendered(*rows, outcomes="replace").messages) == 3


def test_free_text_is_the_input_of_a_custom_tool() -> None:
    found = rendered(told("go"), ask_text("c1", "print(1)"), result("c1"))
    custom = {"id": "c1", "type": "custom", "custom": {"name": "tool", "input": "print(1)"}}
    assert found.messages[1]["tool_calls"] == [custom]
    assert found.findings == ()


def ask_text(id: str, text: str) -> Row:
    part = {"type": "tool_call", "id": id, "name": "tool", "arguments": text, "format": "text"}
    return ("assistant_message", {"parts": [part]})


def test_a_tools_name_holds_only_what_is_allowed() -> None:
    found = rendered(told("go"), ask("c1", name="mcp/read.file"), result("c1"))
    assert found.messages[1]["tool_calls"][0]["function"]["name"] == "mcp_read_file"
    assert codes(found) == ["name_rewritten"]


MEDIA = [
    (
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AAAA"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ),
    (
        {"type": "uri", "modality": "image", "uri": "https://a.example/b.png"},
        {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
    ),
    (
        {"type": "blob", "modality": "audio", "mime_type": "audio/mpeg", "content": "AAAA"},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
    ),
    (
        {"type": "blob", "modality": "document", "mime_type": "application/pdf", "content": "AAAA"},
        {"type": "file", "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
    ),
]


@pytest.mark.parametrize(("part", "block"), MEDIA)
def test_what_a_user_shows_is_a_block_and_a_part_again(part: dict[str, Any], block: dict[str, Any]) -> None:
    found = rendered(("user_message", {"parts": [{"type": "text", "content": "see"}, part]}))
    assert found.messages == [{"role": "user", "content": [{"type": "text", "text": "see"}, block]}]
    assert Log.seed(TARGET, found.messages).events[0].data["parts"][1] == part


@pytest.mark.parametrize(
    "part",
    [
        {"type": "blob", "modality": "image", "mime_type": "image/tiff", "content": "AAAA"},
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "A" * 28_000_000},
        {"type": "uri", "modality": "document", "uri": "https://a.example/b.pdf"},
        {"type": "file", "modality": "image", "file_id": "file_of_another_provider"},
    ],
    ids=["type", "size", "uri", "file"],
)
def test_words_stand_for_what_is_not_taken(part: dict[str, Any]) -> None:
    found = rendered(("user_message", {"parts": [part]}))
    assert "not sent here" in found.messages[0]["content"]
    assert codes(found) == ["part_replaced"]


def test_words_stand_for_an_image_in_a_result() -> None:
    found = rendered(told("go"), ask("c1"), ("tool_result", {"id": "c1", "parts": [MEDIA[0][0]]}))
    assert found.messages[2] == answer("c1", "[image/png, 3 bytes: not sent here]")
    assert codes(found) == ["part_replaced"]


def test_an_error_without_words_says_that_there_are_none() -> None:
    found = rendered(told("go"), ask("c1"), ("tool_result", {"id": "c1", "parts": [], "is_error": True}))
    assert found.messages[2] == answer("c1", "(no output)")


def test_of_a_message_that_never_completed_the_text_is_sent() -> None:
    parts = [{"type": "text", "content": "I will"}, {"type": "tool_call", "id": "c1", "name": "t", "arguments": '{"a'}]
    native = {"provider": TARGET, "message": {"role": "assistant", "content": "I will", "annotations": [{}]}}
    found = rendered(told("go"), ("assistant_message", {"parts": parts, "complete": False, "native": native}))
    assert found.messages == [USER, {"role": "assistant", "content": "I will"}]
    assert codes(found) == ["incomplete_message"]


def reply(message: dict[str, Any], finish: str | None = "stop", **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    return {"id": "chatcmpl-1", "model": "gpt-6", "object": "chat.completion", "choices": [choice], **fields}


def test_a_reply_becomes_parts_with_what_is_known_of_it() -> None:
    message = {"content": "Hi", "refusal": None, "annotations": [], "tool_calls": [call("c1", arguments='{"a": 1}')]}
    assert parse(TARGET, reply(message, "tool_calls", usage={"total_tokens": 3})) == {
        "parts": [
            {"type": "text", "content": "Hi"},
            {"type": "tool_call", "id": "c1", "name": "tool", "arguments": '{"a": 1}'},
        ],
        "provider": TARGET,
        "model": "gpt-6",
        "response_id": "chatcmpl-1",
        "stop": "tool_calls",
        "usage": {"total_tokens": 3},
    }


CUSTOM = {"id": "c1", "type": "custom", "custom": {"name": "python", "input": "print(1)"}}
CITED = {"type": "url_citation", "url_citation": {"start_index": 0, "end_index": 2, "title": "a", "url": "https://a"}}


@pytest.mark.parametrize(
    ("came", "goes"),
    [
        ({"content": "Hi"}, {"content": "Hi"}),
        ({"content": None, "tool_calls": [call("c1")]}, {"content": None, "tool_calls": [call("c1")]}),
        ({"content": "", "tool_calls": [call("c1")]}, {"content": None, "tool_calls": [call("c1")]}),
        ({"content": None, "tool_calls": [CUSTOM]}, {"content": None, "tool_calls": [CUSTOM]}),
        ({"content": None, "refusal": "No."}, {"content": None, "refusal": "No."}),
        ({"content": "Hi", "annotations": [CITED]}, {"content": "Hi", "annotations": [CITED]}),
        ({"content": "Hi", "reasoning_content": "hm"}, {"content": "Hi", "reasoning_content": "hm"}),
        (
            {"content": None, "audio": {"id": "a1", "data": "AAAA", "expires_at": 9, "transcript": "Hi"}},
            {"content": None, "audio": {"id": "a1"}},
        ),
        (
            {"content": None, "tool_calls": [{**call("c1"), "extra_content": {"google": {"thought_signature": "s"}}}]},
            {"content": None, "tool_calls": [{**call("c1"), "extra_content": {"google": {"thought_signature": "s"}}}]},
        ),
    ],
)
def test_a_reply_goes_back_to_its_model_as_it_came(came: dict[str, Any], goes: dict[str, Any]) -> None:
    found = rendered(told("go"), ("assistant_message", parse(TARGET, reply(came))))
    assert found.messages[1] == {"role": "assistant", **goes}


@pytest.mark.parametrize(
    ("came", "goes", "code"),
    [
        ({"content": "Hi", "reasoning_content": "hm"}, {"content": "Hi"}, "reasoning_left_out"),
        ({"content": "Hi", "annotations": [CITED]}, {"content": "Hi"}, "part_left_out"),
        ({"content": None, "audio": {"id": "a1", "transcript": "Hi"}}, {"content": "Hi"}, "part_left_out"),
        ({"content": None, "refusal": "No."}, {"content": [{"type": "refusal", "refusal": "No."}]}, None),
    ],
)
def test_a_reply_goes_to_another_model_as_its_parts(
    came: dict[str, Any], goes: dict[str, Any], code: str | None
) -> None:
    found = rendered(told("go"), ("assistant_message", parse(TARGET, reply(came))), model="gpt-7")
    assert found.messages[1] == {"role": "assistant", **goes}
    assert codes(found) == ([] if code is None else [code])


def test_a_refusal_is_text_for_another_provider() -> None:
    log = log_of(told("go"), ("assistant_message", parse(TARGET, reply({"content": None, "refusal": "No."}))))
    assert render(log, "mistral").messages[1] == {"role": "assistant", "content": "No."}


@pytest.mark.parametrize("bad", [{}, {"choices": []}, {"choices": [{"message": {"tool_calls": [{"id": "c"}]}}]}, 7])
def test_what_is_no_reply_is_refused_by_name(bad: object) -> None:
    with pytest.raises(InvalidEvent, match="no reply"):
        parse(TARGET, bad)


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"id": "r1", "model": "gpt-6", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def called(index: int | None, arguments: str, id: str | None = None, name: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"index": index, "id": id, "type": "function" if id else None}
    return {"tool_calls": [{**found, "function": {"name": name, "arguments": arguments}}]}


STREAM = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "Let me "}),
    chunk({"content": "look."}),
    chunk(called(0, "", "c1", "read")),
    chunk(called(1, "", "c2", "write")),
    chunk(called(0, '{"a"')),
    chunk(called(1, '{"b":')),
    chunk(called(0, ": 1}")),
    chunk(called(1, "2}")),
    chunk({}, "tool_calls"),
    {"id": "r1", "model": "gpt-6", "choices": [], "usage": {"total_tokens": 9}},
]


def test_the_chunks_of_a_stream_are_the_reply_that_they_make() -> None:
    calls = [call("c1", "read", '{"a": 1}'), call("c2", "write", '{"b":2}')]
    whole = reply({"content": "Let me look.", "tool_calls": calls}, "tool_calls", usage={"total_tokens": 9})
    assert parse(TARGET, iter(STREAM)) == {**parse(TARGET, whole), "response_id": "r1"}


@pytest.mark.parametrize("length", range(9))
def test_a_stream_without_its_end_never_completed(length: int) -> None:
    data = parse(TARGET, STREAM[:length])
    assert data["complete"] is False
    log = log_of(DURABLE, told("go"), STEP, ("assistant_message", data))
    assert all("tool_calls" not in message for message in render(log, TARGET).messages)


def test_calls_that_a_server_gives_one_index_are_told_apart_by_their_ids() -> None:
    pieces = [called(0, '{"a":', "c1", "read"), called(0, "1}"), called(0, '{"b":2}', "c2", "read")]
    for index in (0, None):
        deltas = deepcopy(pieces)
        for delta in deltas:
            delta["tool_calls"][0]["index"] = index
        data = parse(TARGET, [*map(chunk, deltas), chunk({}, "tool_calls")])
        assert [(part["id"], part["arguments"]) for part in data["parts"]] == [("c1", '{"a":1}'), ("c2", '{"b":2}')]


def test_a_stream_of_sound_a_refusal_or_reasoning_is_put_together() -> None:
    sound = [chunk({"audio": {"id": "a1", "data": "AA"}}), chunk({"audio": {"data": "BB", "transcript": "H"}})]
    data = parse(TARGET, [*sound, chunk({"audio": {"transcript": "i", "expires_at": 9}}), chunk({}, "stop")])
    assert data["native"]["message"]["audio"] == {"id": "a1", "data": "AABB", "transcript": "Hi", "expires_at": 9}
    data = parse(TARGET, [chunk({"refusal": "N"}), chunk({"refusal": "o."}), chunk({}, "stop")])
    assert data["native"]["message"]["refusal"] == "No."
    data = parse(
        TARGET, [chunk({"reasoning_content": "h"}), chunk({"reasoning_content": "m"}), chunk({"content": "Hi"})]
    )
    assert data["parts"][0] == {"type": "reasoning", "content": "hm"}


HISTORIES: list[list[dict[str, Any]]] = [
    [{"role": "system", "content": "be brief"}, USER, {"role": "assistant", "content": "Hi"}, USER],
    [{"role": "developer", "content": "be brief", "name": "boss"}, {**USER, "name": "ann"}],
    [USER, asking("c1", "c2"), answer("c1"), answer("c2"), {"role": "assistant", "content": "done"}],
    [USER, {**asking("c1"), "content": ""}, answer("c1", "")],
    [USER, {"role": "assistant", "tool_calls": [call("c1", arguments='{ "a":1 }')]}, answer("c1")],
    [USER, {"role": "assistant", "content": None, "tool_calls": [CUSTOM]}, answer("c1")],
    [USER, {"role": "assistant", "content": "a", "refusal": None, "tool_calls": None}],
    [USER, {"role": "assistant", "content": None, "refusal": "No."}, {"role": "user", "content": ""}],
    [USER, {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}]}],
    [USER, {"role": "assistant", "content": None, "audio": {"id": "a1"}}, USER],
    [USER, asking("c1"), {**answer("c1"), "content": [{"type": "text", "text": "a"}], "name": "tool"}],
    [{"role": "user", "content": [{"type": "text", "text": "a"}]}],
    [{"role": "user", "content": [{"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}]}],
    [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a", "detail": "high"}}]}],
    [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f1"}}]}],
    [
        {
            "role": "user",
            "content": [{"type": "file", "file": {"filename": "a.csv", "file_data": "data:text/csv;base64,A"}}],
        }
    ],
    [{"role": "user", "content": [block for _, block in MEDIA]}],
]


@pytest.mark.parametrize("history", HISTORIES, ids=range(len(HISTORIES)))
def test_a_history_is_rendered_as_it_was_seeded(history: list[dict[str, Any]]) -> None:
    assert check(TARGET, history) == []
    before = deepcopy(history)
    found = render(Log.seed(TARGET, history), TARGET)
    assert found.messages == history == before
    assert found.findings == ()


def test_calls_of_the_deprecated_form_go_out_in_the_form_of_today() -> None:
    old: list[dict[str, Any]] = [
        USER,
        {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": '{"a":1}'}},
        {"role": "function", "name": "read", "content": "done"},
    ]
    assert check(TARGET, old) == []
    found = render(Log.seed(TARGET, old), TARGET)
    assert check(TARGET, found.messages) == []
    id = found.messages[1]["tool_calls"][0]["id"]
    expected = {"role": "assistant", "content": None, "tool_calls": [call(id, "read", '{"a":1}')]}
    assert found.messages == [USER, expected, answer(id)]
    assert codes(found) == ["id_rewritten"]


def test_the_name_of_a_message_holds_only_what_is_allowed() -> None:
    found = render(Log.seed(TARGET, [{**USER, "name": "Ann Lee"}]), TARGET)
    assert found.messages == [{**USER, "name": "Ann_Lee"}]
    assert codes(found) == ["name_rewritten"]


NO_LISTS: list[Any] = [[{"role": "wizard", "content": "a"}], [7], [{"content": "a"}], "go"]


@pytest.mark.parametrize("bad", NO_LISTS)
def test_what_is_no_list_of_messages_is_refused_by_name(bad: Any) -> None:
    with pytest.raises(InvalidEvent):
        Log.seed(TARGET, bad)


VALID = [
    {"role": "system", "content": "be brief"},
    USER,
    {"role": "assistant", "content": "ok", "tool_calls": [call("c1"), call("c2")]},
    answer("c1"),
    answer("c2"),
    {"role": "user", "content": [{"type": "text", "text": "a"}, MEDIA[0][1]]},
]


def mutations() -> Iterator[tuple[str, str, list[Any]]]:
    def changed(index: int, path: str, value: object) -> list[Any]:
        messages: Any = deepcopy(VALID)
        *steps, last = path.split(".")
        at = messages[index]
        for step in steps:
            at = at[int(step) if step.isdigit() else step]
        at[int(last) if last.isdigit() else last] = value
        return list(messages)

    yield "unanswered_call", "messages[2].tool_calls[1]", VALID[:4]
    yield "unanswered_call", "messages[2].tool_calls[1]", [*VALID[:4], USER, VALID[4]]
    yield "orphan_result", "messages[5]", [*VALID[:4], USER, VALID[4]]
    yield "orphan_result", "messages[1]", [USER, answer("c1")]
    yield "duplicate_result", "messages[5]", [*VALID[:5], answer("c2")]
    yield "duplicate_id", "messages[2].tool_calls[1].id", changed(2, "tool_calls.1.id", "c1")
    yield "duplicate_id", "messages[5].tool_calls[0].id", [*VALID[:5], asking("c1"), answer("c1")]
    yield "bad_id", "messages[2].tool_calls[0].id", changed(2, "tool_calls.0.id", "i" * 41)
    yield "bad_id", "messages[2].tool_calls[0].id", changed(2, "tool_calls.0.id", "")
    yield "bad_id", "messages[3].tool_call_id", changed(3, "tool_call_id", None)
    yield "bad_name", "messages[2].tool_calls[0].function.name", changed(2, "tool_calls.0.function.name", "a.b")
    yield "bad_name", "messages[1].name", changed(1, "name", "a b")
    where = "messages[2].tool_calls[0].function.arguments"
    for bad in ("{", "", "[]", '{"x":NaN}', {"a": 1}, None):
        yield "bad_arguments", where, changed(2, "tool_calls.0.function.arguments", bad)
    yield "surrogate", where, changed(2, "tool_calls.0.function.arguments", '{"a":"\\ud83d"}')
    yield "surrogate", "messages[1].content", changed(1, "content", "\ud83d")
    yield "empty_message", "messages[1]", [USER, {"role": "assistant", "content": ""}]
    yield "empty_message", "messages[1]", [USER, {"role": "assistant", "content": None}]
    yield "empty_message", "messages[1].content", changed(1, "content", [])
    yield "bad_shape", "messages[1].content", changed(1, "content", None)
    yield "bad_shape", "messages[3].content", changed(3, "content", None)
    yield "bad_shape", "messages[3].content[0]", changed(3, "content", [MEDIA[0][1]])
    yield "bad_shape", "messages[5].content[0]", changed(5, "content.0", {"type": "thinking", "thinking": "a"})
    yield "bad_shape", "messages[5].content[1]", changed(5, "content.1", {"type": "image_url"})
    yield "bad_shape", "messages[1]", changed(1, "role", "wizard")
    yield "bad_shape", "messages[1].tool_calls", [USER, {"role": "assistant", "content": "a", "tool_calls": []}]
    yield "bad_shape", "messages[2].tool_calls[0].type", changed(2, "tool_calls.0.type", "spell")
    yield "bad_shape", "messages[2].tool_calls[0]", changed(2, "tool_calls.0", "c1")
    yield (
        "bad_arguments",
        "messages[1].tool_calls[0].custom.input",
        [
            USER,
            {"role": "assistant", "tool_calls": [{**CUSTOM, "custom": {"name": "a"}}]},
            answer("c1"),
        ],
    )
    yield "bad_name", "messages[0].name", [{"role": "function", "content": "a"}]


@pytest.mark.parametrize(("code", "position", "messages"), [*mutations()])
def test_a_planted_break_is_found_where_it_stands(code: str, position: str, messages: list[Any]) -> None:
    assert (code, position) in [(problem.code, problem.position) for problem in check(TARGET, messages)]


def test_a_valid_list_has_no_problem() -> None:
    assert check(TARGET, VALID) == []
    assert [problem.position for problem in check(TARGET, VALID, system="a")] == ["system"]


def test_more_history_changes_nothing_before_it() -> None:
    rows = [
        told("go"),
        ask("k"),
        result("k", "1.0"),
        TURN_END,
        told("next"),
        ask("k", ""),
        result("k", "5.0"),
        said("a"),
    ]
    log = Log()
    before: list[dict[str, Any]] = []
    for type_, data, *_ in rows:
        log.append(type_, data)
        found = render(log, TARGET).messages
        standing = [message for message in before if message["role"] != "tool"]
        assert [message for message in found if message["role"] != "tool"][: len(standing)] == standing
        before = found


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
