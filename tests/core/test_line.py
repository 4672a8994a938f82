"""The line: one value has one byte form, what is written reads back, and what is ambiguous is refused."""

import datetime as dt
import decimal
import enum
import json
import math
import re
import uuid
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwal.core import line as line_module
from turnwal.core.errors import InvalidEvent, OverLimit
from turnwal.core.line import GENESIS, Event, Unreadable, compact, make, read, read_many
from turnwal.core.log import Log
from turnwal.testing.strategies import json_objects

HEAD = f'{{"seq":0,"prev":"{GENESIS}","time":0,"type":"x.t","data":'.encode()

Pair = namedtuple("Pair", "a b")  # noqa: PYI024 - the plain kind is what callers have


class Word(enum.StrEnum):
    """Text that is also a member."""

    HELLO = "hello"


class Level(enum.IntEnum):
    """A number that is also a member."""

    HIGH = 3


def event_of(data: Any) -> Event:
    return Event(seq=0, prev=GENESIS, time=0, type="x.t", data=data)


def line_of(text: str | bytes) -> bytes:
    return HEAD + (text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")) + b"}"


def exactly_equal(a: Any, b: Any) -> bool:
    """Equal in value, type and sign, unlike `==`, for which 1, 1.0 and True are one."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(exactly_equal(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(exactly_equal, a, b))
    if isinstance(a, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    return bool(a == b)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(json_objects())
def test_what_is_written_reads_back_as_it_is_held(data: dict[str, Any]) -> None:
    line, made = make(event_of(data))

    again = read(line)

    assert exactly_equal(again.data, made.data)
    assert again == made
    assert not {b"\n", "\u0085".encode(), "\u2028".encode(), "\u2029".encode()} & {
        line[i : i + n] for n in (1, 2, 3) for i in range(len(line))
    }
    assert make(made) == (line, made)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(json_objects())
def test_one_value_has_one_byte_form_whichever_encoder_made_it(data: dict[str, Any]) -> None:
    event = event_of(data)
    quick = line_module._make_quickly(event)
    careful = line_module._make_carefully(event)

    if quick is not None:
        assert quick[0] == careful[0]
        assert exactly_equal(quick[1].data, careful[1].data)
    assert json.loads(careful[0])["data"] == careful[1].data


@settings(max_examples=150, derandomize=True, deadline=None)
@given(json_objects())
def test_a_line_in_another_order_and_with_spaces_reads_the_same(data: dict[str, Any]) -> None:
    line, made = make(event_of(data))
    value = json.loads(line)

    turned = json.dumps(dict(reversed(list(value.items()))), indent=1).replace("\n", " ").encode()

    assert read(turned) == made
    assert make(read(turned))[0] == line


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (math.nan, "data.v"),
        (math.inf, "data.v"),
        (-math.inf, "data.v"),
        ((1, 2), "data.v"),
        (Pair(1, 2), "data.v"),
        ({1, 2}, "data.v"),
        (frozenset(), "data.v"),
        (b"bytes", "data.v"),
        (bytearray(b"b"), "data.v"),
        (memoryview(b"b"), "data.v"),
        (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "data.v"),
        (dt.date(2026, 1, 1), "data.v"),
        (dt.timedelta(1), "data.v"),
        (decimal.Decimal("1.5"), "data.v"),
        (uuid.UUID(int=1), "data.v"),
        (deque([1]), "data.v"),
        (1j, "data.v"),
        (object(), "data.v"),
        (msgspec.Raw(b"{}"), "data.v"),
        (msgspec.UNSET, "data.v"),
        (event_of({}), "data.v"),
        ({1: "a"}, "data.v"),
        ({None: "a"}, "data.v"),
        ({True: "a"}, "data.v"),
        ({"deep": [{"er": [0, {"est": {1}}]}]}, r"data.v.deep\[0\].er\[1\].est"),
        ({"\ud83d\ude00": 1, "😀": 2}, "data.v"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_cannot_hold_is_refused_naming_the_path_and_nothing_changes(value: object, path: str) -> None:
    log = Log()
    log.append("user_message", {})
    before = (log.head, list(log.lines()))

    with pytest.raises(InvalidEvent, match=path):
        log.append("x.t", {"v": value})

    assert (log.head, list(log.lines())) == before


@pytest.mark.parametrize(
    ("value", "held"),
    [
        (Word.HELLO, "hello"),
        (Level.HIGH, 3),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        ("\ud83d\ude00", "😀"),
        ("a\ud83d", "a\ud83d"),
        ("\udc8f", "\udc8f"),
        ("\ude00\ud83d", "\ude00\ud83d"),
        ("\ud83d\ud83d\ude00", "\ud83d😀"),
        (-0.0, -0.0),
        (0.1 + 0.2, 0.30000000000000004),
        (5e-324, 5e-324),
        (1e300, 1e300),
        (1e16, 1e16),
        (2**53 + 1, 2**53 + 1),
        (2**64, 2**64),
        (-(2**63) - 1, -(2**63) - 1),
        (2512292042121000001, 2512292042121000001),
        (10**3999, 10**3999),
        (-(10**4000) + 1, -(10**4000) + 1),
        (True, True),
        (1, 1),
        (1.0, 1.0),
        ("\u0000\u001f\u007f\u0085\u2028\u2029\ufeff\uffff", "\u0000\u001f\u007f\u0085\u2028\u2029\ufeff\uffff"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_json_can_hold_is_kept(value: object, held: object) -> None:
    log = Log()

    event = log.append("x.t", {"v": value, "k": {"é\ud800": [value]}})

    assert exactly_equal(event.data, {"v": held, "k": {"é\ud800": [held]}})
    assert exactly_equal(read(next(log.lines())).data, event.data)
    assert json.loads(next(log.lines()))["data"] == event.data


def nest(depth: int, make_one: Callable[[Any], Any]) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = make_one(value)
    return value


@pytest.mark.parametrize("make_one", [lambda value: [value], lambda value: {"k": value}], ids=["lists", "objects"])
def test_nesting_has_one_limit_for_writing_and_reading(make_one: Callable[[Any], Any]) -> None:
    log = Log()
    deepest = {"v": nest(199, make_one)}

    log.append("x.t", deepest)
    assert read(next(log.lines())).data == deepest
    with pytest.raises(OverLimit, match="nested deeper than 200"):
        log.append("x.t", {"v": nest(200, make_one)})
    with pytest.raises(OverLimit):
        log.append("x.t", {"v": nest(100_000, make_one)})
    for depth in (200, 1_000, 100_000):
        text = b"[" * depth + b"]" * depth
        with pytest.raises(Unreadable, match="nested deeper than 200"):
            read(line_of(b'{"v":' + text + b"}"))
    assert len(log) == 1


class Counting:
    """A pattern that counts what it finds."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self.pattern = pattern
        self.found = 0

    def finditer(self, line: bytes) -> Iterator[re.Match[bytes]]:
        for match in self.pattern.finditer(line):
            self.found += 1
            yield match


