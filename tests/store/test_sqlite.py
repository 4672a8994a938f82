"""The SQLite store: what it refuses, what it keeps when something goes wrong, and what shares a commit."""

import os
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import pytest

from tests.store.building import batch_behind, grow, head_of, lines_of, log_of, sound_lines
from tests.store.processes import in_child
from turnwal.core.chain import EMPTY, Head
from turnwal.core.errors import (
    ClosedAfterFailure,
    Damaged,
    DamagedStart,
    OwnershipLost,
    SessionHeld,
    SessionNotFound,
    StoreFailed,
    StoreFull,
    StoreUnsupported,
    TooNew,
)
from turnwal.session.inspection import glance
from turnwal.session.sessions import Sessions
from turnwal.session.verifying import verify
from turnwal.store import sqlite_file
from turnwal.store.sqlite import SqliteClaim, SqliteStore
from turnwal.store.sqlite_file import connect_to_write
from turnwal.store.sqlite_queries import FIND, INTERRUPTED, LINES, NEWEST
from turnwal.store.urls import open_store

HOLDER = """
import os, sys, time
from turnwal.store.sqlite import SqliteStore

claim = SqliteStore(sys.argv[1]).claim("s", owner="the holder")
{extra}
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agents.db"


def begun(store: SqliteStore, session: str = "s", messages: int = 3) -> tuple[SqliteClaim, Head]:
    """A claim of a session with a few lines, and its head."""
    claim = store.claim(session)
    lines = lines_of(log_of(messages, session))
    claim.append(lines, EMPTY)
    return claim, head_of(lines)


def stored(path: Path, session: str = "s") -> list[bytes]:
    store = SqliteStore(path)
    try:
        return sound_lines(list(store.read(session)))
    finally:
        store.close()


def holder(path: Path, extra: str = "") -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER.format(extra=extra), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


# --- what is made


def test_naming_a_store_touches_nothing(path: Path) -> None:
    store = SqliteStore(path)

    assert list(store.sessions()) == list(store.interrupted()) == []
    assert not store.probe("s").exists
    with pytest.raises(SessionNotFound):
        store.claim("s", create=False)
    with pytest.raises(SessionNotFound):
        list(store.read("s"))
    store.close()
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_nobody_else_may_read_any_file_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        store = SqliteStore(tmp_path / "a.db")
        begun(store)
    finally:
        os.umask(before)

    assert {found.name: stat.S_IMODE(found.stat().st_mode) & 0o077 for found in tmp_path.iterdir()} == {
        "a.db": 0,
        "a.db-wal": 0,
        "a.db-shm": 0,
        "a.db-owners": 0,
    }
    store.close()


def test_a_clean_close_leaves_no_wal(path: Path) -> None:
    store = SqliteStore(path)
    begun(store)
    assert list(store.read("s"))
    store.close()
    store.close()

    assert sorted(found.name for found in path.parent.iterdir()) == ["agents.db", "agents.db-owners"]


def test_a_clean_close_empties_the_wal_although_a_reader_stays(path: Path) -> None:
    store = SqliteStore(path)
    begun(store)
    reader = SqliteStore(path)
    assert len(list(reader.read("s"))) == 4

    store.close()
    assert (path.parent / "agents.db-wal").stat().st_size == 0
    assert len(list(reader.read("s"))) == 4
    reader.close()


def test_an_empty_session_is_like_an_empty_file(path: Path) -> None:
    store = SqliteStore(path)
    store.claim("s").release()

    assert store.probe("s") == (True, True, None)
    assert not [*store.read("s"), *store.newest("s"), *store.interrupted()]
    begun(store)
    store.close()
    assert stored(path) == lines_of(log_of(3, "s"))


def test_a_directory_may_be_a_symbolic_link_and_a_database_may_not(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store = SqliteStore(tmp_path / "link" / "a.db")
    begun(store)
    other = SqliteStore(tmp_path / "real" / "a.db")
    with pytest.raises(SessionHeld):
        other.claim("s")
    store.close()
    other.close()

    (tmp_path / "alias.db").symlink_to(tmp_path / "real" / "a.db")
    with pytest.raises(StoreUnsupported, match="no regular file"):
        SqliteStore(tmp_path / "alias.db").claim("s")
    (tmp_path / "second.db").hardlink_to(tmp_path / "real" / "a.db")
    with pytest.raises(StoreUnsupported, match="second name"):
        SqliteStore(tmp_path / "second.db").claim("s")


@pytest.mark.parametrize("name", ["a?b.db", "a#b.db", "a%41.db", "a b.db", "ä.db"])
def test_any_file_name_is_a_name(tmp_path: Path, name: str) -> None:
    store = SqliteStore(tmp_path / name)
    begun(store)
    assert len(list(store.read("s"))) == 4
    store.close()
    assert (tmp_path / name).exists()


def test_a_path_that_sqlite_cannot_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnsupported, match="UTF-8"):
        SqliteStore(tmp_path / "\udcff.db")


def test_odd_ids_are_sessions_of_their_own(path: Path) -> None:
    ids = [
        "a",
        "A",
        "a/b",
        "../a",
        " ",
        "a\0b",
        "a%00b",
        "'; DROP TABLE line; --",
        "ä",
        "a\u0308",
        "\ud800",
        "x" * 1000,
    ]
    store = SqliteStore(path)
    for each in ids:
        claim = store.claim(each)
        claim.append(lines_of(log_of(1, each.encode("ascii", "replace").decode())), EMPTY)
    store.close()

    store = SqliteStore(path)
    assert sorted(store.sessions()) == sorted(ids)
    for each in ids:
        assert len(list(store.read(each))) == 2
    store.close()


# --- what is refused


@pytest.mark.parametrize("content", [b"some text\n" * 200, b"\0" * 5000, b"{}"])
def test_a_file_that_is_something_else_is_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    store = SqliteStore(path)

    for act in (lambda: store.claim("s"), lambda: list(store.sessions()), lambda: store.probe("s")):
        with pytest.raises(StoreUnsupported) as caught:
            act()
        assert caught.value.hint
    assert path.read_bytes() == content
    assert [found.name for found in path.parent.iterdir()] == ["agents.db"]


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_database_of_another_program_is_left_alone(path: Path, mode: str) -> None:
    code = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA journal_mode=' + sys.argv[2]);"
        "c.execute('CREATE TABLE t (x)'); c.execute('INSERT INTO t VALUES (1)'); c.commit(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(path), mode], check=True)
    names = [path, path.with_name("agents.db-wal")] if mode == "wal" else [path]
    before = [name.read_bytes() for name in names]

    store = SqliteStore(path)
    for act in (lambda: store.claim("s"), lambda: list(store.sessions()), lambda: store.put("s", lines_of(log_of()))):
        with pytest.raises(StoreUnsupported, match="another program"):
            act()
    store.close()
    assert [name.read_bytes() for name in names] == before


def dead_in_a_transaction(path: Path, *before: str) -> None:
    """Have what a process leaves that dies in the middle of a transaction, some pages of it written already."""
    code = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('PRAGMA cache_size=1'); [c.execute(each) for each in sys.argv[2:]];"
        "c.execute('BEGIN'); c.execute('CREATE TABLE t (x)');"
        "[c.execute('INSERT INTO t VALUES (randomblob(3000))') for _ in range(50)]; os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(path), *before], check=True)
    assert path.stat().st_size > 0
    assert path.with_name("agents.db-journal").stat().st_size > 0


def test_a_file_whose_maker_died_in_the_middle_is_made_anew(path: Path) -> None:
    dead_in_a_transaction(path)
    before = path.read_bytes()

    store = SqliteStore(path)
    assert list(store.sessions()) == []
    assert not store.probe("s").exists
    assert path.read_bytes() == before  # looking undoes nothing

    begun(store)
    store.close()
    assert stored(path) == lines_of(log_of(3, "s"))


def test_what_another_program_left_half_written_is_not_undone(path: Path) -> None:
    dead_in_a_transaction(path, "CREATE TABLE theirs (x)")
    before = [path.read_bytes(), path.with_name("agents.db-journal").read_bytes()]

    store = SqliteStore(path)
    for act in (lambda: store.claim("s"), lambda: list(store.sessions())):
        with pytest.raises(StoreFailed, match="ReadOnly"):
            act()
    store.close()
    assert [path.read_bytes(), path.with_name("agents.db-journal").read_bytes()] == before


def test_a_newer_schema_is_refused_and_untouched(path: Path) -> None:
    store = SqliteStore(path)
    begun(store)
    store.close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 99; PRAGMA journal_mode = delete")
    connection.close()
    before = path.read_bytes()

    store = SqliteStore(path)
    for act in (lambda: store.claim("s"), lambda: list(store.read("s"))):
        with pytest.raises(TooNew, match="its schema is 99"):
            act()
    store.close()
    assert path.read_bytes() == before


def test_an_old_sqlite_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    with pytest.raises(StoreUnsupported, match=r"SQLite 3\.51\.2") as caught:
        open_store(f"sqlite:{path}")
    assert "upgrade apsw" in caught.value.hint
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.100.0")
    open_store(f"sqlite:{path}").close()


def test_a_system_without_such_locks_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(StoreUnsupported) as caught:
        SqliteStore(path)
    assert "file:PATH" in caught.value.hint


@pytest.mark.parametrize("name", sqlite_file._PRAGMAS)
def test_a_pragma_that_does_not_take_refuses_the_connection(
    path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = sqlite_file._value

    def stubborn(connection: apsw.Connection, statement: str) -> Any:
        return "off" if statement == f"PRAGMA {name}" else value(connection, statement)

    monkeypatch.setattr(sqlite_file, "_value", stubborn)
    with pytest.raises(StoreUnsupported, match=f"PRAGMA {name} is 'off'"):
        SqliteStore(path).claim("s")


def test_every_pragma_is_what_was_asked_for(path: Path) -> None:
    store = SqliteStore(path)
    begun(store)
    connection = store._writer._connection
    assert connection is not None
    assert {name: connection.pragma(name) for name in sqlite_file._PRAGMAS} == sqlite_file._PRAGMAS
    store.close()


def test_a_statement_is_compiled_once(path: Path) -> None:
    lines = lines_of(log_of(6))
    store = SqliteStore(path)
    claim = store.claim("s")
    connection = store._writer._connection
    assert connection is not None
    compiled: list[str | None] = []

    def note(_: int, table: str | None, *__: str | None) -> int:
        compiled.append(table)
        return apsw.SQLITE_OK

    connection.authorizer = note
    for count, line in enumerate(lines):
        claim.append([line], head_of(lines[:count]))
        if count == 0:
            assert "line" in compiled
            compiled.clear()
    assert compiled == []
    store.close()


@pytest.mark.parametrize(
    "statement", ["UPDATE line SET line = x'00'", "UPDATE line SET position = position + 1", "DELETE FROM line"]
)
def test_a_line_is_never_changed_whoever_asks(path: Path, statement: str) -> None:
    store = SqliteStore(path)
    begun(store)
    store.close()
    for connect in (lambda: apsw.Connection(str(path)), lambda: sqlite3.connect(path)):
        connection: Any = connect()
        with pytest.raises((apsw.ConstraintError, sqlite3.IntegrityError), match="never"):
            connection.execute(statement)
        connection.close()
    assert stored(path) == lines_of(log_of(3, "s"))


def test_what_may_not_be_written_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)  # root becomes somebody else, who has to get there
        folder = Path(directory) / "locked"
        folder.mkdir()
        path = folder / "a.db"
        store = SqliteStore(path)
        begun(store)
        store.close()
        path.chmod(0o444)
        folder.chmod(0o555)

        def body() -> None:
            if os.getuid() == 0:
                os.seteuid(65534)
            refused = SqliteStore(path)
            for act in (lambda: refused.claim("s"), lambda: list(refused.read("s"))):
                with pytest.raises(StoreFailed) as caught:
                    act()
                assert "mode" in caught.value.hint
            monkeypatch.chdir(folder)
            with pytest.raises(StoreFailed):
                SqliteStore("new.db").claim("s")

        assert in_child(body) == 0
        folder.chmod(0o755)
        path.chmod(0o600)
        assert sorted(found.name for found in folder.iterdir()) == ["a.db", "a.db-owners"]
        assert stored(path) == lines_of(log_of(3, "s"))


# --- full disk


def test_a_full_disk_is_said_to_be_full_and_loses_nothing(path: Path) -> None:
    acknowledged = path.with_name("acknowledged")

    def body() -> None:
        store = SqliteStore(path)
        claim, head = begun(store)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
        count = head.count

        def fill() -> None:
            nonlocal head, count
            while True:
                batch = batch_behind(head, 20)
                claim.append(batch, head)
                head = head_of(batch)
                count = head.count

        with pytest.raises(StoreFull) as caught:
            fill()
        assert "make room" in caught.value.hint
        with pytest.raises(ClosedAfterFailure):
            claim.append(batch_behind(head, 1), head)
        claim.release()
        acknowledged.write_text(str(count))
        assert len(list(store.read("s"))) >= count
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        again = store.claim("s")
        head = head_of(sound_lines(list(store.read("s"))))
        again.append(batch_behind(head, 20), head)
        store.close()

    assert in_child(body) == 0
    assert len(stored(path)) >= int(acknowledged.read_text()) + 20


# --- files that somebody takes away


@pytest.mark.parametrize("replaced", [False, True])
def test_a_wal_that_is_taken_away_poisons_before_the_next_acknowledgement(path: Path, *, replaced: bool) -> None:
    store = SqliteStore(path)
    claim, head = begun(store)
    wal = path.with_name("agents.db-wal")
    wal.unlink()
    if replaced:
        wal.touch()

    with pytest.raises(StoreFailed, match="its -wal was removed or replaced"):
        claim.append(batch_behind(head, 1), head)
    with pytest.raises(ClosedAfterFailure):
        claim.append(batch_behind(head, 1), head)
    claim.release()
    again = store.claim("s")
    lines = sound_lines(list(store.read("s")))
    assert lines[:4] == lines_of(log_of(3, "s"))
    again.append(batch_behind(head_of(lines), 1), head_of(lines))
    store.close()
    assert len(stored(path)) == len(lines) + 1


def test_a_database_that_is_moved_away_is_not_written_unawares(path: Path) -> None:
    store = SqliteStore(path)
    claim, head = begun(store)
    moved = path.with_name("moved.db")
    path.rename(moved)

    with pytest.raises(StoreFailed, match="it was removed or replaced"):
        claim.append(batch_behind(head, 1), head)
    store.close()
    assert stored(moved)[:4] == lines_of(log_of(3, "s"))


def test_a_database_that_is_replaced_keeps_what_it_has(path: Path) -> None:
    other = SqliteStore(path.with_name("other.db"))
    begun(other, "theirs")
    other.close()
    store = SqliteStore(path)
    claim, head = begun(store)
    assert list(store.sessions()) == ["s"]
    path.rename(path.with_name("moved.db"))
    path.with_name("agents.db-wal").rename(path.with_name("moved.db-wal"))
    shutil.copyfile(path.with_name("other.db"), path)
    theirs = apsw.Connection(str(path))
    theirs.pragma("journal_mode")
    theirs.execute("UPDATE session SET owner = 'somebody'")

    with pytest.raises(StoreFailed, match="removed or replaced"):
        claim.append(batch_behind(head, 1), head)
    assert path.with_name("agents.db-wal").exists()
    assert list(store.sessions()) == ["theirs"]
    store.close()
    theirs.close()
    assert stored(path, "theirs") == lines_of(log_of(3, "theirs"))
    assert stored(path.with_name("moved.db"))[:4] == lines_of(log_of(3, "s"))


def restored_in_place(path: Path, backup: Path) -> None:
    """As `cp` does it: the file stays the same one."""
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(backup.read_bytes())


def grown_since(store: SqliteStore, path: Path, backup: Path, *, copied: bool) -> tuple[SqliteClaim, Head]:
    """An owner in a file that is longer than the backup, with a `-wal` of which all, or not all, is copied."""
    claim, head = begun(store)
    with closing(apsw.Connection(str(path))) as beside:
        beside.execute("VACUUM INTO ?", (str(backup),))
        for _ in range(20):
            batch = batch_behind(head, 20)
            claim.append(batch, head)
            head = head_of(batch)
            if copied or head.count < 200:
                beside.execute("PRAGMA wal_checkpoint(TRUNCATE)").get  # noqa: B018 - fetched on purpose
    return claim, head


@pytest.mark.parametrize("copied", [False, True])
def test_nothing_is_written_behind_a_shorter_backup_that_was_copied_over_the_file(path: Path, *, copied: bool) -> None:
    backup = path.with_name("backup.db")
    store = SqliteStore(path)
    claim, head = grown_since(store, path, backup, copied=copied)
    restored_in_place(path, backup)

    with pytest.raises(StoreFailed, match="overwritten with something shorter"):
        claim.append(batch_behind(head, 1), head)
    claim.release()
    assert path.read_bytes() == backup.read_bytes()
    if not copied:
        for _ in range(2):
            with pytest.raises(StoreFailed, match="does not fit to its -wal"):
                store.claim("new")
        assert path.read_bytes() == backup.read_bytes()
    store.close()
    if not copied:
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).rename(path.with_name("away" + suffix))
        restored_in_place(path, backup)
    store = SqliteStore(path)
    heir = store.claim("s")
    head = head_of(lines_of(log_of(3, "s")))
    heir.append(batch_behind(head, 1), head)
    store.close()
    assert len(stored(path)) == 5
    assert apsw.Connection(str(path)).pragma("integrity_check") == "ok"


@pytest.mark.parametrize("finds_out", ["claim", "close"])
def test_a_backup_that_was_copied_over_the_file_is_not_mixed_with_the_wal(path: Path, finds_out: str) -> None:
    backup = path.with_name("backup.db")
    store = SqliteStore(path)
    grown_since(store, path, backup, copied=False)
    restored_in_place(path, backup)

    if finds_out == "claim":
        with pytest.raises(StoreFailed, match="overwritten with something shorter"):
            store.claim("other")
    store.close()
    assert path.read_bytes() == backup.read_bytes()


def two_begun(store: SqliteStore) -> tuple[tuple[SqliteClaim, Head], tuple[SqliteClaim, Head]]:
    return begun(store, "a"), begun(store, "b")


def put_in_place(path: Path, other: Path) -> None:
    """What a careless restore does under a live writer: the database is another, and what stood beside it is gone."""
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    other.replace(path)


def test_nobody_writes_behind_a_hole_of_a_backup_that_was_restored_under_the_owners(path: Path) -> None:
    store = SqliteStore(path)
    (first, first_head), (second, second_head) = two_begun(store)
    backup = path.with_name("backup.db")
    source = apsw.Connection(f"file:{path}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    source.execute(f"VACUUM INTO '{backup}'")
    source.close()
    batch = batch_behind(second_head, 3)
    second.append(batch, second_head)
    second_head = head_of(batch)
    put_in_place(path, backup)

    with pytest.raises(StoreFailed, match="removed or replaced"):
        first.append(batch_behind(first_head, 1), first_head)
    for _ in range(2):
        with pytest.raises(OwnershipLost, match="since this claim was made"):
            second.append(batch_behind(second_head, 1), second_head)
    # a claim of before is refused although the end it builds on may be there again
    second.release()
    heir = store.claim("b")
    head = head_of(lines_of(log_of(3, "b")))
    heir.append(batch, head)
    with pytest.raises(OwnershipLost):
        second.append(batch_behind(second_head, 1), second_head)
    store.close()
    assert stored(path, "b") == [*lines_of(log_of(3, "b")), *batch]


def test_nobody_writes_into_another_database_that_was_moved_over_the_owners_one(path: Path) -> None:
    other = SqliteStore(path.with_name("other.db"))
    begun(other, "x")
    begun(other, "victim", messages=30)
    other.close()
    store = SqliteStore(path)
    (first, first_head), (second, second_head) = two_begun(store)
    put_in_place(path, path.with_name("other.db"))

    with pytest.raises(StoreFailed, match="removed or replaced"):
        first.append(batch_behind(first_head, 1), first_head)
    with pytest.raises(OwnershipLost, match="since this claim was made"):
        second.append(batch_behind(second_head, 1), second_head)
    store.close()
    assert stored(path, "victim") == lines_of(log_of(30, "victim"))


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("gone", [2, 9])
def test_nobody_writes_behind_lines_that_are_gone(path: Path, gone: int, count: int) -> None:
    store = SqliteStore(path)
    (first, first_head), (second, second_head) = two_begun(store)
    lines = lines_of(log_of(3, "b"))
    connection = apsw.Connection(str(path))
    connection.execute("DROP TRIGGER line_is_never_deleted")
    delete = "DELETE FROM line WHERE rowid IN (SELECT rowid FROM line WHERE session = 2 ORDER BY position DESC LIMIT ?)"
    connection.execute(delete, (gone,))
    connection.close()

    for _ in range(2):
        with pytest.raises(OwnershipLost, match="does not end where this one goes on"):
            second.append(batch_behind(second_head, count), second_head)
    first.append(batch_behind(first_head, count), first_head)
    store.close()
    assert stored(path, "b") == lines[: max(4 - gone, 0)]
    assert len(stored(path, "a")) == 4 + count


def test_a_session_number_that_belongs_to_another_is_not_written_to(path: Path) -> None:
    store = SqliteStore(path)
    (first, first_head), (second, second_head) = two_begun(store)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE session SET id = CAST('c' AS BLOB) WHERE number = 2")
    connection.close()

    with pytest.raises(OwnershipLost, match="not there any more"):
        second.append(batch_behind(second_head, 1), second_head)
    first.append(batch_behind(first_head, 1), first_head)
    store.close()
    assert stored(path, "c") == lines_of(log_of(3, "b"))


def test_a_claim_is_of_the_session_that_was_named_although_the_database_changes_meanwhile(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = SqliteStore(path.with_name("other.db"))
    begun(other, "victim")[0].release()
    other.close()
    store = SqliteStore(path)
    begun(store, "a")[0].release()
    wait_for = store._wait_for

    def meanwhile(*values: Any) -> None:
        wait_for(*values)
        store._writer.close()
        put_in_place(path, path.with_name("other.db"))

    monkeypatch.setattr(store, "_wait_for", meanwhile)
    with pytest.raises(StoreFailed, match="another database came in its place"):
        store.claim("a")
    monkeypatch.undo()
    store.claim("victim").release()
    store.close()


OTHER = """
import os, sys
from tests.store.building import batch_behind, head_of, lines_of, log_of
from turnwal.core.chain import EMPTY
from turnwal.core.errors import StoreFailed
from turnwal.store.sqlite import SqliteStore

