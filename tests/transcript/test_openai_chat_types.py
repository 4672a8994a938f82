"""What is sent to OpenAI Chat Completions fits the types of its package; its objects are taken as replies."""

from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessageParam, ParsedChatCompletion
from pydantic import BaseModel, TypeAdapter

from tests.core.build import Row, log_of
from tests.transcript.test_openai_chat import HISTORIES, MEDIA, STREAM, called, chunk, reply, told
from turnwal.transcript.parsing import Log, parse
from turnwal.transcript.render import render

MESSAGES: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])


def fitting(messages: list[dict[str, Any]]) -> None:
    """Pass where the messages fit the types; pydantic makes an iterator of an Iterable, so what it says is run out."""
    for message in MESSAGES.validate_python(messages):
        for value in message.values():
            if hasattr(value, "__next__"):
                list(value)


def test_the_types_do_refuse_something() -> None:
    for bad in ({"role": "user"}, {"role": "tool", "content": "a"}, {"role": "assistant", "tool_calls": [{"id": "a"}]}):
        with pytest.raises(ValueError, match="validation error"):
            fitting([bad])


@pytest.mark.parametrize("history", HISTORIES, ids=range(len(HISTORIES)))
def test_what_is_sent_fits_the_types(history: list[dict[str, Any]]) -> None:
    # the API takes a null there, the type does not
    plain = [{name: value for name, value in message.items() if name != "tool_calls" or value} for message in history]
    fitting(render(Log.seed("openai-chat", plain), "openai-chat").messages)


def test_a_conversation_of_another_provider_fits_the_types() -> None:
    calls = [
        {"type": "tool_call", "id": "toolu_1", "name": "mcp/read", "arguments": "{"},
        {"type": "tool_call", "id": "toolu_1", "name": "shell", "arguments": "ls", "format": "text"},
    ]
    thinking = {
        "type": "reasoning",
        "content": "hm",
        "native": {"provider": "anthropic", "block": {"type": "thinking"}},
    }
    rows: list[Row] = [
        ("system_message", {"parts": [{"type": "text", "content": "a"}, {"type": "text", "content": "b"}]}),
        ("user_message", {"parts": [{"type": "text", "content": "see"}, *(part for part, _ in MEDIA)]}),
        (
            "assistant_message",
            {"parts": [thinking, {"type": "text", "content": "ok"}, *calls], "provider": "anthropic"},
        ),
        ("tool_result", {"id": "toolu_1", "call": "2.2", "parts": [MEDIA[0][0]], "is_error": True}),
    ]
    messages = render(log_of(*rows), "openai-chat").messages
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "tool"]
    fitting(messages)


def test_the_objects_of_the_package_are_taken_as_their_data_is() -> None:
    data = reply({"content": "Hi", "refusal": None}, usage=None, created=1)
    assert parse("openai-chat", ChatCompletion.model_validate(data)) == parse("openai-chat", data)
    chunks = [{"created": 1, "object": "chat.completion.chunk", **each} for each in STREAM if "usage" not in each]
    objects = [ChatCompletionChunk.model_validate(each) for each in chunks]
    assert parse("openai-chat", objects) == parse("openai-chat", chunks)
    assert len(parse("openai-chat", objects)["parts"]) == 3


class Answer(BaseModel):
    value: int


def test_what_the_package_parsed_does_not_go_back() -> None:
    function = {"name": "read", "arguments": '{"a":1}', "parsed_arguments": {"a": 1}}
    calls = [{"id": "c1", "type": "function", "function": function}]
    data = reply({"content": '{"value":7}', "parsed": {"value": 7}, "tool_calls": calls}, created=1)
    data["choices"][0]["logprobs"] = None
    found = parse("openai-chat", ParsedChatCompletion[Answer].model_validate(data))
    log = log_of(told("go"), ("assistant_message", found))
    message = render(log, "openai-chat").messages[1]
    assert message.keys() == {"role", "content", "tool_calls"}
    assert message["tool_calls"][0]["function"] == {"name": "read", "arguments": '{"a":1}'}


def test_a_stream_of_objects_that_was_cut_off_never_completed() -> None:
    chunks = [chunk({"content": "I"}), chunk(called(0, '{"a', "c1", "read"))]
    objects = [
        ChatCompletionChunk.model_validate({"created": 1, "object": "chat.completion.chunk", **each}) for each in chunks
    ]
    assert parse("openai-chat", objects)["complete"] is False
