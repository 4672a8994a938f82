"""What an assistant message asks for: new calls, calls met before, and later versions of the same message."""

from collections.abc import Mapping
from typing import Any

from turnwal.core import keys
from turnwal.core.calls import Call, Run, Turn
from turnwal.core.line import Event
from turnwal.core.state import State
from turnwal.core.values import arguments_of, asking_parts, id_of, is_redacted, name_of


def assistant_message(scan: State, event: Event, run: Run) -> None:
    """Take in what the message asks for."""
    turn = run.turn
    run.shown = None  # the message takes the place of what was shown of it
    complete = event.data.get("complete") is not False
    earlier = earlier_parts(run, event.data, event.seq) if "completes" in event.data else {}
    moved = False
    parts_keys: dict[int, int] = {}
    taken: set[int] = set()
    for index, part in asking_parts(event.data):
        own = keys.pack(event.seq, index)
        if index in earlier:
            key = earlier.pop(index)
            _asked_anew(run, key, part, complete=complete)
        else:
            key = _asked(scan, event, run, turn, own, part, taken, complete=complete)
        parts_keys[index] = key
        moved = moved or key != own
        taken.add(key)
    for key in earlier.values():
        gone = run.find(key)
        if gone is not None:
            gone.asked = False
    scan.asked_last = parts_keys
    if moved:
        turn.messages[event.seq] = parts_keys


def earlier_parts(run: Run, message: Mapping[str, Any], own_seq: int) -> dict[int, int]:
    """Part index to key of the version that a message completes, calls that have their result included."""
    seq = message.get("completes")
    if not isinstance(seq, int) or seq >= own_seq:
        return {}
    found: dict[int, int] = {}
    for turn in (*run.turns, run.outside):
        if seq in turn.messages:
            return dict(turn.messages[seq])
        found |= {keys.index_of(key): key for key in turn.calls if keys.seq_of(key) == seq}
    own = {index: keys.pack(seq, index) for index, _ in asking_parts(message)}
    found |= {index: key for index, key in own.items() if key in run.known}
    found.pop(keys.DISPATCH_INDEX, None)
    return found


def _asked_anew(run: Run, key: int, part: Mapping[str, Any], *, complete: bool) -> None:
    """A later version of a message asks for a call that an earlier one asked for."""
    call = run.find(key)
    if call is None:
        return
    call.requested = True
    call.asked = call.asked or complete
    if call.turn is not None:
        call.turn.unrequested.pop(key, None)
    if call.turn is not None and call.dispatched is None:
        turn = call.turn
        turn.remove(call)
        call.id, call.name, call.arguments = id_of(part), name_of(part), arguments_of(part)
        call.free_text, call.redacted = part.get("format") == "text", is_redacted(part)
        turn.add(call)


def met_before(turn: Turn, part: Mapping[str, Any], taken: set[int]) -> Call | None:
    """The call met before that a part of a new message asks for again (F07); `taken` are keys other parts ask for."""
    before = turn.step.calls if turn.step is not None else turn.by_id.get(id_of(part), {}).values()
    if not before:  # as a rule
        return None
    id, name, arguments = id_of(part), name_of(part), arguments_of(part)
    return next((call for call in before if call.key not in taken and call.same(id, name, arguments)), None)


def _asked(
    scan: State,
    event: Event,
    run: Run,
    turn: Turn,
    own: int,
    part: Mapping[str, Any],
    taken: set[int],
    *,
    complete: bool,
) -> int:
    """A part asks for a call; returns the key of that call, which may be one that was met before."""
    id, name, arguments = id_of(part), name_of(part), arguments_of(part)
    step = turn.step
    call = met_before(turn, part, taken)
    if call is not None:
        if call.requested and call.asked and complete:
            scan.findings.add("duplicate_call", (keys.seq_of(call.key), event.seq), f"call {keys.text(call.key)} again")
        call.name, call.arguments, call.redacted = name, arguments, is_redacted(part)
        call.requested = True
        call.asked = call.asked or complete
        turn.unrequested.pop(call.key, None)
        return call.key
    if run.find(own) is not None:  # dispatched by its key before it was asked for
        _asked_anew(run, own, part, complete=complete)
        return own
    call = Call(
        own,
        id,
        name,
        arguments,
        part.get("format") == "text",
        is_redacted(part),
        complete,
        requested=True,
        asked_at=event.seq,
        step=step,
    )
    if step is not None:
        step.calls.append(call)
    elif not turn.dispatched.isdisjoint(call.fingerprints()):
        call.maybe = turn.first_dispatch
    if own in run.known:  # dispatched and answered by its key before it was asked for
        call.maybe = event.seq
    turn.add(call)
    run.known[own] = 0
    return own
