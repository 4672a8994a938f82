"""Looking at the beginning of a path: what it holds, whatever it is called and whatever is broken in it."""

import json
import os
import pickle
import random
import sqlite3
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import apsw
import pytest
import zstandard

from turnwal.formats import sampling
from turnwal.formats.format import Sample
from turnwal.formats.sampling import HEAD, sample


def sampled(path: Path, content: bytes) -> Sample | None:
    path.write_bytes(content)
    return sample(path)


@pytest.mark.parametrize(
    ("content", "kind", "records"),
    [
        (b'{"a":1}\n{"a":2}\n', "lines", ({"a": 1}, {"a": 2})),
        (b'{"a":1}', "lines", ({"a": 1},)),
        (b'\xef\xbb\xbf[{"a":1}, 2]', "json", ({"a": 1}, 2)),
        (b'[\n{"a":1},\n{"a":2}\n]\n', "json", ({"a": 1}, {"a": 2})),
        (b'[{"a":1},{"a":', "json", ({"a": 1},)),
        (b'{\n "a": [\n{"b":1},\n{"b":2}\n]}', "json", ({"a": [{"b": 1}, {"b": 2}]},)),
        (b'\0\0\0{"a":1}\n', "lines", ({"a": 1},)),
        (b'{"a":1}\n{"a":2}{"a":3}\n\n{"a":4}\n', "lines", ({"a": 1}, {"a": 4})),
        (b'{"a":\n{"a":2}\n', "lines", ({"a": 2},)),
        (b'rest of a record"}\n{"a":2}\n', "lines", ({"a": 2},)),
        (b'[broken\n{"a":2}\n', "lines", ({"a": 2},)),
    ],
)
def test_texts(tmp_path: Path, content: bytes, kind: str, records: tuple[Any, ...]) -> None:
    found = sampled(tmp_path / "a", content)
    assert found is not None
    assert (found.kind, found.records, found.array) == (
        kind,
        records,
        kind == "json" and content.lstrip(b"\xef\xbb\xbf")[:1] == b"[",
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0",
        b"\n",
        b"plain text\nof several lines\n",
        b"{not json at all",
        b'{"\x01": 1, "a',
        b"[",
        b"17",
        b'"text"',
        pickle.dumps({"messages": [1, 2]}),
        b"\x7fELF" + bytes(range(256)) * 100,
        random.Random(1).randbytes(100_000),
        zstandard.compress(b"plain text"),
        b"\x28\xb5\x2f\xfd" + b"\xff" * 100,
    ],
)
def test_what_holds_no_values_is_nothing_or_empty(tmp_path: Path, content: bytes) -> None:
    found = sampled(tmp_path / "a", content)
    assert found is None or not found.records


def test_archives_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "inner.jsonl").write_text('{"a":1}\n')
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(tmp_path / "inner.jsonl", "inner.jsonl")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as packed:
        packed.add(tmp_path / "inner.jsonl", "inner.jsonl")
    assert sample(tmp_path / "a.zip") is None
    assert sample(tmp_path / "a.tar.gz") is None


def test_a_pickle_is_not_loaded(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert sampled(tmp_path / "a", pickle.dumps(Trap(), protocol=protocol)) is None
    assert not (tmp_path / "sprung").exists()


def test_a_first_line_longer_than_what_is_looked_at(tmp_path: Path) -> None:
    long = json.dumps({"a": "x" * 3 * HEAD}).encode()
    found = sampled(tmp_path / "a", long + b'\n{"a":2}\n')
    assert found is not None
    assert (found.kind, found.records) == ("lines", ({"a": 2},))
    found = sampled(tmp_path / "a", long)
    assert found is not None
    assert (found.kind, len(found.records)) == ("json", 1)
    found = sampled(tmp_path / "a", b'{"a":1}\n' + long)
    assert found is not None
    assert found.records == ({"a": 1},)


def test_a_long_record_behind_short_ones_hides_none_behind_it(tmp_path: Path) -> None:
    long = b'{"a":"' + b"x" * HEAD + b'"}\n'
    found = sampled(tmp_path / "a", b'{"a":1}\n' + long + b'{"a":2}\n')
    assert found is not None
    assert found.records == ({"a": 1}, {"a": 2})


def test_only_so_much_is_looked_at(tmp_path: Path) -> None:
    found = sampled(tmp_path / "a", b'{"a":1}\n' * 100_000)
    assert found is not None
    assert len(found.records) == 200
    found = sampled(tmp_path / "a", b"[" + b'{"a":1},' * 100_000)
    assert found is not None
    assert len(found.records) == 24


def test_nesting_that_is_too_deep_is_stepped_over(tmp_path: Path) -> None:
    deep = b'{"a":' + b"[" * 60_000 + b"]" * 60_000 + b"}"
    found = sampled(tmp_path / "a", deep + b'\n{"a":2}\n')
    assert found is not None
    assert found.records == ({"a": 2},)
    assert sampled(tmp_path / "a", b"[" * 200_000) is None


def test_frames_of_zstandard(tmp_path: Path) -> None:
    frames = zstandard.compress(b'{"a":1}\n') + zstandard.compress(b'{"a":2}\n')
    found = sampled(tmp_path / "a", frames + zstandard.compress(b'{"a":3}\n')[:-3])
    assert found is not None
    assert (found.kind, found.records[:2]) == ("zstd", ({"a": 1}, {"a": 2}))


def test_a_database_gives_its_tables_and_a_broken_one_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (one, two)")
    connection.commit()
    connection.close()
    found = sample(path)
    assert found is not None
    assert (found.kind, found.tables) == ("sqlite", {"t": frozenset({"one", "two"})})
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 4000)
    with pytest.raises(apsw.Error):
        sample(path)


def test_a_directory_gives_its_names(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    (tmp_path / "two").mkdir()
    found = sample(tmp_path)
    assert found is not None
    assert (found.kind, found.names) == ("directory", frozenset({"one", "two"}))


def test_what_is_no_file_is_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert sample(tmp_path / "pipe") is None
    assert sample(tmp_path / "absent") is None


@pytest.mark.parametrize("indent", [None, 1])
def test_a_long_object_is_known_by_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indent: int | None
) -> None:
    monkeypatch.setattr(sampling, "_WHOLE_MAX", 100_000)
    messages = [{"role": "user", "content": "x" * 1_000} for _ in range(400)]
    value = {"model": 'a "name": [', "max_tokens": 7, "messages": messages, "system": "late"}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(value, indent=indent))
    found = sample(path)
    assert found is not None
    assert found.kind == "json"
    (begun,) = found.records
    assert (begun["model"], begun["max_tokens"]) == ('a "name": [', 7)
    assert begun["messages"] == messages[: len(begun["messages"])]
    assert len(begun["messages"]) > 10
