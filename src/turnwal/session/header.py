"""What is recorded of a request besides the messages: model, settings and tools, as far as they are data.

Promises: what only the client library reads is left out by name, since it may hold keys to the provider; so is what is
no JSON. Tools are recorded whole the first time, and then by their digest.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from turnwal.core.errors import InvalidEvent, OverLimit
from turnwal.core.line import compact
from turnwal.transcript.plain import plain

_OF_CLIENT: Final = frozenset(
    {
        "api_key",
        "extra_headers",
        "extra_query",
        "headers",
        "http_headers",
        "http_options",
        "retries",
        "server_url",
        "timeout",
        "timeout_ms",
    }
)
"""Settings of the providers' own packages that are no part of what the model is asked."""


def header(
    target: str, model: str, settings: Mapping[str, Any], tools: Sequence[Any] | None, told: set[str]
) -> dict[str, Any]:
    """The data of a `request_header`; `told` has the digests of the tools that were recorded whole already."""
    kept, left_out = _recordable(settings)
    # Gemini's settings stand one level deeper
    if isinstance(kept.get("config"), dict):
        kept["config"], deeper = _recordable(kept["config"])
        left_out += [f"config.{name}" for name in deeper]
    data: dict[str, Any] = {"provider": target, "model": model}
    if kept:
        data["settings"] = kept
    if left_out:
        data["unrecorded"] = left_out
    if tools:
        listed = [_tool(tool) for tool in tools]
        digest = f"sha256:{sha256(compact(listed).encode('utf-8', 'surrogatepass')).hexdigest()}"
        data["tools_digest"] = digest
        if digest not in told:
            data["tools"] = listed
    return data


def _recordable(settings: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The settings that are data, and the names of those that are not recorded."""
    kept: dict[str, Any] = {}
    left_out: list[str] = []
    for name, value in settings.items():
        found = None if name in _OF_CLIENT else _as_data(value)
        if found is None:
            left_out.append(name)
        else:
            kept[name] = found[0]
    return kept, left_out


def _tool(tool: object) -> Any:
    """A tool as data; one that is none, a function say, by its name."""
    found = _as_data(tool)
    return {"unrecorded": getattr(tool, "__qualname__", type(tool).__qualname__)} if found is None else found[0]


def _as_data(value: object) -> tuple[Any] | None:
    try:
        found = plain(value)
        compact(found)
    except (InvalidEvent, OverLimit):
        return None
    return (found,)
