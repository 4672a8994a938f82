"""The target `gemini`: what it sends, what it refuses, what it reads."""

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.core.build import DURABLE, STEP, STEP_END, TURN_END, Row, ask, dispatch, extend, log_of, note, result
from turnwal.core.log import Log
from turnwal.core.recovery import recover
from turnwal.transcript.check import check
from turnwal.transcript.parsing import Log as Seeded
from turnwal.transcript.parsing import parse
from turnwal.transcript.render import Rendering, render

OLD = "gemini-2.5-flash"
NEW = "gemini-3-pro-preview"
BYPASS = "skip_thought_signature_validator"


def user(text: str = "go") -> Row:
    return ("user_message", {"parts": [{"type": "text", "content": text}]})


def said(*parts: dict[str, Any], **data: Any) -> Row:
    return ("assistant_message", {"parts": list(parts), **data})


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


def native(block: dict[str, Any], **part: Any) -> dict[str, Any]:
    return {**part, "native": {"provider": "gemini", "block": block}}


def sent(log: Log, model: str | None = OLD, **options: Any) -> Rendering:
    rendering = render(log, "gemini", model=model, **options)
    assert check("gemini", rendering.messages) == []
    return rendering


def codes(rendering: Rendering) -> list[str]:
    return [finding.code for finding in rendering.findings]


def problems(contents: list[Any]) -> list[str]:
    return [problem.code for problem in check("gemini", contents)]


def shape(contents: list[dict[str, Any]]) -> list[str]:
    """Role and kinds of the parts of each content."""
    kinds = ("text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "toolCall")
    return [
        content["role"]
        + ":"
        + ",".join(next((kind for kind in kinds if kind in part), "?") for part in content["parts"])
        for content in contents
    ]


# --- rendering


def test_a_call_and_its_response_stand_behind_each_other() -> None:
    log = log_of(user(), ask("c1", name="pay", arguments='{"n":1}'), result("c1", "1.0", text="paid"))

    assert sent(log).messages == [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "pay", "args": {"n": 1}, "id": "c1"}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "c1", "name": "pay", "response": {"output": "paid"}}}],
        },
    ]


def test_an_error_is_said_as_one() -> None:
    log = log_of(user(), ask("c1"), result("c1", "1.0", text="broken", is_error=True))

    assert sent(log).messages[-1]["parts"][0]["functionResponse"]["response"] == {"error": "broken"}


def test_f01_a_dangling_call_is_answered_once_recovered() -> None:
    log = log_of(DURABLE, user(), STEP, ask("c1"), dispatch("c1", "3.0"))
    recover(log)

    response = sent(log).messages[-1]["parts"][0]["functionResponse"]
    assert response["id"] == "c1"
    assert "may have run" in response["response"]["error"]


def test_f04_all_responses_of_a_message_stand_in_the_order_of_its_calls() -> None:
    log = log_of(user(), ask("c1", "c2", "c3"), result("c3", "1.2", text="3"), result("c1", "1.0", text="1"))

    responses = [part["functionResponse"] for part in sent(log).messages[2]["parts"]]
    assert [response["id"] for response in responses] == ["c1", "c2", "c3"]
    assert [*responses[0]["response"].values()] == ["1"]


def test_f05_results_that_arrived_one_by_one_are_one_content() -> None:
    log = log_of(user(), ask("c1", "c2"), result("c1", "1.0"), result("c2", "1.1"))

    assert shape(sent(log).messages) == [
        "user:text",
        "model:functionCall,functionCall",
        "user:functionResponse,functionResponse",
    ]


def test_f06_a_result_without_its_call_is_left_out() -> None:
    log = log_of(user(), result("c9", "7.0"), user("next"))

    rendering = sent(log)
    assert shape(rendering.messages) == ["user:text,text"]
    assert codes(rendering) == ["orphan_result"]


def test_f08_empty_ids_are_left_out_on_both_sides() -> None:
    log = log_of(user(), ask("", ""), result("", "1.0", text="1"), result("", "1.1", text="2"))

    contents = sent(log).messages
    assert all("id" not in part["functionCall"] for part in contents[1]["parts"])
    assert [part["functionResponse"]["response"] for part in contents[2]["parts"]] == [{"output": "1"}, {"output": "2"}]
    assert all("id" not in part["functionResponse"] for part in contents[2]["parts"])


