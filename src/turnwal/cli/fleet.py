"""A verb that does many sessions: what became of each as it goes, then the figures, as text and as a JSON report.

Used by `recover --all` and `copy`, which say what is told of one session.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any, Final, Protocol, TypeVar

from turnwal.cli import exits
from turnwal.cli.progress import Progress
from turnwal.cli.reporting import JsonReport, report_file
from turnwal.cli.screen import Column, Screen, Span
from turnwal.cli.stopping import stoppable
from turnwal.core.errors import TurnwalError


class Told(Protocol):
    """What became of one session."""

    @property
    def session(self) -> str:
        """What a person calls it."""
        ...

    @property
    def outcome(self) -> str:
        """One word."""
        ...

    @property
    def holder(self) -> str:
        """The live owner of one that was left alone."""
        ...

    @property
    def error(self) -> Exception | None:
        """Why it was not done."""
        ...

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        ...


R = TypeVar("R", bound=Told)
R_contra = TypeVar("R_contra", bound=Told, contravariant=True)


class Figures(Protocol[R_contra]):
    """What is counted."""

    @property
    def sessions(self) -> dict[str, int]:
        """Sessions by what became of them."""
        ...

    def add(self, result: R_contra, /) -> None:
        """Count one session."""
        ...

    def to_json(self) -> dict[str, Any]:
        """The figures as plain values."""
        ...


WORDS: Final = {
    "recovered": ("recovered", "bold green"),
    "copied": ("copied", "bold green"),
    "there": ("there already", "green"),
    "nothing_to_do": ("nothing to do", ""),
    "elsewhere": ("finished elsewhere meanwhile", ""),
    "empty": ("empty, it never began", ""),
    "alive": ("skipped, owner alive", "cyan"),
    "conflict": ("conflict", "bold red"),
    "damaged": ("damaged", "bold red"),
    "failed": ("failed", "red"),
}
"""What a person reads for each outcome, and in which colour."""

_CODES: Final = {"alive": exits.HELD, "damaged": exits.DAMAGED, "failed": exits.ERROR, "conflict": exits.ERROR}


class Fleet:
    """The telling of one run."""

    def __init__(self, verb: str, *, as_json: bool, report_to: str | None) -> None:
        """Nothing is told yet; the report goes to a new file, to standard output for JSON, or to both."""
        self._verb = verb
        self._as_json = as_json
        self._report_to = report_to

    def run(
        self,
        begin: Callable[[Callable[[], bool]], Iterable[R]],
        figures: Figures[R],
        lines: Callable[[R], Iterable[tuple[Span, ...]]],
        *,
        total: Callable[[], int],
        unsaid: str,
    ) -> int:
        """Tell each result that `begin` yields, count it, end the report, and return the exit code.

        `begin` is handed what says that the run is to stop. Of outcome `unsaid` nothing is told: there may be a
        million of them.
        """
        from turnwal.cli.failing import report

        codes = {exits.OK}
        problem: TurnwalError | None = None
        with ExitStack() as stack:
            kept = stack.enter_context(report_file(self._report_to))
            stop = stack.enter_context(stoppable())
            reports = [JsonReport(write) for write in (_stdout if self._as_json else None, kept) if write is not None]
            with Progress(self._verb, total) as bar:
                try:
                    for result in begin(stop):
                        figures.add(result)
                        codes.add(_CODES.get(result.outcome, exits.OK))
                        if result.outcome != unsaid:
                            for each in reports:
                                each.entry(result.to_json())
                            with bar.hidden():
                                self._tell(result, lines)
                        bar.advance(_short(figures.sessions, unsaid))
                except TurnwalError as error:
                    problem = error
            stopped = stop()
            ended: dict[str, Any] = {"finished": not stopped and problem is None}
            ended |= {"error": None if problem is None else dict(problem.to_json())}
            for each in reports:
                each.end(figures.to_json() | ended)
        if problem is not None:
            codes.add(report(problem, as_json=self._as_json))
        return exits.CTRL_C if stopped else exits.worst(codes)

    def _tell(self, result: R, lines: Callable[[R], Iterable[tuple[Span, ...]]]) -> None:
        from turnwal.cli.failing import report

        if result.error is not None:
            report(result.error, as_json=self._as_json, session=result.session)
        if self._as_json:
            return
        screen = Screen()
        word, style = WORDS[result.outcome]
        if result.outcome == "alive":
            screen.line((f"{result.session}: {word}", style), f" ({result.holder})", wrap=True)
        elif result.error is None:
            for index, spans in enumerate(lines(result)):
                screen.line(*(((f"{result.session}: {word}", style), *spans) if index == 0 else spans), wrap=True)
        sys.stdout.flush()


def print_figures(sessions: dict[str, int]) -> None:
    """Print how many sessions came to what, those that none came to left out."""
    rows: list[list[Span]] = [[WORDS[outcome], f"{count:,}"] for outcome, count in sessions.items() if count]
    Screen().table((Column("sessions"), Column("number", right=True)), rows)


def _stdout(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _short(sessions: dict[str, int], unsaid: str) -> str:
    told: Iterator[str] = (
        f"{count:,} {WORDS[outcome][0]}" for outcome, count in sessions.items() if count and outcome != unsaid
    )
    return ", ".join(told)
