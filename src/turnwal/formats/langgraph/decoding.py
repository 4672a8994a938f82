"""What LangGraph's serialiser wrote, as plain values.

Source: `JsonPlusSerializer` (langchain-ai/langgraph at f09cfe8f): the type of a value is `msgpack`, `json`, `bytes`,
`bytearray`, `null`, `pickle`, or `TYPE+CIPHER` where it is encrypted; the codes of the msgpack extensions are those of
its `jsonplus.py`.

Promises: nothing is imported, called or unpickled. An object is given as its name and its fields, whatever it claims to
be; what cannot be decoded is `Sealed`, with the reason.
"""

from typing import Any, Final, NamedTuple

import msgspec
from msgspec.msgpack import Ext

from turnwal.formats.items import FaultKind

BLOB_MAX: Final = 128 * 1024 * 1024
"""Bytes of one value."""

SNAPSHOT: Final = 7
"""The extension code of a delta channel's whole value."""
_BUILT: Final = range(6)
"""The extension codes of objects: the payload is `[module, name, arguments, …]`."""


class Sealed(Exception):
    """A value that is not decoded, and why."""

    def __init__(self, why: str, fault: FaultKind | None = None) -> None:
        """Say why, and what is wrong with it; None where nothing is wrong and it is for its owner alone."""
        super().__init__(why)
        self.fault = fault


class Built(NamedTuple):
    """An object that the serialiser took apart."""

    module: str
    name: str
    value: Any
    """Its fields, or what its constructor takes."""


def value_of(type: str | None, blob: bytes | None) -> Any:
    """The value, with `Built` for each object in it. Raises `Sealed`."""
    return _decoded(type, blob, _objects)


def raw_value_of(type: str | None, blob: bytes | None) -> Any:
    """The value with its extensions as they are, so that it can be written again. Raises `Sealed`."""
    return _decoded(type, blob, _untouched)


def opened(ext: object) -> Any:
    """What `value_of` makes of one extension of a raw value; other values as they are. Raises `Sealed`."""
    if not isinstance(ext, Ext):
        return ext
    try:
        return _built(ext.code, memoryview(ext.data))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Sealed(f"it cannot be decoded ({error})", "corrupt") from error


def _decoded(type: str | None, blob: bytes | None, objects: msgspec.msgpack.Decoder[Any]) -> Any:
    if type == "null" or (type == "empty" and not blob):
        return None
    if blob is None:
        raise Sealed(f"it is longer than {BLOB_MAX:,} bytes", "too_long")
    if type in ("bytes", "bytearray"):
        return blob
    if type is not None and not isinstance(type, str):  # a database holds any value in any column
        raise Sealed("how it is serialised is no text", "corrupt")
    if type is not None and "+" in type:
        raise Sealed(f"it is encrypted ({type.partition('+')[2]})")
    if type == "pickle":
        raise Sealed("it is pickled, and loading that would run what is in it")
    try:
        if type == "msgpack":
            return objects.decode(blob)
        if type == "json":
            return msgspec.json.decode(blob)
    except (msgspec.MsgspecError, RecursionError, TypeError) as error:
        raise Sealed(f"it cannot be decoded ({error})", "corrupt") from error
    raise Sealed(f"it is serialised as {type!r}, which is not known")


def _built(code: int, data: memoryview) -> Any:
    inner = _objects.decode(data)
    if code in _BUILT and isinstance(inner, list):
        module, name, value, *_ = (*inner, None, None, None)
        return Built(str(module), str(name), value)
    if code == SNAPSHOT:
        return inner
    return Built("", f"extension {code}", None)


_objects: Final = msgspec.msgpack.Decoder(ext_hook=_built)
_untouched: Final = msgspec.msgpack.Decoder()