def test_f08_a_repeated_id_is_another_one_on_both_sides() -> None:
    log = log_of(user(), ask("k"), result("k", "1.0"), user(), ask("k"), result("k", "4.0"))

    rendering = sent(log)
    ids = [
        part["functionCall"]["id"]
        for content in rendering.messages
        for part in content["parts"]
        if "functionCall" in part
    ]
    assert ids[0] == "k"
    assert ids[1].startswith("call_")
    assert rendering.messages[-1]["parts"][0]["functionResponse"]["id"] == ids[1]
    assert codes(rendering) == ["id_rewritten"]


@pytest.mark.parametrize(
    "call", [{"functionCall": {"id": "", "name": "f", "args": {}}}, {"functionCall": {"name": "f"}, "thought": True}]
)
def test_a_call_with_an_empty_id_or_in_a_thought_is_sent_with_its_response(call: dict[str, Any]) -> None:
    log = log_of(user(), ("assistant_message", parse("gemini", reply(call))), result("", "1.0"), user("on"))

    made = sent(log)
    assert shape(made.messages) == ["user:text", "model:functionCall", "user:functionResponse", "user:text"]
    assert "id" not in made.messages[1]["parts"][0]["functionCall"]
    assert "id" not in made.messages[2]["parts"][0]["functionResponse"]


def test_ids_that_differ_in_half_a_character_stay_apart() -> None:
    log = log_of(user(), ask("a\ud800", "a\udc00"), result("a\ud800", "1.0"), result("a\udc00", "1.1"))

    ids = [part["functionCall"]["id"] for part in sent(log).messages[1]["parts"]]
    assert len(set(ids)) == 2


def test_f09_what_came_between_stands_behind_the_responses_in_a_content_of_its_own() -> None:
    log = log_of(user(), ask("c1"), user("wait"), result("c1", "1.0"))

    assert shape(sent(log).messages) == ["user:text", "model:functionCall", "user:functionResponse", "user:text"]


def test_f13_a_waiting_call_is_refused_or_gets_a_placeholder() -> None:
    log = log_of(DURABLE, user(), STEP, ask("c1"), dispatch("c1", "3.0"), note("tool_suspended", "c1", "3.0"))

    rendering = sent(log, waiting="placeholder")
    assert "output" in rendering.messages[-1]["parts"][0]["functionResponse"]["response"]
    assert codes(rendering) == ["waiting_call"]


def test_an_outcome_that_was_learnt_later_is_a_note_or_takes_the_place() -> None:
    log = log_of(DURABLE, user(), STEP, ask("c1"), dispatch("c1", "3.0"))
    recover(log)
    extend(
        log, [("tool_outcome", {"call": "3.0", "id": "c1", "outcome": "happened", "parts": [text("seen")]}), user("on")]
    )

    assert "Learnt later" in sent(log).messages[3]["parts"][0]["text"]
    replaced = sent(log, outcomes="replace").messages
    assert replaced[2]["parts"][0]["functionResponse"]["response"] == {
        "output": "Learnt later about this call (call id c1): it happened.\nseen"
    }


def test_f30_arguments_that_were_cut_off_stand_inside_an_object() -> None:
    log = log_of(user(), ask("c1", arguments='{"path":"a'), result("c1", "1.0"))

    rendering = sent(log)
    assert rendering.messages[1]["parts"][0]["functionCall"]["args"] == {"incomplete_arguments": '{"path":"a'}
    assert codes(rendering) == ["arguments_wrapped"]


@pytest.mark.parametrize("parts", [[], [text("")], [{"type": "reasoning", "content": "hm"}]])
def test_f31_a_message_with_nothing_in_it_is_left_out(parts: list[dict[str, Any]]) -> None:
    log = log_of(user("a"), said(*parts), user("b"))

    rendering = sent(log)
    assert rendering.messages == [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}]
    assert codes(rendering)[-1] == "empty_message"


