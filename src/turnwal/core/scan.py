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

import msgspec

from turnwal.core import keys
from turnwal.core.calls import (
    Attempt,
    Call,
    Dispatch,
    Question,
    Run,
    Step,
    Turn,
    arguments_of,
    id_of,
    is_synthetic,
    name_of,
)
from turnwal.core.findings import Findings
from turnwal.core.limits import TIME_MS_MAX
from turnwal.core.line import Event, compact
from turnwal.core.pairing import matches
from turnwal.core.types import BOUNDARIES

_fingerprint = msgspec.json.Encoder().encode

RETRY_FROM: Final = 2
"""The first attempt that is a repeat: it is closed by an outcome, never by a second result."""


class Scan:
    """The state of a log up to the last event that was fed."""

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
        self.asks: list[tuple[int, int]] | None = None
        """When a list: gets the key and the seq of each message that asks for a call, repeats included."""
        self.asked_last: dict[int, int] = {}
        """Of the last assistant message: part index to packed key of the call that the part asks for."""
        self._clock = -TIME_MS_MAX
        self._idle = False
        self._handlers: Final[Mapping[str, Callable[[Event, Run], None]]] = {
            "turn_start": self._turn_start,
            "turn_end": self._turn_end,
            "step_start": self._step_start,
            "step_end": self._step_end,
            "assistant_message": self._assistant_message,
            "tool_call": self._tool_call,
            "tool_result": self._tool_result,
            "tool_outcome": self._tool_outcome,
            "tool_suspended": self._tool_suspended,
            "approval_request": self._approval_request,
            "approval_response": self._approval_response,
            "damage": self._damage,
            "session_copied": self._session_copied,
        }

    def feed(self, event: Event) -> None:
        """Read the next event."""
        type, time = event.type, event.time
        if time < self._clock:
            self.findings.add("clock_went_back", (event.seq,), f"{self._clock - time} ms before the event before it")
        self._clock = time
        if self.first_seq is None:
            self._begin(event)
        self.last_seq = event.seq
        if type == "session_resume":
            self._idle = True
            return
        if type != "damage":
            self.time = time
            if self._idle and not is_repair(event):
                self._idle = False
        handler = self._handlers.get(type)
        if handler is not None:
            handler(event, self.runs.get(event.run) or self.run(event.run))

    def feed_all(self, events: Iterable[Event]) -> "Scan":
        """Read events in order; returns the scan itself."""
        for event in events:
            self.feed(event)
        return self

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
        return sorted(turn.seq for run in self.runs.values() for turn in run.turns)

    def waiting(self) -> list[dict[str, Any]]:
        """What a boundary records as `waiting`: call, id, name, and the run where it is not `main`."""
        found = [
            (call.key, call.named() | ({} if run.name == "main" else {"run": run.name}))
            for run in self.runs.values()
            for call in run.unanswered()
            if call.waiting is not None
        ]
        return [named for _, named in sorted(found, key=lambda pair: pair[0])]

    def _begin(self, event: Event) -> None:
        """Take the waiting calls from the boundary that a scan of a tail begins with."""
        self.first_seq = event.seq
        if event.seq == 0 or event.type not in BOUNDARIES:
            return
        for entry in event.data.get("waiting", ()):
            key = keys.parse(entry.get("call"))
            if key is not None and keys.seq_of(key) < event.seq:
                run = self.run(entry["run"] if isinstance(entry.get("run"), str) else "main")
                call = Call(key, id_of(entry), name_of(entry), None, waiting=event.seq, asked_at=keys.seq_of(key))
                run.kept[key] = call
                run.known[key] = 0

    # Turns and steps

    def _turn_start(self, event: Event, run: Run) -> None:
        if run.turns:
            outer = run.turns[-1]
            self.findings.add("nested_turn", (outer.seq, event.seq), "a turn started while another was open")
        run.turns.append(Turn(event.seq, _number(event.data, "turn"), dispatch_of(event.data)))

    def _turn_end(self, event: Event, run: Run) -> None:
        number = _number(event.data, "turn")
        turn = next((turn for turn in reversed(run.turns) if number is None or turn.number == number), None)
        if turn is None:
            if event.seq != self.first_seq or event.seq == 0:
                self.findings.add("stray_turn_end", (event.seq,), "it ends a turn that is not open")
            return
        if turn is not run.turns[-1]:
            inner = run.turns[-1]
            self.findings.add(
                "turns_overlap", (turn.seq, inner.seq, event.seq), "the outer turn ended before the inner one"
            )
        for step in turn.steps:
            step.close()
            self.findings.add("step_open_at_turn_end", (step.seq, event.seq), "the turn ended while the step was open")
        run.turns.remove(turn)
        for call in turn.calls.values():
            call.turn = None
            if call.stays:
                run.kept[call.key] = call
            else:
                note_dangling(self.findings, call, "of a turn that has ended")
        note_unrequested(self.findings, turn, self.first_seq)

    def _step_start(self, event: Event, run: Run) -> None:
        if run.turns:
            dispatch = dispatch_of(event.data)
            turn = run.turns[-1]
            turn.steps.append(Step(event.seq, _number(event.data, "step"), weak=dispatch == "none"))
            turn.step_count += 1

    def _step_end(self, event: Event, run: Run) -> None:
        if not run.turns:
            return
        steps = run.turns[-1].steps
        if steps:
            steps.pop().close()
        else:
            self.findings.add("stray_step_end", (event.seq,), "no step of the innermost open turn is open")

    # What a message asks for

    def _assistant_message(self, event: Event, run: Run) -> None:
        turn = run.turn
        complete = event.data.get("complete") is not False
        earlier = self._earlier_parts(run, event) if "completes" in event.data else {}
        moved = False
        parts_keys: dict[int, int] = {}
        taken: set[int] = set()
        for index, part in asking_parts(event):
            own = keys.pack(event.seq, index)
            if index in earlier:
                key = earlier.pop(index)
                self._asked_anew(run, key, part, complete=complete)
            else:
                key = self._asked(event, run, turn, own, part, taken, complete=complete)
            parts_keys[index] = key
            moved = moved or key != own
            taken.add(key)
            if self.asks is not None:
                self.asks.append((key, event.seq))
        for key in earlier.values():
            gone = run.find(key)
            if gone is not None:
                gone.asked = False
        self.asked_last = parts_keys
        if moved:
            turn.messages[event.seq] = parts_keys

    def _earlier_parts(self, run: Run, event: Event) -> dict[int, int]:
        """Part index to key of the version that a message completes, calls that have their result included."""
        seq = event.data.get("completes")
        if not isinstance(seq, int) or seq >= event.seq:
            return {}
        found: dict[int, int] = {}
        for turn in (*run.turns, run.outside):
            if seq in turn.messages:
                return dict(turn.messages[seq])
            found |= {keys.index_of(key): key for key in turn.calls if keys.seq_of(key) == seq}
        own = {index: keys.pack(seq, index) for index, _ in asking_parts(event)}
        found |= {index: key for index, key in own.items() if key in run.known}
        found.pop(keys.DISPATCH_INDEX, None)
        return found

    def _asked_anew(self, run: Run, key: int, part: Mapping[str, Any], *, complete: bool) -> None:
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
            call.free_text = part.get("format") == "text"
            turn.add(call)

    def _asked(
        self, event: Event, run: Run, turn: Turn, own: int, part: Mapping[str, Any], taken: set[int], *, complete: bool
    ) -> int:
        """A part asks for a call; returns the key of that call, which may be one that was met before."""
        id, name, arguments = id_of(part), name_of(part), arguments_of(part)
        step = turn.step
        before = step.calls if step is not None else turn.by_id.get(id, {}).values()
        call = next((call for call in before if call.key not in taken and call.same(id, name, arguments)), None)
        if call is not None:
            if call.requested and call.asked and complete:
                self.findings.add(
                    "duplicate_call", (keys.seq_of(call.key), event.seq), f"call {keys.text(call.key)} again"
                )
            call.name, call.arguments = name, arguments
            call.requested = True
            call.asked = call.asked or complete
            turn.unrequested.pop(call.key, None)
            return call.key
        if run.find(own) is not None:  # dispatched by its key before it was asked for
            self._asked_anew(run, own, part, complete=complete)
            return own
        call = Call(
            own, id, name, arguments, part.get("format") == "text", complete, requested=True, asked_at=event.seq
        )
        call.step = step
        if step is not None:
            step.calls.append(call)
        elif not turn.dispatched.isdisjoint(call.fingerprints()):
            call.maybe = turn.first_dispatch
        if own in run.known:  # dispatched and answered by its key before it was asked for
            call.maybe = event.seq
        turn.add(call)
        run.known[own] = 0
        return own

    # What happens to a call

    def _tool_call(self, event: Event, run: Run) -> None:
        data = event.data
        turn = run.turn
        if turn.first_dispatch is None:
            turn.first_dispatch = event.seq
        attempt = data.get("attempt", 1)
        if attempt >= RETRY_FROM:
            key = self._retried(event, run)
            turn.attempts[key, attempt] = Attempt(key, id_of(data), name_of(data), attempt, event.seq)
            call = run.find(key)
            if call is not None and key in run.known:  # a repeat of what never had a result is its dispatch too
                self._dispatched(event, run, turn, call)
            return
        key_named = keys.parse(data.get("call"))
        if data.get("call") is not None and key_named is not None:
            call = run.find(key_named)
            if call is None and run.known.get(key_named, 0) != 0:
                return
            if call is None:
                call = self._unasked(event, run, turn, key_named)
        else:
            found = self._dispatched_without_key(event, run, turn)
            if found is None:
                return
            call = found
        self._dispatched(event, run, turn, call)

    def _dispatched_without_key(self, event: Event, run: Run, turn: Turn) -> Call | None:
        data = event.data
        id, name, arguments = id_of(data), name_of(data), arguments_of(data)
        found = matches(run, id, name, arguments, dispatchable)
        if found:
            alike = [match.call for match in found if match.fits_like(found[0])]
            for call in alike if len(alike) > 1 else ():
                call.maybe = event.seq
            return found[0].call
        for match in matches(run, id, name, arguments, lambda call: call.dispatched is not None):
            if match.call.same(id, name or match.call.name, arguments or match.call.arguments):
                return None
        return self._unasked(event, run, turn, keys.pack(event.seq, keys.DISPATCH_INDEX))

    def _retried(self, event: Event, run: Run) -> int:
        """The key of the call that a later attempt repeats; without a key it may be any that fits."""
        key, data = self._named(run, event), event.data
        if key is not None:
            return key
        found = matches(run, id_of(data), name_of(data), arguments_of(data), dispatchable)
        for match in found:
            match.call.maybe = event.seq
        key = self._answered_by_id(run, id_of(data))
        if key is not None:
            return key
        return found[0].call.key if found else keys.pack(event.seq, keys.DISPATCH_INDEX)

    def _unasked(self, event: Event, run: Run, turn: Turn, key: int) -> Call:
        """A call that is met first by its dispatch."""
        met = run.find(key)
        if met is not None:
            return met
        data = event.data
        call = Call(key, id_of(data), name_of(data), arguments_of(data), asked_at=min(event.seq, keys.seq_of(key)))
        call.step = turn.step
        if call.step is not None:
            call.step.calls.append(call)
        turn.add(call)
        if key not in run.known:
            turn.unrequested[key] = event.seq
        run.known[key] = 0
        return call

    def _dispatched(self, event: Event, run: Run, turn: Turn, call: Call) -> None:
        data = event.data
        if call.turn is not turn:
            run.drop(call)
            turn.add(call)
        call.waiting = None
        call.dispatched = event.seq
        call.name = call.name if call.name is not None else name_of(data)
        call.arguments = call.arguments if call.arguments is not None else arguments_of(data)
        call.hints, call.hints_from = data.get("hints"), data.get("hints_from")
        call.keyed = data.get("keyed") is True
        call.idempotency_key, call.child = data.get("key"), data.get("child")
        turn.dispatched.add(call.fingerprint())
        if not call.requested and call.key not in run.known:
            turn.unrequested.setdefault(call.key, event.seq)

    def _tool_result(self, event: Event, run: Run) -> None:
        data = event.data
        if data.get("replace") is not None:
            return
        content = content_of(data)
        if "call" in data:
            key = self._named(run, event)
            if key is None:
                return
            call = run.find(key)
            if call is None:
                before = run.known.get(key, 0)
                if before:
                    self._duplicate(event, keys.text(key), same=before == content)
                elif keys.seq_of(key) < event.seq:
                    run.known[key] = content
                return
        else:
            found = self._answered_without_key(event, run, content)
            if found is None:
                return
            call = found
        self._answer(event, run, call, content)

    def _answered_without_key(self, event: Event, run: Run, content: int) -> Call | None:
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
                    self._duplicate(event, f"of id {id!r}", same=step.answered[id][1] == content)
                    return None
        self.findings.add("orphan_result", (event.seq,), f"no call of id {id!r} could be answered here")
        return None

    def _answer(self, event: Event, run: Run, call: Call, content: int) -> None:
        if call.dispatched is None and call.turn is not None and not is_synthetic(event.data):
            call.turn.blind = event.seq
        run.drop(call)
        run.known[call.key] = content
        call.answered = True
        call.waiting = None
        if call.step is not None and not call.step.closed:
            call.step.answered[call.id] = (event.seq, content)
        if self.pairs is not None:
            self.pairs.append((call.key, event.seq))

    def _duplicate(self, event: Event, which: str, *, same: bool) -> None:
        says = "the same content" if same else "different content"
        self.findings.add("duplicate_result", (event.seq,), f"call {which} has a result already; this one has {says}")

    def _tool_outcome(self, event: Event, run: Run) -> None:
        number = event.data.get("attempt", 1)
        if number < RETRY_FROM:
            return
        key, id = keys.parse(event.data.get("call")), id_of(event.data)
        for turn in reversed(run.turns or [run.outside]):
            for at, attempt in turn.attempts.items():
                if attempt.number == number and (attempt.key == key if key is not None else attempt.id == id):
                    del turn.attempts[at]
                    return

    def _tool_suspended(self, event: Event, run: Run) -> None:
        call = self._about(event, run, anything)
        if call is not None:
            call.waiting = event.seq

    def _approval_request(self, event: Event, run: Run) -> None:
        call = self._about(event, run, lambda call: call.question is None, else_any=True)
        if call is not None:
            call.question, call.question_seq = "pending", event.seq

    def _approval_response(self, event: Event, run: Run) -> None:
        call = self._about(event, run, lambda call: call.question == "pending", else_any=True)
        if call is None:
            return
        call.question, call.question_seq = decision_of(event.data), event.seq
        if call.question == "granted":
            call.granted = True
            call.waiting = None

    def _about(self, event: Event, run: Run, wanted: Callable[[Call], bool], *, else_any: bool = False) -> Call | None:
        """The unanswered call that an approval or suspension means; one known by its key only is kept under it."""
        data = event.data
        if "call" not in data:
            found = matches(run, id_of(data), name_of(data), None, wanted)
            if not found and else_any:
                found = matches(run, id_of(data), name_of(data), None, anything)
            return found[0].call if found else None
        key = self._named(run, event)
        if key is None or run.known.get(key, 0):
            return None
        call = run.find(key)
        if call is None and keys.seq_of(key) < event.seq:
            call = run.kept[key] = Call(key, id_of(data), name_of(data), None, asked_at=keys.seq_of(key))
        return call

    def _named(self, run: Run, event: Event) -> int | None:
        """The key that an event names; noted where its run has no such call."""
        name = event.data.get("call")
        if name is None:
            return None
        key = keys.parse(name)
        if key is None or (key not in run.known and keys.seq_of(key) >= (self.first_seq or 0)):
            self.findings.add(
                "unknown_call", (event.seq,), f"{event.type} names the call {name!r}, which run {run.name!r} has not"
            )
        return key

    def _answered_by_id(self, run: Run, id: str) -> int | None:
        for turn in run.scope():
            for step in reversed(turn.steps):
                for call in reversed(step.calls):
                    if call.id == id:
                        return call.key
        return None

    # The log itself

    def _damage(self, event: Event, _: Run) -> None:
        data = event.data
        kind = data.get("kind")
        self.findings.add("damage", (event.seq,), f"{data.get('length', '?')} bytes that are no record ({kind})")
        if self._idle:
            return
        after = data["after"] if isinstance(data.get("after"), int) else event.seq - 1
        if kind == "torn":
            if after >= self.torn_after:
                self.torn_after, self.torn_seq = after, event.seq
        elif after >= self.lost_after:
            self.lost_after, self.lost_seq = after, event.seq

    def _session_copied(self, event: Event, _: Run) -> None:
        self.copied_seq = event.seq


