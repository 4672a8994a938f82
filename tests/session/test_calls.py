"""Calls: what each way of ending is recorded as, and what a handle refuses."""

import gc
from typing import Any

import pytest

import turnwal
from tests.session.helpers import DONE, TOOLS, asks, die, look, pay, reply, results, stored, text_of, types
from turnwal.core.errors import CallNotFound, InvalidName, Refused
from turnwal.core.line import Event
from turnwal.session.sessions import Sessions


def ran(sessions: Sessions, part: dict[str, Any], tools: dict[str, Any]) -> Event:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (result,) = step.run(step.assistant(reply(part)), tools)
    return result


def test_a_call_that_a_later_version_of_its_message_asks_for_keeps_its_idempotency_key(sessions: Sessions) -> None:
    passed: list[str] = []

    @turnwal.tool(keyed=True)
    def refund(order: int, key: str) -> str:
        passed.append(key)
        if len(passed) == 1:
            raise turnwal.OutcomeUnknown(f"{order}: the connection was cut")
        return "refunded"

    message = reply(asks("refund", order=1))
    with sessions.session("s") as session:
        with session.turn(user="go") as turn:
            with turn.step() as step:
                step.assistant(message | {"complete": False})
            gc.collect()
            with turn.step() as step:
                (call,) = step.assistant(message | {"completes": 4})
                key = call.key
                step.run([call], {"refund": refund})
                del call
            gc.collect()
            with turn.step() as step:
                # nobody holds a handle of it by now, and this version asks for it again
                assert step.assistant(message | {"completes": 4}) == []
            assert session.call("4.0").repeatable
        session.call("4.0").retry({"refund": refund})
    assert passed == [key, key]
    assert len(key) == 32


def test_a_call_that_is_not_yet_durable_keeps_its_idempotency_key(sessions: Sessions) -> None:
    message = reply(asks("pay", "k", order=1))
    with sessions.session("s") as session:
        seq = session.append("assistant_message", message | {"complete": False}).seq
        gc.collect()
        session.append("assistant_message", message | {"completes": seq})
        key = session.call(f"{seq}.0").key
    with sessions.session("s") as session:
        assert session.call(f"{seq}.0").key == key
    assert len(key) == 32


def test_an_exception_is_a_result_with_is_error(sessions: Sessions) -> None:
    result = ran(sessions, asks("fails"), TOOLS)

    assert result.data["is_error"] is True
    assert text_of(result) == "ValueError: no such order"
    assert "metadata" not in result.data


def test_f16_a_lost_answer_is_unknown_not_failed(sessions: Sessions) -> None:
    result = ran(sessions, asks("loses"), TOOLS)

    assert result.data["metadata"]["risk"] == "tool_outcome_unknown"
    assert result.data["metadata"]["retry"] == "verify_first"
    assert "may have run fully, partly or not at all" in text_of(result)
    assert "the connection was cut" in text_of(result)
    assert "interrupted" not in text_of(result)


@pytest.mark.parametrize(
    ("part", "says"),
    [
        (asks("nope"), "no tool named 'nope'"),
        (asks("look", file="x"), "do not fit the tool"),
        ({"type": "tool_call", "id": "a", "name": "look", "arguments": '{"path": "a.tx'}, "not a JSON object"),
        ({"type": "tool_call", "id": "a", "name": "look", "arguments": "[1]"}, "not a JSON object"),
    ],
)
def test_f30_a_call_that_cannot_be_made_is_answered_without_a_dispatch(
    sessions: Sessions, part: dict[str, Any], says: str
) -> None:
    result = ran(sessions, part, TOOLS)

    assert says in text_of(result)
    assert result.data["is_error"] is True
    assert "tool_call" not in types(stored(sessions, "s"))


