"""Opening: recovery under ownership, what is read, what is refused, what is left alone."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.session.helpers import DONE, TOOLS, asks, die, reply, results, says, stored, types
from turnwal.core.chain import Head
from turnwal.core.errors import (
    Damaged,
    DamagedStart,
    Interrupted,
    Refused,
    SessionClosed,
    SessionExists,
    SessionHeld,
    SessionNotFound,
    StoreFull,
    TooNew,
    TurnwalError,
)
from turnwal.core.log import Log
from turnwal.core.recovery import plan, plan_of
from turnwal.session.opening import open_tail
from turnwal.session.sessions import Sessions, fork
from turnwal.session.verifying import verify
from turnwal.store.disk import Disk
from turnwal.store.file import FileStore
from turnwal.store.memory import MemoryStore
from turnwal.store.protocol import Gap, Record


def crash(sessions: Sessions, id: str = "s") -> None:
    """Leave a session with one call running and one not dispatched."""
    session = sessions.session(id).open()
    step = session.open_turn("go").step().begin()
    running, _ = step.assistant(reply(asks("pay", "a"), asks("pay", "b", order=2)))
    running.dispatch()
    die(session)


def talk(sessions: Sessions, turns: int, id: str = "s") -> None:
    with sessions.session(id) as session:
        for n in range(turns):
            with session.turn(user=f"pay {n}") as turn:
                while turn.open:
                    with turn.step() as step:
                        step.run(step.assistant(reply(asks("pay", order=n)) if step.number == 1 else DONE), TOOLS)


class Counting(MemoryStore):
    """Counts the lines that are read."""

    count = 0

    def read(
        self, session: str, position: int = 0, *, after: Head | None = None, past_damage: bool = False
    ) -> Iterator[Record | Gap]:
        for item in super().read(session, position, after=after, past_damage=past_damage):
            self.count += 1
            yield item

    def newest(self, session: str) -> Iterator[Record | None]:
        for item in super().newest(session):
            self.count += 1
            yield item


def test_f01_opening_an_interrupted_session_recovers_it_and_says_what_was_done(sessions: Sessions) -> None:
    crash(sessions)
    before = list(sessions.store.read("s"))
    assert sessions.glance("s").state == "interrupted"
    assert sessions.glance("s").owed == 2

    with sessions.session("s") as session:
        assert session.recovered is not None
        assert [repair.data["metadata"]["risk"] for repair in session.recovered.lost_calls()] == [
            "tool_outcome_unknown",
            "tool_not_started",
        ]
    with sessions.session("s") as session:
        assert session.recovered is None

    after = list(sessions.store.read("s"))
    assert after[: len(before)] == before
    assert types(stored(sessions, "s"))[len(before) :] == [
        "session_resume",
        "tool_result",
        "tool_result",
        "step_end",
        "turn_end",
    ]
    assert sessions.glance("s").state == "clean"


def test_looking_at_an_interrupted_session_writes_nothing_and_shows_it_balanced(sessions: Sessions) -> None:
    crash(sessions)
    before = list(sessions.store.read("s"))

    seen = sessions.inspect("s")
    events = list(seen)

    assert list(sessions.store.read("s")) == before
    assert len(seen.plan.lost_calls()) == 2
    assert not plan(events)
    assert [event.seq for event in events] == list(range(len(events)))
    assert [event.type for event in seen.surface()] == [
        "user_message",
        "assistant_message",
        "tool_result",
        "tool_result",
    ]


def test_recovery_can_be_declined(sessions: Sessions) -> None:
    crash(sessions)
    before = list(sessions.store.read("s"))

    with pytest.raises(Interrupted, match="seq 1"), sessions.session("s", recover="refuse"):
        pass
    assert list(sessions.store.read("s")) == before
    with sessions.session("s"):
        pass
    with sessions.session("s", recover="refuse"):
        pass


@pytest.mark.parametrize("tail", [b'{"seq":7,"pr', b"\0" * 700], ids=["torn", "nul"])
def test_recovery_of_a_tail_can_be_declined(tmp_path: Path, tail: bytes) -> None:
    sessions = Sessions(FileStore(tmp_path))
    talk(sessions, 1)
    path = tmp_path / "s.jsonl"
    with path.open("ab") as file:
        file.write(tail)
    before = path.read_bytes()

    with pytest.raises(Interrupted, match="a tail that is no record"), sessions.session("s", recover="refuse"):
        pass
    assert path.read_bytes() == before
    with sessions.session("s") as session:
        assert session.recovered is not None
    with sessions.session("s", recover="refuse"):
        pass


def test_opening_and_doing_nothing_writes_nothing(sessions: Sessions) -> None:
    talk(sessions, 1)
    before = list(sessions.store.read("s"))

    with sessions.session("s") as session:
        assert session.recovered is None

    assert list(sessions.store.read("s")) == before


def test_f39_a_later_owner_says_who_it_is_with_its_first_event(sessions: Sessions) -> None:
    talk(sessions, 1)
    with sessions.session("s", owner="night shift") as session:
        session.append("x.note", {})
        session.append("x.note", {})

    resumed, *rest = stored(sessions, "s")[-3:]
    assert resumed.data["owner"]["description"].startswith(f"night shift (pid {os.getpid()} on ")
    assert resumed.data["writer"]["name"] == "turnwal"
    assert types(rest) == ["x.note", "x.note"]


def test_turn_numbers_go_on(sessions: Sessions) -> None:
    for _ in range(3):
        talk(sessions, 1)

    starts = [event.data["turn"] for event in stored(sessions, "s") if event.type == "turn_start"]
    assert starts == [1, 2, 3]


def test_f24_a_second_owner_is_refused_and_a_reader_is_not(sessions: Sessions) -> None:
    with sessions.session("s", owner="the first") as session:
        session.append("x.note", {})
        session.flush()
        with pytest.raises(SessionHeld) as held, sessions.session("s"):
            pass
        assert "the first" in held.value.holder
        assert sessions.glance("s").state == "open"
        assert len(list(sessions.inspect("s"))) == 2
    with sessions.session("s"):
        pass


def test_a_session_that_must_exist_is_not_made(sessions: Sessions) -> None:
    with pytest.raises(SessionNotFound), sessions.session("s", create=False):
        pass
    with pytest.raises(SessionNotFound):
        sessions.inspect("s")
    with pytest.raises(SessionNotFound):
        sessions.glance("s")
    assert list(sessions) == []


def test_a_session_object_opens_once(sessions: Sessions) -> None:
    session = sessions.session("s")
    with pytest.raises(SessionClosed, match="not open"):
        session.append("x.note", {})
    session.open()
    with pytest.raises(SessionClosed, match="before"):
        session.open()
    session.close()
    session.close()
    with pytest.raises(SessionClosed):
        session.append("x.note", {})


def test_options_that_mean_nothing_are_refused(sessions: Sessions) -> None:
    with pytest.raises(Refused):
        sessions.session("s", recover="maybe")
    with pytest.raises(Refused):
        sessions.session("s", dispatch="often")
    with pytest.raises(TypeError):
        sessions.session("s", colour="red")


@pytest.mark.parametrize("crashed", [False, True])
def test_f26_opening_costs_what_is_open_not_what_is_stored(*, crashed: bool) -> None:
    counts = []
    for turns in (3, 300):
        store = Counting()
        sessions = Sessions(store)
        talk(sessions, turns)
        if crashed:
            crash(sessions)
        store.count = 0
        with sessions.session("s"):
            counts.append(store.count)

    assert counts[0] == counts[1] < 30


def test_the_tail_says_what_the_whole_says(sessions: Sessions) -> None:
    talk(sessions, 3)
    crash(sessions)

    opening = open_tail(sessions.store, "s")
    assert opening.began_at > 3
    assert plan_of(opening.scan).repairs == plan(stored(sessions, "s")).repairs


def test_a_log_without_hints_is_read_whole(tmp_path: Path) -> None:
    log = Log()
    log.append("session_start", {"id": "s", "format": 1})
    log.append("turn_start", {"turn": 1})
    log.append("assistant_message", {"parts": [asks("pay", "a")]})
    log.append("tool_call", {"id": "a", "name": "pay"})
    sessions = Sessions(FileStore(tmp_path))
    sessions.take_in("s", log.lines())

    with sessions.session("s") as session:
        assert session.recovered is not None
        assert session.recovered.lost_calls()[0].data["call"] == "2.0"
        with session.turn(user="next") as turn:
            assert turn.number == 2


def test_a_hint_that_lies_is_not_believed() -> None:
    log = Log()
    log.append("session_start", {"id": "s", "format": 1})
    log.append("turn_start", {"turn": 1, "format": 1, "dispatch": "durable", "open": [1], "waiting": []})
    log.append("assistant_message", {"parts": [asks("pay", "a")]})
    log.append("session_resume", {"format": 1, "open": [2], "waiting": []})
    sessions = Sessions(MemoryStore())
    sessions.take_in("s", log.lines())

    assert open_tail(sessions.store, "s").scan.open_seqs() == [1]


def test_f39_a_session_from_the_future_is_refused_and_nothing_written(sessions: Sessions) -> None:
    for n, (type, data) in enumerate([("turn_start", {"format": 2}), ("x.note", {}), ("turn_end", {})]):
        log = Log()
        log.append("session_start", {"id": "s", "format": 1})
        log.append(type, data)
        lines = list(log.lines())
        if type == "x.note":
            lines[1] = lines[1].replace(b'"x.note"', b'"quantum"')
        if type == "turn_end":
            lines[1] = lines[1].replace(b'"data"', b'"phase":1,"data"')
        claim = sessions.store.claim(f"s{n}")
        claim.append(lines, Head(0, "0" * 64))
        claim.release()
        size = sum(1 for _ in sessions.store.newest(f"s{n}"))
        with pytest.raises(TooNew), sessions.session(f"s{n}"):
            pass
        assert sessions.glance(f"s{n}").state == "too_new"
        assert sum(1 for _ in sessions.store.newest(f"s{n}")) == size == 2


def test_f17_a_torn_tail_is_kept_and_covered_by_the_next_owner(tmp_path: Path) -> None:
    sessions = Sessions(FileStore(tmp_path))
    crash(sessions)
    (path,) = tmp_path.glob("*.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"seq":6,"prev":"')
    pending = [event for event in sessions.inspect("s") if event.type == "damage"]

    with sessions.session("s") as session:
        assert session.recovered is not None

    written = path.read_bytes()
    assert written.startswith(whole + b'{"seq":6,"prev":"\n')
    damage = next(event for event in stored(sessions, "s") if event.type == "damage")
    assert damage.data == pending[0].data
    assert damage.data["kind"] == "torn"
    assert damage.data["length"] == 17
    assert sessions.glance("s").state == "clean"
    again = path.read_bytes()
    with sessions.session("s"):
        pass
    assert path.read_bytes() == again


def test_records_behind_a_hole_in_the_last_batch_are_no_history_although_they_end_a_turn(tmp_path: Path) -> None:
    sessions = Sessions(FileStore(tmp_path))
    with sessions.session("s") as session:
        with session.turn(user="go") as turn, turn.step() as step:
            step.assistant(DONE)
        last = list(session.events())[-3:]
    assert [(event.type, event.batch) for event in last[1:]] == [("step_end", last[0].seq), ("turn_end", last[0].seq)]
    path = tmp_path / "s.jsonl"
    lines = path.read_bytes().split(b"\n")
    # what a disk may have when the power fails before the sync: any part of the batch
    lines[last[0].seq] = b"\0" * len(lines[last[0].seq])
    path.write_bytes(b"\n".join(lines))

    with sessions.session("s") as session:
        assert session.recovered is not None
        session.append("x.after", {})
        session.flush()

    report = verify(sessions.store, "s")
    assert report.sound
    assert types(stored(sessions, "s"))[last[0].seq :] == [
        "damage",
        "session_resume",
        "step_end",
        "turn_end",
        "x.after",
    ]


def test_f18_damage_before_readable_records_is_refused_until_the_loss_is_accepted(tmp_path: Path) -> None:
    sessions = Sessions(FileStore(tmp_path))
    crash(sessions)
    (path,) = tmp_path.glob("*.jsonl")
    lines = path.read_bytes().split(b"\n")
    lines[3] = lines[3][:20]
    damaged = b"\n".join(lines)
    path.write_bytes(damaged)

    assert sessions.glance("s").state == "damaged"
    with pytest.raises(Damaged, match="readable records follow"), sessions.session("s"):
        pass
    assert path.read_bytes() == damaged

    with sessions.session("s", accept_loss=True) as session:
        assert session.recovered is not None
    events = stored(sessions, "s")
    lost = next(event for event in events if event.type == "damage")
    assert lost.data["kind"] == "lost"
    assert lost.data["after"] == 2
    assert lost.seq > 5
    assert path.read_bytes().startswith(damaged)
    with sessions.session("s") as session:
        assert session.recovered is None
        session.append("x.note", {})


def test_f18_a_call_that_was_open_across_a_loss_is_unknown(tmp_path: Path) -> None:
    sessions = Sessions(FileStore(tmp_path))
    session = sessions.session("s").open()
    step = session.open_turn("go").step().begin()
    first, second = step.assistant(reply(asks("pay", "a"), asks("pay", "b", order=2)))
    first.run(TOOLS)
    second.run(TOOLS)
    die(session)
    (path,) = tmp_path.glob("*.jsonl")
    lines = path.read_bytes().split(b"\n")
    lines[5] = b"\0" * len(lines[5])
    path.write_bytes(b"\n".join(lines))

    with sessions.session("s", accept_loss=True) as session:
        assert session.recovered is not None
        risks = [repair.data["metadata"]["risk"] for repair in session.recovered.lost_calls()]
    assert risks == ["tool_outcome_unknown", "tool_outcome_unknown"]


def test_f22_empty_absent_and_damaged_start_are_three_answers(tmp_path: Path) -> None:
    sessions = Sessions(FileStore(tmp_path))
    talk(sessions, 1, "good")
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "nul.jsonl").write_bytes(b"\0" * 100)
    (tmp_path / "bad.jsonl").write_bytes(b'{"seq":0\n' + (tmp_path / "good.jsonl").read_bytes())

    assert {id: sessions.glance(id).state for id in sessions} == {
        "bad": "damaged",
        "empty": "empty",
        "good": "clean",
        "nul": "damaged",
    }
    for id in ("bad", "nul"):
        before = (tmp_path / f"{id}.jsonl").read_bytes()
        with pytest.raises(DamagedStart), sessions.session(id, accept_loss=True):
            pass
        assert (tmp_path / f"{id}.jsonl").read_bytes() == before
    with sessions.session("empty"):
        pass
    assert sessions.glance("empty").state == "clean"


def test_f34_a_fork_copies_a_prefix_byte_for_byte_and_owes_nothing(sessions: Sessions) -> None:
    talk(sessions, 2)
    events = stored(sessions, "s")
    boundary = next(event.seq for event in events if event.type == "turn_end") + 1

    head = sessions.fork("s", boundary, "branch")

    lines = [item.line for item in sessions.store.read("branch") if isinstance(item, Record)]
    assert lines[:-1] == [item.line for item in sessions.store.read("s") if isinstance(item, Record)][:boundary]
    assert head.count == boundary + 1
    forked = stored(sessions, "branch")[-1]
    assert forked.type == "session_fork"
    assert forked.data["parent"] == {"session": "s", "seq": boundary - 1, "head": stored(sessions, "s")[boundary].prev}
    talk(sessions, 1, "branch")
    for at in (boundary - 1, 0, 10_000):
        with pytest.raises(Refused):
            sessions.fork("s", at, "other")
    with pytest.raises(SessionExists):
        sessions.fork("s", boundary, "branch")
    assert sorted(sessions) == ["branch", "s"]


def test_f34_a_fork_inside_an_open_turn_names_the_turn(sessions: Sessions) -> None:
    crash(sessions)
    with pytest.raises(Refused, match="turn 1, started at seq 1, is open"):
        sessions.fork("s", 4, "other")
    assert list(sessions) == ["s"]


def test_a_live_session_and_a_log_are_forked_alike(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        session.append("user_message", {"parts": [says("a")]})
        session.append("user_message", {"parts": [says("b")]})
        forked = fork(session, 2, "branch")
        assert not isinstance(forked, Log)
        with forked as branch:
            assert len(branch) == 3
    log = Log()
    log.append("user_message", {"parts": [says("a")]})
    log.append("user_message", {"parts": [says("b")]})
    branch_log = fork(log, 1)
    assert isinstance(branch_log, Log)
    assert list(branch_log.lines())[:1] == list(log.lines())[:1]


def test_a_session_moves_between_stores_byte_for_byte(sessions: Sessions, tmp_path: Path) -> None:
    talk(sessions, 2)
    lines = list(sessions.export("s"))

    other = Sessions(FileStore(tmp_path / "other"))
    head = other.take_in("s", lines)

    assert list(other.export("s")) == lines
    assert head == sessions.glance("s").head
    with pytest.raises(SessionExists):
        other.take_in("s", lines)
    assert list(other) == ["s"]


def test_what_is_no_whole_history_is_refused_with_a_hint_and_leaves_nothing(sessions: Sessions, tmp_path: Path) -> None:
    talk(sessions, 2)
    lines = list(sessions.export("s"))
    newer = Log.read(lines)
    newer.append("x.note", {})
    odd = list(newer.lines())[-1].replace(b"x.note", b"erased")
    wrong: list[tuple[list[bytes], type[TurnwalError]]] = [
        ([], Refused),
        (lines_without_start(), DamagedStart),
        (lines[1:], Damaged),
        ([*lines[:3], *lines[4:]], Damaged),
        ([*lines, lines[-1]], Damaged),
        ([*lines, odd], TooNew),
    ]

    other = Sessions(FileStore(tmp_path / "other"))
    for history, error in wrong:
        with pytest.raises(error) as caught:
            other.take_in("copy", history)
        assert caught.value.hint
    assert list((tmp_path / "other").iterdir()) == []


def test_f34_half_a_fork_is_no_session(sessions: Sessions, tmp_path: Path) -> None:
    class Full(Disk):
        def write_at(self, descriptor: int, data: bytes, offset: int, path: str) -> None:
            super().write_at(descriptor, data[: len(data) // 2], offset, path)
            raise StoreFull("No space left on device")

    talk(sessions, 2)
    at = len(stored(sessions, "s"))
    other = Sessions(FileStore(tmp_path / "other", disk=Full()))

    with pytest.raises(StoreFull) as caught:
        sessions.fork("s", at, "copy", into=other)

    assert "try again" in caught.value.hint
    assert list((tmp_path / "other").iterdir()) == []
    there = Sessions(FileStore(tmp_path / "other"))
    sessions.fork("s", at, "copy", into=there)
    assert types(stored(there, "copy"))[-1] == "session_fork"


def lines_without_start() -> list[bytes]:
    log = Log()
    log.append("user_message", {"parts": []})
    return list(log.lines())


def test_f25_open_work_is_not_copied_behind_its_owners_back(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant(reply(asks("pay")))
        session.flush()
        with pytest.raises(SessionHeld):
            list(sessions.export("s"))
        copied = list(sessions.export("s", copied=True))
        call.run(TOOLS)

    other = Sessions(MemoryStore())
    other.take_in("copy", copied)
    assert types(stored(other, "copy"))[-1] == "session_copied"
    with other.session("copy") as session:
        assert session.recovered is not None
        (lost,) = session.recovered.lost_calls()
    assert lost.data["metadata"]["risk"] == "tool_outcome_unknown"
    assert lost.rule == 3


def test_a_replace_on_a_live_session_is_checked_against_all_of_it(sessions: Sessions) -> None:
    talk(sessions, 1)
    with sessions.session("s") as session:
        seqs = [event.seq for event in session.surface()]
        summary = {"parts": [says("paid")], "replace": [seqs[0], seqs[-1]]}
        with pytest.raises(Exception, match="parts the call"):
            session.append("user_message", summary | {"replace": [seqs[0], seqs[1]]})
        made = session.append("user_message", summary)
        assert session.surface() == [made]
    assert results(stored(sessions, "s"))
