"""Running the calls of one reply: which side by side, which one after another, and each result as it comes."""

import contextvars
import queue
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from turnwal.core.errors import Refused
from turnwal.core.line import Event
from turnwal.session.body import Outcome, execute, execute_async
from turnwal.session.tools import Ready, Tools, is_async

if TYPE_CHECKING:
    from turnwal.session.call import Call
    from turnwal.session.session import Session

Parallel = bool | int | None
"""None: only calls of read-only tools run side by side. True: all. False: none. A number: all, so many at once."""


class _Job(NamedTuple):
    call: "Call"
    ready: Ready


def run_calls(session: "Session", calls: "Sequence[Call]", tools: Tools, parallel: Parallel) -> list[Event]:
    """Run calls with synchronous tools; returns their results in call order."""
    results: dict[Call, Event] = {}
    jobs = _prepare(calls, tools, results)
    for job in jobs:
        if is_async(job.ready.function):
            raise Refused(
                "its tool is asynchronous", action="run", subject=f"call {job.call.call_key}", hint="use `arun`"
            )
    width = _width(parallel, None)
    for group in _groups(jobs, parallel):
        if len(group) == 1:
            call, ready = group[0]
            session.durably(call.note_dispatch, ready.hints)
            started = time.monotonic()
            try:
                outcome = execute(ready, call)
            except BaseException:
                call.record_interruption()
                raise
            results[call] = session.durably(call.record, outcome, started)
        else:
            _run_side_by_side(session, group, width, results)
    session.flush()
    return [results[call] for call in calls]


def _run_side_by_side(session: "Session", group: list[_Job], width: int, results: "dict[Call, Event]") -> None:
    """The bodies run in threads of their own; this thread alone records, so an interrupt finds the log in order."""
    done: queue.SimpleQueue[tuple[Call, Outcome, float]] = queue.SimpleQueue()
    started: list[Call] = []
    try:
        while group or started:
            begin, group = group[: width - len(started)], group[width - len(started) :]
            started += [call for call, _ in begin]
            for call, ready in begin:
                call.note_dispatch(ready.hints)
            session.flush()
            for call, ready in begin:
                arguments = (contextvars.copy_context(), call, ready, done)
                threading.Thread(target=_body, args=arguments, daemon=True, name=f"turnwal-{call.call_key}").start()
            call, outcome, began = done.get()
            results[call] = call.record(outcome, began)
            started.remove(call)
        session.flush()
    except BaseException:
        for call in started:
            call.record_interruption()
        raise


def _body(
    context: contextvars.Context, call: "Call", ready: Ready, done: "queue.SimpleQueue[tuple[Call, Outcome, float]]"
) -> None:
    started = time.monotonic()
    try:
        outcome = context.run(execute, ready, call)
    except BaseException as stop:  # noqa: BLE001 - a thread that ends without a word would be waited for for ever
        outcome = Outcome(unknown=RuntimeError(f"the tool was stopped by {type(stop).__name__}"))
    done.put((call, outcome, started))


async def arun_calls(
    session: "Session", calls: "Sequence[Call]", tools: Tools, parallel: Parallel, limit: int | None
) -> list[Event]:
    """Run calls with tools of both kinds; returns their results in call order."""
    results: dict[Call, Event] = {}
    jobs = _prepare(calls, tools, results)
    width = _width(parallel, limit)
    for group in _groups(jobs, parallel):
        await _arun_side_by_side(session, group, width, results)
    await session.aflush()
    return [results[call] for call in calls]


async def _arun_side_by_side(session: "Session", group: list[_Job], width: int, results: "dict[Call, Event]") -> None:
    import asyncio  # noqa: PLC0415 - a synchronous program never pays for it

    slots = asyncio.Semaphore(min(width, len(group)))

    async def one(call: "Call", ready: Ready) -> None:
        async with slots:
            call.note_dispatch(ready.hints)
            try:
                await session.aflush()
                started = time.monotonic()
                outcome = await execute_async(ready, call)
            except BaseException:
                call.note_interruption()
                raise
            results[call] = call.record(outcome, started)
            await session.aflush()

    tasks = [asyncio.ensure_future(one(call, ready)) for call, ready in group]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _prepare(calls: "Sequence[Call]", tools: Tools, results: "dict[Call, Event]") -> list[_Job]:
    """Fit every call to its tool before any is dispatched; answers those that do not fit."""
    if len(set(calls)) != len(calls):
        raise Refused("a call is named twice", action="run", hint="pass each call once")
    fitted = [(call, call.prepare(tools)) for call in calls]
    jobs = []
    for call, ready in fitted:
        if isinstance(ready, Ready):
            jobs.append(_Job(call, ready))
        else:
            results[call] = call.note_rejection(ready)
    return jobs


def _groups(jobs: list[_Job], parallel: Parallel) -> list[list[_Job]]:
    """The calls that may run at the same time, in order."""
    if parallel is not None:
        together = parallel is not False
        return [jobs] if together and jobs else [[job] for job in jobs]
    groups: list[list[_Job]] = []
    for job in jobs:
        joins = bool(groups) and job.ready.hints.read_only and groups[-1][0].ready.hints.read_only
        if joins:
            groups[-1].append(job)
        else:
            groups.append([job])
    return groups


def _width(parallel: Parallel, limit: int | None) -> int:
    """At most how many bodies run at a time."""
    widths = [width for width in (limit, parallel) if width is not None and not isinstance(width, bool)]
    if any(width < 1 for width in widths):
        raise Refused(f"{min(widths)} at a time is none", action="run", hint="pass 1 or more")
    return min(widths, default=1 << 30)
