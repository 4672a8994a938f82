"""`python -m tests.crash`: kill, interrupt and starve agents, look at what their logs say, and print the totals.

Everything but the instants of death comes from one seed. Exits 1 when anything did not hold, when a planted defect was
not caught, or when too little of something happened for the rest to mean anything.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from math import ceil, floor
from typing import Any, Final

from tests.crash import calls, classes, kills, nested, points, starving
from tests.crash.everywhere import Everywhere
from tests.crash.full import Filling
from tests.crash.interrupts import Interrupted, Interrupts
from tests.crash.places import PLACES, place_in
from tests.crash.reporting import Report

SHARES: Final[Mapping[str, int]] = {"file": 300, "sqlite": 110, "postgres": 40}
"""How the random kills are shared out; one on PostgreSQL takes as long as five on files. Fewer than these say too
little, whatever ended the campaign before; who asks for fewer gets fewer."""
KILLS: Final = sum(SHARES.values())
UNSYNCED_SHARE: Final = 0.05
SURVIVED: Final = 0.1
"""How many works may make fewer calls than were counted: a server's answers come in as many pieces as they like."""
STARVED: Final = 0.25
INTERRUPTED: Final = 5 / 6
"""The share of the processes that has to hear of its interrupt; a signal may come as a block is being left."""
FLOORS: Final[Mapping[str, float]] = {
    "acknowledged events": 5,
    "effects": 1,
    "answered": 0.5,
    "unknown after a kill": 0.1,
    "not started, declared": 0.1,
    "not started, inferred": 0.02,
    "torn tails": 0.02,
    "kills in recovery": 0.5,
}
"""How much of each has to be seen for each kill, or the campaign has looked at too little."""


def kill_campaign(report: Report, options: argparse.Namespace) -> None:
    """Random deaths."""
    for store in options.store or SHARES:
        share = SHARES[store] / sum(SHARES[each] for each in options.store or SHARES)
        _kill_on(store, max(1, round(share * options.kills)), report, options)


def _kill_on(store: str, kills_of_it: int, report: Report, options: argparse.Namespace) -> None:
    began = time.monotonic()
    with place_in(store) as place:
        campaign = kills.Campaign(options.seed, place)
        totals = campaign.run(kills_of_it, until_s=options.cap)
        seen = {
            "acknowledged events": totals.acknowledged,
            "effects": totals.effects,
            "answered": totals.live["answered"],
            "unknown after a kill": totals.recovered["unknown"],
            "not started, declared": totals.recovered["declared"],
            "not started, inferred": totals.recovered["inferred"],
            "torn tails": totals.torn_tails,
            "kills in recovery": totals.kills_in_recovery,
        }
        if store != "file":
            del seen["torn tails"]  # a database has none
        report.line(f"on {store}: kills", totals.kills)
        for name, count in sorted(totals.deaths.items()):
            report.line(name, count)
        report.line("sessions", totals.sessions)
        for name, count in seen.items():
            report.line(name, count)
            report.held(f"at least {FLOORS[name]:g} a kill: {name}", holds=count >= floor(FLOORS[name] * totals.kills))
        for name, count in sorted(totals.live.items()):
            report.line(f"recorded by lives: {name}", count)
        report.line("unknown where not started could be said", totals.cautious)
        report.totals(totals)
        report.line("kills a second", f"{totals.kills / (time.monotonic() - began):.1f}")
        least = min(kills_of_it, SHARES[store])
        report.held(f"at least {least} kills", holds=totals.kills >= least)
        if totals.violations:
            print(f"  the files are kept in {campaign.root}")
        else:
            campaign.clear()


def canaries(report: Report, options: argparse.Namespace) -> None:
    """Planted defects, which kills find; and stores that never sync, which only a loss of power finds."""
    for name, caught in kills.canaries(options.seed, options.kills).items():
        report.line(name, "NOT CAUGHT" if caught is None else f"caught at kill {caught}")
        report.held(f"caught: {name}", holds=caught is not None)
    for name, totals in kills.unsynced(options.seed, max(1, round(UNSYNCED_SHARE * options.kills))).items():
        report.line(f"{name} never syncs: kills that it passes", totals.kills)
        report.violations(totals.violations)