def anything(_: Call) -> bool:
    """Let every unanswered call be meant."""
    return True


def dispatchable(call: Call) -> bool:
    """Whether a dispatch without a key may mean the call."""
    return call.dispatched is None or call.waiting is not None


def asking_parts(event: Event) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The parts of a message that ask for calls, with their index."""
    for index, part in enumerate(event.data.get("parts", ())):
        if part.get("type") == "tool_call":
            yield index, part


def content_of(data: Mapping[str, Any]) -> int:
    """A hash of what a result says, never 0."""
    content = [data.get("parts", []), data.get("is_error", False)]
    try:
        return hash(_fingerprint(content)) or 1
    except (ValueError, OverflowError, RecursionError):  # lone surrogates, integers of thousands of digits
        return hash(compact(content)) or 1


def is_repair(event: Event) -> bool:
    """Whether an event is one that recovery appends."""
    data = event.data
    match event.type:
        case "tool_result" | "tool_outcome":
            return is_synthetic(data)
        case "approval_response":
            return data.get("decision") == "void"
        case "step_end":
            return data.get("outcome") == "interrupted"
        case "turn_end":
            return data.get("reason") == "interrupted"
        case _:
            return False


def dispatch_of(data: Mapping[str, Any]) -> Dispatch | None:
    """What a turn or step declares about its dispatches; an unknown value is read as `none`."""
    declared = data.get("dispatch")
    if declared is None:
        return None
    return "durable" if declared == "durable" else "none"


def decision_of(data: Mapping[str, Any]) -> Question:
    """What an approval response decides; an unknown value is read as a grant, which rules nothing out."""
    match data.get("decision"):
        case "denied":
            return "denied"
        case "void":
            return "void"
        case _:
            return "granted"


def note_dangling(findings: Findings, call: Call, where: str) -> None:
    """Note a call that has no result and will get none, if it was asked for or dispatched."""
    if call.dispatched is not None:
        findings.add(
            "dangling_call", (call.asked_at, call.dispatched), f"call {keys.text(call.key)} {where} was dispatched"
        )
    elif call.asked:
        findings.add("dangling_call", (call.asked_at,), f"call {keys.text(call.key)} {where} was not seen dispatched")


def note_unrequested(findings: Findings, turn: Turn, first_seq: int | None) -> None:
    """Note the dispatches of a turn that no message asked for."""
    for key, seq in turn.unrequested.items():
        if keys.seq_of(key) >= (first_seq or 0):
            findings.add("dispatch_without_request", (seq,), f"no message asks for call {keys.text(key)}")


def _number(data: Mapping[str, Any], name: str) -> int | None:
    value = data.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
