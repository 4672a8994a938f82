"""What a reply says beside its message is kept with it, whole or streamed, and never sent."""

import json
from typing import Any

import pytest

from tests.core.build import Row, log_of
from turnwal.transcript.check import check
from turnwal.transcript.parsing import parse
from turnwal.transcript.render import render

USER: Row = ("user_message", {"parts": [{"type": "text", "content": "go"}]})
USAGE = {"input_tokens": 1, "output_tokens": 1}

SEARCHED = {"groundingMetadata": {"webSearchQueries": ["beside"]}, "avgLogprobs": -0.5}
LOGPROBS = {"content": [{"token": "beside", "logprob": -1.0, "bytes": None, "top_logprobs": []}]}
CONTAINER = {"container": {"id": "beside", "expires_at": "2030-01-01T00:00:00Z"}, "stop_sequence": "END"}


def completion(**choice: Any) -> dict[str, Any]:
    first = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}, **choice}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [first]}


def candidate(**fields: Any) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP", "index": 0, **fields}


def anthropic(**fields: Any) -> dict[str, Any]:
    block = {"type": "text", "text": "ok"}
    said = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": [block]}
    return {**said, "stop_reason": "stop_sequence", "usage": USAGE, **fields}


def response(**fields: Any) -> dict[str, Any]:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}
    said = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [message]}
    return {**said, "tools": [], "temperature": 1.0, "instructions": "be brief", **fields}


def bedrock(**fields: Any) -> dict[str, Any]:
    return {
        "output": {"message": {"role": "assistant", "content": [{"text": "ok"}]}},
        "stopReason": "end_turn",
        **fields,
    }


REPLIES: list[tuple[str, Any, dict[str, Any]]] = [
    ("anthropic", anthropic(**CONTAINER), CONTAINER),
    (
        "anthropic",
        [
            {"type": "message_start", "message": anthropic(content=[], stop_sequence=None)},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "ok"}},
            {"type": "message_delta", "delta": {"stop_reason": "stop_sequence", **CONTAINER}, "usage": USAGE}
            | {"context_management": {"applied_edits": []}},
            {"type": "message_stop"},
        ],
        CONTAINER | {"context_management": {"applied_edits": []}},
    ),
    (
        "openai-chat",
        completion(logprobs=LOGPROBS) | {"system_fingerprint": "fp"},
        {"system_fingerprint": "fp", "choices": [{"logprobs": LOGPROBS}]},
    ),
    (
        "openai-chat",
        [
            {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "o"}, "logprobs": LOGPROBS}]},
            {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "k"}, "logprobs": LOGPROBS}]},
            {"id": "c", "service_tier": "flex", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ],
        {"service_tier": "flex", "choices": [{"logprobs": {"content": LOGPROBS["content"] * 2}}]},
    ),
    ("mistral", completion(beside=1), {"choices": [{"beside": 1}]}),
    ("openai-responses", response(store=False, service_tier="flex"), {"store": False, "service_tier": "flex"}),
    (
        "gemini",
        {"candidates": [candidate(**SEARCHED), candidate(index=1)], "modelVersion": "gemini-3-pro"},
        {"candidates": [SEARCHED, candidate(index=1)]},
    ),
    (
        "gemini",
        [{"candidates": [candidate(finishReason=None)]}, {"candidates": [candidate(content={}, **SEARCHED)]}],
        {"candidates": [SEARCHED]},
    ),
    ("bedrock", bedrock(metrics={"latencyMs": 4}), {"metrics": {"latencyMs": 4}}),
]


@pytest.mark.parametrize(
    ("target", "reply", "rest"), REPLIES, ids=[f"{at}-{each[0]}" for at, each in enumerate(REPLIES)]
)
def test_what_a_reply_says_beside_its_message_is_kept_and_not_sent(
    target: str, reply: Any, rest: dict[str, Any]
) -> None:
    data = parse(target, reply)
    assert data["native"]["reply"] == rest
    assert "complete" not in data
    made = render(log_of(USER, ("assistant_message", data), USER), target).messages
    bare = {name: value for name, value in data.items() if name != "native"}
    assert made == render(log_of(USER, ("assistant_message", bare), USER), target).messages
    assert check(target, made) == []
    assert "beside" not in json.dumps(made)


@pytest.mark.parametrize(
    ("target", "reply"),
    [
        ("anthropic", anthropic()),
        ("openai-chat", completion(logprobs=None)),
        ("openai-responses", response()),
        ("gemini", {"candidates": [candidate()], "modelVersion": "gemini-3-pro"}),
        ("bedrock", bedrock()),
    ],
)
def test_a_reply_that_says_nothing_else_keeps_nothing_else(target: str, reply: dict[str, Any]) -> None:
    assert "reply" not in parse(target, reply).get("native", {})


