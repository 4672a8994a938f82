"""Makes the conversation folders of the OpenHands SDK: agents with a model that plays a part, killed inside a tool.

    python -m tests.formats.generators.openhands DIRECTORY

Needs openhands-sdk, and with it Python 3.12. Each scene runs in a process of its own, since most of them end by being
killed. Where the folder of the work is named in what is written, it is replaced by one of no machine.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

os.environ |= {"OPENHANDS_SUPPRESS_BANNER": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

from openhands.sdk import Agent, Conversation, Tool
from openhands.sdk.hooks import HookConfig
from openhands.sdk.llm import Message, MessageToolCall, TextContent
from openhands.sdk.security.confirmation_policy import AlwaysConfirm
from openhands.sdk.testing import TestLLM
from openhands.sdk.tool import Action, Observation, ToolDefinition, ToolExecutor, register_tool
from pydantic import PrivateAttr

ID = UUID("00000000-0000-4000-8000-000000000001")
WORKSPACE = "/workspace"
PROMPT = "You look things up and charge amounts."

Line = str | list[tuple[str, str, dict[str, Any]]]
LOOK: Line = [("look_1", "look", {"item": "price"})]
PAIR: Line = [("look_2", "look", {"item": "stock"}), ("look_3", "look", {"item": "fee"})]
CHARGE: Line = [("charge_1", "charge", {"amount": 5})]
BESIDE: Line = [("look_4", "look", {"item": "limit"}), ("charge_1", "charge", {"amount": 5})]
HEALTHY: list[Line] = [LOOK, "It is 5.", PAIR, "Both are 5."]


class LookAction(Action):
    item: str


class ChargeAction(Action):
    amount: int


class SaidObservation(Observation):
    pass


class LookExecutor(ToolExecutor):
    def __call__(self, action: Any, conversation: Any = None) -> Any:
        del conversation
        return SaidObservation.from_text(f"{action.item}: 5")


class ChargeExecutor(ToolExecutor):
    def __call__(self, action: Any, conversation: Any = None) -> Any:
        del conversation
        time.sleep(0.5)  # the sibling ends first
        if action.amount:
            os._exit(9)
        return SaidObservation.from_text("nothing to charge")


class LookTool(ToolDefinition):
    name = "look"

    @classmethod
    def create(cls, *_: Any, **__: Any) -> Sequence[Any]:
        about = "Look something up."
        made = cls(description=about, action_type=LookAction, observation_type=SaidObservation, executor=LookExecutor())
        return [made]


class ChargeTool(ToolDefinition):
    name = "charge"

    @classmethod
    def create(cls, *_: Any, **__: Any) -> Sequence[Any]:
        about = "Charge an amount, in a process that is gone while it does."
        made = cls(
            description=about, action_type=ChargeAction, observation_type=SaidObservation, executor=ChargeExecutor()
        )
        return [made]


register_tool("LookTool", LookTool)
register_tool("ChargeTool", ChargeTool)


class Played(TestLLM):
    """A model that plays its lines one after the other, and keeps what it is asked."""

    _seen: list[Any] = PrivateAttr(default_factory=list)

    def completion(self, messages: Any, *arguments: Any, **more: Any) -> Any:
        self._seen.append([message.model_copy(deep=True) for message in messages])
        return super().completion(messages, *arguments, **more)


def played(lines: Sequence[Line]) -> Any:
    return Played.from_messages([_message(line) for line in lines])


def _message(line: Line) -> Message:
    if isinstance(line, str):
        return Message(role="assistant", content=[TextContent(text=line)])
    calls = [
        MessageToolCall(id=id, name=name, arguments=json.dumps(arguments), origin="completion")
        for id, name, arguments in line
    ]
    return Message(role="assistant", content=[TextContent(text="")], tool_calls=calls)


def conversation(model: Any, directory: str, **more: Any) -> Any:
    tools = [Tool(name="LookTool"), Tool(name="ChargeTool")]
    agent = Agent(llm=model, tools=tools, include_default_tools=[], tool_concurrency_limit=4, system_prompt=PROMPT)
    return Conversation(
        agent=agent,
        workspace=str(Path(directory).parent / "workspace"),
        persistence_dir=directory,
        conversation_id=ID,
        visualizer=None,
        delete_on_close=False,
        **more,
    )


def talk(directory: str, lines: Sequence[Line], *texts: str, **more: Any) -> Any:
    spoken = conversation(played(lines), directory, **more)
    for text in texts:
        spoken.send_message(text)
        spoken.run()
    return spoken


def healthy(directory: str) -> None:
    talk(directory, HEALTHY, "what is the price?", "and stock and fee?")


def single(directory: str) -> None:
    talk(directory, [CHARGE], "charge it")


def sibling(directory: str) -> None:
    talk(directory, [LOOK, "It is 5.", BESIDE], "what is the price?", "look, then charge it")


def branched(directory: str) -> None:
    """Gone on with as it is, behind calls that were killed: the branch begins before them."""
    command = [sys.executable, "-m", __spec__.name, "sibling", directory]
    subprocess.run(command, check=False)
    talk(directory, ["I am sorry."], "what came of it?")


def hooked(directory: str) -> None:
    """Hooks of the user have run before the calls, and after the one that finished."""
    hook = [{"matcher": "*", "hooks": [{"command": "true"}]}]
    hooks = HookConfig.from_dict({"PreToolUse": hook, "PostToolUse": hook})
    talk(directory, [LOOK, "It is 5.", CHARGE], "what is the price?", "charge it", hook_config=hooks)


def confirming(directory: str) -> None:
    """A call that waits until a person agrees to it."""
    spoken = conversation(played([CHARGE]), directory)
    spoken.set_confirmation_policy(AlwaysConfirm())
    spoken.send_message("charge it")
    spoken.run()


def agreed(directory: str) -> None:
    """A call that a person has agreed to, killed in its body."""
    spoken = conversation(played([CHARGE]), directory)
    spoken.set_confirmation_policy(AlwaysConfirm())
    spoken.send_message("charge it")
    spoken.run()
    spoken.run()  # that is how a person agrees


def failed(directory: str) -> None:
    """A call whose arguments do not fit, which is answered by an error, and one that does not exist."""
    lines: list[Line] = [[("charge_1", "charge", {"sum": 5}), ("pay_1", "pay", {})], "I am sorry."]
    talk(directory, lines, "charge it")


SCENES = {one.__name__: one for one in (healthy, single, sibling, branched, hooked, confirming, agreed, failed)}


def main(arguments: list[str]) -> None:
    if len(arguments) == 2:
        SCENES[arguments[0]](arguments[1])
        return
    (directory,) = map(Path, arguments)
    directory.mkdir(parents=True, exist_ok=True)
    for name in SCENES:
        with tempfile.TemporaryDirectory() as work:
            command = [sys.executable, "-m", __spec__.name, name, str(Path(work, "conversations"))]
            print(name, subprocess.run(command, check=False).returncode)
            for path in Path(work).rglob("*.json"):
                path.write_text(path.read_text().replace(f"{work}/workspace", WORKSPACE).replace(work, WORKSPACE))
            shutil.rmtree(directory / name, ignore_errors=True)
            shutil.copytree(Path(work, "conversations"), directory / name)


if __name__ == "__main__":
    main(sys.argv[1:])
