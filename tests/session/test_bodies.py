"""What comes of a tool's body: what has still to be driven is no value, and says nothing of what was done."""

import asyncio
import functools
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tests.session.helpers import asks, reply, text_of
from turnwal.core.line import Event
from turnwal.session.sessions import Sessions

ran: list[int] = []
"""What the bodies that nobody drives would have done."""


async def refund(order: int = 0) -> str:
    ran.append(order)
    return "refunded"


def steps_of(order: int = 0) -> Iterator[int]:
    ran.append(order)
    yield order


async def later_steps_of(order: int = 0) -> AsyncIterator[int]:
    ran.append(order)
    yield order


def hidden(order: int = 0) -> object:
    return refund(order)


def half_done(order: int = 0) -> object:
    return steps_of(order)


def mapped() -> object:
    return map(ran.append, [1])


def listed() -> object:
    return ["paid", lazily()]


def named() -> object:
    return {"first": mapped()}


async def lazily() -> None:
    ran.append(1)


@pytest.mark.parametrize("tool", [steps_of, later_steps_of, functools.partial(steps_of, order=1)])
@pytest.mark.parametrize("asynchronously", [False, True])
def test_a_generator_is_an_error_and_its_body_did_not_run(
    sessions: Sessions, tool: Callable[..., object], *, asynchronously: bool
) -> None:
    async def main() -> Event:
        async with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
            (call,) = step.assistant(reply(asks("tool")))
            return await call.arun({"tool": tool})

    def run() -> Event:
        with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
            return step.run(step.assistant(reply(asks("tool"))), {"tool": tool})[0]

    result = asyncio.run(main()) if asynchronously else run()
    assert result.data["is_error"] is True
    assert "did not run its body" in text_of(result)
    assert ran == []


@pytest.mark.parametrize("tool", [hidden, half_done, mapped, listed, named])
def test_a_tool_that_returns_what_nobody_drives_has_an_unknown_outcome(
    sessions: Sessions, tool: Callable[..., object]
) -> None:
    with sessions.session("s") as session:
        with session.turn(user="go") as turn, turn.step() as step:
            (result,) = step.run(step.assistant(reply(asks("tool"))), {"tool": tool})
        assert result.data["metadata"]["risk"] == "tool_outcome_unknown"
        assert "which nothing drives" in text_of(result)
        for undriven in (tool, steps_of):
            assert session.call("4.0").retry({"tool": undriven}).data["outcome"] == "unknown"
        assert session.call("4.0").retry({"tool": lambda: "paid"}).data["outcome"] == "happened"
    assert ran == []


def test_a_hidden_coroutine_is_awaited_where_there_is_a_loop(sessions: Sessions) -> None:
    async def nested() -> object:
        return steps_of()

    async def main() -> list[Event]:
        async with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
            calls = step.assistant(reply(asks("lazy"), asks("nested")))
            return await step.arun(calls, {"lazy": hidden, "nested": nested})

    paid, unknown = asyncio.run(main())
    assert text_of(paid) == "refunded"
    assert ran.pop() == 0
    assert unknown.data["metadata"]["risk"] == "tool_outcome_unknown"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="nothing marks such a function before")
def test_what_an_asynchronous_tool_raises_before_its_first_await_is_its_result(sessions: Sessions) -> None:
    def limited() -> None:
        raise ValueError("rate limited")

    tool = inspect.markcoroutinefunction(limited)  # type: ignore[attr-defined]

    async def main() -> Event:
        async with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
            (call,) = step.assistant(reply(asks("tool")))
            return await call.arun({"tool": tool})

    result = asyncio.run(main())
    assert text_of(result) == "ValueError: rate limited"
    assert result.data["is_error"] is True