path, ending, early = sys.argv[1:]
store = SqliteStore(path)
try:
    claim = store.claim("other")
    lines = lines_of(log_of(3, "other"))
    claim.append(lines, EMPTY)
    print(len(lines), flush=True)
    head = head_of(lines)
    if early:
        sys.stdin.readline()
    for _ in range(20):
        batch = batch_behind(head, 1)
        claim.append(batch, head)
        head = head_of(batch)
        print(head.count, flush=True)
except StoreFailed as error:
    print("refused:", error, flush=True)
if ending == "kill":
    os.kill(os.getpid(), 9)
store.close()
"""


@pytest.mark.parametrize("early", ["", "early"])
@pytest.mark.parametrize("ending", ["close", "kill"])
@pytest.mark.parametrize("appends", [5, 60])
@pytest.mark.parametrize("gone", [("-wal",), ("-shm",), ("-wal", "-shm")])
def test_nothing_is_lost_when_files_are_deleted_between_two_processes_that_write(
    path: Path, gone: tuple[str, ...], appends: int, ending: str, early: str
) -> None:
    """The other comes before the deletion, or behind it, when the first has not found out yet."""
    store = SqliteStore(path)
    claim, head = begun(store)
    for _ in range(appends):
        batch = batch_behind(head, 1)
        claim.append(batch, head)
        head = head_of(batch)
    command = [sys.executable, "-c", OTHER, str(path), ending, early]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        said = [other.stdout.readline()] if early else []
        for suffix in gone:
            path.with_name(path.name + suffix).unlink()
        said.extend(other.communicate("go on\n")[0].splitlines())
    assert said[-1].startswith("refused: ")
    with pytest.raises(StoreFailed, match="removed or replaced"):
        claim.append(batch_behind(head, 1), head)
    claim.release()

    assert apsw.Connection(str(path)).pragma("integrity_check") == "ok"
    again = store.claim("s")
    lines = sound_lines(list(store.read("s")))
    assert len(lines) >= head.count
    again.append(batch_behind(head_of(lines), 1), head_of(lines))
    store.close()
    assert len(stored(path)) == len(lines) + 1
    counts = [int(line) for line in said if line.strip().isdigit()]
    if counts:
        assert len(stored(path, "other")) >= counts[-1]


ALL_BESIDE = ("-wal", "-shm", "-owners")


@pytest.mark.parametrize("finds_out", ["append", "claim", "claim of a new session", "close"])
@pytest.mark.parametrize("appends", [5, 60])
def test_nothing_of_a_lone_writer_is_lost_when_all_beside_the_file_is_deleted(
    path: Path, appends: int, finds_out: str
) -> None:
    begun(store := SqliteStore(path), "other")
    store.close()
    claim, head = begun(store)
    for _ in range(appends):
        batch = batch_behind(head, 1)
        claim.append(batch, head)
        head = head_of(batch)
    for suffix in ALL_BESIDE:
        path.with_name(path.name + suffix).unlink()
    if finds_out == "append":
        with pytest.raises(StoreFailed, match="removed or replaced"):
            claim.append(batch_behind(head, 1), head)
    elif finds_out != "close":
        with pytest.raises(StoreFailed, match="removed or replaced"):
            store.claim("new" if "new" in finds_out else "other")
    store.close()

    assert apsw.Connection(str(path)).pragma("integrity_check") == "ok"
    assert len(stored(path)) >= head.count
    again = SqliteStore(path)
    for name in ("s", "other", "new"):
        again.claim(name).release()
    again.close()


@pytest.mark.parametrize("ending", ["close", "kill"])
@pytest.mark.parametrize("early", ["", "early"])
def test_two_histories_are_not_mixed_when_all_beside_the_file_is_deleted(path: Path, ending: str, early: str) -> None:
    """Without the lock file another comes in unhindered: of the two, what it wrote into the file is kept."""
    begun(store := SqliteStore(path))
    store.close()
    claim, head = store.claim("s"), head_of(lines_of(log_of(3, "s")))
    batch = batch_behind(head, 1)
    claim.append(batch, head)
    command = [sys.executable, "-c", OTHER, str(path), ending, early]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        said = [other.stdout.readline()] if early else []
        for suffix in ALL_BESIDE:
            path.with_name(path.name + suffix).unlink()
        said.extend(other.communicate("go on\n")[0].splitlines())
    assert said[-1].startswith("refused: ") == bool(early)
    with pytest.raises(StoreFailed, match="removed or replaced"):
        claim.append(batch_behind(head_of(batch), 1), head_of(batch))
    store.close()

    assert apsw.Connection(str(path)).pragma("integrity_check") == "ok"
    assert len(stored(path, "other")) == max(int(line) for line in said if line.strip().isdigit())
    assert len(stored(path)) == (5 if early else 4)


def test_a_writer_that_was_parted_from_its_files_keeps_others_out_until_it_finds_out(path: Path) -> None:
    store = SqliteStore(path)
    claim, head = begun(store)
    path.with_name("agents.db-shm").unlink()
    second = SqliteStore(path)
    # a reader makes another -shm, which is not that of the writer
    code = "import sys; from tests.store.test_sqlite import *; assert len(stored(Path(sys.argv[1]))) == 4"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    assert path.with_name("agents.db-shm").exists()

    with pytest.raises(StoreFailed, match="while another process has it open for writing") as caught:
        second.claim("other")
    assert "end the other process" in caught.value.hint
    with pytest.raises(StoreFailed, match="its -shm was removed or replaced"):
        claim.append(batch_behind(head, 1), head)
    begun(second, "other")
    second.close()
    store.close()
    assert stored(path) == lines_of(log_of(3, "s"))
    assert stored(path, "other") == lines_of(log_of(3, "other"))


def test_what_another_program_wrote_since_is_not_written_over(path: Path) -> None:
    """A program that asks for no lock of ours makes a `-wal` of its own, and has written the file since."""
    store = SqliteStore(path)
    claim, head = begun(store)
    claim.release()
    store.close()
    claim = store.claim("s")
    batch = batch_behind(head, 40)
    claim.append(batch, head)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink()
    code = (
        "import apsw, sys\ntheirs = apsw.Connection(sys.argv[1])\n"
        "for number in range(100):\n"
        "    theirs.execute('INSERT INTO session (id) VALUES (?)', (b'%04d' % number * 100,))\n"
        "print('written', flush=True)\nsys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as theirs:
        assert theirs.stdout is not None
        assert theirs.stdout.readline() == "written\n"
        with pytest.raises(StoreFailed, match="removed or replaced"):
            claim.append(batch_behind(head_of(batch), 1), head_of(batch))
        store.close()
        theirs.communicate()
    assert apsw.Connection(str(path)).pragma("integrity_check") == "ok"
    assert len(list(SqliteStore(path).sessions())) == 101


def test_writers_come_and_go_at_once_without_being_refused(path: Path) -> None:
    """The last to leave removes what stands beside the file, while the next one comes."""

    def come_and_go(name: str) -> None:
        for _ in range(15):
            store = SqliteStore(path)
            store.claim(name).release()
            store.close()

    assert together(*(lambda name=f"s{n}": come_and_go(name) for n in range(4))) == [None] * 4


def test_a_reader_that_closes_last_leaves_the_wal_of_a_live_writer(path: Path) -> None:
    """What an unrelated `open` and `close` of the database does: the writer's POSIX locks are gone."""
    process = holder(
        path,
        extra=(
            "from tests.store.building import lines_of, log_of\n"
            "from turnwal.core.chain import EMPTY\n"
            "claim.append(lines_of(log_of(3, 's')), EMPTY)\n"
            "open(sys.argv[1], 'rb').close()\n"
        ),
    )
    inode = path.with_name("agents.db-wal").stat().st_ino
    for _ in range(3):
        assert stored(path) == lines_of(log_of(3, "s"))
    assert path.with_name("agents.db-wal").stat().st_ino == inode
    end(process)
    assert stored(path) == lines_of(log_of(3, "s"))


