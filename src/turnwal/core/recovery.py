"""What a crash left open and what closes it, as pure functions over events.

`plan` says what would be appended and why; `recover` appends it to a `Log`, and a second call appends nothing. Nothing
is cut and nothing rewritten; a log whose every turn is closed is left alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from turnwal.core import keys
from turnwal.core.calls import Call, Run, Turn
from turnwal.core.findings import Finding
from turnwal.core.limits import NESTING_MAX
from turnwal.core.line import Event
from turnwal.core.rules import judge, retry_of, text_for_model
from turnwal.core.scan import Scan
from turnwal.core.state import State
from turnwal.core.structure import note_dangling, note_doubt, note_partial, note_unrequested
from turnwal.core.types import check_known

_DEPTH_MAX: Final = NESTING_MAX - 2
"""Nesting of what a repair repeats of a dispatch. It stands one level deeper there, and a repair is never refused."""


@dataclass(frozen=True, slots=True)
class Repair:
    """One event that recovery appends, with the rule it follows and the lines it rests on."""

    type: str
    run: str
    data: dict[str, Any]
    rule: int | None
    """1 to 9 for the class of a call, None for what merely closes."""
    because: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """The repair as plain values."""
        return {"run": self.run, "type": self.type, "data": self.data, "rule": self.rule, "because": list(self.because)}


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be appended, and why; falsy where there is nothing to do."""

    repairs: tuple[Repair, ...]
    findings: tuple[Finding, ...]
    time: int
    """The time that the repairs carry: that of the last real event."""

    def __bool__(self) -> bool:
        """Whether something is to be appended."""
        return bool(self.repairs)

    def lost_calls(self) -> list[Repair]:
        """The repairs that stand in for a result."""
        return [repair for repair in self.repairs if repair.type == "tool_result"]

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {
            "interrupted": bool(self),
            "repairs": [repair.to_json() for repair in self.repairs],
            "findings": [finding.to_json() for finding in self.findings],
        }


class Appendable(Protocol):
    """A log in memory, as `recover` needs it."""

    def __iter__(self) -> Iterator[Event]:
        """The events in order."""
        ...

    def append(self, type: str, data: dict[str, Any], *, run: str = "main", time: int | None = None) -> Event:
        """Append one event."""
        ...


def plan(source: Iterable[Event], *, strict: bool = False) -> Plan:
    """Return what recovery would append to a session, and why; nothing is changed.

    `source` is a `Log`, a session or any iterable of events in order; one that begins at the oldest open turn gives
    the same repairs as the whole. `strict` turns *inferred* into *unknown*. Raises `TooNew` for events of a newer
    turnwal, since an unknown record may already close a call (F39).
    """
    return plan_of(scan_of(source), strict=strict)


def recover(log: Appendable, *, strict: bool = False) -> Plan:
    """Append what `plan` says and return it. A second call appends nothing."""
    planned = plan(log, strict=strict)
    for repair in planned.repairs:
        log.append(repair.type, repair.data, run=repair.run, time=planned.time)
    return planned


def interrupted(source: Iterable[Event]) -> bool:
    """Whether a turn is open."""
    return bool(scan_of(source).open_turns())


def open_turns(source: Iterable[Event]) -> list[Event]:
    """The `turn_start` events of the open turns, innermost first, sub-runs before the run they serve."""
    scan = Scan()
    starts: dict[int, Event] = {}
    for event in source:
        check_known(event)
        scan.feed(event)
        if event.type == "turn_start":
            starts[event.seq] = event
        elif event.type == "turn_end":
            still = set(scan.open_seqs())
            starts = {seq: start for seq, start in starts.items() if seq in still}
    return [starts[turn.seq] for _, turn in scan.open_turns()]


def scan_of(source: Iterable[Event]) -> Scan:
    """Scan events, refusing those of a newer turnwal."""
    scan = Scan()
    for event in source:
        check_known(event)
        scan.feed(event)
    return scan


def plan_of(scan: State, *, strict: bool = False) -> Plan:
    """The plan for a log that ends where the scan stands."""
    repairs: list[Repair] = []
    still_open = scan.open_seqs()
    for run, turn in scan.open_turns():
        still_open.remove(turn.seq)
        repairs += close_turn(scan, run, turn, after=scan.boundary(list(still_open)), strict=strict)
    return Plan(tuple(repairs), tuple(final_findings(scan)), scan.time)


