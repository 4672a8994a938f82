"""The providers' own clients, between a step's request and its reply: sent over no network, answered by a transport.

What the client sends is what the step rendered, and the object it returns is recorded as it comes.
"""

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import anthropic
import httpx2 as httpx
import openai
import pytest
from google import genai
from google.genai import types as genai_types
from mistralai.client import Mistral

import turnwal
from tests.session.replies import ARGUMENTS, REPLIES, TEXT, Replies
from turnwal.session.session import Session
from turnwal.session.step import Step

TOOLS = {"pay": lambda order: {"paid": order}}


class Server:
    """Answers requests in turn: with the reply that asks for a call, then with the one that is done."""

    def __init__(self, target: str, *, named: bool) -> None:
        self.said: Replies = REPLIES[target]
        self.named = named
        """Each event of a stream has its name, beside being data."""
        self.asked: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        asked = json.loads(request.content)
        self.asked.append(asked)
        if asked.get("stream") or "stream" in request.url.path.lower():
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=self._events())
        return httpx.Response(200, json=self.said.asks if len(self.asked) == 1 else self.said.done)

    async def later(self, request: httpx.Request) -> httpx.Response:
        return self(request)

    def _events(self) -> bytes:
        lines = []
        for number, chunk in enumerate(self.said.chunks):
            data = (
                chunk
                if "type" not in chunk or self.said is REPLIES["anthropic"]
                else chunk | {"sequence_number": number}
            )
            lines += [f"event: {chunk['type']}"] if self.named else []
            lines += [f"data: {json.dumps(data)}", ""]
        return ("\n".join([*lines, *([] if self.named else ["data: [DONE]", ""])]) + "\n").encode()


Ask = Callable[[Step], Any]


def conversed(ask: Ask) -> list[turnwal.Event]:
    """The surface of a session whose model is asked like this."""
    with turnwal.open_store("memory:").session("s") as session, session.turn(user="pay 7") as turn:
        while turn.open:
            with turn.step() as step:
                step.run(step.assistant(ask(step)), TOOLS)
        return session.surface()


def streamed(session: Session, ask: Ask) -> None:
    """A turn whose first reply is streamed, and read to its end."""
    with session.turn(user="pay 7") as turn, turn.step() as step:
        for _ in step.stream(ask(step), deltas=True):
            pass
        step.run(step.calls, TOOLS)


def check(surface: Iterable[turnwal.Event], target: str, server: Server) -> None:
    user, asking, result, *_ = surface
    assert (user.type, asking.type, result.type) == ("user_message", "assistant_message", "tool_result")
    assert asking.data["parts"][0]["content"] == TEXT
    assert json.loads(asking.data["parts"][1]["arguments"]) == ARGUMENTS
    assert asking.data.get("complete", True)
    assert (asking.data["provider"], asking.data["stop"]) == (target, server.said.stop)
    assert (asking.data["model"], "usage" in asking.data) == (server.said.model, True)
    assert result.data["parts"] == [{"type": "text", "content": '{"paid":7}'}]


def test_anthropic() -> None:
    server = Server("anthropic", named=True)
    http = httpx.Client(transport=httpx.MockTransport(server))
    client = anthropic.Anthropic(api_key="k", http_client=http)

    def ask(step: Step) -> Any:
        return client.messages.create(**step.request("anthropic", model="claude-x", max_tokens=9, check="strict"))

    check(conversed(ask), "anthropic", server)
    assert "paid" in json.dumps(server.asked[1]["messages"])
    with turnwal.open_store("memory:").session("s") as session:
        streamed(
            session,
            lambda step: client.messages.create(
                **step.request("anthropic", model="claude-x", max_tokens=9, stream=True)
            ),
        )
        check(session.surface(), "anthropic", server)
        with client.messages.stream(model="claude-x", max_tokens=9, messages=[]) as helper:
            streamed(session, lambda _: helper)
            assert helper.get_final_message().stop_reason == "tool_use"
        check(session.surface()[3:], "anthropic", server)


