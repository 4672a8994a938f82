"""What may have run in bytes that were lost is not run again before somebody has looked (F16, F18)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.worlds import chain_anew
from tests.session.helpers import asks, die, reply, says, stored, text_of
from turnwal.core.errors import Refused
from turnwal.session.sessions import Sessions
from turnwal.session.verifying import verify
from turnwal.store.file import FileStore
from turnwal.store.plain import PlainFile
from turnwal.store.protocol import Record

LOST = "what is lost of the log may be a dispatch"


class Till:
    """A tool that counts what was paid."""

    def __init__(self) -> None:
        self.paid = 0

    def __call__(self, order: int = 0) -> str:
        self.paid += 1
        return f"paid {order}"


@pytest.fixture
def till() -> Till:
    return Till()


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(FileStore(tmp_path))


def hit(path: Path, mark: bytes) -> int:
    """The place among the lines of the first that contains a mark."""
    return next(at for at, line in enumerate(path.read_bytes().split(b"\n")) if mark in line)


def nul_from(path: Path, mark: bytes) -> None:
    """Everything from a line on is NULs, as after a power failure."""
    data = path.read_bytes()
    start = sum(len(line) + 1 for line in data.split(b"\n")[: hit(path, mark)])
    path.write_bytes(data[:start] + b"\0" * (len(data) - start))


def rot(path: Path, mark: bytes) -> None:
    """One line can be read no more."""
    at = hit(path, mark)
    lines = path.read_bytes().split(b"\n")
    lines[at] = b"X" * len(lines[at])
    path.write_bytes(b"\n".join(lines))


def ask(sessions: Sessions, *, grant: bool = True) -> None:
    """Call 4.0 waits for a person, or was granted."""
    with sessions.session("s") as session:
        with session.turn(user="go") as turn, turn.step() as step:
            step.assistant(reply(asks("pay", order=7)))[0].ask("pay 7?")
        if grant:
            session.call("4.0").grant(by="ada")


def run_and_die(sessions: Sessions, till: Till) -> None:
    """The call runs in a later turn, and the process dies in the step after it."""
    session = sessions.session("s").open()
    if session.waiting():
        session.call("4.0").grant(by="ada")
    turn = session.open_turn(resumes="4.0")
    assert turn.resumed is not None
    turn.resumed.run(till)
    turn.step().begin().assistant(reply(says("paid")))
    session.flush()
    die(session)


DISPATCH = b'"key":"'
RESPONSE = b'"type":"approval_response"'


def lose_to_nuls(path: Path, mark: bytes) -> bool:
    nul_from(path, mark)
    return False


def lose_a_line(path: Path, mark: bytes) -> bool:
    rot(path, mark)
    return True


@pytest.mark.parametrize("lose", [lose_to_nuls, lose_a_line])
@pytest.mark.parametrize(("grant", "mark"), [(True, b'"resumes"'), (True, DISPATCH), (False, RESPONSE)])
def test_f18_a_call_that_ran_in_what_is_lost_is_not_run_again_without_a_word(
    sessions: Sessions, tmp_path: Path, till: Till, lose: Callable[[Path, bytes], bool], *, grant: bool, mark: bytes
) -> None:
    ask(sessions, grant=grant)
    run_and_die(sessions, till)
    accept = lose(tmp_path / "s.jsonl", mark)
    sessions.session("s", accept_loss=accept).open().close()

    # any number of turns and owners later
    for _ in range(2):
        with sessions.session("s") as session, session.turn(user="meanwhile"):
            pass
    with sessions.session("s") as session:
        (call,) = session.granted() if grant else session.waiting()
        assert call.doubtful
        if not grant:
            for decide in (call.grant, call.deny):
                with pytest.raises(Refused, match=LOST):
                    decide(by="ada")
        with session.turn(resumes="4.0"):
            for again in (
                lambda: call.run(till),
                call.dispatch,
                lambda: call.reject("no"),
                lambda: call.child(sessions, "t"),
                call.sub,
                lambda: session.append("tool_call", {"call": "4.0", "id": "k", "name": "pay"}),
                lambda: session.append("approval_response", {"call": "4.0", "id": "k", "decision": "granted"}),
            ):
                with pytest.raises(Refused, match=LOST if grant else f"{LOST}|approval is pending"):
                    again()
    assert till.paid == 1
    assert verify(sessions.store, "s").sound
    assert {finding.code for finding in verify(sessions.store, "s").findings} == {"damage", "doubtful_call"}


@pytest.mark.parametrize("grant", [True, False])
def test_settled_as_not_happened_it_is_decided_and_run(
    sessions: Sessions, tmp_path: Path, till: Till, *, grant: bool
) -> None:
    ask(sessions, grant=grant)
    run_and_die(sessions, till)
    nul_from(tmp_path / "s.jsonl", b'"resumes"' if grant else RESPONSE)
    till.paid = 0
    with sessions.session("s") as session:
        session.call("4.0").settle("did_not_happen", by="ada")
        assert not session.call("4.0").doubtful
    with sessions.session("s") as session:
        assert not session.call("4.0").doubtful
        if not grant:
            session.call("4.0").grant(by="ada")
        with session.turn(resumes="4.0") as turn:
            assert turn.resumed is not None
            assert text_of(turn.resumed.run(till)) == "paid 7"
        for outcomes in ("note", "replace"):
            shown = json.dumps(session.render("anthropic", outcomes=outcomes).messages)
            assert shown.count("paid 7") == 1
            assert shown.count("it did not happen") == 1
    assert till.paid == 1
    assert verify(sessions.store, "s").sound
    assert [finding.code for finding in verify(sessions.store, "s").findings] == ["damage"]


@pytest.mark.parametrize("outcome", ["happened", "unknown"])
def test_settled_as_anything_else_it_is_closed(sessions: Sessions, tmp_path: Path, till: Till, outcome: Any) -> None:
    ask(sessions)
    run_and_die(sessions, till)
    nul_from(tmp_path / "s.jsonl", b'"resumes"')
    with sessions.session("s") as session:
        call = session.call("4.0")
        call.settle(outcome, by="ada")
        assert (call.answered, call.repeatable, session.granted()) == (True, True, [])
        if outcome == "happened":
            with pytest.raises(Refused, match="known to have happened"):
                call.retry(till)
        assert session.render("anthropic").messages
    result, learnt = stored(sessions, "s")[-2:]
    assert result.data["metadata"]["risk"] == "tool_outcome_unknown"
    assert learnt.data["outcome"] == outcome


def test_an_answer_ends_the_doubt(sessions: Sessions, tmp_path: Path, till: Till) -> None:
    ask(sessions)
    run_and_die(sessions, till)
    nul_from(tmp_path / "s.jsonl", b'"resumes"')
    with sessions.session("s") as session:
        call = session.call("4.0")
        call.result("the receipt says: paid")
        assert not call.doubtful
        assert session.granted() == []


def test_a_job_that_was_dispatched_is_answered_as_ever(sessions: Sessions, tmp_path: Path) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant(reply(asks("pay")))
        call.dispatch()
        call.suspend()
    with (tmp_path / "s.jsonl").open("ab") as file:
        file.write(b"\0" * 300)
    with sessions.session("s") as session:
        (call,) = session.waiting()
        with pytest.raises(Refused, match="no result yet"):
            call.settle("did_not_happen")
        with session.turn(resumes="4.0"), pytest.raises(Refused, match="dispatched already"):
            call.run(lambda: None)
        assert not call.result("done").data["is_error"]


def test_f18_what_went_bad_later_is_proven_by_the_turns_behind_it(
    sessions: Sessions, tmp_path: Path, till: Till
) -> None:
    ask(sessions)
    for _ in range(2):
        with sessions.session("s") as session, session.turn(user="meanwhile"):
            pass
    rot(tmp_path / "s.jsonl", b"meanwhile")
    with sessions.session("s", accept_loss=True) as session, session.turn(resumes="4.0") as turn:
        assert turn.resumed is not None
        turn.resumed.run(till)
    assert till.paid == 1


def test_f34_a_fork_and_a_copy_keep_the_doubt(sessions: Sessions, tmp_path: Path, till: Till) -> None:
    ask(sessions)
    run_and_die(sessions, till)
    nul_from(tmp_path / "s.jsonl", b'"resumes"')
    sessions.session("s").open().close()
    other = Sessions(FileStore(tmp_path / "other"))
    assert [report.outcome for report in sessions.copy_all(other)] == ["copied"]
    with sessions.session("s") as session:
        session.fork(len(session), "t").open().close()

    for place, id in ((other, "s"), (sessions, "t")):
        with place.session(id) as session, session.turn(resumes="4.0"), pytest.raises(Refused, match=LOST):
            session.call("4.0").run(till)
    assert till.paid == 1


def without_the_doubt(sessions: Sessions, tmp_path: Path, till: Till, *, grant: bool = True) -> Path:
    """A log in which a call is in doubt, were it not that boundaries do not carry that; a copy, so without the NULs."""
    ask(sessions, grant=grant)
    run_and_die(sessions, till)
    nul_from(tmp_path / "s.jsonl", b'"resumes"' if grant else b'"granted"')
    with sessions.session("s") as session, session.turn(user="meanwhile"):
        pass
    lines = [item.line for item in sessions.store.read("s") if isinstance(item, Record)]
    assert sum(b'"doubt":true' in line for line in lines) == 3
    path = tmp_path / "old" / "s.jsonl"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(b"".join(line.replace(b',"doubt":true', b"") + b"\n" for line in lines))
    chain_anew(path)
    return path


def test_verify_finds_a_boundary_that_says_another_doubt_than_the_log(
    sessions: Sessions, tmp_path: Path, till: Till
) -> None:
    path = without_the_doubt(sessions, tmp_path, till)
    assert [finding.code for finding in verify(sessions.store, "s").findings] == ["damage", "doubtful_call"]

    codes = [finding.code for finding in verify(PlainFile(path), "s").findings]

    assert codes == ["damage", "wrong_hint", "wrong_hint", "wrong_hint", "doubtful_call"]


@pytest.mark.parametrize("grant", [False, True])
def test_what_no_boundary_doubts_is_settled_as_unknown_all_the_same(
    sessions: Sessions, tmp_path: Path, till: Till, *, grant: bool
) -> None:
    path = without_the_doubt(sessions, tmp_path, till, grant=grant)
    with Sessions(FileStore(path.parent)).session("s") as session:
        call = session.call("4.0")
        assert call.doubtful
        call.settle("happened", by="ada")
        (answer,) = [event for event in session.events() if event.type == "tool_result"]
    assert answer.data["metadata"]["risk"] == "tool_outcome_unknown"
    assert "may have run" in answer.data["parts"][0]["content"]


def test_a_call_of_a_sub_agent_keeps_its_doubt(sessions: Sessions, tmp_path: Path, till: Till) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (outer,) = step.assistant(reply(asks("delegate")))
        with outer.sub("helper", user="pay") as inner, inner.step() as working:
            working.assistant(reply(asks("pay", order=7)))[0].ask("pay 7?")
        outer.suspend()
    with sessions.session("s") as session:
        (key,) = [call.call_key for call in session.waiting() if call.run_name != "main"]
        session.call(key).grant(by="ada")
    session = sessions.session("s").open()
    turn = session.open_turn(resumes=key)
    assert turn.run_name == "4.0"
    assert turn.resumed is not None
    turn.resumed.run(till)
    die(session)
    nul_from(tmp_path / "s.jsonl", b'"resumes"')

    with sessions.session("s") as session, session.turn(resumes=key), pytest.raises(Refused, match=LOST):
        session.call(key).run(till)
    assert till.paid == 1


# --- calls that have their answer


def lost_and_settled(sessions: Sessions, outcome: Any = "did_not_happen") -> None:
    """Call 4.0 was dispatched when its process died; somebody looked."""
    session = sessions.session("s").open()
    step = session.open_turn("go").step().begin()
    step.assistant(reply(asks("pay", order=7)))[0].dispatch()
    die(session)
    with sessions.session("s") as session:
        session.call("4.0").settle(outcome, by="ada")


def retry_and_die(sessions: Sessions, till: Till, **options: Any) -> None:
    session = sessions.session("s").open()
    session.open_turn("again", **options)
    assert session.call("4.0").retry(till).data["outcome"] == "happened"
    session.append("x.note", {})
    session.flush()
    die(session)


@pytest.mark.parametrize("lose", [lose_to_nuls, lose_a_line])
@pytest.mark.parametrize("mark", [b'"attempt":2', b"again"])
def test_f18_a_call_that_was_repeated_in_what_is_lost_is_not_repeated_again(
    sessions: Sessions, tmp_path: Path, till: Till, lose: Callable[[Path, bytes], bool], mark: bytes
) -> None:
    lost_and_settled(sessions)
    retry_and_die(sessions, till)
    accept = lose(tmp_path / "s.jsonl", mark)
    sessions.session("s", accept_loss=accept).open().close()

    for accept_loss in (False, True):
        with sessions.session("s", accept_loss=accept_loss) as session:
            call = session.call("4.0")
            assert call.doubtful
            for word in (None, "unknown"):
                if word is not None:
                    call.settle("unknown", by="ada")
                with pytest.raises(Refused, match=LOST):
                    call.retry(till)
    assert till.paid == 1
    with sessions.session("s") as session:
        session.call("4.0").settle("did_not_happen", by="ada")
    with sessions.session("s") as session:
        assert session.call("4.0").retry(till).data["outcome"] == "happened"
    assert till.paid == 2


def tear(path: Path, mark: bytes) -> None:
    """The log ends in the middle of a line."""
    data = path.read_bytes()
    start = sum(len(line) + 1 for line in data.split(b"\n")[: hit(path, mark)])
    path.write_bytes(data[: start + 40])


@pytest.mark.parametrize(("dispatch", "doubtful"), [("durable", False), ("none", True)])
def test_a_torn_attempt_is_a_doubt_where_dispatches_are_not_declared_durable(
    sessions: Sessions, tmp_path: Path, till: Till, dispatch: str, *, doubtful: bool
) -> None:
    lost_and_settled(sessions)
    retry_and_die(sessions, till, dispatch=dispatch)
    tear(tmp_path / "s.jsonl", b'"attempt":2')
    with sessions.session("s") as session:
        assert session.call("4.0").doubtful is doubtful


def test_a_call_that_was_answered_behind_the_damage_is_repeated_as_ever(
    sessions: Sessions, tmp_path: Path, till: Till
) -> None:
    """That its dispatch may be lost is what made its outcome unknown; nothing else can be."""
    session = sessions.session("s").open()
    step = session.open_turn("go").step().begin()
    step.assistant(reply(asks("pay", order=7)))[0].dispatch()
    die(session)
    nul_from(tmp_path / "s.jsonl", b'"key":"')
    with sessions.session("s") as session:
        assert session.recovered is not None
        assert [repair.rule for repair in session.recovered.lost_calls()] == [2]
        assert session.call("4.0").retry(till).data["outcome"] == "happened"


def test_a_call_in_doubt_by_the_log_is_not_run_though_no_boundary_says_so(
    sessions: Sessions, tmp_path: Path, till: Till
) -> None:
    path = without_the_doubt(sessions, tmp_path, till)
    old = Sessions(FileStore(path.parent))
    with old.session("s") as session:
        (call,) = session.granted()
        assert call.doubtful
        with session.turn(resumes="4.0"), pytest.raises(Refused, match=LOST):
            call.run(till)
        call.settle("did_not_happen", by="ada")
        with session.turn(resumes="4.0"):
            call.run(till)
    assert till.paid == 2
