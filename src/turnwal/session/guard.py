"""What a session refuses to record although a bare log would take it: what would make the history ambiguous.

`Session.append` takes any type, for adapters and for what turnwal has no verb for; this is where it stops.
"""

from collections.abc import Mapping
from typing import Any, Final

from turnwal.core import keys
from turnwal.core.calls import Run
from turnwal.core.errors import Refused
from turnwal.core.pairing import anything, matches
from turnwal.core.scan import Scan
from turnwal.core.values import id_of

_OWN: Final = frozenset({"session_start", "session_resume", "session_fork", "session_copied", "damage"})

GUARDED: Final = _OWN | {"turn_start", "turn_end", "step_end", "tool_result"}
"""The types that are looked at here."""


def check_fits(scan: Scan, type: str, data: Mapping[str, Any], run: str) -> None:
    """Return if an event of a guarded type fits where the session stands; raise `Refused` otherwise (F06, F07)."""
    state = scan.run(run)
    if type in _OWN:
        raise _refusal("only turnwal itself writes it", type, "leave it out")
    if type == "turn_start" and state.turns:
        raise _refusal("a turn of its run is open", type, "close that one first")
    if type == "turn_end" and not state.turns:
        raise _refusal("no turn of its run is open", type, "open one first")
    if type == "step_end" and not (state.turns and state.turns[-1].steps):
        raise _refusal("no step of its turn is open", type, "open one first")
    if type == "tool_result" and "replace" not in data:
        _check_result(state, type, data)


def _check_result(state: Run, type: str, data: Mapping[str, Any]) -> None:
    key = keys.parse(data.get("call"))
    if key is None:
        if not matches(state, id_of(data), None, None, anything):
            raise _refusal(f"no open call has the id {id_of(data)!r}", type, "name the call with `call`")
        return
    call = state.find(key)
    if call is None:
        why = "has a result already" if state.known.get(key) else "is not open"
        raise _refusal(f"the call {data['call']} {why}", type, "a call gets one result")
    durable = call.turn is not None and call.turn.dispatch == "durable" and not (call.step and call.step.weak)
    if durable and call.dispatched is None:
        why = f"the call {data['call']} was never dispatched, in a turn that declares durable dispatches"
        raise _refusal(why, type, "`call.dispatch()` first, or `call.reject(text)`")


def _refusal(why: str, type: str, hint: str) -> Refused:
    return Refused(why, action="append", subject=type, hint=hint)
