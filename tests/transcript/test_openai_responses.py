"""OpenAI Responses: what is rendered, what is checked, what a reply and a history become, and how they come back."""

import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.core.build import DURABLE, STEP, STEP_END, TURN_END, Row, ask, dispatch, log_of, note, result, risks
from turnwal.core.errors import InvalidEvent, Refused
from turnwal.core.recovery import recover
from turnwal.transcript.check import check
from turnwal.transcript.parsing import Log, parse
from turnwal.transcript.patching import LOST, patch
from turnwal.transcript.render import Rendering, render

TARGET = "openai-responses"
MODEL = "gpt-5"
Item = dict[str, Any]

USER: Item = {"role": "user", "content": "go"}


def reasoning(id: str = "rs_1", **more: Any) -> Item:
    return {"type": "reasoning", "id": id, "summary": [], "encrypted_content": "sealed", **more}


def said(text: str, id: str = "msg_1", **more: Any) -> Item:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content, **more}


def call(id: str, item: str | None = None, **more: Any) -> Item:
    own = {"id": item, "status": "completed"} if item is not None else {}
    return {"type": "function_call", "call_id": id, "name": "pay", "arguments": '{"n": 1}', **own, **more}


def output(id: str, text: Any = "done") -> Item:
    return {"type": "function_call_output", "call_id": id, "output": text}


def search(id: str = "ws_1") -> Item:
    return {"type": "web_search_call", "id": id, "status": "completed", "action": {"type": "search", "query": "x"}}


def response(*items: Item, **more: Any) -> Item:
    return {"id": "resp_1", "object": "response", "model": MODEL, "status": "completed", "output": [*items], **more}


def replied(*items: Item, **more: Any) -> Row:
    return ("assistant_message", parse(TARGET, response(*items, **more)))


def user(text: str = "go") -> Row:
    return ("user_message", {"parts": [{"type": "text", "content": text}]})


def rendered(*rows: Row, **options: Any) -> Rendering:
    """A rendering that checks."""
    made = render(log_of(*rows), TARGET, **options)
    assert check(TARGET, made.messages, system=made.system) == []
    return made


def codes(made: Rendering) -> list[str]:
    return [finding.code for finding in made.findings]


def problems(*items: Any) -> list[tuple[str, str]]:
    return [(problem.code, problem.position) for problem in check(TARGET, [*items])]


# Rendering


def test_neutral_messages_are_items_of_the_simple_form() -> None:
    parts = [
        {"type": "text", "content": "Look:"},
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AAAA"},
        {"type": "uri", "modality": "image", "uri": "https://example.org/a.png"},
        {"type": "blob", "modality": "document", "mime_type": "application/pdf", "content": "AAAA"},
        {"type": "file", "modality": "document", "file_id": "file-1"},
    ]
    made = rendered(("user_message", {"parts": parts}), ask("call_1"), result("call_1"))

    assert made.findings == ()
    assert made.messages == [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look:"},
                {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AAAA"},
                {"type": "input_image", "detail": "auto", "image_url": "https://example.org/a.png"},
                {
                    "type": "input_file",
                    "filename": "document.pdf",
                    "file_data": "data:application/pdf;base64,AAAA",
                },
                {"type": "input_file", "file_id": "file-1"},
            ],
        },
        {"type": "function_call", "call_id": "call_1", "name": "tool", "arguments": "{}"},
        output("call_1"),
    ]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "blob", "modality": "image", "mime_type": "image/tiff", "content": "AAAA"},
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "A" * 28_000_000},
        {"type": "file", "modality": "document", "file_id": "file_of_another_provider"},
        {"type": "uri", "modality": "image", "uri": "s3://bucket/a.png"},
        {"type": "of_tomorrow"},
    ],
)
def test_words_stand_for_what_is_not_taken(part: Item) -> None:
    made = rendered(("user_message", {"parts": [part]}))

    assert codes(made) == ["part_replaced"]
    assert made.messages[0]["content"].endswith("not sent here]")


def test_leading_system_text_is_the_instructions_and_later_text_stays_in_place() -> None:
    system: Row = ("system_message", {"parts": [{"type": "text", "content": "Be brief."}]})
    made = rendered(system, user(), system)

    assert made.system == "Be brief."
    assert made.messages == [USER, {"role": "system", "content": "Be brief."}]


def test_neighbouring_texts_are_one_message_and_others_are_not() -> None:
    parts = [
        {"type": "text", "content": "It is "},
        {"type": "text", "content": "42."},
        {"type": "server_tool_call", "id": "x", "name": "search"},
        {"type": "text", "content": "Really."},
    ]
    made = rendered(user(), ("assistant_message", {"parts": parts}))

    assert made.messages[1:] == [
        {"role": "assistant", "content": "It is 42."},
        {"role": "assistant", "content": "Really."},
    ]
    assert codes(made) == ["part_left_out"]


