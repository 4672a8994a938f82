"""Stores that are not as they should be, met from the command line: a code, a sentence and a hint, within bounded time.

Every verb that takes a store is tried on each. Nothing is written, no traceback and no password is printed.
"""

import json
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import quote

import apsw
import psycopg
import pytest

from tests.cli.worlds import World, command, environment, run
from tests.races.recoveries import interrupted
from tests.store.building import sound_lines
from tests.store.processes import in_child
from tests.store.server import Server, fresh_schema, running_server
from turnwal.store.postgres import PostgresStore
from turnwal.store.postgres_schema import SCHEMA
from turnwal.store.sqlite import SqliteStore
from turnwal.store.urls import open_store

SECRET: Final = "s3cret-of-a-user"  # noqa: S105 - it is what must not be printed
PATIENCE_S: Final = 1.0
BOUND_S: Final = 8.0

READING: Final = (
    ["ls"],
    ["ls", "--interrupted"],
    ["show", "s"],
    ["plan", "s"],
    ["verify", "s"],
    ["head", "s"],
)
OWNING: Final = (["export", "s"],)
"""What reads only, but not beside an owner: there is open work in the session."""
WRITING: Final = (["recover", "s"], ["recover", "--all"])
VERBS: Final = (*READING, *OWNING, *WRITING)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that may be stopped."""
    with running_server() as found:
        yield found


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for ten seconds in production waits for one."""
    defaults = PostgresStore.__init__.__kwdefaults__
    assert defaults is not None
    for name in ("lease_s", "timeout_s"):
        monkeypatch.setitem(defaults, name, PATIENCE_S)


def refused(store: str, code: str, hint: str, *verbs: list[str]) -> None:
    """Each verb says this, with and without --json, and nothing that it should not."""
    for verb in verbs or VERBS:
        for form in ([], ["--json"]) if verb[0] != "export" else ([],):
            started = time.monotonic()
            result = run(*verb, *form, "--store", store)
            assert time.monotonic() - started < BOUND_S, verb
            check(result.stdout + result.stderr, " ".join(verb))
            assert result.exit_code == 1, (verb, result.stdout, result.stderr)
            told = result.stderr
            if form:
                error = json.loads(told.splitlines()[-1])["error"]
                told = f"error {error['code']}: {error['message']}\nhint: {error['hint']}"
            assert f"error {code}: " in told, (verb, told)
            assert hint in told.split("hint: ")[1], (verb, told)


def check(text: str, what: str) -> None:
    assert "Traceback" not in text, what
    assert "error unexpected" not in text, (what, text)
    assert '"unexpected"' not in text, (what, text)
    assert SECRET not in text, what


# --- SQLite


@pytest.fixture
def path(tmp_path: Path, world: World) -> Path:
    """A database with one interrupted session."""
    del world
    found = tmp_path / "agents.db"
    with closing(SqliteStore(found)) as store:
        store.put("s", interrupted("s"))
    return found


def content(path: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in sorted(path.parent.iterdir()) if each.is_file()}


@pytest.mark.parametrize(
    "wrong", [b"no database at all, but text " * 50, b"\x89PNG\r\n" + bytes(4096), b"SQLite format 3\0"]
)
def test_a_file_that_is_something_else(path: Path, wrong: bytes) -> None:
    path.write_bytes(wrong)
    before = content(path)

    refused(f"sqlite:{path}", "store_unsupported", "")

    assert content(path) == before


