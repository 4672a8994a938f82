"""Where a store is, in one text."""

from pathlib import Path

import pytest

from turnwal.core.errors import InvalidStoreUrl
from turnwal.store.file import FileStore
from turnwal.store.memory import MemoryStore
from turnwal.store.urls import migrate_store, open_store, shown


def made_by(store: object) -> str:
    assert isinstance(store, FileStore)
    claim = store.claim("s")
    path = claim._path
    claim.release()
    return path


@pytest.mark.parametrize(
    "url", ["sessions", "./sessions", "sessions/", "file:sessions", "FILE:sessions", "a/b/../../sessions"]
)
def test_a_path_and_its_url_are_one_store(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert made_by(open_store(url)) == str(tmp_path / "sessions" / "s.jsonl")


def test_an_absolute_url_is_percent_encoded(tmp_path: Path) -> None:
    root = tmp_path / "with space é"

    assert made_by(open_store("file://" + str(root).replace(" ", "%20"))) == str(root / "s.jsonl")
    assert made_by(open_store(f"file://localhost{tmp_path}/x")) == str(tmp_path / "x" / "s.jsonl")
    assert made_by(open_store(f"file:{root}")) == str(root / "s.jsonl")
    assert made_by(open_store(root)) == str(root / "s.jsonl")


def test_a_path_object_is_never_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert made_by(open_store(Path("memory:"))) == str(tmp_path / "memory:" / "s.jsonl")


@pytest.mark.parametrize("url", ["memory:", "memory://", "Memory:"])
def test_a_memory_store_is_new_each_time(url: str) -> None:
    store = open_store(url)
    assert isinstance(store, MemoryStore)
    store.claim("s")

    assert list(open_store(url).sessions()) == []


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("\0", "NUL"),
        (7, "not text"),
        (b"sessions", "not text"),
        (None, "not text"),
        ("sqllite:x", "'sqllite'"),
        ("fille:x", "'fille'"),
        ("http://host/x", "'http'"),
        ("s3://bucket", "'s3'"),
        ("memory:x", "no name"),
        ("file:", "no path"),
        ("file://host/x", "the machine 'host'"),
        ("file:///%00", "no path"),
    ],
)
def test_what_names_no_store_is_refused_and_nothing_is_made(
    url: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InvalidStoreUrl, match=says) as caught:
        open_store(url)
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_near_miss_is_met_with_what_was_meant() -> None:
    with pytest.raises(InvalidStoreUrl) as caught:
        open_store("fille:x")
    assert caught.value.hint.startswith("did you mean file:x;")


def test_a_file_is_no_store(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(b"")

    for url in (str(file), f"file:{file}", file):
        with pytest.raises(InvalidStoreUrl, match="it is a file") as caught:
            open_store(url)
        assert f"pass the directory {tmp_path}" in caught.value.hint


def test_options_reach_the_store(tmp_path: Path) -> None:
    store = open_store(tmp_path, network=True)
    assert isinstance(store, FileStore)
    assert store._network
    with pytest.raises(InvalidStoreUrl, match="netwrok"):
        open_store(tmp_path, netwrok=True)
    with pytest.raises(InvalidStoreUrl, match="network"):
        open_store("memory:", network=True)


@pytest.mark.parametrize(
    "url",
    [
        "postgress://me:s3cret@host/data",
        "pg://me:s3cret@host/data",
        "postgres+psycopg://me:s3/cr@et?s3cret@host/data",
        "postgresql://me:s3@cret@host/data",
        "postgresql://me:s3/cret@host/data",
        "postgresql://host/data@s3cret@x",
        "postgresql:://me:s3cret@host/data",
        "postgresql://me@host/data?password=s3cret&nonsense=1",
        "pg://me@host/data?user=you&password=s3cret",
        "pg://me@host/data?sslpassword=s3cret",
        "memory://me:s3cret@host",
        "file://me:s3cret@host/path",
    ],
)
def test_a_wrong_url_is_told_without_its_password(url: str) -> None:
    for act in (open_store, migrate_store):
        with pytest.raises(InvalidStoreUrl) as caught:
            act(url)
        error = caught.value
        assert "s3" not in f"{error} {error.subject} {error.hint} {error.to_json()}"
        assert "cret" not in f"{error} {error.subject} {error.hint} {error.to_json()}"


def test_what_is_shown_of_a_url_is_all_but_its_passwords() -> None:
    assert shown("postgresql://me:s3cret@host:5432/data?a=b") == "postgresql://me:…@host:5432/data?a=b"
    assert shown("postgresql://me@host/data?password=s3cret&a=b") == "postgresql://me@host/data?password=…&a=b"
    for plain in ("postgresql://me@host/data", "postgresql://host:5432/data?user=me", "sqlite:a@b.db", "a//b:c", "x"):
        assert shown(plain) == plain


def test_a_password_that_holds_a_line_feed_is_not_shown() -> None:
    assert shown("postgresql://me:s3\ncret@host/data") == "postgresql://me:…@host/data"
    assert shown("postgresql://me:a@b@host/data?x=//u:p") == "postgresql://me:…@host/data?x=//u:p"


@pytest.mark.parametrize("url", ["file:///tmp/\ud83d", "file:a\ud83d", "sqlite:\ud83d/a.db", "a\ud83d/"])
def test_a_path_that_holds_half_a_character_is_refused(url: str) -> None:
    with pytest.raises(InvalidStoreUrl, match="half a character"):
        open_store(url)
