"""Barriers: shared syncs, failures, bounds, subscribers, redaction."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import UNSET

from tests.session.helpers import DONE, TOOLS, asks, die, reply, results, says, stored, text_of, types
from turnwal.core.chain import Head
from turnwal.core.errors import ClosedAfterFailure, InvalidEvent, SessionClosed, StoreFull
from turnwal.core.line import Event
from turnwal.core.recovery import plan
from turnwal.session.sessions import Sessions
from turnwal.store.memory import MemoryStore
from turnwal.store.protocol import Claim


class Flaky:
    """A claim of a real store whose disk fills up, or that is slow, when told to."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.full = False
        self.slow: threading.Event | None = None
        self.batches: list[int] = []

    session = property(lambda self: self.claim.session)

    def append(self, lines: Sequence[bytes], after: Head) -> None:
        if self.slow is not None:
            assert self.slow.wait(10)
        if self.full:
            raise StoreFull("no space is left", action="append", subject=self.claim.session)
        self.claim.append(lines, after)
        self.batches.append(len(lines))

    def release(self) -> None:
        self.claim.release()


class FlakyStore(MemoryStore):
    """Hands out flaky claims."""

    last: Flaky

    def claim(self, session: str, *, create: bool = True, wait: float = 0.0, owner: str = "") -> Any:
        self.last = Flaky(super().claim(session, create=create, wait=wait, owner=owner))
        return self.last


@pytest.fixture
def flaky() -> FlakyStore:
    return FlakyStore()


def test_f38_when_a_barrier_fails_nothing_further_is_dispatched_and_the_caller_hears_of_it(flaky: FlakyStore) -> None:
    sessions = Sessions(flaky)
    ran: list[str] = []

    def body(which: str) -> str:
        ran.append(which)
        flaky.last.full = True
        return which

    with (
        pytest.raises(StoreFull),
        sessions.session("s") as session,
        session.turn(user="go") as turn,
        turn.step() as step,
    ):
        step.run(step.assistant(reply(asks("body", "a", which="a"), asks("body", "b", which="b"))), {"body": body})

    assert ran == ["a"]
    with pytest.raises((ClosedAfterFailure, SessionClosed)):
        session.append("x.note", {})
    with sessions.session("s") as session:
        assert session.recovered is not None
        risks = [repair.data["metadata"]["risk"] for repair in session.recovered.lost_calls()]
    assert risks == ["tool_outcome_unknown", "tool_not_started"]


def test_f38_a_failed_session_says_why_and_what_to_do(flaky: FlakyStore) -> None:
    session = Sessions(flaky).session("s").open()
    session.append("x.note", {})
    flaky.last.full = True
    with pytest.raises(StoreFull):
        session.flush()
    with pytest.raises(ClosedAfterFailure, match="no space is left") as refused:
        session.append("x.note", {})
    assert "open the session anew" in refused.value.hint
    with pytest.raises(ClosedAfterFailure):
        session.flush()
    session.close()


def test_barriers_that_wait_at_the_same_time_share_one_sync(flaky: FlakyStore) -> None:
    session = Sessions(flaky).session("s").open()
    flaky.last.slow = threading.Event()
    flaky.last.batches.clear()

    def work() -> None:
        session.append("x.note", {})
        session.flush()

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    while len(session) < 21:
        pass
    flaky.last.slow.set()
    for thread in threads:
        thread.join()

    assert sum(flaky.last.batches) == 20
    assert len(flaky.last.batches) <= 3
    session.close()


def test_an_interrupt_in_the_middle_of_a_write_closes_the_session_and_leaves_it_recoverable(flaky: FlakyStore) -> None:
    sessions = Sessions(flaky)
    session = sessions.session("s").open()
    turn = session.open_turn("go")
    step = turn.step().begin()
    (call,) = step.assistant(reply(asks("pay")))

    def interrupted(lines: Sequence[bytes], after: Head) -> None:
        flaky.last.claim.append(lines, after)
        raise KeyboardInterrupt

    flaky.last.append = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        call.dispatch()
    with pytest.raises(ClosedAfterFailure):
        session.append("x.note", {})
    session.close()

    with sessions.session("s") as session:
        assert session.recovered is not None
        assert session.recovered.lost_calls()[0].data["metadata"]["risk"] == "tool_outcome_unknown"


