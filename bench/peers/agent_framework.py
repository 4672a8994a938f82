"""Microsoft Agent Framework: FileHistoryProvider, one line a message."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    FileHistoryProvider,
    FunctionInvocationLayer,
    FunctionTool,
    Message,
)

from bench.peers.work import DONE, TOOLS, Peer, acted_async, spent_async, text


class _Played(FunctionInvocationLayer, BaseChatClient):
    def __init__(self, lines: Sequence[Message]) -> None:
        super().__init__()
        self.lines = list(lines)
        self.seen: list[Any] = []

    async def _inner_get_response(self, *, messages: Any, **_: Any) -> ChatResponse:
        self.seen.append(list(messages))
        return ChatResponse(messages=[self.lines.pop(0)], response_id="played")


class File(Peer):
    """FileHistoryProvider."""

    name = "Agent Framework, FileHistoryProvider"
    package = "agent-framework-core"

    def fill(self, folder: Path, count: int) -> None:
        asyncio.run(FileHistoryProvider(folder).save_messages("s", [_message(number) for number in range(count)]))

    def append(self, folder: Path, times: int) -> list[float]:
        provider = FileHistoryProvider(folder)
        # one that says the same as an earlier one is taken for that one
        first = sum(1 for path in folder.glob("*.jsonl") for _ in path.open())
        return spent_async(lambda number: provider.save_messages("s", [_message(first + number)]), times)

    def load(self, folder: Path) -> int:
        return len(asyncio.run(FileHistoryProvider(folder).get_messages("s")))

    def play(self, folder: Path) -> None:
        calls = [Content.from_function_call(f"call_{name}", name, arguments="{}") for name in TOOLS]
        self.say(folder, [Message("assistant", calls)], "look, charge, and mail")

    def resume(self, folder: Path) -> str:
        seen = self.say(folder, [Message("assistant", [DONE])], "go on")
        contents = [content for message in seen[-1] for content in message.contents]
        if not any(content.type == "function_call" for content in contents):
            return f"nothing: the model sees {[content.text for content in contents]}"
        return f"the model sees {[content.type for content in contents]}"

    def say(self, folder: Path, lines: Sequence[Message], words: str) -> list[Any]:
        played: Any = _Played(lines)

        async def run() -> None:
            tools: Any = [FunctionTool(name=name, description=name, func=_tool(folder, name)) for name in TOOLS]
            agent: Any = Agent(played, tools=tools, context_providers=[FileHistoryProvider(folder / "kept")])
            await agent.run(words, session=agent.create_session(session_id="crash"))

        asyncio.run(run())
        seen: list[Any] = played.seen
        return seen


def _message(number: int) -> Message:
    return Message("user", [text(number)])


def _tool(folder: Path, name: str) -> Any:
    async def body() -> str:
        return await acted_async(folder, name)

    return body


PEERS = {"file": File}
