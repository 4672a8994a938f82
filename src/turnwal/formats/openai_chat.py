"""Arrays of OpenAI chat completions, as most servers speak them; also arrays that hold nothing but plain messages.

Every entry of `tool_calls` is answered by a message of role `tool` with its id before any other role; a `tool` message
without its call is refused as well (platform.openai.com, chat completions). The older `function_call` has no id: it is
answered by the next message of role `function`.
"""

from typing import Final

from turnwal.formats.raw import Array, Message, format_of_array

_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def _fits(message: Message) -> bool:
    asks = "tool_calls" in message or "function_call" in message
    said = message.get("role") in _ROLES and ("content" in message or asks) and message.get("type") in (None, "message")
    return said and _is_content(message.get("content"))


def _is_content(content: object) -> bool:
    """Whether it is a content of this form: the blocks of others, as those of Bedrock Converse, say no type."""
    if content is None or isinstance(content, str):
        return True
    return isinstance(content, list) and all(
        isinstance(block, str) or (isinstance(block, dict) and isinstance(block.get("type"), str)) for block in content
    )


def _counts(message: Message) -> bool:
    return bool(message.get("tool_calls") or message.get("function_call")) or message.get("role") in (
        "tool",
        "function",
    )


FORMAT: Final = format_of_array(
    "openai_chat",
    "OpenAI chat completions",
    Array(target="openai-chat", field="messages", fits=_fits, marks=_fits, counts=_counts),
    "The provider refuses a request in which a tool call has no tool message.",
)
