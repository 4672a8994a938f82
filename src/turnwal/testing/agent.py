"""A small agent whose model is a script and whose tools really do things; the demo and the crash tests run it.

Its world is a directory: a ledger of refunds, an outbox of e-mails, a policy to read. Neither the ledger nor the outbox
hides a repetition: what was done twice stands there twice.

    python -m turnwal.testing.agent DIRECTORY begin     stops inside the refund, behind its effect, until it is killed
    python -m turnwal.testing.agent DIRECTORY resume    checks, settles, and goes on with the conversation
"""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import turnwal
from turnwal.core.line import Event
from turnwal.session.parallel import Parallel
from turnwal.session.session import Session
from turnwal.session.tools import Tools

SESSION: Final = "order-7"
REQUEST: Final = "Order 7 arrived broken. Please refund it and confirm by e-mail."
REMINDER: Final = "Is it done?"
DONE: Final = "Order 7 is refunded, and the confirmation is in your mailbox."
IN_EFFECT: Final = "refund: in the ledger, not returned"
"""The line that `begin` writes when it is where it should be killed."""

Model = Callable[[Sequence[Event]], dict[str, Any]]
"""What a model is here: from what it sees to its reply."""

_ASKED: Final[Mapping[str, dict[str, Any]]] = {
    "read_policy": {},
    "refund": {"order": 7, "amount": "25.00"},
    "send_mail": {"to": "customer@example.com", "text": "Your refund for order 7 is on its way."},
}


class World:
    """What the tools act on: a directory with a ledger, an outbox and a policy."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """Name the directory; `prepare` fills it."""
        self.root = Path(root)
        self.ledger = self.root / "ledger.jsonl"
        self.outbox = self.root / "outbox"
        self.policy = self.root / "policy.txt"
        self.sessions = self.root / "sessions"

    def prepare(self) -> None:
        """Make an empty ledger, an empty outbox and the policy."""
        self.outbox.mkdir(parents=True)
        self.ledger.touch()
        self.policy.write_text("Broken goods are refunded in full within 30 days.\n", "utf-8")

    def tools(self, *, behind_refund: Callable[[], object] = lambda: None) -> Tools:
        """The tools; `behind_refund` is called inside the refund when its effect is done."""

        @turnwal.tool(read_only=True, keyed=True)
        def read_policy(key: str) -> str:
            return self.read(key)

        @turnwal.tool(keyed=True)
        def refund(order: int, amount: str, key: str) -> str:
            self.pay(order, amount, key)
            behind_refund()
            return f"refunded {amount} for order {order}"

        @turnwal.tool(keyed=True)
        def send_mail(to: str, text: str, key: str) -> str:
            self.send(to, text, key)
            return f"sent to {to}"

        return {"read_policy": read_policy, "refund": refund, "send_mail": send_mail}

    def read(self, key: str) -> str:
        """The policy; who asks with what key changes nothing."""
        del key
        return self.policy.read_text("utf-8").strip()

    def pay(self, order: int, amount: str, key: str) -> None:
        """Append a refund to the ledger, also when there is one with this key."""
        line = json.dumps({"key": key, "order": order, "amount": amount}) + "\n"
        descriptor = os.open(self.ledger, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, line.encode("ascii"))
        finally:
            os.close(descriptor)

    def send(self, to: str, text: str, key: str) -> None:
        """Put an e-mail into the outbox, also when there is one with this key."""
        draft = self.outbox.parent / f"draft-{key}"
        draft.write_text(f"Message-ID: <{key}@example.com>\nTo: {to}\n\n{text}\n", "utf-8")
        # in one step: a death in the middle must not leave an e-mail that cannot be told by its key
        (self.outbox / f"{len(self.mails()) + 1:04}.eml").hardlink_to(draft)
        draft.unlink()

    def refunds(self) -> list[dict[str, Any]]:
        """The lines of the ledger, in order."""
        return [json.loads(line) for line in self.ledger.read_bytes().split(b"\n") if line]

    def mails(self) -> list[Path]:
        """The e-mails in the outbox, in order."""
        return sorted(self.outbox.iterdir())

    def traces(self, name: str, key: str) -> list[str]:
        """What the world shows of the call of a tool, found by its key."""
        if name == "refund":
            return [json.dumps(line) for line in self.refunds() if line["key"] == key]
        return [mail.name for mail in self.mails() if f"<{key}@" in mail.read_text("utf-8")]


def scripted(surface: Sequence[Event]) -> dict[str, Any]:
    """The reply to what a model sees: ask for all three, ask again for what did not happen, then say how it stands."""
    stands: dict[str, str] = {}
    for event in surface:
        if event.type == "tool_result":
            stands[event.data["name"]] = risk_of(event.data) or "happened"
        elif event.type == "tool_outcome":
            stands[event.data["name"]] = event.data["outcome"]
    again = [name for name in _ASKED if stands.get(name, "tool_not_started") in ("tool_not_started", "did_not_happen")]
    if again:
        return _asking(*again)
    if stands["refund"] != "happened" or stands["send_mail"] != "happened":
        return _saying("I cannot tell whether all of it was done. A colleague will look into it.")
    return _saying(DONE)


def converse(session: Session, model: Model, tools: Tools, user: str, *, parallel: Parallel = None) -> None:
    """One turn, from the user's words to the answer that the model stops at."""
    with session.turn(user=user) as turn:
        while turn.open:
            with turn.step() as step:
                step.run(step.assistant(model(session.surface())), tools, parallel=parallel)


