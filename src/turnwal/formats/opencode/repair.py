"""A repaired copy of a session of opencode: an export, as `opencode export` writes and `opencode import` takes them.

Promises: every call has ended, with the truth in place of a state that never did, that is not known, or that a clean-up
invented; all else is carried.

Refuses a session that says nothing of itself: opencode does not import it.
"""

from collections.abc import Callable
from pathlib import Path

from turnwal.formats.diagnosis import Diagnosis
from turnwal.formats.format import Found
from turnwal.formats.items import Fault
from turnwal.formats.lenient import encoded
from turnwal.formats.opencode.reading import id_of, is_invented, state_of
from turnwal.formats.opencode.stores import Part, opened
from turnwal.formats.repairing import fresh, unloadable
from turnwal.formats.wording import text_for


def repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Write an export in which every call has ended. Raises `Refused` as the module says, or where something is."""
    risks = {call.id: call.risk for call in diagnosis.open if call.evidence != "waiting"}
    info, messages, rest, _ = opened(found)
    if isinstance(info, Fault):
        raise unloadable(found.path, "opencode", f"{info.place}: {info.what}")
    with fresh(out) as file:
        file.write(b'{"info":' + encoded(info) + b',"messages":[')
        first = True
        for message in messages:
            if isinstance(message, Fault):
                continue
            parts = [_ended(part, lambda part: text_for(risks.get(id_of(part)))) for part in message.parts]
            file.write((b"" if first else b",") + encoded({"info": message.info, "parts": parts}))
            first = False
        file.write(b"]" + b"".join(b"," + encoded(name) + b":" + encoded(value) for name, value in rest.items()) + b"}")


def _ended(part: Part, text: Callable[[Part], str]) -> Part:
    """The part as it is, or with the truth in place of a state that never ended or that a clean-up invented."""
    if part.get("type") != "tool":
        return part
    state = state_of(part)
    status, error = state.get("status"), str(state.get("error", ""))
    if status == "completed" or (status == "error" and not is_invented(error)):
        return part
    given = state.get("input")
    times = state.get("time")
    start = times.get("start", 0) if isinstance(times, dict) else 0
    ended = {"status": "error", "input": given if isinstance(given, dict) else {}, "error": text(part)}
    return {**part, "state": {**ended, "time": {"start": start, "end": start}}}
