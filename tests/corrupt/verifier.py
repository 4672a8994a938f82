"""A verifier of session files, by docs/format.md alone: it shares no code with turnwal, only json and hashlib."""

import json
from hashlib import sha256
from typing import Any

KEYS = {"seq": int, "prev": str, "time": int, "type": str, "data": dict, "run": str, "batch": int, "ignorable": bool}
NEEDED = {"seq", "prev", "time", "type", "data"}


def refuse(reason: object) -> Any:
    raise ValueError(reason)


def read(line: bytes) -> dict[str, Any] | None:
    """The event of a line, None for what is none."""
    try:
        event = json.loads(
            line.decode("utf-8"),
            object_pairs_hook=lambda pairs: dict(pairs) if len(dict(pairs)) == len(pairs) else refuse("a key twice"),
            parse_constant=refuse,
        )
    except (ValueError, RecursionError):
        return None
    fits = isinstance(event, dict) and all(type(event[key]) is KEYS[key] for key in event if key in KEYS)
    return event if fits and set(event) >= NEEDED else None


def verify(content: bytes, kept: str | None = None) -> tuple[str, int, str]:
    """The verdict on a session file, how many of its events hold, and their head; `kept` is COUNT:HASH."""
    count, prev, sound, region, left, met, behind = 0, "0" * 64, 0, b"", 0, kept is None, False
    for line in content.split(b"\n"):
        event = read(line)
        data = event["data"] if event else {}
        lost = event is not None and event["type"] == "damage" and data.get("kind") == "lost"
        follows = event and event["prev"] == prev and (event["seq"] == count or (lost and event["seq"] > count))
        if follows and region:
            digests = {(len(part), sha256(part).hexdigest()) for part in (region, region[:-1])}
            follows = event and event["type"] == "damage" and (data.get("length"), data.get("sha256")) in digests
            follows = follows and data["after"] == count - 1 and (lost or not left)
        if event and follows:
            if set(event) - set(KEYS):
                return "newer", sound, f"{count}:{prev}"
            count, prev, sound, region, left = event["seq"] + 1, sha256(line).hexdigest(), sound + 1, b"", 0
            met = met or behind or f"{count}:{prev}" == kept or (lost and data.get("head") == kept)
        else:
            region += line + b"\n"
            left += event is not None and not event.get("batch", count + 1) <= count < event["seq"]
            behind = behind or (event is not None and f"{event['seq'] + 1}:{sha256(line).hexdigest()}" == kept)
    if region != b"\n" or not met:
        return "broken", sound, f"{count}:{prev}"
    return "intact" if f"{count}:{prev}" == kept else "tail_not_verifiable", sound, f"{count}:{prev}"
