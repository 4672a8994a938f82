"""Time and ids that repeat."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from turnwal.session.sessions import Sessions
from turnwal.store.file import FileStore
from turnwal.store.memory import MemoryStore
from turnwal.testing.fakes import START, FakeClock, FakeIds


def written(root: Path, seed: object) -> bytes:
    sessions = Sessions(FileStore(root), clock=FakeClock(), nonce=FakeIds(seed))
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        step.assistant({"parts": [{"type": "text", "content": "done"}]})
    return (root / "s.jsonl").read_bytes()


def test_what_is_written_with_them_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    assert written(tmp_path / "a", 1) == written(tmp_path / "b", 1)
    assert written(tmp_path / "a", 1) != written(tmp_path / "c", 2)


def test_a_clock_goes_on_by_its_step_and_wherever_it_is_moved() -> None:
    clock = FakeClock(1_000, step=-5)

    assert [clock(), clock()] == [1_000, 995]
    clock.move(60_000)
    assert clock() == 60_990
    still = FakeClock(step=0)
    assert {still() for _ in range(3)} == {START}


def test_a_session_keeps_the_time_that_its_clock_says() -> None:
    clock = FakeClock()
    with Sessions(MemoryStore(), clock=clock).session("s") as session:
        clock.move(-86_400_000)
        session.append("x.note", {})
        assert [event.time for event in session] == [START, START + 1 - 86_400_000]


def test_ids_are_nonces_each_another_one_from_any_thread() -> None:
    ids = FakeIds()
    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(lambda _: ids(), range(500)))

    assert len(set(given)) == 500
    assert all(len(each) == 32 and int(each, 16) >= 0 for each in given)
    again = FakeIds()
    assert sorted(given) == sorted(again() for _ in range(500))