def test_f35_half_a_character_is_replaced() -> None:
    log = log_of(user("ab\ud83d"), ask("c1", arguments='{"t":"\\ud83d"}'), result("c1", "1.0"))

    rendering = sent(log)
    assert rendering.messages[0]["parts"] == [{"text": "ab\ufffd"}]
    assert rendering.messages[1]["parts"][0]["functionCall"]["args"] == {"t": "\ufffd"}


def test_system_text_stands_apart_and_later_on_is_the_users() -> None:
    system = ("system_message", {"parts": [text("be kind")]})

    rendering = sent(log_of(system, user(), said(text("yes")), system))
    assert rendering.system == "be kind"
    assert shape(rendering.messages) == ["user:text", "model:text", "user:text"]
    assert codes(rendering) == ["system_in_place"]


def test_the_first_content_is_the_users() -> None:
    rendering = sent(log_of(said(text("hello")), user()))

    assert [content["role"] for content in rendering.messages] == ["user", "model", "user"]
    assert codes(rendering) == ["bridge_added"]


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("a.b:c-d", "a.b:c-d"), ("1st", "_1st"), ("-x", "_-x"), ("büro", "b_ro"), ("", "_"), ("n" * 70, "n" * 64)],
)
def test_a_name_is_one_that_gemini_takes_on_both_sides(name: str, allowed: str) -> None:
    contents = sent(log_of(user(), ask("c1", name=name), result("c1", "1.0"))).messages

    assert contents[1]["parts"][0]["functionCall"]["name"] == allowed
    assert contents[2]["parts"][0]["functionResponse"]["name"] == allowed


# --- signatures


def signed(model: str = NEW) -> Row:
    thought = {"text": "hm", "thought": True, "thoughtSignature": "AAAA"}
    first = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "BBBB"}
    return said(
        native(thought, type="reasoning", content="hm"),
        native(first, type="tool_call", id="", name="f", arguments="{}"),
        {"type": "tool_call", "id": "", "name": "g", "arguments": "{}"},
        provider="gemini",
        model=model,
    )


def test_f29_signed_parts_go_back_as_they_came_to_their_model() -> None:
    rendering = sent(log_of(user(), signed(), result("", "1.1"), result("", "1.2")), NEW)

    assert rendering.messages[1]["parts"] == [
        {"text": "hm", "thought": True, "thoughtSignature": "AAAA"},
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "BBBB"},
        {"functionCall": {"name": "g", "args": {}}},
    ]
    assert rendering.findings == ()


def test_f31_thoughts_alone_are_left_out_signed_or_not() -> None:
    thought = native({"text": "hm", "thought": True, "thoughtSignature": "AAAA"}, type="reasoning", content="hm")
    rendering = sent(log_of(user("a"), said(thought, provider="gemini", model=NEW), user("b")), NEW)

    assert rendering.messages == [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}]
    assert codes(rendering) == ["empty_message"]


def test_f29_a_signature_of_another_model_is_left_out_and_bypassed_on_the_first_call() -> None:
    rendering = sent(log_of(user(), signed(), result("", "1.1"), result("", "1.2")), "gemini-3-flash-preview")

    assert rendering.messages[1]["parts"] == [
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": BYPASS},
        {"functionCall": {"name": "g", "args": {}}},
    ]
    assert codes(rendering) == ["reasoning_left_out", "reasoning_left_out", "signature_bypassed"]