NAN, MINUS = float("nan"), float("-inf")


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


LOGPROB = {"token": "ok", "logprob": MINUS}
USED = {"prompt_tokens": 1, "x": NAN}
UNHELD: list[tuple[str, Any, tuple[Any, ...], Any]] = [
    (
        "openai-chat",
        completion(logprobs={"content": [LOGPROB]}),
        ("native", "reply", "choices", 0, "logprobs", "content", 0),
        {"token": "ok", "logprob": "-Infinity"},
    ),
    ("openai-chat", completion() | {"usage": USED}, ("usage",), {"prompt_tokens": 1, "x": "NaN"}),
    (
        "gemini",
        {"candidates": [candidate(avgLogprobs=NAN)]},
        ("native", "reply", "candidates", 0, "avgLogprobs"),
        "NaN",
    ),
    ("bedrock", bedrock(trace=deep(199)), ("native", "reply", "trace", *"a" * 197), '{"a":{"a":1}}'),
    ("bedrock", bedrock(usage=deep(200)), ("usage", *"a" * 199), '{"a":1}'),
    ("openai-responses", response(big=10**4_000), ("native", "reply", "big"), str(10**4_000)),
    ("anthropic", anthropic(big=10**5_000), ("native", "reply", "big"), "(not kept: no text holds it)"),
]


@pytest.mark.parametrize(
    ("target", "reply", "path", "held"), UNHELD, ids=[f"{at}-{each[0]}" for at, each in enumerate(UNHELD)]
)
def test_what_no_event_holds_beside_a_message_does_not_cost_the_message(
    target: str, reply: Any, path: tuple[Any, ...], held: Any
) -> None:
    log = log_of(USER, ("assistant_message", parse(target, reply)))
    found: Any = log.events[1].data
    assert found["parts"][0]["content"] == "ok"
    for step in path:
        found = found[step]
    assert found == held


STREAMED = [
    {"type": "message_start", "message": anthropic(content=[], usage=[])},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "ok"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": "n/a"},
    {"type": "message_stop"},
]
ODD: list[tuple[str, Any, dict[str, Any]]] = [
    ("openai-chat", completion() | {"usage": []}, {"usage": []}),
    ("openai-chat", completion() | {"model": 7, "id": 8}, {"model": 7, "response_id": 8}),
    ("mistral", completion(finish_reason=1), {"stop": 1}),
    ("anthropic", anthropic(usage="n/a"), {"usage": "n/a"}),
    ("anthropic", STREAMED, {"usage": "n/a"}),
    ("openai-responses", response(usage=[NAN], id=7), {"usage": ["NaN"], "response_id": 7}),
    ("gemini", {"candidates": [candidate()], "usageMetadata": 0}, {"usage": 0}),
    ("bedrock", bedrock(trace=[], metrics=5, ResponseMetadata="none"), {"trace": [], "metrics": 5}),
    ("bedrock", bedrock(trace={"promptRouter": "x"}, usage=[]), {"trace": {"promptRouter": "x"}, "usage": []}),
]


@pytest.mark.parametrize(("target", "reply", "rest"), ODD, ids=[f"{at}-{each[0]}" for at, each in enumerate(ODD)])
def test_what_a_gateway_says_in_a_form_of_its_own_beside_a_message_does_not_cost_the_message(
    target: str, reply: Any, rest: dict[str, Any]
) -> None:
    log = log_of(USER, ("assistant_message", parse(target, reply)), USER)
    found = log.events[1].data
    assert found["parts"][0]["content"] == "ok"
    assert found["native"]["reply"] == rest
    assert not set(rest) & set(found)
    assert check(target, render(log, target).messages) == []


def test_what_an_event_can_just_hold_beside_a_message_is_kept_as_it_is() -> None:
    reply = bedrock(trace=deep(197), usage=deep(199), big=10**4_000 - 1, small=1.5, yes=True)
    found = log_of(USER, ("assistant_message", parse("bedrock", reply))).events[1].data
    assert found["usage"] == reply["usage"]
    assert found["native"]["reply"] == {name: reply[name] for name in ("trace", "big", "small", "yes")}


def test_arguments_of_any_depth_are_the_text_of_a_call() -> None:
    block = {"type": "tool_use", "id": "a", "name": "f", "input": deep(250)}
    log = log_of(USER, ("assistant_message", parse("anthropic", anthropic(content=[block]))))
    assert json.loads(log.events[1].data["parts"][0]["arguments"]) == deep(250)
