"""One run of an agent: a store and a world of its own, and the lives there, in processes that may die."""

import asyncio
import inspect
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

import msgspec

from turnwal.testing import forking
from turnwal.testing.crash.judging import after_death, at_the_end
from turnwal.testing.crash.marks import Marks
from turnwal.testing.crash.places import Place
from turnwal.testing.crash.points import Points
from turnwal.testing.crash.reading import Clean, Shown, Traces, traces_of
from turnwal.testing.crash.report import Failure
from turnwal.testing.crash.watching import WatchedSessions

T = TypeVar("T")

_SAID_CHARS_MAX: Final = 3_000


class ChildFailed(Exception):
    """What a child was to find out it could not; the text is what it said at its end."""


class Look(msgspec.Struct):
    """What a look at a run has found."""

    failures: list[Failure]
    calls: dict[str, int] = {}
    """Lost calls by class."""
    clean: Clean | None = None


@dataclass
class Subject:
    """What is under test, and how its world is made, seen and judged."""

    agent: Callable[..., Any]
    places: Callable[[], AbstractContextManager[Place]]
    session: str | None
    prepare: Callable[[Path], object]
    effects: Callable[[Path], Shown]
    sent: Callable[[Path], Iterable[Any]]
    target: str | None
    timeout_s: float

    @contextmanager
    def run(self) -> "Iterator[Run]":
        """A store and a world that nobody else has."""
        with self.places() as place, TemporaryDirectory(prefix="turnwal-world-") as root:
            run = Run(self, place, Path(root))
            run.world.mkdir()
            self.prepare(run.world)
            yield run


class Run:
    """One store and one world, and what was left there so far."""

    def __init__(self, subject: Subject, place: Place, root: Path) -> None:
        """Live in a directory; the world is one in it."""
        self.subject = subject
        self.place = place
        self.world = root / "world"
        self.marks = root / "marks"
        """What the lives left outside the store."""
        self._answer = root / "answer"
        self._errors = root / "errors"

    # Lives

    def count(self) -> list[str]:
        """The points that a life passes which nobody kills. Raises `ChildFailed` where it does not come to its end."""

        def life() -> list[str]:
            points = Points()
            self.live(0, points)
            return points.names

        return self._in_child(life, list[str])

    def until_death(self, life: int, target: str | None) -> int:
        """Begin or go on in a process of its own, until a point or the end; how it ended, and -SIGALRM for too late."""
        self._errors.unlink(missing_ok=True)
        pid = forking.fork(lambda: self.live(life, Points(target)), self._errors)
        code = forking.wait_for(pid, self.subject.timeout_s)
        if code is None:
            os.kill(pid, signal.SIGKILL)
            forking.wait(pid)
            return -signal.SIGALRM
        return code

    def live(self, life: int, points: Points) -> None:
        """Hand the agent its sessions, in this process, and wait for its end."""
        subject = self.subject
        given: list[object] = [self.world] if _takes_a_world(subject.agent) else []
        marks = Marks(self.marks)
        watched = WatchedSessions(self.place.open(), life, points, marks, lambda: list(subject.effects(self.world)))
        with closing(marks), watched as sessions:
            if subject.session is None:
                result = subject.agent(sessions, *given)
                if inspect.isawaitable(result):
                    asyncio.run(_wait_for(result))
            elif inspect.iscoroutinefunction(subject.agent):
                asyncio.run(_in_session(sessions, subject.session, subject.agent, given))
            else:
                with sessions.session(subject.session) as session:
                    subject.agent(session, *given)

    def said(self) -> str:
        """What the last life printed and raised."""
        text = self._errors.read_text("utf-8", "replace").strip() if self._errors.exists() else ""
        return text[-_SAID_CHARS_MAX:] or "nothing was said"

    # Looks, each in a process of its own: the one that forks must have no connection and no thread of a store

    def look_after_death(self) -> Look:
        """What does not hold now, before anybody has recovered. Raises `ChildFailed` where nothing can be read."""

        def look() -> Look:
            failures, calls = after_death(self.traces(), self.subject.target)
            return Look(failures, dict(calls))

        return self._in_child(look, Look)

    def look_at_the_end(self, clean: Clean | None) -> Look:
        """What does not hold when the agent is done. Raises `ChildFailed` where nothing can be read."""
        return self._in_child(lambda: self.conclude(clean), Look)

    def conclude(self, clean: Clean | None) -> Look:
        """As `look_at_the_end`, in this process."""
        traces = self.traces()
        failures = at_the_end(traces, clean, self.subject.target, self.subject.sent(self.world))
        return Look(failures, clean=traces.clean())

    def traces(self) -> Traces:
        """What is left."""
        with closing(self.place.open()) as store:
            return traces_of(store, self.marks, lambda: self.subject.effects(self.world))

    def _in_child(self, work: Callable[[], T], kind: type[T]) -> T:
        def write() -> None:
            self._answer.write_bytes(msgspec.json.encode(work()))

        self._errors.unlink(missing_ok=True)
        code = forking.wait(forking.fork(write, self._errors))
        if code != 0:
            raise ChildFailed(f"it ended with {code}: {self.said()}")
        return msgspec.json.decode(self._answer.read_bytes(), type=kind)


def _takes_a_world(agent: Callable[..., Any]) -> bool:
    parameters = inspect.signature(agent).parameters.values()
    named = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return len(named) > 1 or any(each.kind is each.VAR_POSITIONAL for each in parameters)


async def _wait_for(result: Any) -> None:
    await result


async def _in_session(sessions: WatchedSessions, id: str, agent: Callable[..., Any], given: list[object]) -> None:
    async with sessions.session(id) as session:
        await agent(session, *given)
