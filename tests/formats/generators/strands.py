"""Makes the session folders of Strands Agents: agents with a model that plays a part, killed inside a tool.

    python -m tests.formats.generators.strands DIRECTORY

Needs strands-agents. Each scene runs in a process of its own, since most of them end by being killed.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from strands import Agent, tool
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.hooks import BeforeToolCallEvent
from strands.models.model import Model
from strands.session.file_session_manager import FileSessionManager

Line = str | list[tuple[str, str, dict[str, Any]]]


class Played(Model):
    """A model that plays its lines one after the other: a text, or calls of (id, name, arguments)."""

    def __init__(self, lines: Sequence[Line]) -> None:
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
        for id, name, arguments in line:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": id, "name": name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": _json(arguments)}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use"}}


def _json(arguments: dict[str, Any]) -> str:
    return "{" + ", ".join(f'"{name}": {value!r}'.replace("'", '"') for name, value in arguments.items()) + "}"


LOOK: Line = [("look_1", "look", {"item": "price"})]
PAIR: Line = [("look_2", "look", {"item": "stock"}), ("look_3", "look", {"item": "fee"})]
CHARGE: Line = [("charge_1", "charge", {"amount": 5})]
BESIDE: Line = [("look_4", "look", {"item": "limit"}), ("charge_1", "charge", {"amount": 5})]
HEALTHY: list[Line] = [LOOK, "It is 5.", PAIR, "Both are 5."]


@tool
def look(item: str) -> str:
    """Look something up."""
    return f"{item}: 5"


@tool
async def charge(amount: int) -> str:
    """Charge an amount, in a process that is gone while it does."""
    await asyncio.sleep(0.3)  # the sibling ends first
    if amount:
        os._exit(9)
    return "nothing to charge"


def agent(model: Played, directory: str, **more: Any) -> Agent:
    session = FileSessionManager("s1", storage_dir=directory)
    return Agent(
        model=model, tools=[look, charge], session_manager=session, agent_id="a1", callback_handler=None, **more
    )


def talk(directory: str, lines: list[Line], *texts: str, **more: Any) -> None:
    speaker = agent(Played(lines), directory, **more)
    for text in texts:
        speaker(text)


def healthy(directory: str) -> None:
    talk(directory, HEALTHY, "what is the price?", "and stock and fee?")


def single(directory: str) -> None:
    talk(directory, [CHARGE], "charge it")


def sibling(directory: str) -> None:
    talk(directory, [LOOK, "It is 5.", BESIDE], "what is the price?", "look, then charge it")


def restarted(directory: str) -> None:
    """Gone on with as it is: the SDK answers both calls."""
    _gone(sibling, directory)
    talk(directory, ["I am sorry."], "what came of it?")


def trimmed(directory: str) -> None:
    """Killed in a call whose messages the window has not left; those before them are no longer in it."""
    window = SlidingWindowConversationManager(window_size=4, per_turn=True)
    talk(
        directory,
        [*HEALTHY, CHARGE],
        "what is the price?",
        "and stock and fee?",
        "charge it",
        conversation_manager=window,
    )


def waiting(directory: str) -> None:
    """Stopped for a person before one of two calls, whose sibling has run."""
    speaker = agent(Played([BESIDE]), directory)
    speaker.add_hook(_asks_a_person, BeforeToolCallEvent)
    speaker("look, then charge it")


def agreed(directory: str) -> None:
    """A person has agreed to the call, and the process was killed in its body."""
    speaker = agent(Played([BESIDE]), directory)
    speaker.add_hook(_asks_a_person, BeforeToolCallEvent)
    stopped = speaker("look, then charge it")
    asked = agent(Played(["It is charged."]), directory)
    asked.add_hook(_asks_a_person, BeforeToolCallEvent)
    asked([{"interruptResponse": {"interruptId": one.id, "response": "yes"}} for one in stopped.interrupts])


def _asks_a_person(event: BeforeToolCallEvent) -> None:
    if event.tool_use["name"] == "charge":
        event.interrupt("approval", reason="charge 5?")


SCENES = {one.__name__: one for one in (healthy, single, sibling, restarted, trimmed, waiting, agreed)}


def _gone(scene: Any, directory: str) -> None:
    command = [sys.executable, "-m", __spec__.name, scene.__name__, directory]
    assert subprocess.run(command, check=False).returncode == 9


def main(arguments: list[str]) -> None:
    if len(arguments) == 2:
        SCENES[arguments[0]](arguments[1])
        return
    (directory,) = map(Path, arguments)
    for name in SCENES:
        shutil.rmtree(directory / name, ignore_errors=True)
        command = [sys.executable, "-m", __spec__.name, name, str(directory / name)]
        print(name, subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
