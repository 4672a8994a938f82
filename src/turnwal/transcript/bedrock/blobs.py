"""Bytes for the Python packages of AWS, which encode them themselves.

`boto3.client("bedrock-runtime").converse(messages=with_bytes(rendering.messages), …)`
"""

from base64 import b64decode
from collections.abc import Iterable
from typing import Any, Final

_WITH_SOURCE: Final = frozenset({"image", "document", "video", "audio"})
_INSIDE: Final = frozenset({"toolResult", "guardContent"})


def with_bytes(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages of a rendering with bytes in place of base64; what is given is not changed.

    Raises `ValueError` for what is no base64.
    """
    return [{**message, "content": [_block(block) for block in message["content"]]} for message in messages]


def _block(block: dict[str, Any]) -> dict[str, Any]:
    return {name: _held(name, held) for name, held in block.items()}


def _held(name: str, held: Any) -> Any:
    if not isinstance(held, dict):
        return held
    if name == "reasoningContent":
        return _decoded(held, "redactedContent")
    if name in _WITH_SOURCE and isinstance(held.get("source"), dict):
        return {**held, "source": _decoded(held["source"], "bytes")}
    if name == "toolResult" and isinstance(held.get("content"), list):
        return {**held, "content": [_block(block) for block in held["content"]]}
    return _block(held) if name in _INSIDE else held


def _decoded(held: dict[str, Any], name: str) -> dict[str, Any]:
    text = held.get(name)
    return {**held, name: b64decode(text, validate=True)} if isinstance(text, str) else held
