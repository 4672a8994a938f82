"""How far a verb got that does many sessions: a bar on a terminal, in a pipe a line now and then. On standard error.

Promises:
- Standard output is never touched, and what is printed there while the bar stands does not run into it.
- rich is imported only for a bar.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Self

from turnwal.cli.screen import note
from turnwal.core.errors import TurnwalError

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

_REFRESH_S: Final = 0.1
_LINE_S: Final = 10.0


class Progress:
    """A block in which each session that is done is counted."""

    def __init__(self, verb: str, total: Callable[[], int], *, clock: Callable[[], float] = time.monotonic) -> None:
        """Name what is done; `total` counts the sessions, and is called for a bar alone."""
        self._verb = verb
        self._total = total
        self._clock = clock
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._done = 0
        self._said = clock()

    def __enter__(self) -> Self:
        """Show the bar, where a terminal reads."""
        if sys.stderr.isatty():
            self._show()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def advance(self, counts: str) -> None:
        """One session more is done; `counts` says in short what became of all so far."""
        self._done += 1
        now = self._clock()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done, counts=counts)
            if now - self._said >= _REFRESH_S:
                self._said = now
                self._bar.refresh()
        elif now - self._said >= _LINE_S:
            self._said = now
            # whoever read it may be gone, and the work goes on
            with suppress(OSError, ValueError):
                note(f"{self._verb}: {self._done:,} sessions done ({counts})")

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """A block in which standard output may be written to: the bar is off the screen where both are a terminal."""
        if self._bar is None or not sys.stdout.isatty():
            yield
            return
        self._bar.stop()
        try:
            yield
            sys.stdout.flush()
        finally:
            self._bar.start()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        # standard output may be a pipe with JSON in it: rich would send it through the terminal of standard error
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[counts]}", markup=False),
            console=Console(file=sys.stderr, markup=False, emoji=False, highlight=False),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task(self._verb, total=self._counted(), counts="")
        self._bar.start()

    def _counted(self) -> int | None:
        """How many there are to do; None where the store does not say, which the verb itself will meet."""
        try:
            return self._total()
        except TurnwalError:
            return None
