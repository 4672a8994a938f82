"""Google ADK: DatabaseSessionService on SQLite, one event a message."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.events import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService
from google.adk.tools import FunctionTool
from google.genai import types

from bench.peers.work import DONE, TOOLS, Peer, acted_async, text

APP, USER = "bench", "user"


class _Played(BaseLlm):
    lines: list[Any]
    seen: list[Any] = []  # noqa: RUF012 - a field, of which each model has its own

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[Any]:
        del stream
        self.seen.append(deepcopy(llm_request.contents))
        line = self.lines.pop(0)
        named = [] if isinstance(line, str) else line
        parts = [types.Part(function_call=types.FunctionCall(id=f"call_{n}", name=n, args={})) for n in named]
        yield LlmResponse(content=types.Content(role="model", parts=parts or [types.Part(text=line)]))


class Sqlite(Peer):
    """DatabaseSessionService with aiosqlite."""

    name = "Google ADK, SQLite"
    package = "google-adk"

    def service(self, folder: Path) -> Any:
        return DatabaseSessionService(f"sqlite+aiosqlite:///{folder / 'adk.db'}")

    def fill(self, folder: Path, count: int) -> None:
        async def fill() -> None:
            service = self.service(folder)
            session = await service.create_session(app_name=APP, user_id=USER, session_id="s")
            for number in range(count):
                await service.append_event(session, _event(number))
            await service.close()

        asyncio.run(fill())

    def append(self, folder: Path, times: int) -> list[float]:
        async def every() -> list[float]:
            service = self.service(folder)
            session = await service.get_session(app_name=APP, user_id=USER, session_id="s")
            loop = asyncio.get_running_loop()
            found = []
            for number in range(times):
                began = loop.time()
                await service.append_event(session, _event(number))
                found.append(loop.time() - began)
            await service.close()
            return found

        return asyncio.run(every())

    def load(self, folder: Path) -> int:
        async def load() -> int:
            service = self.service(folder)
            session = await service.get_session(app_name=APP, user_id=USER, session_id="s")
            await service.close()
            return len(session.events)

        return asyncio.run(load())

    def play(self, folder: Path) -> None:
        asyncio.run(self.say(folder, [list(TOOLS)], "look, charge, and mail"))

    def resume(self, folder: Path) -> str:
        seen = asyncio.run(self.say(folder, [DONE], "go on"))
        parts = [part for content in seen[-1] for part in content.parts]
        called = [part.function_call.name for part in parts if part.function_call]
        answered = {
            part.function_response.name: part.function_response.response for part in parts if part.function_response
        }
        return f"the model sees {answered}" if called else "nothing: the calls are hidden from the model"

    async def say(self, folder: Path, lines: Sequence[Any], words: str) -> list[Any]:
        played = _Played(model="played", lines=list(lines))
        tools: Any = [FunctionTool(_tool(folder, name)) for name in TOOLS]
        app = App(name=APP, root_agent=LlmAgent(name="clerk", model=played, tools=tools))
        service = self.service(folder)
        if await service.get_session(app_name=APP, user_id=USER, session_id="crash") is None:
            await service.create_session(app_name=APP, user_id=USER, session_id="crash")
        message = types.Content(role="user", parts=[types.Part(text=words)])
        runner = Runner(app=app, session_service=service)
        async for _ in runner.run_async(user_id=USER, session_id="crash", new_message=message):
            pass
        await service.close()
        return played.seen


def _event(number: int) -> Any:
    return Event(author="user", content=types.Content(role="user", parts=[types.Part(text=text(number))]))


def _tool(folder: Path, name: str) -> Any:
    async def body() -> str:
        return await acted_async(folder, name)

    body.__name__ = name
    body.__doc__ = name
    return body


PEERS = {"sqlite": Sqlite}
