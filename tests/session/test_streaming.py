"""A reply as it streams in: what passes through, what is recorded, and what is left of it when it does not end."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import turnwal
from tests.session.helpers import DONE, TOOLS, die, stored, types
from tests.session.replies import ARGUMENTS, REPLIES, TEXT, Replies
from turnwal.core.errors import InvalidEvent, SessionClosed
from turnwal.core.limits import PENDING_EVENTS_MAX
from turnwal.session.sessions import Sessions
from turnwal.session.step import Step
from turnwal.store.memory import MemoryStore

targets = pytest.mark.parametrize("target", sorted(REPLIES))


class Chunks:
    """A stream as a provider's package hands it out."""

    def __init__(self, chunks: list[dict[str, Any]], error: BaseException | None = None) -> None:
        self.left = list(chunks)
        self.error = error
        self.closed = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        if self.left:
            return self.left.pop(0)
        if self.error is not None:
            raise self.error
        raise StopIteration

    def close(self) -> None:
        self.closed = True


class AsyncChunks:
    """The same, to be awaited."""

    def __init__(self, chunks: list[dict[str, Any]], error: BaseException | None = None) -> None:
        self.within = Chunks(chunks, error)

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        return self

    async def __anext__(self) -> dict[str, Any]:
        await asyncio.sleep(0)
        try:
            return next(self.within)
        except StopIteration:
            raise StopAsyncIteration from None

    async def close(self) -> None:
        self.within.close()


def in_memory() -> Sessions:
    return Sessions(MemoryStore())


def message(sessions: Sessions) -> dict[str, Any]:
    """The one message that the model said."""
    (found,) = [event.data for event in stored(sessions, "s") if event.type == "assistant_message"]
    return found


def deltas(sessions: Sessions) -> list[dict[str, Any]]:
    return [event.data for event in stored(sessions, "s") if event.type == "assistant_delta"]


def streamed(sessions: Sessions, use: Callable[[Step], None]) -> dict[str, Any]:
    """What is recorded of the model in a step that does this."""
    with sessions.session("s") as session, session.turn(user="pay 7") as turn, turn.step() as step:
        use(step)
    return message(sessions)


def is_cut(data: dict[str, Any]) -> bool:
    return data.get("complete") is False and data["parts"][0]["content"] == TEXT


@targets
def test_chunks_pass_through_and_the_message_is_that_of_the_whole_reply(sessions: Sessions, target: str) -> None:
    said = REPLIES[target]
    with sessions.session("s") as session, session.turn(user="pay 7") as turn:
        with turn.step() as step:
            step.request(target, model=said.model or "m")
            passed = [(id(chunk), step.calls) for chunk in step.stream(iter(said.chunks))]
            assert [found for found, _ in passed] == [id(chunk) for chunk in said.chunks]
            (call,) = step.calls
            assert (call.name, call.args) == ("pay", ARGUMENTS)
            step.run(step.calls, TOOLS)
        with turn.step() as step:
            step.assistant(said.done, target=target)
    (data, _) = [event.data for event in stored(sessions, "s") if event.type == "assistant_message"]
    assert (data["parts"][0]["content"], data.get("complete", True)) == (TEXT, True)
    assert (data["provider"], data["model"], data["stop"]) == (target, said.model or "m", said.stop)
    assert "assistant_delta" not in types(stored(sessions, "s"))


@targets
def test_an_asynchronous_stream_records_what_a_synchronous_one_does(sessions: Sessions, target: str) -> None:
    async def agent() -> None:
        async with sessions.session("a") as session, session.turn(user="pay 7") as turn, turn.step() as step:
            passed = [chunk async for chunk in step.stream(AsyncChunks(REPLIES[target].chunks), target=target)]
            assert passed == REPLIES[target].chunks
            await step.arun(step.calls, TOOLS)

    asyncio.run(agent())
    with sessions.session("b") as session, session.turn(user="pay 7") as turn, turn.step() as step:
        assert list(step.stream(Chunks(REPLIES[target].chunks), target=target)) == REPLIES[target].chunks
        step.run(step.calls, TOOLS)
    told = [[event.data for event in stored(sessions, id) if event.type == "assistant_message"] for id in "ab"]
    assert told[0] == told[1] != []


def raises(step: Step, said: Replies, target: str) -> None:
    with pytest.raises(ConnectionError, match="cut"):
        list(step.stream(Chunks(said.cut, ConnectionError("cut")), target=target))


