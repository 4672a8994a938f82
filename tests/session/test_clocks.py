"""Wall clocks that jump: order comes from seq alone, and what recovery says does not come from a clock."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import chain, count, cycle, repeat
from typing import Any, Final

import pytest

from tests.session.helpers import TOOLS, asks, die, reply, stored
from tests.store.server import fresh_schema
from turnwal.core.errors import SessionHeld
from turnwal.core.line import Event
from turnwal.session.sessions import Sessions
from turnwal.session.verifying import verify
from turnwal.store.postgres import PostgresStore
from turnwal.store.protocol import Store

NOW: Final = 1_764_500_000_000
YEAR: Final = 365 * 86_400_000

CLOCKS: Final[dict[str, Callable[[], Iterator[int]]]] = {
    "steady": lambda: count(NOW, 7),
    "frozen": lambda: repeat(NOW),
    "back a year in the middle": lambda: chain((NOW + tick for tick in range(9)), count(NOW - YEAR)),
    "forward ten years and back": lambda: chain(
        range(NOW, NOW + 6), range(NOW + 10 * YEAR, NOW + 10 * YEAR + 6), count(NOW)
    ),
    "backwards": lambda: count(NOW, -1_000),
    "to and fro": lambda: cycle([NOW, NOW - YEAR, NOW + YEAR, 0]),
}


def life(store: Store, id: str, ticks: Iterator[int]) -> list[str]:
    """A turn, a turn that a crash ends, a later owner and its turn; returns what recovery said of each lost call."""
    sessions = Sessions(store, clock=lambda: next(ticks), nonce=lambda: "5" * 32)
    session = sessions.session(id).open()
    with session.turn(user="go") as turn, turn.step() as step:
        step.run(step.assistant(reply(asks("pay", "a"), asks("look", "b"))), TOOLS)
    turn = session.open_turn(user="again")
    step = turn.step().begin()
    paid, lost, _ = step.assistant(reply(asks("pay", "c"), asks("pay", "d", order=1), asks("look", "e")))
    paid.dispatch()
    paid.result("paid")
    lost.dispatch()
    session.flush()
    die(session)
    with sessions.session(id) as heir:
        assert heir.recovered is not None
        verdicts = [
            f"{repair.data['call']} {repair.data['metadata']['risk']}" for repair in heir.recovered.lost_calls()
        ]
        with heir.turn(user="what now?") as turn, turn.step() as step:
            step.run(step.assistant(reply(asks("look", "f"))), TOOLS)
    return verdicts


def told(event: Event) -> tuple[int, str, Any]:
    """An event without what has to do with time: stamps, and keys and ids that are digests of stamped lines."""
    return event.seq, event.type, _timeless(event.data)


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        timed = ("key", "duration_ms", "owner", "id")
        return {name: _timeless(each) for name, each in value.items() if name not in timed}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


def test_a_clock_that_jumps_changes_the_stamps_and_nothing_else(sessions: Sessions) -> None:
    verdicts = {name: life(sessions.store, name, clock()) for name, clock in CLOCKS.items()}
    events = {name: stored(sessions, name) for name in CLOCKS}
    reports = {name: verify(sessions.store, name) for name in CLOCKS}

    assert {tuple(found) for found in verdicts.values()} == {("14.1 tool_outcome_unknown", "14.2 tool_not_started")}
    for name in CLOCKS:
        assert [told(event) for event in events[name]] == [told(event) for event in events["steady"]], name
        assert [event.seq for event in events[name]] == list(range(len(events[name])))
        assert reports[name].sound
        assert not reports[name].interrupted
        assert sessions.glance(name).state == "clean"
    went_back = {name: {finding.code for finding in report.findings} for name, report in reports.items()}
    assert went_back == {name: set() if name in ("steady", "frozen") else {"clock_went_back"} for name in CLOCKS}


# --- leases, which the database's clock times

SHIFTED: Final = """
import sys, time
shift = float(sys.argv.pop(1))
now, now_ns, utc = time.time, time.time_ns, time.gmtime
time.time = lambda: now() + shift
time.time_ns = lambda: now_ns() + int(shift * 1e9)
time.gmtime = lambda seconds=None: utc(time.time() if seconds is None else seconds)
from tests.store.postgres_writer import main
print(main(sys.argv[1], "s", 1_000_000, float(sys.argv[2])), flush=True)
"""
DAY_S: Final = 86_400
LEASE_S: Final = 0.6


@contextmanager
def owner_whose_clock_is_off(url: str, shift_s: int) -> Iterator["subprocess.Popen[str]"]:
    """A process that appends all the time; its whole clock is off where there is a tool for that, else Python's."""
    tool = shutil.which("faketime")
    command = [sys.executable, "-c", SHIFTED, "0" if tool else str(shift_s), url, str(LEASE_S)]
    prefix = [tool, "-f", f"{shift_s:+d}s"] if tool else []
    with subprocess.Popen([*prefix, *command], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("shift_s", [-DAY_S, DAY_S])
def test_a_client_whose_clock_is_a_day_off_neither_loses_a_lease_nor_keeps_one(shift_s: int) -> None:
    with fresh_schema() as url, closing(PostgresStore(url, lease_s=30)) as store:
        with owner_whose_clock_is_off(url, shift_s) as owner:
            until = time.monotonic() + 3 * LEASE_S
            while time.monotonic() < until:
                with pytest.raises(SessionHeld):
                    store.claim("s")
            assert owner.poll() is None
            owner.send_signal(signal.SIGKILL)
        before = time.monotonic()
        store.claim("s", wait=20).release()
        assert time.monotonic() - before < 10
