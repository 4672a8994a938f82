"""Sessions in every state, made on disk, and the command line run on them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import turnwal
from turnwal.cli.app import app

ATTACK = "\x1b]0;owned\x07\x1b[2J\r\x9b31m\u202egnp.exe\u200b\x00\x7f\x85\u2028end"
"""Window title, clear screen, carriage return, C1 CSI, bidi override, zero width space, NUL, DEL, NEL, U+2028."""


class World:
    """A directory of sessions."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sessions = turnwal.open_store(root)

    def path(self, session: str) -> Path:
        return self.root / f"{session}.jsonl"

    def clean(self, session: str = "clean", *, user: str = "hello", turns: int = 1) -> Path:
        with self.sessions.session(session) as opened:
            for _ in range(turns):
                with opened.turn(user=user) as turn, turn.step() as step:
                    step.assistant({"parts": [{"type": "text", "content": "an answer"}]})
        return self.path(session)

    def waiting(self, session: str = "waiting", *, question: str = "May I?") -> str:
        """A session with a call that waits for approval; returns its key."""
        with self.sessions.session(session) as opened, opened.turn(user="pay") as turn, turn.step() as step:
            (call,) = step.assistant({"parts": [asking("pay")]})
            call.ask(question)
        return call.call_key

    def crashed(self, session: str = "crashed", *, name: str = "refund", arguments: str = '{"order":7}') -> Path:
        """Call 4.0 is answered, 4.1 was dispatched, 4.2 was not."""
        with self.sessions.session(session) as opened, opened.turn(user="Refund order 7") as turn, turn.step() as step:
            first, second, _ = step.assistant({"parts": [asking("policy"), asking(name, arguments), asking("mail")]})
            first.dispatch()
            first.result("a policy")
            second.dispatch()
            kept = len(opened)
        return cut_off(self.path(session), kept)

    def torn(self, session: str = "torn") -> Path:
        path = self.clean(session)
        with path.open("ab") as file:
            file.write(b'{"seq":7,"pr')
        return path

    def damaged(self, session: str = "damaged") -> Path:
        path = self.crashed(session)
        lines = path.read_bytes().split(b"\n")
        lines[2] = lines[2][:10] + b"#" * 20
        path.write_bytes(b"\n".join(lines))
        return path

    def damaged_start(self, session: str = "headless") -> Path:
        path = self.clean(session)
        path.write_bytes(b"\0" * 7 + path.read_bytes())
        return path

    def empty(self, session: str = "empty") -> Path:
        self.root.mkdir(exist_ok=True)
        self.path(session).touch()
        return self.path(session)

    def too_new(self, session: str = "newer") -> Path:
        path = self.clean(session)
        add_line(path, "session_merge", {})
        return path


def asking(name: str, arguments: str = "{}") -> dict[str, Any]:
    return {"type": "tool_call", "id": f"id of {name}"[:20], "name": name, "arguments": arguments}


def add_line(path: Path, type: str, data: Any) -> None:
    """Append a line that chains, whatever it says."""
    last = path.read_bytes().split(b"\n")[-2]
    before = json.loads(last)
    event = {"seq": before["seq"] + 1, "prev": digest(last), "time": before["time"], "type": type, "data": data}
    with path.open("ab") as file:
        file.write(json.dumps(event, separators=(",", ":")).encode() + b"\n")


def rot(path: Path, number: int) -> None:
    """Make NULs of a line, as a disk does."""
    lines = path.read_bytes().split(b"\n")
    lines[number] = b"\0" * len(lines[number])
    path.write_bytes(b"\n".join(lines))


def chain_anew(path: Path) -> None:
    """Make the lines of a changed file follow from each other again."""
    lines, previous = [], "0" * 64
    for line in path.read_bytes().splitlines():
        made = json.dumps(json.loads(line) | {"prev": previous}, separators=(",", ":")).encode()
        previous = digest(made)
        lines.append(made)
    path.write_bytes(b"\n".join(lines) + b"\n")


def digest(line: bytes) -> str:
    return sha256(line).hexdigest()


def cut_off(path: Path, count: int) -> Path:
    """Leave the first lines, as a crash does behind its last barrier."""
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(lines[:count]) + b"\n")
    return path


def run(*arguments: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None) -> Result:
    """Run in this process."""
    return CliRunner().invoke(app, list(arguments), input=stdin, env=env, catch_exceptions=False)


def shell(
    *arguments: str | bytes, stdin: bytes = b"", env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run in a process of its own, with pipes."""
    return subprocess.run(
        command(*arguments), input=stdin, capture_output=True, env=environment(env), cwd=cwd, check=False, timeout=30
    )


def command(*arguments: str | bytes) -> list[str | bytes]:
    return [sys.executable, "-W", "error", "-m", "turnwal", *arguments]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return kept | dict(more or {})


_HOLDER = """
import sys, turnwal
session = turnwal.open_store(sys.argv[1]).session(sys.argv[2], owner=sys.argv[3], recover=True).open()
turn = session.open_turn(user="held")
session.flush()
print("ready", flush=True)
for line in sys.stdin:
    session.append("x.note", {"text": line.strip()})
    session.flush()
    print("done", flush=True)
"""


@contextmanager
def holder(world: World, session: str, owner: str = "the night shift") -> Iterator["subprocess.Popen[str]"]:
    """A second process that owns a session and has a turn open in it; a line to it is an event."""
    arguments = [sys.executable, "-c", _HOLDER, str(world.root), session, owner]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def tell(process: "subprocess.Popen[str]", text: str) -> None:
    """Have the holder append an event, and wait until it is durable."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(text + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"