def is_interrupted(step: Step, said: Replies, target: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        list(step.stream(Chunks(said.cut, KeyboardInterrupt()), target=target))


def ends_too_early(step: Step, said: Replies, target: str) -> None:
    list(step.stream(Chunks(said.cut), target=target))


def is_closed(step: Step, said: Replies, target: str) -> None:
    chunks = Chunks(said.chunks)
    with step.stream(chunks, target=target) as stream:
        for _ in said.cut:
            next(stream)
    assert chunks.closed
    assert list(stream) == []
    stream.close()


def is_left(step: Step, said: Replies, target: str) -> None:
    stream = step.stream(Chunks(said.chunks), target=target)
    for _ in said.cut:
        next(stream)


def is_left_for_a_request(step: Step, said: Replies, target: str) -> None:
    stream = step.stream(Chunks(said.chunks), target=target)
    for _ in said.cut:
        next(stream)
    made = step.request(target, model="m", check="strict")
    assert TEXT in json.dumps(made)
    with pytest.raises(SessionClosed, match="went on"):
        next(stream)


@targets
@pytest.mark.parametrize("ends", [raises, is_interrupted, ends_too_early, is_closed, is_left, is_left_for_a_request])
def test_what_came_of_a_stream_that_did_not_end_is_kept_and_owes_nothing(
    sessions: Sessions, target: str, ends: Callable[[Step, Replies, str], None]
) -> None:
    def use(step: Step) -> None:
        ends(step, REPLIES[target], target)
        assert step.calls == []

    assert is_cut(streamed(sessions, use))
    assert not {"tool_call", "tool_result"} & set(types(stored(sessions, "s")))
    made = sessions.inspect("s").render(target)
    assert turnwal.check(target, made.messages) == []
    assert TEXT in json.dumps(made.messages)
    assert "arguments" not in json.dumps(made.messages)


def test_an_interrupt_between_two_chunks_keeps_what_came(sessions: Sessions) -> None:
    def agent() -> None:
        with sessions.session("s") as session, session.turn(user="pay 7") as turn, turn.step() as step:
            for number, _ in enumerate(step.stream(Chunks(REPLIES["anthropic"].chunks))):
                if number == len(REPLIES["anthropic"].cut) - 1:
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        agent()
    assert is_cut(message(sessions))
    ends = {event.type: event.data for event in stored(sessions, "s") if event.type in ("step_end", "turn_end")}
    assert (ends["step_end"]["outcome"], ends["turn_end"]["reason"]) == ("cancelled", "cancelled")


def test_a_cancelled_task_keeps_what_came(sessions: Sessions) -> None:
    said = REPLIES["openai-chat"]

    async def forever() -> AsyncIterator[dict[str, Any]]:
        for chunk in said.cut:
            yield chunk
        came.set()
        await asyncio.Event().wait()

    async def agent() -> None:
        async with sessions.session("s") as session, session.turn(user="pay 7") as turn, turn.step() as step:
            async for _ in step.stream(forever()):
                pass

    came = asyncio.Event()

    async def main() -> None:
        task = asyncio.create_task(agent())
        await came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert is_cut(message(sessions))


def test_plain_verbs_keep_what_came_when_the_turn_is_closed(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        turn = session.open_turn("pay 7")
        stream = turn.step().begin().stream(Chunks(REPLIES["gemini"].chunks))
        for _ in REPLIES["gemini"].cut:
            next(stream)
        turn.close("cancelled")
    assert is_cut(message(sessions))


def test_plain_verbs_keep_what_came_when_nothing_but_the_session_is_closed(sessions: Sessions) -> None:
    session = sessions.session("s").open()
    stream = session.open_turn("pay 7").step().begin().stream(Chunks(REPLIES["gemini"].chunks))
    for _ in REPLIES["gemini"].cut:
        next(stream)
    session.close()
    assert is_cut(message(sessions))


def test_a_sub_agent_keeps_what_came_when_the_turn_that_it_serves_ends(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="pay 7") as turn, turn.step() as step:
        (call,) = step.assistant({"parts": [{"type": "tool_call", "id": "a", "name": "agent", "arguments": "{}"}]})
        stream = call.sub("helper", user="go on").begin().step().begin().stream(Chunks(REPLIES["gemini"].chunks))
        for _ in REPLIES["gemini"].cut:
            next(stream)
        turn.close("cancelled")
    with sessions.session("s") as session:
        run = call.call_key
        (streamed,) = [event for event in session if event.run == run and event.type == "assistant_message"]
    assert is_cut(streamed.data)


def test_who_stops_reading_when_the_provider_has_said_its_end_has_the_whole(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="pay 7") as turn, turn.step() as step:
        for chunk in step.stream(Chunks(REPLIES["openai-chat"].chunks)):
            if chunk["choices"][0]["finish_reason"] is not None:
                break
        (call,) = step.calls
        assert call.args == ARGUMENTS
        step.run(step.calls, TOOLS)
    assert message(sessions).get("complete", True)


def test_an_asynchronous_stream_is_closed_with_its_block(sessions: Sessions) -> None:
    chunks = AsyncChunks(REPLIES["anthropic"].chunks)

    async def agent() -> None:
        async with (
            sessions.session("s") as session,
            session.turn(user="pay 7") as turn,
            turn.step() as step,
            step.stream(chunks) as stream,
        ):
            for _ in REPLIES["anthropic"].cut:
                await anext(stream)

    asyncio.run(agent())
    assert chunks.within.closed
    assert is_cut(message(sessions))


def test_a_stream_of_which_nothing_came_is_no_message(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="pay 7") as turn:
        with turn.step() as step:
            assert list(step.stream([])) == step.calls == []
            with pytest.raises(ConnectionError):
                list(step.stream(Chunks([], ConnectionError("no route"))))
        assert turn.open
        with turn.step() as step:
            step.assistant(DONE)
    assert len([event for event in stored(sessions, "s") if event.type == "assistant_message"]) == 1


def test_what_is_no_stream_is_refused_by_name() -> None:
    with in_memory().session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        with pytest.raises(InvalidEvent, match="no stream"):
            step.stream(7)  # type: ignore[arg-type]
        for broken in ([7], ["text"], [{"of": "tomorrow"}], [object()]):
            with pytest.raises(InvalidEvent):
                list(step.stream(broken))
        with pytest.raises(InvalidEvent):
            list(step.stream([object()], target="anthropic"))
        assert "assistant_message" not in types(session.surface())
        step.assistant(DONE)
        step.close()
        with pytest.raises(SessionClosed):
            step.stream([])


# Deltas


@targets
def test_with_deltas_the_text_is_recorded_as_it_comes_and_the_message_takes_its_place(
    sessions: Sessions, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnwal.session.streaming._DELTA_CHARS", 1)
    said = REPLIES[target]
    with sessions.session("s") as session, session.turn(user="pay 7") as turn, turn.step() as step:
        durable = len(stored(sessions, "s"))
        for _ in step.stream(Chunks(said.chunks), target=target, deltas=True):
            assert len(stored(sessions, "s")) == durable
        step.run(step.calls, TOOLS)
        assert TEXT in json.dumps(session.render(target, partial=True).messages[1])
    assert deltas(sessions) == [{"step": 1, "index": 0, "text": text} for text in (TEXT[:6], TEXT[6:])]
    made = [sessions.inspect("s").render(target, partial=partial).messages for partial in (True, False)]
    assert made[0] == made[1]
    assert not sessions.inspect("s").plan.findings


def test_deltas_are_joined_until_they_are_worth_an_event(sessions: Sessions) -> None:
    def piece(index: int, text: str) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}

    chunks = [REPLIES["anthropic"].chunks[0]]
    chunks += [piece(0, "ab") for _ in range(400)]
    chunks += [piece(2, "cd"), piece(3, "ef"), *(piece(3, "gh") for _ in range(200))]
    with (
        pytest.raises(ConnectionError),
        sessions.session("s") as session,
        session.turn(user="pay 7") as turn,
        turn.step() as step,
    ):
        list(step.stream(Chunks(chunks, ConnectionError("cut")), deltas=True))
    told = deltas(sessions)
    assert [(delta["index"], len(delta["text"])) for delta in told] == [(0, 300), (0, 300), (0, 200), (1, 2), (2, 300)]
    assert sum(len(part["content"]) for part in message(sessions)["parts"]) == 1_204


def test_many_deltas_wait_for_room_in_a_thread_and_in_a_loop(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnwal.session.streaming._DELTA_CHARS", 1)
    monkeypatch.setattr("turnwal.session.journal.PENDING_EVENTS_MAX", 50)
    piece = REPLIES["bedrock"].chunks[1]

    async def agent() -> None:
        async with sessions.session("a") as session, session.turn(user="go") as turn, turn.step() as step:
            async for _ in step.stream(AsyncChunks([piece] * 200), deltas=True):
                assert len(session.pending()) <= 51

    asyncio.run(agent())
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        for _ in step.stream(Chunks([piece] * 200), deltas=True):
            assert len(session.pending()) <= 51
    assert len(deltas(sessions)) == 200 < PENDING_EVENTS_MAX


def test_text_that_another_barrier_made_durable_survives_and_is_told(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnwal.session.streaming._DELTA_CHARS", 1)
    session = sessions.session("s").open()
    step = session.open_turn("pay 7").step().begin()
    stream = step.stream(Chunks(REPLIES["anthropic"].chunks), deltas=True)
    while len(session.pending()) < 1:
        next(stream)
    session.flush()
    next(stream)
    die(session)

    (finding,) = [found for found in sessions.inspect("s").plan.findings if found.code == "partial_message"]
    assert finding.seqs == (4,)
    with sessions.session("s") as session:
        assert session.recovered is not None
        assert finding in session.recovered.findings
        assert TEXT[:6] in json.dumps(session.render("anthropic", partial=True).messages)
        assert TEXT[:6] not in json.dumps(session.render("anthropic").messages)


_AGENT = """
import os, signal, sys
import turnwal
from tests.session.replies import REPLIES
from turnwal.session import streaming

streaming._DELTA_CHARS = 1
target = sys.argv[2]
with turnwal.open_store(sys.argv[1]).session("s") as session, session.turn(user="pay 7") as turn, turn.step() as step:
    step.request(target, model=REPLIES[target].model or "m")
    for number, chunk in enumerate(step.stream(REPLIES[target].chunks, deltas=True)):
        if len(session.pending()) > 1:
            session.flush()
        if number == len(REPLIES[target].cut) - 1:
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("scheme", ["file", "sqlite"])
@targets
def test_what_was_shown_survives_a_sigkill_and_the_provider_takes_it_back(
    tmp_path: Path, scheme: str, target: str
) -> None:
    url = f"{scheme}:{tmp_path / 'store'}"
    paths = os.pathsep.join([str(Path(turnwal.__file__).parent.parent), str(Path(__file__).parent.parent.parent)])
    killed = subprocess.run(
        [sys.executable, "-c", _AGENT, url, target], env={**os.environ, "PYTHONPATH": paths}, check=False
    )
    assert killed.returncode == -signal.SIGKILL

    with turnwal.open_store(url) as store:
        assert "assistant_message" not in types(stored(store, "s"))
        (finding,) = [found for found in store.inspect("s").plan.findings if found.code == "partial_message"]
        shown = "".join(event.data["text"] for event in stored(store, "s") if event.type == "assistant_delta")
        assert shown
        assert TEXT.startswith(shown)
        with store.session("s") as session:
            with session.turn(user="and now?") as turn, turn.step() as step:
                made = step.request(target, model="m", partial=True, check="strict")
                assert shown in json.dumps(made)
                assert "pay 7" in json.dumps(made)
                assert "toolu" not in json.dumps(made)
                step.assistant(DONE)
            (told,) = [
                found for found in session.render(target, partial=True).findings if found.code == "partial_message"
            ]
        assert told.seqs[0] == finding.seqs[0]
        (left,) = [found for found in turnwal.plan(store.inspect("s")).findings if found.code == "partial_message"]
        assert left == finding


@pytest.mark.parametrize("read", [1, 3])
def test_a_number_that_no_event_holds_beside_a_stream_does_not_cost_what_was_said(read: int) -> None:
    unlikely = {"content": [{"token": "t", "logprob": float("-inf")}]}
    said = (("some ", None), ("more ", None), ("words", "stop"))
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": word}, "logprobs": unlikely, "finish_reason": end}]}
        for word, end in said
    ]
    with Sessions(MemoryStore()) as store:
        with store.session("a") as session, session.turn(user="go") as turn, turn.step() as step:
            passed = list(islice(step.stream(Chunks(chunks), target="openai-chat"), read))
        message = next(event for event in store.inspect("a") if event.type == "assistant_message")
    assert passed == chunks[:read]
    assert message.data["parts"][0]["content"] == "".join(word for word, _ in said[:read])
    assert message.data["native"]["reply"]["choices"][0]["logprobs"]["content"][0]["logprob"] == "-Infinity"
