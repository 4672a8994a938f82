"""Where a hole was found once: sub-agents, grants, exports, retries, interrupts of the process itself."""

import asyncio
import gc
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import turnwal
from tests.session.helpers import DONE, TOOLS, asks, die, pay, reply, results, says, stored, text_of, types
from turnwal.core.errors import InvalidEvent, OwnershipLost, Refused
from turnwal.core.recovery import plan
from turnwal.session.call import Call
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.store.file import FileStore
from turnwal.store.memory import MemoryStore


def lost_call(sessions: Sessions, tool: str = "pay") -> None:
    """Leave a session whose one call was dispatched and lost, and recover it."""
    session = sessions.session("s").open()
    step = session.open_turn("go").step().begin()
    step.assistant(reply(asks(tool)))[0].dispatch()
    die(session)
    with sessions.session("s"):
        pass


# --- sub-agents


def test_the_work_of_a_sub_agent_is_the_dispatch_of_its_call(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant(reply(asks("delegate")))
        with call.sub("helper", user="pay") as sub, sub.step() as inner:
            inner.run(inner.assistant(reply(asks("pay"))), TOOLS)
        call.result("done")

    assert [event.data["call"] for event in results(stored(sessions, "s"))][-1] == "4.0"


def test_a_sub_agent_that_worked_is_never_said_not_to_have_started() -> None:
    log = turnwal.Log()
    log.append("turn_start", {"turn": 1, "dispatch": "durable"})
    log.append("assistant_message", {"parts": [asks("delegate", "a"), asks("pay", "b")]})
    log.append("turn_start", {"turn": 1, "dispatch": "durable", "serves": "1.0"}, run="1.0")
    log.append("turn_end", {"turn": 1}, run="1.0")

    verdicts = {repair.data["call"]: repair for repair in plan(log).lost_calls()}
    assert verdicts["1.0"].data["metadata"]["risk"] == "tool_outcome_unknown"
    assert verdicts["1.0"].rule == 1
    assert verdicts["1.1"].data["metadata"]["basis"] == "declared"


# --- grants


def ask(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="pay 7") as turn, turn.step() as step:
        step.assistant(reply(asks("pay", order=7)))[0].ask("pay 7?")


def another_turn(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="meanwhile") as turn, turn.step() as step:
        step.assistant(DONE)


def crash_before_dispatch(sessions: Sessions) -> None:
    session = sessions.session("s").open()
    session.turn(resumes="4.0").begin()
    session.flush()
    die(session)
    with sessions.session("s"):
        pass


@pytest.mark.parametrize("between", [another_turn, crash_before_dispatch])
def test_f28_a_grant_outlives_other_turns_crashes_and_processes(
    sessions: Sessions, between: Callable[[Sessions], None]
) -> None:
    ask(sessions)
    with sessions.session("s") as session:
        session.call("4.0").grant(by="ada")
    between(sessions)
    between(sessions)

    with sessions.session("s") as session:
        assert session.waiting() == []
        (granted,) = session.granted()
        with session.turn(resumes=granted) as turn:
            assert turn.resumed is granted
            granted.run(TOOLS)
        assert session.granted() == []
    assert text_of(results(stored(sessions, "s"))[-1]) == '{"paid":7}'


def test_f28_a_denial_is_recorded_whole_or_not_at_all(sessions: Sessions) -> None:
    ask(sessions)
    with sessions.session("s") as session:
        call = session.call("4.0")
        before = session.head
        with pytest.raises(InvalidEvent):
            call.deny(text={1})  # type: ignore[arg-type]
        assert session.head == before
        call.deny(text="no")


def test_f28_a_step_that_ends_voids_the_open_question(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant(reply(asks("pay")))
        session.append("approval_request", {"call": call.call_key, "id": call.id, "question": "?"})

    told = [(event.type, event.data.get("decision")) for event in stored(sessions, "s")]
    assert ("approval_response", "void") in told
    assert told.index(("approval_response", "void")) < told.index(("step_end", None))


# --- exports


def test_an_export_says_where_the_session_stood_and_not_more() -> None:
    sessions = Sessions(MemoryStore())
    with sessions.session("s") as session:
        session.append("x.note", {})
        session.flush()
        export = sessions.export("s")
        copied = sessions.export("s", copied=True)
        lines, with_mark = [next(export)], [next(copied)]
        with session.turn(user="go") as turn, turn.step() as step:
            (call,) = step.assistant(reply(asks("pay")))
            call.dispatch()
            lines += export
            with_mark += copied
            call.result("paid")

    assert len(lines) == len(with_mark) == 2
    assert not plan(turnwal.Log.read(lines))


# --- retries


def test_every_handle_of_a_call_is_the_same_handle(sessions: Sessions) -> None:
    lost_call(sessions)
    ran: list[int] = []
    with sessions.session("s") as session:
        first, second = session.call("4.0"), session.call("4.0")
        assert first is second
        first.retry({"pay": lambda: ran.append(1)})
        with pytest.raises(Refused, match="known to have happened"):
            second.retry({"pay": lambda: ran.append(2)})
        second.settle("unknown")
        with pytest.raises(Refused, match="known to have happened"):
            first.retry({"pay": lambda: ran.append(3)})
        second.settle("did_not_happen")
        assert first.retry({"pay": lambda: ran.append(4)}).data["attempt"] == 3

    assert ran == [1, 4]


def test_two_retries_cannot_overlap(sessions: Sessions) -> None:
    lost_call(sessions)
    refused: list[str] = []
    with sessions.session("s") as session:
        call = session.call("4.0")

        def body() -> str:
            with pytest.raises(Refused, match="is running"):
                call.retry({"pay": body})
            refused.append("inner")
            return "paid"

        call.retry({"pay": body})
    assert refused == ["inner"]


def test_two_retries_cannot_overlap_although_the_turn_of_the_running_one_ends(sessions: Sessions) -> None:
    lost_call(sessions)
    inside, release = threading.Event(), threading.Event()
    outcomes: list[str] = []

    def slow() -> str:
        inside.set()
        release.wait(30)
        return "paid"

    with sessions.session("s") as session:
        worker = threading.Thread(target=lambda: outcomes.append(retried(session, slow)))
        with session.turn(user="go"):
            worker.start()
            assert inside.wait(30)
        gc.collect()
        with pytest.raises(Refused, match="is running"):
            session.call("4.0").retry({"pay": lambda: "paid again"})
        release.set()
        worker.join()
        assert outcomes == ["happened"]
        with pytest.raises(Refused, match="known to have happened"):
            session.call("4.0").retry({"pay": lambda: "paid again"})


def retried(session: Session, body: Callable[[], str]) -> str:
    return str(session.call("4.0").retry({"pay": body}).data["outcome"])


def test_a_call_is_not_repeated_while_the_body_runs_whose_turn_has_ended(sessions: Sessions) -> None:
    inside, release = threading.Event(), threading.Event()

    def slow() -> str:
        inside.set()
        release.wait(30)
        return "paid"

    def run(call: Call) -> None:
        with pytest.raises(Refused, match="has a result already"):
            call.run({"pay": slow})

    with sessions.session("s") as session:
        with session.turn(user="go") as turn, turn.step() as step:
            worker = threading.Thread(target=run, args=step.assistant(reply(asks("pay"))))
            worker.start()
            assert inside.wait(30)
        call = session.call("4.0")
        assert call.repeatable
        with pytest.raises(Refused, match="is running"):
            call.retry({"pay": lambda: "paid again"})
        release.set()
        worker.join()
        assert call.retry({"pay": pay}).data["outcome"] == "happened"


def test_a_cancelled_wait_leaves_the_call_running_as_long_as_its_thread(sessions: Sessions) -> None:
    inside, release = threading.Event(), threading.Event()

    def slow() -> str:
        inside.set()
        release.wait(30)
        return "paid"

    async def main() -> None:
        async with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
            (call,) = step.assistant(reply(asks("pay")))
            task = asyncio.ensure_future(call.arun({"pay": slow}))
            await asyncio.to_thread(inside.wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(Refused, match="is running"):
                await call.aretry({"pay": pay})
            release.set()

    asyncio.run(main())


def test_a_retry_whose_value_cannot_be_kept_happened_all_the_same(sessions: Sessions) -> None:
    lost_call(sessions)
    with sessions.session("s") as session:
        outcome = session.call("4.0").retry({"pay": lambda: {1}})

    assert outcome.data["outcome"] == "happened"
    assert "could not be recorded" in text_of(outcome)


def test_an_asynchronous_tool_is_repeated_too(sessions: Sessions) -> None:
    lost_call(sessions)

    async def body() -> str:
        return "paid"

    async def main() -> str:
        async with sessions.session("s") as session:
            call = session.call("4.0")
            with pytest.raises(Refused, match="asynchronous"):
                call.retry({"pay": body})
            outcome = await call.aretry({"pay": body})
            await call.asettle("happened", by="ada")
            return str(outcome.data["outcome"])

    assert asyncio.run(main()) == "happened"


# --- what a tool raises


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("error", [Mute(), ValueError("x" * (65 * 1024 * 1024))], ids=["mute", "huge"])
def test_whatever_a_tool_raises_is_a_result_with_is_error(error: Exception) -> None:
    sessions = Sessions(MemoryStore())

    def body() -> None:
        raise error

    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (result,) = step.run(step.assistant(reply(asks("body"))), {"body": body})
    assert result.data["is_error"] is True
    assert type(error).__name__ in text_of(result)


# --- the write order, asynchronously (F14)


def test_f14_asynchronously_the_input_is_durable_before_the_model_is_asked_and_each_dispatch_before_its_body(
    sessions: Sessions,
) -> None:
    seen: list[list[str]] = []

    async def body(n: int) -> int:
        seen.append(types(stored(sessions, "s"))[3:])
        return n

    async def main() -> list[str]:
        async with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
            asked_with = types(stored(sessions, "s"))
            await step.arun(step.assistant(reply(asks("body", n=0), asks("body", n=1))), {"body": body})
            return asked_with

    assert asyncio.run(main()) == ["session_start", "turn_start", "user_message", "step_start"]
    message = ["step_start", "assistant_message"]
    assert seen == [[*message, "tool_call"], [*message, "tool_call", "tool_result", "tool_call"]]


def test_waiting_for_an_owner_keeps_no_barrier_from_its_turn(sessions: Sessions) -> None:
    async def wait() -> None:
        async with sessions.session("s", wait=20):
            pass

    async def main() -> float:
        async with sessions.session("s") as session:
            waiters = [asyncio.create_task(wait()) for _ in range(12)]
            await asyncio.sleep(0.1)
            started = time.monotonic()
            session.append("x.note", {})
            await session.aflush()
            spent = time.monotonic() - started
        await asyncio.gather(*waiters)
        return spent

    assert asyncio.run(main()) < 10


# --- raw records, plain verbs


def in_a_step(sessions: Sessions, work: Callable[[Session, Any, Any], None]) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        call, other = step.assistant(reply(asks("pay", "a"), asks("pay", "b", order=2)))
        other.run(TOOLS)
        work(session, call, other)
        step.run([call], TOOLS)


@pytest.mark.parametrize(
    ("type", "data"),
    [
        ("tool_result", {"id": "a", "parts": []}),
        ("tool_result", {"call": "banana", "id": "a", "parts": []}),
        ("tool_result", {"call": "4.1", "id": "b", "parts": []}),
        ("tool_call", {"call": "4.1", "id": "b"}),
        ("tool_suspended", {"call": "9.0"}),
        ("approval_response", {"call": "4.0", "id": "a", "decision": "granted"}),
        ("approval_response", {"call": "4.1", "id": "b", "decision": "granted"}),
        ("step_start", {}),
        ("turn_end", {"turn": 1, "reason": "complete"}),
        ("turn_end", {"turn": 1, "reason": "interrupted"}),
        ("turn_start", {}),
    ],
)
def test_f07_a_raw_record_that_would_make_the_history_ambiguous_is_refused(
    sessions: Sessions, type: str, data: dict[str, Any]
) -> None:
    def work(session: Session, _call: Any, _other: Any) -> None:
        before = session.head
        with pytest.raises(Refused) as refused:
            session.append(type, data)
        assert refused.value.hint
        assert session.head == before

    in_a_step(sessions, work)


def test_a_reason_or_outcome_that_is_none_is_refused(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        for word in ("interrupted", "banana", 5):
            with pytest.raises(Refused):
                turn.close(word)  # type: ignore[arg-type]
            with pytest.raises(Refused):
                step.close(word)  # type: ignore[arg-type]
        step.assistant(reply(says("done")))


# --- forks of the process


def test_a_forked_child_is_refused_at_its_first_record(tmp_path: Any) -> None:
    sessions = Sessions(FileStore(tmp_path))
    with sessions.session("s") as session:
        session.append("x.note", {})
        session.flush()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with pytest.raises(OwnershipLost):
                    session.append("x.note", {})
                with pytest.raises(OwnershipLost):
                    session.open_turn("go")
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        session.append("x.note", {})
    assert types(stored(sessions, "s")) == ["session_start", "x.note", "x.note"]


def test_a_fork_while_another_thread_appends_does_not_hang_the_child(tmp_path: Any) -> None:
    sessions = Sessions(FileStore(tmp_path))
    with sessions.session("s") as session:
        stop = threading.Event()

        def work() -> None:
            while not stop.wait(0.001):
                session.append("x.note", {})
                session.flush()

        thread = threading.Thread(target=work)
        thread.start()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                try:
                    session.append("x.note", {})
                except OwnershipLost:
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        thread.join()


def test_only_declared_hints_are_believed() -> None:
    for source, retry in (
        ("declared", "safe"),
        ("confirmed", "safe"),
        ("default", "verify_first"),
        ("server", "verify_first"),
    ):
        log = turnwal.Log()
        log.append("turn_start", {"turn": 1, "dispatch": "durable"})
        log.append("assistant_message", {"parts": [asks("look", "a")]})
        hints = {"hints": {"read_only": True}, "hints_from": {"read_only": source}}
        log.append("tool_call", {"call": "1.0", "id": "a", "name": "look"} | hints)
        assert plan(log).lost_calls()[0].data["metadata"]["retry"] == retry


# --- what a message finally asks for


@pytest.mark.parametrize("partial", ['{"order":1}', '{"ord'])
def test_f07_a_completed_message_runs_what_it_finally_asks_for(sessions: Sessions, partial: str) -> None:
    part = {"type": "tool_call", "id": "a", "name": "pay", "arguments": partial}
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        step.assistant(reply(part, complete=False))
        seq = len(session) - 1
        (call,) = step.assistant(reply(part | {"arguments": '{"order":17}'}, completes=seq))
        assert call.arguments == '{"order":17}'
        (result,) = step.run([call], TOOLS)
    with sessions.session("s") as session:
        assert session.call(f"{seq}.0").arguments == '{"order":17}'
    assert text_of(result) == '{"paid":17}'


# --- an export that waits for its owner


def test_an_export_that_waited_for_the_owner_says_what_the_owner_left(tmp_path: Any, monkeypatch: Any) -> None:
    sessions = Sessions(FileStore(tmp_path))
    session = sessions.session("s").open()
    step = session.open_turn("go").step().begin()
    (call,) = step.assistant(reply(asks("pay")))
    session.flush()
    claim = sessions.store.claim

    def claim_late(*arguments: Any, **options: Any) -> Any:
        call.run(TOOLS)
        session.close()
        return claim(*arguments, **options)

    monkeypatch.setattr(sessions.store, "claim", claim_late)
    lines = list(sessions.export("s"))
    assert not plan(turnwal.Log.read(lines))
    assert len(lines) == len(stored(sessions, "s"))


# --- results that are real


def test_a_real_result_is_never_repeated_whatever_its_metadata_says(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant(reply(asks("pay")))
        call.dispatch()
        with pytest.raises(Refused, match="real one"):
            call.result("paid", metadata={"synthetic": True})
        call.result("paid", metadata={"risk": "low"})
        with pytest.raises(Refused, match="real one"):
            call.retry(TOOLS)


@pytest.mark.parametrize(
    ("type", "data"),
    [
        ("tool_result", {"call": "4.0", "id": "a", "parts": [], "attempt": 2}),
        ("tool_result", {"call": "4.0", "id": "a", "parts": [], "metadata": {"rejected": True}}),
        ("tool_result", {"call": "4.0", "id": "a", "parts": [], "metadata": {"synthetic": True}}),
        ("tool_call", {"call": "4.0", "id": "a", "attempt": 2}),
        ("tool_outcome", {"call": "99.0", "outcome": "happened"}),
        ("tool_outcome", {"call": "4.0", "outcome": "happened"}),
        ("tool_outcome", {"id": "a", "outcome": "happened"}),
    ],
)
def test_f07_no_field_talks_a_raw_record_past_the_guard(sessions: Sessions, type: str, data: dict[str, Any]) -> None:
    def work(session: Session, _call: Any, _other: Any) -> None:
        with pytest.raises(Refused):
            session.append(type, data)

    in_a_step(sessions, work)


# --- subscribers, redaction


def test_a_subscriber_that_stopped_listening_stops_nobody(sessions: Sessions) -> None:
    async def main() -> None:
        async with sessions.session("s") as session:
            session.subscribe()
            for _ in range(3):
                for n in range(5_000):
                    session.append("x.note", {"n": n})
                await session.aflush()

    asyncio.run(main())
    assert len(stored(sessions, "s")) == 15_001


def test_f37_a_redaction_in_place_touches_neither_the_tool_nor_the_callers_object(sessions: Sessions) -> None:
    def redact(data: dict[str, Any]) -> dict[str, Any]:
        for part in data.get("parts", []):
            part["arguments"] = '{"card":"***"}'
        data.pop("secret", None)
        return data

    got: list[str] = []

    def use(card: str) -> None:
        got.append(card)

    mine = {"secret": 1, "parts": [{"type": "x"}]}
    with sessions.session("s", redact=redact) as session, session.turn(user="go") as turn, turn.step() as step:
        step.run(step.assistant(reply(asks("use", card="4111"))), {"use": use})
        session.append("x.note", mine)

    assert got == ["4111"]
    assert mine == {"secret": 1, "parts": [{"type": "x"}]}


def test_f37_a_result_that_redaction_fails_on_is_recorded_as_a_tool_that_ran(sessions: Sessions) -> None:
    def redact(data: dict[str, Any]) -> dict[str, Any]:
        if "hunter2" in str(data):
            raise ValueError("hunter2 cannot be masked")
        return data

    with sessions.session("s", redact=redact) as session, session.turn(user="go") as turn, turn.step() as step:
        (result,) = step.run(step.assistant(reply(asks("tell"))), {"tell": lambda: "hunter2"})

    assert text_of(result).startswith("The tool ran and returned")
    assert "hunter2" not in str(result.data)


def test_a_child_with_a_name_that_is_none_is_refused_before_the_dispatch(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant(reply(asks("delegate")))
        with pytest.raises(turnwal.TurnwalError, match="the id is empty"):
            call.child(sessions, "")
        assert not call.dispatched


def test_only_a_dispatched_call_waits_for_a_late_answer(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant(reply(asks("render")))
        with pytest.raises(Refused, match="never dispatched"):
            call.suspend()


# --- what stands inside damage is never read


def hole(path: Any, line: int) -> None:
    """Turn a line into NULs, as a power loss leaves one page of a batch."""
    lines = path.read_bytes().split(b"\n")
    lines[line] = b"\0" * len(lines[line])
    path.write_bytes(b"\n".join(lines))


@pytest.mark.parametrize("decision", ["granted", "denied"])
def test_f28_a_decision_inside_damage_decides_nothing(tmp_path: Any, decision: str) -> None:
    sessions = Sessions(FileStore(tmp_path))
    ask(sessions)
    session = sessions.session("s").open()
    session.append("x.note", {})
    session.append("approval_response", {"call": "4.0", "id": "k", "decision": decision})
    session.flush()
    line = session.head.count - 2
    die(session)
    hole(tmp_path / "s.jsonl", line)

    with sessions.session("s") as session:
        (call,) = session.waiting()
        with session.turn(resumes="4.0"), pytest.raises(Refused, match="approval is pending"):
            call.run(TOOLS)
        with pytest.raises(Refused, match="what is lost"):
            call.grant(by="ada")
        call.settle("did_not_happen", by="ada")
        call.grant(by="ada")
        with session.turn(resumes="4.0") as turn:
            assert turn.resumed is not None
            turn.resumed.run(TOOLS)


def test_a_result_inside_damage_keeps_no_call_from_being_repeated(tmp_path: Any) -> None:
    sessions = Sessions(FileStore(tmp_path))
    session = sessions.session("s").open()
    step = session.open_turn("go").step().begin()
    (call,) = step.assistant(reply(asks("pay", order=7)))
    session.flush()
    line = session.head.count
    session.append("x.note", {})
    call.note_dispatch()
    call.note_result("paid")
    session.flush()
    die(session)
    hole(tmp_path / "s.jsonl", line)

    with sessions.session("s") as session:
        assert session.recovered is not None
        assert session.recovered.lost_calls()[0].data["metadata"]["risk"] == "tool_outcome_unknown"
        assert session.call("4.0").retry(TOOLS).data["outcome"] == "happened"


# --- redaction


def stars(data: dict[str, Any]) -> dict[str, Any]:
    for part in data.get("parts", []):
        if part.get("type") == "tool_call":
            part["arguments"] = '{"order":"***"}'
    return data


def test_f37_redaction_never_makes_two_calls_one(sessions: Sessions) -> None:
    with sessions.session("s", redact=stars) as session, session.turn(user="go") as turn, turn.step() as step:
        step.run(step.assistant(reply(asks("pay", order=1))), TOOLS)
        before = session.head
        with pytest.raises(Refused, match="two different calls"):
            step.assistant(reply(asks("pay", order=2)))
        assert session.head == before
        assert step.assistant(reply(asks("pay", order=1))) == []


def test_f37_a_call_with_redacted_arguments_runs_in_no_later_process(sessions: Sessions) -> None:
    with sessions.session("s", redact=stars) as session, session.turn(user="go") as turn, turn.step() as step:
        step.assistant(reply(asks("pay", order=1)))[0].ask("pay?")
    with sessions.session("s") as session:
        call = session.call("4.0")
        call.grant(by="ada")
        with session.turn(resumes="4.0"), pytest.raises(Refused, match="redacted"):
            call.run(TOOLS)


# --- lost answers that cannot say why


@pytest.mark.parametrize("text", ["hunter2", "x" * (65 * 1024 * 1024)], ids=["redacted", "huge"])
def test_f16_a_lost_answer_is_unknown_whatever_it_says_and_its_siblings_keep_theirs(text: str) -> None:
    def redact(data: dict[str, Any]) -> dict[str, Any]:
        if "hunter2" in str(data)[:10_000]:
            raise ValueError("no")
        return data

    def lose() -> None:
        raise turnwal.OutcomeUnknown(text)

    sessions = Sessions(MemoryStore())
    parts = [asks("pay", "a", order=1), asks("lose", "b"), asks("pay", "c", order=3)]
    with sessions.session("s", redact=redact) as session, session.turn(user="go") as turn, turn.step() as step:
        told = step.run(step.assistant(reply(*parts)), TOOLS | {"lose": lose}, parallel=True)
    assert [result.data.get("metadata", {}).get("risk") for result in told] == [None, "tool_outcome_unknown", None]
    assert "could not be recorded" in text_of(told[1])

    with sessions.session("s", redact=redact) as session:
        outcome = session.call("4.1").retry({"lose": lose})
    assert outcome.data["outcome"] == "unknown"
    assert "ran and returned" not in text_of(outcome)


# --- the rest


def test_a_listener_that_stopped_costs_the_writer_nothing(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        for event in session.subscribe(since=0):
            assert event.seq == 0
            break
        for _ in range(300):
            session.append("x.note", {})
            session.flush()
        assert session._journal is not None
        assert not session._journal._entries


def test_a_declaration_that_is_none_is_refused(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        with pytest.raises(Refused, match="unknown"):
            session.turn(user="go", dispatch="durabel")
        with session.turn(user="go") as turn, pytest.raises(Refused, match="unknown"):
            turn.step(dispatch="sometimes")


def test_a_barrier_that_was_broken_off_before_its_write_is_found() -> None:
    session = Sessions(MemoryStore()).session("s").open()
    session.append("x.note", {})
    journal = session._journal
    assert journal is not None
    journal._taken += 1
    with pytest.raises(turnwal.TurnwalError, match="did not come to its end"):
        session.flush()
    session.close()


def test_a_granted_call_that_was_dispatched_does_not_outlive_its_turn() -> None:
    log = turnwal.Log()
    log.append("turn_start", {"turn": 1})
    log.append("assistant_message", {"parts": [asks("pay", "a")]})
    log.append("approval_request", {"call": "1.0", "id": "a"})
    log.append("approval_response", {"call": "1.0", "id": "a", "decision": "granted"})
    log.append("tool_call", {"call": "1.0", "id": "a"})
    log.append("turn_end", {"turn": 1})
    log.append("turn_start", {"turn": 2})
    log.append("tool_result", {"id": "a", "parts": []})

    assert {"dangling_call", "orphan_result"} <= {finding.code for finding in plan(log).findings}
    assert "granted" not in plan(log).repairs[-1].data


# --- looking and listening while others write


def test_a_call_is_found_while_a_barrier_comes_in_between(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        step.assistant(reply(asks("pay")))
        newest = sessions.store.newest

        def while_another_writes(id: str) -> Any:
            session.append("x.note", {})
            session.flush()
            return newest(id)

        monkeypatch.setattr(sessions.store, "newest", while_another_writes)
        assert session.call("4.0").name == "pay"


def test_a_listener_hears_nothing_that_stands_inside_damage_and_goes_on_behind_it(tmp_path: Any) -> None:
    sessions = Sessions(FileStore(tmp_path))
    session = sessions.session("s").open()
    for _ in range(6):
        session.append("x.note", {})
        session.flush()
    die(session)
    hole(tmp_path / "s.jsonl", 3)

    with sessions.session("s", accept_loss=True) as session:
        whole, tail = session.subscribe(since=0), session.subscribe(since=6)
        session.append("x.note", {})
    heard = [event.seq for event in whole]
    assert heard == [event.seq for event in stored(sessions, "s")]
    assert [event.seq for event in tail] == [seq for seq in heard if seq >= 6]


def test_a_listener_is_told_of_bytes_that_are_lost_and_does_not_wait_for_ever(tmp_path: Any) -> None:
    sessions = Sessions(FileStore(tmp_path))
    with sessions.session("s") as session:
        for _ in range(6):
            session.append("x.note", {})
            session.flush()
        hole(tmp_path / "s.jsonl", 3)
        subscription = session.subscribe(since=0)
        with pytest.raises(turnwal.TurnwalError, match="readable records follow"):
            list(subscription)


def test_a_closed_subscription_says_nothing_more(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        subscription = session.subscribe(since=0)
        subscription.close()
        assert list(subscription) == []


# --- what redaction may not do


def test_f37_redaction_hides_no_call_in_a_completed_message(sessions: Sessions) -> None:
    with sessions.session("s", redact=stars) as session, session.turn(user="go") as turn, turn.step() as step:
        step.run(step.assistant(reply(asks("pay", order=1))), TOOLS)
        seq = len(session)
        step.assistant(reply(says("and"), complete=False))
        with pytest.raises(Refused, match="two different calls"):
            step.assistant(reply(says("and"), asks("pay", order=2), completes=seq))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: {**data, "parts": data["parts"][1:]},
        lambda data: {**data, "parts": [*data["parts"], data["parts"][-1]]},
        lambda data: {**data, "parts": None},
        lambda data: {**data, "parts": [data["parts"][0], {**data["parts"][1], "name": "***"}]},
        lambda _: None,
    ],
)
def test_f37_redaction_that_changes_what_is_asked_for_is_refused(
    sessions: Sessions, change: Callable[[dict[str, Any]], Any]
) -> None:
    def redact(data: dict[str, Any]) -> Any:
        return change(data) if len(data.get("parts") or ()) > 1 else data

    with sessions.session("s", redact=redact) as session, session.turn(user="go") as turn, turn.step() as step:
        before = session.head
        with pytest.raises(Refused, match="changes which calls"):
            step.assistant(reply(says("I pay"), asks("pay", order=1)))
        assert session.head == before


def test_f37_a_redacted_dispatch_without_a_request_is_marked_too(sessions: Sessions) -> None:
    def redact(data: dict[str, Any]) -> dict[str, Any]:
        return data | {"arguments": "{}"} if "arguments" in data else data

    session = sessions.session("s", redact=redact).open()
    session.open_turn("go")
    session.append("tool_call", {"id": "a", "name": "pay", "arguments": '{"order":1}'})
    session.flush()
    die(session)
    with sessions.session("s") as session, pytest.raises(Refused, match="redacted"):
        session.call("3.d").retry(TOOLS)


def test_f37_the_process_that_recorded_a_call_keeps_its_arguments(sessions: Sessions) -> None:
    got: list[int] = []

    def lose(order: int) -> None:
        got.append(order)
        if len(got) == 1:
            raise turnwal.OutcomeUnknown

    with sessions.session("s", redact=stars) as session:
        with session.turn(user="go") as turn, turn.step() as step:
            step.run(step.assistant(reply(asks("lose", order=7))), {"lose": lose})
        del turn, step
        gc.collect()
        session.call("4.0").retry({"lose": lose})
    assert got == [7, 7]
