"""Several `turnwal recover --all` at once, on a store full of interrupted sessions."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

from tests.crash.reading import read_log
from tests.races.places import Place
from turnwal.core.line import Event, make
from turnwal.session.sessions import Sessions
from turnwal.store.memory import MemoryStore
from turnwal.store.protocol import Record

OK: Final = 0
HELD: Final = 5
ENDED_S: Final = 120.0
WAIT_S: Final = 20
"""How long the run behind a killed one waits: longer than the lease that the command line takes."""

KILLED_S: Final = 0.3

_STARTER: Final = """
import sys
import turnwal.cli, turnwal.session.sessions, turnwal.store.postgres, turnwal.store.sqlite
print("ready", flush=True)
sys.stdin.readline()
sys.argv[0] = "turnwal"
turnwal.cli.main()
"""
"""What costs time at the start is done before they are let go, so that they meet."""


@dataclass
class Seen:
    """What came of it."""

    sessions: int = 0
    events: int = 0
    exits: Counter[int] = field(default_factory=Counter)
    killed: int = 0
    recoverers: Counter[str] = field(default_factory=Counter)
    """How many sessions each process recovered, as the logs say."""
    violations: list[str] = field(default_factory=list)


def interrupted(session: str, *, more: int = 0) -> list[bytes]:
    """A session whose owner died with one call answered, one dispatched, and one or more neither."""
    names = ("look", "pay", "mail", *(f"mail {number}" for number in range(more)))
    parts = [{"type": "tool_call", "id": name, "name": name, "arguments": "{}"} for name in names]
    store = MemoryStore()
    with Sessions(store).session(session) as opened, opened.turn(user="go") as turn, turn.step() as step:
        first, second, *_ = step.assistant({"parts": parts})
        first.dispatch()
        first.result("seen")
        second.dispatch()
        opened.flush()
        kept = len(opened)
    return [found.line for found in store.read(session) if isinstance(found, Record)][:kept]


def run(place: Place, sessions: int, processes: int, *, seed: int, kill: bool = False) -> Seen:
    """Start them together; `kill` ends one of them at some instant, and another run comes afterwards."""
    seen = Seen(sessions=sessions)
    before = {f"r{number}": interrupted(f"r{number}") for number in range(sessions)}
    with closing(place.open()) as store:
        for session, lines in before.items():
            store.put(session, lines)
        planned = {session: len(Sessions(store).inspect(session).plan.repairs) for session in before}
    running = [_recover(place) for _ in range(processes)]
    _let_go(running)
    if kill:
        time.sleep(random.Random(f"recoveries {seed}").uniform(0, KILLED_S))
        running[0].send_signal(signal.SIGKILL)
    _wait(running, seen)
    if kill:
        late = [_recover(place, "--wait", str(WAIT_S))]
        _let_go(late)
        _wait(late, seen)
    for session, lines in before.items():
        seen.violations += [f"{session}: {what}" for what in _judge(place, session, lines, planned[session], seen)]
    seen.violations += [
        f"a process ended with {code}" for code in seen.exits if code not in (OK, HELD, -signal.SIGKILL)
    ]
    seen.killed = seen.exits[-signal.SIGKILL]
    return seen


def again(place: Place) -> list[str]:
    """Recover one session, plant a second recovery behind the first, and judge it."""
    (before,) = [interrupted("r0")]
    with closing(place.open()) as store:
        store.put("r0", before)
        with Sessions(store).session("r0") as session:
            assert session.recovered is not None
            planned, head = len(session.recovered.repairs), session.head
        claim = store.claim("r0")
        data = {"format": 1, "owner": {"description": "a second one"}, "open": [], "waiting": []}
        claim.append([make(Event(seq=head.count, prev=head.hash, time=0, type="session_resume", data=data))[0]], head)
        claim.release()
    return _judge(place, "r0", before, planned, Seen())


def _recover(place: Place, *more: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", _STARTER, "recover", "--all", "--store", place.url, *more]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def _let_go(running: "list[subprocess.Popen[str]]") -> None:
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()


def _wait(running: "list[subprocess.Popen[str]]", seen: Seen) -> None:
    for process in running:
        _, complained = process.communicate(timeout=ENDED_S)
        seen.exits[process.returncode] += 1
        if "Traceback" in complained or "unexpected" in complained:
            seen.violations.append(complained)


def _judge(place: Place, session: str, before: list[bytes], planned: int, seen: Seen) -> list[str]:
    """What is wrong with a session that was recovered once: its repairs and who goes on, in one batch."""
    lines = place.lines(session)
    reading = read_log(b"".join(line + b"\n" for line in lines))
    added: list[dict[str, Any]] = reading.events[len(before) :]
    seen.events += len(added)
    found = list(reading.problems)
    if lines[: len(before)] != before:
        found.append("what was there is changed")
    kinds = Counter(event["type"] for event in added)
    seen.recoverers.update(
        event["data"]["owner"]["description"].split(",")[0] for event in added if event["type"] == "session_resume"
    )
    if kinds["session_resume"] != 1:
        found.append(f"it was recovered {kinds['session_resume']} times")
    if len(added) != planned + 1:
        found.append(f"{planned} repairs were planned, {len(added) - 1} are there")
    if {event.get("batch", event["seq"]) for event in added} != {len(before)}:
        found.append("what recovery appended is more than one batch")
    return found
