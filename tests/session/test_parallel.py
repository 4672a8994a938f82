"""Synchronous calls side by side: order, bounds, interrupts."""

import _thread
import threading
import time
from typing import Any

import pytest

import turnwal
from tests.session.helpers import TOOLS, asks, look, reply, results, stored, text_of, types
from turnwal.core.errors import Refused
from turnwal.session.sessions import Sessions


def run(sessions: Sessions, parts: list[dict[str, Any]], tools: Any, **options: Any) -> list[str]:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        return [text_of(result) for result in step.run(step.assistant(reply(*parts)), tools, **options)]


def test_read_only_calls_run_side_by_side_and_the_others_one_after_another(sessions: Sessions) -> None:
    meet = threading.Barrier(2, timeout=10)
    alone: list[str] = []

    @turnwal.tool(read_only=True)
    def together(n: int) -> int:
        meet.wait()
        return n

    def change(n: int) -> int:
        alone.append(f"+{n}")
        time.sleep(0.01)
        alone.append(f"-{n}")
        return n

    parts = [asks("together", n=0), asks("together", n=1), asks("change", n=2), asks("change", n=3)]
    assert run(sessions, parts, {"together": together, "change": change}) == ["0", "1", "2", "3"]
    assert alone == ["+2", "-2", "+3", "-3"]
    told = types(stored(sessions, "s"))[5:-2]
    assert told == ["tool_call", "tool_call", "tool_result", "tool_result"] + ["tool_call", "tool_result"] * 2


@pytest.mark.parametrize(("parallel", "most"), [(True, 6), (2, 2), (False, 1), (1, 1)])
def test_how_many_bodies_run_at_a_time(sessions: Sessions, parallel: Any, most: int) -> None:
    lock = threading.Lock()
    running = peak = 0
    together = threading.Barrier(most)

    def body(n: int) -> int:
        nonlocal running, peak
        with lock:
            running += 1
            peak = max(peak, running)
        together.wait(30)
        time.sleep(0.01)  # one too many would be seen
        with lock:
            running -= 1
        return n

    assert run(sessions, [asks("body", n=n) for n in range(6)], {"body": body}, parallel=parallel) == list("012345")
    assert peak == most


def test_results_are_recorded_as_they_come(sessions: Sessions) -> None:
    def body(n: int) -> int:
        while n == 0 and not results(stored(sessions, "s")):
            time.sleep(0.005)
        return n

    parts = [asks("body", n=0), asks("body", n=1)]
    assert run(sessions, parts, {"body": body}, parallel=True) == ["0", "1"]
    assert [text_of(result) for result in results(stored(sessions, "s"))] == ["1", "0"]


def test_an_interrupt_records_what_ran_as_unknown_and_keeps_what_came(sessions: Sessions) -> None:
    def body(n: int) -> int:
        if n == 0:
            return n
        time.sleep(0.05)
        _thread.interrupt_main()
        time.sleep(1)
        return n

    with pytest.raises(KeyboardInterrupt):
        run(sessions, [asks("body", n=n) for n in range(3)], {"body": body}, parallel=2)

    risks = {event.data["call"]: event.data.get("metadata", {}).get("risk") for event in results(stored(sessions, "s"))}
    assert risks == {"4.0": None, "4.1": "tool_outcome_unknown", "4.2": "tool_outcome_unknown"}


def test_no_width_is_refused_before_any_dispatch(sessions: Sessions) -> None:
    with pytest.raises(Refused, match="none"):
        run(sessions, [asks("look")], TOOLS, parallel=-1)


def test_an_empty_list_of_calls_is_no_result(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        assert step.run([], {"look": look}) == []


def test_many_threads_append_and_flush_without_a_gap(sessions: Sessions) -> None:
    def work(name: int) -> None:
        for n in range(40):
            session.append("x.note", {"from": name, "n": n})
            session.flush()

    with sessions.session("s") as session:
        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    events = stored(sessions, "s")
    assert [event.seq for event in events] == list(range(321))
    for name in range(8):
        assert [event.data["n"] for event in events if event.data.get("from") == name] == list(range(40))
