"""The event and its bytes.

Promises:
- One function makes the line. Equal events have equal bytes, whichever encoder was needed for them.
- What is encoded decodes to an equal value, or is refused naming the path inside the data.
- A line never contains a raw 0x0A, U+0085, U+2028 or U+2029, so no reader can split it in the wrong place (F19, F20).
- Reading accepts any key order and white space, and refuses what two readers could understand differently: duplicate
  keys, NaN, infinities.

Does not: number, chain, or judge types and data; see `chain.py` and `types.py`.
"""

import json
import math
import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from turnwal.core.errors import InvalidEvent, OverLimit
from turnwal.core.limits import INTEGER_DIGITS_MAX, LINE_BYTES_MAX, NESTING_MAX

GENESIS: Final = "0" * 64
"""The `prev` of line 0."""


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """One durable fact. The order of the fields is the order of the keys on the line."""

    seq: int
    """Position in the session, from 0 without gaps."""
    prev: str
    """SHA-256 of the previous line's bytes in hex; `GENESIS` on line 0."""
    time: int
    """Unix milliseconds UTC; for people, never for order (F11)."""
    type: str
    run: str = "main"
    batch: int | UnsetType = UNSET
    """The seq of the first line since the last barrier, on each line but that first one."""
    ignorable: bool = False
    data: dict[str, Any]


class Unreadable(Exception):
    """Bytes that are no line of a log; `newer` is the event they would be, had they no keys unknown to this reader."""

    def __init__(self, reason: str, newer: Event | None = None) -> None:
        """Hold the reason as half a sentence: "is not JSON"."""
        super().__init__(reason)
        self.reason = reason
        self.newer = newer


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Event).decode
_INTEGER_END: Final = 10**INTEGER_DIGITS_MAX
_FIELDS: Final = frozenset(Event.__struct_encode_fields__)
_SURROGATE: Final = re.compile("([\ud800-\udfff])")
_LONG_INTEGER: Final = re.compile(rb"(?<!\d)\d{%d}" % (INTEGER_DIGITS_MAX + 1))
# possessive and without need of an end: text that has none is read once, not again from each quote in it
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def make(event: Event) -> tuple[bytes, Event]:
    """Return the one line of an event, without its newline, and the event a reader of that line gets.

    The data is copied by way of the bytes, so the result shares nothing with the caller's objects. Raises
    `InvalidEvent` for a value JSON cannot hold without loss, naming its path, and `OverLimit` for one too deep or
    too long.
    """
    line, made = _make_quickly(event) or _make_carefully(event)
    if len(line) > LINE_BYTES_MAX:
        message = f"the line has {len(line):,} bytes, the limit is {LINE_BYTES_MAX:,}"
        raise OverLimit(
            message, action="append", subject=event.type, hint="keep large bodies elsewhere and record a reference"
        )
    return line, made


def _make_quickly(event: Event) -> tuple[bytes, Event] | None:
    """The line of an event that msgspec writes and reads back without loss, which is nearly every one."""
    try:
        line = _encode(event)
        if not line.isascii():
            line = _escape(line)
        made = _decode(line)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return None
    return (line, made) if made == event and not _suspicious(line) else None


def _make_carefully(event: Event) -> tuple[bytes, Event]:
    plain = msgspec.structs.replace(event, type=_joined(event.type), run=_joined(event.run), data=_plain(event.data))
    return _assemble(plain), plain


def read(line: bytes) -> Event:
    """Return the event that a line holds. Raises `Unreadable` for anything that is not exactly one event."""
    try:
        event = _decode(line)
        if _encode(event) == line and not _suspicious(line):
            return event
    except (ValueError, RecursionError):
        pass
    return _read_strictly(line)


def read_many(lines: Sequence[bytes]) -> list[Event]:
    """Return the events that these lines begin with, up to the first line that is none."""
    events = []
    for line in lines:
        event = None
        try:
            decoded = _decode(line)
            if _encode(decoded) == line and (len(line) <= 2 * NESTING_MAX or not _suspicious(line)):
                event = decoded
        except (ValueError, RecursionError):
            pass
        if event is None:
            try:
                event = _read_strictly(line)
            except Unreadable:
                break
        events.append(event)
    return events


def compact(value: object) -> str:
    """Return a JSON value as text without insignificant space, by the rules of the line (F36)."""
    return _text_of(_walk(value, "value", 0)).decode("utf-8")


def _escape(line: bytes) -> bytes:
    """Write U+0085, U+2028 and U+2029 as escapes; in UTF-8 their bytes stand for nothing else."""
    if line.isascii():
        return line
    return (
        line.replace(b"\xc2\x85", b"\\u0085").replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    )


def _suspicious(line: bytes) -> bool:
    """Whether the nesting or an integer on the line *may* be over its limit; cheap, and never wrong about *no*."""
    size = len(line)
    if size <= 2 * NESTING_MAX:
        return False
    # removing the brackets counts them at the speed of memchr, several times that of bytes.count
    brackets = 2 * size - len(line.replace(b"{", b"")) - len(line.replace(b"[", b""))
    return brackets > NESTING_MAX or (size > INTEGER_DIGITS_MAX and _LONG_INTEGER.search(line) is not None)


