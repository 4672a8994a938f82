"""What is sent to Mistral fits the request models of the official package, and its objects are taken as replies."""

from typing import Any

import pytest
from mistralai.client.models import ChatCompletionRequest, ChatCompletionResponse, CompletionEvent

from tests.core.build import Row, log_of
from tests.transcript.test_mistral import HISTORIES, MEDIA, STREAM, THINKING, reply
from turnwal.transcript.parsing import Log, parse
from turnwal.transcript.render import render


def fitting(messages: list[dict[str, Any]]) -> None:
    ChatCompletionRequest.model_validate({"model": "mistral-large-latest", "messages": messages})


def test_the_types_do_refuse_something() -> None:
    for bad in (
        {"role": "user"},
        {"role": "developer", "content": "a"},
        {"role": "assistant", "tool_calls": [{"id": "a"}]},
    ):
        with pytest.raises(ValueError, match="validation error"):
            fitting([bad])


@pytest.mark.parametrize("history", HISTORIES, ids=range(len(HISTORIES)))
def test_what_is_sent_fits_the_types(history: list[dict[str, Any]]) -> None:
    fitting(render(Log.seed("mistral", history), "mistral").messages)


def test_a_conversation_of_another_provider_fits_the_types() -> None:
    calls = [
        {"type": "tool_call", "id": "toolu_1", "name": "mcp/read", "arguments": "{"},
        {"type": "tool_call", "id": "toolu_1", "name": "shell", "arguments": "ls", "format": "text"},
    ]
    rows: list[Row] = [
        ("user_message", {"parts": [{"type": "text", "content": "see"}, *(part for part, _ in MEDIA)]}),
        ("assistant_message", {"parts": [{"type": "text", "content": "ok"}, *calls], "provider": "anthropic"}),
        ("tool_result", {"id": "toolu_1", "call": "1.1", "parts": [MEDIA[0][0]], "is_error": True}),
        ("system_message", {"parts": [{"type": "text", "content": "a"}, {"type": "text", "content": "b"}]}),
    ]
    messages = render(log_of(*rows), "mistral").messages
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "assistant", "user"]
    fitting(messages)


USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def test_the_objects_of_the_package_are_taken_as_their_data_is() -> None:
    fields: dict[str, Any] = {"object": "chat.completion", "created": 1, "usage": USAGE}
    data = reply({"content": [THINKING, {"type": "text", "text": "Hi"}]}, **fields)
    assert parse("mistral", ChatCompletionResponse.model_validate(data)) == parse("mistral", data)
    objects = [CompletionEvent.model_validate(each) for each in STREAM]
    assert parse("mistral", objects) == parse("mistral", STREAM)
    assert len(parse("mistral", objects)["parts"]) == 4
