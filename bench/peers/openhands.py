"""OpenHands: the event log of a conversation, one file an event."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

os.environ |= {"OPENHANDS_SUPPRESS_BANNER": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

from openhands.sdk import Agent, Conversation, Tool
from openhands.sdk.conversation.event_store import EventLog
from openhands.sdk.event import MessageEvent
from openhands.sdk.io import LocalFileStore
from openhands.sdk.llm import Message, MessageToolCall, TextContent
from openhands.sdk.testing import TestLLM
from openhands.sdk.tool import Action, Observation, ToolDefinition, ToolExecutor, register_tool
from pydantic import PrivateAttr

from bench.peers.work import DONE, TOOLS, Peer, acted, spent, text

ID = UUID("00000000-0000-4000-8000-000000000001")
_folder = Path()


class LookAction(Action):
    """Nothing is needed."""


class ChargeAction(Action):
    """Nothing is needed."""


class MailAction(Action):
    """Nothing is needed."""


class SaidObservation(Observation):
    """What a tool returned."""


class Acted(ToolExecutor):
    """The body of all three."""

    def __init__(self, name: str) -> None:
        self.named = name

    def __call__(self, action: Any, conversation: Any = None) -> Any:
        del action, conversation
        return SaidObservation.from_text(acted(_folder, self.named))


class _Made(ToolDefinition):
    @classmethod
    def create(cls, *_: Any, **__: Any) -> Sequence[Any]:
        action = {"look": LookAction, "charge": ChargeAction, "mail": MailAction}[cls.name]
        made = cls(description=cls.name, action_type=action, observation_type=SaidObservation, executor=Acted(cls.name))
        return [made]


class LookTool(_Made):
    """Look."""

    name = "look"


class ChargeTool(_Made):
    """Charge."""

    name = "charge"


class MailTool(_Made):
    """Mail."""

    name = "mail"


for _tool in (LookTool, ChargeTool, MailTool):
    register_tool(_tool.__name__, _tool)


class Played(TestLLM):
    """A model that plays its lines one after the other, and keeps what it is asked."""

    _seen: list[Any] = PrivateAttr(default_factory=list)

    def completion(self, messages: Any, *arguments: Any, **more: Any) -> Any:
        self._seen.append([message.model_copy(deep=True) for message in messages])
        return super().completion(messages, *arguments, **more)


class File(Peer):
    """EventLog on LocalFileStore."""

    name = "OpenHands, event log"
    package = "openhands-sdk"

    def log(self, folder: Path) -> Any:
        return EventLog(LocalFileStore(str(folder)))

    def fill(self, folder: Path, count: int) -> None:
        log = self.log(folder)
        for number in range(count):
            log.append(_event(number))

    def append(self, folder: Path, times: int) -> list[float]:
        log = self.log(folder)
        return spent(lambda number: log.append(_event(number)), times)

    def load(self, folder: Path) -> int:
        return len(list(self.log(folder)))

    def play(self, folder: Path) -> None:
        calls = [MessageToolCall(id=f"call_{n}", name=n, arguments=json.dumps({}), origin="completion") for n in TOOLS]
        asked = Message(role="assistant", content=[TextContent(text="")], tool_calls=calls)
        self.say(folder, Played.from_messages([asked]), "look, charge, and mail")

    def resume(self, folder: Path) -> str:
        played: Any = Played.from_messages([Message(role="assistant", content=[TextContent(text=DONE)])])
        self.say(folder, played, "go on")
        messages = played._seen[-1]
        called = [call.name for message in messages for call in message.tool_calls or ()]
        said = {message.name: message.content[0].text for message in messages if message.role == "tool"}
        return f"the model sees {json.dumps(said)}" if called else "nothing: the calls are not shown to the model"

    def say(self, folder: Path, model: Any, words: str) -> None:
        global _folder  # noqa: PLW0603 - the SDK makes the tools from their names
        _folder = folder
        tools = [Tool(name=one.__name__) for one in (LookTool, ChargeTool, MailTool)]
        agent = Agent(
            llm=model, tools=tools, include_default_tools=[], tool_concurrency_limit=4, system_prompt="You do things."
        )
        spoken = Conversation(
            agent=agent,
            workspace=str(folder / "workspace"),
            persistence_dir=str(folder / "kept"),
            conversation_id=ID,
            visualizer=None,
            delete_on_close=False,
        )
        spoken.send_message(words)
        spoken.run()


def _event(number: int) -> Any:
    return MessageEvent(source="user", llm_message=Message(role="user", content=[TextContent(text=text(number))]))


PEERS = {"file": File}
