"""The target `bedrock`: what it sends, what it refuses, what it reads."""

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.core.build import DURABLE, STEP, STEP_END, TURN_END, Row, ask, dispatch, extend, log_of, result
from turnwal.core.log import Log
from turnwal.core.recovery import recover
from turnwal.transcript.bedrock.blobs import with_bytes
from turnwal.transcript.check import check
from turnwal.transcript.parsing import Log as Seeded
from turnwal.transcript.parsing import parse
from turnwal.transcript.render import Rendering, render

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"


def user(text: str = "go") -> Row:
    return ("user_message", {"parts": [{"type": "text", "content": text}]})


def given(*parts: dict[str, Any]) -> Row:
    return ("user_message", {"parts": list(parts)})


def said(*parts: dict[str, Any], **data: Any) -> Row:
    return ("assistant_message", {"parts": list(parts), **data})


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


def native(block: dict[str, Any], **part: Any) -> dict[str, Any]:
    return {**part, "native": {"provider": "bedrock", "block": block}}


def sent(log: Log, model: str | None = None, **options: Any) -> Rendering:
    rendering = render(log, "bedrock", model=model, **options)
    assert check("bedrock", rendering.messages) == []
    assert json.loads(json.dumps(rendering.messages)) == rendering.messages
    return rendering


def codes(rendering: Rendering) -> list[str]:
    return [finding.code for finding in rendering.findings]


def problems(messages: list[Any]) -> list[str]:
    return [problem.code for problem in check("bedrock", messages)]


def shape(messages: list[dict[str, Any]]) -> list[str]:
    """Role and kinds of the blocks of each message."""
    return [f"{each['role']}:{','.join(next(iter(block)) for block in each['content'])}" for each in messages]


# --- rendering


def test_a_call_and_its_result_stand_behind_each_other() -> None:
    log = log_of(user(), ask("c1", name="pay", arguments='{"n":1}'), result("c1", "1.0", text="paid"))

    assert sent(log).messages == [
        {"role": "user", "content": [{"text": "go"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "pay", "input": {"n": 1}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "paid"}]}}]},
    ]


def test_f01_a_dangling_call_is_answered_once_recovered() -> None:
    log = log_of(DURABLE, user(), STEP, ask("c1"), dispatch("c1", "3.0"))
    recover(log)

    answered = sent(log).messages[-1]["content"][0]["toolResult"]
    assert answered["status"] == "error"
    assert "may have run" in answered["content"][0]["text"]


def test_f04_all_results_of_a_message_stand_in_the_order_of_its_calls() -> None:
    log = log_of(user(), ask("c1", "c2", "c3"), result("c3", "1.2"), result("c1", "1.0"))

    ids = [block["toolResult"]["toolUseId"] for block in sent(log).messages[2]["content"]]
    assert ids == ["c1", "c2", "c3"]


def test_f05_results_that_arrived_one_by_one_are_one_message() -> None:
    log = log_of(user(), ask("c1", "c2"), result("c1", "1.0"), result("c2", "1.1"))

    assert shape(sent(log).messages) == ["user:text", "assistant:toolUse,toolUse", "user:toolResult,toolResult"]


def test_f06_a_result_without_its_call_is_left_out() -> None:
    rendering = sent(log_of(user(), result("c9", "7.0"), user("next")))

    assert shape(rendering.messages) == ["user:text,text"]
    assert codes(rendering) == ["orphan_result"]


@pytest.mark.parametrize("id", ["", "k", "with space", "x" * 65])
def test_f08_f40_an_id_that_is_taken_or_not_allowed_is_another_one_on_both_sides(id: str) -> None:
    log = log_of(user(), ask("k"), result("k", "1.0"), user(), ask(id), result(id, "4.0"))

    messages = sent(log).messages
    ids = [block["toolUse"]["toolUseId"] for message in messages for block in message["content"] if "toolUse" in block]
    assert ids[0] == "k"
    assert ids[1].startswith("tooluse_")
    assert messages[-1]["content"][0]["toolResult"]["toolUseId"] == ids[1]


