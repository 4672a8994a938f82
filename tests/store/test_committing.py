"""Group commit by itself, where a store cannot be brought to the moment."""

import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType

import pytest

from turnwal.core.errors import StoreFailed
from turnwal.store import committing
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


class Interrupt:
    """A profile function that interrupts at one instant: the interpreter raises Ctrl-C at just those it is called at.

    These are where a function begins and where a call of a C function has returned.
    """

    def __init__(self, instant: int) -> None:
        self.left = instant

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event not in ("call", "c_return") or frame.f_code.co_filename != committing.__file__:
            return
        self.left -= 1
        if self.left < 0:
            sys.setprofile(None)
            raise KeyboardInterrupt


def interrupted(group: GroupCommit[int], instant: int) -> bool:
    """Append 1 and be interrupted at an instant; False where there are fewer."""
    sys.setprofile(Interrupt(instant))
    try:
        group.append(1)
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


def interrupted_beside_another(instant: int, *, queued: bool) -> bool:
    """As `interrupted`, with another that waits for the same commit or comes behind it, and has to hear of its own."""
    committed: list[int] = []
    heard: list[StoreFailed | None] = []
    taken, over = threading.Event(), threading.Event()

    def commit(group: Sequence[Pending[int]]) -> None:
        committed.extend(pending.work for pending in group)

    def hold() -> None:
        with group._turn:
            taken.set()
            while len(group._waiting) < 2 and not over.wait(0.0005):
                pass
        group._wake_next()

    def append(work: int) -> None:
        try:
            group.append(work)
        except StoreFailed as error:
            heard.append(error)
        else:
            heard.append(None)

    group = GroupCommit(commit)
    other, last = (threading.Thread(target=append, args=(work,), daemon=True) for work in (2, 3))
    holder = threading.Thread(target=hold, daemon=True)
    if queued:
        holder.start()
        assert taken.wait(10)
        other.start()
    went_on = interrupted(group, instant)
    over.set()
    if not queued:
        other.start()
    other.join(10)
    last.start()
    last.join(10)

    assert len(heard) == 2, f"somebody waits for ever after an interrupt at instant {instant}"
    assert (2 in committed) >= (heard[0] is None)
    assert heard[1] is None
    assert committed[-1] == 3
    assert committed.count(1) <= 1
    return went_on


@pytest.mark.parametrize("queued", [False, True])
def test_an_interrupt_at_any_instant_leaves_the_turn_to_the_others(
    monkeypatch: pytest.MonkeyPatch, *, queued: bool
) -> None:
    monkeypatch.setattr(committing, "_AGAIN_S", 0.01)
    instant = 0
    while interrupted_beside_another(instant, queued=queued):
        instant += 1
    assert instant > 8


def test_an_append_inside_the_commit_of_the_same_thread_is_refused() -> None:
    committed: list[int] = []

    def commit(pendings: Sequence[Pending[int]]) -> None:
        if not committed:
            with pytest.raises(StoreFailed, match="in the middle of a commit"):
                group.append(2)
        committed.extend(pending.work for pending in pendings)

    group = GroupCommit(commit)
    group.append(1)
    group.append(3)
    assert committed == [1, 3]
