"""LangGraph's checkpointers: each message a state update; the agent runs with `durability="sync"`."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from bench.peers.work import DONE, TOOLS, Peer, acted, spent, text


class _Played(BaseChatModel):
    lines: list[AIMessage]
    seen: list[list[BaseMessage]] = []  # noqa: RUF012 - a field, of which each model has its own

    @property
    def _llm_type(self) -> str:
        return "played"

    def bind_tools(self, _tools: object, **_: object) -> "_Played":
        return self

    def _generate(self, messages: list[BaseMessage], *_: object, **__: object) -> ChatResult:
        self.seen.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=self.lines.pop(0))])


class _LangGraph(Peer):
    package = "langgraph"

    def saver(self, folder: Path) -> AbstractContextManager[Any]:
        raise NotImplementedError

    @contextmanager
    def graph(self, folder: Path) -> Iterator[Any]:
        builder = StateGraph(MessagesState)
        builder.add_node("model", lambda state: state)
        builder.add_edge(START, "model")
        with self.saver(folder) as saver:
            yield builder.compile(checkpointer=saver)

    def fill(self, folder: Path, count: int) -> None:
        messages = [HumanMessage(text(number)) for number in range(count)]
        with self.graph(folder) as graph:
            graph.update_state(self.thread(folder), {"messages": messages})

    def append(self, folder: Path, times: int) -> list[float]:
        with self.graph(folder) as graph:
            thread = self.thread(folder)
            return spent(lambda n: graph.update_state(thread, {"messages": [HumanMessage(text(n))]}), times)

    def load(self, folder: Path) -> int:
        with self.graph(folder) as graph:
            return len(graph.get_state(self.thread(folder)).values["messages"])

    def thread(self, folder: Path) -> Any:
        return {"configurable": {"thread_id": f"{folder.parent.name}-{folder.name}"}}

    def play(self, folder: Path) -> None:
        calls: list[Any] = [{"id": f"call_{name}", "name": name, "args": {}, "type": "tool_call"} for name in TOOLS]
        with self.saver(folder) as saver:
            agent = _agent(folder, saver, _Played(lines=[AIMessage(content="", tool_calls=calls)]))
            asked: Any = {"messages": [("user", "look, charge, and mail")]}
            agent.invoke(asked, self.thread(folder), durability="sync")

    def resume(self, folder: Path) -> str:
        played = _Played(lines=[AIMessage(content=DONE)])
        with self.saver(folder) as saver:
            _agent(folder, saver, played).invoke(None, self.thread(folder), durability="sync")
        results = {seen.name: seen.content for seen in played.seen[-1] if isinstance(seen, ToolMessage)}
        return f"the tool is run again and nothing is said of it; the model sees charge: “{results['charge']}”"


def _agent(folder: Path, saver: Any, model: _Played) -> Any:
    return create_agent(model, [_tool(folder, name) for name in TOOLS], checkpointer=saver)


def _tool(folder: Path, name: str) -> StructuredTool:
    return StructuredTool.from_function(lambda: acted(folder, name), name=name, description=name)


class Sqlite(_LangGraph):
    """SqliteSaver."""

    name = "LangGraph, SqliteSaver"

    @contextmanager
    def saver(self, folder: Path) -> Iterator[Any]:
        with SqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
            yield saver


class Postgres(_LangGraph):
    """PostgresSaver."""

    name = "LangGraph, PostgresSaver"

    @contextmanager
    def saver(self, folder: Path) -> Iterator[Any]:
        del folder
        with PostgresSaver.from_conn_string(os.environ["TURNWAL_BENCH_URL"]) as saver:
            saver.setup()
            yield saver


PEERS = {"sqlite": Sqlite, "postgres": Postgres}