def close_turn(
    scan: State,
    run: Run,
    turn: Turn,
    *,
    after: dict[str, Any],
    reason: str = "interrupted",
    outcome: str = "interrupted",
    strict: bool = False,
) -> list[Repair]:
    """Everything that closes one turn, in order: answers, outcomes, void approvals, step ends, the turn's end.

    `after` is what the boundary says is open then. A live writer passes the true `reason` of the turn and `outcome` of
    its steps; recovery passes neither.
    """
    owed = owed_calls(turn)
    repairs = [answer(scan, run, turn, call, interrupted=reason != "complete", strict=strict) for call in owed]
    repairs += [close_attempt(run, turn, at) for at in sorted(turn.attempts)]
    repairs += [void(run, call) for call in owed if call.question == "pending"]
    for step in reversed(turn.steps):
        data = _numbers(turn=turn.number, step=step.number) | {"outcome": outcome}
        repairs.append(Repair("step_end", run.name, data, None, (step.seq,)))
    data = _numbers(turn=turn.number) | {"steps": turn.step_count, "reason": reason} | after
    repairs.append(Repair("turn_end", run.name, data, None, (turn.seq,)))
    return repairs


def owed_calls(turn: Turn) -> list[Call]:
    """The calls of an open turn that must get a result and have none, in the order of their keys."""
    return [turn.calls[key] for key in sorted(turn.calls) if turn.calls[key].owed]


def answer(scan: State, run: Run, turn: Turn, call: Call, *, interrupted: bool, strict: bool = False) -> Repair:
    """The synthetic result of an owed call, with its class; `interrupted` has its text say that the turn was."""
    verdict = judge(scan, turn, call, strict=strict)
    retry = retry_of(call, verdict)
    metadata: dict[str, Any] = {"synthetic": True, "risk": verdict.risk}
    if verdict.basis is not None:
        metadata["basis"] = verdict.basis
    metadata["retry"] = retry
    extras = {"hints": call.hints, "key": call.idempotency_key, "dispatch_seq": call.dispatched, "child": call.child}
    metadata |= {name: value for name, value in extras.items() if value is not None and _depth(value) <= _DEPTH_MAX}
    data = call.named() | {
        "is_error": True,
        "parts": [{"type": "text", "content": text_for_model(verdict, retry, interrupted=interrupted)}],
        "metadata": metadata,
    }
    return Repair("tool_result", run.name, data, verdict.rule, verdict.because)


def close_attempt(run: Run, turn: Turn, at: tuple[int, int]) -> Repair:
    """The unknown outcome of a repeated dispatch that was left open."""
    attempt = turn.attempts[at]
    data = {
        "call": keys.text(attempt.key),
        "id": attempt.id,
        "attempt": attempt.number,
        "outcome": "unknown",
        "metadata": {"synthetic": True},
    }
    return Repair("tool_outcome", run.name, data, 1, (attempt.seq,))


def void(run: Run, call: Call) -> Repair:
    """The end of a pending approval, so that a stale answer cannot approve a later call (F28)."""
    data = {"call": keys.text(call.key), "id": call.id, "decision": "void"}
    because = () if call.question_seq is None else (call.question_seq,)
    return Repair("approval_response", run.name, data, None, because)


def final_findings(scan: State) -> list[Finding]:
    """The findings of a log that ends where the scan stands."""
    findings = scan.findings.copy()
    for _, call in scan.held():
        if call.doubt:
            note_doubt(findings, call)
    for run in scan.runs.values():
        note_partial(findings, run)
        for attempt in run.outside.attempts.values():
            message = f"attempt {attempt.number} of call {keys.text(attempt.key)} outside any turn has no outcome"
            findings.add("dangling_attempt", (attempt.seq,), message)
        for call in run.outside.calls.values():
            if not call.stays:
                note_dangling(findings, call, "outside any turn")
        for turn in (*run.turns, run.outside):
            note_unrequested(findings, turn, scan.first_seq)
    return list(findings)


def _depth(value: object) -> int:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if items is None else 1 + max(map(_depth, items), default=0)


def _numbers(**numbers: int | None) -> dict[str, Any]:
    return {name: number for name, number in numbers.items() if number is not None}
