"""What is recorded: everything that turnwal writes, by the way a program would have it written.

    python -m tests.power.workloads NAME KIND DIRECTORY [PLANTED]

Each says on its standard output what was acknowledged: `ACK STORE SESSION COUNT HASH` behind a barrier, and
`FILE PATH SHA256` behind a file that is done. Processes that die are forked children, so that one interpreter is
started. The same name does the same each time but for times and random ids.
"""

import hashlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import turnwal
from tests.crash.planted import TearingDisk
from tests.power import planted
from turnwal.cli.app import app
from turnwal.core.errors import TurnwalError
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.store import sqlite_file
from turnwal.store.file import FileStore
from turnwal.store.wholefile import sync_directory

NOTE: Final = "x.note"
_DATA: Final = Path(__file__).parents[1] / "formats" / "data"
FOREIGN: Final[Mapping[str, Path]] = {
    "copy.db": _DATA / "openai_agents" / "killed.db",
    "folder": _DATA / "openhands" / "single" / "00000000000040008000000000000001",
}
"""Sessions of other tools, a file and a folder, of which copies are made."""
SMALL_CHECKPOINT: Final = 8
"""Pages of the `-wal` at which it is checkpointed where that is what is recorded; shipped it is 1,000."""


def text_of(session: str, number: int) -> str:
    """What the note with a number says; now and then it fills several sectors, or pages."""
    size = {3: 1500, 7: 9000}.get(number % 10, 40)
    return (f"{session} {number} " + "".join(chr(97 + (number * 7 + at * at) % 26) for at in range(97)) * 100)[:size]


