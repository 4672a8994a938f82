"""Looking at sessions in every state, and holding every byte and every time of every file against what it was.

No state has open work: a session that has is owned while it is exported, and whoever owns one makes its last batch
durable again, same bytes.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

from click.testing import CliRunner

import turnwal
from tests.corrupt.judging import Seen
from tests.corrupt.logs import folders
from turnwal.cli.app import app
from turnwal.session.sessions import Sessions
from turnwal.store.disk import Disk
from turnwal.store.file import FileStore
from turnwal.store.sqlite import SqliteStore

VERBS: Final = (
    ("show", "{id}"),
    ("verify", "{id}"),
    ("verify", "{id}", "--json"),
    ("head", "{id}"),
    ("export", "{id}"),
    ("export", "{id}", "--salvage"),
    ("plan", "{id}"),
    ("ls",),
    ("ls", "--interrupted"),
)
_STATES: Final = ("whole", "torn", "damaged", "short", "headless", "newer", "empty")


def looking() -> Seen:
    """Every verb that looks, on files and on a database, in every state that a session can be in."""
    seen = Seen()
    with folders("files", "database") as (files, database):
        _files(files)
        store = database / "agents.db"
        _database(store)
        runner = CliRunner()
        for state in _STATES:
            for verb in VERBS:
                arguments = [word.format(id=state) for word in verb]
                _look(seen, files, runner, [*arguments, "--store", str(files)])
        for state in ("whole", "short"):
            for verb in VERBS:
                arguments = [word.format(id=state) for word in verb]
                _look(seen, database, runner, [*arguments, "--store", f"sqlite:{store}"])
        _look(seen, files, runner, ["doctor", str(files)])
        _look(seen, database, runner, ["doctor", str(database)])
    return seen


def _look(seen: Seen, folder: Path, runner: CliRunner, arguments: list[str]) -> None:
    before = _state(folder)
    said = " ".join(arguments)
    error = runner.invoke(app, arguments).exception
    if error is not None and not isinstance(error, (SystemExit, turnwal.TurnwalError)):
        seen.violations.append(f"{said}: {error!r}")
    seen.changes += 1
    seen.words["verbs"] += 1
    after = _state(folder)
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            seen.violations.append(f"{said}: {name} was changed by looking")


def _state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Time and content of each file, but for what SQLite needs to read at all: `-shm`, and a `-wal` that is empty."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm") and (path.stat().st_size or not path.name.endswith("-wal"))
    }


def _files(folder: Path) -> None:
    sessions = Sessions(FileStore(folder, heads=True))
    for state in _STATES[:-1]:
        _fill(sessions, state)
    paths = {state: folder / f"{state}.jsonl" for state in _STATES}
    lines = paths["whole"].read_bytes().splitlines(keepends=True)
    with paths["torn"].open("ab") as file:
        file.write(b'{"seq":')
    _change(paths["damaged"], lambda content: content.replace(b'"seq":3', b'"sex":3', 1))
    _change(paths["short"], lambda content: content[: content.index(b"\n", content.index(b'"turn_end"')) + 1])
    _change(paths["headless"], lambda content: b"\0" + content[1:])
    _change(paths["newer"], lambda content: content.replace(b'"type":"user_message"', b'"type":"from_a_later_day"', 1))
    paths["empty"].touch()
    assert json.loads(lines[0])["data"]["id"] == "whole"


def _database(path: Path) -> None:
    sessions = Sessions(SqliteStore(path, heads=True))
    for state in ("whole", "short"):
        _fill(sessions, state)
    sessions.close()
    head = path.parent / "agents.db-heads" / "short.head"
    Disk().write_whole(str(head), b"turnwal head of another day", new=f"{head}.new")


def _fill(sessions: Sessions, id: str) -> None:
    with sessions.session(id) as session:
        for number in range(2):
            with session.turn(user=f"question {number}") as turn, turn.step() as step:
                step.assistant({"parts": [{"type": "text", "content": "an answer"}]})


def _change(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))
