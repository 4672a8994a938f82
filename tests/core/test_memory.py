"""What a scan holds is what is open: a turn may be long and a log longer."""

import tracemalloc
from collections.abc import Iterator
from typing import Any

from turnwal.core.line import GENESIS, Event
from turnwal.core.recovery import plan_of
from turnwal.core.scan import Scan

EVENTS = 200_000
PEAK_BYTES_MAX = 60_000_000
STEP_EVENTS = 7
"""A step start, a message with two calls, two dispatches, two results, a step end: eight lines, less the first."""


def one_long_turn(events: int) -> Iterator[Event]:
    """What a session writes that takes thousands of steps in one turn, every call answered but the last two."""
    seq = 0

    def event(type: str, data: dict[str, Any]) -> Event:
        nonlocal seq
        made = Event(seq=seq, prev=GENESIS, time=1_764_500_000_000 + seq, type=type, data=data)
        seq += 1
        return made

    yield event("turn_start", {"format": 1, "turn": 1, "dispatch": "durable", "open": [0], "waiting": []})
    step = 0
    while seq < events:
        step += 1
        yield event("step_start", {"turn": 1, "step": step})
        ids = [f"call_{seq}_{index}" for index in range(2)]
        arguments = [f'{{"path":"file-{seq}-{index}"}}' for index in range(2)]
        asked = [
            {"type": "tool_call", "id": id, "name": "read", "arguments": text}
            for id, text in zip(ids, arguments, strict=True)
        ]
        message = seq
        yield event("assistant_message", {"parts": asked})
        about = [{"call": f"{message}.{index}", "id": ids[index], "name": "read"} for index in range(2)]
        for index in range(2):
            yield event("tool_call", about[index] | {"arguments": arguments[index], "key": f"{seq:032x}"})
        if seq >= events:
            return
        for index in range(2):
            yield event("tool_result", about[index] | {"parts": [{"type": "text", "content": f"{seq} " + "x" * 200}]})
        yield event("step_end", {"turn": 1, "step": step, "outcome": "ok"})


def test_a_scan_of_one_long_turn_holds_little_more_than_its_keys() -> None:
    tracemalloc.start()
    try:
        scan = Scan().feed_all(one_long_turn(EVENTS))
        planned = plan_of(scan)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert scan.last_seq >= EVENTS - STEP_EVENTS
    assert [repair.type for repair in planned.repairs][-1] == "turn_end"
    assert len(planned.repairs) <= 4
    assert peak < PEAK_BYTES_MAX, f"{peak / 1e6:.1f} MB, {peak / scan.last_seq:.0f} MB per million lines"
