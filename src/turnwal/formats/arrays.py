"""Files of one JSON value: the elements of a long array one by one, so that it need not fit into memory."""

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from turnwal.formats.items import Fault

WHOLE_MAX: Final = 32 * 1024 * 1024
"""Bytes of a file that are decoded at once: quicker, and it fits."""

_CHUNK: Final = 4 * 1024 * 1024
_ELEMENT_MAX: Final = 128 * 1024 * 1024
_LITERAL: Final = 16
"""Characters at the end of a text that may be the beginning of a literal, a number or an escape."""
_NO_ARRAY: Final = Fault("corrupt", "byte 0", "there is no JSON array where one was to be")
_python = json.JSONDecoder()


def elements(path: Path, key: str | None = None) -> Iterator[tuple[int, Any] | Fault]:
    """Yield the elements of a JSON array with their index, and a fault where the text ends too early or is no JSON.

    With `key` the array is the value of that key of an object; other keys are stepped over. Raises `OSError`.
    """
    if path.stat().st_size <= WHOLE_MAX:
        try:
            value = msgspec.json.decode(path.read_bytes())
        except (msgspec.MsgspecError, RecursionError):
            pass  # told piece by piece
        else:
            listed = value.get(key) if key is not None and isinstance(value, dict) else value
            if isinstance(listed, list):
                yield from enumerate(listed)
            else:
                yield _NO_ARRAY
            return
    yield from _streamed(path, key)


def opening(path: Path, key: str) -> dict[str, Any]:
    """The fields that stand before an array in the object that holds it: all of them that a cut leaves."""
    found: dict[str, Any] = {}
    window = _Window(path)
    with window:
        window.enter(key, found)
    return found


def _streamed(path: Path, key: str | None) -> Iterator[tuple[int, Any] | Fault]:
    window = _Window(path)
    with window:
        if not window.enter(key):
            yield _NO_ARRAY
            return
        index = 0
        while True:
            end = window.separator()
            if end == "]":
                return
            found = window.value() if end != "" else None
            if found is None:
                if window.broken:
                    yield Fault("corrupt", f"element {index}", "it is no JSON, nor can what stands behind it be told")
                else:
                    yield Fault("torn", f"element {index}", "the array ends before its end")
                return
            yield index, found[0]
            index += 1


class _Window:
    """The part of a text that is being read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text = ""
        self._at = 0
        self.broken = False
        """The text is no JSON, rather than at its end."""

    def __enter__(self) -> Self:
        self._file = self._path.open("rb")
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _more(self) -> bool:
        """Read on; False at the end of the file."""
        data = self._file.read(max(_CHUNK, len(self._text) - self._at))
        self._text = self._text[self._at :] + self._decoder.decode(data, final=not data)
        self._at = 0
        return bool(data)

    def _next(self) -> str:
        """The next character that is no space, or nothing at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\r\n\ufeff":
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def enter(self, key: str | None, stepped_over: dict[str, Any] | None = None) -> bool:
        """Go to the first element; False where there is no such array. What else stands before it can be told."""
        first = self._next()
        while key is not None and first in ("{", ","):
            self._at += 1
            if self._next() != '"':
                return False
            name = self.value()
            if name is None or self._next() != ":":
                return False
            self._at += 1
            if name[0] == key:
                first, key = self._next(), None
                break
            value = self.value()
            if value is None:
                return False
            if stepped_over is not None:
                stepped_over[str(name[0])] = value[0]
            first = self._next()
        if key is not None or first != "[":
            return False
        self._at += 1
        return True

    def separator(self) -> str:
        """Step over a comma; the closing bracket, or nothing at the end of the text."""
        character = self._next()
        if character == ",":
            self._at += 1
            character = self._next()
        return character

    def value(self) -> tuple[Any] | None:
        """The next value, or None where the text ends inside it or is no JSON."""
        self._next()
        while True:
            try:
                value, end = _python.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                ended = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _LITERAL
                if not ended or len(self._text) - self._at > _ELEMENT_MAX:
                    self.broken = True
                    return None
                if not self._more():
                    return None
                continue
            except (ValueError, RecursionError):  # a number of thousands of digits, brackets in brackets
                self.broken = True
                return None
            # a number that ends where the window ends may go on
            if end == len(self._text) and self._more():
                continue
            self._at = end
            return (value,)
