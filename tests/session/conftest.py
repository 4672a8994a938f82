"""Sessions on every store, with a clock and ids that repeat."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from tests.store.server import fresh_schema
from turnwal.session.sessions import Sessions
from turnwal.store.file import FileStore
from turnwal.store.memory import MemoryStore
from turnwal.store.postgres import PostgresStore
from turnwal.store.protocol import Store
from turnwal.store.sqlite import SqliteStore

Reopen = Callable[[], Sessions]


def sessions_on(store: Store) -> Sessions:
    ticks = count(1_764_500_000_000, 7)
    return Sessions(store, clock=lambda: next(ticks), nonce=lambda: "5" * 32)


@pytest.fixture(params=["memory", "file", "sqlite", "postgres"])
def sessions(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sessions]:
    stores: dict[str, Callable[[], Store]] = {
        "memory": MemoryStore,
        "file": lambda: FileStore(tmp_path / "store"),
        "sqlite": lambda: SqliteStore(tmp_path / "agents.db"),
    }
    with ExitStack() as stack:
        if request.param == "postgres":
            url = stack.enter_context(fresh_schema())
            stores["postgres"] = lambda: PostgresStore(url)
        yield stack.enter_context(sessions_on(stores[request.param]()))