def test_f40_an_id_that_is_allowed_is_kept() -> None:
    assert sent(log_of(user(), ask("fc:1.a-b_c"))).messages[1]["content"][0]["toolUse"]["toolUseId"] == "fc:1.a-b_c"


def test_f09_what_came_between_stands_behind_the_results() -> None:
    log = log_of(user(), ask("c1"), user("wait"), result("c1", "1.0"))

    assert shape(sent(log).messages) == ["user:text", "assistant:toolUse", "user:toolResult,text"]


def test_f30_arguments_that_were_cut_off_stand_inside_an_object() -> None:
    rendering = sent(log_of(user(), ask("c1", arguments='{"path":"a'), result("c1", "1.0")))

    assert rendering.messages[1]["content"][0]["toolUse"]["input"] == {"incomplete_arguments": '{"path":"a'}
    assert codes(rendering) == ["arguments_wrapped"]


@pytest.mark.parametrize("arguments", ['{"x": NaN}', '{"x":' * 250 + "1" + "}" * 250], ids=["nan", "deep"])
@pytest.mark.parametrize("kind", ["a_tool", "server_tool_use"])
def test_a_streamed_call_whose_arguments_no_event_holds_as_data_is_recorded(kind: str, arguments: str) -> None:
    call = {"toolUseId": "c1", "name": "f", "type": kind}
    chunks: list[dict[str, Any]] = [
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": call}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": arguments}}}},
        {"contentBlockStart": {"contentBlockIndex": 1, "start": {"toolResult": {"toolUseId": "c1", "content": []}}}},
        {"messageStop": {"stopReason": "tool_use"}},
    ]
    data = parse("bedrock", chunks if kind == "server_tool_use" else chunks[:2] + chunks[3:])
    assert data["parts"][0]["arguments"] == arguments
    rendering = render(log_of(user(), ("assistant_message", data)), "bedrock")
    expected = {} if kind == "server_tool_use" else {"incomplete_arguments": arguments}
    assert rendering.messages[1]["content"][0] == {"toolUse": {**call, "input": expected}}
    assert check("bedrock", rendering.messages) == []


def test_words_of_a_stream_that_broke_off_are_a_message_before_the_reasoning_that_follows() -> None:
    thought = native(SIGNED, type="reasoning")
    log = log_of(
        user(),
        said(thought, text("I will"), provider="bedrock", complete=False),
        said(thought, text("ok"), provider="bedrock"),
    )
    rendering = render(log, "bedrock")
    assert [message["role"] for message in rendering.messages] == ["user", "assistant", "user", "assistant"]
    assert rendering.messages[3]["content"] == [SIGNED, {"text": "ok"}]
    assert check("bedrock", rendering.messages) == []


@pytest.mark.parametrize("parts", [[], [text(" \n")], [{"type": "reasoning", "content": "hm"}]])
def test_f31_a_message_with_nothing_in_it_is_left_out(parts: list[dict[str, Any]]) -> None:
    rendering = sent(log_of(user("a"), said(*parts), user("b")))

    assert rendering.messages == [{"role": "user", "content": [{"text": "a"}, {"text": "b"}]}]
    assert codes(rendering)[-1] == "empty_message"


def test_f35_half_a_character_is_replaced() -> None:
    assert sent(log_of(user("ab\ud83d"))).messages[0]["content"] == [{"text": "ab\ufffd"}]


def test_a_result_says_something() -> None:
    silent = ("tool_result", {"call": "1.0", "id": "c1", "parts": [text(" ")]})

    answered = sent(log_of(user(), ask("c1"), silent)).messages[2]["content"][0]["toolResult"]
    assert answered["content"] == [{"text": "(no output)"}]


