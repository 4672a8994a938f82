"""What a process does until it is killed: turn after turn with tools, in every way the library offers.

Each tool leaves a mark with its call's key before it returns; each barrier is followed by an acknowledgement, written
where it survives the process. One seed decides everything but the moment of death.
"""

import asyncio
import json
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import turnwal
from tests.crash.marks import Marks
from turnwal.core.errors import TurnwalError
from turnwal.session.call import Call
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.session.turn import Turn
from turnwal.store.protocol import Store

KINDS: Final = (
    "serial",
    "side_by_side",
    "asynchronous",
    "gathered",
    "by_halves",
    "sub_run",
    "approval",
    "undeclared",
    "by_hand",
    "by_hand",
)
TURNS_MAX: Final = 300
BIG: Final = 200_000
"""Bytes of a result now and then: a kill can tear only a write of several pages."""


class Life:
    """One process's work on one session."""

    def __init__(self, root: Path, session: str, seed: str, *, kinds: Sequence[str] = KINDS) -> None:
        self.root = root
        self.id = session
        self.kinds = kinds
        self.random = random.Random(seed)
        self.effects = Marks(root / f"{session}.effects")
        self.acks = Marks(root / f"{session}.acks")
        self.tools: dict[str, Callable[..., Any]] = {
            "act": turnwal.tool(keyed=True)(partial(self.act)),
            "look": turnwal.tool(read_only=True, keyed=True)(partial(self.act)),
            "repeatable": turnwal.tool(idempotent=True, keyed=True)(partial(self.act)),
            "lose": turnwal.tool(keyed=True)(partial(self.lose)),
            "fail": turnwal.tool(keyed=True)(partial(self.fail)),
        }
        self.async_tools = self.tools | {"act_async": turnwal.tool(keyed=True)(self.act_async_tool())}

    def live(self, store: Store) -> None:
        """Open the session and take turns for as long as it lasts."""
        with Sessions(store).session(self.id, wait=5.0) as session:
            self.ack(session)
            self.hear(session)
            self.follow_up(session)
            for _ in range(TURNS_MAX):
                self.turn(session)

    def turn(self, session: Session) -> None:
        """One turn of a random kind."""
        kind = self.random.choice(self.kinds)
        getattr(self, kind)(session)

    # Acknowledgements

    def ack(self, session: Session) -> None:
        """Wait for a barrier and write down what it returned."""
        head = session.flush()
        self.acks.write(f"ACK {head.count} {head.hash}")

    def hear(self, session: Session) -> None:
        """Write down what a subscriber hears, in half of the lives."""
        if self.random.random() < 0.5:
            return
        subscription = session.subscribe()

        def listen() -> None:
            for event in subscription:
                self.acks.write(f"HEARD {event.seq} {event.prev}")

        threading.Thread(target=listen, daemon=True).start()

    # Tools

    def act(self, before: float, behind: float, size: int, key: str) -> str:
        time.sleep(before)
        self.effects.write(key)
        time.sleep(behind)
        return "x" * size

    async def act_async(self, before: float, behind: float, size: int, key: str) -> str:
        await asyncio.sleep(before)
        self.effects.write(key)
        await asyncio.sleep(behind)
        return "x" * size

    def act_async_tool(self) -> Callable[..., Any]:
        """A function of its own, which can be declared where a method cannot."""

        async def act_async(before: float, behind: float, size: int, key: str) -> str:
            return await self.act_async(before, behind, size, key)

        return act_async

    def lose(self, before: float, behind: float, size: int, key: str) -> str:
        self.act(before, behind, size, key)
        raise turnwal.OutcomeUnknown("the connection was closed before the answer came")

    def fail(self, before: float, behind: float, size: int, key: str) -> str:
        self.act(before, behind, size, key)
        raise ValueError("the tool failed behind its effect")

    # Turns

    def serial(self, session: Session) -> None:
        self.converse(session, parallel=False)

    def side_by_side(self, session: Session) -> None:
        self.converse(session, parallel=self.random.choice([True, 2, 3, None]))

    def converse(self, session: Session, *, parallel: int | bool | None) -> None:
        with session.turn(user=self.text()) as turn:
            for _ in range(self.random.randrange(1, 4)):
                with turn.step() as step:
                    self.ack(session)
                    calls = step.assistant(self.asking(self.tools))
                    if self.random.random() < 0.2:
                        calls = calls[: len(calls) // 2]  # the step's end answers what was not run
                    step.run(calls, self.tools, parallel=parallel)
                    self.ack(session)
            self.answer(turn)
        self.ack(session)

    def asynchronous(self, session: Session) -> None:
        asyncio.run(self.aconverse(session, gathered=False))

    def gathered(self, session: Session) -> None:
        asyncio.run(self.aconverse(session, gathered=True))

    async def aconverse(self, session: Session, *, gathered: bool) -> None:
        async with session.turn(user=self.text()) as turn:
            for _ in range(self.random.randrange(1, 4)):
                async with turn.step() as step:
                    calls = step.assistant(self.asking(self.async_tools))
                    if gathered:
                        await asyncio.gather(*(call.arun(self.async_tools) for call in calls))
                    else:
                        limit = self.random.choice([None, 1, 2])
                        await step.arun(calls, self.async_tools, parallel=self.random.choice([None, True]), limit=limit)
                    head = await session.aflush()
                    self.acks.write(f"ACK {head.count} {head.hash}")
            async with turn.step() as step:
                step.assistant(self.saying())
        self.ack(session)

    def by_halves(self, session: Session) -> None:
        """As adapters write: dispatch, body, result; some calls are refused."""
        turn = session.open_turn(self.text())
        try:
            step = turn.step().begin()
            for call in step.assistant(self.asking(self.tools)):
                if self.random.random() < 0.2:
                    call.reject("not now")
                else:
                    call.dispatch()
                    call.result(self.act(*self.pauses(), key=call.key))
                self.ack(session)
            step.close()
            self.answer(turn)
            turn.close()
        except BaseException:
            with suppress(TurnwalError):
                turn.close("cancelled")
            raise
        self.ack(session)

    def sub_run(self, session: Session) -> None:
        with session.turn(user=self.text()) as turn:
            with turn.step() as step:
                for call in step.assistant(self.asking(self.tools, most=2)):
                    call.dispatch()
                    self.effects.write(call.key)
                    with call.sub("helper", user=self.text()) as inner, inner.step() as inner_step:
                        inner_step.run(inner_step.assistant(self.asking(self.tools, most=3)), self.tools)
                    call.result("the helper is done")
                    self.ack(session)
            self.answer(turn)
        self.ack(session)

    def approval(self, session: Session) -> None:
        """Answer what waits, then ask about something new."""
        for call in session.waiting():
            if call.doubtful:
                call.settle("did_not_happen", by="somebody")  # a kill loses no grant that was durable
            if self.random.random() < 0.3:
                call.deny(by="nobody")
            else:
                call.grant(by="somebody")
                with session.turn(resumes=call.call_key) as turn:
                    if turn.resumed is not None:
                        turn.resumed.run(self.tools)
            self.ack(session)
        with session.turn(user=self.text()) as turn, turn.step() as step:
            for call in step.assistant(self.asking(self.tools, most=2)):
                call.ask({"may": call.name})
                self.ack(session)

    def undeclared(self, session: Session) -> None:
        """A writer that promises nothing of its dispatches; some arguments are broken off."""
        with session.turn(user=self.text(), dispatch="none") as turn:
            with turn.step() as step:
                message = self.asking(self.tools)
                message["parts"][-1]["arguments"] = '{"before": 0.00'
                calls = step.assistant(message)
                self.ack(session)
                time.sleep(self.random.uniform(0, 0.002))
                step.run(calls, self.tools, parallel=self.random.choice([True, False]))
            self.answer(turn)
        self.ack(session)

    def by_hand(self, session: Session) -> None:
        """A writer that declares nothing and uses `append` alone, but records each dispatch before its body."""
        session.append("turn_start", {"turn": 1})
        session.append("user_message", {"parts": [{"type": "text", "content": self.text()}]})
        session.append("step_start", {})
        message = self.asking(self.tools)
        asked = session.append("assistant_message", message).seq
        line_hash = session.head.hash
        self.ack(session)
        for index, part in enumerate(message["parts"]):
            if part["type"] != "tool_call":
                continue
            key = sha256(f"turnwal key\n{line_hash}\n{index}".encode()).hexdigest()[:32]
            named = {"call": f"{asked}.{index}", "id": part["id"], "name": part["name"]}
            session.append("tool_call", named | {"arguments": part["arguments"], "key": key})
            self.ack(session)
            self.act(*self.pauses(), key=key)
            session.append("tool_result", named | {"parts": [{"type": "text", "content": "done"}]})
            self.ack(session)
        session.append("step_end", {})
        session.append("turn_end", {})
        self.ack(session)

    def hasty(self, session: Session) -> None:
        """Defective on purpose: the body runs before the barrier behind its dispatch. Only a canary lives so."""
        with session.turn(user=self.text()) as turn:
            with turn.step() as step:
                for call in step.assistant(self.asking(self.tools)):
                    call.note_dispatch()
                    output = self.act(*self.pauses(), key=call.key)
                    call.result(output)
                    self.ack(session)
            self.answer(turn)

    def follow_up(self, session: Session) -> None:
        """After recovery, repeat or settle some of the calls whose outcome is unknown."""
        lost = session.recovered.lost_calls() if session.recovered is not None else []
        for repair in lost:
            if repair.data["metadata"]["risk"] != "tool_outcome_unknown":
                continue
            call = session.call(repair.data["call"])
            choice = self.random.random()
            if choice < 0.3 and self.may_repeat(call):
                call.retry(self.tools)
            elif choice < 0.6:
                call.settle("unknown", evidence={"looked": "in vain"}, by="the campaign")
            self.ack(session)

    def may_repeat(self, call: Call) -> bool:
        """Whether its tool is one of the synchronous ones with sound arguments."""
        return call.name in self.tools and call.args is not None

    # What the model says

    def asking(self, tools: dict[str, Callable[..., Any]], most: int = 5) -> dict[str, Any]:
        parts: list[dict[str, Any]] = [{"type": "text", "content": self.text()}] if self.random.random() < 0.3 else []
        for number in range(self.random.randrange(1, most + 1)):
            # now and then all ids are equal: ours is the key that counts
            id = "same" if self.random.random() < 0.1 else f"call-{number}"
            before, behind, size = self.pauses()
            arguments = {"before": before, "behind": behind, "size": size + number}
            name = self.random.choice(list(tools))
            parts.append({"type": "tool_call", "id": id, "name": name, "arguments": json.dumps(arguments)})
        return {"parts": parts, "stop": "tool_use"}

    def saying(self) -> dict[str, Any]:
        return {"parts": [{"type": "text", "content": self.text()}], "stop": "end"}

    def answer(self, turn: Turn) -> None:
        with turn.step() as step:
            step.assistant(self.saying())

    def pauses(self) -> tuple[float, float, int]:
        """Seconds before and behind the effect, and the size of what is returned."""
        before, behind = (self.random.choice([0.0, 0.0, 0.0005, 0.002]) for _ in range(2))
        return before, behind, BIG if self.random.random() < 0.03 else self.random.randrange(200)

    def text(self) -> str:
        return "word " * self.random.randrange(1, 20)


def main(arguments: Sequence[str]) -> None:
    """A life in a fresh interpreter."""
    from turnwal.store.urls import open_store  # noqa: PLC0415 - a forked life is handed its store

    root, session, seed, url, options = arguments
    life = Life(Path(root), session, seed)
    store = open_store(url, **json.loads(options))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    life.live(store)


if __name__ == "__main__":
    main(sys.argv[1:])