def test_free_text_is_the_input_of_a_custom_tool() -> None:
    made = rendered(*_free_text())

    assert made.messages == [
        {"type": "custom_tool_call", "call_id": "call_1", "name": "sql", "input": "select 1;"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "done"},
    ]


def _free_text() -> tuple[Row, Row]:
    part = {"type": "tool_call", "id": "call_1", "name": "sql", "arguments": "select 1;", "format": "text"}
    return ("assistant_message", {"parts": [part]}), result("call_1")


def test_the_output_of_an_error_is_its_text_and_never_nothing() -> None:
    made = rendered(ask("a"), result("a", text="no such file", is_error=True), ask("b"), ("tool_result", _failed("b")))

    assert [item["output"] for item in made.messages[1::2]] == ["no such file", "(no output)"]


def _failed(id: str) -> Item:
    return {"id": id, "parts": [], "is_error": True}


def test_an_output_can_hold_images() -> None:
    parts = [
        {"type": "text", "content": "see"},
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AAAA"},
    ]
    made = rendered(ask("a"), ("tool_result", {"id": "a", "parts": parts}))

    assert [block["type"] for block in made.messages[1]["output"]] == ["input_text", "input_image"]


# Replies


def test_a_reply_goes_back_item_by_item_as_it_came() -> None:
    items = [
        reasoning(),
        said("Let me see.", phase="commentary"),
        search(),
        call("call_1", "fc_1"),
        reasoning("rs_2", summary=[{"type": "summary_text", "text": "Hm."}]),
        said("And then", "msg_2"),
        call("call_2", "fc_2"),
    ]
    made = rendered(user(), replied(*items), result("call_2", text="two"), result("call_1", text="one"))

    assert made.findings == ()
    assert made.messages == [USER, *items, output("call_1", "one"), output("call_2", "two")]


def test_a_message_of_several_blocks_is_one_item_again() -> None:
    blocks = [
        {"type": "output_text", "text": "See", "annotations": [{"type": "file_path", "file_id": "file-1", "index": 0}]},
        {"type": "refusal", "refusal": "but no more"},
    ]
    data = parse(TARGET, response(said("", content=blocks), said("Next.", "msg_2")))
    made = rendered(user(), ("assistant_message", data))

    assert [part["content"] for part in data["parts"]] == ["See", "but no more", "Next."]
    assert made.messages[1:] == [said("", content=blocks), said("Next.", "msg_2")]
    other = render(log_of(user(), ("assistant_message", data)), TARGET, model="o9")
    assert other.messages == made.messages  # nothing of it is sealed


def test_another_model_gets_neither_the_reasoning_nor_the_ids_that_ask_for_it() -> None:
    rows = [user(), replied(reasoning(), said("Hm.", phase="commentary"), search(), call("call_1", "fc_1"))]
    made = rendered(*rows, result("call_1"), model="gpt-4.1")

    assert codes(made) == ["reasoning_left_out", "part_left_out"]
    assert made.messages == [
        USER,
        {"role": "assistant", "content": "Hm.", "phase": "commentary"},
        call("call_1", status="completed"),
        output("call_1"),
    ]


def test_what_came_without_reasoning_goes_to_another_model_as_it_came() -> None:
    items = [search(), said("42.")]
    made = rendered(user(), replied(*items), model="gpt-4.1")

    assert made.messages == [USER, *items]


def test_a_dated_release_is_the_model_of_its_alias() -> None:
    made = rendered(user(), replied(reasoning(), said("42.")), model="gpt-5-2025-08-07")

    assert made.messages == [USER, reasoning(), said("42.")]


def test_reasoning_goes_back_without_its_status() -> None:
    made = rendered(user(), replied(reasoning(status="completed"), said("42.")))

    assert made.messages == [USER, reasoning(), said("42.")]


def test_a_run_that_loses_its_reasoning_leaves_the_other_runs_whole() -> None:
    # the second run asks for a call that was asked for before
    first = [reasoning("rs_1"), call("call_1", "fc_1")]
    again = [reasoning("rs_2"), call("call_1", "fc_2"), reasoning("rs_3"), said("Well.", "msg_3")]
    made = rendered(DURABLE, STEP, replied(*first), dispatch("call_1"), result("call_1"), replied(*again))

    assert made.messages == [*first, output("call_1"), reasoning("rs_3"), said("Well.", "msg_3")]
    assert codes(made) == ["duplicate_call", "reasoning_left_out"]


def test_f29_dropping_a_call_drops_the_reasoning_that_led_to_it() -> None:
    items = [reasoning(), said("Now."), call("call_1", "fc_1")]
    made = rendered(
        DURABLE, STEP, replied(call("call_1", "fc_0")), dispatch("call_1"), result("call_1"), replied(*items)
    )

    assert made.messages[2:] == [{"role": "assistant", "content": "Now."}]
    assert "reasoning_left_out" in codes(made)


