"""Standard output: colour and cut lines on a terminal, plain aligned text in a pipe, JSON where it was asked for.

Promises:
- Every text passes `visible` here and nowhere else, so no verb can forget it; one line is one line.
- A pipe gets whole texts without a single escape sequence; a terminal gets lines that fit it.
- rich is imported only when a terminal reads. NO_COLOR and a dumb terminal get no escape sequence either.
"""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from turnwal.cli.visible import cut, visible

if TYPE_CHECKING:
    from rich.console import Console

Span = str | tuple[str, str]
"""Text, or text with a style of rich."""

_CELL_CHARS_MAX: Final = 2_000
"""What a terminal is handed of one text; more never fits a line."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    right: bool = False
    shrinks: bool = False
    """On a terminal that is too narrow the text is cut first."""
    below: bool = False
    """On a terminal that is too narrow the text goes below its row, whole. For the last column alone."""


class Screen:
    """What a verb prints on."""

    def __init__(self) -> None:
        """Look once whether a terminal reads."""
        self._console = _console() if sys.stdout.isatty() else None

    def line(self, *spans: Span, wrap: bool = False) -> None:
        """Print one line, cut to the terminal unless it may `wrap`."""
        parts = [(span, "") if isinstance(span, str) else span for span in spans]
        if self._console is None:
            _write("".join(visible(text) for text, _ in parts).rstrip(" "))
            return
        from rich.text import Text

        text = Text(end="")
        for part, style in parts:
            shown = visible(part if wrap else cut(part, _CELL_CHARS_MAX))
            text.append(shown, style=style or None)
        if wrap:
            self._console.print(text, soft_wrap=True)
        else:
            self._console.print(text, no_wrap=True, overflow="ellipsis", crop=True)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[Span]]) -> None:
        """Print rows under their titles."""
        cells = [[(cell, "") if isinstance(cell, str) else cell for cell in row] for row in rows]
        if self._console is None:
            _plain_table(columns, [[visible(text) for text, _ in row] for row in cells])
            return
        from turnwal.cli.grid import print_grid

        print_grid(
            self._console,
            columns,
            [[(visible(cut(text, _CELL_CHARS_MAX)), style) for text, style in row] for row in cells],
        )


def print_json(value: Any) -> None:
    """Print a value as one line of JSON in ASCII: every other character is an escape."""
    _write(dump(value))


def print_json_list(values: Iterable[Any]) -> None:
    """Print a list as one line of JSON in ASCII, each value as it comes: the list is never held as a whole."""
    sys.stdout.write("[")
    for index, value in enumerate(values):
        sys.stdout.write("," * (index > 0) + dump(value))
    sys.stdout.write("]\n")


def dump(value: Any) -> str:
    """A value as one line of JSON in ASCII."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def note(text: str) -> None:
    """Say something beside the result, on standard error."""
    sys.stderr.write(visible(text) + "\n")


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")


def _plain_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    lines = [[column.title for column in columns], *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        padded = [
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        ]
        _write("  ".join(padded).rstrip(" "))


def _console() -> "Console":
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR"))
    return Console(file=sys.stdout, markup=False, emoji=False, highlight=False, color_system=None if plain else "auto")