def test_a_database_of_another_program(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as theirs:
        theirs.execute("CREATE TABLE line (theirs)")
    before = content(path)

    refused(f"sqlite:{path}", "store_unsupported", "a file of its own")

    assert content(path) == before


def test_a_database_of_a_newer_turnwal(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()

    refused(f"sqlite:{path}", "too_new", "upgrade")

    assert path.read_bytes() == before


def test_a_directory_in_the_place_of_a_database(path: Path) -> None:
    path.unlink()
    path.mkdir()

    refused(f"sqlite:{path}", "store_failed", "")


def test_a_database_that_may_not_be_written() -> None:
    with TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)  # root becomes somebody else, who has to get there
        path = Path(directory) / "locked" / "agents.db"
        with closing(SqliteStore(path)) as store:
            store.put("s", interrupted("s"))
        other = Path(directory) / "other.db"
        other.write_bytes(b"no database" * 100)
        refused(f"sqlite:{other}", "store_unsupported", "")  # what is imported is imported while it can be
        path.chmod(0o444)
        path.parent.chmod(0o555)
        before = content(path)

        def body() -> None:
            if os.getuid() == 0:
                os.seteuid(65534)
            refused(f"sqlite:{path}", "store_failed", "mode")

        assert in_child(body) == 0
        assert content(path) == before
        path.parent.chmod(0o755)


def test_a_full_disk_under_a_recovery(path: Path) -> None:
    path.unlink()
    with closing(SqliteStore(path)) as store:
        store.put("s", interrupted("s", more=200))
    before = stored(f"sqlite:{path}")

    def little_room() -> None:
        # the shared memory beside the database takes 32 KiB, its -wal more
        resource.setrlimit(resource.RLIMIT_FSIZE, (33_000, resource.RLIM_INFINITY))

    for verb in WRITING:
        done = subprocess.run(
            command(*verb, "--store", f"sqlite:{path}"),
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
            timeout=30,
            preexec_fn=little_room,
        )
        check(done.stdout + done.stderr, " ".join(verb))
        assert done.returncode == 1
        assert "error store_full: " in done.stderr
        assert "make room" in done.stderr
    assert stored(f"sqlite:{path}") == before
    assert run("recover", "s", "--store", f"sqlite:{path}").exit_code == 0


def stored(url: str) -> list[bytes]:
    with closing(open_store(url)) as store:
        return sound_lines(list(store.read("s")))


# --- PostgreSQL


def with_password(url: str) -> str:
    """The same server, named with a password that it does not ask for."""
    return f"{url}&password={SECRET}"


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    """A store with one interrupted session."""
    with fresh_schema(server) as found:
        with closing(PostgresStore(found)) as store:
            store.put("s", interrupted("s"))
        yield found


def test_a_server_that_is_down(server: Server, url: str) -> None:
    server.stop()
    try:
        refused(with_password(url), "store_failed", "is the server up")
        refused(with_password(url), "store_failed", "is the server up", ["migrate"])
    finally:
        server.start()
    assert run("verify", "s", "--store", url).exit_code == 0
    assert run("ls", "--interrupted", "--store", url).exit_code == 3


def test_a_server_that_goes_down_in_the_middle(server: Server, url: str) -> None:
    before = stored(url)
    with closing(psycopg.connect(url)) as blocking:
        blocking.execute("LOCK TABLE turnwal_line IN EXCLUSIVE MODE")
        pipe = subprocess.PIPE
        asked = command("recover", "s", "--store", with_password(url))
        with subprocess.Popen(asked, stdout=pipe, stderr=pipe, text=True, env=environment()) as process:
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            while server.execute(waiting) == [(0,)]:
                assert process.poll() is None
                time.sleep(0.02)
            server.stop(signal.SIGQUIT)
            said, complained = process.communicate(timeout=30)
    server.start()

    check(said + complained, "recover")
    assert process.returncode == 1
    assert complained.startswith("error store_failed: ")
    assert "hint: " in complained
    assert stored(url) == before
    # the process had a lease of the usual length
    server.execute("UPDATE turnwal_lease SET expires = expires - INTERVAL '1 hour'", schema=url.rpartition("%3D")[2])
    assert run("recover", "s", "--store", url).exit_code == 0


def test_a_refused_password(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    server.execute("CREATE ROLE guarded_here LOGIN PASSWORD 'right'")
    rules = server.root / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text("local all guarded_here scram-sha-256\n" + before)
    server.execute("SELECT pg_reload_conf()")
    at = f"/postgres?host={quote(str(server.root), safe='')}"
    try:
        until = time.monotonic() + 10
        while "password" not in run("ls", "--store", f"postgresql://guarded_here:{SECRET}@{at}").stderr:
            assert time.monotonic() < until
        refused(f"postgresql://guarded_here:{SECRET}@{at}", "store_failed", "password")
        refused(f"postgresql://guarded_here@{at}&password={SECRET}", "store_failed", "password")
        refused(f"postgresql://guarded_here:{SECRET}@{at}", "store_failed", "password", ["migrate"])
    finally:
        rules.write_text(before)
        server.execute("SELECT pg_reload_conf()")


def test_a_server_that_takes_no_writes_is_read_all_the_same(url: str) -> None:
    read_only = f"{url}%20-cdefault_transaction_read_only%3Don"
    before = stored(url)

    for verb in READING:
        result = run(*verb, "--store", read_only)
        check(result.stdout + result.stderr, verb[0])
        assert result.exit_code in (0, 3), (verb, result.stderr)
    refused(with_password(read_only), "store_failed", "primary", *OWNING, *WRITING)
    assert stored(url) == before


def test_a_database_without_tables(server: Server) -> None:
    with fresh_schema(server, migrated=False) as bare:
        refused(with_password(bare), "store_failed", "turnwal migrate")


def test_tables_of_a_newer_turnwal(server: Server, url: str) -> None:
    schema = url.rpartition("%3D")[2]
    server.execute("INSERT INTO turnwal_schema VALUES (%s)", SCHEMA + 1, schema=schema)

    refused(with_password(url), "too_new", "upgrade")
    refused(with_password(url), "too_new", "upgrade", ["migrate"])


def test_a_server_that_is_slow(url: str) -> None:
    before = stored(url)
    with psycopg.connect(url) as blocking:
        blocking.execute("LOCK TABLE turnwal_session IN ACCESS EXCLUSIVE MODE")
        refused(with_password(url), "store_failed", "slow", ["ls"], ["recover", "--all"])
    with psycopg.connect(url) as blocking:
        blocking.execute("LOCK TABLE turnwal_line IN EXCLUSIVE MODE")
        first = run("recover", "s", "--store", with_password(url))
        second = run("recover", "s", "--wait", "10", "--store", with_password(url))
        for result in (first, second):
            check(result.stdout + result.stderr, "recover")
            assert result.exit_code == 1
            assert "slow" in result.stderr.split("hint: ")[1]
    assert stored(url) == before
    assert run("recover", "s", "--wait", "10", "--store", url).exit_code == 0


def test_a_server_that_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        at = f"127.0.0.1:{silent.getsockname()[1]}/d"
        refused(f"postgresql://u:{SECRET}@{at}", "store_failed", "does not answer", ["recover", "--all"])


def test_no_password_is_in_what_is_said_of_a_wrong_url(world: World) -> None:
    del world
    for store in (
        f"postgress://u:{SECRET}@h/d",
        f"postgresql://u:a@{SECRET}@h/d",
        f"postgresql://u:a/{SECRET}@h/d",
        f"postgresql://h/d?passwort={SECRET}",
        f"pg://h/d?user=u&password={SECRET}",
    ):
        refused(store, "invalid_store_url", "")
        refused(store, "invalid_store_url", "", ["migrate"])


def test_no_password_is_in_what_is_said_of_an_empty_store(server: Server) -> None:
    with fresh_schema(server) as empty:
        for form in ([], ["--json"], ["--interrupted"]):
            result = run("ls", *form, "--store", with_password(empty))
            assert result.exit_code == 0
            check(result.stdout + result.stderr, "ls")
        result = run("recover", "--all", "--store", with_password(empty))
        check(result.stdout + result.stderr, "recover --all")
