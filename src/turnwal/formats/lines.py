"""Files of JSON objects, one a line, as processes that died have left them.

Promises:
- Every record that can be told from its surroundings is given, and all bytes that belong to none are named.
- A line is split only where a whole JSON value ends and another begins, or where the rest of it is whole records.
- Memory is bounded by the longest line, and that by `LINE_MAX`.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

import msgspec

from turnwal.formats.items import Fault

T = TypeVar("T")
Decode = Callable[[bytes], T]
"""Turns the bytes of one line into a record; raises `msgspec.MsgspecError` for what is none."""

LINE_MAX: Final = 128 * 1024 * 1024
"""Bytes of a line. Records of more than 64 MB were seen; a longer one is named and left out."""

_BOM: Final = b"\xef\xbb\xbf"
_SPLITS_MAX: Final = 256
"""Places in a broken line that are tried as the start of a record."""
_WORK: Final = 4
"""How often a broken line may be read through in search of a record: a long one is nested objects for the most part."""
_JOINED_MAX: Final = 16
"""Lines that line feeds inside one record may have made of it."""

_python = json.JSONDecoder()


def records(file: Path | BinaryIO, decode: Decode[T]) -> Iterator[tuple[int, T] | Fault]:
    """Yield the records of a file with their line numbers from 1, and the faults in between.

    `decode` must refuse objects that are no record of the format, since a piece of a broken line may be an object too.
    Raises `OSError`, and what reading an open file raises.
    """
    with file.open("rb", buffering=1 << 20) if isinstance(file, Path) else nullcontext(file) as opened:
        broken = _Broken()
        number, limit = 0, LINE_MAX + 1
        while line := opened.readline(limit):
            number += 1
            try:
                record = decode(line)
            except (msgspec.MsgspecError, RecursionError):
                yield from _odd(opened, number, line, broken, decode)
            else:
                if broken.lines:
                    yield from broken.told(decode, last=False)
                yield number, record
        yield from broken.told(decode, last=True)


def _odd(
    file: BinaryIO, number: int, line: bytes, broken: "_Broken", decode: Decode[T]
) -> Iterator[tuple[int, T] | Fault]:
    """What comes of a line that is no record."""
    if number == 1 and line.startswith(_BOM):  # some editors put it there
        line = line.removeprefix(_BOM)
        record = _decoded(line, decode)
        if record is not None:
            yield number, record
            return
    if len(line) > LINE_MAX and not line.endswith(b"\n"):
        _skip_line(file)
        yield from broken.told(decode, last=False)
        yield Fault("too_long", f"line {number}", f"the line is longer than {LINE_MAX:,} bytes")
    elif not line.isspace():
        yield from broken.add(number, line, decode)


def _skip_line(file: BinaryIO) -> None:
    while (more := file.readline(1 << 20)) and not more.endswith(b"\n"):
        pass


class _Broken:
    """Lines in a row that are no records."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, bytes]] = []

    def add(self, number: int, line: bytes, decode: Decode[T]) -> Iterator[tuple[int, T] | Fault]:
        """Take the next one: the record that line feeds inside a text made several lines of, if this completes it."""
        self.lines.append((number, line))
        if len(self.lines) == 1:
            return
        if sum(len(piece) for _, piece in self.lines) > LINE_MAX:
            yield from self.told(decode, last=False)
            return
        for start in range(len(self.lines) - 1):
            whole = b"\\n".join(piece.rstrip(b"\n") for _, piece in self.lines[start:])
            joined = _decoded(whole, decode)
            if joined is not None:
                first = self.lines[start][0]
                del self.lines[start:]
                yield from self.told(decode, last=False)
                yield Fault("raw_newline", f"line {first}", "a line feed inside a text broke the record")
                yield first, joined
                return
        if len(self.lines) == _JOINED_MAX:
            yield from self.told(decode, last=False)

    def told(self, decode: Decode[T], *, last: bool) -> Iterator[tuple[int, T] | Fault]:
        """The records inside these lines, and what is wrong with them. `last`: nothing stands behind them."""
        lines, self.lines = self.lines, []
        for index, (number, line) in enumerate(lines):
            yield from _pieces(number, line, decode, last=last and index == len(lines) - 1)


def _pieces(number: int, line: bytes, decode: Decode[T], *, last: bool) -> Iterator[tuple[int, T] | Fault]:
    place = f"line {number}"
    if b"\0" in line:
        yield Fault("nul_run", place, f"{line.count(0):,} zero bytes")
        line = line.replace(b"\0", b"")
        record = _decoded(line, decode)
        if record is not None:
            yield number, record
        if record is not None or not line.strip():
            return
    text = line.decode("utf-8", "surrogateescape").rstrip()
    found, end, _ = _whole(text, 0, decode)
    behind, start = ([], len(text)) if end == len(text) else _behind(text, end, decode)
    count = len(found) + len(behind)
    if len(found) > 1 or (found and end < len(text)):
        yield Fault("fused", place, f"{count:,} whole records on one line")
    for record in found:
        yield number, record
    lost = len(text[end:start].encode("utf-8", "surrogateescape"))
    if behind:
        yield Fault(
            "torn", place, f"{lost:,} bytes of a record that was not finished, and {_others(behind)} behind them"
        )
        for record in behind:
            yield number, record
    elif lost and last and (found or text.lstrip().startswith("{") or not line.endswith(b"\n")):
        yield Fault("torn", place, f"the last {lost:,} bytes are a record that was not finished")
    elif lost:
        yield Fault("corrupt", place, f"{lost:,} bytes that are no record")


def _others(behind: list[T]) -> str:
    return "another record" if len(behind) == 1 else f"{len(behind):,} other records"


def _decoded(line: bytes, decode: Decode[T]) -> T | None:
    try:
        return decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _whole(text: str, at: int, decode: Decode[T]) -> tuple[list[T], int, int]:
    """The whole records from a place on, one behind the other; where the last of them ends, and how far was read."""
    found: list[T] = []
    read = at
    while at < len(text):
        try:
            _, end = _python.raw_decode(text, at)
        except json.JSONDecodeError as error:
            # of a text without an end its beginning is named
            read = len(text) if error.msg.startswith("Unterminated") else error.pos
            break
        except (ValueError, RecursionError):
            read = len(text)
            break
        read = end
        record = _decoded(text[at:end].encode("utf-8", "surrogateescape"), decode)
        if record is None:
            break
        found.append(record)
        while end < len(text) and text[end].isspace():
            end += 1
        at = end
    return found, at, max(read, at)


def _behind(text: str, at: int, decode: Decode[T]) -> tuple[list[T], int]:
    """The whole records that a line ends with, and where the first of them begins."""
    at = text.find('{"', at + 1)
    work = _WORK * len(text)
    for _ in range(_SPLITS_MAX):
        if at < 0 or work < 0:
            break
        found, end, read = _whole(text, at, decode)
        if found and end == len(text):
            return found, at
        work -= read - at
        at = text.find('{"', at + 1)
    return [], len(text)
