"""Rows: what appends are given, and the log that they make."""

from dataclasses import dataclass
from typing import Any

from turnwal.core.log import Log


@dataclass(frozen=True, slots=True)
class Row:
    """What one append is given."""

    type: str
    data: dict[str, Any]
    run: str = "main"
    time: int | None = None


def log_of(rows: list[Row]) -> Log:
    """A log of these rows."""
    log = Log()
    for row in rows:
        log.append(row.type, row.data, run=row.run, time=row.time)
    return log
