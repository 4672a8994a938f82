"""Looking at sessions in every state, and holding every byte and every time of every file against what it was."""

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
                _look(seen, files, lambda arguments=arguments: _run(runner, [*arguments, "--store", str(files)]))
        for state in ("whole", "short"):
            for verb in VERBS:
                arguments = [word.format(id=state) for word in verb]
                url = f"sqlite:{store}"
                _look(seen, database, lambda arguments=arguments, url=url: _run(runner, [*arguments, "--store", url]))
        _look(seen, files, lambda: _run(runner, ["doctor", str(files)]))
        _look(seen, database, lambda: _run(runner, ["doctor", str(database)]))
    return seen


def _look(seen: Seen, folder: Path, look: Callable[[], str]) -> None:
    before = _state(folder)
    said = look()
    seen.changes += 1
    seen.words["verbs"] += 1
    after = _state(folder)
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            seen.violations.append(f"{said}: {name} was changed by looking")


def _state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Time and content of each file. What SQLite needs to read at all is left out: an index in memory, an empty `-wal`."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm") and (path.stat().st_size or not path.name.endswith("-wal"))
    }


def _run(runner: CliRunner, arguments: list[str]) -> str:
    result = runner.invoke(app, arguments)
    said = " ".join(arguments)
    if result.exception is not None and not isinstance(result.exception, (SystemExit, turnwal.TurnwalError)):
        return f"{said} raised {result.exception!r}"
    return said


def _files(folder: Path) -> None:
    sessions = Sessions(FileStore(folder, heads=True))
    for state in _STATES[:-1]:
        _fill(sessions, state)
    paths = {state: folder / f"{state}.jsonl" for state in _STATES}
    lines = paths["whole"].read_bytes().splitlines(keepends=True)
    with paths["torn"].open("ab") as file:
        file.write(b'{"seq":')
    _change(paths["damaged"], lambda content: content.replace(b'"seq":3', b'"sex":3', 1))
    _change(paths["short"], lambda content: content[: len(content) // 2])
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