def test_openai_chat() -> None:
    server = Server("openai-chat", named=False)
    http = httpx.Client(transport=httpx.MockTransport(server))
    client = openai.OpenAI(api_key="k", http_client=http)

    check(
        conversed(
            lambda step: client.chat.completions.create(**step.request("openai-chat", model="gpt-x", check="strict"))
        ),
        "openai-chat",
        server,
    )
    assert "paid" in json.dumps(server.asked[1]["messages"])
    with turnwal.open_store("memory:").session("s") as session:
        streamed(
            session,
            lambda step: client.chat.completions.create(**step.request("openai-chat", model="gpt-x", stream=True)),
        )
        check(session.surface(), "openai-chat", server)
        with client.chat.completions.stream(model="gpt-x", messages=[]) as helper:
            streamed(session, lambda _: helper)
        check(session.surface()[3:], "openai-chat", server)


def test_openai_responses() -> None:
    server = Server("openai-responses", named=True)
    http = httpx.Client(transport=httpx.MockTransport(server))
    client = openai.OpenAI(api_key="k", http_client=http)

    check(
        conversed(lambda step: client.responses.create(**step.request("openai-responses", model="gpt-x"))),
        "openai-responses",
        server,
    )
    assert "paid" in json.dumps(server.asked[1]["input"])
    with turnwal.open_store("memory:").session("s") as session:
        streamed(
            session,
            lambda step: client.responses.create(**step.request("openai-responses", model="gpt-x", stream=True)),
        )
        check(session.surface(), "openai-responses", server)


def test_gemini() -> None:
    server = Server("gemini", named=False)
    http = httpx.Client(transport=httpx.MockTransport(server))
    client = genai.Client(api_key="k", http_options=genai_types.HttpOptions(httpx_client=http))

    check(
        conversed(lambda step: client.models.generate_content(**step.request("gemini", model="gemini-x"))),
        "gemini",
        server,
    )
    assert "paid" in json.dumps(server.asked[1]["contents"])


def test_gemini_streams() -> None:
    chunks = [genai_types.GenerateContentResponse.model_validate(chunk) for chunk in REPLIES["gemini"].chunks]
    with turnwal.open_store("memory:").session("s") as session:
        streamed(session, lambda _: iter(chunks))
        check(session.surface(), "gemini", Server("gemini", named=False))


def test_mistral() -> None:
    server = Server("mistral", named=False)
    http = httpx.Client(transport=httpx.MockTransport(server))
    client = Mistral(api_key="k", client=http)

    check(conversed(lambda step: client.chat.complete(**step.request("mistral", model="mistral-x"))), "mistral", server)
    assert "paid" in json.dumps(server.asked[1]["messages"])
    with turnwal.open_store("memory:").session("s") as session:
        streamed(session, lambda step: client.chat.stream(**step.request("mistral", model="mistral-x")))
        check(session.surface(), "mistral", server)


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "openai-responses"])
def test_an_asynchronous_client_streams(target: str) -> None:
    server = Server(target, named=target != "openai-chat")

    async def ask(step: Step) -> Any:
        http = httpx.AsyncClient(transport=httpx.MockTransport(server.later))
        if target == "anthropic":
            made = await step.arequest(target, model="claude-x", max_tokens=9, stream=True)
            return await anthropic.AsyncAnthropic(api_key="k", http_client=http).messages.create(**made)
        client = openai.AsyncOpenAI(api_key="k", http_client=http)
        made = await step.arequest(target, model="gpt-x", stream=True)
        create = client.chat.completions.create if target == "openai-chat" else client.responses.create
        return await create(**made)

    async def agent() -> list[turnwal.Event]:
        async with (
            turnwal.open_store("memory:").session("s") as session,
            session.turn(user="pay 7") as turn,
            turn.step() as step,
        ):
            async with step.stream(await ask(step)) as chunks:
                async for _ in chunks:
                    pass
            await step.arun(step.calls, TOOLS)
            return session.surface()

    check(asyncio.run(agent()), target, server)
