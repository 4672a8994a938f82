"""Recording workloads and having their states judged, in rounds, until enough were."""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.power.accounting import account
from tests.power.judging import SessionJudge
from turnwal.testing.power import Explorer, Names, Recording, record
from turnwal.testing.power.operations import SyncFails

ROOT: Final = Path(__file__).parents[2]
WORKLOADS: Final = {
    "file": ("create", "reopen", "torn", "together", "copies", "exports"),
    "sqlite": ("create", "reopen", "checkpoint", "together", "copies"),
}
SUBSETS: Final = 8
_DRY: Final = 5
"""Rounds without one new state after which a workload has none left."""


@dataclass
class Seen:
    """What a campaign saw."""

    states: int = 0
    judged: int = 0
    equal: int = 0
    points: int = 0
    batches: int = 0
    syncs: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    by_workload: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    faults: int = 0


def recorded(name: str, kind: str, *planted: str, inject: Sequence[str] = ()) -> Recording:
    """A workload, recorded in a fresh directory."""
    with tempfile.TemporaryDirectory(prefix="turnwal-power-") as directory:
        command = [sys.executable, "-m", "tests.power.workloads", name, kind, directory, *planted]
        paths = [str(ROOT), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        env = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
        return record(command, directory, cwd=ROOT, env=env, inject=inject, timeout=300)


def explored(kind: str, states: int, seed: int) -> Seen:
    """Judge at least so many different states of the workloads of a store."""
    seen = Seen()
    with ExitStack() as stack:
        runs: dict[str, tuple[Explorer, SessionJudge]] = {}
        for name in WORKLOADS[kind]:
            recording = recorded(name, kind)
            judge = SessionJudge(recording)
            paid = account(recording)
            seen.batches += paid.batches
            seen.syncs += paid.syncs
            seen.violations += [f"{name}: {wrong}" for wrong in (*judge.problems, *paid.unpaid)]
            runs[name] = stack.enter_context(Explorer(recording, judge, seed=seed)), judge
        _in_rounds(runs, states)
        for name, (explorer, judge) in runs.items():
            found = explorer.found
            seen.states += found.states
            seen.judged += found.judged
            seen.equal += found.equal
            seen.points += found.points
            seen.by_workload[name] = found.judged
            seen.counts += judge.seen
            seen.violations += [f"{name}: {failure}" for failure in found.failures]
    return seen


def _in_rounds(runs: dict[str, tuple[Explorer, SessionJudge]], states: int) -> None:
    dry: Counter[str] = Counter()
    while (left := states - sum(explorer.found.judged for explorer, _ in runs.values())) > 0:
        alive = [name for name in runs if dry[name] < _DRY]
        if not alive:
            return
        for name in alive:
            explorer, _ = runs[name]
            before = explorer.found.judged
            share = before + -(-left // len(alive)) if before else states
            explorer.run(SUBSETS if before else 0, until=lambda found, share=share: found.judged >= share)  # type: ignore[misc]
            dry[name] = 0 if explorer.found.judged > before else dry[name] + 1


def faulted(kind: str, stride: int, seed: int, subsets: int) -> Seen:
    """Let each sync fail in turn, or each `stride`th of them: once, and from then on."""
    seen = Seen()
    for call in ("fsync", "fdatasync"):
        for forever in ("", "+"):
            for number in _numbers(stride, seed):
                recording = recorded("faulty", kind, inject=[f"{call}:error=EIO:when={number}{forever}"])
                if not any(isinstance(operation, SyncFails) for operation in recording.operations):
                    break
                seen.faults += 1
                found = judged(recording, seed, subsets, steady=False)
                seen.states += found.states
                seen.judged += found.judged
                seen.equal += found.equal
                seen.counts += found.counts
                seen.violations += [f"{call} {number}{forever} fails: {wrong}" for wrong in found.violations]
    return seen


def _numbers(stride: int, seed: int) -> Iterator[int]:
    number = 1 + seed % stride
    while True:
        yield number
        number += stride


def judged(
    recording: Recording, seed: int, subsets: int, *, steady: bool = True, names: tuple[Names, ...] = tuple(Names)
) -> Seen:
    """Judge the states of one recording."""
    judge = SessionJudge(recording, steady=steady)
    with Explorer(recording, judge, seed=seed, names=names) as explorer:
        found = explorer.run(subsets)
    violations = [*judge.problems, *map(str, found.failures)]
    return Seen(found.states, found.judged, found.equal, found.points, counts=judge.seen, violations=violations)
