"""Times as other tools write them, as Unix milliseconds; None for what is no time that an event may have."""

from datetime import UTC, datetime
from math import isfinite

from turnwal.core.limits import TIME_MS_MAX


def milliseconds(stamp: object) -> int | None:
    """The time of an ISO 8601 text or a number of milliseconds; None for what is neither. Without a zone it is UTC."""
    if not isinstance(stamp, str):
        return _of_number(stamp, 1)
    try:
        time = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return round(time.timestamp() * 1000)


def of_seconds(stamp: object) -> int | None:
    """The time of a number of seconds; None for what is no number."""
    return _of_number(stamp, 1000)


def _of_number(stamp: object, unit_ms: int) -> int | None:
    if isinstance(stamp, bool) or not isinstance(stamp, (int, float)):
        return None
    if isinstance(stamp, float) and not isfinite(stamp):
        return None
    made = stamp * unit_ms
    return round(made) if -TIME_MS_MAX <= made <= TIME_MS_MAX else None