def test_system_text_stands_apart_and_later_on_is_the_users() -> None:
    system = ("system_message", {"parts": [text("be kind")]})

    rendering = sent(log_of(system, user(), said(text("yes")), system))
    assert rendering.system == "be kind"
    assert shape(rendering.messages) == ["user:text", "assistant:text", "user:text"]
    assert codes(rendering) == ["system_in_place"]


def test_the_first_message_is_the_users_and_the_last_answer_does_not_end_in_white_space() -> None:
    rendering = sent(log_of(said(text("hello \n"))))

    assert shape(rendering.messages) == ["user:text", "assistant:text"]
    assert rendering.messages[1]["content"] == [{"text": "hello"}]
    assert codes(rendering) == ["bridge_added"]


@pytest.mark.parametrize(
    ("model", "status"),
    [
        (None, True),
        (CLAUDE, True),
        ("amazon.nova-pro-v1:0", True),
        ("arn:aws:bedrock:us-east-1:1:application-inference-profile/abc", True),
        ("meta.llama3-3-70b-instruct-v1:0", False),
        ("eu.mistral.pixtral-large-2502-v1:0", False),
    ],
)
def test_an_error_is_a_status_or_a_word(model: str | None, status: bool) -> None:
    log = log_of(user(), ask("c1"), result("c1", "1.0", text="broken", is_error=True))

    answered = sent(log, model).messages[2]["content"][0]["toolResult"]
    words = [{"text": "broken"}] if status else [{"text": "(error)"}, {"text": "broken"}]
    assert (answered.get("status"), answered["content"]) == ("error" if status else None, words)


# --- reasoning and server tools


SIGNED = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "abc"}}}
HIDDEN = {"reasoningContent": {"reasoningText": {"text": "", "signature": "abc"}}}
REDACTED = {"reasoningContent": {"redactedContent": "AAAA"}}
UNSIGNED = {"reasoningContent": {"reasoningText": {"text": "hm"}}}


@pytest.mark.parametrize("block", [SIGNED, HIDDEN, REDACTED])
@pytest.mark.parametrize(
    ("model", "same"),
    [(None, True), ("eu.anthropic.claude-sonnet-4-5", True), ("us.anthropic.claude-opus-4-1-20250805-v1:0", False)],
)
def test_f29_signed_reasoning_is_for_its_model_alone(block: dict[str, Any], model: str | None, same: bool) -> None:
    log = log_of(user(), said(native(block, type="reasoning"), text("yes"), provider="bedrock", model=CLAUDE))

    rendering = sent(log, model)
    assert rendering.messages[1]["content"] == ([block] if same else []) + [{"text": "yes"}]
    assert codes(rendering) == ([] if same else ["reasoning_left_out"])


@pytest.mark.parametrize(
    "row",
    [
        said(text("yes"), native(SIGNED, type="reasoning"), provider="bedrock", model=CLAUDE),
        said(native(UNSIGNED, type="reasoning"), text("yes"), provider="bedrock"),
        said(native(SIGNED, type="reasoning"), text("yes"), provider="bedrock", complete=False),
        said({"type": "reasoning", "content": "hm"}, text("yes"), provider="anthropic"),
    ],
)
def test_f29_reasoning_that_is_not_signed_or_whole_is_left_out(row: Row) -> None:
    rendering = sent(log_of(user(), row))

    assert rendering.messages[1]["content"] == [{"text": "yes"}]
    assert "reasoning_left_out" in codes(rendering)


SERVED = {"toolUse": {"toolUseId": "s", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}}
SERVED_RESULT = {"toolResult": {"toolUseId": "s", "content": [{"text": "found"}], "type": "nova_grounding_result"}}


