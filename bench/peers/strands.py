"""Strands Agents: FileSessionManager, one file a message."""

import json
from collections.abc import AsyncIterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from strands import Agent
from strands.models.model import Model
from strands.session.file_session_manager import FileSessionManager
from strands.tools.decorator import tool
from strands.types.session import SessionMessage

from bench.peers.work import DONE, TOOLS, Peer, acted_async, spent, text


class _Played(Model):
    def __init__(self, *lines: str | Sequence[str]) -> None:
        self.lines = list(lines)
        self.seen: list[Any] = []

    def update_config(self, **_: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        self.seen.append(deepcopy(messages))
        line = self.lines.pop(0)
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(line, str):
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": line}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}
            return
        for name in line:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": f"call_{name}", "name": name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use"}}


class File(Peer):
    """FileSessionManager."""

    name = "Strands, FileSessionManager"
    package = "strands-agents"

    def agent(self, folder: Path, model: _Played | None = None) -> tuple[Any, FileSessionManager]:
        manager = FileSessionManager("s", storage_dir=str(folder))
        tools: Any = [_tool(folder, name) for name in TOOLS]
        played = model or _Played()
        return Agent(model=played, tools=tools, session_manager=manager, agent_id="a", callback_handler=None), manager

    def fill(self, folder: Path, count: int) -> None:
        _, manager = self.agent(folder)
        for number in range(count):
            manager.create_message("s", "a", SessionMessage.from_message(_message(number), number))

    def append(self, folder: Path, times: int) -> list[float]:
        agent, manager = self.agent(folder)
        return spent(lambda number: manager.append_message(_message(number), agent), times)

    def load(self, folder: Path) -> int:
        return len(self.agent(folder)[0].messages)

    def play(self, folder: Path) -> None:
        self.agent(folder, _Played(TOOLS))[0]("look, charge, and mail")

    def resume(self, folder: Path) -> str:
        played = _Played(DONE)
        self.agent(folder, played)[0]("go on")
        blocks = [block for message in played.seen[-1] for block in message["content"]]
        results = [block["toolResult"] for block in blocks if "toolResult" in block]
        if not results:
            return "nothing: the calls are not shown to the model"
        said = {result["toolUseId"].removeprefix("call_"): result["content"][0]["text"] for result in results}
        return f"the model sees {json.dumps(said)}"


def _message(number: int) -> Any:
    return {"role": "user", "content": [{"text": text(number)}]}


def _tool(folder: Path, name: str) -> Any:
    async def body() -> str:
        return await acted_async(folder, name)

    body.__doc__ = name
    return tool(name=name)(body)


PEERS = {"file": File}
