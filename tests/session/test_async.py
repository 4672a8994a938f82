"""The same objects in `async with`: parallel calls, cancellation, shared barriers."""

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest

from tests.session.helpers import DONE, TOOLS, asks, die, reply, results, stored, text_of, types
from turnwal.core.errors import OverLimit, Refused
from turnwal.core.limits import PENDING_EVENTS_MAX
from turnwal.core.recovery import plan
from turnwal.session.journal import Journal
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions


async def nap(seconds: float = 0.0) -> str:
    await asyncio.sleep(seconds)
    return "rested"


def test_an_asynchronous_turn_writes_what_a_synchronous_one_writes(sessions: Sessions) -> None:
    tools = {"pay": TOOLS["pay"]}
    message = reply(asks("pay", order=7))

    async def agent() -> None:
        async with sessions.session("a") as session, session.turn(user="pay 7") as turn:
            while turn.open:
                async with turn.step() as step:
                    await step.arun(step.assistant(message if step.number == 1 else DONE), tools)

    asyncio.run(agent())
    with sessions.session("b") as session, session.turn(user="pay 7") as turn:
        while turn.open:
            with turn.step() as step:
                step.run(step.assistant(message if step.number == 1 else DONE), tools)

    told = [[(event.type, event.data) for event in stored(sessions, id)[1:]] for id in "ab"]
    for events in told:
        for _, data in events:
            data.pop("duration_ms", None)
            data.pop("key", None)
    assert told[0] == told[1]


def test_gathered_calls_are_each_dispatched_before_their_body_and_answered(sessions: Sessions) -> None:
    dispatched: list[int] = []
    ended = [asyncio.Event() for _ in range(6)]
    ended[5].set()

    async def body(n: int) -> int:
        dispatched.append(sum(event.type == "tool_call" for event in stored(sessions, "s")))
        await ended[n + 1].wait()  # the last begins the ending
        ended[n].set()
        return n

    async def agent() -> list[Any]:
        async with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
            calls = step.assistant(reply(*(asks("body", n=n) for n in range(5))))
            return await asyncio.gather(*(call.arun({"body": body}) for call in calls))

    answered = asyncio.run(agent())
    assert [text_of(result) for result in answered] == ["0", "1", "2", "3", "4"]
    assert all(count >= index + 1 for index, count in enumerate(sorted(dispatched)))
    assert [text_of(result) for result in results(stored(sessions, "s"))] == ["4", "3", "2", "1", "0"]


@pytest.mark.parametrize(
    ("parallel", "limit", "most"), [(None, None, 1), (True, None, 6), (True, 2, 2), (3, None, 3), (False, None, 1)]
)
def test_how_many_bodies_run_at_a_time(sessions: Sessions, parallel: Any, limit: int | None, most: int) -> None:
    running = peak = 0
    together = asyncio.Barrier(most)

    async def body() -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await together.wait()
        await asyncio.sleep(0.01)  # one too many would be seen
        running -= 1

    async def agent() -> None:
        async with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
            calls = step.assistant(reply(*(asks("body", str(n)) for n in range(6))))
            await step.arun(calls, {"body": body}, parallel=parallel, limit=limit)

    asyncio.run(agent())
    assert peak == most
    assert len(results(stored(sessions, "s"))) == 6


def test_a_cancelled_call_is_unknown_and_its_waiting_sibling_did_not_run(sessions: Sessions) -> None:
    started = asyncio.Event()

    async def body() -> None:
        started.set()
        await asyncio.sleep(60)

    async def agent() -> None:
        async with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
            await step.arun(step.assistant(reply(asks("body", "a"), asks("body", "b"))), {"body": body})

    async def main() -> None:
        task = asyncio.create_task(agent())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    events = stored(sessions, "s")
    risks = {event.data["id"]: event.data["metadata"]["risk"] for event in results(events)}
    assert risks == {"a": "tool_outcome_unknown", "b": "tool_not_started"}
    assert events[-1].data["reason"] == "cancelled"
    assert not plan(events)


def test_cancelling_a_wait_does_not_cancel_the_write(sessions: Sessions) -> None:
    cancelled = 0

    async def agent() -> None:
        nonlocal cancelled
        async with sessions.session("s") as session:
            for n in range(50):
                session.append("x.note", {"n": n})
                waiting = asyncio.create_task(session.aflush())
                await asyncio.sleep(0)
                cancelled += waiting.cancel()
                with suppress(asyncio.CancelledError):
                    await waiting
            await session.aflush()

    asyncio.run(agent())
    assert cancelled
    assert [event.data["n"] for event in stored(sessions, "s")[1:]] == list(range(50))