# --- owners


def test_f24_a_second_process_is_refused_with_the_holder_at_once_and_after_a_wait(path: Path) -> None:
    process = holder(path)
    store = SqliteStore(path)
    try:
        for wait in (0.0, 0.4):
            started = time.monotonic()
            with pytest.raises(SessionHeld, match=rf"the holder \(pid {process.pid}") as caught:
                store.claim("s", wait=wait)
            assert wait <= time.monotonic() - started < wait + 2
            assert caught.value.holder.startswith("the holder")
        assert (store.probe("s").owner or "").startswith("the holder")
    finally:
        end(process)
    store.claim("s").release()
    assert store.probe("s").owner is None
    store.close()


def test_f25_a_lock_dies_with_its_process_although_a_forked_child_lives(path: Path) -> None:
    extra = "if os.fork() == 0:\n    os.closerange(0, 3)\n    time.sleep(20)\n    os._exit(0)\n"
    end(holder(path, extra=extra))
    store = SqliteStore(path)
    store.claim("s", wait=2).release()
    store.close()


def test_the_same_session_is_claimed_once_in_one_process(path: Path) -> None:
    store = SqliteStore(path)
    claim = store.claim("s", owner="first")
    for other in (store, SqliteStore(path)):
        with pytest.raises(SessionHeld, match="first"):
            other.claim("s")
    claim.release()
    store.claim("s").release()
    store.close()


