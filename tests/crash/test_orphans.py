"""A turn, a step or an ownership that nobody has a handle of any more does not stay behind."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.crash.planted import WrappedClaim, WrappedStore
from turnwal.core.errors import ClosedAfterFailure, InvalidEvent, Refused
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.store.file import FileStore
from turnwal.store.fileclaim import FileClaim
from turnwal.store.protocol import Claim


class Clock:
    """A clock that is interrupted at one of its readings from now on."""

    def __init__(self) -> None:
        self.left: int | None = None

    def __call__(self) -> int:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise KeyboardInterrupt
        return 1_764_500_000_000

    def interrupt_at(self, reading: int) -> None:
        self.left = reading


def take_turn(session: Session) -> None:
    with session.turn(user="hello") as turn, turn.step() as step:
        step.assistant({"parts": [{"type": "text", "content": "hello"}]})


def begin_turn(session: Session) -> None:
    session.open_turn("hello")


def begin_step(session: Session) -> None:
    with session.turn(user="hello") as turn:
        turn.step().begin()


def test_a_turn_whose_input_is_refused_has_not_begun_for_the_next_one(tmp_path: Path) -> None:
    with Sessions(FileStore(tmp_path)).session("s") as session:
        with pytest.raises(InvalidEvent), session.turn(user=[{"type": "text", "content": float("nan")}]):
            pass

        take_turn(session)

        starts = [event for event in session if event.type == "turn_start"]
        ends = [event for event in session if event.type == "turn_end"]
        assert len(starts) == len(ends)


def test_beginning_a_turn_or_a_step_twice_does_not_end_it(tmp_path: Path) -> None:
    with Sessions(FileStore(tmp_path)).session("s") as session, session.turn(user="hello") as turn:
        with pytest.raises(Refused):
            turn.begin()
        with turn.step() as step:
            with pytest.raises(Refused):
                step.begin()
            with pytest.raises(Refused):
                turn.step().begin()
            step.assistant({"parts": [{"type": "text", "content": "hello"}]})

        assert turn.state is not None


@pytest.mark.parametrize("work", [take_turn, begin_turn, begin_step])
@pytest.mark.parametrize("reading", range(8))
def test_after_an_interrupt_the_next_turn_works_or_the_session_says_it_is_closed(
    work: Callable[[Session], None], reading: int, tmp_path: Path
) -> None:
    clock = Clock()
    sessions = Sessions(FileStore(tmp_path), clock=clock)
    interrupted = False
    with sessions.session("s") as session:
        clock.interrupt_at(reading)
        try:
            work(session)
        except KeyboardInterrupt:
            interrupted = True
        clock.left = None
        if interrupted:
            with suppress(ClosedAfterFailure):
                take_turn(session)

    with sessions.session("s") as session:
        take_turn(session)


class StubbornClaim(WrappedClaim):
    """A claim whose first release is interrupted before it did anything."""

    def __init__(self, claim: FileClaim) -> None:
        super().__init__(claim)
        self.asked = 0

    def release(self) -> None:
        self.asked += 1
        if self.asked == 1:
            raise KeyboardInterrupt
        super().release()


class StubbornStore(WrappedStore):
    def wrap(self, claim: FileClaim) -> Claim:
        return StubbornClaim(claim)


def test_an_interrupt_while_the_session_is_given_up_does_not_leave_it_held(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Sessions(StubbornStore(tmp_path)).session("s") as session:
        take_turn(session)

    with Sessions(FileStore(tmp_path)).session("s") as session:
        take_turn(session)


def interrupted(_: Callable[[], Any]) -> NoReturn:
    """A thread that is never started: Ctrl-C came first."""
    raise KeyboardInterrupt


def test_an_interrupt_while_an_async_block_is_left_does_not_leave_the_session_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def leave() -> None:
        async with Sessions(FileStore(tmp_path)).session("s") as session:
            take_turn(session)
            monkeypatch.setattr("turnwal.session.owning.in_thread", interrupted)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(leave())

    with Sessions(FileStore(tmp_path)).session("s") as session:
        take_turn(session)
