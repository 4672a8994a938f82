"""turnwal itself: each message appended and flushed, as a user of it would who waits for nothing else."""

import os
from pathlib import Path
from typing import Any

import turnwal
from bench.peers.work import DONE, TOOLS, Peer, acted, spent, text


def _message(number: int) -> dict[str, Any]:
    return {"parts": [{"type": "text", "content": text(number)}]}


class _Turnwal(Peer):
    package = "turnwal"
    durability = "full (its default)"

    def url(self, folder: Path) -> str:
        raise NotImplementedError

    def fill(self, folder: Path, count: int) -> None:
        with turnwal.open_store(self.url(folder)) as store, store.session(folder.name) as session:
            for number in range(count):
                session.append("user_message", _message(number))
            session.flush()

    def append(self, folder: Path, times: int) -> list[float]:
        with turnwal.open_store(self.url(folder)) as store, store.session(folder.name) as session:

            def one(number: int) -> None:
                session.append("user_message", _message(number))
                session.flush()

            return spent(one, times)

    def load(self, folder: Path) -> int:
        with turnwal.open_store(self.url(folder)) as store, store.session(folder.name) as session:
            return len(session.render("anthropic").messages[0]["content"])

    def play(self, folder: Path) -> None:
        with turnwal.open_store(self.url(folder)) as store, store.session("crash") as session:
            _converse(session, folder)

    def resume(self, folder: Path) -> str:
        # in PostgreSQL the lease of the dead owner has to run out first
        with turnwal.open_store(self.url(folder)) as store, store.session("crash", wait=60) as session:
            results = [event for event in session.surface() if event.type == "tool_result"]
            with session.turn(user="go on") as turn, turn.step() as step:
                step.assistant({"parts": [{"type": "text", "content": DONE}], "stop": "end"})
        told = {event.data["name"]: event.data["parts"][0]["content"] for event in results}
        return f"charge: “{told['charge']}”; look and mail keep their results" if len(told) == len(TOOLS) else str(told)


def _converse(session: Any, folder: Path) -> None:
    tools = {name: turnwal.tool(keyed=False)(_body(folder, name)) for name in TOOLS}
    calls = [{"type": "tool_call", "id": f"call_{name}", "name": name, "arguments": "{}"} for name in TOOLS]
    with session.turn(user="look, charge, and mail") as turn, turn.step() as step:
        step.run(step.assistant({"parts": calls, "stop": "tool_use"}), tools, parallel=True)


def _body(folder: Path, name: str) -> Any:
    def body() -> str:
        return acted(folder, name)

    return body


class File(_Turnwal):
    """The file store."""

    name = "turnwal, file"

    def url(self, folder: Path) -> str:
        return f"file:{folder / 'sessions'}"


class Sqlite(_Turnwal):
    """The SQLite store."""

    name = "turnwal, SQLite"

    def url(self, folder: Path) -> str:
        return f"sqlite:{folder / 'agents.db'}"


class Postgres(_Turnwal):
    """The PostgreSQL store; each size has a session of its own in one database."""

    name = "turnwal, PostgreSQL"

    def url(self, folder: Path) -> str:
        del folder
        return os.environ["TURNWAL_BENCH_URL"]


PEERS = {"file": File, "sqlite": Sqlite, "postgres": Postgres}