def test_f29_a_message_that_never_completed_has_no_signature() -> None:
    row = (signed()[0], {**signed()[1], "complete": False})
    rendering = sent(log_of(DURABLE, user(), STEP, row, dispatch("", "3.1"), result("", "3.1")), NEW)

    assert rendering.messages[1]["parts"] == [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": BYPASS}]


@pytest.mark.parametrize(
    ("model", "bypassed"),
    [
        (None, True),
        ("gemini-flash-latest", True),
        ("models/gemini-3-pro-preview", True),
        ("gemini-4-argon", True),
        ("gemini-2.5-pro", False),
        ("publishers/google/models/gemini-2.0-flash-001", False),
        ("gemma-3-27b-it", False),
    ],
)
def test_a_lost_signature_is_bypassed_where_it_is_wanted_or_the_model_is_not_known(
    model: str | None, bypassed: bool
) -> None:
    rendering = sent(log_of(user(), ask("c1", "c2")), model)

    calls = rendering.messages[1]["parts"]
    assert [part.get("thoughtSignature") for part in calls] == [BYPASS if bypassed else None, None]


def test_only_the_current_turn_is_bypassed() -> None:
    log = log_of(user(), ask("c1"), result("c1", "1.0"), ask("c2"), result("c2", "3.0"))
    before = sent(log, NEW).messages
    extend(log, [said(text("done")), user("more"), ask("c3"), result("c3", "7.0")])

    def signatures(contents: list[dict[str, Any]]) -> list[str | None]:
        return [
            part.get("thoughtSignature") for content in contents for part in content["parts"] if "functionCall" in part
        ]

    assert signatures(before) == [BYPASS, BYPASS]
    assert signatures(sent(log, NEW).messages) == [None, None, BYPASS]


@pytest.mark.parametrize(
    ("asked", "same"), [("gemini-2.0-flash", True), ("models/gemini-2.0-flash-001", True), ("gemini-2.0-pro", False)]
)
def test_the_releases_of_a_model_are_one(asked: str, same: bool) -> None:
    rendering = sent(log_of(user(), signed("gemini-2.0-flash-001"), result("", "1.1"), result("", "1.2")), asked)

    assert ("thoughtSignature" in rendering.messages[1]["parts"][0]) is same


def test_the_model_that_wrote_last_is_the_one_that_is_asked() -> None:
    rendering = sent(
        log_of(user(), signed(OLD), result("", "1.1"), result("", "1.2"), ask("c", provider="gemini", model=OLD)), None
    )

    assert "thoughtSignature" not in rendering.messages[3]["parts"][0]


# --- server tools


CODE = {"executableCode": {"language": "PYTHON", "code": "1+1"}}
FOUND = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}


def ran(*blocks: dict[str, Any], model: str = NEW) -> Row:
    kinds = {"executableCode": "server_tool_call", "toolCall": "server_tool_call"}
    parts = [
        native(block, type=kinds.get(next(iter(block)), "server_tool_call_response"), id="", name="x")
        for block in blocks
    ]
    return said(*parts, text("two"), provider="gemini", model=model)


def test_what_a_server_tool_did_goes_back_with_what_asked_for_it() -> None:
    assert sent(log_of(user(), ran(CODE, FOUND)), NEW).messages[1]["parts"] == [CODE, FOUND, {"text": "two"}]


@pytest.mark.parametrize("blocks", [[CODE], [FOUND], [FOUND, CODE]])
def test_half_of_a_server_tool_is_left_out(blocks: list[dict[str, Any]]) -> None:
    rendering = sent(log_of(user(), ran(*blocks)), NEW)

    assert rendering.messages[1]["parts"] == [{"text": "two"}]
    assert set(codes(rendering)) == {"part_left_out"}


def test_a_sealed_server_call_is_for_its_model_alone() -> None:
    asked = {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB"}, "thoughtSignature": "AAAA"}
    found = {"toolResponse": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "response": {}}}
    log = log_of(user(), ran(asked, found))

    assert sent(log, NEW).messages[1]["parts"] == [asked, found, {"text": "two"}]
    assert sent(log, "gemini-4-argon").messages[1]["parts"] == [{"text": "two"}]


# --- media


PNG = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "iVBORw=="}
INLINE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (PNG, INLINE),
        (
            {"type": "uri", "modality": "image", "mime_type": "image/png", "uri": "https://a.example/b.png"},
            {"fileData": {"mimeType": "image/png", "fileUri": "https://a.example/b.png"}},
        ),
        ({"type": "uri", "uri": "https://youtu.be/x"}, {"fileData": {"fileUri": "https://youtu.be/x"}}),
        ({**PNG, "mime_type": "image/gif"}, {"text": "[image/gif, 6 bytes: not sent here]"}),
        (
            {"type": "uri", "modality": "image", "uri": "https://a.example/b"},
            {"text": "[image at https://a.example/b: not sent here]"},
        ),
        ({"type": "file", "modality": "image", "file_id": "f"}, {"text": "[image: not sent here]"}),
    ],
)
def test_media_is_sent_or_named(part: dict[str, Any], block: dict[str, Any]) -> None:
    rendering = sent(log_of(("user_message", {"parts": [part]})))

    assert rendering.messages == [{"role": "user", "parts": [block]}]
    assert codes(rendering) == (["part_replaced"] if "text" in block else [])


