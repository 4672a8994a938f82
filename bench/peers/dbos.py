"""DBOS: a workflow whose steps return the messages; to load is to run it again, which replays what is recorded."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID

from bench.peers.work import TOOLS, Peer, acted_async, text

_folder = Path()


@DBOS.step()
def _say(number: int) -> str:
    return text(number)


@DBOS.workflow()
def _talk(count: int, timed: int) -> list[float]:
    for number in range(count):
        _say(number)
    found = []
    for number in range(timed):
        began = time.perf_counter()
        _say(number)
        found.append(time.perf_counter() - began)
    return found


@DBOS.step()
async def _act(name: str) -> str:
    return await acted_async(_folder, name)


@DBOS.workflow()
async def _agent() -> list[str]:
    return list(await asyncio.gather(*(_act(name) for name in TOOLS)))


class _Dbos(Peer):
    package = "dbos"

    def url(self, folder: Path) -> str:
        raise NotImplementedError

    def launch(self, folder: Path) -> None:
        config: Any = {
            "name": "bench",
            "system_database_url": self.url(folder),
            "application_version": "1",
            "run_admin_server": False,
            "log_level": "ERROR",
        }
        DBOS(config=config)
        DBOS.launch()

    def fill(self, folder: Path, count: int) -> None:
        # the steps run in the workflow that is timed: one that has ended takes no more of them
        (folder / "count").write_text(str(count))

    def append(self, folder: Path, times: int) -> list[float]:
        count = int((folder / "count").read_text())
        self.launch(folder)
        with SetWorkflowID(f"talk-{folder.parent.name}-{count}"):
            found: list[float] = _talk(count, times)
        DBOS.destroy()
        return found

    def load(self, folder: Path) -> int:
        count = int((folder / "count").read_text())
        self.launch(folder)
        steps = DBOS.list_workflow_steps(f"talk-{folder.parent.name}-{count}")
        DBOS.destroy()
        return len([step["output"] for step in steps])

    def play(self, folder: Path) -> None:
        global _folder  # noqa: PLW0603 - a step takes only what can be stored
        _folder = folder
        self.launch(folder)
        with SetWorkflowID(f"crash-{folder.parent.name}"):
            asyncio.run(_agent())

    def resume(self, folder: Path) -> str:
        global _folder  # noqa: PLW0603 - as above
        _folder = folder
        self.launch(folder)
        results = DBOS.retrieve_workflow(f"crash-{folder.parent.name}").get_result()
        DBOS.destroy()
        return f"the workflow is run again at its start; it goes on with {results}"


class Sqlite(_Dbos):
    """The default."""

    name = "DBOS, SQLite"

    def url(self, folder: Path) -> str:
        return f"sqlite:///{folder / 'dbos.sqlite'}"


class Postgres(_Dbos):
    """What it recommends."""

    name = "DBOS, PostgreSQL"

    def url(self, folder: Path) -> str:
        del folder
        return os.environ["TURNWAL_BENCH_URL"]


PEERS = {"sqlite": Sqlite, "postgres": Postgres}