def _plain(data: object) -> dict[str, Any]:
    """Copy data to plain JSON values, refusing what JSON cannot hold, with the path of the first offender."""
    if not isinstance(data, dict):
        message = f"data is a {type(data).__name__}, not an object"
        raise InvalidEvent(message, action="append", hint="pass a dict with text keys")
    copied: dict[str, Any] = _walk(data, "data", 0)
    return copied


def _walk(value: object, path: str, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _joined(str.__str__(value))
    if isinstance(value, int):
        return _checked_int(int(value), path)
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        message = f"{path} is {value!r}, which JSON cannot hold"
        raise InvalidEvent(message, action="append", hint="record it as text")
    if isinstance(value, (dict, list)):
        if depth >= NESTING_MAX:
            message = f"{path[:200]} is nested deeper than {NESTING_MAX}"
            raise OverLimit(message, action="append", hint="record the value as text")
        if isinstance(value, list):
            return [_walk(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
        return _distinct_keys(value, path, depth)
    message = f"{path} is a {type(value).__name__}, which JSON cannot hold without loss"
    raise InvalidEvent(message, action="append", hint="convert it to text, a number, a list or an object first")


def _distinct_keys(value: dict[Any, Any], path: str, depth: int) -> dict[str, Any]:
    copied: dict[str, Any] = {}
    for key, item in value.items():
        name = _key(key, path)
        if name in copied:
            message = f"{path} has two keys that both read back as {name!r:.80}"
            raise InvalidEvent(message, action="append", hint="use keys that differ in more than how they are encoded")
        copied[name] = _walk(item, f"{path}.{key}", depth + 1)
    return copied


def _key(key: object, path: str) -> str:
    if isinstance(key, str):
        return _joined(str.__str__(key))
    message = f"{path} has the key {key!r}, which is a {type(key).__name__}, not text"
    raise InvalidEvent(message, action="append", hint="use text keys")


def _checked_int(value: int, path: str) -> int:
    if not -_INTEGER_END < value < _INTEGER_END:
        message = f"{path} is an integer of more than {INTEGER_DIGITS_MAX:,} digits"
        raise OverLimit(message, action="append", hint="record it as text")
    return value


def _joined(text: str) -> str:
    """Two surrogates that belong together are the character they encode: JSON has no other way to write them."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _assemble(event: Event) -> bytes:
    """The line of an event whose data msgspec cannot write; byte-equal to msgspec where both can."""
    head = {name: value for name, value in _encodable(event).items() if name != "data"}
    return _escape(_text_of(head)[:-1] + b',"data":' + _text_of(event.data) + b"}")


def _encodable(event: Event) -> dict[str, Any]:
    fields = msgspec.structs.asdict(event)
    defaults = {"run": "main", "batch": UNSET, "ignorable": False}
    return {name: value for name, value in fields.items() if name not in defaults or value != defaults[name]}


def _text_of(value: Any) -> bytes:
    if isinstance(value, dict):
        return b"{" + b",".join(_text_of(key) + b":" + _text_of(item) for key, item in value.items()) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(map(_text_of, value)) + b"]"
    if isinstance(value, str):
        pieces = _SURROGATE.split(value)
        return (
            b'"'
            + b"".join(
                b"\\u%04x" % ord(piece) if index % 2 else _encode(piece)[1:-1] for index, piece in enumerate(pieces)
            )
            + b'"'
        )
    return _encode(value)


def _read_strictly(line: bytes) -> Event:
    try:
        value = json.loads(
            line.decode("utf-8"),
            object_pairs_hook=_distinct,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_bounded,
        )
    except RecursionError:
        if _depth(line) <= NESTING_MAX + 1:
            raise
        raise Unreadable(f"is nested deeper than {NESTING_MAX}") from None
    except ValueError as error:
        raise Unreadable(f"is not JSON of the strict kind ({error})") from None
    if not isinstance(value, dict):
        raise Unreadable("is JSON, but not an object")
    if _depth(line) > NESTING_MAX + 1:
        raise Unreadable(f"is nested deeper than {NESTING_MAX}")
    unknown = [key for key in value if key not in _FIELDS]
    try:
        event = msgspec.convert({key: item for key, item in value.items() if key in _FIELDS}, Event)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the second: half a character where no text belongs
        raise Unreadable(f"is JSON, but not an event ({error})") from None
    if unknown:
        raise Unreadable(f"has the unknown key {unknown[0]!r}", newer=event)
    return event


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isfinite(number):
        return number
    raise ValueError("a number is out of range")


def _bounded(text: str) -> int:
    if len(text) - text.startswith("-") > INTEGER_DIGITS_MAX:
        raise ValueError(f"an integer has more than {INTEGER_DIGITS_MAX} digits")
    return int(text)


def _depth(line: bytes) -> int:
    """Greatest nesting of a line, without recursion, whatever the line is; nothing is counted beyond the limit."""
    depth = deepest = 0
    for match in _TOKEN.finditer(line):
        token = match.group()
        if token in b"[{":
            depth += 1
            deepest = max(deepest, depth)
            if deepest > NESTING_MAX + 1:
                break  # the rest of a line that is refused may be megabytes of this
        elif token in b"]}":
            depth -= 1
    return deepest