def test_media_of_a_result_stands_inside_the_response_for_gemini_3_and_behind_it_for_others() -> None:
    log = log_of(
        user(), ask("c1"), ("tool_result", {"call": "1.0", "id": "c1", "parts": [text("see"), PNG]}), user("so?")
    )

    new = sent(log, NEW).messages[2]["parts"][0]["functionResponse"]
    assert new["parts"] == [INLINE]
    old = sent(log, OLD).messages
    assert shape(old)[2:] == ["user:functionResponse", "user:inlineData,text"]
    assert old[2]["parts"][0]["functionResponse"]["response"] == {"output": "see"}


def test_an_image_that_gemini_made_is_its_answer_and_anothers_is_named() -> None:
    assert sent(log_of(user(), said(PNG, provider="gemini"))).messages[1]["parts"] == [INLINE]
    assert "text" in sent(log_of(user(), said(PNG, provider="openai-chat"))).messages[1]["parts"][0]


# --- parsing


def reply(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP"}
    return {
        "candidates": [candidate],
        "modelVersion": NEW,
        "responseId": "r1",
        "usageMetadata": {"promptTokenCount": 1},
        **more,
    }


def test_a_reply_is_read_whole() -> None:
    call = {"functionCall": {"name": "f", "args": {"n": 2**70}}, "thoughtSignature": "+/+/"}

    data = parse("gemini", reply({"text": "hm", "thought": True}, {"text": "yes"}, call))
    assert data == {
        "parts": [
            native({"text": "hm", "thought": True}, type="reasoning", content="hm"),
            text("yes"),
            native(call, type="tool_call", id="", name="f", arguments=f'{{"n":{2**70}}}'),
        ],
        "provider": "gemini",
        "model": NEW,
        "response_id": "r1",
        "stop": "STOP",
        "usage": {"promptTokenCount": 1},
    }
    assert sent(log_of(user(), ("assistant_message", data)), NEW).messages[1]["parts"] == [
        {"text": "hm", "thought": True},
        {"text": "yes"},
        call,
    ]


def test_bytes_of_a_reply_are_in_the_alphabet_of_the_api() -> None:
    data = parse(
        "gemini",
        reply({"text": "a", "thoughtSignature": "-_-_"}, {"inlineData": {"mimeType": "image/png", "data": "-_8"}}),
    )

    assert data["parts"][0]["native"]["block"]["thoughtSignature"] == "+/+/"
    assert data["parts"][1]["content"] == "+/8="
    kept = parse("gemini", reply({"text": "a", "thoughtSignature": BYPASS}))
    assert kept["parts"][0]["native"]["block"]["thoughtSignature"] == BYPASS


def test_a_blocked_prompt_stops_without_parts() -> None:
    data = parse("gemini", {"promptFeedback": {"blockReason": "SAFETY"}})

    assert (data["parts"], data["stop"]) == ([], "SAFETY")
    assert "complete" not in parse("gemini", [{"promptFeedback": {"blockReason": "SAFETY"}}])


def chunk(*parts: dict[str, Any], **candidate: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **candidate}], "modelVersion": NEW}


def test_a_stream_is_put_together_but_signed_parts_stay_apart() -> None:
    data = parse(
        "gemini",
        [
            chunk({"text": "th", "thought": True}),
            chunk({"text": "ink", "thought": True}),
            chunk({"text": "he"}),
            chunk({"text": "llo"}),
            chunk({"text": "", "thoughtSignature": "AAAA"}, finishReason="STOP"),
        ],
    )

    assert [part.get("content") for part in data["parts"]] == ["think", "hello", ""]
    assert data["parts"][2]["native"]["block"] == {"text": "", "thoughtSignature": "AAAA"}
    assert sent(log_of(user(), ("assistant_message", data)), NEW).messages[1]["parts"][2] == {
        "text": "",
        "thoughtSignature": "AAAA",
    }
    assert "complete" not in data


