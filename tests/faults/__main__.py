"""`python -m tests.faults`: fail the disk at every call that a store makes, and look at what is left.

Which calls are failed comes from one seed. Exits 1 when anything did not hold, when a planted defect was not caught, or
when too few faults took place for the rest to mean anything.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.crash.reporting import Report
from tests.faults import campaign
from tests.faults.campaign import Seen


def files(report: Report, options: argparse.Namespace) -> None:
    """Every call of the file store, failed by a plan."""
    _told(report, campaign.files(options.seed, options.every))


def canaries(report: Report, options: argparse.Namespace) -> None:
    """Planted defects."""
    for name, caught in campaign.canaries(options.seed).items():
        report.line(name, "caught" if caught else "NOT CAUGHT")
        report.held(f"caught: {name}", holds=caught)


def _told(report: Report, seen: Seen) -> None:
    report.line("runs", seen.runs)
    report.line("faults that took place", seen.fired)
    for name, count in sorted(seen.by_fault.items()):
        report.line(f"  {name}", count)
    for name, count in sorted(seen.heard.items()):
        report.line(f"the caller heard: {name}", count)
    report.totals(seen.totals)
    report.held("faults in at least half of the runs", holds=seen.fired * 2 > seen.runs > 0)
    report.held("a caller that heard of a failure", holds=seen.heard["store_failed"] > 0)


CAMPAIGNS: Final[Mapping[str, Callable[[Report, Any], None]]] = {
    "files": files,
    "canaries": canaries,
}


def main(arguments: list[str] | None = None) -> int:
    """Run the campaigns that are named, all by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="decides which calls are failed")
    parser.add_argument("--only", choices=CAMPAIGNS, action="append", help="one campaign; may be repeated")
    parser.add_argument("--every", type=int, default=1, help="one of so many faults, on average")
    options = parser.parse_args(arguments)
    report = Report()
    given = sys.argv[1:] if arguments is None else arguments
    seed = [] if any(word.startswith("--seed") for word in given) else ["--seed", str(options.seed)]
    print(f"seed {options.seed}; to repeat: {' '.join(['python -m tests.faults', *given, *seed])}")
    for name in options.only or CAMPAIGNS:
        began = time.monotonic()
        print(f"{name}: {CAMPAIGNS[name].__doc__}")
        CAMPAIGNS[name](report, options)
        print(f"  {time.monotonic() - began:.0f} s")
        sys.stdout.flush()
    print("everything held" if report.ok else "NOT EVERYTHING HELD")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
