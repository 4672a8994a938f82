"""`turnwal demo`: kill an agent in the middle of a refund, look at what is left, and finish the job.

Promises: no key, no network, no sleeping and hoping. The agent is killed when it says where it stands, the verbs are
run as anybody would type them, and what they say is held against the ledger and the outbox. Exits 0 only if all held.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

import turnwal
from turnwal.testing.agent import IN_EFFECT, REQUEST, SESSION, World, risk_of

_SECONDS: Final = 60
"""After this long something hangs; the whole demo takes about two."""


class Demo:
    """One run: what is said on the way, and which facts held."""

    def __init__(self, world: World, say: Callable[[str], None]) -> None:
        """Play in a world that does not exist yet."""
        self.world = world
        self.say = say
        self.facts: list[tuple[str, bool]] = []
        self.verdicts: dict[str, str] = {}

    def play(self) -> None:
        """The whole story. Raises `ClickException` when it cannot even be told."""
        self.world.prepare()
        self._kill()
        self._look()
        self._resume()

    def fact(self, sentence: str, holds: bool) -> None:  # noqa: FBT001 - a fact and whether it holds
        """Note whether something holds."""
        self.facts.append((sentence, holds))

    def _kill(self) -> None:
        self.say("1. An agent is killed\n")
        self.say(f'   The user writes: "{REQUEST}"')
        self.say("   The model asks for three tools at once: read_policy, refund, send_mail.")
        agent = subprocess.Popen(  # noqa: S603 - this interpreter, with arguments of our own
            self._agent("begin"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with agent:
            said = _first_line(agent)
            agent.kill()
        if said.strip() != IN_EFFECT:
            raise click.ClickException(f"the agent did not reach the refund; it said {said.strip()!r}")
        self.say("   read_policy has answered. refund has written to the ledger and has not returned.")
        self.say(f"   send_mail has not begun. Now process {agent.pid} gets SIGKILL, which no program can catch.\n")
        self.fact("the agent died of the signal", agent.returncode == -signal.SIGKILL)

    def _look(self) -> None:
        self.say("2. What is left\n")
        self.say(f"   $ export TURNWAL_STORE={self.world.sessions}\n")
        self._verb("the sessions of the store, and what state they are in", 0, "ls")
        self._verb("what recovery would append, and why; nothing is written", 3, "plan", SESSION)
        with turnwal.open_store(self.world.sessions) as store:
            planned = store.inspect(SESSION).plan
        lost = {repair.data["name"]: repair.data for repair in planned.lost_calls()}
        self.verdicts = {name: risk_of(data) or "" for name, data in lost.items()}
        refunds, mails = len(self.world.refunds()), len(self.world.mails())
        self.say(f"   What the world shows: {refunds} refund in the ledger, {mails} e-mails in the outbox.\n")
        self.fact("read_policy kept its real answer", "read_policy" not in lost)
        self.fact(
            "refund is told as unknown, and the ledger has it", self._told("refund") == "unknown" and refunds == 1
        )
        self.fact(
            "send_mail is told as not started, and the outbox is empty",
            self._told("send_mail") == "not started" and not mails,
        )
        self._verb("append it; the torn or open rest of the turn is closed, nothing is cut", 0, "recover", SESSION)
        self._verb("the session now, as a person reads it", 0, "show", SESSION)

    def _resume(self) -> None:
        self.say("3. Another process goes on\n")
        self.say("   It looks the refund up by its key, settles it, and lets the model read on.")
        done = subprocess.run(  # noqa: S603 - as above
            self._agent("resume"), capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        self.say(_indented(done.stdout + done.stderr))
        self.fact("the second process came to its end", done.returncode == 0)
        refunds, mails = len(self.world.refunds()), len(self.world.mails())
        self.fact(f"the refund was made once (the ledger has {refunds})", refunds == 1)
        self.fact(f"the e-mail was sent once (the outbox has {mails})", mails == 1)
        with turnwal.open_store(self.world.sessions) as store:
            glance = store.glance(SESSION)
            outcomes = [event.data for event in store.inspect(SESSION) if event.type == "tool_outcome"]
        self.fact("the log says the refund happened, and on what evidence", _settled(outcomes))
        self.fact("nothing is left open", glance.state == "clean")

    def _told(self, name: str) -> str:
        return {"tool_outcome_unknown": "unknown", "tool_not_started": "not started"}.get(
            self.verdicts.get(name, ""), ""
        )

    def _agent(self, half: str) -> list[str]:
        return [sys.executable, "-m", "turnwal.testing.agent", str(self.world.root), half]

    def _verb(self, purpose: str, expected: int, verb: str, *arguments: str) -> None:
        """Run a verb as it would be typed, in a process of its own, and show both."""
        typed = [verb, *arguments]
        done = subprocess.run(  # noqa: S603 - as above
            [sys.executable, "-m", "turnwal", *typed],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            env=os.environ | {"TURNWAL_STORE": str(self.world.sessions)},
        )
        self.say(f"   {purpose}:\n   $ turnwal {' '.join(typed)}\n")
        self.say(_indented(done.stdout + done.stderr))
        self.fact(f"`turnwal {verb}` exits {expected}", done.returncode == expected)

    def to_json(self) -> dict[str, Any]:
        """The run as plain values."""
        return {
            "directory": str(self.world.root),
            "session": SESSION,
            "verdicts": self.verdicts,
            "facts": [{"fact": sentence, "holds": holds} for sentence, holds in self.facts],
            "ok": self.ok,
        }

    @property
    def ok(self) -> bool:
        """Whether everything held."""
        return bool(self.facts) and all(holds for _, holds in self.facts)


@click.command()
@click.option("--dir", "directory", type=click.Path(path_type=Path), help="Play in this directory, and keep it.")
@click.option("--keep", is_flag=True, help="Keep the temporary directory.")
@click.option("--json", "as_json", is_flag=True, help="Print only a summary, as JSON.")
def demo(directory: Path | None, keep: bool, as_json: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Kill an agent in the middle of a refund and finish the job safely."""
    if directory is not None and directory.exists() and any(directory.iterdir()):
        raise click.UsageError(f"{directory} is not empty")
    root = Path(tempfile.mkdtemp(prefix="turnwal-demo-")) if directory is None else directory
    played = Demo(World(root), (lambda _: None) if as_json else click.echo)
    try:
        played.play()
    finally:
        kept = keep or directory is not None or not played.ok
        if not kept:
            shutil.rmtree(root, ignore_errors=True)
    if as_json:
        click.echo(json.dumps(played.to_json() | {"kept": kept}, indent=2))
    else:
        _conclude(played, kept=kept)
    if not played.ok:
        click.get_current_context().exit(1)


def _conclude(played: Demo, *, kept: bool) -> None:
    click.echo("4. What held\n")
    for sentence, holds in played.facts:
        click.echo(f"   {'yes' if holds else 'NO '}  {sentence}")
    click.echo("\nAll of it held." if played.ok else "\nThe lines marked NO did not hold.")
    click.echo(f"It is all in {played.world.root}." if kept else "Run it with --keep to look around afterwards.")


def _first_line(agent: "subprocess.Popen[str]") -> str:
    """What a process says first; nothing when it says nothing for too long."""
    if agent.stdout is None or not select.select([agent.stdout], [], [], _SECONDS)[0]:
        return ""
    return agent.stdout.readline()


def _settled(outcomes: list[dict[str, Any]]) -> bool:
    return [outcome["outcome"] for outcome in outcomes] == ["happened"] and bool(outcomes[0]["evidence"]["found"])


def _indented(text: str) -> str:
    return "".join(f"     {line}\n" for line in text.rstrip("\n").split("\n"))
