"""Edits: a JSON value, text or bytes with something wrong in it, as `Choices` decide.

Promises: what is given is not changed; the same decisions make the same edit.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any, Final

from tests.fuzz.choices import Choices

DEEP: Any = []
for _ in range(150):
    DEEP = [DEEP]

ODD: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    1.5,
    1e308,
    -0.0,
    2**31,
    2**63,
    -(2**64),
    10**400,
    float("inf"),
    float("nan"),
    "",
    " ",
    "0",
    "-1",
    "a\0b",
    "\ud83d",
    "\udc8f\ud83d",
    "\u2028",
    "\x1b[2J",
    "\U0010ffff",
    "9" * 5_000,
    "x" * 3_000,
    "../../up",
    "{}",
    '{"a":',
    "[1]",
    "null",
    "tool_use",
    "assistant",
    "user",
    "2026-01-01T00:00:00Z",
    "9999-99-99T99:99:99Z",
    "data:;base64,",
    [],
    {},
    [[]],
    [None],
    [{}],
    {"": None},
    {"type": None},
    {"type": []},
    {"\ud83d": 1},
    DEEP,
)
"""What stands where it was not expected."""

_FRAGMENTS: Final = (
    b"\0",
    b"\n",
    b"\r",
    b"\xff",
    b"\xc0\xaf",
    b"\xed\xa0\xbd",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"\\ud83d",
    b"\\u0000",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[" * 300,
    b"]",
    b",",
    b":",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"9" * 4_500,
    b"\0" * 70,
    b'{"":1,"":2}',
    b"null",
)


def edited(choices: Choices, value: Any) -> Any:
    """A JSON value with one to four edits."""
    root = [copy.deepcopy(value)]
    for _ in range(1 + choices.below(4)):
        _edit(choices, root)
    return root[0]


def _edit(choices: Choices, root: list[Any]) -> None:
    places = list(_places(root))
    holder, at = choices.pick(places)
    value = holder[at]
    other, there = choices.pick(places)
    match choices.below(10):
        case 0 | 1 | 2:
            holder[at] = copy.deepcopy(choices.pick(ODD))
        case 3 if holder is not root:
            del holder[at]
        case 4:  # what stands elsewhere stands here too
            holder[at] = copy.deepcopy(other[there])
        case 5 if isinstance(holder, list) and holder is not root:
            holder.insert(choices.below(len(holder) + 1), copy.deepcopy(value))
        case 6 if isinstance(holder, dict) and isinstance(there, str):
            holder[there] = holder.pop(at)
        case 7:
            holder[at] = choices.pick(([value], {"type": value}, str(value)[:200], json.dumps(value)[:400]))
        case 8 if isinstance(value, str):
            cut = choices.below(len(value) + 1)
            holder[at] = choices.pick((value[:cut], value[cut:], value + value, value.upper()))
        case 8 if isinstance(value, list):
            holder[at] = choices.pick((value[::-1], value[:1], value * 2, [*value, copy.deepcopy(other[there])]))
        case _:
            holder[at] = copy.deepcopy(choices.pick(ODD))


def _places(root: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Every place in a value that holds one: what holds it, and where in that."""
    left: list[tuple[Any, Any]] = [(root, 0)]
    while left:
        holder, at = left.pop()
        yield holder, at
        value = holder[at]
        if isinstance(value, dict):
            left += [(value, key) for key in value]
        elif isinstance(value, list):
            left += [(value, index) for index in range(len(value))]


def written(choices: Choices, value: Any) -> bytes:
    """A value as JSON, now and then as other tools write it: escaped or not, with spaces, with a key twice."""
    ascii_only, spaced = not choices.below(2), not choices.below(4)
    text = json.dumps(value, ensure_ascii=ascii_only, separators=None if spaced else (",", ":"))
    if isinstance(value, dict) and value and choices.below(16) == 1:
        key = choices.pick(list(value))
        text = f"{text[:-1]},{json.dumps(key)}:{json.dumps(choices.pick(ODD))}}}"
    return text.encode("utf-8", "surrogatepass")


def spoilt(choices: Choices, data: bytes) -> bytes:
    """Bytes with one to three edits that know nothing of what they mean."""
    for _ in range(1 + choices.below(3)):
        at = choices.below(len(data) + 1)
        end = min(len(data), at + choices.pick((0, 1, 1, 2, 8, 64, 1_000)))
        match choices.below(8):
            case 0:
                data = data[:at]
            case 1:
                data = data[:at] + data[end:]
            case 2 if at < len(data):
                data = data[:at] + bytes([data[at] ^ 1 << choices.below(8)]) + data[at + 1 :]
            case 3:
                data = data[:at] + data[at:end] * 2 + data[end:]
            case 4:
                data = data[:at] + choices.bytes(1 + choices.below(8)) + data[end:]
            case 5:
                data = data[end:]
            case _:
                data = data[:at] + choices.pick(_FRAGMENTS) + data[end:]
    return data


def lines_edited(choices: Choices, data: bytes) -> bytes:
    """Lines of JSON with an edit in one of them, or in their order."""
    lines = data.split(b"\n")
    at = choices.below(len(lines))
    match choices.below(8):
        case 0:
            del lines[at]
        case 1:
            lines.insert(choices.below(len(lines) + 1), lines[at])
        case 2:
            lines[at : at + 2] = lines[at : at + 2][::-1]
        case 3:
            lines[at : at + 2] = [b"".join(lines[at : at + 2])]
        case _:
            try:
                value = json.loads(lines[at])
            except ValueError:
                lines[at] = spoilt(choices, lines[at])
            else:
                lines[at] = written(choices, edited(choices, value))
    return b"\n".join(lines)
