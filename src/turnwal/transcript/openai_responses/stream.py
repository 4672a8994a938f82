"""A response put together from the events of its stream.

Promises: what came is kept, and `complete` is false where the stream was cut off; the arguments of a call stay the text
that the model wrote. An item that was said to be done is taken as it was then: the encrypted content of reasoning is
whole only there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from turnwal.transcript.plain import without_nulls

Event = Mapping[str, Any]
_Items = dict[int, dict[str, Any]]

_SKIPPED_MAX: Final = 1_000
"""Parts of an item that may be missing before one: their places are kept, and a number is no reason to fill memory."""

_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})


def assembled(chunks: Iterable[Event]) -> dict[str, Any]:
    """The response that the events of a stream make together."""
    reply: dict[str, Any] = {"output": []}
    items: _Items = {}
    ended = False
    for chunk in chunks:
        kind = chunk.get("type")
        if isinstance(chunk.get("response"), dict):
            reply |= without_nulls(chunk["response"])
            ended = ended or kind in _ENDS
        elif kind in _READERS:
            _READERS[kind](items, chunk)
    # servers that speak this API may end with a response that has no items
    if items and len(reply.get("output") or ()) < len(items):
        reply["output"] = [item for _, item in sorted(items.items())]
    if not ended:
        reply["complete"] = False
        reply.pop("status", None)  # of the last event that told it: it was in progress
    return reply


def shown(chunk: Event) -> Iterator[tuple[tuple[int, int], str]]:
    """The text that an event of a stream shows, with the item and the part of it that it belongs to."""
    if chunk.get("type") in ("response.output_text.delta", "response.refusal.delta"):
        yield (chunk["output_index"], chunk["content_index"]), chunk["delta"]


def _put_item(items: _Items, event: Event) -> None:
    items[event["output_index"]] = dict(event["item"])


def _text_in(kind: str, field: str) -> Callable[[_Items, Event], None]:
    """Goes on with a text that an item of a type holds itself."""

    def read(items: _Items, event: Event) -> None:
        item = items.setdefault(event["output_index"], {"type": kind})
        if "delta" in event:
            item[field] = (item.get(field) or "") + event["delta"]
        elif isinstance(event.get(field), str):
            item[field] = event[field]

    return read


def _part_in(kind: str, field: str, index: str, empty: Event) -> Callable[[_Items, Event], None]:
    """Goes on with a text, or a block, of the list that an item of a type holds."""
    text = "refusal" if "refusal" in empty else "text"

    def read(items: _Items, event: Event) -> None:
        item = items.setdefault(event["output_index"], {"type": kind})
        if item.get("type") == "message":
            item.setdefault("role", "assistant")
        blocks = item[field] = list(item.get(field) or ())
        if event[index] > len(blocks) + _SKIPPED_MAX:
            raise ValueError(f"part {event[index]} of an item that has {len(blocks)}")
        while len(blocks) <= event[index]:
            blocks.append(dict(empty))
        block = blocks[event[index]]
        if "part" in event:
            blocks[event[index]] = dict(event["part"])
        elif "annotation" in event:
            block["annotations"] = [*(block.get("annotations") or ()), event["annotation"]]
        elif "delta" in event:
            block[text] = block.get(text, "") + event["delta"]
        elif isinstance(event.get(text), str):
            block[text] = event[text]

    return read


_SAID: Final = _part_in("message", "content", "content_index", {"type": "output_text", "text": "", "annotations": []})
_REFUSED: Final = _part_in("message", "content", "content_index", {"type": "refusal", "refusal": ""})
_SUMMED_UP: Final = _part_in("reasoning", "summary", "summary_index", {"type": "summary_text", "text": ""})
_THOUGHT: Final = _part_in("reasoning", "content", "content_index", {"type": "reasoning_text", "text": ""})

_BOTH: Final = {
    "output_text": _SAID,
    "refusal": _REFUSED,
    "reasoning_summary_text": _SUMMED_UP,
    "reasoning_text": _THOUGHT,
    "function_call_arguments": _text_in("function_call", "arguments"),
    "custom_tool_call_input": _text_in("custom_tool_call", "input"),
    "mcp_call_arguments": _text_in("mcp_call", "arguments"),
    "code_interpreter_call_code": _text_in("code_interpreter_call", "code"),
}
"""What comes in deltas, and is said whole when it is done."""

_READERS: Final[Mapping[Any, Callable[[_Items, Event], None]]] = {
    "response.output_item.added": _put_item,
    "response.output_item.done": _put_item,
    "response.content_part.added": _SAID,
    "response.content_part.done": _SAID,
    "response.output_text.annotation.added": _SAID,
    "response.reasoning_summary_part.added": _SUMMED_UP,
    "response.reasoning_summary_part.done": _SUMMED_UP,
    **{f"response.{name}.{when}": reader for name, reader in _BOTH.items() for when in ("delta", "done")},
}
