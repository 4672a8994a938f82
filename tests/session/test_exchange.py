"""What a step asks a model, and what it records of the provider's own replies."""

import asyncio
import json
import warnings
from typing import Any

import pytest

import turnwal
from tests.session.helpers import DONE, TOOLS, asks, reply, says, stored, types
from tests.session.replies import ARGUMENTS, REPLIES, TEXT
from turnwal.core.errors import InvalidEvent, InvalidName, Refused, SessionClosed
from turnwal.session.heeding import TranscriptWarning
from turnwal.session.sessions import Sessions
from turnwal.store.memory import MemoryStore
from turnwal.transcript.check import Problem

targets = pytest.mark.parametrize("target", sorted(REPLIES))

TOOL = {"name": "pay", "description": "Pays.", "input_schema": {"type": "object"}}


def headers(sessions: Sessions) -> list[dict[str, Any]]:
    return [event.data for event in stored(sessions, "s") if event.type == "request_header"]


def in_memory() -> Sessions:
    return Sessions(MemoryStore())


# Asking


@targets
def test_an_agent_speaks_with_a_provider_in_its_own_words(sessions: Sessions, target: str) -> None:
    said = REPLIES[target]
    sent: list[dict[str, Any]] = []
    with sessions.session("s") as session, session.turn(user="pay 7") as turn:
        while turn.open:
            with turn.step() as step:
                sent.append(step.request(target, model=said.model or "m", check="strict"))
                answer = said.asks if step.number == 1 else said.done
                step.run(step.assistant(answer), TOOLS)
    assert len(sent) == 2
    (asking, done) = [event.data for event in stored(sessions, "s") if event.type == "assistant_message"]
    assert asking["parts"][0]["content"] == TEXT
    assert json.loads(asking["parts"][1]["arguments"]) == ARGUMENTS
    assert (asking["provider"], asking["model"], asking["stop"]) == (target, said.model or "m", said.stop)
    assert {"response_id", "usage"} <= asking.keys()
    assert done["parts"][0]["content"] == "done"
    assert "paid" in json.dumps(sent[1])
    assert [(header["provider"], header["model"]) for header in headers(sessions)] == [(target, said.model or "m")] * 2


def test_settings_and_tools_are_recorded_as_far_as_they_are_data(sessions: Sessions) -> None:
    def helper() -> None: ...

    settings: dict[str, Any] = {
        "max_tokens": 100,
        "metadata": {"user": "ada"},
        "extra_headers": {"x-api-key": "secret"},
    }
    with sessions.session("s") as session, session.turn(user="go") as turn:
        for tools in ([TOOL], [TOOL], [TOOL, helper], None):
            with turn.step() as step:
                made = step.request("anthropic", model="m", tools=tools, timeout=object(), **settings)
                assert made["extra_headers"] == {"x-api-key": "secret"}
                assert made.get("tools") == tools
    first, second, third, fourth = headers(sessions)
    assert first["settings"] == {"max_tokens": 100, "metadata": {"user": "ada"}}
    assert sorted(first["unrecorded"]) == ["extra_headers", "timeout"]
    assert first["tools"] == [TOOL]
    assert first["tools_digest"].startswith("sha256:")
    assert second["tools_digest"] == first["tools_digest"]
    assert "tools" not in second
    assert third["tools"][1] == {"unrecorded": helper.__qualname__}
    assert third["tools_digest"] != first["tools_digest"]
    assert not fourth.keys() & {"tools", "tools_digest"}
    assert "secret" not in json.dumps(headers(sessions))


def test_settings_of_gemini_are_recorded_without_what_its_client_reads(sessions: Sessions) -> None:
    config = {"temperature": 0.5, "http_options": {"headers": {"x-goog-api-key": "secret"}}}
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        assert step.request("gemini", model="m", config=config)["config"] == config
    (header,) = headers(sessions)
    assert header["settings"] == {"config": {"temperature": 0.5}}
    assert header["unrecorded"] == ["config.http_options"]


