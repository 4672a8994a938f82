"""Finding sessions below folders: each once, whatever else is there, and one bad path never stops the others."""

import errno
import json
import os
import pickle
import sqlite3
import sys
from pathlib import Path

import pytest

from tests.formats.transcripts import healthy
from turnwal.formats import finding
from turnwal.formats.doctor import diagnose, examine
from turnwal.formats.finding import Unread, find, known_places
from turnwal.formats.format import Found
from turnwal.formats.sampling import sample


def names(paths: list[Path]) -> list[str]:
    return [Path(found.where).name for found in find(paths)]


def session(path: Path) -> Path:
    return healthy().write(path)


def test_sessions_are_found_by_content_and_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.log", "sub/deeper/c", ".hidden/d.jsonl"):
        session(tmp_path / name)
    (tmp_path / "notes.jsonl").write_text('{"a":1}\n')
    assert names([tmp_path]) == ["d.jsonl", "a.log", "b.jsonl", "c"]


def test_nothing_is_followed_twice(tmp_path: Path) -> None:
    session(tmp_path / "one" / "a.jsonl")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "one" / "up").symlink_to(tmp_path / "one")
    (tmp_path / "again.jsonl").symlink_to(tmp_path / "one" / "a.jsonl")
    os.link(tmp_path / "one" / "a.jsonl", tmp_path / "one" / "b.jsonl")
    (tmp_path / "self").symlink_to("self")
    found = list(find([tmp_path, tmp_path / "one"]))
    assert [each.path.name for each in found if isinstance(each, Found)] == ["again.jsonl"]


def test_a_path_that_was_named_twice_is_no_path_without_sessions(tmp_path: Path) -> None:
    path = session(tmp_path / "a.jsonl")
    assert [type(found) for found in find([path, path, tmp_path])] == [Found]


def test_a_path_that_is_there_is_never_called_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = session(tmp_path / "a.jsonl")

    def gone(_: Path) -> None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "a.jsonl-journal")

    monkeypatch.setattr(finding, "sample", gone)
    (found,) = find([path])
    assert isinstance(found, Unread)
    assert (found.verdict, found.problem) == ("unreadable", "a.jsonl-journal went away while it was read")


def test_a_path_that_was_named_and_holds_nothing_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    absent, empty, notes = find([tmp_path / "absent", tmp_path / "empty", tmp_path / "notes.txt"])
    assert isinstance(absent, Unread)
    assert (absent.verdict, absent.problem) == ("unreadable", "there is no such path")
    for found in (empty, notes):
        assert isinstance(found, Unread)
        assert (found.verdict, found.problem) == ("unreadable", "there is no session of a known format in it")


def test_one_reason_is_given_and_not_two(tmp_path: Path) -> None:
    (tmp_path / "self").symlink_to("self")
    (found,) = find([tmp_path / "self"])
    assert isinstance(found, Unread)
    assert "symbolic links" in found.problem


def test_a_dangling_link_below_a_folder_is_stepped_over(tmp_path: Path) -> None:
    session(tmp_path / "a.jsonl")
    (tmp_path / "gone").symlink_to(tmp_path / "absent")
    assert names([tmp_path]) == ["a.jsonl"]


def test_a_path_that_vanishes_between_listing_and_reading_is_stepped_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.jsonl", "b.jsonl", "c.jsonl"):
        session(tmp_path / name)
    real = sample

    def vanishing(path: Path):  # type: ignore[no-untyped-def] # noqa: ANN202
        if path.name == "b.jsonl":
            path.unlink(missing_ok=True)
        return real(path)

    monkeypatch.setattr(finding, "sample", vanishing)
    assert names([tmp_path]) == ["a.jsonl", "c.jsonl"]


