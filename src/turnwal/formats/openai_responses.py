"""Arrays of OpenAI Responses items.

Each call that the client runs pairs with its `…_output` by `call_id`: without it the API answers "No tool output found
for function call". A reasoning item stays with the item that followed it (platform.openai.com, responses).
"""

from typing import Final

from turnwal.formats.raw import Array, Message, format_of_array, types_in
from turnwal.transcript.openai_responses.items import ANSWERS, MADE_BY_CLIENT, OUTPUTS

_TEXTS: Final = frozenset({"input_text", "output_text", "input_image", "input_file"})
_OTHERS: Final = frozenset({"reasoning", "mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response"})
_CALLS: Final = frozenset(OUTPUTS) | ANSWERS | MADE_BY_CLIENT


def _fits(item: Message) -> bool:
    kind = item.get("type")
    return kind in _CALLS or kind in _OTHERS or (isinstance(kind, str) and kind.endswith("_call")) or "role" in item


def _marks(item: Message) -> bool:
    kind = item.get("type")
    own = isinstance(kind, str) and kind != "message" and "role" not in item
    return own or bool(types_in(item.get("content")) & _TEXTS)


def _ends(item: Message) -> bool:
    """What the client said: a reply of the model ends before it, and a reply may be several items."""
    return item.get("type") in ANSWERS or (item.get("role") not in (None, "assistant"))


FORMAT: Final = format_of_array(
    "openai_responses",
    "OpenAI Responses",
    Array(
        target="openai-responses",
        field="input",
        fits=_fits,
        marks=_marks,
        counts=lambda item: item.get("type") in _CALLS,
        ends=_ends,
    ),
    "The provider refuses a request in which a call has no output.",
)
