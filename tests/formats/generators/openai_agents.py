"""Makes the session databases of the OpenAI Agents SDK: agents with a model that plays a part, killed inside a tool.

    python -m tests.formats.generators.openai_agents DIRECTORY

Needs openai-agents with its extras sqlalchemy and encrypt, and aiosqlite. Each scene runs in a process of its own,
since some end by being killed.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from agents.extensions.memory import AdvancedSQLiteSession, EncryptedSession, SQLAlchemySession
from agents.memory import SQLiteSession
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

set_tracing_disabled(disabled=True)


class Played(Model):
    """A model that plays its lines one after the other."""

    def __init__(self, lines: Sequence[list[Any]]) -> None:
        self.lines = list(lines)
        self.seen: list[Any] = []

    async def get_response(self, system_instructions: object, input: Any, *_: object, **__: object) -> ModelResponse:
        del system_instructions
        self.seen.append(input)
        return ModelResponse(output=self.lines.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *_: object, **__: object) -> AsyncIterator[Any]:
        raise NotImplementedError


def call(id: str, name: str, arguments: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        type="function_call", call_id=id, id=f"fc_{id}", name=name, arguments=arguments, status="completed"
    )


def says(text: str) -> list[Any]:
    content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
    told: Any = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}
    return [ResponseOutputMessage(**told)]


PAIR = [call("call_look", "look", '{"item":"price"}'), call("call_charge", "charge", '{"amount":5}')]
LINES = [
    [call("call_1", "look", '{"item":"price"}')],
    says("It is 5."),
    [call("call_2", "look", '{"item":"stock"}'), call("call_3", "look", '{"item":"fee"}')],
    says("Both are 5."),
]


@function_tool
def look(item: str) -> str:
    """Look something up."""
    return f"{item}: 5"


@function_tool
async def charge(amount: int) -> str:
    """Charge an amount, in a process that is killed while it does."""
    await asyncio.sleep(0.3)  # the sibling ends first
    os.kill(os.getpid(), signal.SIGKILL)
    return f"charged {amount}"


@function_tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay an amount, once a person has agreed."""
    return f"paid {amount}"


PAY = call("call_pay", "pay", '{"amount":5}')


async def ask(model: Played, session: Any) -> tuple[Any, Any]:
    """An agent that has stopped for an approval, and where it stopped."""
    agent = Agent(name="agent", model=model, tools=[look, pay])
    return agent, await Runner.run(agent, "pay 5", session=session)


async def talk(model: Played, session: Any, *texts: str) -> None:
    agent = Agent(name="agent", model=model, tools=[look, charge])
    for text in texts:
        await Runner.run(agent, text, session=session)


async def healthy(path: str) -> None:
    await talk(Played(LINES), SQLiteSession("healthy", path), "what is the price?", "and stock and fee?")
    await talk(Played([says("Hello.")]), SQLiteSession("other", path), "hi")


async def killed(path: str) -> None:
    """Killed beside a sibling that had finished: the SDK keeps neither."""
    await talk(Played([*LINES, PAIR]), SQLiteSession("killed", path), "what is the price?", "and both?", "charge 5")


async def renamed(path: str) -> None:
    tables = {"sessions_table": "talks", "messages_table": "talk_items"}
    await talk(Played(LINES[:2]), SQLiteSession("renamed", path, **tables), "what is the price?")


async def kept(path: str) -> None:
    """An application that saves the model's items before it runs the tools, and is killed in one of them."""
    session = SQLiteSession("kept", path)
    items: list[Any] = [{"role": "user", "content": "look, then charge 5"}]
    items += [one.model_dump(exclude_none=True) for one in PAIR]
    await session.add_items(items)
    await session.add_items([{"type": "function_call_output", "call_id": "call_look", "output": "price: 5"}])
    os.kill(os.getpid(), signal.SIGKILL)


async def alchemy(path: str) -> None:
    session = SQLAlchemySession.from_url("alchemy", url=f"sqlite+aiosqlite:///{path}", create_tables=True)
    await talk(Played([*LINES, PAIR]), session, "what is the price?", "and both?", "charge 5")


async def branches(path: str) -> None:
    session = AdvancedSQLiteSession(session_id="branches", db_path=path, create_tables=True)
    await talk(Played(LINES), session, "what is the price?", "and stock and fee?")
    await session.create_branch_from_turn(2, "second")
    await session.add_items([{"role": "user", "content": "charge 5"}, PAIR[1].model_dump(exclude_none=True)])


async def approval(path: str) -> None:
    """Stopped for an approval beside a call that needs none."""
    await ask(Played([[PAIR[0], PAY]]), SQLiteSession("approval", path))


async def alone(path: str) -> None:
    """Stopped for the approval of the only call."""
    await ask(Played([[PAY]]), SQLiteSession("alone", path))


async def encrypted(path: str) -> None:
    session = EncryptedSession("encrypted", SQLiteSession("encrypted", path), "a key for this test alone")
    await talk(Played(LINES[:2]), session, "what is the price?")


SCENES = {one.__name__: one for one in (healthy, killed, renamed, kept, alchemy, branches, approval, alone, encrypted)}


def main(arguments: list[str]) -> None:
    if len(arguments) == 2:
        asyncio.run(SCENES[arguments[0]](arguments[1]))
        return
    (directory,) = map(Path, arguments)
    directory.mkdir(parents=True, exist_ok=True)
    for name in SCENES:
        for old in directory.glob(f"{name}.db*"):
            old.unlink()
        command = [sys.executable, "-m", __spec__.name, name, str(directory / f"{name}.db")]
        print(name, subprocess.run(command, check=False).returncode)
    for shared in directory.glob("*-shm"):
        shared.unlink()


if __name__ == "__main__":
    main(sys.argv[1:])