def test_synchronous_tools_do_not_stop_the_loop(sessions: Sessions) -> None:
    ticked = threading.Event()

    def body() -> bool:
        return ticked.wait(10)

    async def agent() -> None:
        async with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
            calls = step.assistant(reply(asks("body")))
            running = asyncio.create_task(step.arun(calls, {"body": body}))
            await asyncio.sleep(0.01)
            ticked.set()
            (result,) = await running
            assert text_of(result) == "true"

    asyncio.run(agent())


def test_a_cancelled_opening_gives_the_session_up(sessions: Sessions) -> None:
    async def main() -> None:
        session = sessions.session("s")
        opening = asyncio.create_task(session.__aenter__())
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        async with sessions.session("s", wait=5.0):
            pass

    asyncio.run(main())


def test_over_the_bound_of_pending_events_an_append_under_a_loop_says_so(sessions: Sessions) -> None:
    async def main() -> None:
        async with sessions.session("s") as session:
            for n in range(PENDING_EVENTS_MAX):
                session.append("x.note", {"n": n})
            with pytest.raises(OverLimit, match="not yet durable"):
                session.append("x.note", {})
            await session.aflush()
            session.append("x.note", {"n": -1})

    asyncio.run(main())
    with sessions.session("s") as session:
        for n in range(2 * PENDING_EVENTS_MAX):
            session.append("x.note", {"n": n})
        assert session._journal is not None
        assert len(session._journal.newest()) <= PENDING_EVENTS_MAX


def test_what_an_interrupted_barrier_left_behind_does_not_count_as_pending(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def append(session: Session) -> None:
        session.append("x.note", {})

    def interrupted(_: Journal) -> None:
        raise KeyboardInterrupt

    with sessions.session("s") as session:
        session.flush()
        for n in range(PENDING_EVENTS_MAX):
            session.append("x.note", {"n": n})
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "_trim", interrupted)
            with pytest.raises(KeyboardInterrupt):
                session.flush()

        asyncio.run(append(session))

        assert session.head.count == session.flush().count


def test_waiting_calls_and_late_answers_work_asynchronously(sessions: Sessions) -> None:
    async def agent() -> None:
        async with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
            (call,) = step.assistant(reply(asks("pay", order=7)))
            await call.aask("may I?")
        async with sessions.session("s") as session:
            session.call("4.0").grant(by="ada")
            async with session.turn(resumes="4.0") as turn:
                assert turn.resumed is not None
                await turn.resumed.arun(TOOLS)

    asyncio.run(agent())
    assert text_of(results(stored(sessions, "s"))[0]) == '{"paid":7}'


def test_the_same_call_cannot_run_twice(sessions: Sessions) -> None:
    async def agent() -> None:
        async with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
            (call,) = step.assistant(reply(asks("nap")))
            first, second = await asyncio.gather(
                call.arun({"nap": nap}), call.arun({"nap": nap}), return_exceptions=True
            )
            assert not isinstance(first, BaseException)
            assert isinstance(second, Refused)
            with pytest.raises(Refused, match="named twice"):
                await step.arun([call, call], {"nap": nap})

    asyncio.run(agent())


def test_a_process_that_dies_in_the_middle_of_gathered_calls_leaves_what_the_log_proves(sessions: Sessions) -> None:
    async def agent() -> None:
        session = await sessions.session("s").__aenter__()
        turn = await session.turn(user="go").__aenter__()
        step = await turn.step().__aenter__()
        calls = step.assistant(reply(asks("nap", "a"), asks("nap", "b", seconds=60), asks("nap", "c")))
        await calls[0].arun({"nap": nap})
        running = asyncio.create_task(calls[1].arun({"nap": nap}))
        await asyncio.sleep(0.05)
        die(session)
        running.cancel()

    asyncio.run(agent())
    with sessions.session("s"):
        pass
    risks = {event.data["id"]: event.data.get("metadata", {}).get("risk") for event in results(stored(sessions, "s"))}
    assert risks == {"a": None, "b": "tool_outcome_unknown", "c": "tool_not_started"}
    assert types(stored(sessions, "s"))[-1] == "turn_end"
