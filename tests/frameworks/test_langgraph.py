"""Repaired copies in LangGraph itself: loaded, gone on with, and read as the model reads them."""

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import create_react_agent

from tests.formats.fixtures import repaired, taken
from tests.formats.generators.langgraph import TOOLS, Plain, Played, agent, saver, says
from turnwal.formats.wording import MARK, UNKNOWN_TEXT

pytestmark = pytest.mark.filterwarnings("ignore")

NAMES = {
    "single": "single",
    "sibling": "sibling",
    "abandoned": "sibling",
    "failed": "failed",
    "resumed": "waiting",
    "subgraph": "subgraph",
    "node": "node",
}
"""The scenes, with the thread of each."""


def copy_of(scene: str, directory: Path) -> Path:
    path, out = taken("langgraph", f"{scene}.db", directory), directory / "repaired.db"
    assert repaired(path, out).verdict == "clean"
    return out


def graph_of(scene: str, played: Played, saved: Any) -> Any:
    if scene == "node":
        return create_react_agent(played, list(TOOLS), checkpointer=saved, version="v1")
    if scene != "subgraph":
        return create_agent(played, list(TOOLS), checkpointer=saved)
    outer = StateGraph(Plain)
    outer.add_node("helper", create_agent(played, list(TOOLS)))
    outer.add_edge(START, "helper")
    outer.add_edge("helper", END)
    return outer.compile(checkpointer=saved)


def answered(messages: list[BaseMessage]) -> dict[str, ToolMessage]:
    """The results by call, each of which has to stand right behind the message that asks, in its order."""
    found: dict[str, ToolMessage] = {}
    for index, message in enumerate(messages):
        calls = [call["id"] for call in message.tool_calls] if isinstance(message, AIMessage) else []
        results = messages[index + 1 : index + 1 + len(calls)]
        for call, result in zip(calls, results, strict=True):
            assert isinstance(result, ToolMessage)
            assert result.tool_call_id == call
            found[str(call)] = result
    return found


@pytest.mark.parametrize("scene", NAMES)
def test_a_repaired_thread_goes_on_without_running_anything_again(scene: str, tmp_path: Path) -> None:
    path = copy_of(scene, tmp_path)
    told = {"configurable": {"thread_id": NAMES[scene]}}
    played = Played(lines=[says("I shall check.")])
    with saver(path) as saved:
        graph = graph_of(scene, played, saved)
        more = {"messages": [("user", "go on")]} if scene == "abandoned" else None
        graph.invoke(more, told, durability="sync")  # a tool that ran would kill this process
        state = graph.get_state(told)
    assert state.next == ()
    assert state.values["messages"][-1].text == "I shall check."
    (seen,) = played.seen
    results = answered(seen)
    assert all(results)
    for id, result in results.items():
        if id == "call_look" and scene != "node":
            assert (result.content, result.status) == ("price: 5", "success")
        else:
            assert (result.content, result.status) == (UNKNOWN_TEXT, "error")
            assert result.additional_kwargs == {MARK: "unknown"}


def test_what_a_repair_leaves_is_what_update_state_leaves(tmp_path: Path) -> None:
    path = copy_of("sibling", tmp_path / "ours")
    with saver(path) as saved:
        ours = agent([], saved).get_state({"configurable": {"thread_id": "sibling"}})
    theirs_path = taken("langgraph", "sibling.db", tmp_path / "theirs")
    with saver(theirs_path) as saved:
        graph, told = agent([], saved), {"configurable": {"thread_id": "sibling"}}
        results = [message for message in ours.values["messages"] if isinstance(message, ToolMessage)]
        graph.update_state(told, {"messages": results}, as_node="tools")
        theirs = graph.get_state(told)
    assert (ours.values, ours.next) == (theirs.values, theirs.next)
    assert ours.next == ("model",)


@pytest.mark.parametrize(("scene", "last"), [("forked", "Let us not."), ("edited", "It is 5.")])
def test_the_line_that_was_left_is_repaired_and_stays_left(scene: str, last: str, tmp_path: Path) -> None:
    path = copy_of(scene, tmp_path)
    told = {"configurable": {"thread_id": "single"}}
    with saver(path) as saved:
        graph = agent([], saved)
        assert graph.get_state(told).values["messages"][-1].text == last
        states = [state.values.get("messages", []) for state in graph.get_state_history(told)]
    (left,) = [state for state in states if state and getattr(state[-1], "tool_call_id", "") == "call_charge"]
    assert answered(left)["call_charge"].content == UNKNOWN_TEXT