def test_a_stream_without_a_reason_to_stop_was_cut_off() -> None:
    assert parse("gemini", [chunk({"text": "he"})])["complete"] is False
    assert parse("gemini", [])["complete"] is False


def test_arguments_that_come_in_pieces_become_whole() -> None:
    def piece(*partial: dict[str, Any], **call: Any) -> dict[str, Any]:
        return chunk({"functionCall": {"partialArgs": list(partial), **call}})

    data = parse(
        "gemini",
        [
            chunk({"functionCall": {"name": "f", "id": "c", "willContinue": True}, "thoughtSignature": "AAAA"}),
            piece({"jsonPath": "$.to.city", "stringValue": "Bos", "willContinue": True}, willContinue=True),
            piece(
                {"jsonPath": "$.to.city", "stringValue": "ton"},
                {"jsonPath": "$.n", "numberValue": 2},
                willContinue=True,
            ),
            piece(
                {"jsonPath": "$.l[0]", "boolValue": False}, {"jsonPath": "$.l[9]", "numberValue": 1}, willContinue=True
            ),
            piece({"jsonPath": "$['a b']", "nullValue": "NULL_VALUE"}, willContinue=True),
            chunk({"functionCall": {}}, finishReason="STOP"),
        ],
    )

    assert [part["arguments"] for part in data["parts"]] == ['{"to":{"city":"Boston"},"n":2,"l":[false],"a b":null}']
    block = data["parts"][0]["native"]["block"]
    assert block["functionCall"].keys() == {"name", "id", "args"}


# --- seeding


HISTORIES: list[list[dict[str, Any]]] = [
    [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}, {"role": "model", "parts": [{"text": "c"}]}],
    [
        {"role": "user", "parts": [INLINE, {"fileData": {"fileUri": "https://youtu.be/x"}}]},
        {"role": "model", "parts": [{"text": "t", "thought": True}, {"text": "ok", "thoughtSignature": "-_-_"}]},
        {"role": "user", "parts": [{**INLINE, "videoMetadata": {"fps": 1.5}}]},
        {"role": "model", "parts": [CODE, FOUND, INLINE]},
    ],
    [
        {"role": "user", "parts": [{"text": "a"}]},
        {
            "role": "model",
            "parts": [
                {"text": "on it"},
                {"functionCall": {"name": "f", "args": {"x": None}}, "thoughtSignature": "AAAA"},
                {"functionCall": {"name": "default_api:g"}},
                {"functionCall": {"name": "h", "args": {}, "id": "i"}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "f", "response": {"output": "x"}}},
                {"functionResponse": {"name": "default_api:g", "response": {"rows": [1, None]}}},
                {"functionResponse": {"name": "h", "id": "i", "response": {"error": "no"}, "parts": [INLINE]}},
            ],
        },
        {"role": "user", "parts": [{"text": "hurry"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "BBBB"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
    ],
]


@pytest.mark.parametrize("contents", HISTORIES)
def test_a_seeded_history_is_rendered_as_it_was(contents: list[dict[str, Any]]) -> None:
    assert check("gemini", contents) == []

    log = Seeded.seed("gemini", copy.deepcopy(contents), system={"parts": [{"text": "be kind"}]})
    rendering = sent(log, None)
    assert rendering.messages == contents
    assert rendering.system == "be kind"
    assert rendering.findings == ()


def test_responses_without_ids_find_their_calls_by_name_and_never_those_of_another_message() -> None:
    def calls(*names: str, **args: int) -> dict[str, Any]:
        return {"role": "model", "parts": [{"functionCall": {"name": name, "args": args}} for name in names]}

    def responses(**said: str) -> dict[str, Any]:
        parts = [{"functionResponse": {"name": name, "response": {"output": out}}} for name, out in said.items()]
        return {"role": "user", "parts": parts}

    contents = [
        {"role": "user", "parts": [{"text": "a"}]},
        calls("f"),
        {"role": "user", "parts": [{"text": "b"}]},
        calls("g", "f", n=1),
        responses(f="F", x="?", g="G"),
    ]

    rendering = sent(Seeded.seed("gemini", contents), OLD)
    assert codes(rendering) == ["unanswered_call", "orphan_result"]
    answers = [
        part["functionResponse"]
        for content in rendering.messages
        for part in content["parts"]
        if "functionResponse" in part
    ]
    assert [(answer["name"], *answer["response"]) for answer in answers] == [
        ("f", "error"),
        ("g", "output"),
        ("f", "output"),
    ]
    assert [answer["response"].get("output") for answer in answers[1:]] == ["G", "F"]


def test_a_response_has_the_id_of_its_call_or_none() -> None:
    call = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
    response = {"functionResponse": {"name": "f", "id": "x", "response": {"rows": []}}}

    log = Seeded.seed("gemini", [call, {"role": "user", "parts": [response]}])
    assert sent(log).messages[-1]["parts"] == [{"functionResponse": {"name": "f", "response": {"rows": []}}}]


def test_a_call_that_is_asked_for_again_gets_the_response_that_came_then() -> None:
    call = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
    response = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "F"}}}]}
    go = {"role": "user", "parts": [{"text": "go"}]}

    rendering = sent(Seeded.seed("gemini", [go, call, go, call, response]), OLD)
    assert rendering.messages == [go, call, response, go]
    assert codes(rendering) == ["duplicate_call", "empty_message"]