def test_what_a_server_tool_did_goes_back_in_pairs_alone() -> None:
    asked = native(SERVED, type="server_tool_call", id="s", name="nova_grounding")
    found = native(SERVED_RESULT, type="server_tool_call_response", id="s", name="nova_grounding_result")

    assert sent(log_of(user(), said(asked, found, text("ok")))).messages[1]["content"] == [
        SERVED,
        SERVED_RESULT,
        {"text": "ok"},
    ]
    for half in (asked, found):
        rendering = sent(log_of(user(), said(half, text("ok"))))
        assert rendering.messages[1]["content"] == [{"text": "ok"}]
        assert codes(rendering) == ["part_left_out"]


# --- media


PNG = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "iVBORw=="}
PDF = {"type": "blob", "modality": "document", "mime_type": "application/pdf", "content": "JVBERi0="}
IMAGE = {"image": {"format": "png", "source": {"bytes": "iVBORw=="}}}


def pdf(name: str) -> dict[str, Any]:
    return {"document": {"format": "pdf", "name": name, "source": {"bytes": "JVBERi0="}}}


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (PNG, IMAGE),
        (
            {"type": "uri", "modality": "image", "mime_type": "image/webp", "uri": "s3://bucket/a.webp"},
            {"image": {"format": "webp", "source": {"s3Location": {"uri": "s3://bucket/a.webp"}}}},
        ),
        (
            {"type": "uri", "modality": "image", "mime_type": "image/png", "uri": "https://a.example/b"},
            {"text": "[image/png at https://a.example/b: not sent here]"},
        ),
        ({**PNG, "content": "A" * (5 * 1024 * 1024 + 4)}, {"text": "[image/png, 3,932,163 bytes: not sent here]"}),
        ({**PNG, "mime_type": "image/tiff"}, {"text": "[image/tiff, 6 bytes: not sent here]"}),
        ({"type": "file", "modality": "image", "file_id": "f"}, {"text": "[image: not sent here]"}),
    ],
)
def test_media_is_sent_or_named(part: dict[str, Any], block: dict[str, Any]) -> None:
    rendering = sent(log_of(given(part)))

    assert rendering.messages == [{"role": "user", "content": [block]}]
    assert codes(rendering) == (["part_replaced"] if "text" in block else [])


def test_documents_have_names_of_their_own_and_text_beside_them() -> None:
    report = native(pdf("report"), type="blob", modality="document")
    returned = (
        "tool_result",
        {"call": "2.0", "id": "c1", "parts": [{**PDF, "name": "report"}, {**PDF, "name": "a/b.pdf"}]},
    )

    rendering = sent(log_of(given(PDF), given(report), ask("c1"), returned))
    first, bridge = rendering.messages[0]["content"][:2], rendering.messages[0]["content"][-1]
    assert first == [pdf("document 0-0"), pdf("report")]
    assert bridge.keys() == {"text"}
    assert rendering.messages[2]["content"][0]["toolResult"]["content"] == [pdf("report (2)"), pdf("document 3-1")]
    assert codes(rendering) == ["name_rewritten", "bridge_added"]


def test_a_cache_point_does_not_stand_alone() -> None:
    point = native({"cachePoint": {"type": "default"}}, type="cachePoint")

    assert shape(sent(log_of(given(text(" "), point))).messages) == ["user:text,cachePoint"]
    behind = log_of(user(), ask("c1"), result("c1", "1.0"), given(point))
    assert shape(sent(behind).messages)[-1] == "user:toolResult,cachePoint"


def test_bytes_are_made_for_the_packages_of_aws_and_nothing_is_changed() -> None:
    messages: list[dict[str, Any]] = [
        {
            "role": "user",
            "content": [
                IMAGE,
                pdf("a"),
                {"guardContent": {"image": {"format": "png", "source": {"bytes": "AAAA"}}}},
                {"text": "bytes"},
            ],
        },
        {
            "role": "assistant",
            "content": [REDACTED, SIGNED, {"toolUse": {"toolUseId": "c", "name": "f", "input": {"bytes": "AAAA"}}}],
        },
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "c", "content": [IMAGE, {"json": {"bytes": "AAAA"}}]}}],
        },
    ]
    before = copy.deepcopy(messages)

    made = with_bytes(messages)
    assert messages == before
    assert made[0]["content"][0]["image"]["source"] == {"bytes": b"\x89PNG"}
    assert made[0]["content"][1]["document"]["source"] == {"bytes": b"%PDF-"}
    assert made[0]["content"][2]["guardContent"]["image"]["source"] == {"bytes": b"\0\0\0"}
    assert made[1]["content"] == [{"reasoningContent": {"redactedContent": b"\0\0\0"}}, *messages[1]["content"][1:]]
    assert made[2]["content"][0]["toolResult"]["content"] == [
        {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}},
        {"json": {"bytes": "AAAA"}},
    ]


