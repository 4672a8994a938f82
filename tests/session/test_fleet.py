"""Recovering and copying from a program, on every store."""

from collections import Counter
from pathlib import Path

import pytest

import turnwal
from tests.session.helpers import asks, die, reply, stored
from turnwal.core.errors import SessionHeld
from turnwal.session import fleet, fleet_report
from turnwal.session.copying import CopyReport
from turnwal.session.fleet_report import FleetReport, LostCall, Recovery
from turnwal.session.sessions import Sessions
from turnwal.store.memory import MemoryStore


def interrupted(sessions: Sessions, id: str) -> None:
    session = sessions.session(id).open()
    step = session.open_turn("go").step().begin()
    first, _ = step.assistant(reply(asks("pay", "p"), asks("mail", "m")))
    first.dispatch()
    die(session)


def test_what_is_interrupted_is_recovered_in_the_order_of_the_store(sessions: Sessions) -> None:
    for id in ("b", "a", "c"):
        interrupted(sessions, id)
    with sessions.session("clean"):
        pass

    found = list(sessions.recover_all())

    recovered = [recovery for recovery in found if recovery.outcome == "recovered"]
    assert [recovery.session for recovery in recovered] == ["a", "b", "c"]
    assert [recovery.head for recovery in recovered] == [str(sessions.glance(id).head) for id in "abc"]
    (unknown, unstarted) = recovered[0].calls
    assert (unknown.call, unknown.id, unknown.name, unknown.retry) == ("4.0", "p", "pay", "verify_first")
    assert unknown.may_have_run
    assert not unstarted.may_have_run
    assert (unstarted.name, unstarted.basis) == ("mail", "declared")
    assert {recovery.outcome for recovery in sessions.recover_all()} <= {"nothing_to_do"}


@pytest.mark.parametrize("workers", [1, 3])
def test_however_many_work_the_order_and_the_figures_are_the_same(sessions: Sessions, workers: int) -> None:
    ids = [f"s{number:02}" for number in range(20)]
    for id in ids:
        interrupted(sessions, id)
    report = FleetReport()

    found = list(sessions.recover_all(workers=workers))
    for recovery in found:
        report.add(recovery)

    assert [recovery.session for recovery in found] == ids
    assert report.sessions["recovered"] == report.looked_at == 20
    assert report.calls() == [
        ("pay", {"unknown": 20, "declared": 0, "inferred": 0}),
        ("mail", {"unknown": 0, "declared": 20, "inferred": 0}),
    ]
    for id in ids:
        assert Counter(event.type for event in stored(sessions, id))["session_resume"] == 1


def test_a_live_owner_is_named_and_left_alone(sessions: Sessions) -> None:
    interrupted(sessions, "a")
    with sessions.session("b", owner="the day shift") as session, session.turn("go"):
        session.flush()
        before = stored(sessions, "b")
        found = {recovery.session: recovery for recovery in sessions.recover_all()}
        assert stored(sessions, "b") == before

    assert found["a"].outcome == "recovered"
    assert found["b"].outcome == "alive"
    assert found["b"].holder.startswith("the day shift")


