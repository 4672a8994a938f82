"""Arrays of Anthropic Messages, or requests that hold one: `[{"role", "content"}, …]`, `{"messages": […]}`.

Source: the Messages API (every `tool_use` is answered by a `tool_result` in the next user message, else the request is
refused with 400) and section 13 of the public reports collected in `docs/doctor.md`. Such an array has no times, no
version and no dispatch records: an unanswered call may have run.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from turnwal.formats.arrays import elements
from turnwal.formats.format import Depth, Format, Found, Sample
from turnwal.formats.items import TURNWAL, Fault, Item, Said
from turnwal.formats.wording import is_ours
from turnwal.transcript.anthropic.parse import history

_BLOCKS: Final = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"})


def _messages(sample: Sample) -> tuple[Any, ...]:
    if sample.kind != "json":
        return ()
    if sample.array:
        return sample.records
    listed = sample.records[0].get("messages")
    return tuple(listed) if isinstance(listed, list) else ()


def _recognises(sample: Sample) -> bool:
    """Blocks that only this API has, on messages whose role is one of its two."""
    found = _messages(sample)
    return (
        bool(found)
        and all(
            isinstance(message, dict) and message.get("role") in ("user", "assistant") and "content" in message
            for message in found
        )
        and any(_types(message) & _BLOCKS for message in found)
    )


def _types(message: dict[str, Any]) -> set[Any]:
    content = message["content"]
    return {block.get("type") for block in content if isinstance(block, dict)} if isinstance(content, list) else set()


def _read(found: Found, depth: Depth) -> Iterator[Item]:
    for item in elements(found.path, _key(found.path)):
        if isinstance(item, Fault):
            yield item
            continue
        index, message = item
        place = f"messages[{index}]"
        if depth == "whole" or _types(message) & _BLOCKS:
            for type_, data in history([message]):
                yield Said(place, type_, _marked(data))


def _marked(data: dict[str, Any]) -> dict[str, Any]:
    """The data, with the answers of our repairs known as such: this format has no open place for a mark."""
    parts = data.get("parts")
    if "id" in data and isinstance(parts, list) and len(parts) == 1 and is_ours(parts[0].get("content")):
        return data | {"metadata": {"synthetic": True, "by": TURNWAL}}
    return data


def _key(path: Path) -> str | None:
    with path.open("rb") as file:
        return "messages" if file.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else None


FORMAT: Final = Format(
    name="anthropic",
    title="Anthropic Messages",
    on_resume="refused",
    resume_text="The provider refuses a request in which a tool_use has no tool_result.",
    recognises=_recognises,
    read=_read,
)
