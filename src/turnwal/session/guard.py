"""What a session refuses to record although a bare log would take it: what would make the history ambiguous.

`Session.append` takes any type, for adapters and for what turnwal has no verb for; this is where it stops.
"""

from collections.abc import Mapping
from typing import Any, Final

from turnwal.core import keys
from turnwal.core.calls import Call, Run
from turnwal.core.errors import Refused
from turnwal.core.pairing import anything, matches
from turnwal.core.recovery import owed_calls
from turnwal.core.scan import Scan
from turnwal.core.values import attempt_of, id_of, is_synthetic

_OWN: Final = frozenset({"session_start", "session_resume", "session_fork", "session_copied", "damage"})
_STRUCTURE: Final = frozenset({"turn_start", "turn_end", "step_start", "step_end"})
_CALLS: Final = frozenset(
    {"tool_call", "tool_result", "tool_outcome", "tool_suspended", "approval_request", "approval_response"}
)

GUARDED: Final = _OWN | _STRUCTURE | _CALLS
"""The types that are looked at here."""


def check_fits(scan: Scan, type: str, data: Mapping[str, Any], run: str) -> None:
    """Return if an event of a guarded type fits where the session stands; raise `Refused` otherwise (F06, F07)."""
    if type in _OWN:
        raise _refusal("only turnwal itself writes it", type, "leave it out")
    if type in _STRUCTURE:
        _check_structure(scan.run(run), type, data)
    elif type == "tool_outcome":
        _check_outcome(scan, run, type, data)
    elif data.get("replace") is None:
        if type == "tool_call" and attempt_of(data) > 1:
            raise _refusal("only `call.retry` repeats a call", type, "`session.call(key).retry(tools)`")
        if is_synthetic(data):
            raise _refusal("only turnwal says that a result stands in for a lost one", type, "leave `synthetic` out")
        _check_call(scan.run(run), type, data)


def needs_dispatch(call: Call) -> bool:
    """Whether a result of the call needs its dispatch first: its turn says so, and its step does not weaken that."""
    durable = call.turn is None or call.turn.seq < 0 or call.turn.dispatch == "durable"
    return durable and not (call.step is not None and call.step.weak)


def _check_structure(run: Run, type: str, data: Mapping[str, Any]) -> None:
    turn = run.turns[-1] if run.turns else None
    if type == "turn_start":
        if turn is not None:
            raise _refusal("a turn of its run is open", type, "close that one first")
    elif turn is None:
        raise _refusal("no turn of its run is open", type, "open one first")
    elif type == "turn_end":
        if data.get("reason") == "interrupted":
            raise _refusal("only recovery says `interrupted`", type, "say the true reason")
        if turn.steps or owed_calls(turn) or turn.attempts:
            raise _refusal("a step is open or a call is owed", type, "`turn.close(reason)` closes them with the turn")
    elif type == "step_start" and turn.steps:
        raise _refusal("a step of its turn is open", type, "close that one first")
    elif type == "step_end" and not turn.steps:
        raise _refusal("no step of its turn is open", type, "open one first")


def _check_call(run: Run, type: str, data: Mapping[str, Any]) -> None:
    if "call" in data:
        key = keys.parse(data["call"])
        call = None if key is None else run.find(key)
        if call is None and not (type == "tool_call" and key is not None and key not in run.known):
            answered = key is not None and run.known.get(key)
            why = "has a result already" if answered else "is not open in its run"
            raise _refusal(f"the call {data['call']!r} {why}", type, "`session.call(key)` finds a call and its verbs")
    else:
        found = matches(run, id_of(data), None, None, anything)
        call = found[0].call if found else None
        if call is None and type != "tool_call":
            raise _refusal(f"no open call has the id {id_of(data)!r}", type, "name the call with `call`")
    if call is not None:
        _check_state(call, type)


def _check_outcome(scan: Scan, run: str, type: str, data: Mapping[str, Any]) -> None:
    key, known = keys.parse(data.get("call")), scan.run(run).known
    if key is None:
        raise _refusal("an outcome names its call by key", type, "`session.call(key).settle(outcome)`")
    if not known.get(key) and (key in known or keys.seq_of(key) >= (scan.first_seq or 0)):
        raise _refusal(f"the call {data['call']!r} has no result", type, "an outcome is learnt after a result")


def _check_state(call: Call, type: str) -> None:
    key = keys.text(call.key)
    if call.doubt and type in ("tool_call", "approval_response"):
        why = f"what is lost of the log may be a dispatch of the call {key}"
        raise _refusal(why, type, "look where it acts, then `session.call(key).settle(outcome)`")
    if type == "tool_call" and call.dispatched is not None and call.waiting is None:
        raise _refusal(f"the call {key} was dispatched already", type, "a call runs once")
    if type == "tool_result" and call.dispatched is None and call.waiting is None and needs_dispatch(call):
        why = f"the call {key} was never dispatched, in a turn that declares durable dispatches"
        raise _refusal(why, type, "`call.dispatch()` first, or `call.reject(text)`")
    if type == "approval_response" and call.question != "pending" and call.turn is not None:
        raise _refusal(f"no question about the call {key} is open", type, "a decision needs a question that is open")


def _refusal(why: str, type: str, hint: str) -> Refused:
    return Refused(why, action="append", subject=type, hint=hint)
