"""Makes the session databases of Google ADK: agents with a model that plays a part, killed inside a tool.

    python -m tests.formats.generators.google_adk DIRECTORY

Needs google-adk with its extra db. Each scene is a session of its own in a database of each kind, and runs in a
process of its own, since most of them end by being killed.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService
from google.adk.sessions.schemas import v0
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.genai import types
from sqlalchemy import create_engine

Line = str | list[tuple[str, str, dict[str, Any]]]

APP, USER = "shop", "eu/u 1"


class Played(BaseLlm):
    """A model that plays its lines one after the other: a text, or calls of (id, name, arguments)."""

    lines: list[Any]
    seen: list[Any] = []  # noqa: RUF012 - a field, of which each model has its own

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[Any]:
        del stream
        self.seen.append(deepcopy(llm_request.contents))
        line = self.lines.pop(0)
        called = [] if isinstance(line, str) else line
        parts = [types.Part(function_call=types.FunctionCall(id=i, name=n, args=a)) for i, n, a in called]
        if isinstance(line, str):
            parts = [types.Part(text=line)]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


LOOK: Line = [("look_1", "look", {"item": "price"})]
PAIR: Line = [("look_2", "look", {"item": "stock"}), ("look_3", "look", {"item": "fee"})]
CHARGE: Line = [("charge_1", "charge", {"amount": 5})]
BESIDE: Line = [("look_4", "look", {"item": "limit"}), ("charge_1", "charge", {"amount": 5})]
HEALTHY: list[Line] = [LOOK, "It is 5.", PAIR, "Both are 5."]


def look(item: str) -> str:
    """Look something up."""
    return f"{item}: 5"


async def charge(amount: int) -> str:
    """Charge an amount, in a process that is gone while it does."""
    await asyncio.sleep(0.3)  # the sibling ends first
    if amount:
        os._exit(9)
    return "nothing to charge"


def order(item: str) -> dict[str, str]:
    """Order something, which takes days."""
    return {"status": "pending", "item": item}


def ask(item: str) -> None:
    """Ask somebody about something, which takes days."""
    del item


def service(kind: str, path: Path) -> Any:
    if kind == "sqlite":
        return SqliteSessionService(str(path))
    if kind == "v0" and not path.exists():
        engine = create_engine(f"sqlite:///{path}")
        v0.Base.metadata.create_all(engine)
        engine.dispose()
    return DatabaseSessionService(f"sqlite+aiosqlite:///{path}")


def runner(model: Played, kind: str, path: Path, *, careful: bool = False) -> Any:
    tools = [
        FunctionTool(look),
        FunctionTool(charge, require_confirmation=careful),
        LongRunningFunctionTool(order),
        LongRunningFunctionTool(ask),
    ]
    app = App(name=APP, root_agent=LlmAgent(name="clerk", model=model, tools=tools))
    return Runner(app=app, session_service=service(kind, path))


async def say(running: Any, session: str, *parts: str | types.Part) -> list[Any]:
    """Give a session a message, and the events that come of it."""
    if await running.session_service.get_session(app_name=APP, user_id=USER, session_id=session) is None:
        await running.session_service.create_session(app_name=APP, user_id=USER, session_id=session)
    told = [types.Part(text=part) if isinstance(part, str) else part for part in parts]
    message = types.Content(role="user", parts=told)
    return [event async for event in running.run_async(user_id=USER, session_id=session, new_message=message)]


def response(id: str, name: str, **said: Any) -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id=id, name=name, response=said))


async def talk(kind: str, path: Path, session: str, lines: Sequence[Line], *texts: str, careful: bool = False) -> Any:
    running = runner(Played(model="played", lines=list(lines)), kind, path, careful=careful)
    events: list[Any] = []
    for text in texts:
        events += await say(running, session, text)
    return running, events


async def healthy(kind: str, path: Path) -> None:
    await talk(kind, path, "healthy", HEALTHY, "what is the price?", "and stock and fee?")


async def single(kind: str, path: Path) -> None:
    await talk(kind, path, "single", [CHARGE], "charge it")


async def sibling(kind: str, path: Path) -> None:
    await talk(kind, path, "sibling", [LOOK, "It is 5.", BESIDE], "what is the price?", "look, then charge it")


async def reused(kind: str, path: Path) -> None:
    """A model that counts its calls anew in each reply, killed in a call of an id that was answered."""
    lines: list[Line] = [[("c0", "look", {"item": "price"})], "It is 5.", [("c0", "charge", {"amount": 5})]]
    await talk(kind, path, "reused", lines, "what is the price?", "charge it")


async def resumed(kind: str, path: Path) -> None:
    """Gone on with as it is, behind a call that was killed: ADK hides it from the model."""
    if await service(kind, path).get_session(app_name=APP, user_id=USER, session_id="resumed") is None:
        await talk(kind, path, "resumed", [BESIDE], "look, then charge it")
    await talk(kind, path, "resumed", [LOOK, "It is 5."], "what is the price?")


async def again(kind: str, path: Path) -> None:
    """A call that was killed, and then another one with its id."""
    if await service(kind, path).get_session(app_name=APP, user_id=USER, session_id="again") is None:
        await talk(kind, path, "again", [[("c0", "charge", {"amount": 5})]], "charge it")
    await talk(kind, path, "again", [[("c0", "look", {"item": "price"})], "It is 5."], "what is the price?")


async def ordered(kind: str, path: Path) -> None:
    """A call that runs long has answered that it is pending, and another one nothing yet."""
    lines: list[Line] = [[("order_1", "order", {"item": "tea"}), ("ask_1", "ask", {"item": "tea"})], "Ordered."]
    await talk(kind, path, "ordered", lines, "order tea")


async def delivered(kind: str, path: Path) -> None:
    """What runs long has come to its end: a second response of the same call."""
    lines: list[Line] = [[("order_1", "order", {"item": "tea"})], "Ordered.", "Delivered."]
    running, _ = await talk(kind, path, "delivered", lines, "order tea")
    await say(running, "delivered", response("order_1", "order", status="delivered"))


async def confirming(kind: str, path: Path) -> None:
    """A call that waits until a person agrees to it."""
    await talk(kind, path, "confirming", [CHARGE], "charge it", careful=True)


async def confirmed(kind: str, path: Path) -> None:
    """A person has agreed to a call, and it was killed."""
    await _answer_confirmation(kind, path, "confirmed", agreed=True)


async def rejected(kind: str, path: Path) -> None:
    """A person has not agreed to a call."""
    await _answer_confirmation(kind, path, "rejected", agreed=False)


async def _answer_confirmation(kind: str, path: Path, session: str, *, agreed: bool) -> None:
    running, events = await talk(kind, path, session, [CHARGE, "I did not."], "charge it", careful=True)
    (asked,) = [
        call.id for event in events for call in event.get_function_calls() if call.name == "adk_request_confirmation"
    ]
    await say(running, session, response(asked, "adk_request_confirmation", confirmed=agreed))


Scene = Callable[[str, Path], Any]
SCENES: dict[str, Scene] = {
    one.__name__: one
    for one in (healthy, single, sibling, reused, again, resumed, ordered, delivered, confirming, confirmed, rejected)
}
KINDS = {
    "v1": list(SCENES),
    "sqlite": ["healthy", "sibling", "again", "confirmed"],
    "v0": ["healthy", "sibling", "ordered"],
}


def main(arguments: list[str]) -> None:
    if len(arguments) == 3:
        asyncio.run(SCENES[arguments[1]](arguments[0], Path(arguments[2])))
        return
    (directory,) = map(Path, arguments)
    directory.mkdir(parents=True, exist_ok=True)
    for kind, names in KINDS.items():
        path = directory / f"{kind}.db"
        path.unlink(missing_ok=True)
        for name in names:
            command = [sys.executable, "-m", __spec__.name, kind, name, str(path)]
            codes = [subprocess.run(command, check=False).returncode]
            if name in ("again", "resumed"):
                codes.append(subprocess.run(command, check=False).returncode)
            print(kind, name, codes)


if __name__ == "__main__":
    main(sys.argv[1:])
