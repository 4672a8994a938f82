"""What PostgreSQL alone can go wrong with, on a real server."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, Final
from urllib.parse import quote

import psycopg
import pytest

from tests.store.building import batch_behind, grow, lines_of, log_of
from tests.store.cutting import Direction, Proxy, proxy_before
from tests.store.postgres_writer import Writer
from tests.store.processes import in_child
from tests.store.server import Server, fresh_schema, running_server, shared_server
from turnwal.core.chain import EMPTY
from turnwal.core.errors import (
    ClosedAfterFailure,
    InvalidStoreUrl,
    OwnershipLost,
    SessionHeld,
    StoreError,
    StoreFailed,
    TooNew,
)
from turnwal.core.limits import READ_BYTES
from turnwal.core.log import Log
from turnwal.store import postgres, postgres_link, postgres_links
from turnwal.store.lease import Hold, Keeper, Lease
from turnwal.store.postgres import PostgresStore
from turnwal.store.postgres_append import append_together, insert_whole
from turnwal.store.postgres_link import Link
from turnwal.store.postgres_schema import SCHEMA, migrate
from turnwal.store.protocol import Record
from turnwal.store.urls import migrate_store, open_store


@pytest.fixture
def url() -> Iterator[str]:
    with fresh_schema() as found:
        yield found


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(url)) as found:
        yield found


def schema_of(url: str) -> str:
    return url.rpartition("%3D")[2]


def seqs(store: PostgresStore, session: str = "s") -> list[int]:
    found = list(store.read(session))
    assert all(isinstance(each, Record) for each in found)
    return [each.event.seq for each in found if isinstance(each, Record)]


def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """No lease is renewed any more, as in a process that is paused."""

    def renewed(keeper: Keeper, link: Link, lease: Lease) -> bool:
        del keeper, link, lease
        return True

    monkeypatch.setattr(Keeper, "renew", renewed)


@contextmanager
def writing(url: str, session: str = "s", *, appends: int, lease_s: float = 10.0) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "tests.store.postgres_writer", url, session, str(appends), str(lease_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


# --- owners


def test_an_owner_is_renewed_for_longer_than_its_lease(url: str) -> None:
    with closing(PostgresStore(url, lease_s=0.6)) as first, closing(PostgresStore(url)) as second:
        writer = Writer(first)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            with pytest.raises(SessionHeld):
                second.claim("s")
            time.sleep(0.1)
        writer.write()


def test_a_paused_owner_is_succeeded_and_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen(monkeypatch)
    with closing(PostgresStore(url, lease_s=0.5)) as first, closing(PostgresStore(url, lease_s=30)) as second:
        old = Writer(first)
        old.write(3)
        with pytest.raises(SessionHeld):
            second.claim("s")
        new = Writer(second, wait=5)
        for _ in range(2):
            with pytest.raises(OwnershipLost, match="another owner came since"):
                old.write()
        new.write()
        with pytest.raises(OwnershipLost, match="another owner came since"):
            old.write()
        old.claim.release()
        new.write()

        assert seqs(second) == [0, 1, 2, 3, 4]


def test_an_expired_lease_refuses_also_where_nobody_came(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen(monkeypatch)
    with closing(PostgresStore(url, lease_s=0.3)) as store:
        old = Writer(store)
        old.write()
        time.sleep(0.5)
        for _ in range(2):
            with pytest.raises(OwnershipLost, match="lease of this process expired"):
                old.write()
        monkeypatch.undo()
        new = Writer(store)
        new.write()

        assert seqs(store) == [0, 1]


def test_the_renewal_tells_an_owner_that_its_lease_is_lost(url: str) -> None:
    with closing(PostgresStore(url, lease_s=0.6)) as store:
        writer = Writer(store)
        writer.write()
        shared_server().execute("UPDATE turnwal_lease SET expires = expires - INTERVAL '1 hour'", schema=schema_of(url))
        end = time.monotonic() + 5
        while not writer.claim._lease.lost and time.monotonic() < end:
            time.sleep(0.02)

        assert writer.claim._lease.lost
        with pytest.raises(OwnershipLost):
            writer.write()


def test_a_stopped_process_is_succeeded_and_writes_nothing_when_it_wakes(url: str) -> None:
    with writing(url, appends=1_000_000, lease_s=1.0) as zombie, closing(PostgresStore(url)) as store:
        assert said(zombie) == "ready"
        while len(seqs(store)) < 5:
            time.sleep(0.02)
        zombie.send_signal(signal.SIGSTOP)
        writer = Writer(store, wait=20)
        before = writer.head.count
        writer.write()
        zombie.send_signal(signal.SIGCONT)
        assert said(zombie) == "ownership_lost"
        writer.write()

        assert seqs(store) == list(range(before + 2))


STOPS_INSIDE_A_COMMIT = """
import os, signal, sys, threading, time
from tests.store.postgres_writer import Writer
from turnwal.store.postgres import PostgresStore
from turnwal.store.postgres_link import Link