# --- parsing


def reply(*content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "ResponseMetadata": {"RequestId": "r1", "HTTPStatusCode": 200},
        "output": {"message": {"role": "assistant", "content": list(content)}},
        "stopReason": "tool_use",
        "usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3},
        "metrics": {"latencyMs": 4},
        **more,
    }


CALL = {"toolUse": {"toolUseId": "c1", "name": "f", "input": {"n": 2**60, "none": None}}}


def test_a_reply_is_read_whole() -> None:
    data = parse("bedrock", reply({"reasoningContent": {"redactedContent": b"\0\0\0"}}, {"text": "yes"}, CALL))

    assert data == {
        "parts": [
            native(REDACTED, type="reasoning"),
            text("yes"),
            {"type": "tool_call", "id": "c1", "name": "f", "arguments": f'{{"n":{2**60},"none":null}}'},
        ],
        "provider": "bedrock",
        "response_id": "r1",
        "stop": "tool_use",
        "usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3},
        "native": {"provider": "bedrock", "reply": {"metrics": {"latencyMs": 4}}},
    }
    assert sent(log_of(user(), ("assistant_message", data))).messages[1]["content"] == [REDACTED, {"text": "yes"}, CALL]


def test_a_prompt_router_says_which_model_it_chose() -> None:
    assert parse("bedrock", reply(trace={"promptRouter": {"invokedModelId": CLAUDE}}))["model"] == CLAUDE


def stream(*deltas: tuple[int, dict[str, Any]], start: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"messageStart": {"role": "assistant"}}]
    events += [{"contentBlockStart": {"start": block, "contentBlockIndex": at}} for at, block in start.items()]
    events += [{"contentBlockDelta": {"delta": delta, "contentBlockIndex": at}} for at, delta in deltas]
    events += [{"contentBlockStop": {"contentBlockIndex": at}} for at in {at for at, _ in deltas}]
    return [*events, {"messageStop": {"stopReason": "tool_use"}}, {"metadata": {"usage": {"inputTokens": 1}}}]


EVENTS = stream(
    (0, {"reasoningContent": {"text": "h"}}),
    (0, {"reasoningContent": {"text": "m"}}),
    (0, {"reasoningContent": {"signature": "abc"}}),
    (1, {"reasoningContent": {"redactedContent": b"\0"}}),
    (1, {"reasoningContent": {"redactedContent": b"\0\0"}}),
    (2, {"text": "ye"}),
    (2, {"text": "s"}),
    (3, {"toolUse": {"input": '{"n": 1'}}),
    (3, {"toolUse": {"input": ".50}"}}),
    (4, {"toolUse": {"input": ""}}),
    start={3: {"toolUse": {"toolUseId": "c1", "name": "f"}}, 4: {"toolUse": {"toolUseId": "c2", "name": "g"}}},
)


def test_a_stream_is_put_together() -> None:
    data = parse("bedrock", EVENTS)

    assert data["parts"] == [
        native(SIGNED, type="reasoning", content="hm"),
        native(REDACTED, type="reasoning"),
        text("yes"),
        {"type": "tool_call", "id": "c1", "name": "f", "arguments": '{"n": 1.50}'},
        {"type": "tool_call", "id": "c2", "name": "g", "arguments": ""},
    ]
    assert (data["stop"], data["usage"], "complete" in data) == ("tool_use", {"inputTokens": 1}, False)
    assert [
        block["toolUse"]["input"]
        for block in sent(log_of(user(), ("assistant_message", data))).messages[1]["content"][3:]
    ] == [{"n": 1.5}, {}]


