"""What a live session shows a model: rendered again as it grows, compacted, forked, and compared with what is sent."""

import gc
import json
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import pytest

import turnwal
from tests.session.helpers import DONE, TOOLS, asks, die, reply, says, stored
from turnwal.core.errors import InvalidEvent, InvalidName, Refused
from turnwal.session.heeding import TranscriptWarning
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.transcript.render import Renderer, Rendering
from turnwal.transcript.targets import TARGETS

targets = pytest.mark.parametrize("target", sorted(TARGETS))


def same(session: Session, sessions: Sessions, target: str, **options: Any) -> Rendering:
    """What the live session renders, which is what the stored lines render."""
    live = session.render(target, **options)
    session.flush()
    assert live == turnwal.render(stored(sessions, session.id), target, **options)
    assert turnwal.check(target, live.messages, system=live.system) == []
    return live


def converse(session: Session, words: str, *replies: dict[str, Any]) -> list[int]:
    """A turn with these replies; returns the seqs it has."""
    first = len(session)
    with session.turn(user=words) as turn:
        for message in (*replies, DONE):
            with turn.step() as step:
                step.run(step.assistant(message), TOOLS)
    return list(range(first, len(session)))


@targets
def test_a_session_renders_at_every_moment_what_its_log_renders(sessions: Sessions, target: str) -> None:
    with sessions.session("s") as session:
        session.append("system_message", {"parts": [says("Be kind.")]})
        with session.turn(user="pay 7") as turn:
            same(session, sessions, target)
            with turn.step() as step:
                calls = step.assistant(reply(says("ok"), asks("pay", "a", order=7), asks("look", "a", path="x")))
                same(session, sessions, target)
                step.run(calls[:1], TOOLS)
                same(session, sessions, target)
                step.run(calls[1:], TOOLS)
                after = same(session, sessions, target)
        assert "paid" in json.dumps(after.messages)
        same(session, sessions, target)
    with sessions.session("s") as session:
        assert same(session, sessions, target) == after
        converse(session, "and now?")
        assert len(same(session, sessions, target).messages) > len(after.messages)