# --- checking


GOOD = HISTORIES[2]


def _set(path: list[Any], value: object) -> Callable[[Any], None]:
    def change(contents: Any) -> None:
        for step in path[:-1]:
            contents = contents[step]
        contents[path[-1]] = value

    return change


def _drop(path: list[Any]) -> Callable[[Any], None]:
    def change(contents: Any) -> None:
        for step in path[:-1]:
            contents = contents[step]
        del contents[path[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_drop([0]), "first_role"),
        (_drop([2]), "unanswered_call"),
        (_drop([2, "parts", 1]), "unanswered_call"),
        (_drop([1]), "orphan_result"),
        (_drop([1, "parts", 3]), "orphan_result"),
        (_set([2, "parts", 2, "functionResponse", "id"], "other"), "orphan_result"),
        (_set([2, "parts", 0, "functionResponse", "name"], "other"), "orphan_result"),
        (_set([2, "parts", 2], {"text": "beside"}), "results_apart"),
        (_set([0, "parts"], []), "empty_message"),
        (_drop([0, "parts"]), "empty_message"),
        (_set([0, "parts", 0, "text"], ""), "empty_message"),
        (_set([0, "role"], "function"), "bad_shape"),
        (_set([0, "role"], ["tool"]), "bad_shape"),
        (_set([2, "role"], "narrator"), "bad_shape"),
        (_set([0], "text"), "bad_shape"),
        (_set([0, "parts"], [{}]), "bad_shape"),
        (_set([0, "parts", 0, "inlineData"], {}), "bad_shape"),
        (_set([0, "parts", 0], {"inlineData": {"mimeType": "image/png", "data": "?"}}), "bad_shape"),
        (_set([0, "parts", 0], {"functionCall": {"name": "f"}}), "bad_shape"),
        (_set([1, "parts", 1, "functionCall", "name"], "1 a"), "bad_name"),
        (_set([1, "parts", 1, "functionCall", "args"], "{}"), "bad_arguments"),
        (_set([1, "parts", 1, "functionCall", "id"], ""), "bad_id"),
        (_set([4, "parts", 0, "functionCall", "id"], "i"), "duplicate_id"),
        (_set([1, "parts", 1, "thoughtSignature"], "not base64!"), "unsigned_reasoning"),
        (_set([2, "parts", 0, "functionResponse", "response"], "x"), "bad_shape"),
        (_set([1, "parts"], [{"text": "hm", "thought": True}]), "reasoning_alone"),
        (_set([1, "parts", 0], FOUND), "orphan_result"),
        (_set([3, "role"], "model"), "role_order"),
        (_set([0, "parts", 0, "text"], "\ud800"), "surrogate"),
    ],
)
def test_each_broken_rule_is_found(change: Callable[[Any], None], code: str) -> None:
    contents = copy.deepcopy(GOOD)
    change(contents)

    assert code in problems(contents)