def test_whoever_recovers_says_so_to_those_it_keeps_out(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(sessions, "a")
    holders = []
    lost_calls = fleet._lost_calls

    def looking(*given: object) -> object:
        with pytest.raises(SessionHeld) as refused:
            sessions.session("a").open()
        holders.append(refused.value.holder)
        return lost_calls(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(fleet, "_lost_calls", looking)
    list(sessions.recover_all(workers=1))

    assert len(holders) == 1
    assert holders[0].startswith(fleet.RECOVERER)


def test_a_session_that_was_recovered_between_the_listing_and_the_look_is_nothing_to_do(sessions: Sessions) -> None:
    interrupted(sessions, "a")
    listed = list(fleet.members(sessions, interrupted=True))
    sessions.session("a").open().close()

    (recovery,) = fleet.recover_all(listed)

    assert recovery == Recovery("a", "nothing_to_do")


def test_nothing_is_begun_once_it_is_to_stop(sessions: Sessions) -> None:
    for id in ("a", "b", "c", "d"):
        interrupted(sessions, id)
    found = list(sessions.recover_all(workers=1, stop=lambda: sessions.glance("b").state == "clean"))

    assert [recovery.session for recovery in found] == ["a", "b"]
    assert [sessions.glance(id).state for id in "abcd"] == ["clean", "clean", "interrupted", "interrupted"]


def test_a_run_that_is_given_up_leaves_whole_sessions(sessions: Sessions) -> None:
    ids = [f"s{number:02}" for number in range(40)]
    for id in ids:
        interrupted(sessions, id)

    run = sessions.recover_all(workers=3)
    next(run)
    run.close()  # type: ignore[attr-defined]

    states = Counter(sessions.glance(id).state for id in ids)
    assert set(states) == {"clean", "interrupted"}
    assert 1 <= states["clean"] < 40


@pytest.mark.parametrize(("idempotent", "retry"), [(False, "verify_first"), (True, "same_arguments")])
def test_an_attempt_that_was_left_open_is_told_with_its_tool(sessions: Sessions, idempotent: bool, retry: str) -> None:
    session = sessions.session("a").open()

    @turnwal.tool(idempotent=idempotent)
    def pay(order: int) -> None:
        die(session)
        raise KeyboardInterrupt(order)

    step = session.open_turn("go").step().begin()
    (call,) = step.assistant(reply(asks("pay", "k", order=7)))
    with pytest.raises(KeyboardInterrupt):
        call.run({"pay": pay})
    assert [recovery.outcome for recovery in sessions.recover_all()] == ["recovered"]
    session = sessions.session("a").open()
    with pytest.raises(KeyboardInterrupt):
        session.call("4.0").retry({"pay": pay})

    (recovery,) = sessions.recover_all()

    (attempt,) = recovery.calls
    assert (attempt.call, attempt.id, attempt.name, attempt.attempt) == ("4.0", "k", "pay", 2)
    assert (attempt.retry, attempt.may_have_run, attempt.key) == (retry, True, call.key)


def test_a_report_does_not_grow_with_the_names_that_models_make_up() -> None:
    report = FleetReport()
    for number in range(fleet_report.TOOLS_MAX + 50):
        call = LostCall(f"{number}.0", "", f"tool {number}", "main", "tool_outcome_unknown", None, "safe", 1, ())
        report.add(Recovery("s", "recovered", calls=(call,)))

    tools = dict(report.calls())
    assert len(tools) == fleet_report.TOOLS_MAX + 1
    assert tools[fleet_report.OTHER_TOOLS]["unknown"] == 50


def test_every_store_copies_into_memory_and_back(sessions: Sessions) -> None:
    """Byte for byte through a store of another kind and back under the same ids."""
    for id in ("a", "b"):
        interrupted(sessions, id)
    with sessions.session("c", agent="é") as session, session.turn("ü"):
        pass
    before = {id: list(sessions.export(id)) for id in list(sessions)}

    with Sessions(MemoryStore()) as memory, Sessions(MemoryStore()) as third:
        there = CopyReport()
        for copy in sessions.copy_all(memory):
            there.add(copy)
        back = list(memory.copy_all(third))

        assert there.sessions["copied"] == 3
        assert there.events == sum(map(len, before.values()))
        assert [copy.outcome for copy in back] == ["copied"] * 3
        assert {id: list(third.export(id)) for id in third} == before
        assert [copy.outcome for copy in memory.copy_all(sessions)] == ["there"] * 3


def test_the_files_of_a_directory_without_an_id_are_members_too(tmp_path: Path) -> None:
    with turnwal.open_store(tmp_path) as store:
        interrupted(store, "a")
        path = (tmp_path / "a.jsonl").rename(tmp_path / "Not Ours.jsonl")

        (recovery,) = store.recover_all()

    assert (recovery.session, recovery.outcome) == (str(path), "recovered")
