"""The structure of a log, read one event at a time: open turns and steps, and which call each record is about.

Promises:
- One pass; what is held is what is open, plus a few bytes for each call of the session.
- Reading a prefix and then the rest leaves the same state as reading all of it.
- A scan that begins at the oldest open turn comes to the same repairs as one that began at line 0, for every log that
  a session writes.

Does not: judge (see `rules.py`), repair (see `recovery.py`), or raise on odd history (it notes findings).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from turnwal.core import answering, asking, dispatching, keys, structure
from turnwal.core.calls import Call, Run
from turnwal.core.line import Event
from turnwal.core.state import State
from turnwal.core.types import BOUNDARIES
from turnwal.core.values import id_of, is_repair, name_of, number_of


class Scan(State):
    """A state that reads on."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        super().__init__()
        self._timed = False
        self._idle = False
        self._hidden_seq = self._hidden_after = -1
        self._hidden_torn = False

    def feed(self, event: Event) -> None:
        """Read the next event."""
        type, time = event.type, event.time
        if self.first_seq is None:
            self._begin(event)
        self.last_seq = event.seq
        self.about = None
        if type == "session_resume":
            self._idle = True
            return
        if type != "damage":
            if time < self.time and self._timed:
                message = f"{self.time - time} ms before the event before it"
                self.findings.add("clock_went_back", (event.seq,), message)
            self.time = time
            self._timed = True
            if self._idle and not is_repair(event):
                self._idle = False
        handler = _HANDLERS.get(type)
        if handler is not None:
            handler(self, event, self.runs.get(event.run) or self.run(event.run))

    def feed_all(self, events: Iterable[Event]) -> "Scan":
        """Read events in order; returns the scan itself."""
        for event in events:
            self.feed(event)
        return self

    def _begin(self, event: Event) -> None:
        """Take the waiting and the granted calls from the boundary that a scan of a tail begins with."""
        self.first_seq = event.seq
        if event.seq == 0 or event.type not in BOUNDARIES:
            return
        for run, call, entry in self._told(event, "waiting"):
            call.waiting = event.seq
            asked_at = number_of(entry, "question")
            if asked_at is not None:
                call.question, call.question_seq = "pending", asked_at
            run.kept[call.key] = call
        for run, call, _ in self._told(event, "granted"):
            call.granted, call.question = True, "granted"
            run.kept[call.key] = call

    def _told(self, event: Event, name: str) -> Iterator[tuple[Run, Call, Mapping[str, Any]]]:
        """The calls that a boundary names, with their runs and what it says of them."""
        entries = event.data.get(name)
        for entry in entries if isinstance(entries, list) else ():
            key = keys.parse(entry.get("call")) if isinstance(entry, dict) else None
            if key is not None and keys.seq_of(key) < event.seq:
                run = self.run(entry["run"] if isinstance(entry.get("run"), str) else "main")
                run.known[key] = 0
                call = Call(key, id_of(entry), name_of(entry), None, asked_at=keys.seq_of(key))
                call.doubt = entry.get("doubt") not in (None, False)
                yield run, call, entry

    def damaged(self, event: Event) -> None:
        """Note bytes that were lost, and whether they may have held something acknowledged."""
        data = event.data
        kind = data.get("kind")
        self.findings.add("damage", (event.seq,), f"{data.get('length', '?')} bytes that are no record ({kind})")
        after = data["after"] if isinstance(data.get("after"), int) else event.seq - 1
        # recovery's own broken write; what a person gave up for lost may have been acknowledged behind it
        repairing = self._idle and kind != "lost"
        if not (repairing and self.open_seqs()):
            # where every turn is closed, recovery was done, and these bytes may be what its owner went on with
            self._hidden_seq, self._hidden_after, self._hidden_torn = event.seq, after, kind == "torn"
            for run, call in self.held():
                call.doubt = call.doubt or self.hides(run, call.asked_at)
        if repairing:
            return
        if kind == "torn":
            if after >= self.torn_after:
                self.torn_after, self.torn_seq = after, event.seq
        elif after >= self.lost_after:
            self.lost_after, self.lost_seq = after, event.seq

    def hides(self, run: Run, asked_at: int) -> bool:
        """Whether the last event is damage that may have held a dispatch of a call that recovery does not answer, or an
        attempt of one that it answered.

        Torn bytes were never acknowledged, so they count only where the open turn does not declare durable dispatches.
        Where no turn is open, a torn tail says no more than one that is clean: what was not durable is not there.
        """
        if self._hidden_seq != self.last_seq or asked_at > self._hidden_after:
            return False
        return not self._hidden_torn or any(turn.dispatch != "durable" or turn.weak for turn in run.turns[-1:])

    def copied(self, event: Event) -> None:
        """Note that the log was copied while it was open."""
        self.copied_seq = event.seq


_HANDLERS: Final[Mapping[str, Callable[[Scan, Event, Run], None]]] = {
    "turn_start": structure.turn_start,
    "turn_end": structure.turn_end,
    "step_start": structure.step_start,
    "step_end": structure.step_end,
    "assistant_message": asking.assistant_message,
    "assistant_delta": structure.assistant_delta,
    "tool_call": dispatching.tool_call,
    "tool_result": answering.tool_result,
    "tool_outcome": answering.tool_outcome,
    "tool_suspended": answering.tool_suspended,
    "approval_request": answering.approval_request,
    "approval_response": answering.approval_response,
    "damage": lambda scan, event, _: scan.damaged(event),
    "session_copied": lambda scan, event, _: scan.copied(event),
}
