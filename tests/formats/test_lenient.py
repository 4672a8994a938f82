"""Decoding what strict parsers do not take."""

import json
from typing import Any

import msgspec
import pytest

from turnwal.formats.lenient import decoder, encoded, value_of
from turnwal.formats.stamps import milliseconds


class _Flat(msgspec.Struct):
    type: str | None = None
    id: Any = None
    rest: msgspec.Raw = msgspec.Raw()


def test_half_a_character_is_kept_where_it_stands() -> None:
    data = json.dumps({"type": "a", "id": "x\ud83d", "rest": {"text": "\udc8f"}, "more": 1}).encode()

    found = decoder(_Flat)(data)

    assert (found.type, found.id, value_of(found.rest)) == ("a", "x\ud83d", {"text": "\udc8f"})
    assert json.loads(encoded(value_of(data))) == json.loads(data)


def test_numbers_that_are_none_are_read() -> None:
    assert value_of(b'{"a":Infinity}') == {"a": float("inf")}
    assert decoder(_Flat)(b'{"id":-Infinity}').id == float("-inf")


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"id":"\xff"}', b"[1", b'{"a":' * 5_000, b"[" * 100_000 + b"]" * 100_000]
)
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        value_of(data)
    with pytest.raises(msgspec.MsgspecError):
        decoder(_Flat)(data)


@pytest.mark.parametrize("data", [b"[]", b"5", b'"\\ud83d"', b'{"type":5}'])
def test_what_is_another_record_is_refused(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decoder(_Flat)(data)


@pytest.mark.parametrize(
    ("stamp", "time"),
    [
        ("2026-01-01T00:00:00.250Z", 1767225600250),
        ("2026-01-01T01:00:00+01:00", 1767225600000),
        ("2026-01-01T00:00:00", 1767225600000),
        (1767225600000, 1767225600000),
        (True, None),
        (None, None),
        ("yesterday", None),
        ({}, None),
    ],
)
def test_times_are_milliseconds(stamp: object, time: int | None) -> None:
    assert milliseconds(stamp) == time
