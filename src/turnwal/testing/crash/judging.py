"""Holding what the log says against what happened: after each death, and when the agent has come to its end.

Promises: a verdict is taken from the plan before anybody recovers, and held against marks that the dead left outside.
Does not: know what a body did before it was killed in the middle of other code's work; it was entered, and that is all.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from turnwal.core.chain import digest
from turnwal.core.rules import NOT_STARTED
from turnwal.testing.crash.marks import Mark
from turnwal.testing.crash.reading import Clean, Left, Request, Traces, invoked, is_irreversible, request_of
from turnwal.testing.crash.report import Failure
from turnwal.transcript.check import Problem, check
from turnwal.transcript.comparing import compare
from turnwal.transcript.parsing import Log
from turnwal.transcript.render import render

_SHOWN_CHARS_MAX: Final = 300


def after_death(traces: Traces, target: str | None) -> tuple[list[Failure], Counter[str]]:
    """What does not hold when a process has died, and how many calls it leaves in each class."""
    failures = [*_lost(traces), *_unannounced(traces)]
    classes: Counter[str] = Counter()
    for left in traces.sessions.values():
        if left.inspection is None:
            continue
        for repair in left.inspection.plan.lost_calls():
            metadata = repair.data["metadata"]
            classes[metadata.get("basis") or "unknown"] += 1
            if metadata["risk"] == NOT_STARTED:
                failures += _not_started(traces, left, repair.data, f"not started ({metadata['basis']})")
        failures += _transcripts(left, target)
    return failures, classes


def at_the_end(traces: Traces, clean: Clean | None, target: str | None, sent: Iterable[Any]) -> list[Failure]:
    """What does not hold when the agent has come to its end; `clean` is what the run that nobody killed left."""
    failures = [*_lost(traces), *_unannounced(traces), *_changed(traces), *_twice(traces)]
    for left in traces.sessions.values():
        if left.inspection is not None and left.inspection.plan:
            owed = ", ".join(repair.type for repair in left.inspection.plan.repairs)
            failures.append(Failure("left_open", f"session {left.id!r}", "the agent is done", f"still due: {owed}"))
        for event in left.events:
            data = event.data
            told = event.type == "tool_result" and data.get("metadata", {}).get("risk") == NOT_STARTED
            # a call that was dispatched again since has run for that
            if told and data.get("call") not in left.attempted:
                failures += _not_started(traces, left, data, f"not started, in its result at seq {event.seq}")
        failures += _transcripts(left, target)
    if clean is not None:
        failures += _again(traces, clean)
    if target is not None:
        failures += _requests(traces, target, [request_of(each) for each in sent])
    return failures


def _not_started(traces: Traces, left: Left, data: dict[str, Any], said: str) -> Iterator[Failure]:
    about = _named(left, data)
    entered = traces.ran(left.id, data["call"])
    key = left.idempotency_key(data["call"])
    seen = [effect.what for effect in traces.effects if effect.key is not None and effect.key == key]
    if entered:
        yield Failure("not_started_but_ran", about, said, f"its body was entered {_times(entered)}")
    if seen:
        yield Failure("not_started_but_ran", about, said, f"the world shows {_listed(seen)} with its key")


def _lost(traces: Traces) -> Iterator[Failure]:
    for mark in traces.marks:
        if mark.what != "ack":
            continue
        left = traces.sessions.get(mark.session)
        found = {event.seq: line for event, line in zip(left.events, left.lines, strict=True)} if left else {}
        line = found.get(mark.count - 1)
        if line is None or digest(line) != mark.hash:
            happened = "it is not there" if line is None else "another one stands there"
            about = f"event {mark.count - 1} of {mark.session!r}"
            yield Failure("acknowledged_lost", about, f"durable, with the hash {mark.hash}", happened)


def _unannounced(traces: Traces) -> Iterator[Failure]:
    dispatched = {key for left in traces.sessions.values() for key in left.dispatched}
    for effect in traces.effects:
        if effect.key is not None and effect.key not in dispatched:
            yield Failure("unannounced", effect.what, f"no dispatch has the key {effect.key}", "the world shows it")


def _changed(traces: Traces) -> Iterator[Failure]:
    for mark in traces.of_bodies("changed"):
        happened = "what the world shows was another thing behind its body than before"
        yield Failure("read_only_changed", _marked(mark), "read-only", happened)


def _twice(traces: Traces) -> Iterator[Failure]:
    """Calls of which more than one body ran, although only one can be meant to."""
    for (session, call), marks in _by_call(traces).items():
        first = marks[0]
        if not is_irreversible(first) or first.keyed:
            continue
        ended = sum(mark.what != "enter" for mark in marks)
        entered = sum(mark.what == "enter" for mark in marks)
        looked = session in traces.sessions and call in traces.sessions[session].settled
        # of one that was killed in its body it may be known that it did not happen
        if ended > 1 or (entered > 1 and not looked):
            happened = f"it was entered {_times(entered)}, and came to its end {_times(ended)}"
            yield Failure("ran_twice", _marked(first), "neither read-only, idempotent nor keyed", happened)


def _by_call(traces: Traces) -> dict[tuple[str, str], list[Mark]]:
    found: dict[tuple[str, str], list[Mark]] = {}
    for mark in traces.of_bodies("enter", "leave", "raise"):
        found.setdefault((mark.session, mark.call), []).append(mark)
    return found


def _again(traces: Traces, clean: Clean) -> Iterator[Failure]:
    now = traces.clean()
    for what, count in now.done.items():
        wanted = clean.done.get(what, 0)
        if count > wanted:
            marks = [mark for mark in traces.of_bodies("leave") if invoked(mark) == what]
            calls = ", ".join(f"call {mark.call} of {mark.session!r}" for mark in marks)
            meant = f"{_times(wanted)} in the run that nobody killed"
            yield Failure(
                "ran_again", f"{what:.{_SHOWN_CHARS_MAX}}", meant, f"it was done {_times(count)}, for {calls}"
            )
    for what, count in now.shown.items():
        wanted = clean.shown.get(what, 0)
        if count > wanted:
            meant = f"{_times(wanted)} after the run that nobody killed"
            yield Failure("effect_again", what, meant, f"the world shows it {_times(count)}")


def _transcripts(left: Left, target: str | None) -> Iterator[Failure]:
    """What is wrong with what a model would be shown now."""
    if target is None or left.inspection is None:
        return
    for run in sorted(left.runs()):
        shown = left.inspection.render(target, run=run, waiting="placeholder")
        # a finished conversation ends with the model's words, and the user's come before the next request
        problems = [each for each in check(target, shown.messages, system=shown.system) if each.code != "last_role"]
        if problems:
            about = f"run {run!r} of {left.id!r}, for {target}"
            yield Failure("transcript_invalid", about, _problems(problems), "a provider would refuse it")


def _requests(traces: Traces, target: str, sent: list[Request]) -> Iterator[Failure]:
    """What is wrong with what was sent: that a provider refuses it, or that the session never said so."""
    shown: dict[str | None, list[Any]] = {}
    for number, request in enumerate(sent, 1):
        about = f"request {number} of {len(sent)} to {target}"
        problems = check(target, request.messages, system=request.system)
        if problems:
            yield Failure("sent_invalid", about, _problems(problems), "it was sent")
        if request.model not in shown:
            shown[request.model] = list(_ever_shown(traces, target, request.model))
        differences = [compare(target, request.messages, messages) for messages in shown[request.model]]
        if differences and all(differences):
            nearest = min(differences, key=len)
            said = "; ".join(f"{each.code}: {each.message}" for each in nearest)
            yield Failure("sent_differs", about, "what the session shows at any time", f"nearest to it, {said}")


def _ever_shown(traces: Traces, target: str, model: str | None) -> Iterator[Any]:
    """What each session showed its model when something was added to it."""
    for left in traces.sessions.values():
        seen = [at for at, event in enumerate(left.events, 1) if event.type in _SURFACE]
        for run in sorted(left.runs()):
            for at in seen:
                log = Log.read(left.lines[:at])
                yield render(log, target, run=run, model=model, waiting="placeholder").messages


_SURFACE: Final = ("system_message", "user_message", "assistant_message", "tool_result", "tool_outcome")


def _problems(problems: list[Problem]) -> str:
    return "; ".join(f"{each.code} at {each.position}: {each.message}" for each in problems[:3])


def _named(left: Left, data: dict[str, Any]) -> str:
    return f"{left.asked(data['call'])}: {data.get('name')}"


def _marked(mark: Mark) -> str:
    return f"call {mark.call} of {mark.session!r}: {invoked(mark):.{_SHOWN_CHARS_MAX}}"


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _listed(what: list[str]) -> str:
    return ", ".join(map(repr, what[:3]))