def test_a_forked_child_is_refused_and_opens_its_own(path: Path) -> None:
    store = SqliteStore(path)
    claim, head = begun(store)

    def body() -> None:
        for act in (
            lambda: claim.append(batch_behind(head, 1), head),
            lambda: store.claim("t"),
            lambda: store.put("t", lines_of(log_of(1, "t"))),
        ):
            with pytest.raises(OwnershipLost):
                act()
        assert len(list(store.read("s"))) == 4
        claim.release()
        store.close()
        own = SqliteStore(path)
        with pytest.raises(SessionHeld):
            own.claim("s")
        begun(own, "child")
        own.close()

    assert in_child(body) == 0
    claim.append(batch_behind(head, 1), head)
    store.close()
    assert len(stored(path)) == 5
    assert len(stored(path, "child")) == 4


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_waits_for_the_commit_that_runs_and_blocks_no_child(path: Path) -> None:
    store = SqliteStore(path)
    stop = threading.Event()
    counts = []

    def write() -> None:
        claim, head = begun(store)
        while not stop.is_set():
            batch = batch_behind(head, 1)
            claim.append(batch, head)
            head = head_of(batch)
        counts.append(head.count)

    thread = threading.Thread(target=write)
    thread.start()

    def body() -> None:
        with pytest.raises(OwnershipLost):
            store.claim("t")
        store.close()

    for _ in range(20):
        assert in_child(body) == 0
    stop.set()
    thread.join()
    store.close()
    assert len(stored(path)) == counts[0]


