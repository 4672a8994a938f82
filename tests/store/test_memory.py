"""Memory: what it has of a file, and what it needs of its own."""

import gc
import threading
from collections.abc import Iterable

import pytest

from tests.store.building import file_of, grow, head_of, lines_of, log_of, sound_lines
from turnwal.core.chain import EMPTY, Head
from turnwal.core.errors import OwnershipLost, Refused, SessionNotFound, TooNew
from turnwal.store import memory
from turnwal.store.memory import MemoryClaim, MemoryStore


def test_positions_are_those_of_the_file_that_the_lines_would_make() -> None:
    lines = lines_of(log_of())
    store = MemoryStore()
    store.claim("s").append(lines, EMPTY)

    positions = [len(file_of(lines[:index])) for index in range(len(lines))]
    assert [found.position for found in store.read("s")] == positions
    end = len(file_of(lines))
    assert list(store.read("s", end, after=head_of(lines))) == []
    assert list(store.read("s", end + 5, after=head_of(lines))) == []
    with pytest.raises(Refused):
        list(store.read("s", 1))


def test_reading_goes_on_into_what_is_appended_meanwhile() -> None:
    log = log_of()
    store = MemoryStore()
    claim = store.claim("s")
    claim.append(lines_of(log), EMPTY)
    reading = store.read("s")
    first = next(reading)
    head = log.head
    claim.append(grow(log, 2), head)

    assert sound_lines([first, *reading]) == lines_of(log)


def test_a_second_door_sees_the_same_and_closes_only_its_own() -> None:
    store = MemoryStore()
    other = MemoryStore(beside=store)
    claim = store.claim("s")
    other.claim("t")
    other.close()

    assert list(other.sessions()) == ["s", "t"]
    assert other.probe("t").owner is None
    claim.append(lines_of(log_of()), EMPTY)
    store.close()
    with pytest.raises(OwnershipLost):
        claim.append(grow(log_of()), log_of().head)


def test_f39_a_line_of_a_newer_version_is_kept_and_read_as_too_new() -> None:
    store = MemoryStore()
    claim = store.claim("s")
    newer = lines_of(log_of(0))[0][:-1] + b',"signature":"x"}'

    claim.append([newer], EMPTY)
    with pytest.raises(TooNew):
        list(store.read("s"))


def test_a_head_with_another_count_is_another_head() -> None:
    log = log_of()
    claim = MemoryStore().claim("s")
    claim.append(lines_of(log), EMPTY)

    with pytest.raises(OwnershipLost):
        claim.append([], Head(log.head.count + 1, log.head.hash))


def test_only_what_is_there_can_be_stolen() -> None:
    with pytest.raises(SessionNotFound):
        MemoryStore().steal("s")


class Interrupting(list[bytes]):
    """A list on which an interrupt comes when it has grown."""

    def extend(self, more: Iterable[bytes]) -> None:
        super().extend(more)
        raise KeyboardInterrupt


def test_an_interrupt_within_an_append_leaves_the_batch_out_and_the_session_usable() -> None:
    lines = lines_of(log_of())
    store = MemoryStore()
    claim = store.claim("s")
    claim.append(lines[:2], EMPTY)
    shelf = store._memory.shelves["s"]
    kept = shelf.lines
    shelf.lines = Interrupting(kept)
    with pytest.raises(KeyboardInterrupt):
        claim.append(lines[2:3], head_of(lines[:2]))
    shelf.lines = list(shelf.lines)
    assert sound_lines(list(store.read("s"))) == lines[:2]
    claim.append(lines[2:], head_of(lines[:2]))
    assert sound_lines(list(store.read("s"))) == lines
    assert sound_lines(list(store.read("s", len(file_of(lines[:2])), after=head_of(lines[:2])))) == lines[2:]


def test_a_claim_that_is_lost_on_its_way_owns_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    store.claim("s").release()

    def interrupted(_: str) -> str:
        raise KeyboardInterrupt

    for place in ("describe", "told"):
        with monkeypatch.context() as patched:
            patched.setattr(memory, place, interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.claim("s")
        assert store.probe("s").owner is None
    dropped: list[MemoryClaim] = [store.claim("s", owner="lost")]
    assert store.probe("s").owner is not None
    dropped.clear()
    gc.collect()
    assert store.probe("s").owner is None
    store.claim("s").append(lines_of(log_of()), EMPTY)


def test_whoever_waits_hears_of_a_claim_that_is_dropped() -> None:
    store = MemoryStore()
    held = [store.claim("s", owner="lost")]
    timer = threading.Timer(0.2, held.clear)
    timer.start()
    try:
        assert not store.claim("s", wait=30).released
    finally:
        timer.join()


def test_a_claim_that_is_interrupted_when_it_is_made_is_free_though_the_exception_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()

    class Interrupting:
        """A lock that an interrupt comes behind."""

        def __enter__(self) -> None:
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()
            if store.probe("s").owner is not None:
                raise KeyboardInterrupt

    lock = store._memory.lock
    with monkeypatch.context() as patched:
        patched.setattr(store._memory, "lock", Interrupting())
        with pytest.raises(KeyboardInterrupt) as kept:
            store.claim("s")
    assert kept.value.__traceback__ is not None
    assert store.probe("s").owner is None
    store.claim("s").release()
