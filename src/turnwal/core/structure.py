"""Turns and steps: what opens, what closes, and what a turn leaves behind when it ends."""

from turnwal.core import keys
from turnwal.core.calls import Call, Run, Step, Turn
from turnwal.core.findings import Findings
from turnwal.core.line import Event
from turnwal.core.state import State
from turnwal.core.values import dispatch_of, number_of


def turn_start(scan: State, event: Event, run: Run) -> None:
    """Open a turn."""
    if run.turns:
        outer = run.turns[-1]
        scan.findings.add("nested_turn", (outer.seq, event.seq), "a turn started while another was open")
    run.turns.append(Turn(event.seq, number_of(event.data, "turn"), dispatch_of(event.data)))
    served = keys.parse(event.data.get("serves"))
    if served is not None:
        for other in scan.runs.values():
            call = other.find(served)
            if call is not None and call.dispatched is None:
                call.maybe = event.seq  # a sub-agent works for it: it was begun, whatever was recorded of that


def turn_end(scan: State, event: Event, run: Run) -> None:
    """Close the innermost open turn of its number, or the innermost; its unanswered calls leave the pairing."""
    end_deltas(scan.findings, run)
    number = number_of(event.data, "turn")
    turn = next((turn for turn in reversed(run.turns) if number is None or turn.number == number), None)
    if turn is None:
        if event.seq != scan.first_seq or event.seq == 0:
            scan.findings.add("stray_turn_end", (event.seq,), "it ends a turn that is not open")
        return
    if turn is not run.turns[-1]:
        inner = run.turns[-1]
        scan.findings.add(
            "turns_overlap", (turn.seq, inner.seq, event.seq), "the outer turn ended before the inner one"
        )
    for step in turn.steps:
        step.close()
        scan.findings.add("step_open_at_turn_end", (step.seq, event.seq), "the turn ended while the step was open")
    run.turns.remove(turn)
    for call in turn.calls.values():
        call.turn = None
        if call.stays:
            run.kept[call.key] = call
        else:
            note_dangling(scan.findings, call, "of a turn that has ended")
    note_unrequested(scan.findings, turn, scan.first_seq)


def step_start(scan: State, event: Event, run: Run) -> None:
    """Open a step of the innermost open turn."""
    end_deltas(scan.findings, run)
    if run.turns:
        dispatch = dispatch_of(event.data)
        turn = run.turns[-1]
        turn.steps.append(Step(event.seq, number_of(event.data, "step"), weak=dispatch == "none"))
        turn.step_count += 1


def step_end(scan: State, event: Event, run: Run) -> None:
    """Close the innermost open step of the innermost open turn."""
    end_deltas(scan.findings, run)
    if not run.turns:
        return
    steps = run.turns[-1].steps
    if steps:
        steps.pop().close()
    else:
        scan.findings.add("stray_step_end", (event.seq,), "no step of the innermost open turn is open")


def assistant_delta(_: State, event: Event, run: Run) -> None:
    """Take in text of a message that is still to come."""
    run.shown = (event.seq if run.shown is None else run.shown[0], event.seq)


def end_deltas(findings: Findings, run: Run) -> None:
    """Note text that was shown and whose message did not come while its step was open."""
    if run.shown is not None:
        note_partial(findings, run)
        run.shown = None


def note_partial(findings: Findings, run: Run) -> None:
    """Note text that was shown and whose message has not come."""
    if run.shown is not None:
        first, last = run.shown
        message = "text was shown while it streamed in, and its message never came"
        findings.add("partial_message", (first,) if first == last else (first, last), message)


def note_dangling(findings: Findings, call: Call, where: str) -> None:
    """Note a call that has no result and will get none, if it was asked for or dispatched."""
    if call.dispatched is not None:
        findings.add(
            "dangling_call", (call.asked_at, call.dispatched), f"call {keys.text(call.key)} {where} was dispatched"
        )
    elif call.asked:
        findings.add("dangling_call", (call.asked_at,), f"call {keys.text(call.key)} {where} was not seen dispatched")


def note_doubt(findings: Findings, call: Call) -> None:
    """Note a call that may run in a later turn although it may have run."""
    state = "waits" if call.waiting is not None else "was granted"
    message = f"call {keys.text(call.key)} {state}, and its dispatch or its answer may be among lost bytes"
    findings.add("doubtful_call", (call.asked_at,), message)


def note_unrequested(findings: Findings, turn: Turn, first_seq: int | None) -> None:
    """Note the dispatches of a turn that no message asked for."""
    for key, seq in turn.unrequested.items():
        if keys.seq_of(key) >= (first_seq or 0):
            findings.add("dispatch_without_request", (seq,), f"no message asks for call {keys.text(key)}")
