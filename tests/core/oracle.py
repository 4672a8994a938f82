"""What is owed and why, found a second time: slowly, over the whole list, sharing nothing with the code under test.

It knows only logs whose records carry keys, as a session writes them. Every question walks the list from its start.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol


class Recorded(Protocol):
    """What the oracle needs of an event; its seq is its place in the list."""

    @property
    def type(self) -> str: ...
    @property
    def data(self) -> dict[str, Any]: ...
    @property
    def run(self) -> str: ...


Log = Sequence[Recorded]


class Closer(NamedTuple):
    """One expected repair: `about` is a key for what is about a call, the turn's or step's number otherwise."""

    type: str
    run: str
    about: object
    rule: int | None


def repairs(log: Log) -> list[Closer]:
    """Everything that recovery should append, in order."""
    found: list[Closer] = []
    for run in _runs_in_order(log):
        for turn in reversed(_open_turns(log, run, len(log))):
            owed = [key for key in _keys_in_order(log, run) if _owed_in(log, run, key) == turn]
            found += [Closer("tool_result", run, key, _rule(log, run, key, turn)) for key in owed]
            found += [Closer("tool_outcome", run, about, 1) for about in _open_attempts(log, run, turn)]
            found += [
                Closer("approval_response", run, key, None) for key in owed if _question(log, run, key) == "pending"
            ]
            steps = _open_steps(log, run, turn, len(log))
            found += [Closer("step_end", run, log[seq].data.get("step"), None) for seq in reversed(steps)]
            found.append(Closer("turn_end", run, log[turn].data.get("turn"), None))
    return found


def open_seqs(log: Log) -> list[int]:
    """The seqs of every open turn."""
    return sorted(seq for run in {event.run for event in log} for seq in _open_turns(log, run, len(log)))


def waiting(log: Log) -> list[str]:
    """The keys of every waiting call, of any run."""
    found: list[str] = []
    for run in {event.run for event in log}:
        keys = _keys_in_order(log, run)
        found += [key for key in keys if _waits(log, run, key) and not _answered(log, run, key)]
    return sorted(found, key=_order)


def held(log: Log) -> list[str]:
    """The keys of every call that recovery leaves as it is and that may still be dispatched, of any run."""
    found: list[str] = []
    for run in {event.run for event in log}:
        for key in _keys_in_order(log, run):
            free = _granted(log, run, key) and not _dispatches(log, run, key) and _owed_in(log, run, key) is None
            if not _answered(log, run, key) and (_waits(log, run, key) or free):
                found.append(key)
    return sorted(found, key=_order)


def in_doubt(log: Log) -> list[str]:
    """The keys of those of which a dispatch may be lost, and nobody has said since that they did not happen."""
    return [key for key in held(log) if any(_doubts(log, seq, key) for seq in range(len(log)))]


def _doubts(log: Log, seq: int, key: str) -> bool:
    event = log[seq]
    if event.type != "damage" or key not in held(log[:seq]) or _order(key)[0] > event.data["after"]:
        return False
    if any(later.data.get("call") == key and later.data.get("outcome") == "did_not_happen" for later in log[seq:]):
        return False
    if _after_repairs_only(log, seq) and open_seqs(log[:seq]):
        return False
    run = next(run for run in {event.run for event in log} if key in _keys_in_order(log, run))
    turns = _open_turns(log, run, seq)
    if event.data["kind"] != "torn" or not turns:
        return bool(event.data["kind"] != "torn")
    steps = [log[at].data.get("dispatch", "durable") for at in _open_steps(log, run, turns[-1], seq)[-1:]]
    return bool(log[turns[-1]].data.get("dispatch") != "durable") or steps not in ([], ["durable"])


def _granted(log: Log, run: str, key: str) -> bool:
    return any(log[at].data["decision"] == "granted" for at in _about(log, run, key, "approval_response"))


def _runs_in_order(log: Log) -> list[str]:
    busy = {run: turns[0] for run in {event.run for event in log} if (turns := _open_turns(log, run, len(log)))}
    others = sorted((run for run in busy if run != "main"), key=lambda run: busy[run], reverse=True)
    return others + (["main"] if "main" in busy else [])


def _open_turns(log: Log, run: str, end: int) -> list[int]:
    """The turns of a run that are open before `end`, outermost first."""
    open: list[int] = []
    for seq in range(end):
        if log[seq].run != run:
            continue
        if log[seq].type == "turn_start":
            open.append(seq)
        elif log[seq].type == "turn_end":
            same = [turn for turn in open if log[turn].data["turn"] == log[seq].data["turn"]]
            if same:
                open.remove(same[-1])
    return open


def _turn_at(log: Log, run: str, seq: int) -> int | None:
    turns = _open_turns(log, run, seq)
    return turns[-1] if turns else None


def _open_steps(log: Log, run: str, turn: int, end: int) -> list[int]:
    open: list[int] = []
    for seq in range(turn + 1, end):
        if log[seq].run != run or _turn_at(log, run, seq) != turn:
            continue
        if log[seq].type == "step_start":
            open.append(seq)
        elif log[seq].type == "step_end" and open:
            open.pop()
    return open


def _asked(log: Log, seq: int) -> dict[int, str]:
    """Part index to key for the calls that a message asks for."""
    data = log[seq].data
    earlier = _asked(log, data["completes"]) if "completes" in data else {}
    return {
        index: earlier.get(index, f"{seq}.{index}")
        for index, part in enumerate(data["parts"])
        if part["type"] == "tool_call"
    }


def _messages(log: Log, run: str, key: str) -> list[tuple[int, dict[str, Any]]]:
    """Seq and part of every message that asks for a call."""
    return [
        (seq, log[seq].data["parts"][index])
        for seq in range(len(log))
        if log[seq].run == run and log[seq].type == "assistant_message"
        for index, named in _asked(log, seq).items()
        if named == key
    ]


def _about(log: Log, run: str, key: str, *types: str) -> list[int]:
    return [
        seq
        for seq in range(len(log))
        if log[seq].run == run and log[seq].type in types and log[seq].data.get("call") == key
    ]


def _keys_in_order(log: Log, run: str) -> list[str]:
    found = {event.data["call"] for event in log if event.run == run and "call" in event.data}
    for seq in range(len(log)):
        if log[seq].run == run and log[seq].type == "assistant_message":
            found |= set(_asked(log, seq).values())
    return sorted(found, key=_order)


def _order(key: str) -> tuple[int, int]:
    seq, index = key.split(".")
    return int(seq), int(index)


def _first_asked(log: Log, run: str, key: str) -> int:
    return _messages(log, run, key)[0][0]


def _dispatches(log: Log, run: str, key: str) -> list[int]:
    return [seq for seq in _about(log, run, key, "tool_call") if log[seq].data.get("attempt", 1) < 2]


def _answered(log: Log, run: str, key: str) -> bool:
    return bool(_about(log, run, key, "tool_result"))


def _waits(log: Log, run: str, key: str) -> bool:
    last = None
    for seq in _about(log, run, key, "tool_suspended", "tool_call", "tool_result", "approval_response"):
        if log[seq].type != "approval_response" or log[seq].data["decision"] == "granted":
            last = log[seq].type
    return last == "tool_suspended"


def _own_turn(log: Log, run: str, key: str) -> int | None:
    """The turn a call belongs to: where it was dispatched last, or else where it was asked for."""
    dispatches = _dispatches(log, run, key)
    return _turn_at(log, run, dispatches[-1] if dispatches else _first_asked(log, run, key))


def _owed_in(log: Log, run: str, key: str) -> int | None:
    """The open turn in which a call is owed a result, or None."""
    asked = any(log[seq].data.get("complete", True) for seq, _ in _messages(log, run, key))
    if not (asked or _dispatches(log, run, key)) or _answered(log, run, key) or _waits(log, run, key):
        return None
    turn = _own_turn(log, run, key)
    return turn if turn is not None and turn in _open_turns(log, run, len(log)) else None


def _question(log: Log, run: str, key: str) -> str | None:
    last = None
    for seq in _about(log, run, key, "approval_request", "approval_response"):
        last = "pending" if log[seq].type == "approval_request" else log[seq].data["decision"]
    return last


def _open_attempts(log: Log, run: str, turn: int) -> list[tuple[str, int]]:
    found = []
    for seq in range(len(log)):
        event = log[seq]
        if event.run == run and event.type == "tool_call" and event.data.get("attempt", 1) > 1:
            key, attempt = event.data["call"], event.data["attempt"]
            closed = [at for at in _about(log, run, key, "tool_outcome") if log[at].data["attempt"] == attempt]
            if _turn_at(log, run, seq) == turn and not closed:
                found.append((key, attempt))
    return sorted(found, key=lambda about: (_order(about[0]), about[1]))


def _rule(log: Log, run: str, key: str, turn: int) -> int:  # noqa: PLR0911 - the table, row by row
    asked = _first_asked(log, run, key)
    step = next(reversed(_open_steps(log, run, turn, asked)), None)
    says = log[turn].data.get("dispatch")
    weak = step is not None and log[step].data.get("dispatch", "durable") != "durable"
    durable = says == "durable" and not weak
    if _dispatches(log, run, key):
        return 1
    for seq, event in enumerate(log):
        counts = event.type == "damage" and not _after_repairs_only(log, seq) and event.data["after"] >= asked
        if counts and (event.data["kind"] != "torn" or not durable):
            return 2
    if any(event.type == "session_copied" for event in log[asked:]):
        return 3
    if durable:
        return 4
    granted = [at for at in _about(log, run, key, "approval_response") if log[at].data["decision"] == "granted"]
    if _question(log, run, key) in ("pending", "denied") and not granted:
        return 5
    if not _is_object(_messages(log, run, key)[-1][1]["arguments"]):
        return 6
    silent = says not in (None, "durable") or weak or _blind(log, run, turn)
    others = [seq for seq in range(len(log)) if log[seq].run == run and log[seq].type == "tool_call"]
    others = [seq for seq in others if _turn_at(log, run, seq) == turn]
    if others and not silent:
        return 7
    if not others and not silent and step is not None and step not in _open_steps(log, run, turn, len(log)):
        return 8
    return 9


def _blind(log: Log, run: str, turn: int) -> bool:
    """Whether a turn holds a real result of a call of its own that was never dispatched."""
    for seq in range(len(log)):
        event = log[seq]
        if event.run != run or event.type != "tool_result" or event.data.get("metadata", {}).get("synthetic"):
            continue
        key = event.data["call"]
        if not _dispatches(log, run, key) and _own_turn(log, run, key) == turn:
            return True
    return False


def _after_repairs_only(log: Log, seq: int) -> bool:
    """Whether the owner who left the damage had appended nothing but repairs, and nothing was given up for lost."""
    if log[seq].data["kind"] == "lost":
        return False
    for event in reversed(log[:seq]):
        if event.type == "session_resume":
            return True
        if event.type == "damage":
            continue
        data = event.data
        repair = (
            bool(data.get("metadata", {}).get("synthetic"))
            or data.get("decision") == "void"
            or data.get("outcome") == "interrupted"
            or data.get("reason") == "interrupted"
        )
        if not repair:
            return False
    return False


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False