@pytest.mark.parametrize("depth", [250, 100_000])
def test_of_a_line_that_is_too_deep_no_more_is_read_than_shows_it(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Counting(line_module._TOKEN)
    monkeypatch.setattr(line_module, "_TOKEN", tokens)

    with pytest.raises(Unreadable, match="nested deeper than 200"):
        read(line_of(b'{"v":' + b"[" * depth + b"]" * depth + b"}"))

    assert tokens.found < 220


def test_many_shallow_values_are_not_taken_for_deep_ones() -> None:
    log = Log()

    log.append("x.t", {"v": [[{}]] * 500, "t": "[" * 500})

    assert read(next(log.lines())) == log.events[0]


def test_data_that_contains_itself_is_refused() -> None:
    data: dict[str, Any] = {}
    data["self"] = data

    with pytest.raises(OverLimit):
        Log().append("x.t", data)


def test_an_integer_over_the_limit_is_refused_on_both_ways() -> None:
    for value in (10**4000, -(10**4000)):
        with pytest.raises(OverLimit, match=r"data\.v\[0\] is an integer of more than 4,000 digits"):
            Log().append("x.t", {"v": [value]})
    for text in ("9" * 4001, "-" + "9" * 4001, "9" * 5000, "9" * 100_000):
        with pytest.raises(Unreadable):
            read(line_of(f'{{"v":{text}}}'))
    for text in ("9" * 4000, "-" + "9" * 4000):
        assert read(line_of(f'{{"v":{text}}}')).data == {"v": int(text)}


def test_a_line_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "LINE_BYTES_MAX", 1000)

    with pytest.raises(OverLimit, match="the limit is 1,000"):
        Log().append("x.t", {"v": "v" * 1000})