@pytest.mark.parametrize("role", ["tool", "function"])
def test_responses_may_have_a_role_of_their_own(role: str) -> None:
    contents = copy.deepcopy(GOOD)
    contents[2]["role"] = role
    assert problems(contents) == []

    del contents[2]["parts"][1]
    assert problems(contents) == ["unanswered_call"]


def test_two_responses_with_one_id_are_found() -> None:
    contents = copy.deepcopy(GOOD)
    contents[1]["parts"][1]["functionCall"]["id"] = "j"
    contents[2]["parts"][0]["functionResponse"]["id"] = "i"

    assert problems(contents) == ["duplicate_result"]


@pytest.mark.parametrize(
    "odd", [None, 1, "x", [], {}, {"role": []}, {"parts": [None, 1, {"text": 1}, {"functionCall": 1}]}]
)
def test_nothing_is_raised_for_odd_contents(odd: Any) -> None:
    odd_ids = {
        "role": "model",
        "parts": [{"functionCall": {"name": [], "id": {}}}, {"codeExecutionResult": {"id": []}}],
    }

    assert problems([odd, odd_ids, odd])


# --- laws, over random logs


def random_log(rng: random.Random) -> Log:
    log = Log()
    for turn in range(rng.randint(1, 4)):
        rows: list[Row] = [DURABLE if rng.random() < 0.8 else user("outside"), user(f"turn {turn}"), STEP]
        extend(log, rows)
        for _ in range(rng.randint(0, 3)):
            ids = [rng.choice(["k", "", "é", f"c{rng.random()}"]) for _ in range(rng.randint(0, 3))]
            extend(
                log,
                [
                    said(
                        *random_parts(rng, ids),
                        provider=rng.choice(["gemini", "anthropic"]),
                        model=rng.choice([OLD, NEW]),
                    )
                ],
            )
            asking = log.events[-1]
            for index, part in enumerate(asking.data["parts"]):
                key = f"{asking.seq}.{index}"
                if part["type"] == "tool_call" and rng.random() < 0.7:
                    extend(log, [dispatch(part["id"], key)])
                    if rng.random() < 0.2:
                        extend(log, [user("meanwhile")])
                    if rng.random() < 0.7:
                        extend(
                            log,
                            [
                                (
                                    "tool_result",
                                    {"call": key, "id": part["id"], "parts": rng.choice([[], [text("r")], [PNG]])},
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
    parts += rng.sample([text("said"), text(""), text("\ud800"), PNG, {"type": "new", "x": 1}], rng.randint(0, 2))
    signed_text = native({"text": "s", "thoughtSignature": "AAAA"}, type="text", content="s")
    parts += rng.sample([signed_text, native(CODE, type="server_tool_call"), {"type": "reasoning"}], rng.randint(0, 2))
    rng.shuffle(parts)
    return parts


@pytest.mark.parametrize("seed", range(150))
def test_whatever_befell_a_session_the_request_is_valid_and_only_grows(seed: int) -> None:
    rng = random.Random(seed)
    log = random_log(rng)
    sent(log, None)
    model = rng.choice([OLD, NEW])
    rendering = sent(log, model)
    assert rendering == render(list(log.events), "gemini", model=model)
    assert sent(Seeded.seed("gemini", rendering.messages), model).messages == rendering.messages

    # no signature is bypassed for this model, so that nothing before the end depends on what the current turn is
    before = sent(log, OLD).messages
    extend(log, [user("later")])
    assert sent(log, OLD).messages[: len(before) - 1] == before[:-1]


def test_f09_a_response_that_came_late_stands_behind_its_call() -> None:
    call = {"role": "model", "parts": [{"functionCall": {"id": "a", "name": "pay", "args": {}}}]}
    response = {"functionResponse": {"id": "a", "name": "pay", "response": {"output": "paid"}}}
    hm = {"role": "model", "parts": [{"text": "hm"}]}
    go = {"role": "user", "parts": [{"text": "go"}]}
    log = Seeded.seed("gemini", [go, call, go, hm, {"role": "user", "parts": [response]}])
    assert sent(log).messages[2]["parts"] == [response]