def stopping(link, statement, *more):
    if statement == "COMMIT":
        link.pgconn.flush()
        time.sleep(0.2)
        print("inserted", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(0.5)  # a thread runs on for a moment
    return execute(link, statement, *more)

store = PostgresStore(sys.argv[1], lease_s=1, timeout_s=2)
writers = [Writer(store, f"s{index}") for index in range(3)]
execute, Link.execute = Link.execute, stopping
heard = []

def write(writer):
    try:
        writer.write()
    except Exception as error:
        heard.append(error.code)

threads = [threading.Thread(target=write, args=(writer,)) for writer in writers]
with store._group._turn:
    for thread in threads:
        thread.start()
    while len(store._group._waiting) < 3:
        time.sleep(0.001)
store._group._wake_next()
for thread in threads:
    thread.join()
print(*heard, flush=True)
"""


def test_a_process_stopped_inside_a_shared_commit_is_succeeded_and_writes_nothing(url: str) -> None:
    command = [sys.executable, "-c", STOPS_INSIDE_A_COMMIT, url]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as zombie,
        closing(PostgresStore(url, timeout_s=5)) as store,
    ):
        try:
            assert said(zombie) == "inserted"
            heirs = [Writer(store, f"s{index}", wait=20) for index in range(3)]
            for heir in heirs:
                heir.write()
            zombie.send_signal(signal.SIGCONT)
            assert said(zombie) == "store_failed store_failed store_failed"
        finally:
            zombie.kill()
        assert [seqs(store, f"s{index}") for index in range(3)] == [[0]] * 3


def test_a_killed_process_is_succeeded_when_its_lease_ends(url: str) -> None:
    with writing(url, appends=1_000_000, lease_s=1.0) as process, closing(PostgresStore(url)) as store:
        assert said(process) == "ready"
        process.kill()
        process.wait()
        with pytest.raises(SessionHeld, match="postgres_writer"):
            store.claim("s")
        writer = Writer(store, wait=20)
        writer.write()

        assert seqs(store) == list(range(writer.head.count))


def test_eight_processes_on_one_session_write_in_turn(url: str) -> None:
    command = [sys.executable, "-m", "tests.store.postgres_writer", url, "s", "10", "10"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    outputs = [process.communicate(timeout=50)[0].split() for process in processes]

    assert outputs == [["ready", "done"]] * 8
    with closing(PostgresStore(url)) as store:
        assert seqs(store) == list(range(80))


def test_a_forked_child_reads_by_itself_and_owns_nothing(store: PostgresStore) -> None:
    writer = Writer(store)
    writer.write()

    def child() -> None:
        assert seqs(store) == [0]
        with pytest.raises(OwnershipLost):
            store.claim("t")
        with pytest.raises(OwnershipLost):
            writer.write()
        writer.claim.release()
        store.close()

    with warnings.catch_warnings():
        # newer Pythons warn of threads that the child lacks; this child needs none
        warnings.simplefilter("ignore", DeprecationWarning)
        assert in_child(child) == 0
    writer.write()

    assert seqs(store) == [0, 1]


def test_one_lease_serves_every_session_of_a_store(url: str, store: PostgresStore) -> None:
    for index in range(5):
        Writer(store, f"s{index}").write()

    assert shared_server().execute("SELECT count(*) FROM turnwal_lease", schema=schema_of(url)) == [(1,)]


def test_sessions_with_an_open_turn_are_told_from_the_index(store: PostgresStore) -> None:
    for name in ("b", "a"):
        log = Log()
        log.append("session_start", {"id": name, "format": 1, "open": [], "waiting": []})
        log.append("turn_start", {"open": [1], "waiting": []})
        if name == "a":
            store.put(name, lines_of(log))
        else:
            store.claim(name).append(lines_of(log), EMPTY)
    Writer(store, "c").write()

    assert list(store.interrupted()) == ["a", "b"]


def test_a_try_that_failed_frees_no_later_one(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All connections are busy when the first try has a lease and has not yet written that it owns."""
    with closing(PostgresStore(url, lease_s=1.5, timeout_s=0.5)) as store, closing(PostgresStore(url)) as beside:
        Writer(store, "keep").write()
        hold = Keeper.hold
        with ExitStack() as busy:

            def then_busy(keeper: Keeper, owner: str, number: int, epoch: int) -> tuple[Lease, Hold]:
                held = hold(keeper, owner, number, epoch)
                for _ in range(8):
                    busy.enter_context(store._links.take("be busy"))
                return held

            monkeypatch.setattr(Keeper, "hold", then_busy)
            with pytest.raises(StoreFailed, match="were busy"):
                store.claim("s")
            monkeypatch.undo()
        writer = Writer(store)
        writer.write()
        lease = writer.claim._lease
        assert lease.owed
        end = time.monotonic() + 10
        while lease.owed and time.monotonic() < end:
            time.sleep(0.02)

        assert not lease.owed
        assert beside.probe("s").owner is not None
        writer.write()
        writer.claim.release()
        beside.claim("s").release()


def test_no_epoch_is_tried_twice(store: PostgresStore) -> None:
    writer = Writer(store)
    number, epoch = writer.claim._number, writer.claim._epoch
    tried = [store._keeper.hold("x", number, epoch)[1] for _ in range(3)]

    assert tried == [(number, epoch + 1), (number, epoch + 2), (number, epoch + 3)]


def test_epochs_of_sessions_that_are_free_again_are_forgotten(store: PostgresStore) -> None:
    keep = Writer(store, "keep").claim._lease
    for _ in range(3):
        Writer(store).claim.release()

    assert len(keep.tried) == len(keep.held) == 1
    assert not keep.owed


def test_what_is_locked_when_it_is_given_up_costs_nobody_the_lease(url: str) -> None:
    with (
        closing(PostgresStore(url, lease_s=1.5, timeout_s=4)) as store,
        closing(PostgresStore(url)) as beside,
        psycopg.connect(url) as locking,
    ):
        keep = Writer(store, "keep")
        given_up = [Writer(store, f"s{index}") for index in range(4)]
        locking.execute("SELECT * FROM turnwal_session WHERE id <> %s AND id <> %s FOR UPDATE", (b"keep", b"s3"))
        releasing = [in_background(writer.claim.release)[0] for writer in given_up[:3]]
        while len(keep.claim._lease.owed) < 3:
            time.sleep(0.01)
        # as where its release was interrupted: behind the others, which are locked
        store._keeper.owe(keep.claim._lease, (given_up[3].claim._number, given_up[3].claim._epoch))
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            keep.write()
            time.sleep(0.05)

        beside.claim("s3").release()
        for thread in releasing:
            thread.join(20)
        assert set(keep.claim._lease.owed) == {(each.claim._number, each.claim._epoch) for each in given_up[:3]}
        locking.rollback()
        for index in range(3):
            beside.claim(f"s{index}", wait=10).release()
        keep.write()


class Interrupt:
    """A profile function that raises what Ctrl-C would at one of the instants inside this store and its lease."""

    def __init__(self, instant: int, files: Container[str] = ("postgres.py", "lease.py")) -> None:
        self.left = instant
        self.files = files

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        del arg
        if event in ("call", "c_return") and Path(frame.f_code.co_filename).name in self.files:
            self.left -= 1
            if self.left < 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    def strikes(self, act: Callable[[], object]) -> bool:
        """Whether the act was interrupted; it came to its end otherwise."""
        try:
            sys.setprofile(self)
            act()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False


def assert_all_free(store: PostgresStore) -> None:
    """Return when nobody owns any session: what was given up is free for all within a lease."""
    end = time.monotonic() + 20
    while held := [id for id in store.sessions() if store.probe(id).owner is not None]:
        assert time.monotonic() < end, held
        time.sleep(0.1)


def test_a_release_that_was_interrupted_anywhere_is_finished_by_another(url: str) -> None:
    with closing(PostgresStore(url, lease_s=60)) as store, closing(PostgresStore(url)) as beside:
        Writer(store, "keep")
        for instant in count():
            release = store.claim(f"s{instant}").release
            if not Interrupt(instant).strikes(release):
                break
            release()
            assert beside.probe(f"s{instant}").owner is None, instant
        assert instant > 10


def test_a_claim_that_is_interrupted_owns_nothing(url: str) -> None:
    with closing(PostgresStore(url, lease_s=2)) as store, closing(PostgresStore(url)) as beside:
        keep = Writer(store, "keep")
        last = ""
        for instant in count():
            last = f"s{instant}"
            if not Interrupt(instant).strikes(partial(store.claim, last)):
                break
        assert instant > 15
        next(claim for claim in store._claims if claim.session == last).release()
        keep.claim.release()
        assert_all_free(beside)


def test_ctrl_c_while_a_slow_server_is_told_of_a_release_leaves_nothing_held(url: str) -> None:
    with closing(PostgresStore(url, lease_s=2, timeout_s=5)) as store, closing(PostgresStore(url)) as beside:
        Writer(store, "keep")
        writer = Writer(store)
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"
        with psycopg.connect(url) as slow:
            slow.execute("SELECT * FROM turnwal_session WHERE id = %s FOR UPDATE", (b"s",))

            def press() -> None:
                while not shared_server().execute(waiting, "UPDATE turnwal_session SET lease = NULL%"):
                    time.sleep(0.01)
                os.kill(os.getpid(), signal.SIGINT)

            thread = threading.Thread(target=press)
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                writer.claim.release()
            thread.join()
            slow.rollback()
        beside.claim("s", wait=10).release()


# --- the outcome of an append


SPEAKING = (
    """CREATE FUNCTION {schema}.speak() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN RAISE {level} 'something at the commit'; RETURN NULL; END $$""",
    """CREATE CONSTRAINT TRIGGER speak AFTER INSERT ON {schema}.turnwal_line DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION {schema}.speak()""",
)


@pytest.mark.parametrize("level", ["WARNING", "NOTICE", "EXCEPTION"])
def test_what_is_said_at_the_commit_makes_the_outcome_unknown(url: str, store: PostgresStore, level: str) -> None:
    writer = Writer(store)
    writer.write()
    for statement in SPEAKING:
        shared_server().execute(statement.format(schema=schema_of(url), level=level))

    with pytest.raises(StoreFailed, match="something at the commit"):
        writer.write()
    with pytest.raises(ClosedAfterFailure):
        writer.write()
    with pytest.raises(StoreFailed, match="something at the commit"):
        store.put("t", batch_behind(EMPTY, 2))
    # a notice comes behind the commit
    assert store.probe("t").exists == (level != "EXCEPTION")
    assert level == "EXCEPTION" or seqs(store, "t") == [0, 1]

    writer.claim.release()
    written = seqs(store)
    assert written == ([0] if level == "EXCEPTION" else [0, 1])
    assert Writer(store).head.count == len(written)


def test_a_terminated_backend_leaves_the_outcome_unknown(url: str, store: PostgresStore) -> None:
    writer = Writer(store)
    writer.write()
    with blocked(url) as release:
        thread, failures = in_background(writer.write)
        wait_until_waiting()
        shared_server().execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s",
            "%turnwal_line%",
        )
        thread.join(20)
        release()

    assert [type(failure) for failure in failures] == [StoreFailed]
    with pytest.raises(ClosedAfterFailure):
        writer.write()
    writer.claim.release()
    again = Writer(store)
    again.write()
    assert seqs(store) == [0, 1]