def test_a_request_waits_for_no_barrier_unless_input_came_since_the_step_began(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn:
        with turn.step() as step:
            step.request("anthropic", model="m")
            assert types(session.pending()) == ["request_header"]
            session.append("x.note", {})
            session.append("user_message", {"parts": [says("theirs")]}, run="sub")
            step.request("anthropic", model="m")
            assert len(session.pending()) == 4
            session.append("user_message", {"parts": [says("by the way")]})
            made = step.request("anthropic", model="m")
            assert "by the way" in json.dumps(made)
            assert session.pending() == []
        assert "by the way" in json.dumps([event.data for event in stored(sessions, "s")])


def test_an_asynchronous_request_records_what_a_synchronous_one_does(sessions: Sessions) -> None:
    async def agent() -> dict[str, Any]:
        async with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
            session.append("user_message", {"parts": [says("by the way")]})
            made = await step.arequest("anthropic", model="m", check="strict", max_tokens=5)
            assert session.pending() == []
            return made

    made = asyncio.run(agent())
    assert made["max_tokens"] == 5
    assert headers(sessions) == [{"provider": "anthropic", "model": "m", "settings": {"max_tokens": 5}}]


def test_what_is_refused_records_nothing() -> None:
    with in_memory().session("s") as session, session.turn(user="go") as turn:
        with turn.step() as step:
            head = session.head
            with pytest.raises(InvalidName, match="no such target"):
                step.request("antrhopic", model="m")
            with pytest.raises(Refused, match="messages is given twice"):
                step.request("anthropic", model="m", messages=[])
            odd: dict[str, dict[str, Any]] = {"gemini": {"config": object()}, "bedrock": {"toolConfig": object()}}
            for target, settings in odd.items():
                with pytest.raises(Refused, match="onfig is of type object"):
                    step.request(target, model="m", **settings)
            with pytest.raises(Refused, match="unknown"):
                step.request("anthropic", model="m", check="maybe")  # type: ignore[arg-type]
            assert session.head == head
        with pytest.raises(SessionClosed, match="step is not open"):
            step.request("anthropic", model="m")


def test_a_request_that_breaks_a_rule_is_a_warning_or_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [Problem("empty_message", f"messages[{number}]", "x" * 10_000) for number in range(100)]
    monkeypatch.setattr("turnwal.session.exchange.check_messages", lambda *_, **__: broken)
    with in_memory().session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        step.request("anthropic", model="m")
        head = session.head
        with pytest.raises(Refused, match=r"empty_message at messages\[0\]") as refused:
            step.request("anthropic", model="m", check="strict")
        assert len(refused.value.message) < 2_000
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(TranscriptWarning):
                step.request("anthropic", model="m", check="warn")
        assert session.head == head
        with pytest.warns(TranscriptWarning) as caught:
            step.request("anthropic", model="m", check="warn")
        assert caught[0].filename == __file__
        assert types(session.pending())[-1] == "request_header"


def test_a_call_that_waits_is_refused_or_answered_by_a_placeholder(sessions: Sessions) -> None:
    with sessions.session("s") as session:
        with session.turn(user="pay") as turn, turn.step() as step:
            step.assistant(reply(asks("pay", order=1)))[0].ask("Really?")
        with session.turn(user="something else") as turn, turn.step() as step:
            with pytest.raises(Refused, match="wait"):
                step.request("anthropic", model="m")
            assert step.request("anthropic", model="m", waiting="placeholder", check="strict")["messages"]
            step.assistant(DONE)


def test_a_step_compares_what_is_sent_with_its_own_run(sessions: Sessions) -> None:
    with sessions.session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        (call,) = step.assistant(reply(asks("pay", order=1)))
        call.dispatch()
        with call.sub("helper", user="help") as inner, inner.step() as inner_step:
            sent = inner_step.request("anthropic", model="m")["messages"]
            assert inner_step.compare("anthropic", sent, check="strict") == []
            with pytest.raises(Refused, match="missing"):
                step.compare("anthropic", sent, check="strict")
            inner_step.assistant(DONE)
        call.result("helped")


# Replying


@targets
def test_what_a_provider_replied_goes_back_to_it_as_it_was(sessions: Sessions, target: str) -> None:
    said = REPLIES[target]
    with sessions.session("s") as session, session.turn(user="pay 7") as turn, turn.step() as step:
        step.run(step.assistant(said.asks, target=target), TOOLS)
        expected = turnwal.Log()
        expected.append("user_message", {"parts": [says("pay 7")]})
        expected.append("assistant_message", turnwal.parse(target, said.asks))
        sent = session.render(target).messages
    assert sent[1] == turnwal.render(expected, target).messages[1]


def test_mistral_is_told_from_openai_by_what_was_asked_or_named() -> None:
    said = REPLIES["mistral"].done
    for target, ask in (("mistral", True), ("openai-chat", False)):
        with in_memory().session("s") as session, session.turn(user="go") as turn, turn.step() as step:
            if ask:
                step.request("mistral", model="mistral-x")
            step.assistant(said)
            assert session.surface()[-1].data["provider"] == target
    with in_memory().session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        step.assistant(said, target="mistral")
        assert session.surface()[-1].data["provider"] == "mistral"


def test_a_pause_keeps_the_turn_open_and_what_the_provider_gave_up_ends_it() -> None:
    paused = {**REPLIES["anthropic"].done, "stop_reason": "pause_turn"}
    cut = {**REPLIES["openai-responses"].asks, "status": "incomplete"}
    cut["incomplete_details"] = {"reason": "max_output_tokens"}
    with in_memory().session("s") as session, session.turn(user="go") as turn:
        goes_on = []
        for said in (paused, cut):
            with turn.step() as step:
                assert step.assistant(said) == step.calls == []
            goes_on.append(turn.open)
        assert goes_on == [True, False]
        assert session.surface()[-1].data["complete"] is False


@targets
def test_a_stream_that_was_cut_off_is_a_reply_that_owes_nothing(sessions: Sessions, target: str) -> None:
    with sessions.session("s") as session, session.turn(user="pay 7") as turn:
        with turn.step() as step:
            assert step.assistant(REPLIES[target].cut, target=target) == step.calls == []
            assert session.surface()[-1].data["complete"] is False
        assert turn.open
        with turn.step() as step:
            made = step.request(target, model="m", check="strict")
            assert TEXT in json.dumps(made)
            assert "pay" not in json.dumps(made).replace("pay 7", "").replace(TEXT, "")
            step.assistant(DONE)
    assert "tool_result" not in types(stored(sessions, "s"))


def test_what_is_no_reply_is_refused_by_name_and_records_nothing() -> None:
    with in_memory().session("s") as session, session.turn(user="go") as turn, turn.step() as step:
        head = session.head
        error = {"type": "error", "error": {"type": "overloaded_error"}}
        for broken in ("text", None, 7, {}, {"parts": "text"}, error, [], object()):
            with pytest.raises(InvalidEvent):
                step.assistant(broken)
        for target in REPLIES:
            for broken in ({}, error, {"choices": []}, "text", 7, object(), [1], {"content": 7}):
                with pytest.raises(InvalidEvent):
                    step.assistant(broken, target=target)
        with pytest.raises(InvalidName):
            step.assistant(REPLIES["gemini"].done, target="antrhopic")
        assert session.head == head
        assert step.assistant(DONE) == []
        step.close()
        with pytest.raises(SessionClosed, match="step is not open"):
            step.assistant(DONE)


def test_f37_what_a_part_keeps_verbatim_goes_with_what_was_taken_out_of_it(sessions: Sessions) -> None:
    def masked(data: dict[str, Any]) -> dict[str, Any]:
        parts = [
            {**part, "content": "***"} if "4242" in str(part.get("content")) else part for part in data.get("parts", [])
        ]
        return data | {"parts": parts} if "parts" in data else data

    cited = {"type": "text", "text": "card 4242", "citations": [{"type": "x", "cited_text": "4242"}]}
    signed = {"type": "thinking", "thinking": "the card is 4242", "signature": "abc"}
    other = {"type": "text", "text": "fine", "citations": [{"type": "x", "cited_text": "y"}]}
    said = {**REPLIES["anthropic"].done, "content": [signed, cited, other]}
    with sessions.session("s", redact=masked) as session, session.turn(user="go") as turn, turn.step() as step:
        step.assistant(said)
        assert "4242" not in json.dumps(session.surface()[-1].data)
        assert session.render("anthropic", model="claude-x").messages[-1]["content"] == [
            {"type": "text", "text": "***"},
            other,
        ]


@pytest.mark.parametrize(
    ("asked", "gave"),
    [
        ("prod-claude", "claude-sonnet-4-5-20250929"),
        ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
        ("claude-opus-4-0", "claude-opus-4-20250514"),
    ],
)
def test_f29_signed_blocks_go_back_to_the_model_that_was_asked_whatever_its_reply_calls_it(
    sessions: Sessions, asked: str, gave: str
) -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "tool_use", "id": "t", "name": "pay"},
    ]
    said = {"id": "m", "type": "message", "role": "assistant", "model": gave, "stop_reason": "tool_use"}
    with sessions.session("s") as session, session.turn(user="pay 7") as turn:
        with turn.step() as step:
            step.request("anthropic", model=asked)
            step.run(
                step.assistant({**said, "content": [blocks[0], {**blocks[1], "input": {}}]}), {"pay": lambda: "paid"}
            )
        with turn.step() as step:
            again = step.request("anthropic", model=asked, check="strict")
            assert [block["type"] for block in again["messages"][1]["content"]] == ["thinking", "tool_use"]
            direct = session.render("anthropic", model=gave)
            assert [block["type"] for block in direct.messages[1]["content"]] == ["thinking", "tool_use"]
            other = session.render("anthropic", model="claude-haiku-4-5")
            assert [block["type"] for block in other.messages[1]["content"]] == ["tool_use"]
            step.assistant({"parts": [{"type": "text", "content": "done"}]})
