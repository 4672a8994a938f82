"""Times as other tools write them, as Unix milliseconds."""

from datetime import UTC, datetime


def milliseconds(stamp: object) -> int | None:
    """The time of an ISO 8601 text or a number of milliseconds; None for what is neither. Without a zone it is UTC."""
    if isinstance(stamp, bool):
        return None
    if isinstance(stamp, int):
        return stamp
    if not isinstance(stamp, str):
        return None
    try:
        time = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return round(time.timestamp() * 1000)


def of_seconds(stamp: object) -> int | None:
    """The time of a number of seconds; None for what is no number."""
    if isinstance(stamp, bool) or not isinstance(stamp, (int, float)):
        return None
    return round(stamp * 1000)
