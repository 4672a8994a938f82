"""Patching a list of messages that has no log: what is unanswered is answered in place, all else is as it was."""

import copy
from typing import Any

import pytest
from anthropic import types as anthropic_types
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseFunctionToolCall

from tests.transcript.test_laws import law
from turnwal.core.errors import InvalidEvent, InvalidName
from turnwal.testing.strategies import Row, log_of, session_rows
from turnwal.transcript.check import check
from turnwal.transcript.parsing import Log
from turnwal.transcript.patching import LOST, patch
from turnwal.transcript.render import render
from turnwal.transcript.targets import TARGETS

targets = pytest.mark.parametrize("target", sorted(TARGETS))


def answers(value: Any) -> int:
    """How often the words of an unknown outcome stand in JSON data."""
    if isinstance(value, str):
        return value.count(LOST)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(answers, items))


@targets
@law(80)
@given(rows=session_rows())
def test_a_healthy_list_comes_back_equal(target: str, rows: list[Row]) -> None:
    messages = render(log_of(rows), target, waiting="placeholder").messages
    assert patch(target, messages) == messages


@targets
@law(120)
@given(rows=session_rows(), data=st.data())
def test_a_list_that_was_cut_anywhere_is_answered(target: str, rows: list[Row], data: st.DataObject) -> None:
    messages = render(log_of(rows), target, waiting="placeholder").messages
    cut = messages[: data.draw(st.integers(0, len(messages)), label="cut")]
    before = copy.deepcopy(cut)
    broken = [problem for problem in check(target, cut) if problem.code == "unanswered_call"]
    patched = patch(target, cut)
    assert cut == before
    assert [problem for problem in check(target, patched) if problem.code in ("unanswered_call", "results_apart")] == []
    assert (answers(patched) > answers(cut)) is bool(broken)
    assert patch(target, patched) == patched


@targets
def test_what_is_no_list_of_messages_is_refused(target: str) -> None:
    with pytest.raises(InvalidEvent, match="no list"):
        patch(target, "messages")  # type: ignore[arg-type]
    with pytest.raises(InvalidEvent, match="no list"):
        patch(target, [1])  # type: ignore[list-item]


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(InvalidName, match="no such target"):
        patch("gpt", [])


def test_a_call_inside_an_object_of_a_package_is_answered() -> None:
    said = anthropic_types.Message.model_validate(
        {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
            "content": [{"type": "tool_use", "id": "t1", "name": "pay", "input": {}}],
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )
    given: list[Any] = [{"role": "user", "content": "go"}, {"role": "assistant", "content": said.content}]
    patched = patch("anthropic", given)
    assert patched[:2] == given
    assert patched[1] is given[1]
    assert patched[2]["content"][0]["tool_use_id"] == "t1"
    assert check("anthropic", patched) == []
    assert patch("anthropic", patched) == patched


def test_a_message_that_is_an_object_of_a_package_is_read_and_handed_back() -> None:
    asking = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    message = ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [asking]})
    for said in (message, {"role": "assistant", "content": None, "tool_calls": message.tool_calls}):
        given: list[Any] = [{"role": "user", "content": "go"}, said]
        patched = patch("openai-chat", given)
        assert patched[1] is said
        assert patched[2]["tool_call_id"] == "c1"
        assert check("openai-chat", given)[0].code == "unanswered_call"
        assert check("openai-chat", patched) == []


def test_an_item_that_is_an_object_of_a_package_is_answered() -> None:
    item = ResponseFunctionToolCall(arguments="{}", call_id="c1", name="pay", type="function_call")
    given: list[Any] = [{"role": "user", "content": "go"}, item]
    patched = patch("openai-responses", given)
    assert patched[1] is item
    assert patched[2]["call_id"] == "c1"
    assert check("openai-responses", patched) == []


def gemini(*responses: dict[str, Any]) -> list[dict[str, Any]]:
    calls = [
        {"id": "a", "name": "pay", "args": {}},
        {"id": "b", "name": "pay", "args": {}},
        {"name": "mail", "args": {}},
    ]
    return [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"functionCall": call} for call in calls]},
        {"role": "user", "parts": [{"functionResponse": {"response": {"output": "x"}, **each}} for each in responses]},
    ]


def test_a_gemini_response_without_an_id_answers_the_first_call_of_its_name() -> None:
    healthy = gemini({"name": "pay"}, {"name": "pay"}, {"name": "mail"})
    assert check("gemini", healthy) == []
    assert patch("gemini", healthy) == healthy
    assert render(Log.seed("gemini", healthy), "gemini", model="gemini-2.5-pro").messages == healthy


def test_a_gemini_response_with_an_id_answers_that_call_and_no_other() -> None:
    patched = patch("gemini", gemini({"name": "pay", "id": "b"}, {"name": "mail"}))
    lacking = [
        part["functionResponse"] for part in patched[2]["parts"] if "error" in part["functionResponse"]["response"]
    ]
    assert [response["id"] for response in lacking] == ["a"]
    both = patch("gemini", gemini({"name": "pay"}, {"name": "pay", "id": "a"}, {"name": "mail"}))
    assert answers(both) == 0