def test_a_stream_that_was_cut_off_keeps_what_there_is() -> None:
    data = parse("bedrock", EVENTS[:11])

    assert data["complete"] is False
    assert [part["arguments"] for part in data["parts"][3:]] == ['{"n": 1', "{}"]
    assert parse("bedrock", [])["complete"] is False


def test_citations_of_a_stream_are_kept_with_their_text() -> None:
    cited = stream((0, {"text": "green"}), (0, {"citation": {"title": "t"}}), start={})

    part = parse("bedrock", cited)["parts"][0]
    assert part["content"] == "green"
    assert part["native"]["block"] == {
        "citationsContent": {"content": [{"text": "green"}], "citations": [{"title": "t"}]}
    }


# --- seeding


HISTORIES: list[list[dict[str, Any]]] = [
    [
        {"role": "user", "content": [{"text": "a"}, {"cachePoint": {"type": "default"}}]},
        {"role": "assistant", "content": [{"text": "c"}]},
    ],
    [
        {
            "role": "user",
            "content": [IMAGE, pdf("my report (1)"), {"text": "see"}, {"guardContent": {"text": {"text": "x"}}}],
        },
        {"role": "assistant", "content": [SIGNED, {"citationsContent": {"content": [{"text": "y"}], "citations": []}}]},
        {
            "role": "user",
            "content": [
                {
                    "document": {
                        "format": "txt",
                        "name": "notes",
                        "source": {"text": "t"},
                        "citations": {"enabled": True},
                    }
                },
                {
                    "image": {
                        "format": "png",
                        "source": {"s3Location": {"uri": "s3://bucket/a", "bucketOwner": "1" * 12}},
                    }
                },
                {"text": "and?"},
            ],
        },
        {"role": "assistant", "content": [SERVED, SERVED_RESULT, {"text": "ok"}]},
    ],
    [
        {"role": "user", "content": [{"text": "a"}]},
        {
            "role": "assistant",
            "content": [
                REDACTED,
                {"text": "on it"},
                CALL,
                {"toolUse": {"toolUseId": "c2", "name": "g", "input": {}}},
                {"toolUse": {"toolUseId": "c3", "name": "g", "input": {}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "toolResult": {
                        "toolUseId": "c1",
                        "content": [{"text": "x"}, IMAGE, {"json": {"a": [1, None]}}],
                        "status": "error",
                    }
                },
                {"toolResult": {"toolUseId": "c2", "content": [{"json": {"a": 1}}], "status": "success"}},
                {"toolResult": {"toolUseId": "c3", "content": []}},
                {"text": "hurry"},
            ],
        },
    ],
]


@pytest.mark.parametrize("messages", HISTORIES)
def test_a_seeded_history_is_rendered_as_it_was(messages: list[dict[str, Any]]) -> None:
    assert check("bedrock", messages) == []

    log = Seeded.seed(
        "bedrock", copy.deepcopy(messages), system=[{"text": "be kind"}, {"cachePoint": {"type": "default"}}]
    )
    rendering = sent(log)
    assert rendering.messages == messages
    assert rendering.system == "be kind"
    assert rendering.findings == ()


# --- checking


GOOD = HISTORIES[2]


def _set(path: list[Any], value: object) -> Callable[[Any], None]:
    def change(messages: Any) -> None:
        for step in path[:-1]:
            messages = messages[step]
        messages[path[-1]] = value

    return change


def _drop(path: list[Any]) -> Callable[[Any], None]:
    def change(messages: Any) -> None:
        for step in path[:-1]:
            messages = messages[step]
        del messages[path[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_drop([0]), "first_role"),
        (_drop([2]), "unanswered_call"),
        (_drop([2, "content", 1]), "unanswered_call"),
        (_drop([1]), "orphan_result"),
        (_drop([1]), "role_order"),
        (_drop([1, "content", 3]), "orphan_result"),
        (_set([2, "content", 1, "toolResult", "toolUseId"], "c1"), "duplicate_result"),
        (_set([1, "content", 3, "toolUse", "toolUseId"], "c1"), "duplicate_id"),
        (_set([1, "content", 3, "toolUse", "toolUseId"], "c 1"), "bad_id"),
        (_set([1, "content", 3, "toolUse", "name"], "g.h"), "bad_name"),
        (_set([1, "content", 3, "toolUse", "input"], "{}"), "bad_arguments"),
        (_set([2, "content", 0], {"text": "first"}), "results_not_first"),
        (_set([2, "content", 1, "toolResult", "content"], "x"), "bad_shape"),
        (_set([2, "content", 1, "toolResult", "status"], "bad"), "bad_shape"),
        (_set([2, "content", 1, "toolResult", "content"], [{"text": " "}]), "empty_message"),
        (_set([2, "content", 1, "toolResult", "content"], [{"toolUse": {}}]), "bad_shape"),
        (_set([0, "content"], []), "empty_message"),
        (_set([0, "content"], "a"), "bad_shape"),
        (_set([0, "content", 0, "text"], "\n"), "empty_message"),
        (_set([0, "role"], "tool"), "bad_shape"),
        (_set([0, "content", 0], {"text": "a", "image": {}}), "bad_shape"),
        (_set([0, "content", 0], {"toolUse": {}}), "bad_shape"),
        (_set([1, "content", 0], UNSIGNED), "unsigned_reasoning"),
        (_set([1, "content"], [SIGNED]), "reasoning_alone"),
        (_set([1, "content", 0], SERVED), "unanswered_call"),
        (_set([1, "content", 0], SERVED_RESULT), "orphan_result"),
        (_set([0, "content", 0], pdf("a")), "bad_shape"),
        (_set([0, "content"], [pdf("a"), pdf("a"), {"text": "x"}]), "duplicate_name"),
        (_set([0, "content"], [pdf("a.b"), {"text": "x"}]), "bad_name"),
        (_set([0, "content"], [pdf("a  b"), {"text": "x"}]), "bad_name"),
        (_set([0, "content", 0], {"image": {"format": "tiff", "source": {"bytes": "AAAA"}}}), "bad_shape"),
        (_set([0, "content", 0], {"image": {"format": "png", "source": {"bytes": "?"}}}), "bad_shape"),
        (_set([0, "content", 0, "text"], "\ud800"), "surrogate"),
    ],
)
def test_each_broken_rule_is_found(change: Callable[[Any], None], code: str) -> None:
    messages = copy.deepcopy(GOOD)
    change(messages)

    assert code in problems(messages)


