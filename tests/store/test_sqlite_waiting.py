"""Waiting for the commits of other processes: evenly, and no longer than was said."""

import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import turnwal
from turnwal.core.errors import StoreFailed
from turnwal.store import sqlite_file
from turnwal.store.sqlite_waiting import Patience

PROCESSES = 12
APPENDS = 2400


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    """A database that somebody writes for as long as the test lasts."""
    path = tmp_path / "agents.db"
    with turnwal.open_store(f"sqlite:{path}") as store, store.session("s") as session:
        session.flush()
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    yield path
    other.close()


def test_patience_ends_when_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda pause: now.__setitem__(0, now[0] + pause))
    patience = Patience(2_000)

    for _ in range(2):  # each lock has its own time
        tries = 0
        began = now[0]
        while patience(tries):
            tries += 1
        assert now[0] - began == pytest.approx(2.0, abs=0.02)


def test_who_waits_too_long_is_told(locked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_MS", 20)

    with (
        turnwal.open_store(f"sqlite:{locked}") as store,
        pytest.raises(StoreFailed, match="Busy"),
        store.session("s") as session,
    ):
        session.flush()


def test_an_interrupt_ends_the_wait(locked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    with turnwal.open_store(f"sqlite:{locked}") as store, monkeypatch.context() as patched:
        patched.setattr(time, "sleep", interrupted)
        with pytest.raises(KeyboardInterrupt), store.session("s") as session:
            session.flush()


def test_processes_that_append_without_a_pause_all_get_their_turn(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'agents.db'}"
    forking = multiprocessing.get_context("fork")
    counts = forking.Array("i", PROCESSES)

    def append(number: int) -> None:
        with closing(turnwal.open_store(url)) as store, store.session(f"s{number}", wait=20.0) as session:
            while sum(counts[:]) < APPENDS:
                session.append("x.note", {"text": "my turn"})
                session.flush()
                counts[number] += 1
        os._exit(0)

    processes = [forking.Process(target=append, args=(number,)) for number in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

    assert [process.exitcode for process in processes] == [0] * PROCESSES
    each = counts[:]
    # without the even pauses one got a hundredth of what another got
    assert min(each) * 30 > max(each), each
