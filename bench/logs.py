"""Long logs to measure on, made with the line's own producer and written as a store would keep them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turnwal.core.chain import EMPTY, Head, after
from turnwal.core.line import make
from turnwal.core.log import draft

PAYLOAD = "y" * 2_050
TURN = 8
"""Events of one turn."""


def events(turns: int, *, one_turn: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """The types and data of a session of many turns of one call each, or of one long turn of many steps."""
    yield "session_start", {"id": "s", "format": 1, "nonce": "0" * 32, "hash": "sha256"}
    seq = 1
    hints: dict[str, Any] = {"open": [], "waiting": []}
    for number in range(1, turns + 1):
        if not one_turn or number == 1:
            data = {"format": 1, "turn": number, "dispatch": "durable", "open": [seq], "waiting": []}
            yield "turn_start", data
            yield "user_message", {"parts": [{"type": "text", "content": PAYLOAD}]}
            seq += 2
        yield "step_start", {"turn": number, "step": 1}
        asked = seq + 1
        call = {"call": f"{asked}.1", "id": f"call_{number}", "name": "pay"}
        part = {"type": "tool_call", "id": call["id"], "name": "pay", "arguments": f'{{"order":{number}}}'}
        yield "assistant_message", {"parts": [{"type": "text", "content": PAYLOAD}, part]}
        yield "tool_call", call | {"arguments": part["arguments"], "key": f"{number:032x}"}
        yield "tool_result", call | {"parts": [{"type": "text", "content": PAYLOAD}], "is_error": False}
        yield "step_end", {"turn": number, "step": 1, "outcome": "ok"}
        seq += 5
        if not one_turn or number == turns:
            closed = 1 if one_turn else number
            yield "turn_end", {"turn": closed, "steps": 1, "reason": "complete", "format": 1, **hints}
            seq += 1


def crash(head: Head) -> list[bytes]:
    """The lines of a turn behind `head` that a crash broke off while its one call ran."""
    opened = head.count
    part = {"type": "tool_call", "id": "last", "name": "pay", "arguments": "{}"}
    lines = []
    for type, data in (
        ("turn_start", {"format": 1, "turn": opened, "dispatch": "durable", "open": [opened], "waiting": []}),
        ("step_start", {"turn": opened, "step": 1}),
        ("assistant_message", {"parts": [part]}),
        ("tool_call", {"call": f"{opened + 2}.0", "id": "last", "name": "pay", "arguments": "{}"}),
    ):
        line, event = make(draft(type, data, run="main", time=1, ignorable=False, head=head))
        head = after(line, event)
        lines.append(line)
    return lines


def write(path: Path, turns: int, *, one_turn: bool = False, crashed: bool = False) -> tuple[int, int]:
    """Write such a session; returns how many events it has before a crash, and its bytes."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    head = EMPTY
    size = 0
    with path.open("wb") as file:
        for type, data in events(turns, one_turn=one_turn):
            line, event = make(draft(type, data, run="main", time=1, ignorable=False, head=head))
            head = after(line, event)
            size += file.write(line + b"\n")
        for line in crash(head) if crashed else ():
            size += file.write(line + b"\n")
    return head.count, size