@pytest.mark.parametrize(
    "odd",
    [None, 1, "x", [], {}, {"role": []}, {"role": "user", "content": [None, {"text": 1}, {"document": {"name": []}}]}],
)
def test_nothing_is_raised_for_odd_messages(odd: Any) -> None:
    odd_ids = {
        "role": "assistant",
        "content": [{"toolUse": {"name": [], "toolUseId": {}}}, {"toolResult": 1}, {"reasoningContent": 1}],
    }

    assert problems([odd, odd_ids, odd])


# --- laws, over random logs


def random_log(rng: random.Random) -> Log:
    log = Log()
    for turn in range(rng.randint(1, 4)):
        extend(log, [DURABLE if rng.random() < 0.8 else user("outside"), user(f"turn {turn}"), STEP])
        for _ in range(rng.randint(0, 3)):
            ids = [rng.choice(["k", "", "é", f"c{rng.random()}"]) for _ in range(rng.randint(0, 3))]
            extend(
                log,
                [said(*random_parts(rng, ids), provider="bedrock", model=rng.choice([CLAUDE, "amazon.nova-pro-v1:0"]))],
            )
            asking = log.events[-1]
            for index, part in enumerate(asking.data["parts"]):
                key = f"{asking.seq}.{index}"
                if part["type"] == "tool_call" and rng.random() < 0.7:
                    extend(log, [dispatch(part["id"], key)])
                    if rng.random() < 0.2:
                        extend(log, [given(rng.choice([text("meanwhile"), PDF]))])
                    if rng.random() < 0.7:
                        parts = rng.choice([[], [text("r")], [PNG, PDF], [{**PDF, "name": "same"}]])
                        extend(
                            log,
                            [
                                (
                                    "tool_result",
                                    {"call": key, "id": part["id"], "parts": parts, "is_error": rng.random() < 0.3},
                                )
                            ],
                        )
        if rng.random() < 0.7:
            extend(log, [STEP_END, TURN_END])
    return log


