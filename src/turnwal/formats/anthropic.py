"""Arrays of Anthropic Messages.

Every `tool_use` is answered by a `tool_result` in the next user message, else the API refuses the request with 400
(docs.anthropic.com, tool use).
"""

from typing import Final

from turnwal.formats.raw import Array, Message, format_of_array, types_in
from turnwal.formats.sending import PAIRING

_MARKS: Final = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "mcp_tool_result"}
)
_CALLS: Final = frozenset({"tool_use", "tool_result"})


def _fits(message: Message) -> bool:
    return message.get("role") in ("user", "assistant", "system") and "content" in message and "type" not in message


FORMAT: Final = format_of_array(
    "anthropic",
    "Anthropic Messages",
    Array(
        target="anthropic",
        field="messages",
        fits=_fits,
        marks=lambda message: bool(types_in(message["content"]) & _MARKS),
        counts=lambda message: bool(types_in(message.get("content")) & _CALLS),
        rules=PAIRING | {"duplicate_id"},  # "`tool_use` ids must be unique"
    ),
    "The provider refuses a request in which a tool_use has no tool_result.",
)
