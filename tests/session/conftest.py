"""Sessions on both stores, with a clock and ids that repeat."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from turnwal.session.sessions import Sessions
from turnwal.store.file import FileStore
from turnwal.store.memory import MemoryStore
from turnwal.store.protocol import Store
from turnwal.store.sqlite import SqliteStore

Reopen = Callable[[], Sessions]


def sessions_on(store: Store) -> Sessions:
    ticks = count(1_764_500_000_000, 7)
    return Sessions(store, clock=lambda: next(ticks), nonce=lambda: "5" * 32)


@pytest.fixture(params=["memory", "file", "sqlite"])
def sessions(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sessions]:
    stores: dict[str, Callable[[], Store]] = {
        "memory": MemoryStore,
        "file": lambda: FileStore(tmp_path / "store"),
        "sqlite": lambda: SqliteStore(tmp_path / "agents.db"),
    }
    with sessions_on(stores[request.param]()) as found:
        yield found
