"""Group commit by itself, where a store cannot be brought to the moment."""

import threading
import time
from collections.abc import Sequence

import pytest

from turnwal.core.errors import StoreFailed
from turnwal.store.committing import GroupCommit, Pending


def test_who_was_taken_by_a_thread_that_was_interrupted_hears_that_nobody_knows() -> None:
    committed: list[int] = []

    def commit(group: Sequence[Pending[int]]) -> None:
        committed.extend(pending.work for pending in group)

    group = GroupCommit(commit)
    raised: list[BaseException] = []

    def append() -> None:
        try:
            group.append(1)
        except StoreFailed as error:
            raised.append(error)

    group._turn.acquire()
    thread = threading.Thread(target=append)
    thread.start()
    while not group._waiting:
        time.sleep(0.001)
    group._waiting = []  # what is left of an interrupt between taking the group and committing it
    group._turn.release()
    thread.join(10)

    assert "left behind" in str(raised)
    assert committed == []
    group.append(2)
    assert committed == [2]


def test_many_threads_are_all_told_and_none_waits_for_the_clock() -> None:
    sizes: list[int] = []

    def commit(group: Sequence[Pending[int]]) -> None:
        sizes.append(len(group))
        time.sleep(0.001)

    group = GroupCommit(commit)

    def append() -> None:
        for number in range(25):
            group.append(number)

    threads = [threading.Thread(target=append) for _ in range(16)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(sizes) == 16 * 25
    assert len(sizes) < 200
    assert time.monotonic() - started < 5


def test_a_refusal_is_the_own_one_alone() -> None:
    def commit(group: Sequence[Pending[int]]) -> None:
        for pending in group:
            pending.error = ValueError("odd") if pending.work % 2 else None

    group = GroupCommit(commit)
    group.append(2)
    with pytest.raises(ValueError, match="odd"):
        group.append(1)