def settle_unknown(session: Session, world: World) -> list[str]:
    """Look up in the world each effect whose outcome is unknown, by its key, and record what is found; say so."""
    settled = {event.data["call"] for event in session if event.type == "tool_outcome"}
    said = []
    for event in session.surface():
        data = event.data
        unknown = event.type == "tool_result" and risk_of(data) == "tool_outcome_unknown"
        if not unknown or data["name"] == "read_policy" or data["call"] in settled:
            continue
        call = session.call(data["call"])
        found = world.traces(data["name"], call.key)
        outcome: Literal["happened", "did_not_happen"] = "happened" if found else "did_not_happen"
        call.settle(outcome, evidence={"found": found}, by="a look by key")
        traces = "a trace" if found else "no trace"
        said.append(f"{data['name']} left {traces} with the key of call {call.call_key}: settled as {outcome}")
    return said


def go_on(session: Session, world: World, *, parallel: Parallel = None) -> None:
    """Take the turn that comes next, wherever the conversation stands."""
    heard = any(event.type == "user_message" for event in session.surface())
    converse(session, scripted, world.tools(), REMINDER if heard else REQUEST, parallel=parallel)


def last_words(session: Session) -> str:
    """What the model said last."""
    said: str = session.surface()[-1].data["parts"][0]["content"]
    return said


def risk_of(data: Mapping[str, Any]) -> str | None:
    """The class of a result that stands in for a lost one; None for a real one."""
    risk = data.get("metadata", {}).get("risk")
    return risk if isinstance(risk, str) else None


def begin(world: World) -> None:
    """Run the agent until it stands inside the refund; then say so and stand still."""

    def stand_still() -> None:
        _say(IN_EFFECT)
        sys.stdin.read()  # ends when whoever waits for the line above is gone
        os._exit(1)

    with turnwal.open_store(world.sessions) as store, store.session(SESSION, agent="demo") as session:
        converse(session, scripted, world.tools(behind_refund=stand_still), REQUEST)


def resume(world: World) -> None:
    """Settle what is unknown, then go on with the conversation."""
    with turnwal.open_store(world.sessions) as store, store.session(SESSION) as session:
        for sentence in settle_unknown(session, world):
            _say(sentence)
        go_on(session, world)
        _say(f"the model says: {last_words(session)}")


def main(arguments: Sequence[str]) -> None:
    """Do one of the two halves in a directory that is prepared."""
    root, half = arguments
    {"begin": begin, "resume": resume}[half](World(root))


def _asking(*names: str) -> dict[str, Any]:
    parts = [{"type": "tool_call", "id": f"call-{name}", "name": name, "arguments": _ASKED[name]} for name in names]
    return {"parts": parts, "stop": "tool_use"}


def _saying(text: str) -> dict[str, Any]:
    return {"parts": [{"type": "text", "content": text}], "stop": "end"}


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
