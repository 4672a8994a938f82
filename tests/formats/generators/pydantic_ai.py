"""Makes the message histories of Pydantic AI: agents with a model that plays a part, killed inside a tool.

    python -m tests.formats.generators.pydantic_ai DIRECTORY

Needs pydantic-ai-slim. The application saves its history after each step, as the library leaves it to the application.
Each scene runs in a process of its own, since some end by being killed.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationEntry, ConversationRecord, InMemoryConversationStore
from pydantic_ai.exceptions import ApprovalRequired, ModelRetry
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    repair_messages,
)
from pydantic_ai.models.function import FunctionModel


class Played:
    """A model that plays its lines one after the other."""

    def __init__(self, lines: Sequence[list[Any]]) -> None:
        self.lines = list(lines)
        self.seen: list[list[ModelMessage]] = []

    async def __call__(self, messages: list[ModelMessage], _info: object) -> ModelResponse:
        self.seen.append(list(messages))
        return ModelResponse(parts=self.lines.pop(0))


def call(id: str, name: str, args: Any) -> ToolCallPart:
    return ToolCallPart(tool_name=name, args=args, tool_call_id=id)


PAIR = [call("call_look", "look", {"item": "price"}), call("call_charge", "charge", '{"amount":5}')]
LINES = [
    [call("call_1", "look", {"item": "price"})],
    [TextPart("It is 5.")],
    [call("call_2", "look", {"item": "nothing"}), call("call_3", "look", '{"item":"fee"}')],
    [TextPart("One is 5.")],
]


def agent(played: Played) -> Agent[None, Any]:
    made: Agent[None, Any] = Agent(FunctionModel(played), output_type=[str, DeferredToolRequests])

    @made.tool_plain
    def look(item: str) -> str:
        """Look something up."""
        if item == "nothing":
            raise ModelRetry("there is no such thing")
        return f"{item}: 5"

    @made.tool_plain
    def charge(amount: int) -> str:
        """Charge an amount, in a process that is killed while it does."""
        time.sleep(0.3)  # the sibling ends first
        os.kill(os.getpid(), signal.SIGKILL)
        return f"charged {amount}"

    @made.tool_plain
    def confirm(amount: int) -> str:
        """Charge an amount that a person has to confirm."""
        raise ApprovalRequired(metadata={"amount": amount})

    return made


async def talk(path: Path, played: Played, *texts: str) -> None:
    """Run, and save after each step."""
    history: list[ModelMessage] = []
    for text in texts:
        async with agent(played).iter(text, message_history=history) as run:
            async for _ in run:
                path.write_bytes(ModelMessagesTypeAdapter.dump_json(run.all_messages(), indent=1))
        history = run.all_messages()
    path.write_bytes(ModelMessagesTypeAdapter.dump_json(history, indent=1))


async def healthy(path: Path) -> None:
    await talk(path, Played(LINES), "what is the price?", "and the rest?")


async def single(path: Path) -> None:
    await talk(path, Played([*LINES, [PAIR[1]]]), "what is the price?", "and the rest?", "charge 5")


async def sibling(path: Path) -> None:
    """Killed beside a call that had finished: the library gives the application both results at once."""
    await talk(path, Played([PAIR]), "look, then charge 5")


async def synthesized(path: Path) -> None:
    """What the library's own repair makes of the history of a killed agent."""
    lost = subprocess.run([sys.executable, "-m", __spec__.name, "sibling", str(path)], check=False)
    assert lost.returncode == -signal.SIGKILL
    found = repair_messages(ModelMessagesTypeAdapter.validate_json(path.read_bytes()))
    path.write_bytes(ModelMessagesTypeAdapter.dump_json(found, indent=1))


async def deferred(path: Path) -> None:
    """A conversation that waits for an approval, serialised whole."""
    played = Played([[PAIR[0], call("call_confirm", "confirm", {"amount": 5})]])
    done = await agent(played).run("charge 5 if I confirm")
    path.write_bytes(TypeAdapter(Conversation).dump_json(done.conversation, indent=1))


async def store(path: Path) -> None:
    """A conversation store with a line that was left; the application writes entries and record to a file."""
    kept = InMemoryConversationStore()
    conversation = Conversation(conversation_id="c")
    for played, text in ((Played(LINES[:2]), "what is the price?"), (Played([[TextPart("Bye.")]]), "bye")):
        done = await agent(played).run(text, conversation=conversation)
        await kept.save(done)
        loaded = await kept.load("c")
        assert loaded is not None
        conversation = loaded
    entries = await kept.load_entries("c")
    assert entries is not None
    await kept.branch("c", from_entry=entries[-3].id, expected_revision=conversation.revision)
    loaded = await kept.load("c")
    assert loaded is not None
    async with agent(Played([PAIR])).iter("look, then charge 5", conversation=loaded) as run:
        async for node in run:
            if Agent.is_call_tools_node(node):
                loaded.messages = run.all_messages()
                await kept.save(loaded)
                written(path, kept, await kept.read_record("c"))


def written(path: Path, kept: Any, record: Any) -> None:
    entries = TypeAdapter(list[ConversationEntry]).dump_python(list(kept._entries.values()), mode="json")
    told = TypeAdapter(ConversationRecord).dump_python(record, mode="json")
    path.write_text(json.dumps({"record": told, "entries": entries}, indent=1))


SCENES = {one.__name__: one for one in (healthy, single, sibling, synthesized, deferred, store)}


def main(arguments: list[str]) -> None:
    if len(arguments) == 2:
        asyncio.run(SCENES[arguments[0]](Path(arguments[1])))
        return
    (directory,) = map(Path, arguments)
    directory.mkdir(parents=True, exist_ok=True)
    for name in SCENES:
        command = [sys.executable, "-m", __spec__.name, name, str(directory / f"{name}.json")]
        print(name, subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
