"""Decoding records as their tools wrote them, where that is not what a strict parser takes.

Promises:
- A half of a surrogate pair (F35), NaN and infinities do not make a record unreadable; what they stood in keeps them.
- The usual record is decoded once, without what is not asked for.
- Whatever is no such record raises `msgspec.MsgspecError`, objects that are nested too deep included.

A type to decode is a flat struct: each field is `Any`, or `msgspec.Raw` for what is decoded later or not at all.
"""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from turnwal.core.errors import InvalidEvent, OverLimit
from turnwal.core.line import compact

T = TypeVar("T", bound=msgspec.Struct)
R = TypeVar("R")

_any = msgspec.json.Decoder().decode


def value_of(data: bytes | msgspec.Raw) -> Any:
    """The JSON value that these bytes are. Raises `msgspec.MsgspecError`."""
    try:
        return _any(data)
    except RecursionError:
        raise _too_deep() from None
    except msgspec.DecodeError as error:
        return _python(bytes(data), error)


def decoder(kind: type[T]) -> Callable[[bytes | msgspec.Raw], T]:
    """What decodes an object to a flat struct; its other keys are left out."""
    decode = msgspec.json.Decoder(kind).decode
    raw = {field.encode_name for field in msgspec.structs.fields(kind) if field.type is msgspec.Raw}
    known = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}

    def decoded(data: bytes | msgspec.Raw) -> T:
        try:
            return decode(data)
        except RecursionError:
            raise _too_deep() from None
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError as error:
            value = _python(bytes(data), error)
            if not isinstance(value, dict):
                raise
            found = {
                known[name]: msgspec.Raw(json.dumps(item).encode()) if name in raw else item
                for name, item in value.items()
                if name in known
            }
            try:
                return kind(**found)
            except TypeError:
                raise error from None

    return decoded


def of_depths(shape: Any, checked: Callable[[Any], R]) -> tuple[Callable[[bytes], R], Callable[[bytes], R]]:
    """How a record is read by the fields of a `shape` alone, where that can be told from the rest, and as a whole.

    `checked` gives the record of a JSON value, or raises `msgspec.MsgspecError` for what is none.
    """
    by_shape = msgspec.json.Decoder(shape).decode

    def decode(data: bytes) -> R:
        return checked(value_of(data))

    def quick(data: bytes) -> R:
        try:
            return checked(by_shape(data))
        except (msgspec.MsgspecError, RecursionError):
            return decode(data)

    return quick, decode


def compact_text(value: Any) -> str:
    """A value as compact JSON text; what an event could not hold as a value is written as Python writes it."""
    try:
        return compact(value)
    except (InvalidEvent, OverLimit):  # NaN and infinities, brackets in brackets
        return json.dumps(value, separators=(",", ":"))


def encoded(value: Any) -> bytes:
    """A value as compact JSON on one line, halves of surrogate pairs as escapes."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def laid_out(value: Any, indent: int) -> bytes:
    """A value as JSON over several lines, halves of surrogate pairs as escapes."""
    try:
        return msgspec.json.format(msgspec.json.encode(value), indent=indent)
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent).encode()


def _python(data: bytes, error: msgspec.DecodeError) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise error from None


def _too_deep() -> msgspec.DecodeError:
    return msgspec.DecodeError("it is nested too deep")
