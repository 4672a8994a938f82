"""Sessions of other tools as files in a folder, and the same with something wrong in them.

A world is what one session is made of: files, a database, a tree. The healthy and the killed ones that the tests of the
formats keep or make are where every edit begins.
"""

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import zstandard

from tests.formats import (
    jsonl,
    test_codex,
    test_deepseek_harness,
    test_goose,
    test_opencode,
    test_pi,
    test_qwen_code,
    test_raw,
    transcripts,
)
from tests.fuzz.choices import Choices
from tests.fuzz.edits import edited, lines_edited, spoilt, written
from turnwal.formats.database import MAGIC
from turnwal.formats.zstd import MAGIC as ZSTD

DATA: Final = Path(__file__).parents[1] / "formats" / "data"
World = Mapping[str, bytes]
"""The content of each file by its path."""
_STORED_MAX: Final = 130_000
"""Bytes of one stored file; longer ones say no more and are slow to edit."""


@cache
def worlds(format: str) -> tuple[World, ...]:
    """The worlds of a format."""
    if format in _MAKERS:
        return tuple(_made(make) for make in _MAKERS[format])
    stored = sorted(path for path in (DATA / format).iterdir() if path.suffix in (".db", ".json") or path.is_dir())
    return tuple(found for found in map(_stored, stored) if found)


def _stored(path: Path) -> World:
    if path.is_dir():
        return _files(path)
    beside = [each for each in (path, Path(f"{path}-wal")) if each.exists()]
    whole = {each.name: each.read_bytes() for each in beside}
    return whole if sum(map(len, whole.values())) <= _STORED_MAX else {}


def _files(root: Path) -> World:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def _made(make: Callable[[Path], object]) -> World:
    with tempfile.TemporaryDirectory() as directory:
        make(Path(directory))
        return _files(Path(directory))


def _delegated(root: Path) -> None:
    made = transcripts.Transcript()
    made.prompt("build it")
    made.call("msg_1", "toolu_1", "Task", input={"prompt": "look", "description": "look"})
    made.write(root / "session.jsonl")
    agent = transcripts.Transcript(sidechain=True)
    agent.prompt("look")
    agent.call("msg_9", "toolu_9")
    agent.write(root / "session" / "subagents" / "agent-1.jsonl")
    (root / "session" / "subagents" / "agent-1.meta.json").write_text(json.dumps({"toolUseId": "toolu_1"}))


def _lines(name: str, records: Any) -> Callable[[Path], object]:
    return lambda root: jsonl.written(root / name, list(records))


def _array(name: str, *, whole: bool) -> Callable[[Path], object]:
    make, field, _ = test_raw.ARRAYS[name]
    return lambda root: test_raw.written(root / "x.json", make(*test_raw.KILLED), field if whole else None)


_RUNNING: Final = ("assistant", [test_opencode.text("once more"), test_opencode.tool("c4", "running")])


def _stored_by(store: Callable[[Path, Any], Path], messages: Any, root: Path) -> object:
    return store(root / "x", messages)


def _packed(root: Path) -> None:
    records = test_deepseek_harness.healthy().records
    batches = [[test_deepseek_harness.HEADER], records[1:4], records[4:]]
    (root / "events.jsonl.zst").write_bytes(test_deepseek_harness.framed(batches))


_MAKERS: Final[Mapping[str, tuple[Callable[[Path], object], ...]]] = {
    "claude_code": (lambda root: transcripts.healthy().write(root / "session.jsonl"), _delegated),
    "codex": (_lines(test_codex.NAME, test_codex.HEALTHY), _lines(test_codex.NAME, test_codex.HEALTHY[:-4])),
    "qwen_code": (
        _lines(test_qwen_code.NAME, test_qwen_code.HEALTHY),
        _lines(test_qwen_code.NAME, test_qwen_code.HEALTHY[:-3]),
    ),
    "pi": (_lines(test_pi.NAME, test_pi.HEALTHY), _lines(test_pi.NAME, test_pi.HEALTHY[:-4])),
    "deepseek_harness": (
        _lines("events.jsonl", test_deepseek_harness.healthy().records),
        _lines("events.jsonl", test_deepseek_harness.healthy().records[:-4]),
        _packed,
    ),
    "opencode": tuple(
        partial(_stored_by, store, [*test_opencode.HEALTHY, _RUNNING])
        for store in (test_opencode.stored, test_opencode.treed, test_opencode.exported)
    ),
    "goose": tuple(
        partial(_stored_by, store, test_goose.HEALTHY[:end])
        for store in (test_goose.stored, test_goose.filed)
        for end in (None, -2)
    ),
    **{name: (_array(name, whole=False), _array(name, whole=True)) for name in test_raw.ARRAYS},
}


