"""`python -m tests.soak`: many agents, millions of events, a kill every two seconds; and whether anything grew.

Exits 1 when an acknowledged event is missing, when memory, descriptors or the `-wal` grew, when writing got slower,
when a planted defect was not caught, or when too little was seen for the rest to mean anything.
"""

import argparse
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final

from tests.crash.places import PLACES, place_in
from tests.crash.planted import EagerStore
from tests.crash.reporting import Report
from tests.soak import measures
from tests.soak.soak import WAL_MAX, Said, Seen, Soak

WARM_UP: Final = 0.2
"""The share of what an agent says that is left out: pools fill, code is loaded."""
GROWTH_MAX: Final = 0.10
LEAST_SAID: Final = 20
SETTLED: Final = 2
"""How many sessions a process that will be killed has to have written, to be compared with another."""
STEADY: Final = 0.20
SLOWER_MAX: Final = 5.0
P99_MAX: Final = 10.0
"""By how much writing may get slower before it counts. What a machine does besides moves these by less; what grows with
the number of events moves them by more in the long run. Whether they stayed within 20 % is printed."""


def soak(report: Report, store: str, options: argparse.Namespace) -> None:
    """Run on one store."""
    with place_in(store) as place:
        campaign = Soak(
            place,
            options.seed,
            agents=options.agents,
            session_events=options.session_events,
            kill_every_s=options.kill_every,
        )
        seen = campaign.run(options.events)
        judge(report, store, seen, options)
        if not seen.violations:
            shutil.rmtree(place.root)


def judge(report: Report, store: str, seen: Seen, options: argparse.Namespace) -> None:
    """Print what came of it, and hold what must hold."""
    report.line(f"on {store}: events", f"{seen.events:,} in {seen.sessions:,} sessions")
    report.line("events a second", f"{seen.events / seen.seconds:,.0f}, {seen.seconds:.0f} s")
    report.line("kills", seen.kills)
    report.line("sessions that lost an acknowledged event", seen.lost)
    report.violations(seen.violations)
    report.held("as many events as were asked for", holds=seen.events >= options.events)
    report.held("some were killed", holds=seen.kills > 0)
    settled = [said for said in seen.killed if said.lived >= SETTLED]
    enough = len(seen.kept) >= LEAST_SAID and len(settled) >= LEAST_SAID
    report.held(f"at least {LEAST_SAID} measurements of each kind", holds=enough)
    if not enough:
        return
    for name, said in (("never killed", seen.kept), ("killed now and then", settled)):
        before, behind = measures.tenths([each.resident for each in said], WARM_UP)
        report.line(f"memory of the {name}", f"{before / 2**20:.1f} MiB, then {behind / 2**20:.1f} MiB")
        report.held(f"memory grows by less than 10 %: {name}", holds=behind < before * (1 + GROWTH_MAX))
        most, last = _most_descriptors(said)
        report.line(f"descriptors of the {name}", f"at most {most}, then {last}")
        report.held(f"descriptors stay: {name}", holds=last <= most)
    if store == "sqlite":
        report.line("longest -wal", f"{seen.wal_max / 2**20:.1f} MiB")
        report.held("the -wal stays under 64 MiB", holds=0 < seen.wal_max < WAL_MAX)
    first, last_tenth = _times(seen.all)
    p99 = partial(measures.quantile, share=0.99)
    for name, measured, margin in (("mean", measures.average, SLOWER_MAX), ("p99", p99, P99_MAX)):
        before, behind = measured(first), measured(last_tenth)
        steady = "within" if behind <= before * (1 + STEADY) else "NOT within"
        report.line(
            f"{name} of a durable event",
            f"{before * 1e3:.2f} ms, then {behind * 1e3:.2f} ms: {steady} 20 % of the first",
        )
        report.held(f"{name} grows by less than {margin:g} times", holds=behind <= before * margin)


def _most_descriptors(said: Sequence[Said]) -> tuple[int, int]:
    """The most in the warm-up and a little behind it, and the most in the last tenth."""
    begin = max(1, int(len(said) * 2 * WARM_UP))
    last = said[-max(1, len(said) // 10) :]
    return max(each.descriptors for each in said[:begin]), max(each.descriptors for each in last)


def _times(said: Sequence[Said]) -> tuple[Counter[int], Counter[int]]:
    """How long durable events took in the first tenth behind the warm-up, and in the last."""
    width = max(1, len(said) // 10)
    begin = int(len(said) * WARM_UP)
    first: Counter[int] = Counter()
    last: Counter[int] = Counter()
    for each in said[begin : begin + width]:
        first.update(each.times)
    for each in said[-width:]:
        last.update(each.times)
    return first, last


def canaries(report: Report, options: argparse.Namespace) -> None:
    """Plant agents that leak, on a store that acknowledges before it writes."""
    with place_in("file") as place:
        early = place._replace(make=lambda: EagerStore(place.make()))
        campaign = Soak(early, options.seed, agents=3, session_events=150, kill_every_s=0.1, leaks=True)
        seen = campaign.run(20_000)
        before, behind = measures.tenths([said.resident for said in seen.kept], WARM_UP)
        most, last = _most_descriptors(seen.kept)
        for name, caught in (
            ("acknowledges before it writes", seen.lost > 0),
            ("keeps memory", behind >= before * (1 + GROWTH_MAX)),
            ("keeps descriptors", last > most),
        ):
            report.line(f"planted: {name}", "caught" if caught else "NOT CAUGHT")
            report.held(f"caught: {name}", holds=caught)
        shutil.rmtree(place.root)


def main(arguments: list[str] | None = None) -> int:
    """Soak the stores that are named, SQLite where none is."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="decides who is killed")
    parser.add_argument("--store", choices=PLACES, action="append", help="may be repeated")
    parser.add_argument("--events", type=int, default=3_500_000, help="how many, on each store")
    parser.add_argument("--agents", type=int, default=20, help="how many processes write")
    parser.add_argument("--session-events", type=int, default=1000, help="how many events a session gets")
    parser.add_argument("--kill-every", type=float, default=2.0, help="seconds from one kill to the next")
    parser.add_argument("--canaries", action=argparse.BooleanOptionalAction, default=True, help="plant defects too")
    options = parser.parse_args(arguments)
    report = Report()
    given = sys.argv[1:] if arguments is None else arguments
    seed = [] if any(word.startswith("--seed") for word in given) else ["--seed", str(options.seed)]
    print(f"seed {options.seed}; to repeat: {' '.join(['python -m tests.soak', *given, *seed])}")
    for name in [*(options.store or ["sqlite"]), *(["canaries"] if options.canaries else [])]:
        began = time.monotonic()
        print(name)
        if name == "canaries":
            canaries(report, options)
        else:
            soak(report, name, options)
        print(f"  {time.monotonic() - began:.0f} s")
        sys.stdout.flush()
    print("everything held" if report.ok else "NOT EVERYTHING HELD")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
