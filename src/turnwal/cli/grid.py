"""A table on a terminal: what does not fit is cut on the right, or goes below its row; names are cut last.

Does not: escape; the screen has done that.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from turnwal.cli.screen import Column

_GAP: Final = 2
_LEAST: Final = 20
"""To how few cells a column shrinks."""

Cell = tuple[str, str]
"""Text and its style."""


def print_grid(console: "Console", columns: "Sequence[Column]", rows: Sequence[Sequence[Cell]]) -> None:
    """Print rows under their titles."""
    titles = [(column.title, "bold") for column in columns]
    widths = [max(cell_len(row[index][0]) for row in [titles, *rows]) for index in range(len(columns))]
    last = columns[-1].below and _total(widths) > console.width
    shown = len(columns) - last
    widths = _fitted(columns[:shown], widths[:shown], console.width)
    _print_row(console, columns, widths, titles)
    for row in rows:
        _print_row(console, columns, widths, row)
        if last and row[-1][0]:
            console.print(Text("    ").append(*row[-1]), soft_wrap=True)


def _fitted(columns: "Sequence[Column]", widths: list[int], width: int) -> list[int]:
    """Take the excess from the columns that shrink, the widest first."""
    fitted = list(widths)
    while _total(fitted) > width:
        wide = [index for index, column in enumerate(columns) if column.shrinks and fitted[index] > _LEAST]
        if not wide:
            break
        fitted[max(wide, key=lambda index: fitted[index])] -= 1
    return fitted


def _print_row(console: "Console", columns: "Sequence[Column]", widths: list[int], row: Sequence[Cell]) -> None:
    line = Text()
    for index, width in enumerate(widths):
        cell = Text(*row[index])
        cell.truncate(width, overflow="ellipsis")
        room = " " * (width - cell.cell_len)
        pieces = (room, cell) if columns[index].right else (cell, room)
        for piece in (*pieces, " " * _GAP):
            line.append(piece) if isinstance(piece, str) else line.append_text(piece)
    line.rstrip()
    console.print(line, no_wrap=True, overflow="ellipsis", crop=True)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)
