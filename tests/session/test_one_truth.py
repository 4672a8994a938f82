"""What a handle knows of its call is what the log says, whoever recorded it, when, and with or without our key."""

import gc
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import turnwal
from tests.session.helpers import asks, die, reply, results, stored, types
from turnwal.core import keys
from turnwal.core.errors import CallNotFound, Refused
from turnwal.core.recovery import plan
from turnwal.core.scan import Scan
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.store.memory import MemoryStore

PAY = {"id": "a", "name": "pay", "arguments": '{"order":1}'}


class Ledger:
    """A tool with a side effect that can be counted."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def pay(self, order: int = 0) -> str:
        self.paid.append(order)
        return "paid"

    @property
    def tools(self) -> dict[str, Callable[..., Any]]:
        return {"pay": self.pay}


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def lose(order: int = 0) -> None:
    raise turnwal.OutcomeUnknown(f"no answer about {order}")


# --- two threads


class Slow(MemoryStore):
    """A store whose reader can be held up after it has looked."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] | None = None

    def newest(self, session: str) -> Any:
        meanwhile, self.meanwhile = self.meanwhile, None
        items = list(super().newest(session))
        if meanwhile is not None:
            meanwhile()
        return iter(items)


def test_f07_a_handle_found_while_another_thread_dispatches_knows_of_it(ledger: Ledger) -> None:
    store = Slow()
    with Sessions(store).session("s") as session, session.turn(user="go") as turn:
        key = f"{turn.append('assistant_message', reply(asks('pay', 'a', order=1))).seq}.0"
        store.meanwhile = lambda: ledger.paid.append(session.call(key).dispatch().seq)
        found = session.call(key)
        with pytest.raises(Refused, match="dispatched already"):
            found.dispatch()
    assert len(ledger.paid) == 1


def test_f16_a_handle_found_while_another_thread_repeats_the_call_knows_of_it(ledger: Ledger) -> None:
    store = Slow()
    with Sessions(store).session("s") as session:
        with session.turn(user="go") as turn, turn.step() as step:
            step.run(step.assistant(reply(asks("pay", order=1))), {"pay": lose})
        del turn, step
        gc.collect()

        def repeat() -> None:
            session.call("4.0").retry(ledger.tools)
            gc.collect()

        store.meanwhile = repeat
        found = session.call("4.0")
        with pytest.raises(Refused, match="known to have happened"):
            found.retry(ledger.tools)
    assert ledger.paid == [1]


def test_f07_of_many_threads_one_dispatches(sessions: Sessions) -> None:
    told: list[str] = []
    with sessions.session("s") as session, session.turn(user="go") as turn:
        key = f"{turn.append('assistant_message', reply(asks('pay', 'a'))).seq}.0"
        start = threading.Barrier(6)

        def work() -> None:
            start.wait()
            with suppress(Refused):
                told.append(session.call(key).dispatch().type)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert told == ["tool_call"]
    assert types(stored(sessions, "s")).count("tool_call") == 1


def test_the_scan_is_looked_at_with_the_order_held(monkeypatch: pytest.MonkeyPatch) -> None:
    free: list[bool] = []
    with Sessions(MemoryStore()).session("s") as session:

        def look() -> list[dict[str, Any]]:
            other = threading.Thread(target=lambda: free.append(session.order.acquire(blocking=False)))
            other.start()
            other.join()
            return []

        with monkeypatch.context() as patch:
            patch.setattr(session.scan, "waiting", look)
            patch.setattr(session.scan, "granted", look)
            assert session.waiting() == session.granted() == []
    assert free == [False, False]


# --- records that carry only the provider's id


def test_f07_a_dispatch_by_id_is_the_calls_dispatch(sessions: Sessions, ledger: Ledger) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant(reply(asks("pay", "a", order=1)))
        session.append("tool_call", PAY)
        with pytest.raises(Refused, match="dispatched already"):
            call.run(ledger.tools)
        with pytest.raises(Refused, match="it may have run"):
            call.reject("no")
        call.result("paid")
    assert ledger.paid == []
    assert not plan(stored(sessions, "s")).findings


def ask_by_id(session: Session) -> None:
    step = session.open_turn("go").step().begin()
    step.assistant(reply(asks("pay", "a", order=1)))
    session.append("approval_request", {"id": "a", "question": "pay?"})
    session.append("tool_suspended", {"id": "a"})
    session.flush()


