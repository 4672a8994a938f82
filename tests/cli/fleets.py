"""Fleets that really crashed: processes with many open sessions, killed, and what their logs say afterwards."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

import turnwal
from tests.cli.worlds import command, environment
from tests.store.server import fresh_schema

_AGENT = """
import sys, turnwal
url, prefix, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = {"lease_s": 1.0} if url.startswith("postgresql") else {}
store = turnwal.open_store(url, **options)

@turnwal.tool(idempotent=True)
def address(): ...

def asks(name, id):
    return {"type": "tool_call", "id": id, "name": name, "arguments": "{}"}

kept = []
for number in range(count):
    session = store.session(f"{prefix}{number:04}", owner="a night agent").open()
    shape = number % 4
    turn = session.open_turn(user="go", dispatch="none" if shape == 3 else "durable")
    step = turn.step().begin()
    calls = step.assistant({"parts": [asks("policy", "p"), asks("refund", f"r{number}"), asks("mail", "m")]})
    if shape in (0, 1, 2):
        calls[0].dispatch(); calls[0].result("a policy")
    if shape in (1, 2):
        calls[1].dispatch()
    if shape == 2:
        calls[2].dispatch()
    session.flush()
    kept.append((session, turn, step, calls))
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def agents(url: str, prefix: str, count: int) -> Iterator["subprocess.Popen[str]"]:
    """A live process that holds many sessions with open turns; killed at the end of the block."""
    with subprocess.Popen(
        [sys.executable, "-c", _AGENT, url, prefix, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def crash(url: str, prefix: str, count: int) -> None:
    """Leave many interrupted sessions behind, as a killed process does."""
    with agents(url, prefix, count):
        pass


def clean(url: str, prefix: str, count: int) -> None:
    with turnwal.open_store(url) as store:
        for number in range(count):
            with store.session(f"{prefix}{number:04}") as session:
                for question in ("hello", "and now?"):
                    with session.turn(user=question):
                        pass


@contextmanager
def fleet_url(kind: str, root: Path) -> Iterator[str]:
    """The URL of an empty store of a kind."""
    with ExitStack() as stack:
        yield {
            "file": lambda: str(root / "sessions"),
            "sqlite": lambda: f"sqlite:{root / 'agents.db'}",
            "postgres": lambda: stack.enter_context(fresh_schema()),
        }[kind]()


def damage(url: str, session: str) -> None:
    """Change a line in the middle of a stored session behind everybody's back, as a bad disk would."""
    with turnwal.open_store(url) as store:
        third = lines(store, session)[2]
    garbage = b"#" * len(third)
    if url.startswith("postgresql"):
        with psycopg.connect(url) as server:
            done = server.execute("UPDATE turnwal_line SET line = %s WHERE line = %s", (garbage, third))
            assert done.rowcount == 1
        return
    if not url.startswith("sqlite:"):
        path = Path(url, f"{session}.jsonl")
        path.write_bytes(path.read_bytes().replace(third, garbage))
        return
    connection = apsw.Connection(url.removeprefix("sqlite:"))
    connection.set_busy_timeout(10_000)
    ((name, trigger),) = connection.execute("SELECT name, sql FROM sqlite_schema WHERE name = 'line_is_never_updated'")
    connection.execute(f"DROP TRIGGER {name}")
    connection.execute("UPDATE line SET line = ? WHERE line = ?", (garbage, third))
    assert connection.changes() == 1
    connection.execute(trigger)
    connection.close()


def lines(store: Any, session: str) -> list[bytes]:
    return [item.line for item in store.store.read(session) if hasattr(item, "line")]


def start(*arguments: str) -> "subprocess.Popen[bytes]":
    """Begin the command line in a process of its own; nothing of what it prints is kept here unread."""
    return subprocess.Popen(
        command(*arguments), bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )


class Truth:
    """What the logs of a store say, read by nothing but JSON."""

    def __init__(self, url: str, prefix: str) -> None:
        self.recoveries: Counter[str] = Counter()
        """How often each session was recovered: by its ends of interrupted turns."""
        self.calls: Counter[tuple[str, str]] = Counter()
        """Calls that recovery answered, by tool and class."""
        self.unknown: set[tuple[str, str, str]] = set()
        """Session, key and id of each that may have run."""
        with turnwal.open_store(url) as store:
            for session in store:
                if session.startswith(prefix):
                    self._read(session, [json.loads(line) for line in lines(store, session)])

    def _read(self, session: str, events: list[dict[str, Any]]) -> None:
        self.recoveries[session] += 0
        for event in events:
            data = event["data"]
            if event["type"] == "turn_end" and data["reason"] == "interrupted":
                self.recoveries[session] += 1
            if event["type"] == "tool_result" and data.get("metadata", {}).get("synthetic"):
                metadata = data["metadata"]
                unknown = metadata["risk"] == "tool_outcome_unknown"
                self.calls[data["name"], "unknown" if unknown else f"not_started_{metadata['basis']}"] += 1
                if unknown:
                    self.unknown.add((session, data["call"], data["id"]))


def told(report: dict[str, Any]) -> Counter[tuple[str, str]]:
    """The calls that a report counts, by tool and class."""
    classes = ("unknown", "not_started_declared", "not_started_inferred")
    return Counter({(tool["name"], each): tool[each] for tool in report["tools"] for each in classes if tool[each]})


def unknown(report: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (entry["session"], call["call"], call["id"])
        for entry in report["sessions"]
        for call in entry["calls"]
        if call["risk"] == "tool_outcome_unknown"
    }


def of(report: dict[str, Any], outcome: str) -> list[str]:
    return [entry["session"] for entry in report["sessions"] if entry["outcome"] == outcome]


databases = pytest.mark.parametrize("kind", ["sqlite", "postgres"])
every_store = pytest.mark.parametrize("kind", ["file", "sqlite", "postgres"])
