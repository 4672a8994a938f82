"""Sessions of one event loop share commits as threads do."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.server import fresh_schema
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.store.postgres import PostgresStore
from turnwal.store.sqlite import SqliteStore

SESSIONS = 48


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteStore | PostgresStore]:
    if request.param == "sqlite":
        with closing(SqliteStore(tmp_path / "agents.db")) as found:
            yield found
    else:
        with fresh_schema() as url, closing(PostgresStore(url)) as found:
            yield found


def test_the_barriers_of_many_sessions_wait_for_one_commit(
    store: SqliteStore | PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions(store)
    opened = [sessions.session(f"s{number:02}").open() for number in range(SESSIONS)]
    groups: list[int] = []
    commit = store._group._commit

    def counted(group: list[object]) -> None:
        groups.append(len(group))
        commit(group)  # type: ignore[arg-type]

    monkeypatch.setattr(store._group, "_commit", counted)

    async def flushed(session: Session) -> int:
        session.append("x.note", {"text": "one of many"})
        return (await session.aflush()).count

    async def all_at_once() -> list[int]:
        # nobody may commit until all wait: what a slow commit of another would do
        store._group._turn.acquire()
        waiting = asyncio.gather(*map(flushed, opened))
        while len(store._group._waiting) < SESSIONS:  # noqa: ASYNC110 - it happens in threads
            await asyncio.sleep(0.001)
        store._group._turn.release()
        store._group._wake_next()
        return await waiting

    assert len(set(asyncio.run(all_at_once()))) == 1
    assert groups == [SESSIONS]
    for session in opened:
        session.close()
