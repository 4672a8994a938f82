"""Looking at a live or stored session: everything of one moment, or word that something is lost."""

import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turnwal
from tests.session.helpers import TOOLS, asks, reply, results, says
from turnwal.core.errors import Damaged, Refused
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.store.file import FileStore
from turnwal.store.memory import MemoryStore


def note(session: Session, text: str) -> None:
    session.append("user_message", {"parts": [says(text)]})


def texts(session: Session) -> list[str]:
    return [event.data["parts"][0]["content"] for event in session.surface()]


def test_the_surface_misses_nothing_that_becomes_durable_while_it_is_read(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sessions.session("s") as session:
        note(session, "0")
        session.flush()
        note(session, "1")
        note(session, "2")
        journal = session._journal
        assert journal is not None
        append, read = journal._claim.append, sessions.store.read
        entered, go_on = threading.Event(), threading.Event()

        def slow_append(*arguments: Any) -> None:
            entered.set()
            assert go_on.wait(30)
            append(*arguments)

        def read_before_it(*arguments: Any, **options: Any) -> Any:
            items = list(read(*arguments, **options))
            go_on.set()
            while journal.durable != journal.head:
                pass
            return iter(items)

        monkeypatch.setattr(journal._claim, "append", slow_append)
        barrier = threading.Thread(target=session.flush)
        barrier.start()
        assert entered.wait(30)
        with monkeypatch.context() as patch:
            patch.setattr(sessions.store, "read", read_before_it)
            assert texts(session) == ["0", "1", "2"]
        barrier.join()
        note(session, "3")
        assert texts(session) == ["0", "1", "2", "3"]


def with_old_damage(root: Path) -> Sessions:
    """A session of three closed turns; a line of the first has lost a byte."""
    sessions = Sessions(FileStore(root))
    with sessions.session("s") as session:
        for n in range(3):
            with session.turn(user=f"{n}") as turn, turn.step() as step:
                step.run(step.assistant(reply(asks("pay", order=n))), TOOLS)
    path = root / "s.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[6] = lines[6][:40] + b"\0" + lines[6][41:]
    path.write_bytes(b"\n".join(lines))
    return sessions


@pytest.mark.parametrize(
    "look",
    [
        list,
        lambda session: list(session.events(since=12)),
        lambda session: session.surface(),
        lambda session: session.surface("4.0"),
        turnwal.plan,
        turnwal.interrupted,
        turnwal.open_turns,
        lambda session: session.append("user_message", {"parts": [], "replace": [2, 2]}),
    ],
)
def test_f18_a_live_session_says_so_where_something_old_is_lost(tmp_path: Path, look: Callable[[Session], Any]) -> None:
    with with_old_damage(tmp_path).session("s") as session:
        for _ in range(2):
            with pytest.raises(Damaged, match="line 7"):
                look(session)
        # what is open is sound, so the session goes on, and calls behind the damage are found
        with session.turn(user="more") as turn, turn.step() as step:
            (result,) = step.run(step.assistant(reply(asks("pay", order=9))), TOOLS)
        assert not result.data["is_error"]
        assert session.call("12.0").answered


def test_f18_a_session_that_accepts_the_loss_reads_all_that_is_readable(tmp_path: Path) -> None:
    with with_old_damage(tmp_path).session("s", accept_loss=True) as session:
        with session.turn(user="more"):
            assert [event.seq for event in session] == [seq for seq in range(len(session)) if seq != 6]
            said = [event.data["parts"][0]["content"] for event in session.surface() if event.type == "user_message"]
            assert said == ["0", "1", "2", "more"]
        assert turnwal.interrupted(session) is False


def damage(root: Path, seq: int) -> None:
    path = root / "s.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[seq] = b"z" + lines[seq][1:]
    path.write_bytes(b"\n".join(lines))


def with_waiting_calls(root: Path) -> Sessions:
    """Calls 4.0 and 20.0 wait for a person; the answer of 12.0, in the turn between, was lost."""
    sessions = Sessions(FileStore(root))
    with sessions.session("s") as session:
        for n in range(3):
            with session.turn(user=f"{n}") as turn, turn.step() as step:
                calls = step.assistant(reply(asks("pay" if n != 1 else "loses")))
                if n == 1:
                    step.run(calls, TOOLS)
                else:
                    calls[0].ask("pay?")
        with session.turn(user="more"):
            pass
        assert [call.call_key for call in session.waiting()] == ["4.0", "20.0"]
    return sessions


def test_f18_a_call_before_damage_is_not_said_to_be_unknown(tmp_path: Path) -> None:
    sessions = with_waiting_calls(tmp_path)
    damage(tmp_path, 17)
    with sessions.session("s") as session:
        for look in (session.waiting, lambda: session.call("4.0"), lambda: session.call("12.0")):
            with pytest.raises(Damaged, match="line 18"):
                look()
        assert session.call("20.0").waiting


@pytest.mark.parametrize("lost", [2, 4, 6, 9, 15, 17, 20])
def test_f18_a_waiting_call_before_damage_is_granted_or_denied(tmp_path: Path, lost: int) -> None:
    sessions = with_waiting_calls(tmp_path)
    damage(tmp_path, lost)
    with sessions.session("s", accept_loss=True) as session:
        first, second = session.waiting()
        assert (first.call_key, second.call_key) == ("4.0", "20.0")
        first.grant(by="ada")
        second.deny(by="ada")
        assert [call.call_key for call in session.granted()] == ["4.0"]
        del first, second
        gc.collect()
        with session.turn(resumes="4.0") as turn:
            assert turn.resumed is not None
            if lost == 4:
                with pytest.raises(Refused, match="asks for it is lost"):
                    turn.resumed.run(TOOLS)
            else:
                assert not turn.resumed.run(TOOLS).data["is_error"]


def test_f18_a_lost_call_before_damage_is_not_repeated_until_somebody_knows(tmp_path: Path) -> None:
    sessions = with_waiting_calls(tmp_path)
    damage(tmp_path, 17)
    ran: list[int] = []
    with sessions.session("s", accept_loss=True) as session:
        call = session.call("12.0")
        assert call.repeatable
        for settled in (None, "unknown"):
            if settled:
                call.settle("unknown", by="ada")
            with pytest.raises(Refused, match="what is lost"):
                call.retry({"loses": lambda: ran.append(1)})
        call.settle("did_not_happen", by="ada")
        assert call.retry({"loses": lambda: ran.append(2)}).data["outcome"] == "happened"
    assert ran == [2]


def test_f18_a_call_whose_result_is_lost_is_settled(tmp_path: Path) -> None:
    sessions = with_waiting_calls(tmp_path)
    damage(tmp_path, 14)
    with sessions.session("s", accept_loss=True) as session:
        call = session.call("12.0")
        assert not call.answered
        assert call.settle("happened", by="ada").data["outcome"] == "happened"
    with sessions.session("s", accept_loss=True) as session:
        with pytest.raises(Refused):
            session.call("12.0").retry({"loses": lambda: None})
        with pytest.raises(Damaged, match="line 15"):
            session.call("3.7")


def test_f18_a_call_whose_result_is_lost_is_repeated_once_somebody_knows(tmp_path: Path) -> None:
    sessions = with_waiting_calls(tmp_path)
    damage(tmp_path, 14)
    ran: list[int] = []
    tools = {"loses": lambda: ran.append(1)}
    with sessions.session("s", accept_loss=True) as session:
        with pytest.raises(Refused, match="what is lost"):
            session.call("12.0").retry(tools)
        session.call("12.0").settle("did_not_happen", by="ada")
    with sessions.session("s", accept_loss=True) as session:
        call = session.call("12.0")
        assert call.retry(tools).data["outcome"] == "happened"
        with pytest.raises(Refused, match="known to have happened"):
            call.retry(tools)
    with sessions.session("s", accept_loss=True) as session:
        with pytest.raises(Refused, match="known to have happened"):
            session.call("12.0").retry(tools)
        # a call that is open gets its result
        with session.turn(user="on") as turn, turn.step() as step:
            (fresh,) = step.assistant(reply(asks("loses")))
            with pytest.raises(Refused, match="no result yet"):
                fresh.retry(tools)
        with pytest.raises(Refused, match="no result yet"):
            session.call("20.0").retry(tools)
    assert ran == [1]


def test_f18_a_view_says_so_where_something_old_is_lost(tmp_path: Path) -> None:
    view = with_old_damage(tmp_path).inspect("s")
    assert not view.plan
    with pytest.raises(Damaged, match="line 7"):
        list(view)
    with pytest.raises(Damaged, match="line 7"):
        view.surface()


def test_waiting_calls_are_looked_up_in_one_pass(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        for call in step.assistant(reply(*(asks("pay", order=n) for n in range(9)))):
            call.ask("pay?")
    read, passes = sessions.store.read, []

    def counted(*arguments: Any, **options: Any) -> Any:
        passes.append(arguments)
        return read(*arguments, **options)

    with sessions.session("s") as session:
        session.flush()
        monkeypatch.setattr(sessions.store, "read", counted)
        waiting = session.waiting()
        # one from the line that asks, one for what was recorded meanwhile
        assert len(passes) == 2
        assert [call.args for call in waiting] == [{"order": n} for n in range(9)]
        assert session.waiting() == waiting
        assert len(passes) == 2


def test_a_view_is_of_one_moment(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant(reply(asks("pay")))
        call.dispatch()
        view = sessions.inspect("s")
        before = list(view)
        call.result("paid")
        assert list(view) == before
        assert [event.seq for event in before] == list(range(len(before)))
        assert len(results(before)) == 1
        assert not turnwal.plan(before)


def test_a_view_of_a_torn_tail_stays_what_it_was_when_the_next_owner_has_covered_it(tmp_path: Path) -> None:
    sessions = Sessions(FileStore(tmp_path))
    with sessions.session("s") as session:
        note(session, "0")
    path = tmp_path / "s.jsonl"
    path.write_bytes(path.read_bytes() + b'{"seq":2,"pr')
    view = sessions.inspect("s")
    before = list(view)
    assert [event.type for event in before][-1] == "damage"
    with sessions.session("s") as session:
        note(session, "1")
    assert list(view) == before


def test_a_closed_session_still_reads_what_it_wrote() -> None:
    sessions = Sessions(MemoryStore())
    session = sessions.session("s").open()
    note(session, "0")
    session.close()
    assert [event.type for event in session] == ["session_start", "user_message"]


@pytest.mark.parametrize("wrong", [6, 9, 13, 15, 16, 23, 36, 94])
def test_f18_a_seq_that_a_changed_byte_made_another_hides_no_event(tmp_path: Path, wrong: int) -> None:
    sessions = Sessions(FileStore(tmp_path))
    with sessions.session("s") as session:
        for n in range(4):
            with session.turn(user=f"{n}") as turn, turn.step() as step:
                step.run(step.assistant(reply(asks("pay", order=n))), TOOLS)
    path = tmp_path / "s.jsonl"
    data = path.read_bytes()
    assert data.count(b'{"seq":14,') == 1
    path.write_bytes(data.replace(b'{"seq":14,', b'{"seq":%d,' % wrong))

    heard: list[int] = []
    with sessions.session("s", accept_loss=True) as session, session.turn(user="more"):
        read = [event.seq for event in session]
        assert read == [seq for seq in range(len(session)) if seq != 14]
        assert session.surface()[-1].data["parts"][0]["content"] == "more"
        for event in session.subscribe(since=0):
            heard.append(event.seq)
            if len(heard) == len(read):
                break
    assert heard == read


@pytest.mark.parametrize("copied", [9, 14, -1])
def test_f18_a_copy_of_a_later_line_in_an_old_place_hides_no_event(tmp_path: Path, copied: int) -> None:
    sessions = Sessions(FileStore(tmp_path))
    with sessions.session("s") as session:
        for n in range(4):
            with session.turn(user=f"{n}") as turn, turn.step() as step:
                step.assistant(reply(says("ok")))
    path = tmp_path / "s.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[5] = lines[copied]
    path.write_bytes(b"".join(lines))

    with sessions.session("s", accept_loss=True) as session:
        assert [event.seq for event in session] == [seq for seq in range(len(session)) if seq != 5]


def test_f18_the_newest_line_is_certain_though_the_one_before_it_is_lost(tmp_path: Path) -> None:
    sessions = Sessions(FileStore(tmp_path))
    with sessions.session("s", accept_loss=True) as session:
        with session.turn(user="go"):
            pass
        session.append("x.note", {"n": 1})
        session.append("x.note", {"n": 2})
        session.append("x.note", {"n": 3})
        session.flush()
        path = tmp_path / "s.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        # of the two lines before the head nothing is readable, or has a seq that would hide it
        lines[-2] = lines[-2].replace(b'"seq":5,', b'"seq":6,').replace(b'"n":2', b'"n":9')
        lines[-3] = b"x" * (len(lines[-3]) - 1) + b"\n"
        path.write_bytes(b"".join(lines))
        assert [event.data.get("n") for event in session][-1] == 3


def test_f18_lines_that_nothing_confirms_count_as_far_as_they_fit(tmp_path: Path) -> None:
    sessions = Sessions(FileStore(tmp_path))
    with sessions.session("s") as session:
        for n in range(11):
            session.append("x.note", {"n": n})
        for _ in range(2):
            with session.turn(user="go"):
                pass
    path = tmp_path / "s.jsonl"
    lines = path.read_bytes().split(b"\n")
    for seq in (3, 5, 7):
        lines[seq] = lines[seq].replace(b'"n":', b'"m":')
    # neither the line before it nor the one behind confirms the seq of 8, and that of 9 is a lie
    lines[9] = lines[9].replace(b'"seq":9,', b'"seq":99,')
    path.write_bytes(b"\n".join(lines))
    with sessions.session("s", accept_loss=True) as session:
        assert [event.seq for event in session] == [seq for seq in range(len(session)) if seq != 9]
