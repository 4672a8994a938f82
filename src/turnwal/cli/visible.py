"""Text that is safe to show: what a terminal would obey or hide is written out as an escape.

A log holds what models, tools and strangers wrote. ESC sequences can rewrite the screen, a carriage return can cover a
line, and bidirectional overrides can make a name read as another; none of them gets through.
"""

import unicodedata
from typing import Final

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})
"""Categories that show nothing of themselves or change how other text shows: controls, formats, lone surrogates,
unassigned and private characters, line and paragraph separators."""

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BYTE_END: Final = 0x100
_PLANE_END: Final = 0x10000

ELLIPSIS: Final = "…"


def visible(text: str) -> str:
    """Return the text on one line, with every character that is not plainly visible as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def cut(text: str, width: int) -> str:
    """Return the text in at most `width` code points, the last of them an ellipsis where something was cut."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + ELLIPSIS


def _shown(char: str) -> str:
    if char.isprintable() or (unicodedata.category(char) not in _HIDDEN and char not in _SHORT):
        return char
    code = ord(char)
    if code < _BYTE_END:
        return _SHORT.get(char) or f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _PLANE_END else f"\\U{code:08x}"