def test_f29_reasoning_that_led_to_nothing_is_left_out() -> None:
    made = rendered(user(), replied(said("First.")), replied(reasoning()))

    assert made.messages == [USER, said("First.")]
    assert codes(made) == ["reasoning_left_out", "empty_message"]


def test_f29_reasoning_behind_what_the_provider_ran_is_not_left_alone() -> None:
    asks = {**SHELL, "environment": {"type": "container_reference", "container_id": "cntr_1"}}
    made = rendered(user(), replied(asks, {**SHELL_OUTPUT, "id": "sho_1"}, said("Gone."), reasoning()), user())

    assert made.messages == [USER, {"role": "assistant", "content": "Gone."}, USER]
    assert codes(made) == ["part_left_out", "part_left_out", "reasoning_left_out"]


@pytest.mark.parametrize("bad", [{"id": "item_1"}, {"id": "rs " + "x" * 70}, {"summary": "none"}])
def test_f29_reasoning_that_the_api_would_not_take_is_left_out(bad: Item) -> None:
    made = rendered(user(), replied(reasoning() | bad, said("42.")))

    assert made.messages == [USER, {"role": "assistant", "content": "42."}]


def test_a_reply_that_stands_twice_in_the_log_has_its_ids_once() -> None:
    items = [reasoning(), search(), said("42.")]
    made = rendered(user(), replied(*items), replied(*items))

    assert made.messages == [USER, *items, {"role": "assistant", "content": "42."}]
    assert codes(made) == ["reasoning_left_out", "part_left_out"]


def test_half_of_a_call_that_the_provider_ran_is_left_out() -> None:
    data = parse(TARGET, response({**SHELL_OUTPUT, "id": "sho_1"}, said("42.")))
    made = rendered(user(), ("assistant_message", data))

    assert made.messages == [USER, {"role": "assistant", "content": "42."}]
    assert codes(made) == ["part_left_out"]


def test_a_log_that_grows_renders_as_one_that_is_whole() -> None:
    rows: list[Row] = [
        *(user(), replied(reasoning(), said("Hm."), call("a", "fc_1")), user("hurry"), result("a")),
        *(replied(reasoning(), said("Hm.")), replied(reasoning("rs_2"), call("a", "fc_2"), call("b", "fc_3"))),
        *(user(), result("b"), result("a", "5.1", text="late"), ("user_message", {"parts": []})),
    ]
    growing = Log()
    for row in rows:
        growing.append(*row[:2])
        render(growing, TARGET)

    assert render(growing, TARGET) == rendered(*rows)


def test_an_id_of_another_kind_is_not_sent_with_a_message() -> None:
    made = rendered(user(), replied(said("42.", "item_1")))

    assert made.messages == [USER, {"role": "assistant", "content": "42."}]


def test_encrypted_compaction_is_for_its_own_model() -> None:
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "sealed"}
    rows = [replied(compaction, said("Go on."))]

    assert rendered(*rows).messages == [compaction, said("Go on.")]
    assert rendered(*rows, model="o9").messages == [{"role": "assistant", "content": "Go on."}]


# Calls of built-in tools that the application runs

