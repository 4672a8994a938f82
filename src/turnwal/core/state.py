"""What a scan holds: the runs with what is open in them, the findings, and what befell the log itself."""

from collections.abc import Iterator
from typing import Any, Final

from turnwal.core import keys
from turnwal.core.calls import Call, Run, Turn
from turnwal.core.findings import Findings
from turnwal.core.line import Event

RETRY_FROM: Final = 2
"""The first attempt that is a repeat: it is closed by an outcome, never by a second result."""


class State:
    """The state of a log up to the last event that was read."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self.runs: dict[str, Run] = {}
        self.findings = Findings()
        self.first_seq: int | None = None
        self.last_seq = -1
        self.time = 0
        """Time of the last event that is neither `session_resume` nor `damage`."""
        self.torn_after = -1
        """The last record before the newest torn bytes, which may hold an unacknowledged record."""
        self.lost_after = -1
        """The last record before the newest bytes that may have held an acknowledged record."""
        self.torn_seq = self.lost_seq = -1
        self.copied_seq = -1
        self.pairs: list[tuple[int, int]] | None = None
        """When a list: gets the key and the seq of each result that answers a call."""
        self.asked_last: dict[int, int] = {}
        """Of the last assistant message: part index to packed key of the call that the part asks for."""
        self.about: int | None = None
        """The packed key of the call that the last event is about, whether the event names it or was paired with it."""

    def run(self, name: str) -> Run:
        """The run of that name, made when it is new."""
        run = self.runs.get(name)
        if run is None:
            run = self.runs[name] = Run(name)
        return run

    def open_turns(self) -> list[tuple[Run, Turn]]:
        """Every open turn with its run: sub-runs first, the latest first, then `main`; in each the innermost first."""
        busy = [run for run in self.runs.values() if run.turns]
        busy.sort(key=lambda run: (run.name == "main", -run.turns[0].seq))
        return [(run, turn) for run in busy for turn in reversed(run.turns)]

    def open_seqs(self) -> list[int]:
        """The seqs of the open turns of all runs, ascending: what a boundary records as `open`."""
        seqs = [turn.seq for run in self.runs.values() for turn in run.turns]
        seqs.sort()
        return seqs

    def waiting(self) -> list[dict[str, Any]]:
        """What a boundary records as `waiting`: call, id, name, the run where it is not `main`, `question`, the seq of
        its approval request, where that is pending, and `doubt` where a dispatch of it may be lost.
        """
        found = [
            (run, call)
            for run in self.runs.values()
            for held in (*[turn.calls for turn in run.turns], run.outside.calls, run.kept)
            if held
            for call in held.values()
            if call.waiting is not None
        ]
        return _told(found) if found else []

    def granted(self) -> list[dict[str, Any]]:
        """What a boundary records as `granted`: the calls of no open turn that may be dispatched in a later one."""
        found = [
            (run, call)
            for run in self.runs.values()
            for call in run.kept.values()
            if call.waiting is None and call.stays
        ]
        return _told(found) if found else []

    def held(self) -> Iterator[tuple[Run, Call]]:
        """Every call that recovery leaves as it is: it waits, or was granted and may be dispatched in a later turn."""
        for run in self.runs.values():
            for call in run.unanswered():
                if call.stays and not (call.owed and call.turn is not None and call.turn.seq >= 0):
                    yield run, call

    def boundary(self, open_seqs: list[int]) -> dict[str, Any]:
        """What a boundary after which these turns are open says; `granted` only where there are any."""
        granted = self.granted()
        return {"open": open_seqs, "waiting": self.waiting()} | ({"granted": granted} if granted else {})


def _told(found: list[tuple[Run, Call]]) -> list[dict[str, Any]]:
    found.sort(key=lambda pair: pair[1].key)
    return [
        call.named()
        | ({} if run.name == "main" else {"run": run.name})
        | ({"question": call.question_seq} if call.question == "pending" and call.question_seq is not None else {})
        | ({"doubt": True} if call.doubt else {})
        for run, call in found
    ]


def named_key(scan: State, run: Run, event: Event) -> int | None:
    """The key that an event names; noted where its run has no such call."""
    name = event.data.get("call")
    if name is None:
        return None
    key = keys.parse(name)
    if key is None or (key not in run.known and keys.seq_of(key) >= (scan.first_seq or 0)):
        scan.findings.add(
            "unknown_call", (event.seq,), f"{event.type} names the call {name!r}, which run {run.name!r} has not"
        )
    return key