def test_a_zombie_is_refused_by_its_epoch_when_its_lock_was_lost(path: Path) -> None:
    first = SqliteStore(path)
    zombie, head = begun(first)
    path.with_name("agents.db-owners").unlink()
    second = SqliteStore(path)
    heir = second.claim("s")

    with pytest.raises(OwnershipLost, match="another owner came since"):
        zombie.append(batch_behind(head, 1), head)
    heir.append(batch_behind(head, 2), head)
    with pytest.raises(OwnershipLost):
        zombie.append(batch_behind(head, 1), head)
    first.close()
    second.close()
    assert len(stored(path)) == 6


# --- many processes


@pytest.mark.parametrize("shared", [False, True])
def test_eight_processes_lose_nothing(path: Path, *, shared: bool) -> None:
    def work(name: str, times: int) -> None:
        store = SqliteStore(path)
        for _ in range(times):
            claim = store.claim(name, wait=50)
            lines = [record.line for record in store.newest(name) if record][:1]
            if not lines:
                claim.append(lines_of(log_of(0, name)), EMPTY)
                lines = lines_of(log_of(0, name))
            count = 1 if shared else 50
            head = head_of(lines)
            for _ in range(count):
                batch = batch_behind(head, 1)
                claim.append(batch, head)
                head = head_of(batch)
            claim.release()
        store.close()

    pids = []
    for number in range(8):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                work("s" if shared else f"s{number}", 50 if shared else 1)
                status = 0
            finally:
                os._exit(status)
        pids.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 8
    for name in ["s"] if shared else [f"s{number}" for number in range(8)]:
        assert len(stored(path, name)) == (401 if shared else 51)