def test_rendering_again_reads_the_log_once_and_waits_for_no_barrier(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sessions.session("s") as session:
        converse(session, "go")
        reads: list[int] = []
        read = type(sessions.store).read

        def counted(*args: Any, **options: Any) -> Any:
            reads.append(1)
            return read(*args, **options)

        monkeypatch.setattr(type(sessions.store), "read", counted)
        session.render("anthropic")
        session.append("user_message", {"parts": [says("more")]})
        durable = session.pending()
        assert "more" in json.dumps(session.render("anthropic").messages)
        assert len(reads) == 1
        assert session.pending() == durable != []


def test_no_more_renderers_are_kept_than_a_few(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        converse(session, "go")
        for number in range(40):
            session.render("anthropic", model=f"m{number}")
        assert len(session._renderers) <= 32
        with session.turn(user="again") as turn, turn.step() as step:
            (call,) = step.assistant(reply(asks("pay", order=1)))
            with call.sub("helper", user="help") as inner, inner.step() as inner_step:
                inner_step.request("anthropic", model="m")
                assert any(call.call_key in made for made in session._renderers)
                inner_step.assistant(DONE)
            assert not any(call.call_key in made for made in session._renderers)
            assert "done" in json.dumps(session.render("anthropic", call.call_key).messages)
            call.result("helped")
        assert session.render("anthropic", model="m0") == session.render("anthropic", model="m39")


def test_a_rendering_that_is_interrupted_spoils_no_later_one(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sessions.session("s") as session:
        converse(session, "go", reply(asks("pay", order=1)))
        before = session.render("anthropic")
        converse(session, "again", reply(asks("pay", order=2)))
        made = Renderer._make

        def interrupted(self: Renderer, index: int, shown: Any) -> None:
            if index > 5:
                raise KeyboardInterrupt
            made(self, index, shown)

        monkeypatch.setattr(Renderer, "_make", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.render("anthropic")
        monkeypatch.undo()
        after = same(session, sessions, "anthropic")
        assert after.messages[: len(before.messages)] == before.messages
        session.append("user_message", {"parts": [says("more")]})
        same(session, sessions, "anthropic")


def test_calls_that_wait_are_refused_or_answered_by_a_placeholder(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        with session.turn(user="pay") as turn, turn.step() as step:
            step.assistant(reply(asks("pay", order=1)))[0].ask("Really?")
        for _ in range(2):
            with pytest.raises(Refused, match=r"4\.0"):
                session.render("anthropic")
        assert "waits" in json.dumps(same(session, sessions, "anthropic", waiting="placeholder").messages)
        session.call("4.0").deny(by="ada", text="no")
        assert "no" in json.dumps(same(session, sessions, "anthropic").messages[-1])


def test_an_unknown_target_and_a_run_that_is_none_are_refused_by_name(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        with pytest.raises(InvalidName, match="no such target"):
            session.render("antrhopic")
        with pytest.raises(InvalidName, match="no name of a run"):
            session.render("anthropic", "")
        assert session.render("anthropic").messages == []


def test_the_balanced_view_renders_what_recovery_leaves(sessions: Sessions) -> None:
    session = sessions.session("s").open()
    step = session.open_turn("pay 7").step().begin()
    step.assistant(reply(asks("pay", order=7)))[0].dispatch()
    die(session)

    seen = sessions.inspect("s").render("anthropic")

    assert "may have run" in json.dumps(seen.messages)
    before = stored(sessions, "s")
    with sessions.session("s") as session:
        assert session.render("anthropic") == seen
    assert len(before) < len(stored(sessions, "s"))


def test_f37_the_model_is_shown_what_was_recorded_in_this_process_and_the_next(sessions: Sessions) -> None:
    def masked(data: dict[str, Any]) -> dict[str, Any]:
        return dict(json.loads(json.dumps(data).replace("4242", "****")))

    given: list[str] = []

    def pay(card: str) -> None:
        given.append(card)

    with sessions.session("s", redact=masked) as session:
        with session.turn(user="card 4242") as turn, turn.step() as step:
            step.run(step.assistant(reply(asks("pay", card="4242"))), {"pay": pay})
        live = same(session, sessions, "anthropic")
    assert given == ["4242"]
    assert "4242" not in json.dumps(live.messages)
    assert live.messages[1]["content"][0]["input"] == {"card": "****"}
    with sessions.session("s", redact=masked) as session:
        assert session.render("anthropic") == live


# Compaction


@targets
def test_a_summary_stands_where_what_it_covers_stood(sessions: Sessions, target: str) -> None:
    with sessions.session("s") as session:
        first = converse(session, "one", reply(asks("pay", order=1)))
        converse(session, "two", reply(asks("pay", order=2)))
        session.render(target)
        event = session.compact(first[0], first[-1], "Order 1 was paid.")
        assert (event.type, event.data["replace"]) == ("user_message", [first[0], first[-1]])
        made = json.dumps(same(session, sessions, target).messages)
        assert made.index("Order 1 was paid.") < made.index("two")
        assert '"one"' not in made


@targets
def test_f27_a_second_summary_covers_the_first_and_a_pruned_result(sessions: Sessions, target: str) -> None:
    with sessions.session("s") as session:
        one = converse(session, "one", reply(asks("pay", order=1)))
        two = converse(session, "two", reply(asks("pay", order=2)))
        three = converse(session, "three", reply(asks("pay", order=3)))
        result = next(event.seq for event in stored(sessions, "s")[three[0] :] if event.type == "tool_result")
        whole = stored(sessions, "s")[result].data
        pruned = {"call": whole["call"], "id": whole["id"], "parts": [says("(pruned)")], "replace": [result, result]}
        session.append("tool_result", pruned)
        assert "(pruned)" in json.dumps(same(session, sessions, target).messages)
        session.compact(one[0], one[-1], "first summary")
        session.compact(one[0], two[-1], "second summary")
        made = json.dumps(same(session, sessions, target).messages)
        assert "second summary" in made
        assert "(pruned)" in made
        assert "first summary" not in made
        session.compact(one[0], three[-1], "all of it")
        made = json.dumps(same(session, sessions, target).messages)
        assert "all of it" in made
        assert "(pruned)" not in made
        converse(session, "four", reply(asks("pay", order=4)))
        same(session, sessions, target)


def test_f27_a_summary_that_would_be_a_lie_is_refused_with_the_seqs(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        seqs = converse(session, "one", reply(asks("pay", "a", order=1), asks("pay", "b", order=2)))
        events = session.surface()
        asking = next(event.seq for event in events if event.type == "assistant_message")
        results = [event.seq for event in events if event.type == "tool_result"]
        with session.turn(user="two") as turn, turn.step() as step:
            step.assistant(reply(asks("pay", "c", order=3)))
            owing = len(session) - 1
            head = session.head
            for first, last, why in (
                (seqs[0], asking, "parts"),
                (seqs[0], results[0], "parts"),
                (results[1], owing - 3, "parts"),
                (owing, owing, "owed"),
                (len(session) + 5, len(session) + 9, "past the last event"),
                (0, 10**6, "past the last event"),
                (seqs[-1], seqs[-1], "nothing"),
            ):
                with pytest.raises(InvalidEvent, match=rf"\[{first}, {last}\].*{why}"):
                    session.compact(first, last, "a lie")
            for first, last in ((5, 4), (-1, 4)):
                with pytest.raises(InvalidEvent):
                    session.compact(first, last, "none")
            with pytest.raises(InvalidEvent):
                session.compact("a", 4, "none")  # type: ignore[arg-type]
            with pytest.raises(Refused, match="tool_result"):
                session.compact(0, 1, "x", type="tool_result")  # type: ignore[arg-type]
            assert session.head == head
        session.compact(seqs[0], seqs[-1], "fine")
        with pytest.raises(InvalidEvent, match="cuts through the replace"):
            session.compact(asking, owing + 3, "cut")


def test_a_waiting_call_is_not_hidden_by_a_summary(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        with session.turn(user="pay") as turn, turn.step() as step:
            step.assistant(reply(asks("pay", order=1)))[0].ask("Really?")
        with pytest.raises(InvalidEvent, match="waiting"):
            session.compact(0, len(session) - 1, "gone")


def test_a_summary_may_be_system_text_and_of_another_run(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        session.append("user_message", {"parts": [says("mine")]})
        first = session.append("user_message", {"parts": [says("theirs")]}, run="sub").seq
        session.compact(0, first, "sum", run="sub", type="system_message")
        assert session.render("anthropic", "sub").system == "sum"
        assert "mine" in json.dumps(session.render("anthropic").messages)


# Forks


@targets
def test_f34_a_fork_renders_what_its_parent_did_there_and_goes_its_own_way(sessions: Sessions, target: str) -> None:
    with sessions.session("s") as session:
        converse(session, "one", reply(asks("pay", order=1)))
        there, at = session.render(target), len(session)
        converse(session, "two", reply(asks("pay", order=2)))
        session.compact(1, at - 1, "summary of the parent")
        with session.fork(at, "branch") as branch:
            assert branch.render(target) == there
            converse(branch, "other", reply(asks("pay", order=3)))
            branch.compact(1, at - 1, "summary of the branch")
            made = json.dumps(same(branch, sessions, target).messages)
            assert "summary of the branch" in made
            assert "parent" not in made
        assert "summary of the parent" in json.dumps(same(session, sessions, target).messages)


# Comparing


def test_what_differs_from_the_session_is_a_warning_or_a_refusal(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        session.append("system_message", {"parts": [says("Be kind.")]})
        converse(session, "one", reply(asks("pay", order=1)))
        converse(session, "two")
        sent = session.render("anthropic").messages
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert session.compare("anthropic", sent) == []
            assert session.compare("anthropic", sent, check="strict") == []
            assert session.compare("anthropic", [*sent, sent[0]], check="off") == []
        with pytest.warns(TranscriptWarning, match="extra at") as caught:
            (found,) = session.compare("anthropic", [*sent, {"role": "user", "content": "sneaked in"}])
        assert (found.code, "sneaked in" in found.message) == ("extra", True)
        assert caught[0].filename == __file__
        with pytest.raises(Refused, match="missing at"):
            session.compare("anthropic", sent[:-1], check="strict")
        with pytest.warns(TranscriptWarning):
            codes = {found.code for found in session.compare("anthropic", sent[:1] + sent[2:])}
        assert codes == {"missing", "orphaned_tool_result"}
        with pytest.warns(TranscriptWarning):
            found, *_ = session.compare("anthropic", sent[-2:] + sent[:-2])
        assert found.code == "order"
        with pytest.raises(Refused, match="unknown"):
            session.compare("anthropic", sent, check="maybe")  # type: ignore[arg-type]
        deep: list[Any] = []
        for _ in range(5_000):
            deep = [deep]
        for broken in ({"role": "user"}, ["text"], [None], 7, [{"role": "user", "content": deep}]):
            with pytest.raises(InvalidEvent, match="list of"):
                session.compare("anthropic", broken)


@targets
def test_what_a_session_renders_is_what_it_should_be_for_every_provider(sessions: Sessions, target: str) -> None:
    with sessions.session("s") as session:
        session.append("system_message", {"parts": [says("Be kind.")]})
        converse(session, "one", reply(says("ok"), asks("pay", "k", order=1), asks("look", "k", path="x")))
        session.append("user_message", {"parts": [says("by the way")]})
        converse(session, "two", reply(asks("pay", "k", order=2)))
        sent = session.render(target).messages
        assert session.compare(target, sent, check="strict") == []
        with pytest.raises(Refused, match="missing at"):
            session.compare(target, [*sent[:-1]], check="strict")


def test_a_user_who_writes_twice_may_be_sent_as_two_messages(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        session.append("user_message", {"parts": [says("one")]})
        session.append("user_message", {"parts": [says("two")]})
        sent = [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]
        assert session.compare("anthropic", sent, check="strict") == []


def test_what_is_said_of_many_differences_is_bounded(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        sent = [{"role": "assistant", "content": f"{number} " + "x" * 10_000} for number in range(200)]
        with pytest.warns(TranscriptWarning) as caught:
            assert len(session.compare("openai-chat", sent)) == 20
        assert len(str(caught[0].message)) < 2_000


def test_what_a_summary_hides_is_not_kept_for_rendering(tmp_path: Path) -> None:
    def work(session: Session, rounds: int) -> None:
        for number in range(rounds):
            converse(session, "read", reply(asks("read", f"c{number}", letter=chr(97 + number))))
            session.compact(0, len(session) - 1, "It was read.")
            session.render("openai-chat")

    tools = {"read": lambda letter: letter * 200_000}
    with pytest.MonkeyPatch.context() as patched, turnwal.open_store(tmp_path).session("s") as session:
        patched.setitem(TOOLS, "read", tools["read"])
        work(session, 2)
        tracemalloc.start()
        try:
            work(session, 12)
            gc.collect()
            held = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
    assert held < 800_000
