"""A live turn: the order of what is written, and that it never ends owing."""

from typing import Any

import pytest

from tests.session.helpers import DONE, TOOLS, asks, pay, reply, results, says, stored, text_of, types
from turnwal.core.errors import InvalidEvent, Refused, SessionClosed
from turnwal.core.recovery import interrupted, plan
from turnwal.core.scan import Scan
from turnwal.core.types import BOUNDARIES
from turnwal.session.sessions import Sessions
from turnwal.store.memory import MemoryStore


def test_a_turn_writes_its_events_in_order(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="pay 7") as turn:
        while turn.open:
            with turn.step() as step:
                message = reply(asks("pay", order=7)) if step.number == 1 else DONE
                step.run(step.assistant(message), TOOLS)

    events = stored(sessions, "s")
    assert types(events) == [
        "session_start",
        "turn_start",
        "user_message",
        "step_start",
        "assistant_message",
        "tool_call",
        "tool_result",
        "step_end",
        "step_start",
        "assistant_message",
        "step_end",
        "turn_end",
    ]
    assert events[5].data["call"] == events[6].data["call"] == "4.0"
    assert text_of(events[6]) == '{"paid":7}'
    assert events[-1].data["reason"] == "complete"
    assert events[-1].data["steps"] == 2


def test_f14_the_input_is_durable_before_the_model_is_asked(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn:
        with turn.step():
            asked_with = types(stored(sessions, "s"))
        turn.stop()

    assert asked_with == ["session_start", "turn_start", "user_message", "step_start"]


def test_f14_the_message_and_the_dispatch_are_durable_before_the_body_and_the_result_after_it(
    sessions: Sessions,
) -> None:
    seen: list[list[str]] = []

    def body() -> str:
        seen.append(types(stored(sessions, "s"))[3:])
        return "ok"

    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        step.run(step.assistant(reply(asks("body", "a"), asks("body", "b"))), {"body": body})
        after = types(stored(sessions, "s"))[3:]

    message = ["step_start", "assistant_message"]
    assert seen == [[*message, "tool_call"], [*message, "tool_call", "tool_result", "tool_call"]]
    assert after == [*message, "tool_call", "tool_result", "tool_call", "tool_result"]


def test_f03_a_turn_left_by_an_exception_owes_nothing_and_says_error(sessions: Sessions) -> None:
    def agent() -> None:
        with session.turn(user="go") as turn, turn.step() as step:
            step.assistant(reply(asks("pay", order=1)))
            raise RuntimeError("model went away")

    with sessions.session("s") as session, pytest.raises(RuntimeError, match="model went away"):
        agent()

    events = stored(sessions, "s")
    assert results(events)[0].data["metadata"] == {
        "synthetic": True,
        "risk": "tool_not_started",
        "basis": "declared",
        "retry": "safe",
    }
    assert events[-2].data["outcome"] == events[-1].data["reason"] == "error"
    assert not interrupted(events)


def test_a_turn_left_by_an_interrupt_says_cancelled_and_its_running_call_is_unknown(sessions: Sessions) -> None:
    def body() -> None:
        raise KeyboardInterrupt

    with (
        sessions.session("s") as session,
        pytest.raises(KeyboardInterrupt),
        session.turn(user="go") as turn,
        turn.step() as step,
    ):
        step.run(step.assistant(reply(asks("body"), asks("pay"))), TOOLS | {"body": body})

    events = stored(sessions, "s")
    assert [result.data["metadata"]["risk"] for result in results(events)] == [
        "tool_outcome_unknown",
        "tool_not_started",
    ]
    assert events[-2].data["outcome"] == events[-1].data["reason"] == "cancelled"


def test_a_step_answers_what_it_did_not_run_without_talking_of_an_interruption(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        first, _ = step.assistant(reply(asks("pay", "a"), asks("pay", "b", order=2)))
        first.run(TOOLS)

    answered = results(stored(sessions, "s"))[1]
    assert answered.data["call"] == "4.1"
    assert answered.data["metadata"]["basis"] == "declared"
    assert "did not run" in text_of(answered)
    assert "interrupt" not in text_of(answered)


def test_leaving_a_session_ends_its_turns(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        turn = session.open_turn("go")
        step = turn.step().begin()
        step.assistant(reply(asks("pay")))

    events = stored(sessions, "s")
    assert events[-1].data["reason"] == "cancelled"
    assert not plan(events)


def test_a_turn_is_open_until_a_reply_asks_for_nothing(sessions: Sessions) -> None:
    seen = []
    replies = [reply(asks("pay")), reply(says("…"), complete=False), reply(says("…"), stop="pause_turn"), DONE]
    with sessions.session("s") as session, session.turn(user="go") as turn:
        while turn.open:
            with turn.step() as step:
                step.run(step.assistant(replies[step.number - 1]), TOOLS)
            seen.append(turn.open)

    assert seen == [True, True, True, False]


def test_a_second_turn_in_a_run_whose_turn_is_open_is_refused(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go"):
        with pytest.raises(Refused, match="another turn of its run is open"):
            session.open_turn("again")
        session.open_turn("aside", run="other").close()


def test_a_closed_turn_takes_no_step(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        turn = session.open_turn("go")
        turn.close("rejected")
        turn.close()
        with pytest.raises(SessionClosed):
            turn.step()

    assert stored(sessions, "s")[-1].data["reason"] == "rejected"


def test_a_second_open_step_is_refused(sessions: Sessions) -> None:
    with (
        sessions.session("s") as session,
        session.turn(user="go") as turn,
        turn.step(),
        pytest.raises(Refused, match="another step"),
    ):
        turn.step().begin()


@pytest.mark.parametrize("bad", [None, [], "text", {}, {"parts": "text"}, {"parts": ["text"]}, {"parts": [{}]}])
def test_a_reply_that_is_none_is_refused_and_nothing_is_written(sessions: Sessions, bad: object) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        before = session.head
        with pytest.raises(InvalidEvent):
            step.assistant(bad)
        assert session.head == before


def test_f07_a_reply_recorded_twice_in_a_step_asks_once(sessions: Sessions) -> None:
    message = reply(asks("pay", order=7))
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        step.run(step.assistant(message), TOOLS)
        again = step.assistant(message)

    assert again == []
    assert len(results(stored(sessions, "s"))) == 1


def test_f07_a_partial_reply_and_its_completion_are_one_message(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        assert step.assistant(reply(says("I will"), asks("pay", order=7), complete=False)) == []
        seq = len(session) - 1
        calls = step.assistant(reply(says("I will pay"), asks("pay", order=7), completes=seq))
        assert [call.call_key for call in calls] == [f"{seq}.1"]
        step.run(calls, TOOLS)

    assert len(results(stored(sessions, "s"))) == 1


def test_f08_calls_of_one_reply_with_equal_ids_are_separate(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        calls = step.assistant(reply(asks("pay", "", order=1), asks("pay", "", order=1)))
        step.run(calls, TOOLS)

    assert len({call.key for call in calls}) == 2
    assert [result.data["call"] for result in results(stored(sessions, "s"))] == ["4.0", "4.1"]


def test_every_boundary_says_what_is_open_and_waiting_after_it(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        with session.turn(user="go") as turn, turn.step() as step:
            call, other = step.assistant(reply(asks("pay", "a"), asks("sub", "b")))
            call.ask("may I?")
            other.dispatch()
            with other.sub("helper", user="dig") as inner, inner.step() as inner_step:
                inner_step.assistant(DONE)
            other.result("dug")
        with session.turn(user="more") as turn, turn.step() as step:
            step.assistant(DONE)

    scan = Scan()
    boundaries = 0
    for event in stored(sessions, "s"):
        scan.feed(event)
        if event.type in BOUNDARIES:
            boundaries += 1
            assert (event.data["open"], event.data["waiting"]) == (scan.open_seqs(), scan.waiting())
    assert boundaries == 6


def test_a_session_appends_any_type_but_makes_no_oddity(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        session.append("x.note", {"a": 1})
        session.append("user_message", {"parts": [says("outside any turn")]})
        for type, data in [
            ("tool_result", {"id": "k", "parts": []}),
            ("tool_result", {"call": "1.0", "parts": []}),
            ("turn_end", {}),
            ("step_end", {}),
            ("session_start", {}),
            ("damage", {}),
        ]:
            before = session.head
            with pytest.raises(Refused):
                session.append(type, data)
            assert session.head == before
        with session.turn(user="go") as turn, turn.step() as step:
            (call,) = step.assistant(reply(asks("pay")))
            with pytest.raises(Refused, match="never dispatched"):
                session.append("tool_result", {"call": call.call_key, "parts": []})
            with pytest.raises(Refused, match="is open"):
                session.append("turn_start", {})
            call.run({"pay": pay})


def test_a_weakened_step_takes_results_without_a_dispatch(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step(dispatch="none") as step:
        (call,) = step.assistant(reply(asks("pay")))
        call.result("paid elsewhere")

    assert text_of(results(stored(sessions, "s"))[0]) == "paid elsewhere"


def test_f11_a_clock_that_goes_backwards_is_recorded_as_it_was() -> None:
    times = iter([5000, 4000, 3000, 2000, 1000, 900, 800, 700])
    sessions = Sessions(MemoryStore(), clock=lambda: next(times))
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        step.assistant(DONE)

    events = stored(sessions, "s")
    assert [event.time for event in events] == [5000, 4000, 3000, 2000, 1000, 900, 800]
    assert not plan(events)
    assert [event.seq for event in events] == list(range(7))


@pytest.mark.parametrize(
    "user", [3, True, b"pay 7", {"a": 1}, [], [{"content": "no type"}], [{"type": "text", "content": 3}], ["pay 7"]]
)
def test_a_user_message_that_is_none_is_refused_and_leaves_no_turn(sessions: Sessions, user: Any) -> None:
    with sessions.session("s") as session:
        before = len(session)
        with pytest.raises(InvalidEvent), session.turn(user=user):
            pass
        with pytest.raises(InvalidEvent):
            session.open_turn(user)
        assert len(session) == before
        with session.turn(user="pay 7") as turn:
            assert turn.number == 1
