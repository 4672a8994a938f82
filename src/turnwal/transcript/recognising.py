"""Recognising: which target a reply is from, by the package that made it or by its shape.

Promises: no package of a provider is imported. What is not recognised is refused by name, never guessed.
"""

from collections.abc import Mapping
from typing import Any, Final

from turnwal.core.errors import InvalidEvent
from turnwal.transcript.targets import TARGETS

_PACKAGES: Final = (
    ("anthropic.", "anthropic"),
    ("openai.types.responses.", "openai-responses"),
    ("openai.lib.streaming.responses.", "openai-responses"),
    ("openai.types.chat.", "openai-chat"),
    ("openai.lib.streaming.chat.", "openai-chat"),
    ("google.genai.", "gemini"),
    ("mistralai.", "mistral"),
)
"""Where the class of a reply, or of a piece of a stream, is defined."""

_FIELDS: Final = (
    ({"role", "content", "stop_reason"}, "anthropic"),
    ({"candidates"}, "gemini"),
    ({"output", "stopReason"}, "bedrock"),
)
"""Fields that only one target's replies have."""

_OBJECTS: Final = {
    "chat.completion": "openai-chat",
    "chat.completion.chunk": "openai-chat",
    "response": "openai-responses",
}
"""What OpenAI's replies say of themselves. Mistral's say the same as its chat's: a dict of it has to be named."""

_EVENTS: Final = frozenset({"message_start", "content_block_start", "content_block_delta", "message_delta"})
_STREAMED: Final = frozenset(
    {"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"}
)


def target_of(reply: object) -> str:
    """The target that made a reply, or one piece of a stream. Raises `InvalidEvent` where that cannot be told."""
    place = f"{type(reply).__module__}."
    for prefix, target in _PACKAGES:
        if place.startswith(prefix):
            return target
    found = _by_shape(reply) if isinstance(reply, Mapping) else None
    if found is None:
        raise InvalidEvent(
            f"a {type(reply).__name__} is no reply of a provider that turnwal knows",
            action="record",
            subject="assistant_message",
            hint=f"pass the target that made it ({', '.join(TARGETS)}), or parts of your own: {{'parts': […]}}",
        )
    return found


def _by_shape(reply: Mapping[str, Any]) -> str | None:
    said = reply.get("object")
    if isinstance(said, str) and said in _OBJECTS:
        return _OBJECTS[said]
    kind = reply.get("type")
    if isinstance(kind, str):
        if kind in _EVENTS:
            return "anthropic"
        if kind.startswith("response."):
            return "openai-responses"
    for fields, target in _FIELDS:
        if fields <= reply.keys():
            return target
    if "choices" in reply:
        return "openai-chat"
    return "bedrock" if not _STREAMED.isdisjoint(reply) else None
