"""What is sent to Anthropic fits the types of its package; its objects are taken as replies."""

from typing import Any

import pytest
from anthropic.types import Message, MessageParam, RawMessageStreamEvent
from hypothesis import given
from pydantic import TypeAdapter

from tests.core.build import Row, log_of
from tests.transcript.test_anthropic import HISTORIES, PDF, PNG, REPLIES, STREAM, told
from tests.transcript.test_laws import law, rendered
from turnwal.testing.strategies import Row as Written
from turnwal.testing.strategies import log_of as written
from turnwal.testing.strategies import session_rows
from turnwal.transcript.parsing import Log, parse
from turnwal.transcript.recognising import target_of
from turnwal.transcript.render import render

MESSAGES: TypeAdapter[Any] = TypeAdapter(list[MessageParam])
EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)


def fitting(messages: list[dict[str, Any]]) -> None:
    """Pass where the messages fit the types; pydantic makes an iterator of an Iterable, so what it says is run out."""
    _run_out(MESSAGES.validate_python(messages))


def _run_out(value: Any) -> None:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list) and not hasattr(value, "__next__"):
        return
    for item in value:
        _run_out(item)


def test_the_types_do_refuse_something() -> None:
    inner = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "of_tomorrow"}]}
    for bad in (
        {"role": "user"},
        {"role": "tool", "content": "a"},
        {"role": "user", "content": [{"type": "of_tomorrow"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1"}]},
        {"role": "user", "content": [inner]},
    ):
        with pytest.raises(ValueError, match="validation error"):
            fitting([bad])


@pytest.mark.parametrize("history", HISTORIES, ids=range(len(HISTORIES)))
def test_what_is_sent_fits_the_types(history: list[dict[str, Any]]) -> None:
    fitting(render(Log.seed("anthropic", history), "anthropic").messages)


@law(60)
@given(rows=session_rows())
def test_what_a_session_leaves_at_any_moment_fits_the_types(rows: list[Written]) -> None:
    fitting(rendered(written(rows), "anthropic").messages)


def test_a_conversation_of_another_provider_fits_the_types() -> None:
    calls = [
        {"type": "tool_call", "id": "fc/1", "name": "mcp/read", "arguments": "{"},
        {"type": "tool_call", "id": "fc/1", "name": "shell", "arguments": "ls", "format": "text"},
    ]
    encrypted = {"provider": "openai-responses", "block": {"type": "reasoning", "encrypted_content": "x"}}
    media: list[dict[str, Any]] = [
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AAAA"},
        {"type": "uri", "modality": "image", "uri": "https://example.com/a.png"},
        {"type": "blob", "modality": "document", "mime_type": "application/pdf", "content": "AAAA"},
    ]
    rows: list[Row] = [
        ("user_message", {"parts": [{"type": "text", "content": "see"}, *media]}),
        ("assistant_message", {"parts": [{"type": "reasoning", "native": encrypted}, *calls]}),
        ("tool_result", {"id": "fc/1", "call": "1.1", "parts": media, "is_error": True}),
    ]
    messages = render(log_of(*rows), "anthropic").messages
    assert [block["type"] for block in messages[0]["content"]] == ["text", "image", "image", "document"]
    assert len(messages[2]["content"]) == 2
    fitting(messages)
    fitting([{"role": "user", "content": [PNG, PDF]}])


@pytest.mark.parametrize("answered", REPLIES, ids=range(len(REPLIES)))
def test_the_objects_of_the_package_are_taken_as_their_data_is(answered: dict[str, Any]) -> None:
    made = Message.model_validate(answered)
    assert target_of(made) == target_of(answered) == "anthropic"
    assert parse("anthropic", made) == parse("anthropic", answered)
    assert render(log_of(told("go"), ("assistant_message", parse("anthropic", made))), "anthropic").messages[1] == {
        "role": "assistant",
        "content": answered["content"],
    }


@pytest.mark.parametrize("length", [1, 5, 13, len(STREAM)])
def test_a_stream_of_objects_is_taken_as_its_data_is(length: int) -> None:
    chunks = [chunk for chunk in STREAM[:length] if chunk["type"] != "ping"]
    objects = [EVENT.validate_python(chunk) for chunk in chunks]
    assert {target_of(each) for each in objects} == {"anthropic"}
    assert parse("anthropic", objects) == parse("anthropic", chunks)
    assert ("complete" in parse("anthropic", objects)) is (length < len(STREAM))
