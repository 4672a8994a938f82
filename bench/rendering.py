"""What a request costs that a long session makes: again after one more event, and from scratch, for every target."""

import gc
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.rows import Row
from turnwal.core.log import Log
from turnwal.transcript.render import Rendering, render
from turnwal.transcript.targets import TARGETS

MESSAGES = 1_000
"""Visible events: what was asked, replies that ask for a call, results, answers."""

_TEXT = {"type": "text", "content": "The quick brown fox jumps over it. " * 28}
_CALLS = 4
"""In each turn."""
_ROUNDS = 15
_AGAIN_US_MAX = 1_000
_TIMES_MAX = 3


def measure(_: Path) -> Iterator[Row]:
    """The rows of this module."""
    for target in TARGETS:
        rendering = partial(render, target=target)
        again = _best_us(partial(_rendered_before, rendering), rendering)
        what = f"render {MESSAGES:,} messages after one more event, {target}"
        yield Row(what, again, "the allowance", _AGAIN_US_MAX, "at most 1 ms", again <= _AGAIN_US_MAX)
        messages = rendering(session()).messages
        scratch, dumps = _best_us(session, rendering), _best_us(lambda: None, partial(_dumped, messages))
        what = f"render {MESSAGES:,} messages from scratch, {target}"
        yield Row(what, scratch, "json.dumps of them", dumps, f"{_TIMES_MAX} ×", scratch <= _TIMES_MAX * dumps)


def _dumped(messages: list[Any], _: None) -> str:
    return json.dumps(messages)


def session() -> Log:
    """A log as a live session writes it."""
    log = Log()
    log.append("session_start", {"id": "s", "nonce": "0" * 32, "format": 1, "hash": "sha256"})
    turn = visible = 0
    while visible < MESSAGES:
        turn += 1
        log.append("turn_start", {"format": 1, "turn": turn, "dispatch": "durable", "open": [len(log)], "waiting": []})
        log.append("user_message", {"parts": [_TEXT]})
        for step in range(1, _CALLS + 1):
            log.append("step_start", {"turn": turn, "step": step})
            name = {"id": f"toolu_{len(log):08}", "name": "read_file"}
            part = {"type": "tool_call", **name, "arguments": f'{{"path":"src/module_{step}.py"}}'}
            seq = log.append("assistant_message", {"parts": [_TEXT, part]}).seq
            about = {"call": f"{seq}.1", **name}
            log.append("tool_call", {**about, "arguments": part["arguments"], "key": "0" * 32})
            log.append("tool_result", {**about, "parts": [_TEXT], "duration_ms": 3})
            log.append("step_end", {"turn": turn, "step": step, "outcome": "ok"})
        log.append("step_start", {"turn": turn, "step": _CALLS + 1})
        log.append("assistant_message", {"parts": [_TEXT]})
        log.append("step_end", {"turn": turn, "step": _CALLS + 1, "outcome": "ok"})
        log.append("turn_end", {"turn": turn, "steps": _CALLS + 1, "reason": "complete", "open": [], "waiting": []})
        visible += 2 + 2 * _CALLS
    return log


def _rendered_before(rendering: Callable[[Log], Rendering]) -> Log:
    log = session()
    rendering(log)
    log.append("user_message", {"parts": [_TEXT]})
    return log


def _best_us(prepare: Callable[[], Any], work: Callable[[Any], object]) -> float:
    """Microseconds of one call on something fresh: the best of several, since no disk is touched.

    The clock stops when the caller has what was made; letting go of that is the caller's.
    """
    found = []
    for _ in range(_ROUNDS):
        subject = prepare()
        gc.collect()
        started = perf_counter()
        made = work(subject)
        found.append((perf_counter() - started) * 1e6)
        del made
    return min(found)