def test_an_interrupt_in_the_middle_of_an_append_leaves_the_log_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = Sessions(MemoryStore())
    session = sessions.session("s").open()
    session.append("x.note", {"n": 0})
    feed = session.scan.feed

    def interrupted(_: Event) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(session.scan, "feed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.append("x.note", {"n": 1})
    monkeypatch.setattr(session.scan, "feed", feed)
    with pytest.raises(ClosedAfterFailure):
        session.append("x.note", {"n": 2})
    session.close()

    with sessions.session("s") as session:
        session.append("x.note", {"n": 3})
    events = stored(sessions, "s")
    assert [event.seq for event in events] == list(range(len(events)))


def test_an_invalid_append_changes_nothing(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        before = session.head
        for type, data in [("nope", {}), ("x.a", {"v": float("nan")}), ("user_message", {"parts": 7}), ("x.a", [1])]:
            with pytest.raises(InvalidEvent):
                session.append(type, data)  # type: ignore[arg-type]
        assert session.head == before
        session.append("x.a", {})


def test_events_of_a_batch_name_its_first_line(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        for _ in range(3):
            session.append("x.a", {})
        session.flush()
        session.append("x.a", {})

    assert [event.batch for event in stored(sessions, "s")] == [*_unset(2), 1, 1, *_unset(1)]


def _unset(count: int) -> list[Any]:
    return [UNSET] * count


def test_a_subscriber_hears_every_event_once_in_order_after_it_is_durable(sessions: Sessions) -> None:
    heard: list[Event] = []
    durable: list[bool] = []

    with sessions.session("s") as session:
        subscription = session.subscribe(since=0)

        def listen() -> None:
            for event in subscription:
                heard.append(event)
                durable.append(len(stored(sessions, "s")) > event.seq)

        listener = threading.Thread(target=listen)
        listener.start()
        with session.turn(user="go") as turn:
            while turn.open:
                with turn.step() as step:
                    step.run(step.assistant(reply(asks("pay")) if step.number == 1 else DONE), TOOLS)
    listener.join(10)

    assert heard == stored(sessions, "s")
    assert all(durable)


def test_a_subscriber_hears_what_recovery_appended(sessions: Sessions) -> None:
    session = sessions.session("s").open()
    step = session.open_turn("go").step().begin()
    step.assistant(reply(asks("pay")))
    session.flush()
    die(session)
    seq = len(stored(sessions, "s"))

    with sessions.session("s") as session:
        subscription = session.subscribe(since=seq)
    told = types(list(subscription))
    assert told == ["session_resume", "tool_result", "step_end", "turn_end"]


def test_an_asynchronous_subscriber_hears_the_same(sessions: Sessions) -> None:
    async def main() -> list[Event]:
        heard: list[Event] = []
        async with sessions.session("s") as session:
            with session.subscribe() as subscription:

                async def listen() -> None:
                    async for event in subscription:
                        heard.append(event)
                        if len(heard) == 30:
                            return

                listening = asyncio.create_task(listen())
                for n in range(30):
                    session.append("x.note", {"n": n})
                    await session.aflush()
                await listening
        return heard

    assert [event.data["n"] for event in asyncio.run(main())] == list(range(30))


def test_a_closed_subscription_ends_and_keeps_nothing(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        subscription = session.subscribe()
        session.append("x.note", {})
        session.flush()
        subscription.close()
        assert list(subscription) in ([], stored(sessions, "s")[1:])
        for _ in range(100):
            session.append("x.note", {})
        session.flush()
        assert session._journal is not None
        assert session._journal.newest() == []


def test_f37_data_is_redacted_before_its_line_is_made_and_the_tool_gets_the_plain_text(sessions: Sessions) -> None:
    def redact(data: dict[str, Any]) -> dict[str, Any]:
        def clean(value: Any) -> Any:
            if isinstance(value, str):
                return value.replace("hunter2", "[secret]")
            if isinstance(value, dict):
                return {key: clean(item) for key, item in value.items()}
            return [clean(item) for item in value] if isinstance(value, list) else value

        return clean(data)  # type: ignore[no-any-return]

    got: list[str] = []

    def login(word: str) -> str:
        got.append(word)
        raise ValueError(f"{word} is wrong")

    with (
        sessions.session("s", redact=redact) as session,
        session.turn(user="it is hunter2") as turn,
        turn.step() as step,
    ):
        step.run(step.assistant(reply(says("hunter2"), asks("login", word="hunter2"))), {"login": login})

    assert got == ["hunter2"]
    lines = b"\n".join(item.line for item in sessions.store.read("s") if hasattr(item, "line"))
    assert b"hunter2" not in lines
    assert lines.count(b"[secret]") == 5


def test_f37_a_redaction_that_fails_appends_nothing(sessions: Sessions) -> None:
    def redact(data: dict[str, Any]) -> dict[str, Any]:
        if "bad" in data:
            raise ZeroDivisionError
        return data

    with sessions.session("s", redact=redact) as session:
        with pytest.raises(ZeroDivisionError):
            session.append("x.note", {"bad": 1})
        session.append("x.note", {"good": 1})

    assert len(stored(sessions, "s")) == 2


def test_f35_text_never_makes_an_append_fail(sessions: Sessions) -> None:
    with (
        sessions.session("s") as session,
        session.turn(user="\ud83d\udc8f \u2028 \x85 \x00") as turn,
        turn.step() as step,
    ):
        step.run(step.assistant(reply(says("\udc8f"), asks("pay", "\ud83d", order="\udfff"))), TOOLS)

    events = stored(sessions, "s")
    assert text_of(events[2]) == "\U0001f48f \u2028 \x85 \x00"
    assert results(events)[0].data["id"] == "\ud83d"
    assert not plan(events)
