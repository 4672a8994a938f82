"""OpenAI Agents SDK: SQLiteSession, one item a message."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from agents import Agent, FunctionTool, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.memory import SQLiteSession
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from bench.peers.work import DONE, TOOLS, Peer, acted_async, spent_async, text

set_tracing_disabled(disabled=True)


class _Played(Model):
    def __init__(self, *lines: Sequence[Any]) -> None:
        self.lines = list(lines)
        self.seen: list[Any] = []

    async def get_response(self, system_instructions: object, input: Any, *_: object, **__: object) -> ModelResponse:
        del system_instructions
        self.seen.append(input)
        return ModelResponse(output=list(self.lines.pop(0)), usage=Usage(), response_id=None)

    def stream_response(self, *_: object, **__: object) -> AsyncIterator[Any]:
        raise NotImplementedError


class Sqlite(Peer):
    """SQLiteSession."""

    name = "OpenAI Agents SDK, SQLiteSession"
    package = "openai-agents"

    def session(self, folder: Path) -> Any:
        return SQLiteSession("s", folder / "session.db")

    def fill(self, folder: Path, count: int) -> None:
        session = self.session(folder)
        asyncio.run(session.add_items([_item(number) for number in range(count)]))
        session.close()

    def append(self, folder: Path, times: int) -> list[float]:
        session = self.session(folder)
        found = spent_async(lambda number: session.add_items([_item(number)]), times)
        session.close()
        return found

    def load(self, folder: Path) -> int:
        session = self.session(folder)
        found = asyncio.run(session.get_items())
        session.close()
        return len(found)

    def play(self, folder: Path) -> None:
        calls = [
            ResponseFunctionToolCall(type="function_call", call_id=f"call_{name}", name=name, arguments="{}")
            for name in TOOLS
        ]
        asyncio.run(Runner.run(_agent(folder, _Played(calls)), "look, charge, and mail", session=self.session(folder)))

    def resume(self, folder: Path) -> str:
        content = [ResponseOutputText(type="output_text", text=DONE, annotations=[])]
        said: Any = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": content}
        played = _Played([ResponseOutputMessage(**said)])
        asyncio.run(Runner.run(_agent(folder, played), "go on", session=self.session(folder)))
        kinds = [item.get("type", item.get("role")) for item in played.seen[-1]]
        if "function_call" not in kinds:
            return "nothing: neither the calls nor the results that had come are in the session"
        return f"the model sees {kinds}"


def _item(number: int) -> Any:
    return {"role": "user", "content": text(number)}


def _agent(folder: Path, model: _Played) -> Any:
    return Agent(name="agent", model=model, tools=[_tool(folder, name) for name in TOOLS])


def _tool(folder: Path, name: str) -> FunctionTool:
    async def body(_context: object, _arguments: str) -> str:
        return await acted_async(folder, name)

    schema: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False, "required": []}
    return FunctionTool(name=name, description=name, params_json_schema=schema, on_invoke_tool=body)


PEERS = {"sqlite": Sqlite}
