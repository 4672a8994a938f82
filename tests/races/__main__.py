"""`python -m tests.races`: let processes fight over sessions, look at what the logs say, and print the totals.

Everything but the instants comes from one seed. Exits 1 when anything did not hold, when a planted defect was not
caught, or when too little of something happened for the rest to mean anything.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.crash.forking import without_threads
from tests.crash.reporting import Report
from tests.races import cuts, failover, planted, recoveries, writers
from tests.races.places import PLACES, Place
from tests.races.stopping import Seen
from tests.races.tools import Agents
from tests.races.zombies import Zombies

TIMES: Final = 12
CLAIMS: Final = 4
APPENDS: Final = 6
ROUNDS: Final = 3
SESSIONS: Final = 40
PROCESSES: Final = 3
POSITIONS: Final = 4
CANARY_ROUNDS: Final = 20


def fighting_writers(report: Report, place: Place, options: argparse.Namespace) -> None:
    """Eight writers want one session."""
    seen = writers.run(place, CLAIMS * options.times, APPENDS)
    report.line("acknowledged events", seen.acknowledged)
    report.line("claims", seen.claims)
    report.line("the session went from one writer to another", seen.handovers)
    report.line("refused since another held it", seen.refused)
    report.violations(seen.violations)
    report.held("it went from hand to hand", holds=seen.handovers >= writers.WRITERS)


def stopped_owners(report: Report, place: Place, options: argparse.Namespace) -> None:
    """Owners that append are stopped, succeeded, and go on."""
    _stopped(report, place, Zombies(place, options.seed).run(ROUNDS * options.times))


def stopped_agents(report: Report, place: Place, options: argparse.Namespace) -> None:
    """Agents that run tools are stopped, succeeded, and go on."""
    seen = Agents(place, options.seed).run(ROUNDS * options.times)
    report.line("effects of tools", seen.effects)
    report.line("of them of a stopped agent, dispatched before", seen.effects_late)
    _stopped(report, place, seen)
    report.held("some effects", holds=seen.effects > 0)


def _stopped(report: Report, place: Place, seen: Seen) -> None:
    report.line("owners that were stopped", seen.rounds)
    for way, times in sorted(seen.ways.items()):
        report.line(way, times)
    report.line("acknowledged events", seen.acknowledged)
    report.line("lines of an old owner behind its successor's", seen.late)
    report.violations(seen.violations)
    report.held("no late line", holds=seen.late == 0)
    report.held("some went on and were refused", holds=seen.ways["went on and was refused"] > 0)
    refused = seen.ways["refused while it was stopped"]
    report.held("a lock is not taken from who is stopped", holds=place.wrest is None or refused == seen.rounds)


def fleets(report: Report, place: Place, options: argparse.Namespace) -> None:
    """Three `turnwal recover --all` at once; then, where there is time, three of which one is killed."""
    for kill in (False, True)[: options.times]:
        with PLACES[place.name]() as fresh:
            seen = recoveries.run(fresh, SESSIONS * options.times, PROCESSES, seed=options.seed, kill=kill)
        report.line("sessions, each recovered once", seen.sessions)
        report.line("by each process", ", ".join(str(each) for each in seen.recoverers.values()))
        report.line("events that were appended", seen.events)
        report.line("exit codes", ", ".join(f"{times} × {code}" for code, times in sorted(seen.exits.items())))
        report.violations(seen.violations)
    with PLACES[place.name]() as fresh:
        found = recoveries.again(fresh)
    report.line("planted: a second recovery", "caught" if found else "NOT CAUGHT")
    report.held("a second recovery is caught", holds=bool(found))


def canaries(report: Report, options: argparse.Namespace) -> None:
    """Planted defects."""
    with PLACES["sqlite"]() as place:
        found = writers.run(place, CLAIMS, APPENDS, stubborn=True, planted=planted.unfenced(place)).violations
    _caught(report, "writers that no epoch keeps out", found, "writes again after its successor")
    with PLACES["sqlite"]() as place:
        found = writers.run(place, CLAIMS, APPENDS, planted=planted.forgetful(place)).violations
    _caught(report, "acknowledges what it never wrote", found, "is another one now")
    with PLACES["sqlite"]() as place:
        stale = Zombies(place, options.seed, stubborn=True, planted=planted.unfenced(place, locked=True))
        found = stale.run(CANARY_ROUNDS, until="writes again after its successor").violations
    _caught(report, "owners that no epoch keeps out", found, "writes again after its successor")
    for shown in ("is called not started and", "effects of key"):
        with PLACES["file"]() as place:
            found = Agents(place, options.seed, kinds=("hasty",)).run(CANARY_ROUNDS, until=shown).violations
        _caught(report, "runs bodies before the barrier", found, shown)


def _caught(report: Report, name: str, found: list[str], shown: str) -> None:
    caught = any(shown in violation for violation in found)
    report.line(f"{name}: '… {shown} …'", "caught" if caught else "NOT CAUGHT")
    report.held(f"caught: {name}", holds=caught)


def cut_connections(report: Report, options: argparse.Namespace) -> None:
    """A connection to PostgreSQL that is cut at every so many bytes of an append."""
    seen = cuts.run(None if options.every_byte else POSITIONS * options.times)
    for conversation, length in seen.lengths.items():
        report.line(conversation, f"{seen.cuts[conversation]} cuts in {length} bytes")
    report.line("cuts", seen.cuts.total())
    report.line("of them behind a commit that nobody was told of", seen.written)
    report.violations(seen.violations)
    report.held("some cuts behind a commit", holds=seen.written > 0)
    for name, caught in cuts.canaries().items():
        report.line(f"planted: {name}", "caught" if caught else "NOT CAUGHT")
        report.held(f"caught: {name}", holds=caught)


def failovers(report: Report, options: argparse.Namespace) -> None:
    """A standby is promoted beside a primary that lives on."""
    for _ in range(max(1, options.times // 5)):
        seen = failover.run()
        report.line("events that the old primary acknowledged", seen.acknowledged)
        report.line("events that were written at the promoted one", seen.continued)
        report.line("writers that were told that nobody knows", seen.unknown)
        report.line("later attempts at the old primary, all in vain", seen.refused)
        report.line("planted: acknowledges alone", f"caught, {seen.split} times" if seen.split else "NOT CAUGHT")
        report.violations(seen.violations)
        report.held("caught: a primary that acknowledges alone", holds=seen.split > 0)
        report.held("all were told", holds=seen.unknown == failover.WRITERS and seen.refused == 2 * failover.WRITERS)


ON_A_STORE: Final[Mapping[str, Callable[[Report, Place, Any], None]]] = {
    "writers": fighting_writers,
    "owners": stopped_owners,
    "agents": stopped_agents,
    "fleets": fleets,
}
"""What is done on each store; in the memory of one process there are only writers."""

ALONE: Final[Mapping[str, Callable[[Report, Any], None]]] = {
    "canaries": canaries,
    "cuts": cut_connections,
    "failovers": failovers,
}


def main(arguments: list[str] | None = None) -> int:
    """Run the campaigns that are named, all by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.races", description=__doc__)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="decides all but the instants")
    parser.add_argument("--only", choices=[*ON_A_STORE, *ALONE], action="append", help="may be repeated")
    parser.add_argument("--store", choices=PLACES, action="append", help="on this store alone; may be repeated")
    parser.add_argument("--times", type=int, default=TIMES, help="how much of everything; 1 is what every change gets")
    parser.add_argument("--every-byte", action="store_true", help="cut behind every byte; takes a quarter of an hour")
    options = parser.parse_args(arguments)
    report = Report()
    given = sys.argv[1:] if arguments is None else arguments
    seed = [] if any(word.startswith("--seed") for word in given) else ["--seed", str(options.seed)]
    print(f"seed {options.seed}; to repeat: {' '.join(['python -m tests.races', *given, *seed])}")
    for name in options.only or [*ON_A_STORE, *([] if options.store else ALONE)]:
        for store in (options.store or PLACES) if name in ON_A_STORE else [""]:
            if store != "memory" or name == "writers":
                _run(report, name, store, options)
    print("everything held" if report.ok else "NOT EVERYTHING HELD")
    return 0 if report.ok else 1


def _run(report: Report, name: str, store: str, options: argparse.Namespace) -> None:
    began = time.monotonic()
    if store:
        print(f"{name} on {store}: {ON_A_STORE[name].__doc__}")
        with PLACES[store]() as place:
            ON_A_STORE[name](report, place, options)
    else:
        print(f"{name}: {ALONE[name].__doc__}")
        ALONE[name](report, options)
    without_threads()
    print(f"  {time.monotonic() - began:.1f} s")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