def random_parts(rng: random.Random, ids: list[str]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [
        {"type": "tool_call", "id": id, "name": rng.choice(["f", "1 x"]), "arguments": rng.choice(["{}", '{"a', "[1]"])}
        for id in ids
    ]
    parts += rng.sample([text("said "), text(" "), text("\ud800"), PNG, {"type": "new", "x": 1}], rng.randint(0, 2))
    parts += rng.sample(
        [
            native(SIGNED, type="reasoning"),
            native(UNSIGNED, type="reasoning"),
            native(SERVED, type="server_tool_call", id="s"),
        ],
        rng.randint(0, 2),
    )
    rng.shuffle(parts)
    return parts


@pytest.mark.parametrize("seed", range(150))
def test_whatever_befell_a_session_the_request_is_valid_and_only_grows(seed: int) -> None:
    rng = random.Random(seed)
    log = random_log(rng)
    sent(log)
    model = rng.choice([CLAUDE, "meta.llama3-3-70b-instruct-v1:0"])
    rendering = sent(log, model)
    assert rendering == render(list(log.events), "bedrock", model=model)
    assert sent(Seeded.seed("bedrock", rendering.messages), model).messages == rendering.messages

    extend(log, [user("later")])
    assert sent(log, model).messages[: len(rendering.messages) - 1] == rendering.messages[:-1]


def test_bytes_as_the_packages_of_aws_take_them_are_measured_and_not_refused() -> None:
    seen = log_of(("user_message", {"parts": [PNG, PDF, {"type": "text", "content": "see"}]}))
    assert check("bedrock", with_bytes(render(seen, "bedrock").messages)) == []

    def told(kind: str, format: str, held: Any) -> list[tuple[str, str]]:
        block = {kind: {"format": format, "name": "a", "source": {"bytes": held}}}
        found = check("bedrock", [{"role": "user", "content": [{"text": "see"}, block]}])
        return [(problem.code, problem.position.removeprefix(f"messages[0].content[1].{kind}.")) for problem in found]

    for kind, format, size in (("image", "png", 3_932_160), ("document", "pdf", 4_718_592)):
        for made in (bytes, bytearray):
            assert told(kind, format, made(size)) == []
            assert told(kind, format, made(size + 1)) == [("too_large", "source.bytes")]
            assert told(kind, format, made()) == [("bad_shape", "source")]
        assert told(kind, format, 7) == [("bad_shape", "source")]


@pytest.mark.parametrize("said", [[1], "none", 1])
def test_the_last_event_of_a_stream_in_another_form_does_not_cost_the_message(said: object) -> None:
    said_first = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "hi"}}},
        {"messageStop": {"stopReason": "end_turn"}},
    ]
    data = parse("bedrock", [*said_first, {"metadata": said}])
    assert data["parts"] == [{"type": "text", "content": "hi"}]
    assert data["native"] == {"provider": "bedrock", "reply": {"metadata": said}}
