"""What a session file says, read without any code of turnwal: the witness must not share the accused's mistakes."""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

GENESIS = "0" * 64


@dataclass
class Asked:
    """One tool call that a message asks for."""

    call: str
    key: str
    turn: int
    """Seq of the innermost turn of its run that was open then, -1 for none."""
    durable: bool
    """That turn declares durable dispatches."""


@dataclass
class Reading:
    """A session file, judged line by line."""

    events: list[dict[str, Any]] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)
    tail: bytes = b""
    """What stands behind the last record and no damage event covers."""
    covered: int = 0
    """How many torn tails a damage event covers."""
    problems: list[str] = field(default_factory=list)
    asked: dict[str, Asked] = field(default_factory=dict)
    dispatches: Counter[str] = field(default_factory=Counter)
    """How often each idempotency key was dispatched."""
    dispatched: set[str] = field(default_factory=set)
    """The calls that were dispatched at least once."""
    real: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The results that a tool gave."""
    stand_in: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The results that stand in for one: synthetic, or of a risk class."""
    rejected: set[str] = field(default_factory=set)
    suspended: set[str] = field(default_factory=set)
    granted: set[str] = field(default_factory=set)

    @property
    def answered(self) -> set[str]:
        return self.real.keys() | self.stand_in.keys() | self.rejected


def read_log(data: bytes) -> Reading:
    """Read a file: what chains is an event, what does not must be covered by the damage event that follows it."""
    reading = Reading()
    position = 0
    loose_from: int | None = None
    while position < len(data):
        newline = data.find(b"\n", position)
        line = data[position:newline] if newline >= 0 else data[position:]
        event = _record(line, reading)
        if newline < 0 and (event is None or loose_from is not None):
            break
        if event is None:
            loose_from = position if loose_from is None else loose_from
        else:
            if loose_from is not None:
                _check_cover(event, data[loose_from:position], reading)
                loose_from = None
            elif event["type"] == "damage":
                reading.problems.append(f"damage at seq {event['seq']} covers nothing")
            reading.events.append(event)
            reading.hashes.append(hashlib.sha256(line).hexdigest())
        # a whole record that lacks its newline counts: the next owner gives it one
        position = newline + 1 if newline >= 0 else len(data)
    reading.tail = data[position if loose_from is None else loose_from :]
    _structure(reading)
    return reading


def _record(line: bytes, reading: Reading) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    prev = reading.hashes[-1] if reading.hashes else GENESIS
    if not isinstance(event, dict) or event.get("seq") != len(reading.hashes) or event.get("prev") != prev:
        return None
    return event


def _check_cover(event: dict[str, Any], loose: bytes, reading: Reading) -> None:
    data = event["data"]
    length = data.get("length", -1)
    named = loose[:length]
    rest = loose[length:]
    sound = event["type"] == "damage" and hashlib.sha256(named).hexdigest() == data["sha256"] and rest in (b"", b"\n")
    if not sound:
        reading.problems.append(f"{len(loose)} bytes before seq {event['seq']} are no record and not covered")
    reading.covered += sound


def _structure(reading: Reading) -> None:
    turns: dict[str, list[tuple[int, bool]]] = {}
    for event, line_hash in zip(reading.events, reading.hashes, strict=True):
        data, stack = event["data"], turns.setdefault(event.get("run", "main"), [])
        match event["type"]:
            case "turn_start":
                stack.append((event["seq"], data.get("dispatch") == "durable"))
            case "turn_end" if stack:
                stack.pop()
            case "turn_end":
                reading.problems.append(f"turn_end at seq {event['seq']} ends nothing")
            case "assistant_message":
                _message(reading, event["seq"], line_hash, data["parts"], stack[-1] if stack else (-1, False))
            case _:
                _about_call(reading, event["type"], event["seq"], data)


def _message(reading: Reading, seq: int, line_hash: str, parts: list[dict[str, Any]], turn: tuple[int, bool]) -> None:
    for index, part in enumerate(parts):
        if part["type"] == "tool_call":
            key = hashlib.sha256(f"turnwal key\n{line_hash}\n{index}".encode()).hexdigest()[:32]
            reading.asked[f"{seq}.{index}"] = Asked(f"{seq}.{index}", key, *turn)


def _about_call(reading: Reading, type: str, seq: int, data: dict[str, Any]) -> None:
    if type == "tool_call":
        reading.dispatches[data["key"]] += 1
        reading.dispatched.add(data["call"])
    elif type == "tool_result":
        _result(reading, seq, data)
    elif type == "tool_suspended":
        reading.suspended.add(data["call"])
    elif type == "approval_response" and data["decision"] == "granted":
        reading.granted.add(data["call"])
        reading.suspended.discard(data["call"])


def _result(reading: Reading, seq: int, data: dict[str, Any]) -> None:
    call, metadata = data["call"], data.get("metadata", {})
    if call in reading.answered:
        reading.problems.append(f"a second result of call {call} at seq {seq}")
    if metadata.get("rejected"):
        reading.rejected.add(call)
    elif metadata.get("synthetic") or "risk" in metadata:
        reading.stand_in[call] = metadata
    else:
        reading.real[call] = data