def broken(choices: Choices, world: World) -> dict[str, bytes]:
    """A world with something wrong in one or two of its files, or with the files themselves."""
    made = dict(world)
    for _ in range(1 + choices.below(2)):
        if not made:
            break
        name = choices.pick(sorted(made))
        if len(made) > 1 and choices.below(12) == 1:
            content = made.pop(name)
            if choices.below(2):
                made[choices.pick((f"{name}.tmp", name.replace("0", "7"), f"x{name}"))] = content
        else:
            made[name] = _changed(choices, made[name])
    return made


def _changed(choices: Choices, content: bytes) -> bytes:
    if choices.below(8) == 1:
        return spoilt(choices, content)
    if content.startswith(MAGIC):
        return _with_rows(choices, content)
    if content.startswith(ZSTD):
        return _packed_again(choices, content)
    try:
        value = json.loads(content)
    except ValueError:
        return lines_edited(choices, content)
    return written(choices, edited(choices, value))


def _packed_again(choices: Choices, content: bytes) -> bytes:
    reader = zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True)
    try:
        lines = lines_edited(choices, reader.read())
    except zstandard.ZstdError:  # an edit of bytes was here before
        return spoilt(choices, content)
    cut = choices.below(len(lines) + 1)
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    return b"".join(compressor.compress(part) for part in (lines[:cut], lines[cut:]))


def _with_rows(choices: Choices, content: bytes) -> bytes:
    """A database with an edit in one or two of its cells, or without a row."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "edited.db")
        path.write_bytes(content)
        with suppress(sqlite3.Error, UnicodeError), closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
            connection.execute("PRAGMA synchronous = OFF")
            for _ in range(1 + choices.below(2)):
                _edit_row(choices, connection)
        return path.read_bytes()


def _edit_row(choices: Choices, connection: sqlite3.Connection) -> None:
    names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    tables = [name for (name,) in connection.execute(names)]
    filled = [name for name in tables if connection.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone()]  # noqa: S608
    if not filled:
        return
    table = choices.pick(filled)
    rows = [rowid for (rowid,) in connection.execute(f'SELECT rowid FROM "{table}" ORDER BY rowid')]  # noqa: S608
    if not rows:  # an edit of bytes was here before
        return
    row = choices.pick(rows)
    columns = [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]
    column = choices.pick(columns)
    found = connection.execute(f'SELECT "{column}" FROM "{table}" WHERE rowid = ?', (row,)).fetchone()  # noqa: S608
    if found is None:
        return
    (cell,) = found
    if choices.below(10) == 1:
        connection.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (row,))  # noqa: S608
        return
    value = _cell(choices, cell)
    connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (value, row))  # noqa: S608


def _cell(choices: Choices, cell: Any) -> Any:
    """What stands in a cell now: JSON with an edit where it was JSON, else something of any type."""
    if isinstance(cell, (str, bytes)) and cell[:1] in ("{", "[", b"{", b"["):
        with suppress(ValueError):
            made = written(choices, edited(choices, json.loads(cell)))
            return made if isinstance(cell, bytes) else made.decode("utf-8", "replace")
    if isinstance(cell, bytes) and choices.often():
        return spoilt(choices, cell)
    return choices.pick((None, -1, 2**62, 1.5, "", "x", "\0", b"", b"\xff\x00", "[]", "{}", "9999-01-01", "é" * 600))


def put(world: World, root: Path) -> None:
    """Write the files of a world below a folder."""
    for name, content in world.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def cleared(root: Path) -> Path:
    """The folder, with nothing in it."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    return root
