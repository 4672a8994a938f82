"""Hypothesis strategies for what a model replies, in the form that each target's API gives it.

Promises: a reply is valid, and so is a request that holds its message with a result for each call; ids are unique in
it. Models think, talk and ask for several calls at once.

Needs `hypothesis`, which turnwal itself does not.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st

Wire = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that a model said: a thought, a text, or a call."""

    kind: str
    """reasoning, text, call"""
    text: str = ""
    id: str = ""
    name: str = ""
    arguments: Mapping[str, Any] | None = None


_THOUGHTS: Final = ("hm", "two\nlines", "é😀")
_UNSHOWN: Final = frozenset({"anthropic", "bedrock", "openai-responses"})
"""Whose models also sign thoughts that they do not show, which leaves them empty."""
_TEXTS: Final = ("ok", "two\nlines", "a\u2028b", "é😀", '"quoted" \\ text', "\x7f")
_ARGUMENTS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"n": 2**60, "none": None},
    {"path": "a\u2028😀", "flags": [True, 0.1, {"deep": []}]},
    {"": "no name"},
)
_MODELS: Final = {
    "anthropic": "claude-sonnet-4-5-20250929",
    "openai-chat": "gpt-5-2025-08-07",
    "openai-responses": "gpt-5-2025-08-07",
    "gemini": "gemini-3-pro",
    "bedrock": "anthropic.claude-sonnet-4-5-20250929-v1:0",
    "mistral": "magistral-medium-2509",
}
_SIGNATURE: Final = "c2lnbmVk"


@st.composite
def replies(draw: st.DrawFn, target: str, *, cut_short: bool = False) -> Wire:
    """A reply of a target, as its API gives it.

    With `cut_short` it may end while the model still thinks, as at a limit of tokens: no request holds that as it came.
    """
    thoughts = (*_THOUGHTS, "") if target in _UNSHOWN else _THOUGHTS
    said = [Said("reasoning", draw(st.sampled_from(thoughts)))] if draw(st.booleans()) else []
    number = draw(st.integers(10**7, 10**8 - 1))
    for at in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            said.append(Said("text", draw(st.sampled_from(_TEXTS))))
        else:
            arguments = draw(st.sampled_from(_ARGUMENTS))
            said.append(Said("call", "", f"{number}{at}", draw(st.sampled_from(["pay", "look"])), arguments))
    if cut_short and draw(st.integers(0, 2)) == 0:
        said = [*draw(st.sampled_from([said, []])), Said("reasoning", draw(st.sampled_from(thoughts)))]
    return _MAKERS[target](said)


def message_of(target: str, reply: Wire) -> list[Wire]:
    """What a request has of a reply: the messages, or items, that go back as they came."""
    match target:
        case "anthropic":
            return [{"role": "assistant", "content": reply["content"]}]
        case "openai-responses":
            return list(reply["output"])
        case "gemini":
            return [reply["candidates"][0]["content"]]
        case "bedrock":
            return [reply["output"]["message"]]
        case _:
            return [reply["choices"][0]["message"]]


def _anthropic(said: Sequence[Said]) -> Wire:
    blocks: dict[str, Callable[[Said], Wire]] = {
        "reasoning": lambda each: {"type": "thinking", "thinking": each.text, "signature": _SIGNATURE},
        "text": lambda each: {"type": "text", "text": each.text},
        "call": lambda each: {"type": "tool_use", "id": each.id, "name": each.name, "input": each.arguments},
    }
    content = [blocks[each.kind](each) for each in said]
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": _MODELS["anthropic"], "content": content}


def _completion(said: Sequence[Said], content: Any, model: str) -> Wire:
    message: Wire = {"role": "assistant", "content": content}
    calls = [
        {"id": each.id, "type": "function", "function": {"name": each.name, "arguments": json.dumps(each.arguments)}}
        for each in said
        if each.kind == "call"
    ]
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": model, "choices": [choice]}


def _chat(said: Sequence[Said]) -> Wire:
    text = "".join(each.text for each in said if each.kind == "text")
    return _completion(said, text or None, _MODELS["openai-chat"])


def _mistral(said: Sequence[Said]) -> Wire:
    text = "".join(each.text for each in said if each.kind == "text")
    thought = [each for each in said if each.kind == "reasoning"]
    content: Any = text
    if thought:
        chunks = [{"type": "thinking", "thinking": [{"type": "text", "text": each.text}]} for each in thought]
        content = [*chunks, {"type": "text", "text": text}] if text else chunks
    return _completion(said, content, _MODELS["mistral"])


def _responses(said: Sequence[Said]) -> Wire:
    output: list[Wire] = []
    for at, each in enumerate(said):
        if each.kind == "reasoning":
            summary = [{"type": "summary_text", "text": each.text}] if each.text else []
            output.append({"type": "reasoning", "id": f"rs_{at}", "summary": summary, "encrypted_content": _SIGNATURE})
        elif each.kind == "text":
            block = {"type": "output_text", "text": each.text, "annotations": []}
            message = {"type": "message", "id": f"msg_{at}", "role": "assistant", "status": "completed"}
            output.append(message | {"content": [block]})
        else:
            call = {"type": "function_call", "id": f"fc_{at}", "call_id": each.id, "name": each.name}
            output.append(call | {"arguments": json.dumps(each.arguments), "status": "completed"})
    model = _MODELS["openai-responses"]
    return {
        "id": "resp_1",
        "object": "response",
        "model": model,
        "status": "completed",
        "output": output,
        "store": False,
    }


def _gemini(said: Sequence[Said]) -> Wire:
    parts: list[Wire] = []
    for each in said:
        if each.kind == "call":
            call = {"functionCall": {"id": each.id, "name": each.name, "args": each.arguments}}
            first = not any("functionCall" in part for part in parts)
            parts.append(call | ({"thoughtSignature": _SIGNATURE} if first else {}))
        else:
            parts.append({"text": each.text} | ({"thought": True} if each.kind == "reasoning" else {}))
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    return {"candidates": [candidate], "modelVersion": _MODELS["gemini"], "responseId": "r1"}


def _bedrock(said: Sequence[Said]) -> Wire:
    blocks: dict[str, Callable[[Said], Wire]] = {
        "reasoning": lambda each: {
            "reasoningContent": {"reasoningText": {"text": each.text, "signature": _SIGNATURE}},
        },
        "text": lambda each: {"text": each.text},
        "call": lambda each: {"toolUse": {"toolUseId": each.id, "name": each.name, "input": each.arguments}},
    }
    content = [blocks[each.kind](each) for each in said]
    return {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn"}


_MAKERS: Final[Mapping[str, Callable[[Sequence[Said]], Wire]]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
    "bedrock": _bedrock,
    "mistral": _mistral,
}