REFUSED: dict[str, bytes] = {
    "nothing": b"",
    "blank": b" ",
    "null": b"null",
    "a list": b"[]",
    "text": b'"text"',
    "an empty object": b"{}",
    "two values": line_of("{}") + b"{}",
    "a trailing comma": line_of('{"a":1,}'),
    "a trailing bracket": line_of("{}") + b"}",
    "cut short": line_of('{"a":1}')[:-1],
    "cut inside a character": line_of('{"a":"é"}')[:-4],
    "single quotes": line_of("{'a':1}"),
    "a bare word": line_of("{a:1}"),
    "a comment": line_of('{"a":1/*b*/}'),
    "NaN": line_of('{"a":NaN}'),
    "Infinity": line_of('{"a":Infinity}'),
    "minus Infinity": line_of('{"a":-Infinity}'),
    "a number out of range": line_of('{"a":1e999}'),
    "a negative number out of range": line_of('{"a":[-1e999]}'),
    "a leading zero": line_of('{"a":01}'),
    "a leading plus": line_of('{"a":+1}'),
    "a leading point": line_of('{"a":.5}'),
    "a trailing point": line_of('{"a":5.}'),
    "an empty exponent": line_of('{"a":1e}'),
    "hexadecimal": line_of('{"a":0x1}'),
    "a lone minus": line_of('{"a":-}'),
    "digits of another script": line_of('{"a":１}'),
    "a raw tab in text": line_of('{"a":"\t"}'),
    "a raw newline in text": line_of('{"a":"\n"}'),
    "a raw NUL in text": line_of('{"a":"\x00"}'),
    "a raw NUL after the object": line_of("{}") + b"\x00",
    "only NULs": b"\x00" * 64,
    "an unknown escape": line_of('{"a":"\\x41"}'),
    "half an escape": line_of('{"a":"\\u12"}'),
    "a byte order mark": b"\xef\xbb\xbf" + line_of("{}"),
    "UTF-16": line_of("{}").decode().encode("utf-16"),
    "an overlong slash": line_of(b'{"a":"\xc0\xaf"}'),
    "an overlong NUL": line_of(b'{"a":"\xc0\x80"}'),
    "a surrogate as three bytes": line_of(b'{"a":"\xed\xa0\xbd"}'),
    "beyond Unicode": line_of(b'{"a":"\xf4\x90\x80\x80"}'),
    "a stray continuation byte": line_of(b'{"a":"\x80"}'),
    "latin-1": line_of(b'{"a":"\xe9"}'),
    "no-break space between tokens": line_of('{"a":\u00a01}'),
    "a key twice in data": line_of('{"a":1,"a":1}'),
    "a key twice, deep": line_of('{"a":[{"b":{"c":1,"c":2}}]}'),
    "a key twice, once escaped": line_of('{"a":1,"\\u0061":1}'),
    "an envelope key twice": line_of("{}").replace(b'"time":0', b'"time":0,"time":0'),
    "seq as text": line_of("{}").replace(b'"seq":0', b'"seq":"0"'),
    "seq as a float": line_of("{}").replace(b'"seq":0', b'"seq":0.0'),
    "seq as true": line_of("{}").replace(b'"seq":0', b'"seq":true'),
    "seq missing": line_of("{}").replace(b'"seq":0,', b""),
    "seq as half a character": line_of("{}").replace(b'"seq":0', b'"seq":"\\ud83d"'),
    "time as half a character": line_of("{}").replace(b'"time":0', b'"time":"\\ud83d"'),
    "batch as half a character": line_of("{}").replace(b'"data"', b'"batch":"\\ud83d","data"'),
    "ignorable as half a character": line_of("{}").replace(b'"data"', b'"ignorable":"\\ud83d","data"'),
    "data as half a character": line_of('"\\ud83d"'),
    "time as null": line_of("{}").replace(b'"time":0', b'"time":null'),
    "type as a number": line_of("{}").replace(b'"x.t"', b"5"),
    "run as null": line_of("{}").replace(b'"data"', b'"run":null,"data"'),
    "batch as null": line_of("{}").replace(b'"data"', b'"batch":null,"data"'),
    "ignorable as 1": line_of("{}").replace(b'"data"', b'"ignorable":1,"data"'),
    "data as a list": line_of("[]"),
    "data as null": line_of("null"),
    "data missing": line_of("{}").replace(b',"data":{}', b""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bytes_that_are_no_event_are_unreadable(name: str) -> None:
    with pytest.raises(Unreadable) as refused:
        read(REFUSED[name])

    assert refused.value.newer is None


@pytest.mark.parametrize("name", REFUSED)
def test_many_lines_are_read_up_to_the_first_that_is_none(name: str) -> None:
    good = line_of('{"v":1}')

    assert read_many([good, good, REFUSED[name], good]) == [read(good), read(good)]


def test_many_lines_are_read_as_each_is_alone() -> None:
    lines = [line for line, _ in READ.values()]

    found = read_many(lines)

    for event, line in zip(found, lines, strict=True):
        assert exactly_equal(event.data, read(line).data)


READ: dict[str, tuple[bytes, object]] = {
    "spaces": (line_of(' { "v" : [ 1 , 2 ] } '), [1, 2]),
    "a tab between tokens": (line_of('{"v":\t1}'), 1),
    "a carriage return after the object": (line_of('{"v":1}') + b"\r", 1),
    "raw separators in text": (line_of('{"v":"\u0085\u2028\u2029"}'), "\u0085\u2028\u2029"),
    "escaped separators": (line_of('{"v":"\\u0085\\u2028"}'), "\u0085\u2028"),
    "DEL": (line_of('{"v":"\x7f"}'), "\x7f"),
    "an escaped slash": (line_of('{"v":"\\/"}'), "/"),
    "an escaped NUL": (line_of('{"v":"\\u0000"}'), "\x00"),
    "an escaped letter": (line_of('{"v":"\\u0041"}'), "A"),
    "capital hex": (line_of('{"v":"\\uD83D\\uDE00"}'), "😀"),
    "a lone high surrogate": (line_of('{"v":"\\ud83d"}'), "\ud83d"),
    "a lone low surrogate": (line_of('{"v":"\\ude00x"}'), "\ude00x"),
    "a noncharacter": (line_of('{"v":"\uffff"}'), "\uffff"),
    "minus zero": (line_of('{"v":-0}'), 0),
    "minus zero as a float": (line_of('{"v":-0.0}'), -0.0),
    "an exponent": (line_of('{"v":1E+2}'), 100.0),
    "a tiny number": (line_of('{"v":1e-999}'), 0.0),
    "a long fraction": (line_of('{"v":0.' + "1" * 5000 + "}"), 1 / 9),
    "long digits in text": (line_of('{"v":"' + "1" * 5000 + '"}'), "1" * 5000),
    "an empty key": (line_of('{"v":{"":1}}'), {"": 1}),
}


@pytest.mark.parametrize("name", READ)
def test_json_of_any_other_writer_is_read_and_has_one_byte_form_again(name: str) -> None:
    line, value = READ[name]

    event = read(line)

    assert exactly_equal(event.data["v"], value)
    assert exactly_equal(read(make(event)[0]).data, event.data)


def test_an_unknown_envelope_key_is_a_newer_writer_s() -> None:
    with pytest.raises(Unreadable, match="unknown key 'zeta'") as refused:
        read(line_of("{}").replace(b'"data"', b'"zeta":[1],"data"'))

    assert refused.value.newer == event_of({})


def test_the_keys_of_a_line_stand_in_their_order_and_defaults_are_left_out() -> None:
    event = Event(seq=3, prev="p", time=1, type="x.t", run="sub", batch=2, ignorable=True, data={"b": 1, "a": 2})

    assert make(event)[0] == (
        b'{"seq":3,"prev":"p","time":1,"type":"x.t","run":"sub","batch":2,"ignorable":true,"data":{"b":1,"a":2}}'
    )
    assert make(event_of({}))[0] == line_of("{}")
    surrogate = msgspec.structs.replace(event, data={"s": "\ud800"})
    assert make(surrogate)[0] == (
        b'{"seq":3,"prev":"p","time":1,"type":"x.t","run":"sub","batch":2,"ignorable":true,"data":{"s":"\\ud800"}}'
    )


@settings(max_examples=150, derandomize=True, deadline=None)
@given(json_objects())
def test_compact_text_reads_back(data: dict[str, Any]) -> None:
    assert json.loads(compact(data)) == make(event_of(data))[1].data


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.binary(max_size=60) | st.binary(max_size=12).map(lambda tail: line_of(b'{"v":"' + tail + b'"}')))
def test_reading_any_bytes_gives_an_event_or_unreadable(line: bytes) -> None:
    try:
        event = read(line)
    except Unreadable:
        return
    assert json.loads(line)["seq"] == event.seq