def test_blank_arguments_are_an_empty_object(sessions: Sessions) -> None:
    result = ran(sessions, {"type": "tool_call", "id": "a", "name": "look", "arguments": " "}, TOOLS)

    assert text_of(result) == "content of "


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("text", [{"type": "text", "content": "text"}]),
        (None, [{"type": "text", "content": ""}]),
        ({"a": [1, 2.5]}, [{"type": "text", "content": '{"a":[1,2.5]}'}]),
        ([{"type": "uri", "uri": "x"}], [{"type": "uri", "uri": "x"}]),
        ([], [{"type": "text", "content": "[]"}]),
        ("\ud83d", [{"type": "text", "content": "\ud83d"}]),
        (10**30, [{"type": "text", "content": "1" + "0" * 30}]),
    ],
)
def test_what_a_tool_returns_is_kept(sessions: Sessions, value: object, parts: list[dict[str, Any]]) -> None:
    result = ran(sessions, asks("tool"), {"tool": lambda: value})

    assert result.data["parts"] == parts
    assert results(stored(sessions, "s"))[0] == result


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"bytes", object(), {1: 2}, [(1, 2)]])
def test_f36_a_value_that_cannot_be_kept_is_recorded_as_a_tool_that_ran(sessions: Sessions, value: object) -> None:
    result = ran(sessions, asks("tool"), {"tool": lambda: value})

    assert text_of(result).startswith("The tool ran and returned")
    assert result.data["metadata"]["unrecorded"] == "invalid_event"


