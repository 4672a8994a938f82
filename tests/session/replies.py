"""Replies and streams of every provider that say the same, as the JSON of their APIs."""

import json
from dataclasses import dataclass
from typing import Any

TEXT = "Let me pay."
ARGUMENTS = {"order": 7}
_RAW = json.dumps(ARGUMENTS)


@dataclass(frozen=True)
class Replies:
    """What one provider says: a text and a call of `pay`, and then a text alone."""

    asks: dict[str, Any]
    chunks: list[dict[str, Any]]
    """The same reply as it streams in: the text in two pieces first, the end last."""
    done: dict[str, Any]
    model: str | None
    stop: str
    end: int = 3
    """So many chunks say the end of the call, and of all."""

    @property
    def cut(self) -> list[dict[str, Any]]:
        """The chunks as far as the call was begun and the end was not said."""
        return self.chunks[: -self.end]


def _anthropic() -> Replies:
    usage = {"input_tokens": 10, "output_tokens": 5}
    base = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "usage": usage}
    call = {"type": "tool_use", "id": "toolu_1", "name": "pay", "input": ARGUMENTS}
    asks = {**base, "content": [{"type": "text", "text": TEXT}, call], "stop_reason": "tool_use"}
    chunks: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**base, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
            for text in (TEXT[:6], TEXT[6:])
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {**call, "input": {}}},
        *(
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": text}}
            for text in (_RAW[:5], _RAW[5:])
        ),
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    done = {**base, "id": "msg_2", "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn"}
    return Replies(asks, chunks, done, "claude-x", "tool_use")


def _chat(model: str, *, pieces: bool) -> Replies:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    base = {"id": "cmpl_1", "object": "chat.completion", "created": 1, "model": model, "usage": usage}
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "pay", "arguments": _RAW}}

    def whole(finish: str, **message: Any) -> dict[str, Any]:
        choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
        return {**base, "choices": [choice]}

    def chunk(finish: str | None, **delta: Any) -> dict[str, Any]:
        plain = {name: value for name, value in base.items() if name != "usage"}
        return {
            **plain,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }

    def piece(arguments: str, **more: Any) -> dict[str, Any]:
        return {"index": 0, "function": {"arguments": arguments, **more.pop("function", {})}, **more}

    in_pieces = [
        piece(_RAW[:5], id="abcdefghi", type="function", function={"name": "pay"}),
        piece(_RAW[5:]),
    ]
    chunks = [
        chunk(None, role="assistant", content=TEXT[:6]),
        chunk(None, content=TEXT[6:]),
        *(chunk(None, tool_calls=[call]) for call in (in_pieces if pieces else [{"index": 0, **call}])),
        chunk("tool_calls"),
        {**chunk(None), "choices": [], "usage": usage},
    ]
    asks = whole("tool_calls", content=TEXT, tool_calls=[call])
    return Replies(asks, chunks, whole("stop", content="done"), model, "tool_calls", end=3 if pieces else 2)


def _responses() -> Replies:
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    base = {"id": "resp_1", "object": "response", "model": "gpt-x", "status": "completed", "usage": usage}

    def message(text: str) -> dict[str, Any]:
        said = {"type": "output_text", "text": text, "annotations": []}
        return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [said]}

    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "pay", "arguments": _RAW}
    call |= {"status": "completed"}
    asks = {**base, "output": [message(TEXT), call]}
    begun = {"type": "response.created", "response": {**base, "status": "in_progress", "output": [], "usage": None}}
    opened = {**message(""), "content": [], "status": "in_progress"}
    chunks: list[dict[str, Any]] = [
        begun,
        {"type": "response.output_item.added", "output_index": 0, "item": opened},
        *(
            {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg_1"}
            | {"delta": text, "logprobs": []}
            for text in (TEXT[:6], TEXT[6:])
        ),
        {"type": "response.output_item.done", "output_index": 0, "item": message(TEXT)},
        {"type": "response.output_item.added", "output_index": 1, "item": {**call, "arguments": ""}},
        *(
            {"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "fc_1", "delta": text}
            for text in (_RAW[:5], _RAW[5:])
        ),
        {"type": "response.output_item.done", "output_index": 1, "item": call},
        {"type": "response.completed", "response": asks},
    ]
    return Replies(asks, chunks, {**base, "id": "resp_2", "output": [message("done")]}, "gpt-x", "completed")


def _gemini() -> Replies:
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5}

    def reply(*parts: dict[str, Any], finish: str | None = "STOP") -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
        if finish is not None:
            candidate["finishReason"] = finish
        return {"candidates": [candidate], "modelVersion": "gemini-x", "responseId": "r_1", "usageMetadata": usage}

    call = {"functionCall": {"name": "pay", "args": ARGUMENTS}}
    chunks = [
        reply({"text": TEXT[:6]}, finish=None),
        reply({"text": TEXT[6:]}, finish=None),
        reply(call, finish=None),
        reply({"text": ""}),
    ]
    return Replies(reply({"text": TEXT}, call), chunks, reply({"text": "done"}), "gemini-x", "STOP", end=1)


def _bedrock() -> Replies:
    usage = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
    call = {"toolUse": {"toolUseId": "tooluse_1", "name": "pay", "input": ARGUMENTS}}

    def reply(stop: str, *content: dict[str, Any]) -> dict[str, Any]:
        told = {"RequestId": "req_1", "HTTPStatusCode": 200}
        message = {"role": "assistant", "content": list(content)}
        return {"ResponseMetadata": told, "output": {"message": message}, "stopReason": stop, "usage": usage}

    chunks: list[dict[str, Any]] = [
        {"messageStart": {"role": "assistant"}},
        *({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": text}}} for text in (TEXT[:6], TEXT[6:])),
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {
            "contentBlockStart": {
                "contentBlockIndex": 1,
                "start": {"toolUse": {"toolUseId": "tooluse_1", "name": "pay"}},
            }
        },
        *(
            {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": text}}}}
            for text in (_RAW[:5], _RAW[5:])
        ),
        {"contentBlockStop": {"contentBlockIndex": 1}},
        {"messageStop": {"stopReason": "tool_use"}},
        {"metadata": {"usage": usage}},
    ]
    return Replies(
        reply("tool_use", {"text": TEXT}, call), chunks, reply("end_turn", {"text": "done"}), None, "tool_use"
    )


REPLIES = {
    "anthropic": _anthropic(),
    "openai-chat": _chat("gpt-x", pieces=True),
    "openai-responses": _responses(),
    "gemini": _gemini(),
    "bedrock": _bedrock(),
    "mistral": _chat("mistral-x", pieces=False),
}