def every_call(report: Report, options: argparse.Namespace) -> None:
    """A fixed piece of work, killed at every system call."""
    for store in options.store or PLACES:
        began = time.monotonic()
        campaign = calls.Calls(store, options.seed)
        totals = campaign.run(options.every)
        report.line(f"on {store}: calls that the work makes", campaign.counts.total())
        for name, count in sorted(campaign.killed.items()):
            report.line(f"killed at {name}", f"{count} of {campaign.counts[name]}")
        report.line("works that made fewer calls, and lived", campaign.survived)
        report.line("acknowledged events", totals.acknowledged)
        report.line("calls that recovery answered", totals.recovered.total())
        report.totals(totals)
        report.line("kills a second", f"{totals.kills / (time.monotonic() - began):.1f}")
        report.held("nearly all are killed", holds=campaign.survived <= max(1, SURVIVED * totals.kills))
        report.held("killed at a call of each name", holds=not campaign.counts.keys() - campaign.killed.keys())
        report.held("some calls are lost", holds=totals.recovered.total() > 0)
    for name, caught in calls.canaries(options.seed, options.store or PLACES).items():
        report.line(name, "NOT CAUGHT" if caught is None else f"caught at kill {caught}")
        report.held(f"caught: {name}", holds=caught is not None)


def nested_recoveries(report: Report, options: argparse.Namespace) -> None:
    """Recovery, killed at every system call, and the recovery of that, five deep."""
    for store in options.store or PLACES:
        campaign = nested.Nested(store, options.seed)
        totals = campaign.run(options.every)
        report.line(f"on {store}: calls that a recovery makes", campaign.counts.total())
        for depth, count in sorted(campaign.depths.items()):
            report.line(f"{depth} in a row were killed", count)
        report.line("kills inside a write", campaign.torn)
        report.line("unknown where not started could be said", totals.cautious)
        report.totals(totals)
        report.held("some were killed five deep", holds=campaign.depths[nested.DEPTH] > 0)
    caught = nested.canary(options.seed)
    report.line("sqlite keeps no batch whole", "NOT CAUGHT" if caught is None else f"caught within {caught} kills")
    report.held("caught: keeps no batch whole", holds=caught is not None)


def known_classes(report: Report, options: argparse.Namespace) -> None:
    """Deaths before a dispatch, behind it, behind the effect and behind the result, each with the class it must get."""
    for store in options.store or PLACES:
        with place_in(store) as place:
            campaign = classes.Classes(place, options.seed)
            totals = campaign.run(options.deaths)
            report.line(f"on {store}: deaths", totals.kills)
            for told, count in sorted(campaign.told.items()):
                report.line(told, count)
            report.totals(totals)
            campaign.clear()
    for shown in ("is called not started and", "effects of key"):
        with place_in("file") as place:
            campaign = classes.Classes(place, options.seed, hasty=True)
            found = campaign.run(options.deaths, until=shown).violations
            caught = any(shown in violation for violation in found)
            report.line(f"runs bodies before the barrier: '… {shown} …'", "caught" if caught else "NOT CAUGHT")
            report.held(f"caught: {shown}", holds=caught)
            campaign.clear()


def no_memory(report: Report, options: argparse.Namespace) -> None:
    """No memory, at random places of the code."""
    for store in options.store or PLACES:
        with place_in(store) as place:
            campaign = starving.Starving(place, options.seed)
            totals = campaign.run(options.starved)
            for counted in (campaign.heard, campaign.ends):
                for name, count in sorted(counted.items()):
                    report.line(f"on {store}: {name}", count)
            report.totals(totals)
            met = options.starved - campaign.heard["nothing"]
            report.held("a quarter and more met it", holds=met >= STARVED * options.starved)
            campaign.clear()