def test_a_file_that_vanishes_between_finding_and_reading_is_unreadable(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl", "c.jsonl"):
        session(tmp_path / name)
    found = []
    for diagnosis in examine([tmp_path]):
        (tmp_path / "b.jsonl").unlink(missing_ok=True)
        found.append((Path(diagnosis.path).name, diagnosis.verdict))
    assert found == [("a.jsonl", "clean"), ("b.jsonl", "unreadable"), ("c.jsonl", "clean")]
    session(tmp_path / "b.jsonl")
    (first, *_) = find([tmp_path / "b.jsonl"])
    assert isinstance(first, Found)
    first.path.unlink()
    gone = diagnose(first)
    assert (gone.verdict, gone.problem) == ("unreadable", "No such file or directory")


def test_what_may_not_be_read_is_named_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The superuser may read everything, so that the refusal is made here."""
    for name in ("a.jsonl", "b.jsonl", "c/d.jsonl", "e.jsonl"):
        session(tmp_path / name)
    real_open, real_scan = Path.open, os.scandir

    def open_(path: Path, *args, **kwargs):  # type: ignore[no-untyped-def] # noqa: ANN002, ANN003, ANN202
        if path.name == "b.jsonl":
            raise PermissionError(13, "Permission denied", str(path))
        return real_open(path, *args, **kwargs)

    def scandir(path: Path):  # type: ignore[no-untyped-def] # noqa: ANN202
        if Path(path).name == "c":
            raise PermissionError(13, "Permission denied", str(path))
        return real_scan(path)

    monkeypatch.setattr(Path, "open", open_)
    monkeypatch.setattr(os, "scandir", scandir)
    told = [(Path(found.path).name, found.verdict, found.problem) for found in examine([tmp_path])]
    assert told == [
        ("a.jsonl", "clean", ""),
        ("b.jsonl", "unreadable", "Permission denied"),
        ("c", "unreadable", "Permission denied"),
        ("e.jsonl", "clean", ""),
    ]


def test_pickles_binaries_and_foreign_databases_are_stepped_over(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"messages": []}))
    (tmp_path / "b.bin").write_bytes(bytes(range(256)) * 1_000)
    connection = sqlite3.connect(tmp_path / "c.db")
    connection.execute("CREATE TABLE bookmarks (url)")
    connection.commit()
    connection.close()
    (tmp_path / "d.json").write_text(json.dumps({"name": "x"}))
    os.mkfifo(tmp_path / "e.jsonl")
    session(tmp_path / "f.jsonl")
    assert names([tmp_path]) == ["f.jsonl"]
    assert [found.verdict for found in examine([tmp_path / "a.pkl", tmp_path / "c.db"])] == ["unreadable"] * 2


def test_a_part_that_was_named_itself_is_read(tmp_path: Path) -> None:
    session(tmp_path / "s.jsonl")
    part = session(tmp_path / "s" / "subagents" / "agent-a.jsonl")
    assert names([tmp_path]) == ["s.jsonl"]
    assert names([part]) == ["agent-a.jsonl"]


def test_a_folder_deeper_than_calls_may_be_is_walked(tmp_path: Path) -> None:
    limit = sys.getrecursionlimit()
    deep = tmp_path
    for _ in range(80):
        deep = deep / "d"
    session(deep / "a.jsonl")
    session(tmp_path / "e.jsonl")
    sys.setrecursionlimit(_depth() + 70)
    try:
        found = names([tmp_path])
    finally:
        sys.setrecursionlimit(limit)
    assert found == ["a.jsonl", "e.jsonl"]


def _depth() -> int:
    """How many calls deep this is."""
    frame, count = sys._getframe(), 0
    while frame.f_back is not None:
        frame, count = frame.f_back, count + 1
    return count


def test_the_places_of_the_known_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    (home / ".claude" / "projects").mkdir(parents=True)
    (other / "projects").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    assert home / ".claude" / "projects" in known_places()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(other))
    assert other / "projects" in known_places()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "absent"))
    assert tmp_path / "absent" / "projects" not in known_places()


@pytest.mark.parametrize(
    "odd", [{"type": ["object", "null"]}, {"type": {}}, {"type": 1, "payload": {}, "timestamp": "t"}]
)
def test_json_of_any_shape_stops_nothing(tmp_path: Path, odd: dict[str, object]) -> None:
    (tmp_path / "a.json").write_text(json.dumps(odd))
    session(tmp_path / "b.jsonl")
    assert names([tmp_path]) == ["b.jsonl"]


def test_a_damaged_database_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 4000)
    session(tmp_path / "b.jsonl")
    (broken, sound) = find([tmp_path])
    assert isinstance(broken, Unread)
    assert (broken.verdict, broken.problem[:26]) == ("unreadable", "the database cannot be rea")
    assert isinstance(sound, Found)


def test_a_link_that_leads_nowhere_is_no_session_that_was_lost(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "nowhere")
    session(tmp_path / "b.jsonl")
    assert names([tmp_path]) == ["b.jsonl"]
