"""Databases of other tools, read as a killed or a running process leaves them."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.formats.databases import changed_elsewhere, changing_elsewhere, database, left_in_wal, open_elsewhere
from tests.formats.fixtures import DATA, digests, only, sessions, taken
from turnwal.formats import database as formats_database
from turnwal.formats.copies import Unsteady, copied
from turnwal.formats.database import DatabaseBusy, copied_to, reading
from turnwal.formats.doctor import diagnose, examine

IN_WAL = sorted(path.relative_to(DATA) for path in DATA.glob("*/*.db-wal"))


def killed_while_it_held(path: Path) -> None:
    """Leave beside a database and its `-wal` the index that a killed process leaves."""
    code = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('select count(*) from sqlite_schema').fetchall()\n"
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 9


def at_work(path: Path) -> AbstractContextManager[None]:
    """A block in which another process has the database open and has written to it."""
    return open_elsewhere(path, "create table beside (a)")


def rows(path: Path) -> int:
    with reading(path) as connection:
        (count,) = next(connection.execute("SELECT count(*) FROM t"))
    assert isinstance(count, int)
    return count


@pytest.mark.parametrize("index", [None, b"", b"\1" * 100, b"\1" * 32_768], ids=["its own", "empty", "short", "other"])
@pytest.mark.parametrize("wal", IN_WAL, ids=str)
def test_the_index_that_a_killed_tool_leaves_is_not_written(wal: Path, index: bytes | None, tmp_path: Path) -> None:
    path = taken(wal.parent.name, wal.stem + ".db", tmp_path)
    expected = [diagnose(found) for found in sessions(path)]
    killed_while_it_held(path)
    assert Path(f"{path}-wal").stat().st_size > 0
    if index is not None:
        Path(f"{path}-shm").write_bytes(index)
    before = digests(tmp_path)
    assert f"{path.name}-shm" in before
    assert list(examine([path])) == expected
    assert digests(tmp_path) == before


def test_what_the_log_alone_holds_is_read_beside_an_index_that_does_not_know_it(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    left_in_wal(path, "create table t (a); insert into t values (1);")
    index = Path(f"{path}-shm").read_bytes()
    left_in_wal(path, "insert into t values (2);")
    Path(f"{path}-shm").write_bytes(index)
    before = digests(tmp_path)
    assert rows(path) == 2
    assert digests(tmp_path) == before


def test_a_database_that_its_tool_writes_to_is_read_as_it_is_now(tmp_path: Path) -> None:
    path = taken("openai_agents", "kept.db", tmp_path)
    expected = only(path)[1]
    with at_work(path):
        before = digests(tmp_path)
        assert only(path)[1] == expected
        assert digests(tmp_path) == before


def test_a_database_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    path = taken("openai_agents", "kept.db", tmp_path / "taken")
    expected = only(path)[1].open
    killed_while_it_held(path)
    shut = Path(shutil.copytree(tmp_path / "taken", tmp_path / "shut"))
    for one in shut.iterdir():
        one.chmod(0o400)
    shut.chmod(0o500)
    try:
        assert only(shut / "kept.db")[1].open == expected
    finally:
        shut.chmod(0o700)


def journaled(path: Path) -> Path:
    """A database of some pages with a rollback journal, last written to a while ago."""
    return settled(database(path, "create table t (a);", lambda connection: fill(connection, 5_000)))


def settled(path: Path) -> Path:
    """The database with no write in the last moment."""
    for file in path.parent.glob(f"{path.name}*"):
        os.utime(file, (file.stat().st_atime, file.stat().st_mtime - 10))
    return path


def changed_rows(path: Path) -> int:
    with reading(path) as connection:
        (count,) = next(connection.execute("SELECT count(*) FROM t WHERE rowid - 1 <> a"))
    assert isinstance(count, int)
    return count


@pytest.mark.parametrize("killed", [True, False])
def test_half_a_change_is_not_read_and_not_rolled_back_where_it_is(tmp_path: Path, *, killed: bool) -> None:
    path = journaled(tmp_path / "s.db")
    with changed_elsewhere(path, killed=killed):
        before = digests(tmp_path)
        assert (rows(path), changed_rows(path)) == (5_000, 0)
        assert digests(tmp_path) == before


def test_a_journal_that_comes_and_goes_makes_no_database_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats_database, "WAIT_MS", 50)
    path = journaled(tmp_path / "s.db")
    read = 0
    with changing_elsewhere(path):
        for _ in range(100):
            with contextlib.suppress(DatabaseBusy):
                assert rows(path) == 5_000
                read += 1
    assert read > 0


def test_a_database_that_is_rolled_back_while_it_is_copied_is_read_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = journaled(tmp_path / "s.db")
    real = shutil.copyfile

    def copyfile(source: Path, target: Path) -> None:
        monkeypatch.setattr(shutil, "copyfile", real)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("select count(*) from t").fetchall()
        real(source, target)

    with changed_elsewhere(path, killed=True):
        settled(path)
        monkeypatch.setattr(shutil, "copyfile", copyfile)
        assert changed_rows(path) == 0
        assert not Path(f"{path}-journal").exists()


def test_a_database_that_is_written_to_whenever_it_is_copied_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    left_in_wal(path, "create table t (a);")
    Path(f"{path}-shm").unlink()
    settled(path)
    tried: list[Path] = []
    real = shutil.copyfile

    def copyfile(source: Path, target: Path) -> None:
        tried.append(source)
        real(source, target)
        os.utime(path, (0, len(tried)))

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    with pytest.raises(DatabaseBusy, match="all the time"):
        rows(path)
    assert len(tried) > 2


def test_what_was_written_to_just_now_is_not_copied_before_it_is_steady(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    left_in_wal(path, "create table t (a); insert into t values (1);")
    Path(f"{path}-shm").unlink()
    path.touch()
    with pytest.raises(Unsteady), copied(path, "-wal"):
        pass
    assert rows(path) == 1


def test_a_copy_without_a_change_is_the_same_bytes(tmp_path: Path) -> None:
    path = database(tmp_path / "s.db", "create table t (a);", lambda connection: fill(connection, 3))
    copied_to(path, tmp_path / "out.db", None)
    assert (tmp_path / "out.db").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("closed", [True, False])
def test_a_copy_of_a_database_with_a_log_holds_what_is_in_the_log(tmp_path: Path, *, closed: bool) -> None:
    path = tmp_path / "s.db"
    left_in_wal(path, "create table t (a); insert into t values (1);")
    if closed:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("insert into t values (2)")
            connection.commit()
    before = digests(tmp_path)
    copied_to(path, tmp_path / "out.db", None)
    assert rows(tmp_path / "out.db") == rows(path) == (2 if closed else 1)
    copied_to(tmp_path / "out.db", tmp_path / "again.db", None)
    assert (tmp_path / "again.db").read_bytes() == (tmp_path / "out.db").read_bytes()
    assert {name: digest for name, digest in digests(tmp_path).items() if name in before} == before


def test_a_database_is_held_while_its_bytes_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = database(tmp_path / "s.db", "create table t (a);", lambda connection: fill(connection, 3))
    real = shutil.copyfileobj

    def copyfileobj(source: Any, target: Any) -> None:
        code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('begin exclusive')"
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
        assert "database is locked" in done.stderr
        real(source, target)

    monkeypatch.setattr(shutil, "copyfileobj", copyfileobj)
    copied_to(path, tmp_path / "out.db", None)
    assert rows(tmp_path / "out.db") == 3


def test_a_change_that_fails_leaves_no_copy(tmp_path: Path) -> None:
    path = database(tmp_path / "s.db", "create table t (a);", lambda connection: fill(connection, 3))
    before = digests(tmp_path)

    def change(connection: apsw.Connection) -> None:
        connection.execute("delete from t")
        connection.execute("delete from nowhere")

    with pytest.raises(apsw.SQLError):
        copied_to(path, tmp_path / "out.db", change)
    assert digests(tmp_path) == before


def fill(connection: sqlite3.Connection, count: int) -> None:
    connection.executemany("insert into t values (?)", [(number,) for number in range(count)])