@pytest.mark.parametrize("crash", [False, True])
def test_f28_a_question_by_id_keeps_the_call_from_running_until_it_is_granted(
    sessions: Sessions, ledger: Ledger, *, crash: bool
) -> None:
    session = sessions.session("s").open()
    ask_by_id(session)
    with pytest.raises(Refused, match="approval is pending"):
        session.waiting()[0].run(ledger.tools)
    if crash:
        die(session)
    else:
        session.close()

    with sessions.session("s") as session:
        (call,) = session.waiting()
        with session.turn(resumes=call), pytest.raises(Refused, match="approval is pending"):
            call.run(ledger.tools)
        call.grant(by="ada")
        with session.turn(resumes=call):
            call.run(ledger.tools)
    assert ledger.paid == [1]


def test_a_boundary_says_which_waiting_call_has_an_open_question(sessions: Sessions) -> None:
    session = sessions.session("s").open()
    ask_by_id(session)
    die(session)
    with sessions.session("s"):
        pass
    events = stored(sessions, "s")
    (asked,) = [event.seq for event in events if event.type == "approval_request"]
    assert events[-1].data["waiting"] == [{"call": "4.0", "id": "a", "name": "pay", "question": asked}]

    tail, whole = Scan().feed_all(events[-1:]), Scan().feed_all(events)
    assert tail.waiting() == whole.waiting()


def test_a_tail_pairs_an_answer_by_id_with_the_open_question_as_the_whole_does() -> None:
    log = turnwal.Log()
    log.append("turn_start", {"turn": 1})
    log.append("assistant_message", {"parts": [asks("pay", "a", order=1), asks("pay", "a", order=2)]})
    log.append("tool_suspended", {"call": "1.0", "id": "a"})
    log.append("tool_suspended", {"call": "1.1", "id": "a"})
    log.append("approval_request", {"call": "1.1", "id": "a"})
    log.append("turn_end", {"turn": 1} | Scan().feed_all(log).boundary([]))
    tail, whole = Scan().feed_all(log.events[-1:]), Scan().feed_all(log)
    answer = log.append("approval_response", {"id": "a", "decision": "granted"})
    for scan in (tail, whole):
        scan.feed(answer)
        assert [entry["call"] for entry in scan.granted()] == ["1.1"]


def test_f33_an_imported_history_is_known_by_its_ids(sessions: Sessions, ledger: Ledger) -> None:
    log = turnwal.Log()
    log.append("session_start", {"id": "s", "nonce": "5" * 32, "format": 1})
    log.append("turn_start", {})
    log.append("assistant_message", reply({"type": "tool_call", **PAY}))
    log.append("tool_call", PAY)
    log.append("tool_suspended", {"id": "a"})
    log.append("turn_end", {})
    sessions.take_in("s", log.lines())
    with sessions.session("s") as session, session.turn(resumes="2.0") as turn:
        assert turn.resumed is not None
        assert turn.resumed.waiting
        with pytest.raises(Refused, match="dispatched already"):
            turn.resumed.run(ledger.tools)
        turn.resumed.result("paid at last")
    assert ledger.paid == []


def test_a_dispatch_of_a_call_that_was_asked_for_is_no_call_of_its_own(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        step.assistant(reply(asks("pay", "a", order=1)))
        seq = session.append("tool_call", PAY).seq
        with pytest.raises(CallNotFound):
            session.call(f"{seq}.d")


def test_f07_a_reply_recorded_by_hand_and_again_by_the_step_is_one_call(sessions: Sessions, ledger: Ledger) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        message = reply({"type": "tool_call", **PAY})
        seq = turn.append("assistant_message", message).seq
        (call,) = step.assistant(message)
        assert call is session.call(f"{seq}.0")
        call.run(ledger.tools)
        assert step.assistant(message) == []
    events = stored(sessions, "s")
    of_first = keys.idempotency_key(events[seq + 1].prev, 0)
    assert [event.data["key"] for event in events if event.type == "tool_call"] == [of_first]
    assert ledger.paid == [1]


# --- a voided question


def void_question(session: Session) -> None:
    with session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant(reply(asks("pay", order=1)))
        session.append("approval_request", {"call": call.call_key, "id": call.id, "question": "pay?"})


def test_f28_a_call_whose_question_was_voided_is_repeated_only_when_a_person_has_looked(
    sessions: Sessions, ledger: Ledger
) -> None:
    with sessions.session("s") as session:
        void_question(session)
    with sessions.session("s") as session:
        call = session.call("4.0")
        with pytest.raises(Refused, match="approval is void"):
            call.retry(ledger.tools)
        call.settle("unknown", by="ada")
        with pytest.raises(Refused, match="approval is void"):
            call.retry(ledger.tools)
        assert ledger.paid == []
        call.settle("did_not_happen", by="ada")
        assert call.retry(ledger.tools).data["outcome"] == "happened"
    assert len(results(stored(sessions, "s"))) == 1
    assert ledger.paid == [1]
