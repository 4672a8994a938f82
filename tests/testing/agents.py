"""Agents under test: a good one in several forms, and one for each thing that the harness has to catch.

The model is a script that goes by what it is shown; the world of each is a directory with a ledger.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import turnwal
from turnwal.core.line import Event
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.testing.agent import risk_of
from turnwal.testing.crash import Effect

Reply = dict[str, Any]

SESSION = "s"


def write(world: Path, what: str, key: str | None = None) -> None:
    """Do something to the world, for good: a line more in the ledger."""
    with (world / "ledger").open("a", encoding="utf-8") as ledger:
        ledger.write(json.dumps([what, key]) + "\n")


def effects(world: Path) -> list[Effect]:
    path = world / "ledger"
    return [Effect(*json.loads(line)) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def asks(*names: str) -> Reply:
    return {"parts": [{"type": "tool_call", "id": f"c-{name}", "name": name, "arguments": {}} for name in names]}


SAYS: Reply = {"parts": [{"type": "text", "content": "done"}], "stop": "end"}


def model(surface: Sequence[Event], wanted: Sequence[str], *, again: Sequence[str] = ("tool_not_started",)) -> Reply:
    """Ask for each tool, and again for those whose call came to a risk that is named in `again`."""
    stands: dict[str, str] = {}
    for event in surface:
        if event.type == "tool_result":
            stands[event.data["name"]] = risk_of(event.data) or "done"
        elif event.type == "tool_outcome":
            stands[event.data["name"]] = event.data["outcome"]
    missing = [name for name in wanted if stands.get(name, "tool_not_started") in (*again, "did_not_happen")]
    return asks(*missing) if missing else SAYS


def tools(world: Path) -> dict[str, Callable[..., Any]]:
    @turnwal.tool(read_only=True)
    def look() -> str:
        return str(len(effects(world)))

    @turnwal.tool(keyed=True)
    def pay(key: str) -> str:
        write(world, "paid", key)
        return "paid"

    def send() -> str:
        write(world, "sent")
        return "sent"

    return {"look": look, "pay": pay, "send": send}


def settle(session: Session, world: Path) -> None:
    """Look in the ledger what became of what is unknown."""
    done = [effect.what for effect in effects(world)]
    known = {event.data["call"] for event in session if event.type == "tool_outcome"}
    for event in session.surface():
        if event.type == "tool_result" and risk_of(event.data) == "tool_outcome_unknown":
            call, name = event.data["call"], event.data["name"]
            if call not in known and name != "look":
                happened = {"pay": "paid", "send": "sent"}[name] in done
                session.call(call).settle("happened" if happened else "did_not_happen", by="a look")


def go_on(session: Session, world: Path, *, parallel: bool | None = None) -> None:
    settle(session, world)
    with session.turn(user="go") as turn:
        while turn.open:
            with turn.step() as step:
                again = ("tool_not_started", "look")
                step.run(
                    step.assistant(model(session.surface(), ["look", "pay", "send"], again=again)),
                    tools(world),
                    parallel=parallel,
                )


def good(sessions: Sessions, world: Path) -> None:
    with sessions.session(SESSION) as session:
        go_on(session, world)


def good_in_a_session(session: Session, world: Path) -> None:
    go_on(session, world)


def side_by_side(sessions: Sessions, world: Path) -> None:
    with sessions.session(SESSION) as session:
        go_on(session, world, parallel=True)


async def asynchronous(sessions: Sessions, world: Path) -> None:
    async def pay(key: str) -> str:
        write(world, "paid", key)
        return "paid"

    given = tools(world) | {"pay": turnwal.tool(keyed=True)(pay)}
    async with sessions.session(SESSION) as session:
        settle(session, world)
        async with session.turn(user="go") as turn:
            while turn.open:
                async with turn.step() as step:
                    await step.arun(step.assistant(model(session.surface(), list(given))), given, parallel=True)


async def asynchronous_in_a_session(session: Session) -> None:
    async with session.turn(user="go") as turn, turn.step() as step:
        step.assistant(SAYS)


def two_sessions(sessions: Sessions, world: Path) -> None:
    """A sub-agent with a log of its own, which goes on where its parent's death has left it."""
    with sessions.session(SESSION) as session:
        for event in session.surface():
            if event.type == "tool_result" and risk_of(event.data) == "tool_outcome_unknown":
                call = session.call(event.data["call"])
                with sessions.session(f"child-{call.call_key}") as child:
                    go_on(child, world)
                call.settle("happened", by="its child")
        with session.turn(user="go") as turn:
            while turn.open:
                with turn.step() as step:
                    for call in step.assistant(model(session.surface(), ["delegate"])):
                        with call.child(sessions, f"child-{call.call_key}") as child:
                            go_on(child, world)
                        call.result("done")


