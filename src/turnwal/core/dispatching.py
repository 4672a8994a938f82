"""Dispatches: which call was handed to its tool, and which may have been."""

from turnwal.core import keys
from turnwal.core.calls import Attempt, Call, Run, Turn
from turnwal.core.line import Event
from turnwal.core.pairing import matches
from turnwal.core.state import RETRY_FROM, State, named_key
from turnwal.core.values import arguments_of, attempt_of, id_of, is_redacted, name_of, object_of, text_of


def tool_call(scan: State, event: Event, run: Run) -> None:
    """Mark the call as dispatched, in the innermost open turn."""
    data = event.data
    turn = run.turn
    if turn.first_dispatch is None:
        turn.first_dispatch = event.seq
    attempt = attempt_of(data)
    if attempt >= RETRY_FROM:
        key = scan.about = _retried(scan, event, run)
        turn.attempts[key, attempt] = Attempt(key, id_of(data), name_of(data), attempt, event.seq)
        call = run.find(key)
        if call is not None and key in run.known:  # a repeat of what never had a result is its dispatch too
            _dispatched(event, run, turn, call)
        return
    key_named = keys.parse(data.get("call"))
    if data.get("call") is not None and key_named is not None:
        scan.about = key_named
        call = run.find(key_named)
        if call is None and run.known.get(key_named, 0) != 0:
            return
        if call is None:
            call = _unasked(event, run, turn, key_named)
    else:
        call, again = _dispatched_without_key(event, run, turn)
        scan.about = call.key
        if again:
            return
    _dispatched(event, run, turn, call)


def _dispatched_without_key(event: Event, run: Run, turn: Turn) -> tuple[Call, bool]:
    """The call that is meant, and whether it was dispatched before, so that this adds nothing."""
    data = event.data
    id, name, arguments = id_of(data), name_of(data), arguments_of(data)
    found = matches(run, id, name, arguments, _dispatchable)
    if found:
        alike = [match.call for match in found if match.fits_like(found[0])]
        for call in alike if len(alike) > 1 else ():
            call.maybe = event.seq
            turn.dispatched.add(call.fingerprint())
        return found[0].call, False
    for match in matches(run, id, name, arguments, lambda call: call.dispatched is not None):
        if match.call.same(id, name or match.call.name, arguments or match.call.arguments):
            return match.call, True
    return _unasked(event, run, turn, keys.pack(event.seq, keys.DISPATCH_INDEX)), False


def _retried(scan: State, event: Event, run: Run) -> int:
    """The key of the call that a later attempt repeats; without a key it may be any that fits."""
    key, data = named_key(scan, run, event), event.data
    if key is not None:
        return key
    found = matches(run, id_of(data), name_of(data), arguments_of(data), _dispatchable)
    for match in found:
        match.call.maybe = event.seq
    key = _answered_by_id(run, id_of(data))
    if key is not None:
        return key
    return found[0].call.key if found else keys.pack(event.seq, keys.DISPATCH_INDEX)


def _unasked(event: Event, run: Run, turn: Turn, key: int) -> Call:
    """A call that is met first by its dispatch."""
    met = run.find(key)
    if met is not None:
        return met
    data = event.data
    call = Call(key, id_of(data), name_of(data), arguments_of(data), asked_at=min(event.seq, keys.seq_of(key)))
    call.redacted = is_redacted(data)
    call.step = turn.step
    if call.step is not None:
        call.step.calls.append(call)
    turn.add(call)
    if key not in run.known:
        turn.unrequested[key] = event.seq
    run.known[key] = 0
    return call


def _dispatched(event: Event, run: Run, turn: Turn, call: Call) -> None:
    data = event.data
    if call.turn is not turn:
        run.drop(call)
        turn.add(call)
    call.waiting = None
    call.dispatched = event.seq
    call.name = call.name if call.name is not None else name_of(data)
    if call.arguments is None:
        call.arguments, call.redacted = arguments_of(data), is_redacted(data)
    call.hints, call.hints_from = object_of(data, "hints"), data.get("hints_from")
    call.keyed = data.get("keyed") is True
    call.idempotency_key, call.child = text_of(data, "key"), object_of(data, "child")
    turn.dispatched.add(call.fingerprint())
    if not call.requested and call.key not in run.known:
        turn.unrequested.setdefault(call.key, event.seq)


def _answered_by_id(run: Run, id: str) -> int | None:
    for turn in run.scope():
        for step in reversed(turn.steps):
            for call in reversed(step.calls):
                if call.id == id:
                    return call.key
    return None


def _dispatchable(call: Call) -> bool:
    """Whether a dispatch without a key may mean the call."""
    return call.dispatched is None or call.waiting is not None
