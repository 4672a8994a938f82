"""Results, outcomes, approvals and suspensions: what becomes of a call that was asked for."""

from collections.abc import Callable

from turnwal.core import keys
from turnwal.core.calls import Call, Run
from turnwal.core.line import Event
from turnwal.core.pairing import anything, matches
from turnwal.core.state import RETRY_FROM, State, named_key
from turnwal.core.values import attempt_of, content_of, decision_of, id_of, is_synthetic, name_of


def tool_result(scan: State, event: Event, run: Run) -> None:
    """Answer the call that the result names or fits; a result that replaces another answers nothing."""
    data = event.data
    if data.get("replace") is not None:
        return
    content = content_of(data)
    if "call" in data:
        key = named_key(scan, run, event)
        scan.about = key
        if key is None:
            return
        call = run.find(key)
        if call is None:
            before = run.known.get(key, 0)
            if before:
                _duplicate(scan, event, keys.text(key), same=before == content)
            elif keys.seq_of(key) < event.seq:
                run.known[key] = content
            return
    else:
        found = _answered_without_key(scan, event, run, content)
        if found is None:
            return
        call = found
        scan.about = call.key
    _answer(scan, event, run, call, content)


def tool_outcome(scan: State, event: Event, run: Run) -> None:
    """Close the attempt that the outcome is about, and end the doubt about a call that waits or was granted."""
    number = attempt_of(event.data)
    key, id = keys.parse(event.data.get("call")), id_of(event.data)
    scan.about = key
    if key is not None and event.data.get("outcome") == "did_not_happen":
        call = run.find(key)
        if call is not None:
            call.doubt = False
    if number < RETRY_FROM:
        return
    for turn in (*reversed(run.turns), run.outside):
        for at, attempt in turn.attempts.items():
            if attempt.number == number and (attempt.key == key if key is not None else attempt.id == id):
                scan.about = attempt.key
                del turn.attempts[at]
                return


def tool_suspended(scan: State, event: Event, run: Run) -> None:
    """Let the call wait."""
    call = _about(scan, event, run, anything)
    if call is not None:
        call.waiting = event.seq


def approval_request(scan: State, event: Event, run: Run) -> None:
    """Open the question about the call."""
    call = _about(scan, event, run, lambda call: call.question is None, else_any=True)
    if call is not None:
        call.question, call.question_seq = "pending", event.seq


def approval_response(scan: State, event: Event, run: Run) -> None:
    """Decide the question; a grant ends the waiting."""
    call = _about(scan, event, run, lambda call: call.question == "pending", else_any=True)
    if call is None:
        return
    call.question, call.question_seq = decision_of(event.data), event.seq
    if call.question == "granted":
        call.granted = True
        call.waiting = None


def _answered_without_key(scan: State, event: Event, run: Run, content: int) -> Call | None:
    id, name = id_of(event.data), name_of(event.data)
    found = matches(run, id, name, None, lambda call: call.dispatched is not None and call.waiting is None)
    if found:
        return min(found, key=lambda match: (match.distance, match.inexact, match.call.dispatched or 0)).call
    found = matches(run, id, name, None, anything)
    if found:
        return found[0].call
    for turn in run.scope():
        for step in reversed(turn.steps):
            if id in step.answered:
                _duplicate(scan, event, f"of id {id!r}", same=step.answered[id][1] == content)
                return None
    scan.findings.add("orphan_result", (event.seq,), f"no call of id {id!r} could be answered here")
    return None


def _answer(scan: State, event: Event, run: Run, call: Call, content: int) -> None:
    if call.dispatched is None and call.turn is not None and not is_synthetic(event.data):
        call.turn.blind = event.seq
    run.drop(call)
    run.known[call.key] = content
    call.answered = True
    call.waiting = None
    if call.step is not None and not call.step.closed:
        call.step.answered[call.id] = (event.seq, content)
    if scan.pairs is not None:
        scan.pairs.append((call.key, event.seq))


def _duplicate(scan: State, event: Event, which: str, *, same: bool) -> None:
    says = "the same content" if same else "different content"
    scan.findings.add("duplicate_result", (event.seq,), f"call {which} has a result already; this one has {says}")


def _about(
    scan: State, event: Event, run: Run, wanted: Callable[[Call], bool], *, else_any: bool = False
) -> Call | None:
    """The unanswered call that an approval or suspension means; one known by its key only is kept under it."""
    data = event.data
    if "call" not in data:
        found = matches(run, id_of(data), name_of(data), None, wanted)
        if not found and else_any:
            found = matches(run, id_of(data), name_of(data), None, anything)
        scan.about = found[0].call.key if found else None
        return found[0].call if found else None
    key = scan.about = named_key(scan, run, event)
    if key is None or run.known.get(key, 0):
        return None
    call = run.find(key)
    if call is None and keys.seq_of(key) < event.seq:
        call = run.kept[key] = Call(key, id_of(data), name_of(data), None, asked_at=keys.seq_of(key))
    return call