SHELL: Item = {
    "type": "shell_call",
    "id": "sh_1",
    "call_id": "call_1",
    "status": "completed",
    "action": {"commands": ["rm -rf build"]},
    "environment": {"type": "local"},
}
SHELL_OUTPUT: Item = {
    "type": "shell_call_output",
    "call_id": "call_1",
    "output": [{"stdout": "gone", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
}
CLICK: Item = {
    "type": "computer_call",
    "id": "cu_1",
    "call_id": "call_1",
    "status": "completed",
    "pending_safety_checks": [],
    "action": {"type": "screenshot"},
}
SCREEN: Item = {
    "type": "computer_call_output",
    "call_id": "call_1",
    "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"},
}


@pytest.mark.parametrize(("asks", "answers"), [(SHELL, SHELL_OUTPUT), (CLICK, SCREEN)])
def test_a_built_in_call_goes_back_with_the_answer_of_its_kind(asks: Item, answers: Item) -> None:
    history = [USER, reasoning(), asks, answers]

    assert render(Log.seed(TARGET, history), TARGET).messages == history


@pytest.mark.parametrize("asks", [SHELL, CLICK])
def test_a_built_in_call_that_was_lost_is_owed_and_answered_in_words(asks: Item) -> None:
    log = log_of(DURABLE, user(), STEP, replied(reasoning(), asks), dispatch("call_1", "3.1"))
    assert risks(recover(log)) == {"3.1": "unknown"}
    made = render(log, TARGET)

    assert check(TARGET, made.messages) == []
    assert [item.get("type") for item in made.messages] == [None, "function_call", "function_call_output"]
    assert made.messages[1]["name"] == asks["type"].removesuffix("_call")
    assert "may have run" in made.messages[2]["output"]


def test_a_shell_that_the_provider_runs_is_never_owed() -> None:
    asks = {**SHELL, "environment": {"type": "container_reference", "container_id": "cntr_1"}}
    items = [reasoning(), asks, {**SHELL_OUTPUT, "id": "sho_1"}, said("Gone.")]
    data = parse(TARGET, response(*items))

    assert [part["type"] for part in data["parts"][1:3]] == ["server_tool_call", "server_tool_call_response"]
    assert rendered(user(), ("assistant_message", data)).messages == [USER, *items]
    assert render(Log.seed(TARGET, [USER, *items]), TARGET).messages == [USER, *items]


# Field cases


def test_f01_a_call_lost_in_a_crash_is_answered_by_what_recovery_wrote() -> None:
    log = log_of(DURABLE, user(), STEP, ask("call_1"), dispatch("call_1", "3.0"))
    recover(log)
    made = render(log, TARGET)

    assert check(TARGET, made.messages) == []
    assert made.findings == ()
    assert [item.get("call_id") for item in made.messages] == [None, "call_1", "call_1"]


def test_f03_a_call_of_a_closed_turn_is_answered_on_the_way_out() -> None:
    made = rendered(DURABLE, user(), STEP, ask("call_1"), STEP_END, TURN_END)

    assert codes(made) == ["unanswered_call"]
    assert made.messages[2]["output"] == LOST


def test_f04_f05_all_outputs_stand_behind_their_calls_in_call_order() -> None:
    made = rendered(user(), ask("a", "b", "c"), result("c", text="3"), result("a", text="1"))

    assert [item.get("call_id") for item in made.messages] == [None, "a", "b", "c", "a", "b", "c"]
    assert [made.messages[4]["output"], made.messages[6]["output"]] == ["1", "3"]


def test_f06_a_result_without_its_call_is_left_out() -> None:
    made = rendered(user(), result("c9"))

    assert made.messages == [USER]
    assert codes(made) == ["orphan_result"]


def test_f07_a_call_that_was_answered_twice_has_its_first_output() -> None:
    made = rendered(ask("a"), result("a", "0.0", text="v1"), result("a", "0.0", text="v2"))

    assert made.messages[1:] == [output("a", "v1")]
    assert codes(made) == ["duplicate_result"]


def test_f08_repeated_and_empty_ids_are_rewritten_on_both_sides() -> None:
    made = rendered(ask("k"), result("k", text="1"), ask("k", "k", ""), result("k", "2.1", text="2"))
    calls = [item["call_id"] for item in made.messages if item["type"] == "function_call"]

    assert calls[0] == "k"
    assert len(set(calls)) == 4
    assert [item["call_id"] for item in made.messages if item["type"] == "function_call_output"] == calls


def test_f09_what_arrived_between_a_call_and_its_result_stands_behind_them() -> None:
    made = rendered(user(), ask("a"), user("hurry"), result("a"))

    assert made.messages[2:] == [output("a"), {"role": "user", "content": "hurry"}]


def test_f12_an_outcome_that_was_learnt_later_is_a_note_or_the_answer() -> None:
    lost: Item = {"metadata": {"synthetic": True, "risk": "tool_outcome_unknown"}, "is_error": True}
    rows = [ask("a"), result("a", "0.0", text="lost", **lost), note("tool_outcome", "a", "0.0", outcome="happened")]

    assert rendered(*rows).messages[2]["content"].endswith("it happened.")
    assert rendered(*rows, outcomes="replace").messages[1]["output"].endswith("it happened.")


def test_f30_arguments_that_were_cut_off_are_wrapped() -> None:
    made = rendered(ask("a", arguments='{"path":"a.txt","text":"hel'))

    assert json.loads(made.messages[0]["arguments"]) == {"incomplete_arguments": '{"path":"a.txt","text":"hel'}
    assert codes(made) == ["unanswered_call", "arguments_wrapped"]


@pytest.mark.parametrize("text", ["[1]", '{"x": NaN}', "null"])
def test_f30_arguments_that_are_json_but_no_object_are_wrapped(text: str) -> None:
    made = rendered(ask("a", arguments=text), result("a"))

    assert json.loads(made.messages[0]["arguments"]) == {"incomplete_arguments": text}


def test_f30_what_a_model_was_cut_off_in_is_sent_as_its_text() -> None:
    items = [reasoning(), said("I will", status="incomplete"), call("call_1", "fc_1", arguments='{"pa')]
    row = replied(*items, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    made = rendered(user(), row)

    assert row[1]["complete"] is False
    assert row[1]["stop"] == "max_output_tokens"
    assert made.messages == [USER, {"role": "assistant", "content": "I will"}]


@pytest.mark.parametrize(("store", "goes_back"), [(True, True), (None, True), (False, False)])
def test_reasoning_that_is_stored_nowhere_and_not_encrypted_is_left_out(store: bool | None, goes_back: bool) -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    more = {} if store is None else {"store": store}
    made = rendered(user(), replied(thought, call("call_1", "fc_1"), **more), result("call_1"))
    asks = call("call_1", "fc_1")
    stripped = {name: value for name, value in asks.items() if name != "id"}
    assert made.messages[1:-1] == ([thought, asks] if goes_back else [stripped])
    assert codes(made) == ([] if goes_back else ["reasoning_left_out"])

    sealed = thought | {"encrypted_content": "c2ln"}
    made = rendered(user(), replied(sealed, call("call_1", "fc_1"), **more), result("call_1"))
    assert made.messages[1:-1] == [sealed, asks]


@pytest.mark.parametrize("items", [[], [said("")], [said("", content=[])], [reasoning()], [reasoning(), said("")]])
def test_f31_a_reply_with_nothing_in_it_is_left_out(items: list[Item]) -> None:
    made = rendered(user(), replied(*items), user("more"))

    assert made.messages == [USER, {"role": "user", "content": "more"}]
    assert "empty_message" in codes(made)


def test_f31_an_empty_message_stays_in_a_run_that_goes_back_whole() -> None:
    items = [reasoning(), said(""), call("call_1", "fc_1")]

    assert rendered(replied(*items), result("call_1")).messages == [*items, output("call_1")]


def test_f35_half_a_character_is_replaced_wherever_it_stands() -> None:
    made = rendered(user("ab\ud83d"), ask("a", arguments='{"x":"\\ud83d","y":"\\ud83d\\ude00","z":"\\\\ud83d"}'))

    assert made.messages[0]["content"] == "ab\ufffd"
    assert made.messages[1]["arguments"] == '{"x":"\\ufffd","y":"\\ud83d\\ude00","z":"\\\\ud83d"}'
    assert codes(made).count("surrogate_replaced") == 2


def test_f40_an_id_that_is_too_long_is_rewritten_on_both_sides_and_the_same_every_time() -> None:
    rows = [ask("call_abc|fc_" + "f" * 86), result("call_abc|fc_" + "f" * 86)]
    made = rendered(*rows)

    assert made.messages[0]["call_id"] == made.messages[1]["call_id"]
    assert made.messages == rendered(*rows).messages
    assert codes(made) == ["id_rewritten"]


def test_a_waiting_call_is_refused_or_answered_by_a_placeholder() -> None:
    rows = [DURABLE, user(), STEP, ask("a"), note("tool_suspended", "a", "3.0")]
    with pytest.raises(Refused):
        render(log_of(*rows), TARGET)

    assert codes(rendered(*rows, waiting="placeholder")) == ["waiting_call"]


# Replies of wrappers, and streams


def test_a_call_that_is_hidden_in_content_is_a_call() -> None:
    hidden = {"content": [{"type": "text", "text": "Now."}, call("call_1", "fc_1")], "tool_calls": []}
    listed = {"content": "Now.", "tool_calls": [{"id": "call_1", "name": "pay", "args": {"n": 1}, "type": "tool_call"}]}
    both = {**hidden, "tool_calls": listed["tool_calls"]}
    inside = response(said("", content=[{"type": "output_text", "text": "Now.", "annotations": []}, call("call_1")]))

    for reply in (hidden, listed, both, inside):
        asking = [part for part in parse(TARGET, reply)["parts"] if part["type"] == "tool_call"]
        assert [(part["id"], part["name"], json.loads(part["arguments"])) for part in asking] == [
            ("call_1", "pay", {"n": 1})
        ]


def test_what_is_said_of_a_reply_is_kept() -> None:
    data = parse(TARGET, response(said("42."), usage={"input_tokens": 3}))

    assert {name: value for name, value in data.items() if name != "parts"} == {
        "provider": TARGET,
        "model": MODEL,
        "response_id": "resp_1",
        "stop": "completed",
        "usage": {"input_tokens": 3},
    }


@pytest.mark.parametrize("status", ["incomplete", "failed", "cancelled", "in_progress"])
def test_a_reply_that_is_not_completed_is_not_complete(status: str) -> None:
    assert parse(TARGET, response(said("4"), status=status))["complete"] is False


@pytest.mark.parametrize("reply", [{}, {"choices": []}, {"output": 1}, 7])
def test_what_is_no_reply_is_refused(reply: object) -> None:
    with pytest.raises(InvalidEvent):
        parse(TARGET, reply)


def events(*items: Item) -> list[Item]:
    """The events of a stream of a response."""
    made: list[Item] = [{"type": "response.created", "response": response(status="in_progress")}]
    for at, item in enumerate(items):
        made.append({"type": "response.output_item.added", "output_index": at, "item": _begun(item)})
        made += [{**event, "output_index": at, "item_id": item["id"]} for event in _deltas(item)]
        made.append({"type": "response.output_item.done", "output_index": at, "item": item})
    return [*made, {"type": "response.completed", "response": response(*items)}]


def _begun(item: Item) -> Item:
    empty: Item = {"content": [], "arguments": "", "input": "", "summary": [], "status": "in_progress"}
    return {name: empty.get(name, value) for name, value in item.items()}


def _deltas(item: Item) -> list[Item]:
    match item["type"]:
        case "function_call":
            texts = [item["arguments"][:4], item["arguments"][4:]]
            return [{"type": "response.function_call_arguments.delta", "delta": text} for text in texts]
        case "custom_tool_call":
            return [{"type": "response.custom_tool_call_input.delta", "delta": item["input"]}]
        case "reasoning":
            empty = {"type": "summary_text", "text": ""}
            return [
                {"type": "response.reasoning_summary_part.added", "summary_index": 0, "part": empty},
                {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "Hm"},
                {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "."},
            ]
        case "message":
            text = item["content"][0]["text"]
            part = {"type": "output_text", "text": "", "annotations": []}
            told: list[Item] = [{"type": "response.content_part.added", "content_index": 0, "part": part}]
            told += [{"type": "response.output_text.delta", "content_index": 0, "delta": piece} for piece in text]
            return [*told, {"type": "response.output_text.done", "content_index": 0, "text": text}]
        case _:
            return []


STREAMED = (
    reasoning(summary=[{"type": "summary_text", "text": "Hm."}]),
    said("Well then."),
    search(),
    call("call_1", "fc_1"),
    {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "sql", "input": "select 1;"},
)


def test_a_stream_is_the_response_it_ends_with() -> None:
    assert parse(TARGET, iter(events(*STREAMED))) == parse(TARGET, response(*STREAMED))


def test_a_stream_whose_end_holds_no_items_is_what_came_before() -> None:
    stream = [*events(*STREAMED)[:-1], {"type": "response.completed", "response": response()}]

    assert parse(TARGET, stream) == parse(TARGET, response(*STREAMED))


def test_a_stream_that_was_cut_off_anywhere_is_not_complete_and_renders() -> None:
    stream = events(*STREAMED)
    for cut in range(len(stream)):
        data = parse(TARGET, stream[:cut])
        assert data["complete"] is False
        assert "stop" not in data
        made = rendered(user(), ("assistant_message", data))
        assert [item.get("type") for item in made.messages] in ([None], [None, None])


def test_the_arguments_of_a_call_that_was_cut_off_are_kept_as_the_model_wrote_them() -> None:
    stream = events(call("call_1", "fc_1"))
    part = parse(TARGET, stream[:3])["parts"][0]

    assert (part["type"], part["arguments"]) == ("tool_call", '{"n"')


@pytest.mark.parametrize("end", ["response.incomplete", "response.failed"])
def test_a_stream_that_ends_badly_is_not_complete(end: str) -> None:
    status = end.removeprefix("response.")
    stream = [*events(*STREAMED)[:-1], {"type": end, "response": response(*STREAMED, status=status)}]

    assert parse(TARGET, stream)["complete"] is False


# Histories

HISTORIES: dict[str, list[Item]] = {
    "simple": [USER, {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Bye."}],
    "typed": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "message", "role": "user", "id": "msg_9", "status": "completed", "content": "go"},
        said("Hello."),
    ],
    "system": [
        {"role": "developer", "content": "Be brief."},
        {"role": "system", "content": [{"type": "input_text", "text": "Be kind."}]},
        USER,
        {"role": "system", "content": "Be gone."},
    ],
    "answers in a row": [
        USER,
        {"role": "assistant", "content": "One."},
        {"role": "assistant", "content": "Two."},
        {
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Three."}, {"type": "refusal", "refusal": "4"}],
        },
    ],
    "calls at once": [USER, call("a"), call("b"), output("a"), output("b"), said("Done.")],
    "calls one by one": [USER, call("a"), output("a"), call("b"), output("b")],
    "reasoning": [
        USER,
        reasoning(),
        call("a", "fc_1"),
        call("b", "fc_2"),
        output("a"),
        output("b"),
        reasoning("rs_2"),
        said("So."),
    ],
    "stateless": [USER, reasoning(), {"role": "assistant", "content": "So."}, USER],
    "stored": [USER, {"type": "reasoning", "id": "rs_1", "summary": []}, said("So.")],
    "custom": [
        USER,
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "a", "name": "sql", "input": "select 1;"},
        {"type": "custom_tool_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "1"}]},
    ],
    "outputs": [
        USER,
        call("a", namespace="bank"),
        {**output("a", [{"type": "input_image", "image_url": "https://example.org/a.png"}]), "id": "fco_1"},
        call("b"),
        output("b", ""),
    ],
    "server tools": [USER, reasoning(), search(), reasoning("rs_2"), search("ws_2"), said("Found.")],
    "mcp": [
        USER,
        {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
        {"type": "mcp_approval_request", "id": "mcpr_1", "arguments": "{}", "name": "t", "server_label": "s"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        {"type": "mcp_call", "id": "mcp_1", "arguments": "{}", "name": "t", "server_label": "s", "output": "ok"},
        said("Done."),
    ],
    "references": [
        USER,
        {"type": "item_reference", "id": "rs_1"},
        {"type": "item_reference", "id": "fc_1"},
        output("call_1"),
        {"type": "item_reference", "id": "msg_1"},
    ],
    "files": [
        {
            "role": "user",
            "content": [
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
                {"type": "input_file", "file_url": "https://example.org/a.pdf"},
                {"type": "input_image", "detail": "high", "file_id": "file-1"},
                {"type": "input_text", "text": "Compare."},
            ],
        }
    ],
    "compaction": [
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "sealed"},
        USER,
        said("Yes."),
        {"type": "compaction_trigger"},
    ],
    "of tomorrow": [USER, {"type": "hologram_call", "id": "holo_1", "shape": {"x": 1}}, said("There.")],
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_renders_as_itself(name: str) -> None:
    history = HISTORIES[name]
    before = copy.deepcopy(history)
    log = Log.seed(TARGET, history, system="Be good.")
    made = render(log, TARGET)

    assert made.messages == history
    assert made.system == "Be good."
    assert made.findings == ()
    assert check(TARGET, history) == []
    assert patch(TARGET, history) == history
    assert history == before


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_that_renders_for_others_still_says_what_it_says(name: str) -> None:
    texts = [
        part["content"]
        for event in Log.seed(TARGET, HISTORIES[name])
        for part in event.data["parts"]
        if part["type"] == "text"
    ]
    made = render(Log.seed(TARGET, HISTORIES[name]), "anthropic")

    assert check("anthropic", made.messages, system=made.system) == []
    said_there = json.dumps([made.messages, made.system], ensure_ascii=False)
    assert all(json.dumps(text, ensure_ascii=False)[1:-1] in said_there for text in texts)


def test_what_depends_on_its_place_goes_when_the_place_does() -> None:
    log = Log.seed(TARGET, HISTORIES["compaction"])
    log.append("user_message", {"parts": [{"type": "text", "content": "go"}]})
    made = render(log, TARGET)

    assert made.messages == [*HISTORIES["compaction"][:-1], USER]
    assert codes(made) == ["part_left_out"]


def test_an_approval_goes_with_the_request_that_it_answers() -> None:
    request = {"type": "mcp_approval_request", "id": "mcpr_1", "arguments": "{}", "name": "t", "server_label": "s"}
    history = [
        USER,
        reasoning(),
        request,
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    ]
    log = Log.seed(TARGET, history)
    assert render(log, TARGET).messages == history
    marked = log_of(user(), replied(reasoning(), request), ("user_message", log.events[-1].data))

    assert rendered(*((event.type, event.data) for event in marked), model="o9").messages == [USER]


@pytest.mark.parametrize("messages", ["go", [1], [{"no": "item"}], [{"role": "assistant", "content": [7]}]])
def test_what_is_no_history_is_refused(messages: Any) -> None:
    with pytest.raises(InvalidEvent):
        Log.seed(TARGET, messages)


# Checking

VALID = [
    USER,
    reasoning(),
    said("Now."),
    call("call_1", "fc_1"),
    {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "sql", "input": "x"},
    output("call_1"),
    {"type": "custom_tool_call_output", "call_id": "call_2", "output": "y"},
    said("Done.", "msg_2"),
]


def _without(at: int) -> Callable[[list[Item]], Any]:
    return lambda items: items.pop(at)


def _with(at: int, **fields: Any) -> Callable[[list[Item]], Any]:
    return lambda items: items[at].update(fields)


MUTATIONS: list[tuple[Callable[[list[Any]], Any], tuple[str, str]]] = [
    (_without(5), ("unanswered_call", "messages[3]")),
    (_without(6), ("unanswered_call", "messages[4]")),
    (_without(3), ("orphan_result", "messages[4]")),
    (_with(5, type="custom_tool_call_output"), ("unanswered_call", "messages[3]")),
    (_with(5, call_id="other"), ("orphan_result", "messages[5]")),
    (lambda items: items.insert(6, output("call_1", "again")), ("duplicate_result", "messages[6]")),
    (lambda items: items.insert(2, USER), ("reasoning_alone", "messages[1]")),
    (lambda items: items.append(reasoning("rs_2")), ("reasoning_alone", "messages[8]")),
    (_with(1, status="completed"), ("bad_shape", "messages[1].status")),
    (_with(1, summary=None), ("bad_shape", "messages[1].summary")),
    (_with(1, id=None), ("bad_id", "messages[1].id")),
    (_with(2, id="item_1"), ("bad_id", "messages[2].id")),
    (_with(3, id="call_1"), ("bad_id", "messages[3].id")),
    (_with(7, id="msg_1"), ("duplicate_id", "messages[7].id")),
    (_with(7, id="msg_" + "x" * 64), ("bad_id", "messages[7].id")),
    (_with(3, call_id="x" * 65), ("bad_id", "messages[3].call_id")),
    (_with(3, call_id=""), ("bad_id", "messages[3].call_id")),
    (_with(4, call_id="call_1"), ("duplicate_id", "messages[4].call_id")),
    (_with(3, arguments='{"n":'), ("bad_arguments", "messages[3].arguments")),
    (_with(3, arguments={"n": 1}), ("bad_arguments", "messages[3].arguments")),
    (_with(3, arguments='{"n": "\\ud83d"}'), ("surrogate", "messages[3].arguments")),
    (_with(4, input={"x": 1}), ("bad_arguments", "messages[4].input")),
    (_with(3, name="my tool"), ("bad_name", "messages[3].name")),
    (_with(5, output=None), ("bad_shape", "messages[5].output")),
    (_with(5, output=[]), ("bad_shape", "messages[5].output")),
    (_with(5, output=[{"type": "output_text", "text": "x"}]), ("bad_shape", "messages[5].output[0]")),
    (_with(0, content=""), ("empty_message", "messages[0].content")),
    (_with(0, content=[]), ("empty_message", "messages[0].content")),
    (_with(0, content=[{"type": "output_text", "text": "x"}]), ("bad_shape", "messages[0].content[0]")),
    (_with(0, content=[{"type": "input_image", "detail": "auto"}]), ("bad_shape", "messages[0].content[0]")),
    (_with(0, content="\ud83d"), ("surrogate", "messages[0].content")),
    (_with(0, role="tool"), ("bad_shape", "messages[0].role")),
    (_with(7, content=[{"type": "input_text", "text": "x"}]), ("bad_shape", "messages[7].content[0]")),
    (_with(7, content=[]), ("empty_message", "messages[7].content")),
    (lambda items: items.insert(0, "go"), ("bad_shape", "messages[0]")),
    (lambda items: items.insert(0, {"type": "compaction_trigger"}), ("bad_shape", "messages[0]")),
    (lambda items: items.insert(1, SHELL), ("unanswered_call", "messages[1]")),
    (lambda items: items.insert(1, SCREEN), ("orphan_result", "messages[1]")),
]


def test_a_valid_input_has_no_problems() -> None:
    assert problems(*VALID) == []
    assert [(problem.code, problem.position) for problem in check(TARGET, [*VALID], system=["x"])] == [
        ("bad_shape", "system")
    ]


@pytest.mark.parametrize(("mutate", "expected"), MUTATIONS)
def test_each_planted_violation_is_found(mutate: Callable[[list[Item]], Any], expected: tuple[str, str]) -> None:
    items = copy.deepcopy(VALID)
    mutate(items)

    assert expected in problems(*items)


@pytest.mark.parametrize("odd", [None, 1, [], {}, {"type": []}, {"type": "message"}, {"role": "user", "content": [[]]}])
def test_odd_items_are_problems_and_no_errors(odd: Any) -> None:
    assert problems(odd)


# Patching


def test_patch_answers_what_has_no_answer_behind_its_reply() -> None:
    given = [USER, reasoning(), call("a"), call("b"), said("Wait."), output("b"), USER, *VALID[4:5]]
    before = copy.deepcopy(given)
    custom = {"type": "custom_tool_call_output", "call_id": "call_2", "output": LOST}

    assert patch(TARGET, given) == [*given[:5], output("a", LOST), *given[5:], custom]
    assert given == before
    assert problems(*patch(TARGET, given)) == []


def test_patch_leaves_what_it_cannot_answer() -> None:
    assert patch(TARGET, [USER, CLICK]) == [USER, CLICK]


# Any order of any items


def _replies(seed: int) -> Sequence[Item]:
    """Items of one reply, drawn by a number."""
    kinds: list[Callable[[int], Item]] = [
        lambda at: reasoning(f"rs_{seed}_{at}"),
        lambda at: said(f"text {at}", f"msg_{seed}_{at}"),
        lambda at: search(f"ws_{seed}_{at}"),
        lambda at: call(f"call_{seed}_{at}", f"fc_{seed}_{at}"),
        lambda at: said("", f"msg_{seed}_{at}"),
    ]
    items = []
    for at in range(5):
        seed_here = seed // len(kinds) ** at
        items.append(kinds[seed_here % len(kinds)](at))
    return items


@pytest.mark.parametrize("first", range(0, 5**5, 125))
def test_replies_of_any_items_check_for_any_model_complete_or_not(first: int) -> None:
    for seed in range(first, first + 125):
        items = _replies(seed)
        answers = [result(item["call_id"]) for item in items if item["type"] == "function_call"]
        for options in ({}, {"model": "o9"}):
            rendered(user(), replied(*items), *answers, user(), **options)
        rendered(user(), replied(*items, status="incomplete"), user(), replied(*items), *answers)
