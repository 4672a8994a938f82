"""`python -m tests.corrupt`: change stored sessions in every way, have them verified, and print the totals.

Everything comes from one seed. Exits 1 when a change of content was not told, when anything else did not hold, when a
planted defect was not caught, or when too little was changed for the rest to mean anything.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.corrupt import databases, logs
from tests.corrupt.judging import Seen
from tests.corrupt.looking import looking
from tests.corrupt.planted import PLANTED
from tests.crash.reporting import Report

RIGHTLY_NAMED: Final = 0.99
"""The share of edits whose look has to be named right."""


def told(report: Report, seen: Seen) -> None:
    """Print what was changed and what was said of it; hold that everything else is harmless."""
    report.line("changes", seen.changes)
    report.line("told", seen.told)
    report.line("not told, and the content is the same", seen.harmless)
    for word, count in sorted(seen.words.items()):
        report.line(f"  {word}", count)
    report.violations(seen.violations)
    report.held("something was changed", holds=seen.changes > 0)


def flips(report: Report, options: argparse.Namespace) -> None:
    """Every bit of a log."""
    told(report, logs.flips(options.seed, options.stride))


def cuts(report: Report, options: argparse.Namespace) -> None:
    """A log cut at every byte."""
    told(report, logs.cuts(options.seed, max(1, options.stride // 8)))


def sidecar(report: Report, options: argparse.Namespace) -> None:
    """The bits of the file of the head, and every length of it."""
    told(report, logs.sidecar(options.seed, options.stride))


def database(report: Report, options: argparse.Namespace) -> None:
    """Every bit and every length of a SQLite database at rest."""
    told(report, databases.flips(options.seed, options.database_stride or options.stride))


def wal(report: Report, options: argparse.Namespace) -> None:
    """Every bit and every length of the `-wal` of one whose writer died."""
    told(report, databases.wal(options.seed, options.database_stride or options.stride))


def edits(report: Report, options: argparse.Namespace) -> None:
    """Structural edits of logs."""
    seen = logs.edited(options.seed, options.edits)
    right = sum(count for name, count in seen.named.items() if name.endswith(": right"))
    for name, count in sorted(seen.named.items()):
        report.line(name, count)
    told(report, seen)
    report.line("named right", f"{right} of {seen.changes}")
    report.held(f"at least {RIGHTLY_NAMED:.0%} named right", holds=right >= RIGHTLY_NAMED * seen.changes)
    report.held(f"at least {options.edits} edits", holds=seen.changes >= options.edits)


def middle(report: Report, options: argparse.Namespace) -> None:
    """Damage with lines behind it."""
    told(report, logs.middle(options.seed))


def agreement(report: Report, options: argparse.Namespace) -> None:
    """A verifier that shares no code, on random histories and edits of them."""
    seen = logs.agreement(options.seed, options.histories)
    told(report, seen)
    for word in ("intact", "tail_not_verifiable", "broken"):
        report.held(f"some are {word}", holds=seen.words[word] > 0)


def look(report: Report, options: argparse.Namespace) -> None:
    """Looking changes nothing."""
    del options
    seen = looking()
    report.line("verbs on sessions in every state", seen.changes)
    report.violations(seen.violations)
    report.held("many verbs", holds=seen.changes > 50)


def canaries(report: Report, options: argparse.Namespace) -> None:
    """Planted defects."""
    for name, planted in PLANTED.items():
        seen = logs.edited(options.seed, min(options.edits, 400), planted)
        report.line(name, f"caught {len(seen.violations)} times" if seen.violations else "NOT CAUGHT")
        report.held(f"caught: {name}", holds=bool(seen.violations))


CAMPAIGNS: Final[Mapping[str, Callable[[Report, Any], None]]] = {
    "flips": flips,
    "cuts": cuts,
    "sidecar": sidecar,
    "database": database,
    "wal": wal,
    "edits": edits,
    "middle": middle,
    "agreement": agreement,
    "looking": look,
    "canaries": canaries,
}


def main(arguments: list[str] | None = None) -> int:
    """Run the campaigns that are named, all by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.corrupt", description=__doc__)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="decides everything")
    parser.add_argument("--only", choices=CAMPAIGNS, action="append", help="one campaign; may be repeated")
    parser.add_argument("--stride", type=int, default=1, help="bits from one flip to the next")
    parser.add_argument("--database-stride", type=int, default=0, help="the same in databases; that of logs if absent")
    parser.add_argument("--edits", type=int, default=20_000, help="how many structural edits")
    parser.add_argument(
        "--histories", type=int, default=10_000, help="how many verdicts two verifiers have to agree on"
    )
    options = parser.parse_args(arguments)
    report = Report()
    given = sys.argv[1:] if arguments is None else arguments
    seed = [] if any(word.startswith("--seed") for word in given) else ["--seed", str(options.seed)]
    print(f"seed {options.seed}; to repeat: {' '.join(['python -m tests.corrupt', *given, *seed])}")
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
