"""JSON that parsers disagree about: refused, or kept exactly. docs/format.md has the same table."""

import math
import re
from pathlib import Path
from typing import Any, Final

import pytest

from turnwal.core.line import Event, Unreadable, make, read, read_many

PAGE: Final = (Path(__file__).parents[2] / "docs" / "format.md").read_text("utf-8")
REFUSED: Final = object()
DEEP: Final = 1_000_000


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def line_of(data: str | bytes) -> bytes:
    """A line whose data is this text."""
    text = data if isinstance(data, bytes) else data.encode("utf-8")
    return b'{"seq":0,"prev":"%s","time":0,"type":"x.t","data":%s}' % (b"0" * 64, text)


def held(text: str | bytes) -> bytes:
    """A line whose data holds this value."""
    return line_of(b'{"v":%s}' % (text if isinstance(text, bytes) else text.encode("utf-8")))


ROWS: Final[dict[str, list[tuple[bytes, Any]]]] = {
    "a key twice in one object": [
        (line_of('{"a":1,"a":1}'), REFUSED),
        (held('[{"b":{"c":1,"d":2,"c":3}}]'), REFUSED),
        (line_of("{}").replace(b'"seq":0', b'"seq":0,"seq":0'), REFUSED),
    ],
    "a key twice, once escaped": [(line_of('{"a":1,"\\u0061":2}'), REFUSED)],
    "`NaN`, `Infinity`, `-Infinity`": [(held(text), REFUSED) for text in ("NaN", "Infinity", "-Infinity", "[NaN]")],
    "a number out of range: `1e999`, `-1e999`": [(held(text), REFUSED) for text in ("1e999", "-1e999", "1E400")],
    "a number that rounds to 0: `1e-999`": [(held("1e-999"), 0.0)],
    "an integer of 100,000 digits": [(held(sign + "7" * 100_000), REFUSED) for sign in ("", "-")],
    "an integer of 4,001 digits": [(held(sign + "7" * 4_001), REFUSED) for sign in ("", "-")],
    "an integer of 4,000 digits": [(held("7" * 4_000), int("7" * 4_000)), (held("-" + "9" * 4_000), 1 - 10**4_000)],
    "a fraction of 100,000 digits": [(held("0." + "3" * 100_000), 1 / 3)],
    "`-0`": [(held("-0"), 0)],
    "`-0.0`": [(held("-0.0"), -0.0)],
    "a leading zero, plus or point": [(held(text), REFUSED) for text in ("01", "+1", ".5", "-01", "5.", "1e", "-")],
    "nesting of 1,000,000": [
        (held("[" * DEEP + "]" * DEEP), REFUSED),
        (held("[" * DEEP), REFUSED),
        (held('{"a":' * DEEP), REFUSED),
        (held('{"a":' * DEEP + "1" + "}" * DEEP), REFUSED),
    ],
    "nesting of 201": [(held("[" * 200 + "]" * 200), REFUSED)],
    "nesting of 200": [(held("[" * 199 + "]" * 199), nested(199))],
    "1,000,000 brackets in text": [(held('"' + "[" * DEEP + '"'), "[" * DEEP)],
    "half a surrogate pair, escaped": [(held('"a\\ud83d"'), "a\ud83d"), (held('"\\uDC8F"'), "\udc8f")],
    "the halves in the wrong order": [(held('"\\udc8f\\ud83d"'), "\udc8f\ud83d")],
    "a pair of halves, escaped": [(held('"\\ud83d\\udc8f"'), "\U0001f48f")],
    "half a surrogate pair as a key": [(held('{"\\ud83d":1}'), {"\ud83d": 1})],
    "half a surrogate pair as three bytes": [(held(b'"\xed\xa0\xbd"'), REFUSED)],
    "a byte order mark": [(b"\xef\xbb\xbf" + held("1"), REFUSED), (held("\ufeff1"), REFUSED)],
    "a raw NUL": [(held('"\x00"'), REFUSED), (held("1") + b"\0", REFUSED), (b"\0" + held("1"), REFUSED)],
    "an escaped NUL": [(held('"a\\u0000b"'), "a\0b"), (held('{"\\u0000":1}'), {"\0": 1})],
    "overlong UTF-8": [
        (held(b'"' + bytes + b'"'), REFUSED)
        for bytes in (b"\xc0\xaf", b"\xc0\x80", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf")
    ],
    "beyond U+10FFFF": [(held(b'"\xf4\x90\x80\x80"'), REFUSED), (held(b'"\xff"'), REFUSED)],
    "cut inside a character": [(held(b'"\xc3"'), REFUSED), (held(b'"\xf0\x9f\x92"'), REFUSED)],
    "U+2028, U+2029 and U+0085, raw": [(held('"\u2028\u2029\x85"'), "\u2028\u2029\x85")],
    "a noncharacter: U+FFFE, U+FFFF": [(held('"\ufffe\uffff"'), "\ufffe\uffff")],
    "a control character, raw": [(held(f'"{text}"'), REFUSED) for text in ("\t", "\r", "\x1b", "\x1f")],
    "an empty key": [(held('{"":{"":1}}'), {"": {"": 1}})],
    "a key of 100,000 characters": [(held('{"%s":1}' % ("k" * 100_000)), {"k" * 100_000: 1})],
    "an unknown escape": [(held(text), REFUSED) for text in ('"\\x41"', '"\\u12"', '"\\"', '"\\U0001f48f"')],
    "a trailing comma": [(held("[1,]"), REFUSED), (held('{"a":1,}'), REFUSED)],
    "a comment": [(held("1/*2*/"), REFUSED), (held("1") + b" // 2", REFUSED)],
    "single quotes": [(held("'a'"), REFUSED)],
    "two values": [(held("1") + held("1"), REFUSED), (held("1 2"), REFUSED)],
    "nothing": [(b"", REFUSED), (held(""), REFUSED)],
    "UTF-16": [(held("1").decode().encode(name), REFUSED) for name in ("utf-16", "utf-16-le", "utf-16-be")],
}
"""What a line holds, and the value that it is read as."""

CASES: Final = [(name, line, value) for name, cases in ROWS.items() for line, value in cases]


def test_the_page_has_every_row_and_says_what_becomes_of_it() -> None:
    section = PAGE.split("\n## JSON at its edges\n")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| (.+) \| ((?:refused|kept).*) \|$", section, re.MULTILINE))

    assert list(rows) == list(ROWS)
    for name, told in rows.items():
        assert all((value is REFUSED) == (told == "refused") for _, value in ROWS[name]), name


@pytest.mark.parametrize(
    ("line", "value"),
    [(line, value) for _, line, value in CASES],
    ids=[f"{at} {name}" for at, (name, _, _) in enumerate(CASES)],
)
def test_a_value_at_the_edge_is_refused_or_kept_exactly(line: bytes, value: Any) -> None:
    if value is REFUSED:
        with pytest.raises(Unreadable):
            read(line)
        assert read_many([line]) == []
        return
    event = read(line)
    assert read_many([line]) == [event]
    assert_same(event.data["v"], value)
    made, again = make(event)
    assert_same(again.data["v"], value)
    assert read(made) == event
    assert make(Event(seq=0, prev="0" * 64, time=0, type="x.t", data={"v": value}))[0] == made


def assert_same(found: Any, value: Any) -> None:
    """Equal, of one type, and of one sign."""
    assert found == value
    assert type(found) is type(value)
    if isinstance(value, float):
        assert math.copysign(1, found) == math.copysign(1, value)
