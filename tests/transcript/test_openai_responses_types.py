"""OpenAI Responses, held to the types of OpenAI's own package: what is rendered is its input, and its replies parse."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseCreatedEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseInputItemParam,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseTextDeltaEvent,
)
from pydantic import BaseModel, TypeAdapter, ValidationError

from tests.core.build import ask, log_of, result
from tests.transcript.test_openai_responses import (
    CLICK,
    HISTORIES,
    SCREEN,
    SHELL,
    SHELL_OUTPUT,
    STREAMED,
    TARGET,
    USER,
    VALID,
    Item,
    call,
    events,
    reasoning,
    response,
    said,
    user,
)
from turnwal.transcript.parsing import Log, parse
from turnwal.transcript.recognising import target_of
from turnwal.transcript.render import render

INPUT: TypeAdapter[Any] = TypeAdapter(ResponseInputItemParam)

UNTYPED = frozenset({"of tomorrow", "answers in a row", "typed"})
"""Histories with what the API takes and its types do not know: an item of tomorrow, output text without an id, the id
of a message of the user's."""

REQUIRED = {
    "created_at": 1764500000,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "incomplete_details": None,
}
"""What a response of the API has besides what it says."""


def whole(value: Any) -> Any:
    """What a validator made, with the lists read that it reads only when asked."""
    if isinstance(value, Mapping):
        return {name: whole(item) for name, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return [whole(item) for item in value]
    return value


def validate(item: Item) -> None:
    """An item is one of the types, and has no field that its type does not know."""
    assert whole(INPUT.validate_python(item)) == item


@pytest.mark.parametrize("name", sorted(HISTORIES.keys() - UNTYPED))
def test_histories_are_inputs(name: str) -> None:
    for item in render(Log.seed(TARGET, HISTORIES[name]), TARGET).messages:
        validate(item)


@pytest.mark.parametrize("item", [*VALID, SHELL, SHELL_OUTPUT, CLICK, SCREEN])
def test_items_that_the_tests_rest_on_are_items(item: Item) -> None:
    validate(item)


@pytest.mark.parametrize("item", [{"type": "function_call", "call_id": "a"}, {**USER, "extra": 1}, {"type": "nothing"}])
def test_what_is_no_item_is_found_to_be_none(item: Item) -> None:
    with pytest.raises((ValidationError, AssertionError)):
        validate(item)


def test_what_other_providers_wrote_is_an_input() -> None:
    parts = [
        {"type": "reasoning", "content": "Hm."},
        {"type": "text", "content": "Now."},
        {"type": "tool_call", "id": "toolu_1", "name": "sql", "arguments": "select 1;", "format": "text"},
        {"type": "tool_call", "id": "toolu_2", "name": "pay", "arguments": '{"cut'},
    ]
    media = [
        {"type": "text", "content": "see"},
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AAAA"},
        {"type": "blob", "modality": "document", "mime_type": "application/pdf", "content": "AAAA"},
        {"type": "uri", "modality": "document", "mime_type": "application/pdf", "uri": "https://example.org/a.pdf"},
    ]
    rows = [
        ("user_message", {"parts": media}),
        ("assistant_message", {"parts": parts, "provider": "anthropic"}),
        ("tool_result", {"id": "toolu_2", "parts": media}),
        user(),
        ("system_message", {"parts": [{"type": "text", "content": "Be brief."}]}),
    ]
    for item in render(log_of(*rows), TARGET).messages:
        validate(item)


def test_a_reply_for_another_model_is_an_input() -> None:
    row = ("assistant_message", parse(TARGET, response(*STREAMED)))
    for item in render(log_of(user(), row, result("call_1"), ask("x")), TARGET, model="o9").messages:
        validate(item)


def test_a_response_of_the_package_parses_and_goes_back() -> None:
    items = [reasoning(), said("Now."), call("call_1", "fc_1")]
    reply = Response.model_validate({**REQUIRED, **response(*items)})
    data = parse(TARGET, reply)

    assert target_of(reply) == TARGET
    assert data == parse(TARGET, response(*items))
    assert render(log_of(user(), ("assistant_message", data), result("call_1")), TARGET).messages[1:-1] == items


def test_what_the_package_parsed_out_of_a_response_is_not_sent_back() -> None:
    parsed = response(
        said("", content=[{"type": "output_text", "text": "{}", "annotations": [], "parsed": {}}]),
        call("call_1", "fc_1", parsed_arguments={"n": 1}),
    )
    row = ("assistant_message", parse(TARGET, parsed))
    for item in render(log_of(user(), row, result("call_1")), TARGET).messages:
        validate(item)


def test_a_stream_of_the_package_is_the_response_it_ends_with() -> None:
    items = [reasoning(), said("Now."), call("call_1", "fc_1")]
    types: dict[str, type[BaseModel]] = {
        "response.created": ResponseCreatedEvent,
        "response.output_item.added": ResponseOutputItemAddedEvent,
        "response.output_item.done": ResponseOutputItemDoneEvent,
        "response.output_text.delta": ResponseTextDeltaEvent,
        "response.function_call_arguments.delta": ResponseFunctionCallArgumentsDeltaEvent,
        "response.completed": ResponseCompletedEvent,
    }
    stream = []
    for number, event in enumerate(events(*items)):
        if event["type"] in types:
            more: Item = {"response": {**REQUIRED, **event["response"]}} if "response" in event else {"logprobs": []}
            stream.append(types[event["type"]].model_validate({**event, **more, "sequence_number": number}))

    assert {target_of(event) for event in stream} == {TARGET}
    assert parse(TARGET, stream) == parse(TARGET, response(*items))
    cut = parse(TARGET, stream[:-1])
    assert cut["complete"] is False
    assert cut["parts"] == parse(TARGET, response(*items))["parts"]
