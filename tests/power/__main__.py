"""`python -m tests.power`: record what turnwal writes, fail the power at every moment, and judge what a disk may have.

Every state comes from one seed; what is recorded has times and random ids of its own. Exits 1 when anything did not
hold, when a planted defect was not caught, or when too little was seen for the rest to mean anything.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.crash.reporting import Report
from tests.power import campaign
from tests.power.accounting import account
from tests.power.campaign import Seen, judged, recorded
from turnwal.testing.power import Names, Unrecordable, record

STATES: Final = 10_000
LOST: Final = "events were acknowledged"
STRICT: Final = (Names.WITH_DIRECTORY,)


def files(report: Report, options: argparse.Namespace) -> None:
    """The file store, and files beside it: every state that a disk may have at every moment."""
    _explored(report, campaign.explored("file", options.states, options.seed), options.states)


def sqlite(report: Report, options: argparse.Namespace) -> None:
    """The SQLite store: the same."""
    _explored(report, campaign.explored("sqlite", options.states, options.seed), options.states)


def _explored(report: Report, seen: Seen, least: int) -> None:
    report.line("moments", seen.points)
    _judged(report, seen)
    report.line("  of each workload", ", ".join(f"{name} {count:,}" for name, count in seen.by_workload.items()))
    report.line("acknowledged batches", seen.batches)
    report.line("syncs of files", seen.syncs)
    report.violations(seen.violations)
    report.held(f"at least {least:,} different states", holds=seen.judged >= least)
    report.held("some sessions that had to be recovered", holds=seen.counts["sessions that were recovered"] > 0)
    report.held("a sync for each acknowledged batch", holds=0 < seen.batches <= seen.syncs)


def _judged(report: Report, seen: Seen) -> None:
    report.line("different states, judged", f"{seen.judged:,}")
    report.line("states equal to one that was judged", f"{seen.equal:,}")
    for name, count in sorted(seen.counts.items()):
        report.line(name, f"{count:,}")


def faults(report: Report, options: argparse.Namespace) -> None:
    """One sync fails, once or from then on, and what it was to write counts as written."""
    for kind in campaign.WORKLOADS:
        seen = campaign.faulted(kind, options.stride, options.seed, options.subsets)
        report.line(f"{kind}: syncs that failed", seen.faults)
        _judged(report, seen)
        report.violations(seen.violations)
        report.held("some syncs that failed", holds=seen.faults > 0)


def canaries(report: Report, options: argparse.Namespace) -> None:
    """Planted defects."""
    seed = options.seed
    planted = {
        "SQLite with synchronous=NORMAL": (recorded("create", "sqlite", "normal"), tuple(Names), LOST),
        "no directory is synced: files": (recorded("create", "file", "no_directory_sync"), STRICT, "it is gone"),
        "no directory is synced: SQLite": (recorded("create", "sqlite", "no_directory_sync"), STRICT, "it is gone"),
        "no file is synced": (recorded("create", "file", "no_sync"), tuple(Names), LOST),
        "acknowledged before the sync: files": (recorded("create", "file", "eager"), tuple(Names), LOST),
        "acknowledged before the sync: SQLite": (recorded("create", "sqlite", "eager"), tuple(Names), LOST),
        "exported in place": (recorded("exports", "file", "in_place"), tuple(Names), "is not whole"),
    }
    for name, (recording, names, shown) in planted.items():
        _caught(report, name, judged(recording, seed, 1, names=names).violations, shown)
    unpaid = account(planted["no file is synced"][0]).unpaid
    _caught(report, "no file is synced, by the count of syncs", unpaid, "without a sync of any file")
    asked_again = recorded("faulty", "file", "retried", inject=["fdatasync:error=EIO:when=4"])
    _caught(report, "a failed sync is asked for again", judged(asked_again, seed, 1, steady=False).violations, LOST)
    said = []
    with tempfile.TemporaryDirectory(prefix="turnwal-power-") as directory:
        try:
            record(["true"], directory, env={"LD_PRELOAD": "/usr/lib/libeatmydata.so"})
        except Unrecordable as error:
            said.append(str(error))
    _caught(report, "recorded under eatmydata", said, "eatmydata")


def _caught(report: Report, name: str, found: list[str], shown: str) -> None:
    caught = any(shown in violation for violation in found)
    report.line(f"{name}: '… {shown} …'", f"caught ({len(found)} shown)" if caught else "NOT CAUGHT")
    report.held(f"caught: {name}", holds=caught)


CAMPAIGNS: Final[Mapping[str, Callable[[Report, Any], None]]] = {
    "files": files,
    "sqlite": sqlite,
    "faults": faults,
    "canaries": canaries,
}


def main(arguments: list[str] | None = None) -> int:
    """Run the campaigns that are named, all by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.power", description=__doc__)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="decides which states are tried")
    parser.add_argument("--only", choices=CAMPAIGNS, action="append", help="one campaign; may be repeated")
    parser.add_argument("--states", type=int, default=STATES, help="how many different states of each store")
    parser.add_argument("--stride", type=int, default=1, help="let each so many-th sync fail")
    parser.add_argument("--subsets", type=int, default=2, help="random states at each moment behind a failed sync")
    options = parser.parse_args(arguments)
    report = Report()
    given = sys.argv[1:] if arguments is None else arguments
    seed = [] if any(word.startswith("--seed") for word in given) else ["--seed", str(options.seed)]
    print(f"seed {options.seed}; to repeat: {' '.join(['python -m tests.power', *given, *seed])}")
    for name in options.only or CAMPAIGNS:
        began = time.monotonic()
        print(f"{name}: {CAMPAIGNS[name].__doc__}")
        try:
            CAMPAIGNS[name](report, options)
        except Unrecordable as error:
            print(f"  {error}")
            report.held("the workloads can be recorded", holds=False)
        print(f"  {time.monotonic() - began:.0f} s")
        sys.stdout.flush()
    print("everything held" if report.ok else "NOT EVERYTHING HELD")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