# What has to be caught


def read_only_that_pays(sessions: Sessions, world: Path) -> None:
    @turnwal.tool(read_only=True)
    def look() -> str:
        write(world, "paid")
        return "nothing changed"

    with sessions.session(SESSION) as session, session.turn(user="go") as turn:
        while turn.open:
            with turn.step() as step:
                again = ["tool_not_started", "tool_outcome_unknown"]
                step.run(step.assistant(model(session.surface(), ["look"], again=again)), {"look": look})


def asks_again(sessions: Sessions, world: Path) -> None:
    """Takes *unknown* for *failed*, as so many do, and has it done again."""
    with sessions.session(SESSION) as session, session.turn(user="go") as turn:
        while turn.open:
            with turn.step() as step:
                again = ["tool_not_started", "tool_outcome_unknown"]
                step.run(step.assistant(model(session.surface(), ["send"], again=again)), tools(world))


def retries(sessions: Sessions, world: Path) -> None:
    """Repeats the very call whose outcome is unknown, without a look and without a key that anybody honours."""
    with sessions.session(SESSION) as session:
        for event in session.surface():
            if event.type == "tool_result" and risk_of(event.data) == "tool_outcome_unknown":
                session.call(event.data["call"]).retry(tools(world))
        with session.turn(user="go") as turn:
            while turn.open:
                with turn.step() as step:
                    again = ["tool_not_started"]
                    step.run(step.assistant(model(session.surface(), ["send"], again=again)), tools(world))


def runs_first(sessions: Sessions, world: Path) -> None:
    """An adapter that runs the body and records the dispatch behind it: its declaration is a lie."""
    with sessions.session(SESSION) as session, session.turn(user="go") as turn:
        while turn.open:
            with turn.step() as step:
                for call in step.assistant(model(session.surface(), ["pay"])):
                    write(world, "paid", call.key)
                    session.flush()
                    call.dispatch()
                    call.result("paid")


def _keep(world: Path, messages: list[Any]) -> None:
    with (world / "requests").open("a", encoding="utf-8") as requests:
        requests.write(json.dumps(messages) + "\n")


def sent(world: Path) -> list[Any]:
    path = world / "requests"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def sending(sessions: Sessions, world: Path, edit: Callable[[list[Any]], list[Any]]) -> None:
    with sessions.session(SESSION) as session:
        settle(session, world)
        with session.turn(user="go") as turn:
            while turn.open:
                with turn.step() as step:
                    request = step.request("anthropic", model="m", max_tokens=10)
                    _keep(world, edit(request["messages"]))
                    step.run(step.assistant(model(session.surface(), ["pay", "send"])), tools(world))


def sends_what_it_says(sessions: Sessions, world: Path) -> None:
    sending(sessions, world, lambda messages: messages)


def leaves_out_results(sessions: Sessions, world: Path) -> None:
    """Drops what recovery says of lost calls, so that the provider refuses the rest."""

    def edit(messages: list[Any]) -> list[Any]:
        return [message for message in messages if "may have run" not in json.dumps(message)]

    sending(sessions, world, edit)


def glosses_over(sessions: Sessions, world: Path) -> None:
    """Sends a valid list in which the unknown outcome reads as a failure."""

    def edit(messages: list[Any]) -> list[Any]:
        edited = json.loads(json.dumps(messages))
        for message in edited:
            for block in message["content"] if isinstance(message["content"], list) else []:
                if block["type"] == "tool_result" and "did not" not in json.dumps(block) and block.get("is_error"):
                    block["content"] = "failed"
        return list(edited)

    sending(sessions, world, edit)


def leaves_its_turn_open(sessions: Sessions) -> None:
    session = sessions.session(SESSION).open()
    session.open_turn(user="go")
    session.flush()


def never_says_what_for(sessions: Sessions) -> None:
    """Has nothing to show a model: no user said anything, and neither did the model."""
    with sessions.session(SESSION) as session, session.turn() as turn, turn.step() as step:
        step.assistant({"parts": [], "stop": "end"})


def gives_up(sessions: Sessions, world: Path) -> None:
    """Raises where it finds anything to recover."""
    with sessions.session(SESSION, recover="refuse") as session:
        go_on(session, world)


def fails_anyway(sessions: Sessions) -> None:
    with sessions.session(SESSION):
        raise RuntimeError("the agent has a bug")


def hangs_after_recovery(sessions: Sessions, world: Path) -> None:
    with sessions.session(SESSION) as session:
        while session.recovered is not None:
            pass
        go_on(session, world)
