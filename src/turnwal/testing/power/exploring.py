"""Building every state that a disk may have after a power failure, and having each judged.

Promises: a judge gets a directory that nobody else uses, as the disk would have it, and everything that the workload
had said by then. A state that equals one that was judged with the same marks is counted and not judged again. Whatever
a judge raises is a complaint.

Does not: know what is wrong; that is the judge's.
"""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeAlias

from turnwal.testing.power.disk import Names, Point, points
from turnwal.testing.power.operations import Recording
from turnwal.testing.power.states import State, by_chance, systematic

Judge: TypeAlias = Callable[[Path, Sequence[str]], Iterable[str] | None]
"""Looks at a directory and at what was said before the power failed; returns, or raises, what is wrong.

It may write into the directory, as recovery does.
"""

KEPT_MAX: Final = 20
"""How many failures are kept with their files; the others are counted."""
_DRY_ROUNDS: Final = 3
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a directory of ours is made in it


@dataclass(frozen=True)
class Failure:
    """A state that a judge complained of."""

    point: int
    """How many operations of the recording had been done when the power failed."""
    how: str
    """What the disk kept of what had not been synced."""
    marks: tuple[str, ...]
    complaints: tuple[str, ...]
    files: Mapping[str, bytes | None]

    def build(self, directory: str | os.PathLike[str]) -> None:
        """Make the files in a directory that is there and empty, to look at them."""
        build(self.files, os.fspath(directory))

    def __str__(self) -> str:
        """One line for people."""
        return f"power lost behind operation {self.point}, kept: {self.how}: {'; '.join(self.complaints)}"


@dataclass
class Exploration:
    """What was tried, and what came of it."""

    points: int = 0
    states: int = 0
    judged: int = 0
    equal: int = 0
    """States that equal one that was judged with the same marks."""
    failed: int = 0
    failures: list[Failure] = field(default_factory=list)
    """The first of them."""

    def __str__(self) -> str:
        """One line for people."""
        told = (
            f"{self.states:,} states at {self.points:,} points, {self.judged:,} judged, {self.equal:,} equal to those"
        )
        return f"{told}; {self.failed:,} failed" + "".join(f"\n  {failure}" for failure in self.failures[:5])


class Explorer:
    """Tries the states of a recording. `with` removes what was built."""

    def __init__(
        self, recording: Recording, judge: Judge, *, names: Iterable[Names] = tuple(Names), seed: int = 0
    ) -> None:
        """Take every model of names, or some. Builds in memory where there is a `/dev/shm`."""
        self.found = Exploration()
        self._judge = judge
        self._seed = seed
        self._round = 0
        self._points: list[Point] = []
        for model in names:
            # where the models agree, one of them is enough
            known = {point.number: point for point in self._points}
            self._points += [each for each in points(recording, model) if known.get(each.number) != each]
        self._dry: Counter[int] = Counter()
        self._seen: set[bytes] = set()
        self._root = Path(
            tempfile.mkdtemp(prefix="turnwal-power-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
        )

    def run(self, subsets: int = 8, *, until: Callable[[Exploration], bool] = lambda _: False) -> Exploration:
        """Try all states that are tried at every point, and so many random ones at each; again, other random ones.

        A point that had nothing new for some rounds is passed over. Once `until` holds at the end of a point, it stops.
        """
        self.found.points = len(self._points)
        seed = f"{self._seed}.{self._round}"
        for number, point in enumerate(self._points):
            if self._dry[number] >= _DRY_ROUNDS:
                continue
            before = self.found.judged
            for state in chain(() if self._round else systematic(point), by_chance(point, seed, subsets)):
                self._try(state)
            if subsets:
                self._dry[number] = 0 if self.found.judged > before else self._dry[number] + 1
            if until(self.found):
                break
        self._round += 1
        return self.found

    def _try(self, state: State) -> None:
        files = state.tree().files()
        self.found.states += 1
        digest = _digest(files, state.point)
        if digest in self._seen:
            self.found.equal += 1
            return
        self._seen.add(digest)
        self.found.judged += 1
        directory = self._root / str(self.found.judged)
        directory.mkdir()
        try:
            build(files, str(directory))
            complaints = self._complaints(directory, state.point.marks)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        if complaints:
            self.found.failed += 1
            if len(self.found.failures) < KEPT_MAX:
                failure = Failure(state.point.number, state.how, state.point.marks, complaints, files)
                self.found.failures.append(failure)

    def _complaints(self, directory: Path, marks: Sequence[str]) -> tuple[str, ...]:
        try:
            return tuple(self._judge(directory, marks) or ())
        except Exception as error:  # noqa: BLE001 - an assertion, or a store that cannot be opened
            return (f"{type(error).__name__}: {error}",)

    def close(self) -> None:
        """Remove what was built."""
        shutil.rmtree(self._root, ignore_errors=True)

    def __enter__(self) -> Self:
        """Begin a block that removes what was built."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove what was built."""
        self.close()


def explore(
    recording: Recording, judge: Judge, *, names: Iterable[Names] = tuple(Names), seed: int = 0, subsets: int = 8
) -> Exploration:
    """Have a judge look at the states that a disk may have after a power failure at any point of a recording."""
    with Explorer(recording, judge, names=names, seed=seed) as explorer:
        return explorer.run(subsets)


def build(files: Mapping[str, bytes | None], directory: str) -> None:
    """Make files and directories (None) in a directory."""
    for path, content in files.items():
        whole = f"{directory}/{path}"
        if content is None:
            os.mkdir(whole, 0o700)  # noqa: PTH102 - many thousands of times
            continue
        descriptor = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)


def _digest(files: Mapping[str, bytes | None], point: Point) -> bytes:
    digest = blake2b(str(len(point.marks)).encode(), digest_size=12)
    for path, content in files.items():
        digest.update(f"\0{path}\0{-1 if content is None else len(content)}\0".encode("utf-8", "surrogateescape"))
        digest.update(content or b"")
    return digest.digest()