@pytest.mark.parametrize("lines", [1, 2])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_connection_cut_anywhere_in_an_append_is_never_a_success(url: str, direction: Direction, lines: int) -> None:
    """Every so many bytes of what is said to the server, and of its answer."""
    with (
        proxy_before(shared_server().root / ".s.PGSQL.5432") as proxy,
        closing(PostgresStore(through(proxy, url), lease_s=60)) as store,
        closing(PostgresStore(url)) as beside,
    ):
        writer = Writer(store)
        for _ in range(8):
            writer.write(lines)
        proxy.cut_after(None)
        writer.write(lines)
        length = proxy.passed[direction]
        assert length > 10
        for count in range(1, length, max(1, length // 25)):
            head = writer.head.count
            proxy.cut_after(count, direction)
            with pytest.raises(StoreFailed):
                writer.write(lines)
            proxy.cut_after(None)
            with pytest.raises(ClosedAfterFailure):
                writer.write(lines)
            writer.claim.release()
            writer = Writer(store, wait=5)
            assert writer.head.count in ((head,) if direction == "up" else (head, head + lines))
            for _ in range(8):
                writer.write(lines)
        assert seqs(beside) == list(range(writer.head.count))


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_connection_cut_anywhere_in_a_put_leaves_all_or_nothing(url: str, direction: Direction) -> None:
    with (
        proxy_before(shared_server().root / ".s.PGSQL.5432") as proxy,
        closing(PostgresStore(through(proxy, url))) as store,
        closing(PostgresStore(url)) as beside,
    ):
        lines = batch_behind(EMPTY, 3)
        found = []

        def warm(name: str) -> None:
            for index in range(8):
                store.put(f"{name} {index}", lines)

        warm("first")
        proxy.cut_after(None)
        store.put("measured", lines)
        length = proxy.passed[direction]
        for count in range(1, length, max(1, length // 40)):
            session = f"cut {count}"
            proxy.cut_after(count, direction)
            with pytest.raises(StoreFailed):
                store.put(session, lines)
            proxy.cut_after(None)
            found.append(beside.probe(session).exists)
            assert not found[-1] or seqs(beside, session) == [0, 1, 2]
            warm(session)
        assert found == sorted(found)
        assert found[-1] == (direction == "down")


def test_a_server_that_is_slow_is_waited_for_only_so_long(url: str) -> None:
    with closing(PostgresStore(url, timeout_s=1)) as store:
        writer = Writer(store)
        writer.write()
        with blocked(url):
            started = time.monotonic()
            with pytest.raises(StoreFailed) as caught:
                writer.write()
            assert time.monotonic() - started < 5
        assert "slow" in caught.value.hint
        with pytest.raises(ClosedAfterFailure):
            writer.write()


def test_a_connection_closed_while_idle_is_replaced_before_anything_is_sent(store: PostgresStore) -> None:
    writer = Writer(store)
    writer.write()
    shared_server().execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE %s AND pid <> pg_backend_pid()",
        "%turnwal_l%",
    )
    time.sleep(0.2)
    writer.write()

    assert seqs(store) == [0, 1]
    assert list(store.sessions()) == ["s"]


LOST_LINES = {
    "one line": 1,
    "a batch": 3,
    "every line": 6,
}


@pytest.mark.parametrize("lost", LOST_LINES.values(), ids=LOST_LINES)
@pytest.mark.parametrize("how", ["alone", "a batch", "together", "opening"])
def test_an_owner_whose_last_lines_are_gone_writes_nothing_behind_the_hole(
    url: str, store: PostgresStore, how: str, lost: int
) -> None:
    other, writer = Writer(store, "other"), Writer(store)
    for each in (other, writer):
        each.write(3)
        each.write(3)
    schema = schema_of(url)
    shared_server().execute(
        "DELETE FROM turnwal_line WHERE session = %s AND position IN "
        "(SELECT position FROM turnwal_line WHERE session = %s ORDER BY position DESC LIMIT %s)",
        *(writer.claim._number, writer.claim._number, lost),
        schema=schema,
    )

    def write() -> None:
        writer.claim._opened = 1 if how == "opening" else None
        writer.write(2 if how == "a batch" else 1)

    for _ in range(2):
        if how == "together":
            with blocked(url) as release:
                running = [in_background(act) for act in (Writer(store, f"first {lost}").write, other.write, write)]
                wait_until_waiting()
                time.sleep(0.2)
                release()
                for thread, _ in running:
                    thread.join(20)
            assert [len(failures) for _, failures in running] == [0, 0, 1]
            error: BaseException = running[2][1][0]
            lost += 100  # another session is the first of the next group
        else:
            with pytest.raises(OwnershipLost) as caught:
                write()
            error = caught.value
            other.write()
        assert isinstance(error, OwnershipLost)
        assert "acknowledged are not there any more" in error.message
    lost %= 100

    assert seqs(store) == list(range(6 - lost))
    assert seqs(store, "other") == list(range(8))
    assert list(store.interrupted()) == []
    writer.claim.release()
    heir = Writer(store)
    heir.write()
    assert seqs(store) == list(range(7 - lost))


@pytest.mark.parametrize("count", [1, 2])
def test_a_number_that_names_another_session_is_not_written_to(url: str, store: PostgresStore, count: int) -> None:
    writer = Writer(store, "mine")
    writer.write()
    changed = "UPDATE turnwal_session SET id = %s, key = %s WHERE number = %s"
    shared_server().execute(changed, b"theirs", b"theirs", writer.claim._number, schema=schema_of(url))

    with pytest.raises(OwnershipLost, match="not there any more"):
        writer.write(count)
    assert seqs(store, "theirs") == [0]


def test_a_standby_promoted_without_the_last_lines_takes_none_behind_them() -> None:
    with (
        running_server() as primary,
        fresh_schema(primary) as url,
        running_server(primary) as standby,
    ):
        hosts = f"{quote(str(primary.root), safe='')},{quote(str(standby.root), safe='')}"
        both = url.replace(quote(str(primary.root), safe=""), hosts) + "&target_session_attrs=read-write"
        with closing(PostgresStore(both, lease_s=60)) as store:
            writers = [Writer(store, name) for name in ("a", "b")]
            writers[0].write()
            writers[1].write(2)
            replayed = "SELECT 1 FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()"
            while not primary.execute(replayed):
                time.sleep(0.02)
            standby.execute("ALTER SYSTEM SET primary_conninfo = ''")
            standby.execute("SELECT pg_reload_conf()")
            while standby.execute("SELECT pid FROM pg_stat_wal_receiver"):
                time.sleep(0.02)
            writers[1].write(3)
            primary.stop(signal.SIGKILL)
            standby.execute("SELECT pg_promote()")

            writers[0].write()
            for _ in range(2):
                with pytest.raises(OwnershipLost, match="acknowledged are not there any more"):
                    writers[1].write()
            assert (seqs(store, "a"), seqs(store, "b")) == ([0, 1], [0, 1])


@contextmanager
def blocked(url: str) -> Iterator[Callable[[], None]]:
    """Nothing can be inserted into lines for the length of the block."""
    with psycopg.connect(url) as connection:
        connection.execute("LOCK TABLE turnwal_line IN EXCLUSIVE MODE")
        yield connection.rollback
        connection.rollback()


def in_background(act: Callable[[], None]) -> tuple[threading.Thread, list[StoreError]]:
    failures: list[StoreError] = []

    def run() -> None:
        try:
            act()
        except StoreError as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, failures


def wait_until_waiting() -> None:
    statement = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if shared_server().execute(statement, "%turnwal_line%") >= [(1,)]:
            return
        time.sleep(0.01)
    raise AssertionError("nobody waits")


# --- many sessions at once


def test_appends_of_many_sessions_share_commits(
    url: str, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def counted(link: Link, group: list[object], subject: str) -> None:
        sizes.append(len(group))
        append_together(link, group, subject)  # type: ignore[arg-type]

    monkeypatch.setattr(postgres, "append_together", counted)
    writers = [Writer(store, f"s{index}") for index in range(16)]
    with blocked(url) as release:
        running = [in_background(writer.write) for writer in writers]
        wait_until_waiting()
        time.sleep(0.3)
        release()
        for thread, _ in running:
            thread.join(20)

    assert [failures for _, failures in running] == [[]] * 16
    assert max(sizes) == 15
    assert all(seqs(store, f"s{index}") == [0] for index in range(16))
    for writer in writers:
        writer.write(2)
    assert all(seqs(store, f"s{index}") == [0, 1, 2] for index in range(16))


@pytest.mark.parametrize("before", [0, 2], ids=["", "behind lone appends"])
@pytest.mark.parametrize("wrong", ["stale", "refused by the server"])
def test_one_bad_append_of_a_group_leaves_the_others_alone(
    url: str, store: PostgresStore, wrong: str, before: int
) -> None:
    writers = [Writer(store, f"s{index}") for index in range(6)]
    store._links.close()  # the next connection is one on which the driver prepared nothing
    for _ in range(before):
        writers[0].write()
    schema = schema_of(url)
    if wrong == "stale":
        shared_server().execute("UPDATE turnwal_session SET epoch = epoch + 1 WHERE id = %s", b"s3", schema=schema)
    else:
        number = writers[3].claim._number
        shared_server().execute(f"ALTER TABLE {schema}.turnwal_line ADD CHECK (session <> {number})")
    with blocked(url) as release:
        first, _ = in_background(writers[0].write)
        wait_until_waiting()
        running = [in_background(writer.write) for writer in writers[1:]]
        time.sleep(0.3)
        release()
        for thread, _ in running:
            thread.join(20)
        first.join(20)

    kinds = [[type(failure) for failure in failures] for _, failures in running]
    assert kinds == [[], [], [OwnershipLost if wrong == "stale" else StoreFailed], [], []]
    assert [len(seqs(store, f"s{index}")) for index in range(6)] == [before + 1, 1, 1, 0, 1, 1]
    for writer in (*writers[:3], *writers[4:]):
        writer.write()


def through(proxy: Proxy, url: str) -> str:
    """The URL of the same database behind a proxy."""
    options = url.rpartition("&")[2]
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres?sslmode=disable&gssencmode=disable&{options}"


def begun(store: PostgresStore, count: int) -> list[Writer]:
    """Owners that read nothing more before they append."""
    writers = [Writer(store, f"s{index}") for index in range(count)]
    for writer in writers:
        writer.write()
    return writers


def in_one_group(store: PostgresStore, acts: list[Callable[[], None]]) -> list[list[StoreError]]:
    """Have acts, each of which appends once, share a commit; what each raised."""
    with store._group._turn:
        running = [in_background(act) for act in acts]
        end = time.monotonic() + 20
        while len(store._group._waiting) < len(acts):
            assert time.monotonic() < end
            time.sleep(0.001)
    store._group._wake_next()
    for thread, _ in running:
        thread.join(30)
    return [failures for _, failures in running]


def test_a_locked_row_of_one_leaves_the_others_of_its_group_alone_behind_a_slow_network(url: str) -> None:
    with (
        proxy_before(shared_server().root / ".s.PGSQL.5432") as proxy,
        closing(PostgresStore(through(proxy, url), lease_s=60, timeout_s=2)) as store,
        psycopg.connect(url) as locking,
    ):
        writers = begun(store, 6)
        locking.execute("SELECT * FROM turnwal_session WHERE id = %s FOR UPDATE", (b"s3",))
        proxy.delay_s = 0.1
        failures = in_one_group(store, [writer.write for writer in writers])
        proxy.delay_s = 0
        locking.rollback()

        assert [len(found) for found in failures] == [0, 0, 0, 1, 0, 0]
        assert "statement timeout" in str(failures[3][0])
        assert [seqs(store, f"s{index}") for index in range(6)] == [[0, 1], [0, 1], [0, 1], [0], [0, 1], [0, 1]]


def test_a_group_that_hears_nothing_is_told_so_in_time_and_nothing_is_printed(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        proxy_before(shared_server().root / ".s.PGSQL.5432") as proxy,
        closing(PostgresStore(through(proxy, url), lease_s=60, timeout_s=1)) as store,
    ):
        writers = begun(store, 3)
        proxy.delay_s = 60
        started = time.monotonic()
        failures = in_one_group(store, [writer.write for writer in writers])
        took = time.monotonic() - started
        proxy.delay_s = 0

        assert ["did not answer in time" in str(error) for found in failures for error in found] == [True] * 3
        assert took < 1.9
    assert caplog.records == []


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_group_whose_connection_is_cut_is_told_so_and_nothing_is_printed(
    url: str, direction: Direction, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        proxy_before(shared_server().root / ".s.PGSQL.5432") as proxy,
        closing(PostgresStore(through(proxy, url), lease_s=60)) as store,
    ):
        for count in (1, 60):
            writers = begun(store, 3)
            proxy.cut_after(count, direction)
            failures = in_one_group(store, [writer.write for writer in writers])
            proxy.cut_after(None)
            assert [type(error) for found in failures for error in found] == [StoreFailed] * 3
            for writer in writers:
                writer.claim.release()
    assert caplog.records == []


def test_an_interrupt_anywhere_in_what_is_sent_together_is_what_comes_out(store: PostgresStore) -> None:
    def together() -> None:
        with link.one_trip():
            sent = [link.execute("SELECT %s::bigint", (number,)) for number in range(2)]
        assert [cursor.fetchone() for cursor in sent] == [(0,), (1,)]

    files = {Path(postgres_link.__file__).name, *(path.name for path in Path(psycopg.__file__).parent.glob("*.py"))}
    for instant in count():
        with closing(store._links.connect()) as link:
            if not Interrupt(instant, files).strikes(together):
                break
    assert instant > 150


def test_what_fails_where_an_interrupt_is_dealt_with_is_told_as_ever(store: PostgresStore) -> None:
    def fail() -> None:
        with link.one_trip():
            link.execute("SELECT 1/0")

    with closing(store._links.connect()) as link:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            with pytest.raises(psycopg.errors.DivisionByZero):
                fail()
        else:
            pytest.fail("nothing was raised")


def test_a_connection_on_which_a_put_was_rolled_back_appends_as_before(store: PostgresStore) -> None:
    writer, lines = Writer(store), [line + b"\n" for line in batch_behind(EMPTY, 2)]
    store._links.close()
    writer.write()
    # so often that the driver prepares what ends a transaction, too
    for _ in range(12):
        with store._links.take("put") as link:
            # its id was taken behind the question whether it is
            assert not insert_whole(link, b"s", b"s", "s", lines)
        writer.write()

    assert seqs(store) == list(range(13))


# --- connections


def assert_all_to_be_had(store: PostgresStore) -> None:
    """Eight at once, and no ninth."""
    with ExitStack() as busy:
        for _ in range(8):
            busy.enter_context(store._links.take("be busy"))
        assert store._links._free.empty()


LINK: Final = (Path(postgres_link.__file__).name, Path(postgres_links.__file__).name)


@pytest.mark.filterwarnings("ignore:.*deleted while still open:ResourceWarning")
def test_an_interrupt_anywhere_takes_no_connection_away_for_good(url: str) -> None:
    with closing(PostgresStore(url, timeout_s=5)) as store:
        store.probe("s")
        for instant in count():
            if not Interrupt(instant, LINK).strikes(partial(store.probe, "s")):
                break
            assert_all_to_be_had(store)
        assert instant > 15


def test_who_waits_gets_the_connection_that_is_lost_meanwhile(url: str) -> None:
    with closing(PostgresStore(url, timeout_s=5)) as store, ExitStack() as busy:

        def look() -> None:
            store.probe("s")

        for _ in range(7):
            busy.enter_context(store._links.take("be busy"))
        lost = store._links.lend("be interrupted")
        waiting, failures = in_background(look)
        time.sleep(0.2)
        assert waiting.is_alive()
        lost.close()
        del lost
        waiting.join(20)

        assert failures == []


def test_an_interrupt_anywhere_where_a_forked_child_begins_takes_no_connection_away(url: str) -> None:
    with closing(PostgresStore(url, timeout_s=5)) as store:
        store.probe("s")
        for instant in range(30):

            def child(instant: int = instant) -> None:
                assert Interrupt(instant, LINK).strikes(partial(store.probe, "s"))
                assert_all_to_be_had(store)

            assert in_child(child) == 0, instant


def test_a_connection_that_is_lent_when_the_store_is_closed_is_closed_when_it_comes_back(url: str) -> None:
    store = PostgresStore(url)
    with store._links.take("be busy") as lent:
        store.close()
        lent.execute("SELECT 1")
    assert lent.closed
    with store._links.take("go on") as again:
        pass
    assert store._links._idle == [again]
    store.close()

    assert again.closed


# --- reading


def test_long_lines_are_read_from_the_end_one_after_another(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(3)
    grow(log, 12, "long " * (READ_BYTES // 2))
    grow(log, 300)
    grow(log, 1, "long " * (READ_BYTES // 2))
    store.put("s", lines_of(log))
    fetched: list[list[int]] = []
    execute = Link.execute

    def counted(link: Link, query: bytes, *rest: Any, **named: Any) -> Any:
        cursor = execute(link, query, *rest, **named)
        if "position < " in str(query):
            assert cursor.description is not None
            # binary: as text the server sends, and the driver holds, twice as much
            assert cursor.pgresult is not None
            fetched.append([len(cursor.pgresult.get_value(row, 1) or b"") for row in range(cursor.pgresult.ntuples)])
        return cursor

    monkeypatch.setattr(Link, "execute", counted)
    found = [record.line for record in store.newest("s") if record is not None]

    assert found == lines_of(log)[::-1]
    assert sum(map(sum, fetched)) == sum(map(len, found))
    assert all(sum(sizes) <= READ_BYTES or len(sizes) == 1 for sizes in fetched)
    assert max(map(len, fetched)) > 50
    fetched.clear()
    assert [record.line for record in store.read("s") if isinstance(record, Record)] == lines_of(log)
    assert sum(map(sum, fetched)) == sum(map(len, found))
    assert all(sum(sizes[:-1]) <= READ_BYTES for sizes in fetched)


# --- servers that are not as they should be


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A server that may be stopped."""
    with running_server() as server:
        yield server


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_a_server_stopped_in_the_middle_loses_nothing(own_server: Server, how: signal.Signals) -> None:
    with fresh_schema(own_server) as url, closing(PostgresStore(url, lease_s=60, timeout_s=2)) as store:
        writer = Writer(store)
        done: list[int] = []

        def write() -> None:
            while True:
                writer.write()
                done.append(writer.head.count)

        thread, failures = in_background(write)
        while len(done) < 20:
            time.sleep(0.01)
        own_server.stop(how)
        thread.join(20)
        assert [type(failure) for failure in failures] == [StoreFailed]
        with pytest.raises(ClosedAfterFailure):
            writer.write()
        started = time.monotonic()
        with pytest.raises(StoreFailed) as caught:
            store.probe("s")
        assert time.monotonic() - started < 5
        assert "is the server up" in caught.value.hint
        own_server.start()
        found = seqs(store)
        assert found == list(range(len(found)))
        assert done[-1] <= len(found) <= done[-1] + 1
        writer.claim.release()
        Writer(store).write()


def test_a_session_given_up_while_the_server_is_down_is_free_afterwards(own_server: Server) -> None:
    with fresh_schema(own_server) as url, closing(PostgresStore(url, lease_s=3, timeout_s=2)) as store:
        other = Writer(store, "t")
        writer = Writer(store)
        own_server.stop()
        writer.claim.release()
        own_server.start()
        with closing(PostgresStore(url)) as second:
            second.claim("s", wait=10).release()
        other.write()


def test_a_server_that_is_down_at_the_start_is_named(own_server: Server) -> None:
    with fresh_schema(own_server) as url:
        own_server.stop()
        try:
            store = PostgresStore(url, timeout_s=2)
            for act in (lambda: store.claim("s"), lambda: list(store.sessions()), lambda: store.durability):
                started = time.monotonic()
                with pytest.raises(StoreFailed) as caught:
                    act()
                assert time.monotonic() - started < 5
                assert "is the server up" in caught.value.hint
            store.close()
        finally:
            own_server.start()


def test_a_host_that_does_not_answer_is_waited_for_only_so_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = PostgresStore(f"postgresql://x@127.0.0.1:{silent.getsockname()[1]}/x", timeout_s=2)
        started = time.monotonic()
        with pytest.raises(StoreFailed):
            store.probe("s")
        assert time.monotonic() - started < 6


def test_a_wrong_password_is_named_and_not_printed(own_server: Server) -> None:
    own_server.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
    rules = own_server.root / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text("local all guarded scram-sha-256\n" + before)
    own_server.execute("SELECT pg_reload_conf()")
    try:
        for password, hint in (("wrong-one", "password"), ("", "password")):
            url = f"postgresql://guarded:{password}@/postgres?host={quote(str(own_server.root), safe='')}"
            store = PostgresStore(url, timeout_s=2)
            end = time.monotonic() + 5
            while True:
                with pytest.raises(StoreFailed) as caught:
                    store.claim("s")
                if "password" in caught.value.message or time.monotonic() > end:
                    break
            assert hint in caught.value.hint
            assert "wrong-one" not in str(caught.value) + caught.value.hint
    finally:
        rules.write_text(before)
        own_server.execute("SELECT pg_reload_conf()")


def test_a_server_that_takes_no_writes_is_read_and_not_claimed(url: str, store: PostgresStore) -> None:
    Writer(store).write()
    read_only = f"{url}%20-cdefault_transaction_read_only%3Don"
    with closing(PostgresStore(read_only)) as reader:
        assert seqs(reader) == [0]
        with pytest.raises(StoreFailed) as caught:
            reader.claim("other")
        assert "primary" in caught.value.hint


def test_durability_is_what_the_server_says(url: str, store: PostgresStore) -> None:
    assert store.durability == "machine"
    lazy = f"{url}%20-csynchronous_commit%3Doff"
    with closing(PostgresStore(lazy)) as found, found._links.take("look") as link:
        assert link.execute("SHOW synchronous_commit").fetchone() == ("on",)


@pytest.mark.parametrize("level", ["serializable", "repeatable read"])
def test_another_isolation_by_default_fails_no_append(url: str, level: str) -> None:
    strict = f"{url}%20-cdefault_transaction_isolation%3D{quote(level.replace(' ', chr(92) + ' '))}"
    with psycopg.connect(strict) as beside:
        assert beside.execute("SHOW transaction_isolation").fetchone() == (level,)
    with closing(PostgresStore(strict, lease_s=60)) as store, psycopg.connect(url) as changing:
        writers = begun(store, 3)
        failures: list[list[StoreError]] = []

        def append(group: list[Writer]) -> None:
            failures.extend(in_one_group(store, [writer.write for writer in group]))

        for group in (writers[:1], writers):
            changing.execute("UPDATE turnwal_session SET owner = owner WHERE id = %s", (b"s0",))
            thread, _ = in_background(partial(append, group))
            wait_until_waiting()
            changing.commit()
            thread.join(20)
        assert failures == [[]] * 4
        assert [seqs(store, f"s{index}") for index in range(3)] == [[0, 1, 2], [0, 1], [0, 1]]


def quick(url: str) -> PostgresStore:
    return PostgresStore(url, lease_s=60, timeout_s=2)


def test_a_commit_whose_wait_for_a_standby_is_cancelled_or_too_long_is_unknown() -> None:
    with running_server() as server, fresh_schema(server) as url, closing(quick(url)) as first:
        writer = Writer(first, "before")
        writer.write()
        server.execute("ALTER SYSTEM SET synchronous_standby_names = 'absent'")
        server.execute("SELECT pg_reload_conf()")
        time.sleep(0.3)
        local = f"{url}%20-csynchronous_commit%3Dlocal"
        thread, failures = in_background(writer.write)
        cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        while not server.execute(cancel):
            time.sleep(0.01)
        thread.join(10)
        assert [type(failure) for failure in failures] == [StoreFailed]
        assert "canceling wait for synchronous replication" in str(failures[0])
        with pytest.raises(ClosedAfterFailure):
            writer.write()
        with closing(PostgresStore(url, timeout_s=1)) as store:
            assert store.durability == "replicated"
            started = time.monotonic()
            with pytest.raises(StoreFailed):
                store.put("s", batch_behind(EMPTY, 2))
            assert time.monotonic() - started < 5
        with closing(PostgresStore(local)) as store:
            assert store.durability == "machine"
            Writer(store, "behind").write()


class Witness:
    """A thread that writes one session, and what it was told is durable."""

    def __init__(self, url: str, session: str) -> None:
        self.session = session
        self.store = PostgresStore(url, lease_s=3, timeout_s=3)
        self.writer = Writer(self.store, session)
        self.told = 0
        self.failure: StoreError | None = None
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            while True:
                self.writer.write()
                self.told = self.writer.head.count
        except StoreError as error:
            self.failure = error


def test_a_primary_killed_under_eight_writers_loses_nothing_that_was_acknowledged() -> None:
    with (
        running_server() as primary,
        fresh_schema(primary) as url,
        running_server(primary) as standby,
    ):
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.execute("SELECT pg_reload_conf()")
        while primary.execute("SELECT sync_state FROM pg_stat_replication") != [("sync",)]:
            time.sleep(0.02)
        witnesses = [Witness(url, f"s{index}") for index in range(8)]
        assert {witness.store.durability for witness in witnesses} == {"replicated"}
        promoted = standby.url(schema_of(url))
        with closing(PostgresStore(promoted)) as store, pytest.raises(StoreFailed) as caught:
            store.claim("new")
        assert "primary" in caught.value.hint
        for witness in witnesses:
            witness.thread.start()
        while min(witness.told for witness in witnesses) < 20:
            time.sleep(0.01)
        primary.stop(signal.SIGKILL)
        for witness in witnesses:
            witness.thread.join(30)
            assert isinstance(witness.failure, StoreFailed)
            with pytest.raises(ClosedAfterFailure):
                witness.writer.write()
        standby.execute("SELECT pg_promote()")
        with closing(PostgresStore(promoted, lease_s=60)) as store:
            for witness in witnesses:
                successor = Writer(store, witness.session, wait=20)
                assert witness.told <= successor.head.count <= witness.told + 1
                successor.write()
                assert seqs(store, witness.session) == list(range(successor.head.count))
        for witness in witnesses:
            witness.store.close()


# --- the tables


def test_a_database_without_tables_says_how_to_make_them() -> None:
    with fresh_schema(migrated=False) as url, closing(PostgresStore(url)) as store:
        for act in (lambda: store.claim("s"), lambda: list(store.sessions()), lambda: store.probe("s")):
            with pytest.raises(StoreFailed) as caught:
                act()
            assert "turnwal migrate" in caught.value.hint
        assert migrate(url)
        Writer(store).write()


def test_a_newer_schema_is_left_alone(url: str) -> None:
    shared_server().execute("INSERT INTO turnwal_schema VALUES (%s)", SCHEMA + 1, schema=schema_of(url))
    with closing(PostgresStore(url)) as store:
        for act in (lambda: store.claim("s"), lambda: list(store.sessions()), lambda: migrate(url)):
            with pytest.raises(TooNew, match=f"schema is {SCHEMA + 1}"):
                act()


def test_the_tables_are_made_once_by_many_at_once() -> None:
    code = "import sys; from turnwal.store.postgres_schema import migrate; print(migrate(sys.argv[1]))"
    with fresh_schema(migrated=False) as url:
        processes = [
            subprocess.Popen([sys.executable, "-c", code, url], stdout=subprocess.PIPE, text=True) for _ in range(6)
        ]
        outputs = sorted(process.communicate(timeout=50)[0].strip() for process in processes)

        assert outputs == ["False"] * 5 + ["True"]
        assert not migrate(url)


def test_tables_of_another_program_are_left_alone() -> None:
    with fresh_schema(migrated=False) as url:
        shared_server().execute("CREATE TABLE turnwal_line (theirs INTEGER)", schema=schema_of(url))
        with pytest.raises(StoreFailed, match="without a version"):
            migrate(url)
        assert shared_server().execute("SELECT * FROM turnwal_line", schema=schema_of(url)) == []


GRANTS = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT ON {schema}.turnwal_schema TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.turnwal_lease TO {role}",
    "GRANT SELECT, INSERT, UPDATE ON {schema}.turnwal_session TO {role}",
    "GRANT SELECT, INSERT ON {schema}.turnwal_line TO {role}",
)


def test_a_role_that_cannot_change_lines_is_enough(url: str) -> None:
    server, schema = shared_server(), schema_of(url)
    role = f"app_{schema}"
    server.execute(f"CREATE ROLE {role} LOGIN")
    for grant in GRANTS:
        server.execute(grant.format(schema=schema, role=role))
    with closing(PostgresStore(server.url(schema, role))) as store:
        for _ in range(2):
            writer = Writer(store)
            writer.write()
            writer.claim.release()
        store.put("t", batch_behind(EMPTY, 3))

        assert (seqs(store), seqs(store, "t")) == ([0, 1], [0, 1, 2])
        for statement in ("DELETE FROM turnwal_line", "UPDATE turnwal_line SET position = 7"):
            with pytest.raises(StoreFailed) as caught, store._links.take("change") as link:
                link.execute(statement.encode())
            assert "grant" in caught.value.hint
    with closing(PostgresStore(server.url(schema, role))) as store:
        server.execute(f"REVOKE INSERT ON {schema}.turnwal_line FROM {role}")
        writer = Writer(store)
        with pytest.raises(StoreFailed) as caught:
            writer.write()
        assert "docs/postgres.md" in caught.value.hint


def test_the_docs_show_these_grants() -> None:
    text = (Path(__file__).parents[2] / "docs" / "postgres.md").read_text("utf-8")
    for grant in GRANTS[1:]:
        assert grant.format(schema="", role="app").replace(" .", " ") + ";" in text


# --- the URL


def test_a_url_opens_the_store(url: str) -> None:
    for text in (url, url.replace("postgresql:", "postgres:"), url.replace("postgresql:", "PostgreSQL:")):
        store = open_store(text, lease_s=3)
        assert isinstance(store, PostgresStore)
        assert list(store.sessions()) == []
        store.close()
        assert migrate_store(text) is False


def test_text_that_is_no_url_of_a_server_is_refused_without_being_printed() -> None:
    for text in ("postgresql://u:secret@h/d?wrong=1", "postgresql://u:secret@[h/d", "postgres:"):
        with pytest.raises(InvalidStoreUrl) as caught:
            open_store(text)
        assert "secret" not in str(caught.value)
    for wrong in ("abc", "1.5", "x" * 5000):
        with pytest.raises(InvalidStoreUrl, match=r"connect_timeout=.+ is no whole number of seconds") as caught:
            open_store(f"postgresql://u:secret@h/d?connect_timeout={wrong}")
        assert "secret" not in str(caught.value)
        assert len(str(caught.value)) < 200
    with pytest.raises(InvalidStoreUrl, match="leese_s"):
        open_store("postgresql://h/d", leese_s=3)
    with pytest.raises(InvalidStoreUrl, match="by itself"):
        migrate_store("sqlite:x.db")


def test_a_missing_driver_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from turnwal.store.urls import migrate_store, open_store\n"
        "from turnwal.core.errors import StoreUnsupported\n"
        "for act in (open_store, migrate_store):\n"
        "    try: act('postgresql://h/d')\n"
        "    except StoreUnsupported as error: print(error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.count("turnwal[postgres]") == 2
