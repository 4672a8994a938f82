"""Times as tools write them, as Unix milliseconds."""

from datetime import UTC, datetime
from typing import Final

_MILLISECONDS_FROM: Final = 1e11
"""A number from here on counts milliseconds: as seconds it would lie beyond the year 5138."""


def unix_ms(value: object) -> int | None:
    """A time as Unix milliseconds, or None for what is none.

    Text is ISO 8601, in UTC where it names no zone; a number counts seconds, or milliseconds where it is that
    large.
    """
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value if abs(value) >= _MILLISECONDS_FROM else value * 1000)
