"""`crash_points`: an agent, killed at every point of its work, recovered, taken up again, and held to its log.

    def agent(sessions, world):                       # begins the conversation, or goes on with it
        with sessions.session("order-7") as session:
            ...

    crash_points(agent, effects=lambda world: (world / "ledger").read_text().splitlines())

The agent is run once to count the points, then once for each, in a process of its own that SIGKILL ends there: before
and after each write that makes events durable, and inside each body of a tool, before and after its effect. What is
left is looked at before anybody recovers, then the agent is called again until it comes to its end.

Promises: no two runs share a store or a world; what is judged was left outside the process that died.
Does not: pull the plug, or kill in the middle of a write. A killed process loses nothing that the system has taken.
"""

import random
import signal
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from turnwal.testing.conformance import Factory
from turnwal.testing.crash.places import factory_of
from turnwal.testing.crash.points import Points
from turnwal.testing.crash.reading import Clean, Shown
from turnwal.testing.crash.report import CrashFailures, CrashReport, Failure
from turnwal.testing.crash.runs import ChildFailed, Look, Subject

Agent = Callable[..., Any]
"""Is given the sessions of a store, or one open session, and the directory of its world where it has a second
parameter; begins the conversation or goes on with it. An asynchronous one is awaited."""

UNREACHED_MAX: Final = 0.25
"""The share of the points that a later run may miss: which writes share a commit can depend on threads."""


def _nothing(world: Path) -> None:
    """What prepares a world that needs nothing."""
    del world


def _none(world: Path) -> tuple[()]:
    """What a world shows that nobody looks at."""
    del world
    return ()


def crash_points(  # noqa: PLR0913 - each is one documented choice, given by name
    agent: Agent,
    *,
    store: str | Factory = "file",
    session: str | None = None,
    prepare: Callable[[Path], object] = _nothing,
    effects: Callable[[Path], Shown] = _none,
    sent: Callable[[Path], Iterable[Any]] = _none,
    target: str | None = None,
    deaths: int = 1,
    seed: int = 0,
    only: str | None = None,
    again: Callable[[str], str] = lambda point: f"crash_points(…, only={point!r})",
    timeout_s: float = 60.0,
) -> CrashReport:
    """Kill an agent at every point and return what was seen. Raises `CrashFailures` where something did not hold.

    `store` is `file`, `sqlite`, the URL of a PostgreSQL database (each run gets a schema of its own there), or a
    factory as the conformance suite takes it. With `session` the agent is given that session, open.
    `prepare` fills the directory that is the world of one run. `effects` says what the world shows then: texts, or
    `Effect`s with the key of their call. `sent` yields the requests that were sent to the model, as lists of messages
    or whole. With a `target` these, and what each session shows, are held to that provider's rules.
    `deaths` is how many processes may die in one conversation: the first at its point, later ones anywhere, as `seed`
    decides. `only` kills at one point; `again` says how a person does that. Raises `ValueError` for a point or a store
    that does not exist, and `RuntimeError` where the agent fails although nobody kills it.
    """
    __tracebackhide__ = True  # pytest shows the report, which is all there is to see
    subject = Subject(agent, factory_of(store), session, prepare, effects, sent, target, timeout_s)
    deaths_of = _Deaths(subject, deaths, seed)
    points = deaths_of.count()
    if only is not None and only not in points:
        raise ValueError(f"{only!r} is no point of this agent; it passes {', '.join(points)}")
    report = deaths_of.report
    report.points = points if only is None else [only]
    for point in report.points:
        found = len(report.failures)
        deaths_of.die_at(point, points)
        told = again(point)
        report.failures[found:] = [
            msgspec.structs.replace(failure, point=point, again=told) for failure in report.failures[found:]
        ]
    if len(report.unreached) > UNREACHED_MAX * len(report.points):
        missing = ", ".join(report.unreached)
        report.failures.append(Failure("not_reached", missing, "passed in the run that nobody killed", "not again"))
    if report.failures:
        raise CrashFailures(report)
    return report


def run_plainly(
    agent: Agent,
    *,
    store: str | Factory = "file",
    session: str | None = None,
    prepare: Callable[[Path], object] = _nothing,
    effects: Callable[[Path], Shown] = _none,
    sent: Callable[[Path], Iterable[Any]] = _none,
    target: str | None = None,
    **more: Any,
) -> CrashReport:
    """Run an agent once, in this process, and kill nobody; what it leaves is held to the same rules.

    Takes what `crash_points` takes. Raises `CrashFailures`, and whatever the agent raises.
    """
    __tracebackhide__ = True
    del more
    with Subject(agent, factory_of(store), session, prepare, effects, sent, target, 0.0).run() as run:
        run.live(0, Points())
        report = CrashReport(failures=run.conclude(None).failures)
    if report.failures:
        raise CrashFailures(report)
    return report


class _Deaths:
    """The runs of one agent, and what was seen of them."""

    def __init__(self, subject: Subject, most: int, seed: int) -> None:
        self.report = CrashReport()
        self._subject = subject
        self._most = most
        self._seed = seed
        self._clean: Clean | None = None
        self._calls: Counter[str] = Counter()

    def count(self) -> list[str]:
        """Run the agent where nobody kills it; returns the points that it passes, in order."""
        with self._subject.run() as run:
            try:
                points = run.count()
                look = run.look_at_the_end(None)
            except ChildFailed as failed:
                raise RuntimeError(f"the agent does not come to its end, though nobody kills it: {failed}") from None
        self._take(look)
        self._clean = look.clean
        return points

    def die_at(self, point: str, points: list[str]) -> None:
        """Die at one point, then take up again, where later lives may die as well."""
        chosen = random.Random(f"{self._seed} {point}")  # noqa: S311 - it repeats a run, and keeps no secret
        with self._subject.run() as run:
            try:
                for life in range(self._most + 1):
                    last = life == self._most
                    target = point if life == 0 else None if last else chosen.choice(points)
                    code = run.until_death(life, target)
                    if code == 0:
                        self.report.unreached += [point] if life == 0 else []
                        break
                    if code != -signal.SIGKILL or last:
                        self._unfinished(f"life {life + 1} ended with {code}: {run.said()}")
                        return
                    self.report.deaths += 1
                    run.place.bury()
                    self._take(run.look_after_death())
                self._take(run.look_at_the_end(self._clean))
            except ChildFailed as failed:
                self._unfinished(f"what is left cannot be read: {failed}")

    def _take(self, look: Look) -> None:
        self.report.failures += look.failures
        self._calls.update(look.calls)
        self.report.calls = dict(self._calls)

    def _unfinished(self, happened: str) -> None:
        failure = Failure("did_not_finish", "the agent", "it goes on from where it was killed", happened)
        self.report.failures.append(failure)