def test_100_kills_under_load_lose_nothing_that_was_acknowledged(path: Path) -> None:
    total = 0
    for life in range(100):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                store = SqliteStore(path)
                claim = store.claim("s", wait=5)
                newest = [record.line for record in store.newest("s") if record][:1]
                head = head_of(newest)
                while True:
                    batch = batch_behind(head, 1 + life % 3) if head.count else lines_of(log_of(1, "s"))
                    claim.append(batch, head)
                    head = head_of(batch)
                    os.write(writing, b"%d\n" % head.count)
            finally:
                os._exit(1)
        os.close(writing)
        os.read(reading, 1 << 16)  # it has begun
        time.sleep(life % 10 / 500)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        said = b""
        while piece := os.read(reading, 1 << 16):
            said += piece
        os.close(reading)
        acknowledged = max([total, *map(int, said.split())])
        store = SqliteStore(path)
        last = next(store.newest("s"))
        assert last is not None
        assert last.event.seq + 1 >= acknowledged
        total = last.event.seq + 1
        store.close()
    assert len(stored(path)) == total > 300


def test_every_append_is_one_commit_with_a_sync(path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        # what is checked without it: every commit is made with synchronous=FULL, read back
        test_every_pragma_is_what_was_asked_for(path)
        return
    code = (
        "import os, sys\nfrom tests.store.building import head_of, lines_of, log_of\n"
        "from turnwal.core.chain import EMPTY\nfrom turnwal.store.sqlite import SqliteStore\n"
        "claim = SqliteStore(sys.argv[1]).claim('s')\nhead = EMPTY\nos.write(2, b'BEGIN')\n"
        "for line in lines_of(log_of(50)):\n    claim.append([line], head)\n    head = head_of([line])\n"
        "    os.write(2, b'ACK')\n"
        "os._exit(0)\n"
    )
    trace = path.with_name("trace")
    command = [strace, "-f", "-e", "trace=write,fdatasync,fsync", "-o", str(trace), sys.executable, "-c", code]
    subprocess.run([*command, str(path)], check=True, stderr=subprocess.DEVNULL)
    text = trace.read_text().split('"BEGIN"')[1]
    stretches = text.split('"ACK"')[:-1]
    assert len(stretches) == 51
    assert [stretch.count("sync(") for stretch in stretches] == [1] * 51


# --- changed bytes


def change(path: Path, seq: int, line: bytes) -> None:
    """Change a line behind the back of the triggers, as a bad disk would."""
    connection = apsw.Connection(str(path))
    ((name, trigger),) = connection.execute("SELECT name, sql FROM sqlite_schema WHERE name = 'line_is_never_updated'")
    connection.execute(f"DROP TRIGGER {name}")
    ((position,),) = connection.execute("SELECT position FROM line ORDER BY position LIMIT 1 OFFSET ?", (seq,))
    connection.execute("UPDATE line SET line = ? WHERE position = ?", (line, position))
    connection.execute(trigger)
    connection.close()


def closed_session(path: Path) -> list[bytes]:
    with Sessions(SqliteStore(path)) as sessions, sessions.session("s") as session:
        for number in range(3):
            with session.turn(f"question {number}"):
                pass
    return stored(path)


@pytest.mark.parametrize("which", [3, -2])
def test_f18_f21_changed_bytes_are_found_and_gone_past_with_a_persons_word(path: Path, which: int) -> None:
    lines = closed_session(path)
    which %= len(lines)
    change(path, which, lines[which][:-9] + b"\0" + lines[which][-8:])

    with Sessions(SqliteStore(path)) as sessions:
        assert not verify(sessions.store, "s").sound
        claim = sessions.store.claim("s")
        with pytest.raises(Damaged, match=f"behind line {which - 1} "):
            claim.append(batch_behind(head_of(lines[:which]), 1), head_of(lines[:which]))
        with pytest.raises(OwnershipLost):
            claim.append(batch_behind(head_of(lines[:2]), 1), head_of(lines[:2]))
        claim.release()
        with sessions.session("s", accept_loss=True) as session:
            session.append("user_message", {"parts": []})
        with sessions.session("s") as session:
            assert session.append("user_message", {"parts": []}).seq > len(lines)
    assert stored(path)[:which] == lines[:which]


def test_f22_a_session_whose_first_line_is_changed_is_never_written_to(path: Path) -> None:
    lines = closed_session(path)
    change(path, 0, b"\0" * len(lines[0]))

    store = SqliteStore(path)
    claim = store.claim("s")
    for head in (EMPTY, head_of(lines[:2])):
        with pytest.raises(DamagedStart):
            claim.append(batch_behind(head, 1), head)
    store.close()


def test_a_last_line_that_is_changed_is_covered_by_the_next_owner(path: Path) -> None:
    lines = closed_session(path)
    change(path, len(lines) - 1, b"\0" * len(lines[-1]))

    with Sessions(SqliteStore(path)) as sessions:
        sessions.session("s").open().close()
        with sessions.session("s") as session, session.turn("goes on"):
            pass
    assert stored(path)[: len(lines) - 1] == lines[:-1]


# --- readers beside a writer


def test_a_reader_never_holds_up_the_writer_and_sees_whole_batches(path: Path) -> None:
    store = SqliteStore(path)
    claim, head = begun(store, messages=0)
    stop = threading.Event()
    seen: list[int] = []

    def look() -> None:
        reader = SqliteStore(path)
        while not stop.is_set():
            seen.append(len(list(reader.read("s"))))
        reader.close()

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    half = store.read("s")
    next(half)
    longest = 0.0
    for _ in range(200):
        batch = batch_behind(head, 3)
        started = time.monotonic()
        claim.append(batch, head)
        longest = max(longest, time.monotonic() - started)
        head = head_of(batch)
    stop.set()
    for thread in threads:
        thread.join()
    assert list(half) == []
    store.close()
    assert longest < 2
    assert seen
    assert {count % 3 for count in seen} == {1}


def test_a_long_session_is_read_over_one_connection(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(path)
    store.put("s", lines := lines_of(log_of(3000)))
    opened = []
    connect = apsw.Connection

    def counting(*values: Any, **named: Any) -> apsw.Connection:
        opened.append(values)
        return connect(*values, **named)

    monkeypatch.setattr(apsw, "Connection", counting)
    assert sound_lines(list(store.read("s"))) == lines
    assert [record.line for record in store.newest("s") if record] == lines[::-1]
    assert len(opened) <= 1
    store.close()


def test_large_lines_are_not_read_all_at_once(path: Path) -> None:
    store = SqliteStore(path)
    lines = lines_of(log_of(20, text="x" * 300_000))
    store.put("s", lines)

    assert len(store._reader.rows(LINES, (1, 0, 1 << 40, 256))) < 6
    assert sound_lines(list(store.read("s"))) == lines
    assert [record.line for record in store.newest("s") if record] == lines[::-1]
    store.close()


# --- group commit


def counting_commits(store: SqliteStore) -> list[str]:
    found: list[str] = []
    store.claim("warm").release()
    connection = store._writer._connection
    assert connection is not None

    def note() -> bool:
        found.append("COMMIT")
        return False

    connection.set_commit_hook(note)
    return found


def together(*acts: Callable[[], None]) -> list[BaseException | None]:
    """Run each in a thread of its own; what each raised."""
    found: list[BaseException | None] = [None] * len(acts)

    def run(index: int) -> None:
        try:
            acts[index]()
        except BaseException as error:  # noqa: BLE001 - it is the result
            found[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def gathered(store: SqliteStore, acts: list[Callable[[], None]]) -> list[BaseException | None]:
    """Run the acts so that all wait for the same commit: the turn is held until they do."""
    taken = threading.Event()

    def hold() -> None:
        with store._group._turn:
            taken.set()
            while len(store._group._waiting) < len(acts):
                time.sleep(0.001)
        store._group._wake_next()

    def behind(act: Callable[[], None]) -> None:
        assert taken.wait(10)
        act()

    return together(*(lambda act=act: behind(act) for act in acts), hold)[:-1]


def appending(claim: SqliteClaim, head: Head, count: int = 1) -> Callable[[], None]:
    return lambda: claim.append(batch_behind(head, count), head)


def test_sixteen_threads_share_commits(path: Path) -> None:
    store = SqliteStore(path)
    commits = counting_commits(store)
    started = [begun(store, f"s{number}") for number in range(16)]
    commits.clear()

    def work(claim: SqliteClaim, head: Head) -> None:
        for _ in range(50):
            batch = batch_behind(head, 1)
            claim.append(batch, head)
            head = head_of(batch)

    assert together(*(lambda one=one: work(*one) for one in started)) == [None] * 16
    assert len(commits) < 16 * 50 / 2
    commits.clear()
    heads = [head_of(sound_lines(list(store.read(f"s{number}")))) for number in range(16)]
    claims = [claim for claim, _ in started]
    acts = [appending(claim, head) for claim, head in zip(claims, heads, strict=True)]
    assert gathered(store, acts) == [None] * 16
    assert len(commits) == 1
    store.close()
    assert {len(stored(path, f"s{number}")) for number in range(16)} == {55}


def test_a_lone_append_is_one_commit_and_waits_for_nobody(path: Path) -> None:
    store = SqliteStore(path)
    commits = counting_commits(store)
    claim, head = begun(store)
    commits.clear()
    started = time.monotonic()
    for _ in range(100):
        batch = batch_behind(head, 1)
        claim.append(batch, head)
        head = head_of(batch)
    assert len(commits) == 100
    assert time.monotonic() - started < 5
    store.close()


def test_one_that_is_refused_leaves_the_others_of_its_group(path: Path) -> None:
    store = SqliteStore(path)
    claims = [begun(store, f"s{number}") for number in range(4)]
    path.with_name("agents.db-owners").unlink()
    heir = SqliteStore(path)
    heir.claim("s2")

    found = gathered(store, [appending(*each) for each in claims])
    assert isinstance(found.pop(2), OwnershipLost)
    assert found == [None] * 3
    store.close()
    heir.close()
    assert [len(stored(path, f"s{number}")) for number in range(4)] == [5, 5, 4, 5]


@pytest.mark.parametrize("kind", [apsw.IOError, KeyboardInterrupt])
def test_a_commit_that_fails_leaves_each_of_its_group_in_doubt(
    path: Path, kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(path)
    claims = [begun(store, f"s{number}") for number in range(4)]

    class Failing:
        """The connection, whose commit fails."""

        def __init__(self, connection: apsw.Connection) -> None:
            self._connection = connection

        def execute(self, statement: str, *values: Any) -> Any:
            if statement == "COMMIT":
                raise kind("the disk said no")
            return self._connection.execute(statement, *values)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

    monkeypatch.setattr(store._writer, "_connection", Failing(store._writer._connection))  # type: ignore[arg-type]
    found = gathered(store, [appending(*each) for each in claims])

    failures = [error for error in found if isinstance(error, StoreFailed)]
    assert len(failures) == (4 if kind is apsw.IOError else 3)
    assert len({id(error) for error in failures}) == len(failures)
    assert sum(isinstance(error, KeyboardInterrupt) for error in found) == (kind is KeyboardInterrupt)
    for claim, head in claims:
        with pytest.raises(ClosedAfterFailure):
            claim.append(batch_behind(head, 1), head)
        claim.release()
    for number, (_, head) in enumerate(claims):
        store.claim(f"s{number}").append(batch_behind(head, 1), head)
    store.close()
    assert {len(stored(path, f"s{number}")) for number in range(4)} == {5}


def test_an_append_whose_caller_gave_up_is_never_written_later(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(path)
    claim, head = begun(store)
    other, other_head = begun(store, "other")

    class Interrupted:
        """The turn, when an interrupt comes before it is got."""

        def acquire(self, *, blocking: bool = True) -> bool:
            raise KeyboardInterrupt(blocking)

        def release(self) -> None:
            raise RuntimeError("it was not taken")

    with monkeypatch.context() as patch:
        patch.setattr(store._group, "_turn", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            claim.append(batch_behind(head, 1), head)
    claim.release()
    other.append(batch_behind(other_head, 1), other_head)
    assert len(list(store.read("s"))) == 4
    store.close()


def test_interrupts_anywhere_in_a_commit_leave_a_store_that_goes_on(path: Path) -> None:
    store = SqliteStore(path)
    acknowledged = 0
    interrupts = 0

    def handler(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for turn in range(60):
            claim = None
            try:
                claim = store.claim("s", wait=2)
                newest = [record.line for record in store.newest("s") if record][:1]
                head = head_of(newest)
                assert head.count >= acknowledged
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + turn * 0.00007)
                while True:
                    batch = batch_behind(head, 1) if head.count else lines_of(log_of(0, "s"))
                    claim.append(batch, head)
                    head = head_of(batch)
                    acknowledged = head.count
            except KeyboardInterrupt:
                interrupts += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                if claim is not None:
                    claim.release()
    finally:
        signal.signal(signal.SIGALRM, before)
    store.close()
    assert interrupts == 60
    assert len(stored(path)) >= acknowledged > 0


# --- storing and claiming while others write


def test_claims_puts_and_appends_at_once_do_not_wait_for_each_other_forever(path: Path) -> None:
    store = SqliteStore(path)

    def append(name: str) -> None:
        claim, head = begun(store, name)
        for _ in range(30):
            batch = batch_behind(head, 1)
            claim.append(batch, head)
            head = head_of(batch)

    def claim(name: str) -> None:
        for number in range(30):
            store.claim(f"{name}-{number}").release()

    def put(name: str) -> None:
        for number in range(15):
            store.put(f"{name}-{number}", lines_of(log_of(20)))
            assert len(list(store.read(f"{name}-{number}"))) == 21

    acts = [lambda make=make, n=n: make(f"{make.__name__}{n}") for make in (append, claim, put) for n in range(3)]
    assert together(*acts) == [None] * 9
    assert len(list(store.sessions())) == 3 + 90 + 45
    store.close()


# --- the index


def test_the_index_agrees_with_a_glance_at_each_of_200_sessions(path: Path) -> None:
    store = SqliteStore(path)
    sessions = Sessions(store)
    for number in range(200):
        session = sessions.session(f"s{number:03}").open()
        for turn in range(number % 3):
            with session.turn(f"question {turn}"):
                pass
        if number % 5 < 2:
            # a crash: the claim ends, and nothing is closed
            session.turn("left open").__enter__()
            session.flush()
            store._claims[-1].release()
        else:
            session.close()
    found = list(store.interrupted())

    assert found == [name for name in store.sessions() if glance(store, name).state == "interrupted"]
    assert len(found) == 80
    store.close()


def test_a_history_that_does_not_say_what_is_open_is_in_the_index(path: Path) -> None:
    store = SqliteStore(path)
    store.put("quiet", lines_of(log_of(3)))
    log = log_of(1)
    log.append("turn_start", {"turn": 1, "format": 1})
    log.append("step_start", {"turn": 1, "step": 1})
    store.put("bare", lines_of(log))
    claim = store.claim("appended")
    for index, line in enumerate(lines_of(log)):
        claim.append([line], head_of(lines_of(log)[:index]))

    assert list(store.interrupted()) == ["appended", "bare"]
    store.close()


@pytest.mark.parametrize(
    ("statement", "values", "index"),
    [
        (INTERRUPTED, (b"", 256), "session_open"),
        (FIND, (b"s",), "sqlite_autoindex_session_1"),
        (FIND, (b"s",), "sqlite_autoindex_line_1"),
        (NEWEST, (1, 2, 3), "sqlite_autoindex_line_1"),
        (LINES, (1, 2, 3, 4), "sqlite_autoindex_line_1"),
    ],
)
def test_the_index_is_what_is_read(path: Path, statement: str, values: tuple[Any, ...], index: str) -> None:
    store = SqliteStore(path)
    begun(store)
    store.close()
    connection = connect_to_write(str(path))
    plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)
    details = [row[3] for row in plan]
    connection.close()

    assert any(index in detail for detail in details)
    assert not any(detail.startswith("SCAN line") or "TEMP B-TREE" in detail for detail in details)


def test_growing_a_log_goes_on_where_it_stopped(path: Path) -> None:
    log = log_of(2)
    for _ in range(5):
        store = SqliteStore(path)
        claim = store.claim("s")
        have = sound_lines(list(store.read("s")))
        claim.append(lines_of(log, len(have)), head_of(have))
        grow(log, 2)
        store.close()
    assert stored(path) == lines_of(log)[:-2]