def every_point(report: Report, options: argparse.Namespace) -> None:
    """The demo's agent, killed at every point of its turn."""
    deaths = points.Deaths(options.seed)
    totals = deaths.run()
    report.line("kills", totals.kills)
    report.line("of them while another was finishing", totals.kills_in_recovery)
    report.line("points", ", ".join(sorted(deaths.names)))
    report.totals(totals)
    report.held("a point before and behind a write and each of three effects", holds=len(deaths.names) == 8)


def interrupts(report: Report, options: argparse.Namespace) -> None:
    """Real SIGINTs, and SIGTERMs and SIGHUPs that the application hears, at random instants."""
    campaign = Interrupts(options.seed)
    seen = campaign.run(options.interrupts)
    report.line("processes that were interrupted", seen.interrupted)
    report.line("interrupts", seen.interrupts)
    for name, count in sorted(seen.signals.items()):
        report.line(f"processes that got {name}", count)
    for name, count in sorted(seen.ends.items()):
        report.line(name, count)
    report.line("stuck", seen.stuck)
    report.totals(seen.totals)
    held_interrupts(report, seen, asked=options.interrupts)
    campaign.clear()


def held_interrupts(report: Report, seen: Interrupted, *, asked: int) -> None:
    """Hold that enough processes were interrupted; second signals to the same one do not make up for it."""
    least = ceil(INTERRUPTED * asked)
    report.held(f"at least {least} processes that a first signal interrupts", holds=seen.interrupted >= max(least, 1))


def everywhere(report: Report, options: argparse.Namespace) -> None:
    """An interrupt at every place of the code."""
    campaign = Everywhere()
    totals = campaign.run(options.share, options.seed)
    report.line("places that are passed", len(campaign.places))
    for name, count in sorted(campaign.ends.items()):
        report.line(name, count)
    report.totals(totals)
    report.held("interrupts at many places", holds=campaign.ends.total() > options.share * len(campaign.places))


def full(report: Report, options: argparse.Namespace) -> None:
    """A disk that fills up."""
    seen = Filling().run(options.stride)
    report.line("disks", seen.disks)
    for name, count in sorted(seen.heard.items()):
        report.line(f"the caller heard: {name}", count)
    report.line("partial writes covered by a damage event", seen.totals.torn_tails)
    report.line("unknown where not started could be said", seen.totals.cautious)
    report.totals(seen.totals)
    report.held("disks that were full", holds=seen.heard["store_full"] > 0)


CAMPAIGNS: Final[Mapping[str, Callable[[Report, Any], None]]] = {
    "points": every_point,
    "kills": kill_campaign,
    "canaries": canaries,
    "calls": every_call,
    "nested": nested_recoveries,
    "classes": known_classes,
    "memory": no_memory,
    "interrupts": interrupts,
    "everywhere": everywhere,
    "full": full,
}


def main(arguments: list[str] | None = None) -> int:
    """Run the campaigns that are named, all by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="decides all but the instants")
    parser.add_argument("--only", choices=CAMPAIGNS, action="append", help="one campaign; may be repeated")
    parser.add_argument("--store", choices=PLACES, action="append", help="on this store alone; may be repeated")
    parser.add_argument("--kills", type=int, default=KILLS, help="how many random kills")
    parser.add_argument("--cap", type=float, default=float("inf"), help="seconds after which no more is killed")
    parser.add_argument("--every", type=int, default=1, help="kill at every so-manieth system call only")
    parser.add_argument("--deaths", type=int, default=100, help="how many at each instant around one call, by store")
    parser.add_argument("--starved", type=int, default=100, help="how many agents lose their memory, by store")
    parser.add_argument("--interrupts", type=int, default=200, help="how many processes get Ctrl-C")
    parser.add_argument("--share", type=float, default=0.1, help="share of the places to interrupt at")
    parser.add_argument("--stride", type=int, default=499, help="bytes between two lengths at which the disk is full")
    options = parser.parse_args(arguments)
    report = Report()
    given = sys.argv[1:] if arguments is None else arguments
    seed = [] if any(word.startswith("--seed") for word in given) else ["--seed", str(options.seed)]
    print(f"seed {options.seed}; to repeat: {' '.join(['python -m tests.crash', *given, *seed])}")
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