class Work:
    """One workload in a directory."""

    def __init__(self, root: Path, kind: str) -> None:
        self.root = root
        self.kind = kind
        self.name = store_name(kind)
        self.numbers: dict[str, int] = {}
        self._saying = threading.Lock()

    def store(self, name: str = "") -> Sessions:
        name = name or self.name
        return planted.opened(self.root, name) or turnwal.open_store(url_of(self.root, name))

    def note(self, session: Session, name: str = "", *, size: int | None = None) -> None:
        number = self.numbers.setdefault(name or session.id, 0)
        self.numbers[name or session.id] = number + 1
        text = text_of(session.id, number)
        session.append(NOTE, {"n": number, "text": text if size is None else text * (size // len(text))})

    def ack(self, session: Session, store: str = "") -> None:
        head = session.flush()
        self.say(f"ACK {store or self.name} {session.id} {head.count} {head.hash}")

    def say(self, line: str) -> None:
        with self._saying:
            os.write(1, line.encode() + b"\n")

    def done(self, path: Path) -> None:
        """Say that a file or directory is durable; all but a report are whole or not there before."""
        self.say(
            f"{'KEPT' if path.name == 'report.json' else 'WHOLE'} {path.relative_to(self.root)} {tree_digest(path)}"
        )

    def in_child(self, body: Callable[[], None]) -> None:
        """Do it in a process of its own, which ends as if it had been killed."""
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                body()
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        if os.waitstatus_to_exitcode(status) not in (0, -signal.SIGKILL):
            raise RuntimeError("a process of the workload failed")

    # What is recorded

    def create(self) -> None:
        """A new store in new directories; notes alone and in batches; a clean close."""
        with self.store() as sessions, sessions.session("first") as session:
            for _ in range(3):
                self.note(session)
                self.ack(session)
            for _ in range(4):
                for _ in range(5):
                    self.note(session)
                self.ack(session)

    def reopen(self) -> None:
        """Owners that die with a turn open, and others that recover and go on."""
        for number in range(3):
            self.in_child(self.unfinished)
            self.numbers["again"] = (number + 1) * 2
        with self.store() as sessions, sessions.session("again") as session:
            self.ack(session)
            self.note(session)
            self.ack(session)

    def unfinished(self) -> None:
        sessions = self.store()
        session = sessions.session("again").open()
        self.ack(session)
        self.note(session)
        turn = session.open_turn("please do it")
        step = turn.step().begin()
        parts = [{"type": "tool_call", "id": f"c{n}", "name": "act", "arguments": "{}"} for n in range(2)]
        calls = step.assistant({"parts": parts, "stop": "tool_use"})
        self.ack(session)
        calls[0].dispatch()
        self.ack(session)
        self.note(session)
        self.ack(session)
        calls[0].result("it is done")
        self.ack(session)

    def torn(self) -> None:
        """Owners that die in the middle of a write, and others that cover what they left."""
        for share in (0.3, 0.9, 0.999):
            self.in_child(lambda share=share: self.dies(share))  # type: ignore[misc]
            with self.store() as sessions, sessions.session("torn") as session:
                self.ack(session)
                self.numbers["torn"] = 1 + max((e.data["n"] for e in session.events() if e.type == NOTE), default=-1)
                self.note(session)
                self.ack(session)

    def dies(self, share: float) -> None:
        sessions = Sessions(FileStore(self.root / self.name, disk=TearingDisk(2, share)))
        session = sessions.session("torn").open()
        for _ in range(5):
            self.note(session)
            self.ack(session)

    def copies(self) -> None:
        """Forks, imports and copies: whole histories that become sessions."""
        with self.store() as sessions:
            with sessions.session("origin") as session:
                for _ in range(5):
                    self.note(session)
                self.ack(session)
            head = sessions.fork("origin", 4, "forked")
            self.say(f"ACK {self.name} forked {head.count} {head.hash}")
            with sessions.session("forked") as session:
                self.numbers["forked"] = 0
                session.append("x.own", {})
                self.ack(session)
            head = sessions.take_in("taken", list(sessions.export("origin")))
            self.say(f"ACK {self.name} taken {head.count} {head.hash}")
            for other in ("copies", "copies.db"):
                with turnwal.open_store(url_of(self.root, other)) as into:
                    for copy in sessions.copy_all(into):
                        self.say(f"ACK {other} {copy.session} {copy.head.replace(':', ' ')}")

    def together(self) -> None:
        """Barriers that wait at the same time and share syncs and commits."""
        with self.store() as sessions:
            opened = [sessions.session(f"t{number}").open() for number in range(3)]

            def append(session: Session) -> None:
                for _ in range(4):
                    self.note(session)
                    self.ack(session)

            threads = [threading.Thread(target=append, args=(session,)) for session in opened]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for session in opened:
                session.close()

    def checkpoint(self) -> None:
        """A `-wal` that is copied into the database while it is written, again and again, and by a clean close."""
        sqlite_file._PRAGMAS["wal_autocheckpoint"] = SMALL_CHECKPOINT
        for _ in range(2):
            with self.store() as sessions, sessions.session("much") as session:
                for _ in range(9):
                    self.note(session)
                    self.ack(session)

    def exports(self) -> None:
        """Files that are made beside stores: exports, requests, reports, repaired copies of a file and of a folder."""
        with self.store() as sessions, sessions.session("told") as session:
            for _ in range(6):
                self.note(session)
            self.ack(session)
            with session.turn(user="go") as turn, turn.step() as step:
                step.assistant({"parts": [{"type": "text", "content": "gone"}], "stop": "end"})
            self.ack(session)
        url = url_of(self.root, self.name)
        (self.root / "out").mkdir()
        out = self.root / "out"
        sync_directory(self.root)
        self.run(out / "lines.jsonl", "export", "told", "--store", url, "-o", str(out / "lines.jsonl"))
        self.run(
            out / "asked.json", "export", "told", "--store", url, "--to", "anthropic", "-o", str(out / "asked.json")
        )
        self.run(out / "report.json", "recover", "--all", "--store", url, "--report", str(out / "report.json"))
        for name, found in FOREIGN.items():
            self.run(out / name, "repair", str(found), "-o", str(out / name), "--live")

    def run(self, made: Path, *arguments: str) -> None:
        """Have the command line make a file."""

        def command() -> None:
            sys.stdout = sys.stderr
            app(arguments, prog_name="turnwal", standalone_mode=False)

        self.in_child(command)
        if not made.exists():
            raise RuntimeError(f"{arguments} made nothing")
        self.done(made)

    def faulty(self) -> None:
        """A program that meets a failed sync, opens anew, and goes on."""
        done, opened = 0, 0
        while done < 8 and opened < 6:
            opened += 1
            try:
                with self.store() as sessions, sessions.session("faulty") as session:
                    self.ack(session)
                    poisoned = False
                    while done < 8:
                        done += 1
                        self.note(session)
                        try:
                            self.ack(session)
                        except TurnwalError:
                            poisoned = True
                            raise
                        finally:
                            if poisoned:
                                self.try_again(session)
            except TurnwalError:
                self.numbers["faulty"] = self.noted("faulty")

    def try_again(self, session: Session) -> None:
        """A barrier behind one that failed; it has to fail."""
        try:
            session.flush()
        except TurnwalError:
            return
        self.say("SUCCESS behind a failed barrier")

    def noted(self, name: str) -> int:
        """How many notes stand in a session, as its next owner reads it."""
        try:
            with self.store() as sessions, sessions.session(name) as session:
                return 1 + max((event.data["n"] for event in session.events() if event.type == NOTE), default=-1)
        except TurnwalError:
            return self.numbers.get(name, 0)


def tree_digest(path: Path) -> str:
    """What a file holds, or all files of a directory by their names."""
    digest = hashlib.sha256()
    for inner in [path] if path.is_file() else sorted(found for found in path.rglob("*") if found.is_file()):
        content = inner.read_bytes()
        digest.update(f"\0{inner.relative_to(path)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def store_name(kind: str) -> str:
    return {"file": "deep/sessions", "sqlite": "deep/sessions.db"}[kind]


def url_of(root: Path, name: str) -> str:
    return f"sqlite:{root / name}" if name.endswith(".db") else f"file:{root / name}"


WORKLOADS: Final[Mapping[str, Callable[[Work], None]]] = {
    "create": Work.create,
    "reopen": Work.reopen,
    "torn": Work.torn,
    "copies": Work.copies,
    "together": Work.together,
    "checkpoint": Work.checkpoint,
    "exports": Work.exports,
    "faulty": Work.faulty,
}


def main(arguments: list[str]) -> None:
    name, kind, root, *defect = arguments
    for plant in defect:
        planted.PLANTED[plant]()
    WORKLOADS[name](Work(Path(root), kind))


if __name__ == "__main__":
    main(sys.argv[1:])
