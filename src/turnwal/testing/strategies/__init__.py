"""Hypothesis strategies for data, events and logs.

Promises:
- `json_values` and `json_objects` are what JSON can hold and writers get wrong: lone surrogates, the separators that
  split lines, integers of any size, minus zero, deep nesting.
- `foreign_rows` are events that `Log.append` accepts and that make as little sense as a foreign log may.
- `session_rows` are logs as a well-behaved live session writes them, cut after any event. The `open` and `waiting` of
  their boundaries are counted here, not by the scan, so that the two can be compared.

Needs `hypothesis`, which turnwal itself does not.
"""

from turnwal.testing.strategies.foreign import foreign_row, foreign_rows
from turnwal.testing.strategies.live import Session, cut_anywhere, session_rows
from turnwal.testing.strategies.rows import Row, log_of
from turnwal.testing.strategies.values import json_objects, json_values, texts

__all__ = [
    "Row",
    "Session",
    "cut_anywhere",
    "foreign_row",
    "foreign_rows",
    "json_objects",
    "json_values",
    "log_of",
    "session_rows",
    "texts",
]
