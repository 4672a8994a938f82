"""Lost calls that are repeated side by side: every attempt stands in a turn, and none ends the turn of another."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.session.helpers import asks, die, reply, stored
from turnwal.core.line import Event
from turnwal.session.call import Call
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions

PATIENCE = 30


def lose(sessions: Sessions, count: int) -> list[str]:
    """Keys of calls that were dispatched when their process died."""
    session = sessions.session("s").open()
    calls = session.open_turn("go").step().begin().assistant(reply(*(asks("pay", f"k{n}", n=n) for n in range(count))))
    for call in calls:
        call.dispatch()
    die(session)
    with sessions.session("s") as session:
        session.append("x.begun", {})
    return [call.call_key for call in calls]


def told(sessions: Sessions) -> list[tuple[str, object]]:
    """Type and call of what stands behind the recovery."""
    events = stored(sessions, "s")
    begun = next(event.seq for event in events if event.type == "x.begun")
    return [(event.type, event.data.get("call")) for event in events[begun + 1 :] if event.type != "session_resume"]


def outside(events: list[Event]) -> list[Event]:
    """The attempts that were dispatched in no turn of their run."""
    opened: set[str] = set()
    found = []
    for event in events:
        if event.type == "turn_start":
            opened.add(event.run)
        elif event.type == "turn_end":
            opened.remove(event.run)
        elif event.type == "tool_call" and event.run not in opened:
            found.append(event)
    return found


class Pair:
    """Two bodies of which the second begins while the first runs, and outlives it."""

    def __init__(self, session: Session, keys: list[str]) -> None:
        self.session = session
        self.keys = keys
        self.second_runs = threading.Event()
        self.first_is_done = threading.Event()
        self.ended: list[BaseException] = []

    def first(self, n: int) -> str:
        thread = threading.Thread(target=self.retry, args=(self.keys[1], self.second))
        thread.start()
        self.threads = [thread]
        assert self.second_runs.wait(PATIENCE)
        return f"paid {n}"

    def second(self, n: int) -> str:
        self.second_runs.set()
        assert self.first_is_done.wait(PATIENCE)
        return f"paid {n}"

    def retry(self, key: str, body: object) -> None:
        try:
            self.session.call(key).retry({"pay": body})  # type: ignore[dict-item]
        except BaseException as end:  # noqa: BLE001 - a thread has nobody to raise to
            self.ended.append(end)

    def run(self) -> None:
        self.retry(self.keys[0], self.first)
        self.first_is_done.set()
        for thread in self.threads:
            thread.join(PATIENCE)


def test_a_turn_of_attempts_ends_with_the_last_of_them(sessions: Sessions) -> None:
    a, b = lose(sessions, 2)
    with sessions.session("s") as session:
        pair = Pair(session, [a, b])
        pair.run()
    assert pair.ended == []
    assert told(sessions) == [
        ("turn_start", None),
        ("tool_call", a),
        ("tool_call", b),
        ("tool_outcome", a),
        ("tool_outcome", b),
        ("turn_end", None),
    ]
    assert stored(sessions, "s")[-1].data["reason"] == "complete"


def test_f16_an_attempt_whose_process_dies_behind_the_end_of_another_is_unknown(sessions: Sessions) -> None:
    a, b = lose(sessions, 2)
    session = sessions.session("s").open()

    class Dying(Pair):
        def second(self, n: int) -> str:
            super().second(n)
            die(session)
            raise SystemExit

    Dying(session, [a, b]).run()
    with sessions.session("s") as session:
        assert session.recovered is not None
        assert [(repair.type, repair.data.get("call")) for repair in session.recovered.repairs] == [
            ("tool_outcome", b),
            ("turn_end", None),
        ]


def test_an_attempt_that_is_cut_short_leaves_the_turn_to_the_others(sessions: Sessions) -> None:
    a, b = lose(sessions, 2)

    class Cut(Pair):
        def first(self, n: int) -> str:
            super().first(n)
            raise KeyboardInterrupt

    with sessions.session("s") as session:
        pair = Cut(session, [a, b])
        pair.run()
    assert [type(end) for end in pair.ended] == [KeyboardInterrupt]
    assert told(sessions)[-3:] == [("tool_outcome", a), ("tool_outcome", b), ("turn_end", None)]
    outcomes = [event.data["outcome"] for event in stored(sessions, "s") if event.type == "tool_outcome"]
    assert outcomes == ["unknown", "happened"]


def test_whether_a_turn_is_open_is_decided_with_the_place_of_the_attempt(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = lose(sessions, 2)
    first_runs, second_looked, first_is_done = threading.Event(), threading.Event(), threading.Event()
    look = Session.has_open_turn

    def held_up(session: Session, run: str) -> bool:
        opened = look(session, run)
        if threading.current_thread().name == "second":
            second_looked.set()
            first_is_done.wait(0.3)  # a thread that is not scheduled for a while
        return opened

    def body(n: int) -> None:
        if n == 0:
            first_runs.set()
            second_looked.wait(0.3)

    monkeypatch.setattr(Session, "has_open_turn", held_up)
    with sessions.session("s") as session:

        def first() -> None:
            session.call(a).retry({"pay": body})
            first_is_done.set()

        threads = [
            threading.Thread(target=first),
            threading.Thread(target=lambda: session.call(b).retry({"pay": body}), name="second"),
        ]
        threads[0].start()
        assert first_runs.wait(PATIENCE)
        threads[1].start()
        for thread in threads:
            thread.join(PATIENCE)
    assert outside(stored(sessions, "s")) == []
    assert sum(type == "tool_outcome" for type, _ in told(sessions)) == 2


def test_attempts_in_a_turn_of_the_application_leave_it_open(sessions: Sessions) -> None:
    a, b = lose(sessions, 2)
    with sessions.session("s") as session, session.turn(user="go on") as turn:
        pair = Pair(session, [a, b])
        pair.run()
        assert turn.state is not None
    assert pair.ended == []
    assert [type for type, _ in told(sessions)].count("turn_start") == 1


def test_attempts_behind_the_turn_of_the_application_have_one_of_their_own(sessions: Sessions) -> None:
    a, b = lose(sessions, 2)

    class Ending(Pair):
        def first(self, n: int) -> str:
            turn.close()
            return super().first(n)

    with sessions.session("s") as session:
        turn = session.open_turn("go on")
        pair = Ending(session, [a, b])
        pair.run()
        assert session.own_turns == {}
        assert not session.has_open_turn("main")
    assert pair.ended == []
    assert outside(stored(sessions, "s")) == []
    assert told(sessions)[-5:] == [
        ("turn_start", None),
        ("tool_call", b),
        ("tool_outcome", a),
        ("tool_outcome", b),
        ("turn_end", None),
    ]


def test_attempts_of_an_event_loop_share_a_turn(sessions: Sessions) -> None:
    keys = lose(sessions, 4)

    async def pay(n: int) -> None:
        await asyncio.sleep(0.01 * n)

    async def main() -> None:
        async with sessions.session("s") as session:
            await asyncio.gather(*(session.call(key).aretry({"pay": pay}) for key in keys))

    asyncio.run(main())
    assert [type for type, _ in told(sessions)] == ["turn_start"] + ["tool_call"] * 4 + ["tool_outcome"] * 4 + [
        "turn_end"
    ]


@pytest.fixture
def _hurried() -> Iterator[None]:
    """Threads change places as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_hurried")
def test_of_attempts_in_a_pool_of_threads_none_is_refused(sessions: Sessions) -> None:
    keys = lose(sessions, 4)
    start = threading.Barrier(4, timeout=PATIENCE)
    with sessions.session("s") as session:
        calls = [session.call(key) for key in keys]

        def again(call: Call) -> str:
            start.wait()
            return str(call.retry({"pay": _fail}).data["outcome"])

        with ThreadPoolExecutor(4) as pool:
            for _ in range(20):
                assert list(pool.map(again, calls)) == ["unknown"] * 4
    assert outside(stored(sessions, "s")) == []


def _fail(n: int) -> None:
    raise ConnectionError(n)
