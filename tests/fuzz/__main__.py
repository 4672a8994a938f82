"""`python -m tests.fuzz`: feed every reader what a stranger, a bug or a broken disk may have written.

By default a seed decides all, so that equal seeds give equal runs. With `--guided` the coverage that an input reaches
decides what is tried next, which needs atheris; `make fuzz` installs it in an environment of its own.

A violation is an exception that turnwal does not promise, a promise that does not hold, more than a second of the
processor for a small input, or more than 256 MiB. Exits 1 when there is one, when a planted defect was not found, or
when too little was read for the rest to mean anything.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any, Final

from tests.crash.reporting import Report
from tests.fuzz import guiding
from tests.fuzz.planted import CANARIES
from tests.fuzz.targets import SEEN, TARGETS
from tests.fuzz.watching import HANG_S, Violation, watched

INPUTS: Final = 200
"""Inputs of a target that reads files; the others are quicker and get more."""
QUICK: Final = 5
"""How many more."""
BYTES: Final = 64
"""Of one input: as many decisions as an edit or four need."""
CANARY_INPUTS: Final = 2_000
FLOORS: Final[Mapping[str, tuple[str, float]]] = {
    "sessions diagnosed": ("format", 0.6),
    "sessions imported": ("format", 0.4),
    "copies written": ("format", 0.2),
    "lines read": ("line", 0.05),
    "lines refused": ("line", 0.3),
    "logs with a gap": ("frames", 0.3),
    "plans with repairs": ("log", 0.2),
    "requests seeded": ("request", 0.12),
    "replies parsed": ("reply", 0.2),
    "stores named": ("text", 0.05),
}
"""How much of each has to be seen for each input of the targets of a kind, or the campaign has looked at too little."""


def main(arguments: list[str] | None = None) -> int:
    """Fuzz the targets that are named, all by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="decides every input")
    parser.add_argument("--only", action="append", metavar="TARGET", help="targets whose name begins so; repeatable")
    parser.add_argument("--inputs", type=int, default=INPUTS, help="how many of them for each reader of files")
    parser.add_argument("--hang", type=float, default=HANG_S, help="seconds of the processor that one may take")
    parser.add_argument("--guided", action="store_true", help="let coverage decide (needs atheris)")
    parser.add_argument("--seconds", type=float, default=60, help="with --guided: how long, for all targets together")
    parser.add_argument("--input", metavar="HEX", help="run this one input against the one target of --only, and stop")
    options = parser.parse_args(arguments)
    names = [name for name in TARGETS if options.only is None or name.startswith(tuple(options.only))]
    if not names:
        parser.error(f"no target is called so; there are {', '.join(TARGETS)}")
    if options.input is not None:
        return _again(names[0], bytes.fromhex(options.input), options.hang)
    given = sys.argv[1:] if arguments is None else arguments
    seed = [] if any(word.startswith("--seed") for word in given) else ["--seed", str(options.seed)]
    print(f"seed {options.seed}; to repeat: {' '.join(['python -m tests.fuzz', *given, *seed])}")
    report = Report()
    if options.guided:
        guiding.campaign(report, names, options.seconds, options.seed)
    else:
        _campaign(report, names, options)
        if options.only is None:
            _canaries(report, options)
    print("everything held" if report.ok else "NOT EVERYTHING HELD")
    return 0 if report.ok else 1


def inputs(seed: int, name: str, count: int) -> Iterator[bytes]:
    """The inputs of a target: the same for the same seed, and those of a shorter run are the first of a longer one."""
    for number in range(count):
        yield random.Random(f"{seed}/{name}/{number}").randbytes(BYTES)


def count_of(name: str, asked: int) -> int:
    """How many inputs a target gets."""
    return asked if name.startswith("format") else asked * QUICK


def _campaign(report: Report, names: list[str], options: argparse.Namespace) -> None:
    tried: dict[str, int] = {}
    for name in names:
        found: dict[tuple[str, str], tuple[bytes, Violation]] = {}
        began = time.process_time()
        for data in inputs(options.seed, name, count_of(name, options.inputs)):
            violation = watched(TARGETS[name], data, hang_s=options.hang)
            if violation is not None:
                found.setdefault(violation.same, (data, violation))
        count = count_of(name, options.inputs)
        kind = name.partition("-")[0]
        tried[kind] = tried.get(kind, 0) + count
        report.line(name, f"{count:,} inputs, {time.process_time() - began:.1f} s of the processor")
        for data, violation in found.values():
            tell(report, name, data, violation)
    for what, (kind, share) in FLOORS.items():
        if kind in tried:
            report.line(what, SEEN[what])
            least = ceil(share * tried[kind])
            report.held(f"at least {least:,}: {what}", holds=SEEN[what] >= least)


def tell(report: Report, name: str, data: bytes, violation: Violation) -> None:
    """Say what one input did, and how it is done again."""
    print(violation.told)
    print(f"  to repeat: python -m tests.fuzz --only {name} --input {data.hex()}")
    report.violations([f"{name}: {violation.kind} {violation.where}"])


def _canaries(report: Report, options: argparse.Namespace) -> None:
    for name, planted in CANARIES.items():
        caught = None
        with planted.there():
            for number, data in enumerate(inputs(options.seed, planted.target, CANARY_INPUTS)):
                violation = watched(TARGETS[planted.target], data, hang_s=HANG_S)
                if violation is not None and violation.kind == planted.kind:
                    caught = number
                    break
        report.line(name, "NOT CAUGHT" if caught is None else f"caught at input {caught:,}")
        report.held(f"caught: {name}", holds=caught is not None)


def _again(name: str, data: bytes, hang_s: float) -> int:
    violation: Any = watched(TARGETS[name], data, hang_s=hang_s)
    print("nothing is wrong with it" if violation is None else violation.told)
    return 0 if violation is None else 1


if __name__ == "__main__":
    sys.exit(main())
