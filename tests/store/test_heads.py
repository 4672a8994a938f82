"""Heads that are kept apart from the logs: what is found with them, and what a crash between the two syncs leaves."""

from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from tests.store.building import file_of, grow, head_of, lines_of, log_of
from tests.store.faults import PlannedDisk
from turnwal.core.chain import EMPTY, Head
from turnwal.core.errors import (
    ClosedAfterFailure,
    HeadMismatch,
    InvalidStoreUrl,
    OwnershipLost,
    SessionNotFound,
    StoreFailed,
)
from turnwal.core.kept import SLOT_BYTES, heads_in, newest, slot, slots_of
from turnwal.core.log import Log
from turnwal.session.sessions import Sessions, open_store
from turnwal.session.verifying import verify
from turnwal.store.file import FileStore
from turnwal.store.protocol import Gap, Store
from turnwal.store.sqlite import SqliteStore


@pytest.fixture(params=["file", "sqlite"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens the same storage again and again; heads are asked for."""
    stores: list[Store] = []

    def again() -> Store:
        if request.param == "file":
            stores.append(FileStore(tmp_path / "s", heads=True))
        else:
            stores.append(SqliteStore(tmp_path / "s.db", heads=True))
        return stores[-1]

    yield again
    for store in stores:
        store.close()


def head_file(folder: Path) -> Path:
    return next(folder.rglob("*.head"))


def cut(store: Store, lines: int, folder: Path) -> None:
    """Take the newest lines away, as a copy of an earlier day would."""
    if isinstance(store, FileStore):
        path = folder / "s" / "s.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-lines]))
        return
    store.close()
    connection = apsw.Connection(str(folder / "s.db"))
    for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute(
        "DELETE FROM line WHERE position IN (SELECT position FROM line ORDER BY position DESC LIMIT ?)", (lines,)
    )
    connection.close()


def test_each_append_keeps_its_head(opened: Callable[[], Store]) -> None:
    store = opened()
    log = log_of()
    claim = store.claim("s")
    assert store.kept("s") is None

    claim.append(lines_of(log), EMPTY)
    for _ in range(3):
        known = store.kept("s")
        assert known is not None
        assert known.head == log.head
        assert known.certain
        after = log.head
        claim.append(grow(log), after)


def test_a_log_without_its_end_is_refused_until_a_person_accepts_it(
    opened: Callable[[], Store], tmp_path: Path
) -> None:
    sessions = Sessions(opened())
    with sessions.session("s") as session:
        for _ in range(3):
            session.append("user_message", {"parts": []})
            session.flush()
        lost = session.head
    cut(sessions.store, 2, tmp_path)
    sessions = Sessions(opened())

    report = verify(sessions.store, "s")
    assert (report.verdict, report.looks, report.events) == ("not_the_history", "end_missing", lost.count - 2)
    with pytest.raises(HeadMismatch, match="ends at 2 events where its kept head counts 4: at least 2 are missing"):
        sessions.session("s").open()
    claim = sessions.store.claim("s")
    with pytest.raises(HeadMismatch):
        claim.append(grow(Log.read(list(_lines(sessions.store)))), report.head)
    claim.release()
    with sessions.session("s", accept_loss=True) as session:
        session.append("user_message", {"parts": []})

    event = next(item.event for item in sessions.store.read("s") if item.event.type == "damage")  # type: ignore[union-attr]
    assert (event.data["lost"], event.data["head"], event.seq) == ([2, 3], str(lost), 4)
    assert verify(sessions.store, "s").verdict == "intact"


def test_another_history_of_the_same_length_is_not_taken_for_it(tmp_path: Path) -> None:
    store = FileStore(tmp_path, heads=True)
    log = log_of()
    store.put("s", lines_of(log))
    other = log_of(text="another")
    (tmp_path / "s.jsonl").write_bytes(file_of(lines_of(other)))

    report = verify(store, "s")

    assert (report.verdict, report.looks) == ("not_the_history", "another_history")
    end = head_of(lines_of(other))
    with pytest.raises(HeadMismatch, match="has another line 3 than its kept head names"):
        store.claim("s").append(grow(other), end)


def test_a_crash_between_the_two_syncs_leaves_the_head_behind(opened: Callable[[], Store], tmp_path: Path) -> None:
    store = opened()
    log = log_of()
    claim = store.claim("s")
    claim.append(lines_of(log), EMPTY)
    earlier = head_file(tmp_path).read_bytes()
    after = log.head
    claim.append(grow(log, 3), after)
    claim.release()
    head_file(tmp_path).write_bytes(earlier)

    report = verify(store, "s")
    assert report.sound
    assert (report.verdict, report.anchor) == ("tail_not_verifiable", after)
    assert not any(isinstance(item, Gap) for item in store.read("s"))
    tail = [item for item in store.read("s") if not isinstance(item, Gap)][-1]
    assert not any(isinstance(item, Gap) for item in store.read("s", tail.position, after=Head(6, tail.event.prev)))
    end = log.head
    store.claim("s").append(grow(log), end)
    assert verify(store, "s").verdict == "intact"


def test_a_head_is_written_behind_the_sync_of_what_it_counts(tmp_path: Path) -> None:
    disk = PlannedDisk()
    log = log_of()
    claim = FileStore(tmp_path, disk=disk, heads=True).claim("s")
    claim.append(lines_of(log), EMPTY)
    disk.calls.clear()

    after = log.head
    claim.append(grow(log), after)

    assert disk.calls == ["write", "sync", "write_at", "sync"]


def test_an_append_whose_head_could_not_be_kept_has_no_known_outcome(tmp_path: Path) -> None:
    disk = PlannedDisk()
    store = FileStore(tmp_path, disk=disk, heads=True)
    log = log_of()
    claim = store.claim("s")
    claim.append(lines_of(log), EMPTY)
    disk.fail("write_at")

    after = log.head
    with pytest.raises(StoreFailed):
        claim.append(grow(log), after)
    after = log.head
    with pytest.raises(ClosedAfterFailure):
        claim.append(grow(log), after)

    disk.mend()
    claim.release()
    assert verify(store, "s").sound


def test_a_head_that_is_removed_under_its_owner_is_missed(tmp_path: Path) -> None:
    store = FileStore(tmp_path, heads=True)
    log = log_of()
    claim = store.claim("s")
    claim.append(lines_of(log), EMPTY)
    after = log.head
    claim.append(grow(log), after)
    head_file(tmp_path).unlink()

    after = log.head
    with pytest.raises(OwnershipLost, match="the file of its kept head was replaced or removed"):
        claim.append(grow(log), after)


def test_a_kept_head_is_heeded_and_kept_on_by_who_did_not_ask_for_it(tmp_path: Path) -> None:
    FileStore(tmp_path, heads=True).put("s", lines_of(log_of()))
    with Sessions(FileStore(tmp_path)).session("s") as session:
        session.append("user_message", {"parts": []})
    with Sessions(FileStore(tmp_path)).session("t") as session:
        session.append("user_message", {"parts": []})

    assert verify(FileStore(tmp_path), "s").verdict == "intact"
    assert verify(FileStore(tmp_path), "t").verdict == "tail_not_verifiable"


def test_of_a_session_that_is_gone_its_head_tells(tmp_path: Path) -> None:
    store = FileStore(tmp_path, heads=True)
    store.put("s", lines_of(log_of()))
    path = tmp_path / "s.jsonl"

    path.write_bytes(b"")
    assert verify(store, "s").verdict == "not_the_history"
    with pytest.raises(HeadMismatch, match="ends at 0 events"):
        Sessions(store).session("s").open()
    path.unlink()
    with pytest.raises(HeadMismatch, match="at least 4 are missing"):
        verify(store, "s")
    with pytest.raises(SessionNotFound):
        verify(store, "t")


def test_one_bad_place_of_two_leaves_a_head_that_is_not_certain(tmp_path: Path) -> None:
    store = FileStore(tmp_path, heads=True)
    log = log_of()
    claim = store.claim("s")
    claim.append(lines_of(log), EMPTY)
    after = log.head
    claim.append(grow(log), after)
    claim.release()
    path = head_file(tmp_path)
    content = path.read_bytes()

    path.write_bytes(content[: SLOT_BYTES + 20] + b"#" + content[SLOT_BYTES + 21 :])
    assert verify(store, "s").doubtful
    assert verify(store, "s").verdict == "tail_not_verifiable"
    path.write_bytes(b"#" * len(content))
    with pytest.raises(HeadMismatch, match="the file holds no head"):
        verify(store, "s")


def test_heads_read_back_from_slots_and_from_text() -> None:
    one, two = Head(1, "a" * 64), Head(12, "b" * 64)

    assert slots_of(slot(one) + slot(two)) == [one, two]
    assert newest([None, one, two]) == two
    assert heads_in(f"{one}\nnonsense\n".encode() + slot(two)) == [one, two]
    assert slots_of(slot(one).replace(b"1:", b"2:")) == [None, None]


def test_a_store_url_says_where_heads_are_kept(tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where"
    for url, place in (
        (f"file:{tmp_path}/a?heads", tmp_path / "a" / "s.head"),
        (f"file:{tmp_path}/b?heads={elsewhere}", elsewhere / "s.head"),
        (f"sqlite:{tmp_path}/c.db?heads", tmp_path / "c.db-heads" / "s.head"),
        (f"sqlite://{tmp_path}/d.db?heads={tmp_path}/else%20where/d", elsewhere / "d" / "s.head"),
    ):
        with open_store(url) as sessions, sessions.session("s"):
            pass
        assert place.exists(), url


def test_a_database_names_no_place_for_heads() -> None:
    with pytest.raises(InvalidStoreUrl, match="names no directory"):
        open_store("postgresql://host/database?heads")


def _lines(store: Store) -> Iterator[bytes]:
    for item in store.read("s"):
        if not isinstance(item, Gap):
            yield item.line


@pytest.mark.parametrize(
    ("statement", "readable"),
    [
        ("UPDATE session SET owner = CAST(x'ee41' AS TEXT)", True),
        ("UPDATE line SET position = 1 << 40 WHERE position = (SELECT max(position) FROM line)", False),
    ],
    ids=["an owner that is no text", "a line that stands beyond the end of the file"],
)
def test_bad_bytes_in_a_database_are_an_error_or_passed_over(tmp_path: Path, statement: str, readable: bool) -> None:
    store = SqliteStore(tmp_path / "s.db", heads=True)
    store.put("s", lines_of(log_of()))
    store.close()
    connection = apsw.Connection(str(tmp_path / "s.db"))
    for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute(statement)
    connection.close()

    store = SqliteStore(tmp_path / "s.db")
    if readable:
        assert verify(store, "s").verdict == "intact"
    else:
        with pytest.raises(StoreFailed, match="is said to stand at byte"):
            verify(store, "s")
    store.close()
