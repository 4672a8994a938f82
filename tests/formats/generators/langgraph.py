"""Makes the LangGraph databases of the tests: agents with a model that plays a part, killed inside a tool.

    python -m tests.formats.generators.langgraph DIRECTORY

Needs langgraph, langchain, langgraph-checkpoint-sqlite and langgraph-checkpoint-postgres. Each scene runs in a process
of its own, since most of them end by being killed.
"""

import json
import operator
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

import psycopg
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.base import MIGRATIONS
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import create_react_agent
from langgraph.types import Command, interrupt
from pydantic import Field

from tests.store.server import running_server


class Played(BaseChatModel):
    """A model that plays its lines one after the other."""

    lines: list[AIMessage]
    seen: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "played"

    def bind_tools(self, _tools: object, **_: object) -> "Played":
        return self

    def _generate(self, messages: list[BaseMessage], *_: object, **__: object) -> ChatResult:
        self.seen.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=self.lines.pop(0))])


def asks(*calls: tuple[str, str, dict[str, Any]]) -> AIMessage:
    """A line that asks for calls of (id, name, arguments)."""
    found = [{"id": id, "name": name, "args": args, "type": "tool_call"} for id, name, args in calls]
    return AIMessage(content="", tool_calls=found)


def says(text: str) -> AIMessage:
    return AIMessage(content=text)


@tool
def look(item: str) -> str:
    """Look something up."""
    return f"{item}: 5"


@tool
def charge(amount: int) -> str:
    """Charge an amount, in a process that is killed while it does."""
    time.sleep(0.5)  # the sibling ends first
    os.kill(os.getpid(), signal.SIGKILL)
    return f"charged {amount}"


@tool
def confirm(amount: int) -> str:
    """Charge an amount that a person has to confirm."""
    answer = interrupt({"charge": amount})
    if answer == "die":
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    return f"charged {amount}: {answer}"


@tool
def fail(amount: int) -> str:
    """Fail after the charge."""
    raise RuntimeError(f"the line broke after {amount}")


TOOLS = (look, charge, confirm, fail)


@contextmanager
def saver(place: str | Path) -> Iterator[Any]:
    """The saver of a database: the path of a SQLite file, or the URL of a server."""
    if str(place).startswith("postgresql:"):
        with PostgresSaver.from_conn_string(str(place)) as made:
            made.setup()
            yield made
    else:
        with SqliteSaver.from_conn_string(str(place)) as saved:
            yield saved


def agent(lines: Sequence[AIMessage], saved: Any) -> Any:
    return create_agent(Played(lines=list(lines)), list(TOOLS), checkpointer=saved)


def talk(graph: Any, thread: str, text: str) -> None:
    graph.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": thread}}, durability="sync")


PAIR = asks(("call_look", "look", {"item": "price"}), ("call_charge", "charge", {"amount": 5}))


def healthy(place: str) -> None:
    with saver(place) as saved:
        lines = [
            asks(("call_1", "look", {"item": "price"})),
            says("It is 5."),
            asks(("call_2", "look", {"item": "stock"}), ("call_3", "look", {"item": "fee"})),
            says("Both are 5."),
        ]
        graph = agent(lines, saved)
        talk(graph, "healthy", "what is the price?")
        talk(graph, "healthy", "and stock and fee?")
        talk(agent([says("Hello.")], saved), "other", "hi")


def single(place: str) -> None:
    with saver(place) as saved:
        talk(agent([asks(("call_charge", "charge", {"amount": 5}))], saved), "single", "charge 5")


def sibling(place: str) -> None:
    with saver(place) as saved:
        talk(agent([PAIR], saved), "sibling", "look, then charge 5")


def abandoned(place: str) -> None:
    """A new question after the kill: the result of the sibling is dropped."""
    lost = subprocess.run([sys.executable, "-m", __spec__.name, "sibling", place], check=False)
    assert lost.returncode == -signal.SIGKILL
    with saver(place) as saved:
        talk(agent([says("Hello again.")], saved), "sibling", "are you there?")


def waiting(place: str) -> None:
    with saver(place) as saved:
        lines = [asks(("call_look", "look", {"item": "price"}), ("call_confirm", "confirm", {"amount": 5}))]
        talk(agent(lines, saved), "waiting", "charge 5 if I confirm")


def resumed(place: str) -> None:
    """Killed after the person's answer."""
    waiting(place)
    with saver(place) as saved:
        agent([], saved).invoke(Command(resume="die"), {"configurable": {"thread_id": "waiting"}}, durability="sync")


def failed(place: str) -> None:
    with saver(place) as saved:
        lines = [asks(("call_look", "look", {"item": "price"}), ("call_fail", "fail", {"amount": 5}))]
        try:
            talk(agent(lines, saved), "failed", "charge 5")
        except RuntimeError:
            return
        raise AssertionError("the tool did not fail")