def test_the_two_halves_and_what_they_refuse(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        call, other = step.assistant(reply(asks("pay", "a"), asks("pay", "b", order=2)))
        with pytest.raises(Refused, match="never dispatched"):
            call.result("early")
        call.dispatch()
        with pytest.raises(Refused, match="dispatched already"):
            call.dispatch()
        with pytest.raises(Refused, match="may have run"):
            call.reject("too late")
        call.result("paid")
        with pytest.raises(Refused, match="has a result already"):
            call.result("again")
        with pytest.raises(Refused, match="has a result already"):
            call.dispatch()
        other.reject("not today")

    assert [text_of(result) for result in results(stored(sessions, "s"))] == ["paid", "not today"]


def test_hints_and_where_they_came_from_are_recorded_in_the_dispatch(sessions: Sessions) -> None:
    @turnwal.tool(idempotent=True, keyed="token")
    def send(to: str, token: str) -> str:
        return f"{to} {token}"

    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant(reply(asks("send", to="me")))
        (result,) = step.run([call], {"send": send})

    dispatch = next(event for event in stored(sessions, "s") if event.type == "tool_call")
    assert dispatch.data["hints"] == {"read_only": False, "destructive": True, "idempotent": True, "open_world": True}
    assert dispatch.data["hints_from"]["idempotent"] == "declared"
    assert dispatch.data["hints_from"]["read_only"] == "default"
    assert dispatch.data["keyed"] is True
    assert dispatch.data["key"] == call.key
    assert text_of(result) == f"me {call.key}"


def test_a_model_cannot_give_the_idempotency_key(sessions: Sessions) -> None:
    @turnwal.tool(keyed=True)
    def send(to: str, key: str) -> str:
        return to + key

    result = ran(sessions, asks("send", to="me", key="mine"), {"send": send})

    assert "not one that the model may give" in text_of(result)


@pytest.mark.parametrize(
    ("declared", "retry", "advice"),
    [
        ({}, "verify_first", "Check the state"),
        ({"read_only": True}, "safe", "safe to make it again"),
        ({"idempotent": True}, "same_arguments", "exactly the same arguments"),
        ({"keyed": True}, "same_key", "idempotency key"),
    ],
)
def test_what_the_application_declares_softens_the_advice_after_a_crash(
    sessions: Sessions, declared: dict[str, Any], retry: str, advice: str
) -> None:
    @turnwal.tool(**declared)
    def tool(**_: Any) -> None:
        die(session)
        raise KeyboardInterrupt

    session = sessions.session("s").open()
    step = session.open_turn("go").step().begin()
    with pytest.raises(KeyboardInterrupt):
        step.run(step.assistant(reply(asks("tool"))), {"tool": tool})

    with sessions.session("s"):
        pass
    result = results(stored(sessions, "s"))[0]
    assert result.data["metadata"]["retry"] == retry
    assert advice in text_of(result)


def test_a_lost_call_is_settled_and_repeated_with_the_same_key(sessions: Sessions) -> None:
    session = sessions.session("s").open()
    step = session.open_turn("go").step().begin()
    (call,) = step.assistant(reply(asks("pay", order=7)))
    call.dispatch()
    die(session)

    keys: list[str] = []

    @turnwal.tool(keyed=True)
    def again(order: int, key: str) -> str:
        keys.append(key)
        return f"paid {order}"

    with sessions.session("s") as session:
        assert session.recovered is not None
        found = session.call("4.0")
        assert found.key == call.key
        outcome = found.retry({"pay": again})
        settled = found.settle("happened", evidence={"ledger": 7}, by="ada")

    assert keys == [call.key]
    assert outcome.data["outcome"] == "happened"
    assert outcome.data["attempt"] == 2
    assert settled.data["evidence"] == {"ledger": 7}
    assert len(results(stored(sessions, "s"))) == 1
    with sessions.session("s") as session, pytest.raises(Refused, match="known to have happened"):
        session.call("4.0").retry({"pay": again})


def test_an_attempt_that_died_is_closed_as_an_unknown_outcome(sessions: Sessions) -> None:
    session = sessions.session("s").open()
    step = session.open_turn("go").step().begin()
    (call,) = step.assistant(reply(asks("pay", order=7)))
    call.dispatch()
    die(session)
    session = sessions.session("s").open()

    def dies(order: int) -> None:
        die(session)
        raise KeyboardInterrupt(order)

    with pytest.raises(KeyboardInterrupt):
        session.call("4.0").retry({"pay": dies})

    with sessions.session("s") as session:
        assert session.recovered is not None
        (outcome,) = [repair for repair in session.recovered.repairs if repair.type == "tool_outcome"]
        third = session.call("4.0").retry({"pay": pay})
    assert outcome.data["attempt"] == 2
    assert outcome.data["outcome"] == "unknown"
    assert third.data["attempt"] == 3


def test_only_a_lost_answer_is_repeated_and_only_an_answered_call_settled(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        with session.turn(user="go") as turn, turn.step() as step:
            call, waits = step.assistant(reply(asks("pay", "a"), asks("pay", "b", order=2)))
            with pytest.raises(Refused, match="no result yet"):
                call.settle("happened")
            call.run(TOOLS)
            waits.ask("?")
        with pytest.raises(Refused, match="a real one"):
            session.call("4.0").retry(TOOLS)
        with pytest.raises(Refused, match="is no outcome"):
            session.call("4.0").settle("failed")  # type: ignore[arg-type]
        with pytest.raises(Refused, match="no turn is open"):
            session.call("4.1").dispatch()
        with pytest.raises(CallNotFound):
            session.call("4.7")
        with pytest.raises(CallNotFound):
            session.call("99.0")
        with pytest.raises(InvalidName):
            session.call("4")


def test_an_asynchronous_tool_is_refused_by_run_before_any_dispatch(sessions: Sessions) -> None:
    async def slow() -> None: ...

    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant(reply(asks("slow")))
        with pytest.raises(Refused, match="asynchronous"):
            step.run([call], {"slow": slow})
        with pytest.raises(Refused, match="asynchronous"):
            call.run({"slow": slow})
        assert not call.dispatched


def test_one_function_serves_every_name(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (result,) = step.run(step.assistant(reply(asks("anything", path="a"))), look)
        with pytest.raises(Refused, match="neither"):
            step.run(step.assistant(reply(asks("anything", path="b"))), 7)  # type: ignore[arg-type]

    assert text_of(result) == "content of a"


def test_f28_a_question_is_granted_a_day_later_by_another_process_and_the_turn_resumed(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="pay 7") as turn:
        with turn.step() as step:
            (call,) = step.assistant(reply(asks("pay", order=7)))
            call.ask({"text": "pay 7?"})
            with pytest.raises(Refused, match="approval is pending"):
                call.dispatch()
        assert not turn.open
    assert stored(sessions, "s")[-1].data["reason"] == "suspended"
    assert sessions.glance("s").state == "waiting"

    with sessions.session("s") as session:
        assert session.recovered is None
        (waiting,) = session.waiting()
        assert waiting.call_key == "4.0"
        waiting.grant(by="ada")
        with pytest.raises(Refused, match="was answered"):
            waiting.grant(by="eve")
    with sessions.session("s") as session, session.turn(resumes="4.0") as turn:
        assert turn.resumed is not None
        turn.resumed.run(TOOLS)
        with turn.step() as step:
            step.assistant(DONE)

    events = stored(sessions, "s")
    assert text_of(results(events)[0]) == '{"paid":7}'
    assert sessions.glance("s").state == "clean"
    with sessions.session("s") as session:
        with pytest.raises(Refused, match="has a result already"):
            session.call("4.0").grant(by="eve")
        with pytest.raises(Refused, match="has a result already"):
            session.turn(resumes="4.0")


def test_f28_a_denied_question_is_answered(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="pay 7") as turn, turn.step() as step:
        step.assistant(reply(asks("pay", order=7)))[0].ask("pay 7?")
    with sessions.session("s") as session:
        session.call("4.0").deny(by="ada", text="Not this one.")
        assert session.waiting() == []

    assert text_of(results(stored(sessions, "s"))[0]) == "Not this one."


def test_f28_a_question_voided_by_a_crash_cannot_be_granted(sessions: Sessions) -> None:
    session = sessions.session("s").open()
    step = session.open_turn("go").step().begin()
    (call,) = step.assistant(reply(asks("pay", order=7)))
    session.append("approval_request", {"call": call.call_key, "id": "k", "question": "?"})
    session.flush()
    die(session)

    with sessions.session("s") as session, pytest.raises(Refused, match="has a result already"):
        session.call("4.0").grant(by="ada")
    assert "void" in [event.data.get("decision") for event in stored(sessions, "s")]


def test_a_long_job_is_answered_later_by_another_process(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="render") as turn, turn.step() as step:
        (call,) = step.assistant(reply(asks("render")))
        call.dispatch()
        call.suspend()
    with sessions.session("s") as session:
        session.call("4.0").result("rendered")

    assert text_of(results(stored(sessions, "s"))[0]) == "rendered"
    assert sessions.glance("s").state == "clean"


def test_f33_a_child_session_is_named_in_the_dispatch_before_it_is_created(sessions: Sessions) -> None:
    session = sessions.session("s").open()
    step = session.open_turn("go").step().begin()
    (call,) = step.assistant(reply(asks("delegate")))
    child = call.child(sessions, "child-7")
    with child:
        durable = stored(sessions, "s")[-1]
        assert durable.type == "tool_call"
        assert durable.data["child"] == {"session": "child-7"}
        assert stored(sessions, "child-7")[0].data["parent"]["session"] == "s"
        assert stored(sessions, "child-7")[0].data["parent"]["head"] == str(session.head).partition(":")[2]
    die(session)

    with sessions.session("s") as session:
        assert session.recovered is not None
        (lost,) = session.recovered.lost_calls()
    assert lost.data["metadata"]["child"] == {"session": "child-7"}


def test_f10_sub_runs_pair_in_their_own_lane_and_close_before_their_parent(sessions: Sessions) -> None:
    session = sessions.session("s").open()
    step = session.open_turn("go").step().begin()
    outer, other = step.assistant(reply(asks("delegate", "x"), asks("pay", "y")))
    outer.dispatch()
    inner = outer.sub("helper", user="dig").begin()
    inner_step = inner.step().begin()
    (x,) = inner_step.assistant(reply(asks("pay", "x")))
    other.run(TOOLS)
    x.dispatch()
    die(session)

    with sessions.session("s") as session:
        assert session.recovered is not None
        told = [(repair.run, repair.type) for repair in session.recovered.repairs]
    lane = [("4.0", "tool_result"), ("4.0", "step_end"), ("4.0", "turn_end")]
    assert told == [*lane, ("main", "tool_result"), ("main", "step_end"), ("main", "turn_end")]


def test_leaving_a_turn_closes_the_turns_of_its_sub_runs_first(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant(reply(asks("delegate")))
        call.dispatch()
        call.sub("helper", user="dig").begin()

    ends = [event for event in stored(sessions, "s") if event.type == "turn_end"]
    assert [event.run for event in ends] == ["4.0", "main"]
    assert ends[0].data["open"] == [1]
    assert ends[1].data["open"] == []


def test_what_takes_no_mark_is_refused_with_a_way_out() -> None:
    with pytest.raises(Refused, match="takes no mark") as refused:
        turnwal.tool(read_only=True)("text".upper)
    assert "in its class" in refused.value.hint
