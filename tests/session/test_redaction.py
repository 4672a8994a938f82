"""F37: a redaction takes out content, and changes neither what holds the history together nor what a tool is given."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import turnwal
from tests.session.helpers import asks, die, reply, results, says, stored
from turnwal.core.errors import InvalidEvent, Refused
from turnwal.session.sessions import Sessions
from turnwal.session.verifying import verify
from turnwal.store.memory import MemoryStore


def tokens(data: dict[str, Any]) -> Any:
    """A usual redactor: whatever looks like a token is masked, wherever it stands."""
    return json.loads(re.sub(r"\b[0-9a-f]{32}\b", "[secret]", json.dumps(data)))


def cards(data: dict[str, Any]) -> Any:
    return json.loads(json.dumps(data).replace("4242", "[masked]"))


def test_f37_a_keyed_tool_gets_its_own_key_and_so_does_a_later_process(sessions: Sessions) -> None:
    got: list[str] = []

    @turnwal.tool(keyed=True)
    def pay(order: int, key: str) -> None:
        got.append(key)
        raise turnwal.OutcomeUnknown(f"no answer about {order}")

    with sessions.session("s", redact=tokens) as session, session.turn(user="go") as turn, turn.step() as step:
        calls = step.assistant(reply(asks("pay", "a", order=1), asks("pay", "b", order=2)))
        keys = [call.key for call in calls]
        step.run(calls, {"pay": pay})
    with sessions.session("s", redact=tokens) as session:
        for key in ("4.0", "4.1"):
            session.call(key).retry({"pay": pay})
    assert got == keys * 2
    assert len(set(keys)) == 2
    events = stored(sessions, "s")
    assert [event.data["key"] for event in events if event.type == "tool_call"] == got
    assert [result.data["metadata"]["key"] for result in results(events)] == keys


def test_f37_what_holds_the_history_together_is_recorded_as_it_is(sessions: Sessions) -> None:
    def mute(data: dict[str, Any]) -> dict[str, Any]:
        return {name: mask(value) for name, value in data.items()} | {"replace": [0, 1]}

    def mask(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: mask(one) for name, one in value.items() if name in ("type", "id", "name")}
        return "***" if isinstance(value, str) else value

    with sessions.session("s", redact=mute, cwd="/home/ada") as session:
        with session.turn(user="go") as turn, turn.step() as step:
            (paid, asked) = step.assistant(reply(asks("pay", "a", order=1), asks("pay", "b", order=2)))
            paid.run({"pay": lambda order: order})
            asked.ask("pay 2?")
        with session.turn(user="more", dispatch="none") as turn, turn.step() as step:
            step.assistant(reply(asks("pay", "c", order=3)))
        asked.grant(by="ada")

    events = stored(sessions, "s")
    assert not verify(sessions.store, "s").findings
    assert events[0].data["cwd"] == "***"
    assert events[0].data["nonce"] == "5" * 32
    assert not any("replace" in event.data for event in events)
    assert {event.data["turn"] for event in events if event.type == "turn_end"} == {1, 2}
    (request,) = [event for event in events if event.type == "approval_request"]
    assert request.data["call"] == "4.1"
    assert request.data["question"] == "***"
    with sessions.session("s") as session:
        assert [call.call_key for call in session.granted()] == ["4.1"]


def test_f37_what_turnwal_says_of_a_lost_call_is_not_changed(sessions: Sessions) -> None:
    def none_of_ours(data: dict[str, Any]) -> dict[str, Any]:
        return json.loads(json.dumps(data).replace("tool_not_started", "failed").replace("did not run", "failed"))  # type: ignore[no-any-return]

    with sessions.session("s", redact=none_of_ours) as session, session.turn(user="go") as turn, turn.step() as step:
        step.assistant(reply(asks("pay", order=1)))
    (result,) = results(stored(sessions, "s"))
    assert result.data["metadata"]["risk"] == "tool_not_started"
    assert "did not run" in result.data["parts"][0]["content"]


@pytest.mark.parametrize("type", ["user_message", "request_header"])
def test_f37_a_field_that_no_type_knows_is_content(type: str) -> None:
    def without(data: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in data.items() if name not in ("key", "owner")}

    with Sessions(MemoryStore()).session("s", redact=without) as session:
        assert session.append(type, {"key": "sk-1", "owner": "ada", "provider": "x"}).data == {"provider": "x"}


def test_f37_a_reply_recorded_by_hand_is_marked_and_its_tool_gets_what_the_model_wrote(sessions: Sessions) -> None:
    got: list[str] = []

    def pay(card: str) -> None:
        got.append(card)

    with sessions.session("s", redact=cards) as session, session.turn(user="go") as turn, turn.step():
        seq = turn.append("assistant_message", reply(says("4242"), asks("pay", card="4242"))).seq
        session.call(f"{seq}.1").run({"pay": pay})
    assert got == ["4242"]
    (message,) = [event for event in stored(sessions, "s") if event.type == "assistant_message"]
    assert message.data["parts"] == [
        {"type": "text", "content": "[masked]"},
        {"type": "tool_call", "id": "k", "name": "pay", "arguments": {"card": "[masked]"}, "redacted": True},
    ]
    (dispatched,) = [event for event in stored(sessions, "s") if event.type == "tool_call"]
    assert dispatched.data["redacted"] is True


def test_f37_a_reply_recorded_by_hand_runs_on_no_mask_in_a_later_process(sessions: Sessions) -> None:
    session = sessions.session("s", redact=lambda data: json.loads(json.dumps(data).replace("4242", "0000"))).open()
    turn = session.open_turn("go")
    turn.step().begin()
    seq = turn.append("assistant_message", reply(asks("pay", card="4242"))).seq
    session.call(f"{seq}.0").ask("pay?")
    die(session)

    got: list[str] = []

    def pay(card: str) -> None:
        got.append(card)

    with sessions.session("s") as session:
        (call,) = session.waiting()
        call.grant(by="ada")
        with session.turn(resumes=call), pytest.raises(Refused, match="redacted"):
            call.run({"pay": pay})
    assert got == []


def stars(data: dict[str, Any]) -> dict[str, Any]:
    for part in data.get("parts", []):
        if part["type"] == "tool_call":
            part["arguments"] = "{}"
    return data


@pytest.mark.parametrize("by_hand", [False, True])
def test_f37_however_a_reply_is_recorded_redaction_makes_no_two_calls_one(sessions: Sessions, *, by_hand: bool) -> None:
    with sessions.session("s", redact=stars) as session, session.turn(user="go") as turn, turn.step() as step:
        record: Callable[[dict[str, Any]], Any] = (
            (lambda message: turn.append("assistant_message", message)) if by_hand else step.assistant
        )
        both = reply(asks("pay", order=1), asks("pay", order=2))
        record(both)
        before = session.head
        with pytest.raises(Refused, match="two different calls"):
            record(reply(asks("pay", order=2)))
        assert session.head == before
        record(both)  # each is the call that stands in its place
    assert len(results(stored(sessions, "s"))) == 2


def test_f37_a_reply_recorded_by_hand_asks_for_what_the_model_asked_for(sessions: Sessions) -> None:
    def drop(data: dict[str, Any]) -> dict[str, Any]:
        return data | {"parts": data["parts"][1:]} if len(data.get("parts", [])) > 1 else data

    with sessions.session("s", redact=drop) as session, session.turn(user="go") as turn:
        with pytest.raises(Refused, match="changes which calls"):
            turn.append("assistant_message", reply(says("I pay"), asks("pay")))
        turn.append("assistant_message", reply(says("secret"), says("done")))
        with pytest.raises(InvalidEvent):
            turn.append("assistant_message", {"parts": "none"})
    assert stored(sessions, "s")[3].data["parts"] == [says("done")]


def test_f37_a_message_completed_twice_is_one_message_under_redaction_too(sessions: Sessions) -> None:
    got: list[int] = []

    def pay(order: int) -> None:
        got.append(order)

    with sessions.session("s", redact=stars) as session, session.turn(user="go") as turn, turn.step() as step:
        seq = len(session)
        step.assistant(reply(asks("pay", order=1), complete=False))
        step.assistant(reply(asks("pay", order=17), complete=False, completes=seq))
        (call,) = step.assistant(reply(asks("pay", order=178), completes=seq + 1))
        call.run({"pay": pay})
    assert call.call_key == f"{seq}.0"
    assert got == [178]


def test_f37_a_redacted_call_of_a_writer_without_dispatches_is_unknown_after_a_crash(sessions: Sessions) -> None:
    def gone(data: dict[str, Any]) -> dict[str, Any]:
        for part in data.get("parts", []):
            if part["type"] == "tool_call":
                part["arguments"] = "[redacted 21 characters]"
        return data

    session = sessions.session("s", redact=gone, dispatch="none").open()
    session.open_turn("go").step().begin().assistant(reply(asks("pay", card="4242")))
    session.flush()
    die(session)
    with sessions.session("s") as session:
        assert session.recovered is not None
        (lost,) = session.recovered.lost_calls()
    assert lost.rule == 9
    assert lost.data["metadata"]["risk"] == "tool_outcome_unknown"


def everywhere(data: dict[str, Any]) -> Any:
    """A redactor that masks all texts, those that are kept verbatim for a provider included."""
    return json.loads(json.dumps(data).replace("4242", "[card]"))


def of_neutral_parts(data: dict[str, Any]) -> Any:
    """A redactor that knows nothing of what is kept verbatim."""
    masked = [
        {**part, "content": part["content"].replace("4242", "[card]")} if "content" in part else part
        for part in data.get("parts", [])
    ]
    return {**data, "parts": masked} if masked else data


def _chat(message: dict[str, Any]) -> dict[str, Any]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}


def _said(content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "tool_use"}


_ANTHROPIC = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use"}
_FUNCTION = {"function": {"name": "pay", "arguments": "{}"}}
_SIGNED: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic": (
        "anthropic",
        {
            **_ANTHROPIC,
            "content": [
                {"type": "thinking", "thinking": "card 4242", "signature": "c2ln"},
                {"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {}},
            ],
        },
    ),
    "bedrock": (
        "bedrock",
        _said(
            [
                {"reasoningContent": {"reasoningText": {"text": "card 4242", "signature": "c2ln"}}},
                {"toolUse": {"toolUseId": "t1", "name": "pay", "input": {}}},
            ]
        ),
    ),
    "gemini": (
        "gemini",
        {
            "modelVersion": "m",
            "candidates": [
                {
                    "finishReason": "STOP",
                    "content": {
                        "role": "model",
                        "parts": [
                            {"text": "card 4242", "thought": True, "thoughtSignature": "c2ln"},
                            {"text": "the card is 4242", "thoughtSignature": "c2ln"},
                            {"functionCall": {"name": "pay", "args": {}}},
                        ],
                    },
                }
            ],
        },
    ),
    "openai-responses": (
        "openai-responses",
        {
            "id": "r",
            "model": "m",
            "status": "completed",
            "output": [
                {
                    "type": "reasoning",
                    "id": "rs_1",
                    "summary": [{"type": "summary_text", "text": "card 4242"}],
                    "encrypted_content": "c2ln",
                },
                {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "pay", "arguments": "{}"},
            ],
        },
    ),
    "mistral": (
        "mistral",
        _chat(
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "card 4242"}], "signature": "c2ln"}
                ],
                "tool_calls": [{"id": "abcdefghi", **_FUNCTION}],
            }
        ),
    ),
    "a gateway": (
        "openai-chat",
        _chat(
            {
                "role": "assistant",
                "content": None,
                "reasoning": "card 4242",
                "reasoning_details": [{"type": "reasoning.text", "text": "card 4242", "signature": "c2ln"}],
                "tool_calls": [{"id": "c1", "type": "function", **_FUNCTION}],
            }
        ),
    ),
}


@pytest.mark.parametrize("redact", [everywhere, of_neutral_parts])
@pytest.mark.parametrize("provider", _SIGNED)
def test_f37_what_a_redaction_changed_does_not_go_back_under_its_old_signature(
    sessions: Sessions, provider: str, redact: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    target, came = _SIGNED[provider]
    sent = {}
    for name, function in (("plain", None), ("masked", redact)):
        with sessions.session(name, redact=function) as session, session.turn(user="go") as turn, turn.step() as step:
            step.run(step.assistant(came, target=target), {"pay": lambda: "paid"})
            sent[name] = session.render(target)
    assert "c2ln" in json.dumps(sent["plain"].messages)
    masked = json.dumps(sent["masked"].messages)
    assert "c2ln" not in masked
    assert "4242" not in masked
    assert not [item for item in sent["masked"].messages if item.get("id") == "fc_1"]  # refused without its reasoning
    assert "reasoning_left_out" in {finding.code for finding in sent["masked"].findings}
    assert not turnwal.check(target, sent["masked"].messages)
    (message,) = [event for event in stored(sessions, "masked") if event.type == "assistant_message"]
    assert all(part.get("content", "[card]").count("[card]") for part in message.data["parts"])


def test_f37_what_a_redaction_left_alone_goes_back_with_its_signature(sessions: Sessions) -> None:
    for provider, (target, came) in _SIGNED.items():
        with (
            sessions.session(provider, redact=cards) as session,
            session.turn(user="4242") as turn,
            turn.step() as step,
        ):
            step.run(step.assistant(json.loads(json.dumps(came).replace("4242", "1")), target=target), {"pay": print})
            assert "c2ln" in json.dumps(session.render(target).messages)


_SERVED = {
    "anthropic": {
        **_ANTHROPIC,
        "stop_sequence": "4242",
        "content": [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "card 4242"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
            {"type": "text", "text": "found"},
        ],
    },
    "bedrock": _said(
        [
            {"toolUse": {"toolUseId": "t1", "name": "nova", "type": "server_tool_use", "input": {"q": "card 4242"}}},
            {"toolResult": {"toolUseId": "t1", "type": "nova_result", "content": []}},
            {"text": "found"},
        ]
    ),
}


@pytest.mark.parametrize("target", _SERVED)
def test_f37_a_server_call_whose_arguments_are_masked_goes_back_with_what_it_found(
    sessions: Sessions, target: str
) -> None:
    def arguments(data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "parts": [cards(part) for part in data["parts"]]} if "parts" in data else data

    with sessions.session("s", redact=arguments) as session, session.turn(user="go") as turn, turn.step() as step:
        step.assistant(_SERVED[target], target=target)
        sent = session.render(target)
    assert len(sent.messages[1]["content"]) == 3
    assert "card [masked]" in json.dumps(sent.messages[1]["content"][0])
    assert not sent.findings
    assert not turnwal.check(target, sent.messages)


def test_f37_what_a_reply_says_beside_its_parts_stays_where_those_are_masked(sessions: Sessions) -> None:
    history = {"role": "assistant", "content": "card 4242", "extra": "4242"}

    def texts(data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "parts": cards(data["parts"])} if "parts" in data else data

    data = {
        "parts": [{"type": "text", "content": "card 4242"}],
        "provider": "openai-chat",
        "native": {"provider": "openai-chat", "message": history, "reply": {"store": False}},
    }
    with sessions.session("s", redact=texts) as session, session.turn(user="go") as turn, turn.step():
        recorded = turn.append("assistant_message", data).data
    assert recorded["native"] == {"provider": "openai-chat", "reply": {"store": False}}