def forked(place: str) -> None:
    """A second line from the past: the unanswered call stands on the line that was left."""
    lost = subprocess.run([sys.executable, "-m", __spec__.name, "single", place], check=False)
    assert lost.returncode == -signal.SIGKILL
    with saver(place) as saved:
        graph = agent([says("Let us not.")], saved)
        first = list(graph.get_state_history({"configurable": {"thread_id": "single"}}))[-2]
        graph.invoke(None, first.config, durability="sync")


def edited(place: str) -> None:
    """A second line with the model's message changed, which keeps its id: the call that was killed is on the first."""
    lost = subprocess.run([sys.executable, "-m", __spec__.name, "single", place], check=False)
    assert lost.returncode == -signal.SIGKILL
    with saver(place) as saved:
        graph = agent([says("It is 5.")], saved)
        leaf, before = list(graph.get_state_history({"configurable": {"thread_id": "single"}}))[:2]
        changed = asks(("call_look", "look", {"item": "price"}))
        changed.id = leaf.values["messages"][-1].id
        told = graph.update_state(before.config, {"messages": [changed]}, as_node="model")
        graph.invoke(None, told, durability="sync")


def node(place: str) -> None:
    """An agent whose tools all run in one task, as older ones did."""
    with saver(place) as saved:
        graph = create_react_agent(Played(lines=[PAIR]), list(TOOLS), checkpointer=saved, version="v1")
        talk(graph, "node", "look, then charge 5")


def at_exit(place: str) -> None:
    """An agent that saves when a run ends: killed in its second run."""
    with saver(place) as saved:
        told: Any = {"configurable": {"thread_id": "at_exit"}}
        look_first = [asks(("call_look", "look", {"item": "price"})), says("It is 5.")]
        again = [asks(("call_more", "look", {"item": "fee"})), says("It is 5, too.")]
        lost = [asks(("call_charge", "charge", {"amount": 5}))]
        graph = agent([*look_first, *again, *lost], saved)
        for text in ("what is the price?", "and the fee?", "charge 5"):
            graph.invoke({"messages": [("user", text)]}, told, durability="exit")


class Plain(TypedDict):
    messages: Annotated[list[BaseMessage], add_messages]
    notes: Annotated[list[str], operator.add]


def subgraph(place: str) -> None:
    """An agent inside a graph, killed in its tool."""
    with saver(place) as saved:
        inner = create_agent(Played(lines=[PAIR]), list(TOOLS))
        outer = StateGraph(Plain)
        outer.add_node("helper", inner)
        outer.add_edge(START, "helper")
        outer.add_edge("helper", END)
        talk(outer.compile(checkpointer=saved), "subgraph", "look, then charge 5")


def functional(place: str) -> None:
    """An entrypoint whose tasks are the model and the tools: a run that ends, and one that is killed."""
    played = Played(lines=[asks(("call_1", "look", {"item": "price"})), PAIR])

    @task
    def model(messages: list[BaseMessage]) -> BaseMessage:
        return played.invoke(messages)

    @task
    def act(call: dict[str, Any]) -> Any:
        return {"look": look, "charge": charge}[call["name"]].invoke(call)

    with saver(place) as saved:

        @entrypoint(checkpointer=saved)
        def app(messages: list[BaseMessage], *, previous: Any = None) -> Any:
            before = add_messages(previous or [], messages)
            asked = model(before).result()
            results = [act(call) for call in asked.tool_calls]
            return add_messages(before, [asked, *(result.result() for result in results)])

        told: Any = {"configurable": {"thread_id": "functional"}}
        for text in ("what is the price?", "look, then charge 5"):
            app.invoke([HumanMessage(text)], told, durability="sync")


SCENES = {
    scene.__name__: scene
    for scene in (
        healthy,
        single,
        sibling,
        abandoned,
        waiting,
        resumed,
        failed,
        forked,
        edited,
        subgraph,
        node,
        at_exit,
        functional,
    )
}


def run(scene: str, place: str) -> None:
    """Play a scene in a process of its own."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", __spec__.name, scene, place], check=False)
    print(scene, done.returncode)


def tables(url: str) -> dict[str, Any]:
    """The tables of the PostgreSQL saver, as what makes and fills them again."""
    found: dict[str, Any] = {"made": [made for made in MIGRATIONS if "CONCURRENTLY" not in made], "filled": {}}
    with psycopg.connect(url) as connection:
        for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
            with connection.cursor().copy(f"COPY {table} TO STDOUT") as copy:
                found["filled"][table] = b"".join(copy).decode()
    return found


def main(arguments: list[str]) -> None:
    if len(arguments) == 2:
        SCENES[arguments[0]](arguments[1])
        return
    (directory,) = map(Path, arguments)
    directory.mkdir(parents=True, exist_ok=True)
    for name in SCENES:
        for old in directory.glob(f"{name}.db*"):
            old.unlink()
        run(name, str(directory / f"{name}.db"))
    for shared in directory.glob("*-shm"):
        shared.unlink()
    with running_server() as server:
        for name in ("healthy", "single", "abandoned", "resumed", "failed"):
            run(name, server.url())
        (directory / "postgres.json").write_text(json.dumps(tables(server.url()), indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
