"""A whole history in the file store: all of it or nothing, whatever ends it, and no leftover for long."""

import os
import signal
import stat
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.store.building import file_of, grow, lines_of, log_of, sound_lines
from tests.store.faults import PlannedDisk
from tests.store.processes import in_child
from turnwal.core.chain import Head, digest
from turnwal.core.errors import (
    OwnershipLost,
    Refused,
    SessionExists,
    SessionHeld,
    SessionNotFound,
    StoreFailed,
    StoreFull,
    StoreUnsupported,
)
from turnwal.core.log import Log
from turnwal.store.disk import Disk
from turnwal.store.file import FileStore
from turnwal.store.plain import PlainFile

MEBIBYTE = 1024 * 1024


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


def big_log(mebibytes: int = 24) -> Log:
    return log_of(4 * mebibytes, text="x" * (MEBIBYTE // 4))


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def check_absent(root: Path) -> None:
    store = FileStore(root)
    assert not store.probe("s").exists
    assert (list(store.sessions()), list(store.strays())) == ([], [])
    with pytest.raises(SessionNotFound):
        list(store.read("s"))


def check_whole(root: Path, log: Log) -> None:
    """It is there, it can be built on, and it is all that is there."""
    claim = FileStore(root).claim("s", create=False)
    assert sound_lines(list(FileStore(root).read("s"))) == lines_of(log)
    head = log.head
    claim.append(grow(log), head)
    claim.release()
    assert names(root) == ["s.jsonl"]


# --- what is made


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_a_history_is_the_file_of_its_lines_and_nothing_else(root: Path, umask: int) -> None:
    log = log_of()
    before = os.umask(umask)
    try:
        head = FileStore(root).put("s", log.lines())
    finally:
        os.umask(before)

    assert head == log.head
    assert (root / "s.jsonl").read_bytes() == file_of(lines_of(log))
    assert stat.S_IMODE((root / "s.jsonl").stat().st_mode) == 0o600
    assert (root / "s.jsonl").stat().st_nlink == 1
    check_whole(root, log)


def test_it_is_synced_before_it_is_named_and_the_name_before_it_is_acknowledged(root: Path) -> None:
    disk = PlannedDisk()

    FileStore(root, disk=disk).put("s", log_of().lines())

    # first the names of the directories above it, as many as there are that somebody may have made for it
    assert set(disk.calls[:-5]) == {"sync_directory"}
    assert disk.calls[-5:] == ["create", "write_at", "sync", "link", "sync_directory"]


def test_an_id_that_is_taken_costs_no_line(root: Path) -> None:
    store = FileStore(root)
    store.put("s", log_of().lines())
    lines = log_of().lines()

    with pytest.raises(SessionExists) as caught:
        store.put("s", lines)

    assert caught.value.hint
    assert next(iter(lines))
    assert names(root) == ["s.jsonl"]


@pytest.mark.parametrize("thing", ["a directory", "a symbolic link"])
def test_whatever_has_the_name_keeps_it(root: Path, tmp_path: Path, thing: str) -> None:
    root.mkdir()
    if thing == "a directory":
        (root / "s.jsonl").mkdir()
    else:
        (root / "s.jsonl").symlink_to(tmp_path / "nowhere")

    with pytest.raises(SessionExists):
        FileStore(root).put("s", log_of().lines())

    assert names(root) == ["s.jsonl"]
    assert not (tmp_path / "nowhere").exists()


def test_a_long_history_is_never_held_as_a_whole(root: Path) -> None:
    def lines() -> Iterator[bytes]:
        head = Head(0, "0" * 64)
        for seq in range(96):
            line = b'{"seq":%d,"prev":"%s","time":0,"type":"x.long","data":{"x":"%s"}}' % (
                seq,
                head.hash.encode(),
                b"x" * MEBIBYTE,
            )
            head = Head(seq + 1, digest(line))
            yield line

    tracemalloc.start()
    try:
        FileStore(root).put("s", lines())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (root / "s.jsonl").stat().st_size > 96 * MEBIBYTE
    assert peak < 48 * MEBIBYTE


def test_a_plain_file_is_made_where_there_is_none(tmp_path: Path) -> None:
    log = log_of()
    # as long as a name may be: what is written meanwhile must not need more room
    path = tmp_path / ("x" * 249 + ".jsonl")
    plain = PlainFile(path)

    assert plain.put(plain.session, log.lines()) == log.head
    assert path.read_bytes() == file_of(lines_of(log))
    with pytest.raises(SessionExists):
        plain.put(plain.session, log.lines())
    with pytest.raises(SessionNotFound):
        plain.put("another", log.lines())
    assert names(tmp_path) == [path.name]


def test_a_place_that_cannot_keep_the_promise_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(path: str, name: str) -> None:
        raise PermissionError(1, "Operation not permitted", path, None, name)

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(StoreUnsupported, match="no second name") as caught:
        FileStore(root).put("s", log_of().lines())
    assert "hard links" in caught.value.hint
    assert names(root) == []

    monkeypatch.setattr("turnwal.store.file.network_type", lambda _: "nfs")
    with pytest.raises(StoreUnsupported, match="network"):
        FileStore(root).put("s", log_of().lines())
    assert names(root) == []


# --- what fails


CALLS = ["create", "write_at", "sync", "link", "sync_directory"]


@pytest.mark.parametrize("error", [StoreFailed("Input/output error"), KeyboardInterrupt()], ids=["disk", "ctrl-c"])
@pytest.mark.parametrize("call", CALLS)
def test_whatever_fails_leaves_nothing_and_can_be_tried_again(root: Path, call: str, error: BaseException) -> None:
    root.mkdir()
    log = log_of()
    disk = PlannedDisk()
    disk.fail(call, error)
    store = FileStore(root, disk=disk)

    with pytest.raises(type(error)):
        store.put("s", log.lines())

    assert names(root) == []
    check_absent(root)
    assert disk.calls.count(call) == 1
    disk.mend()
    store.put("s", log.lines())
    check_whole(root, log)


def test_ctrl_c_right_behind_the_naming_leaves_nothing(root: Path) -> None:
    class Late(Disk):
        def link(self, path: str, name: str) -> bool:
            super().link(path, name)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FileStore(root, disk=Late()).put("s", log_of().lines())

    assert names(root) == []


def test_a_failure_takes_nothing_away_from_who_was_quicker(root: Path) -> None:
    log = log_of()

    class Quicker(Disk):
        def link(self, path: str, name: str) -> bool:
            FileStore(root).put("s", log.lines())
            return super().link(path, name)

    with pytest.raises(SessionExists):
        FileStore(root, disk=Quicker()).put("s", log_of(9).lines())

    check_whole(root, log)


def test_f38_a_history_on_a_full_disk_is_not_there(root: Path) -> None:
    log = big_log()

    def fill_up() -> None:
        import resource  # noqa: PLC0415 - the limit is set in the child alone

        resource.setrlimit(resource.RLIMIT_FSIZE, (12 * MEBIBYTE, 12 * MEBIBYTE))
        with pytest.raises(StoreFull) as caught:
            FileStore(root).put("s", log.lines())
        assert caught.value.subject == str(root / "s.jsonl")
        assert "try again" in caught.value.hint

    assert in_child(fill_up) == 0
    assert names(root) == []
    check_absent(root)
    FileStore(root).put("s", log.lines())
    check_whole(root, log)


# --- what dies


PUTTER = """
import sys
from tests.store.test_put import big_log
from turnwal.store.file import FileStore

def lines():
    for number, line in enumerate(big_log().lines()):
        if number == 80:
            print("ready", flush=True)
            sys.stdin.readline()
        yield line

FileStore(sys.argv[1]).put("s", lines())
print("done", flush=True)
"""


@contextmanager
def putter(root: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process in the middle of storing a history; a line on its standard input lets it go on."""
    with subprocess.Popen(
        [sys.executable, "-c", PUTTER, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def test_f01_a_history_whose_writer_was_killed_is_not_there_and_can_be_stored_again(root: Path) -> None:
    with putter(root) as process:
        (part,) = names(root)
        assert (root / part).stat().st_size > 8 * MEBIBYTE
        check_absent(root)
        process.send_signal(signal.SIGKILL)
        process.wait()

    assert names(root) == [part]
    check_absent(root)
    log = big_log()
    FileStore(root).put("s", log.lines())
    check_whole(root, log)


def test_a_history_that_is_being_stored_is_no_leftover(root: Path) -> None:
    with putter(root) as process:
        (part,) = names(root)
        FileStore(root).put("t", log_of().lines())
        assert names(root) == [part, "t.jsonl"]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"

    assert names(root) == ["s.jsonl", "t.jsonl"]
    assert sound_lines(list(FileStore(root).read("s"))) == lines_of(big_log())


class DyingDisk(PlannedDisk):
    """Ends the process before or behind a call."""

    def __init__(self, call: str, *, behind: bool) -> None:
        super().__init__()
        self.call, self.behind = call, behind

    def _around(self, call: str, body: Callable[[], object]) -> None:
        if call == self.call and not self.behind:
            os._exit(0)
        body()
        if call == self.call:
            os._exit(0)

    def write_at(self, descriptor: int, data: bytes, offset: int, path: str) -> None:
        self._around("write_at", lambda: super(DyingDisk, self).write_at(descriptor, data, offset, path))

    def sync(self, descriptor: int, path: str) -> None:
        self._around("sync", lambda: super(DyingDisk, self).sync(descriptor, path))

    def link(self, path: str, name: str) -> bool:
        self._around("link", lambda: super(DyingDisk, self).link(path, name))
        return True

    def sync_directory(self, path: str) -> None:
        self._around("sync_directory", lambda: super(DyingDisk, self).sync_directory(path))

    def discard(self, path: str) -> None:
        self._around("discard", lambda: super(DyingDisk, self).discard(path))


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("call", ["write_at", "sync", "link", "sync_directory", "discard"])
def test_whenever_it_dies_there_is_all_of_it_or_nothing(root: Path, call: str, behind: bool) -> None:
    root.mkdir()
    log = log_of()

    assert in_child(lambda: print(FileStore(root, disk=DyingDisk(call, behind=behind)).put("s", log.lines()))) == 0

    if FileStore(root).probe("s").exists:
        assert (call, behind) not in {("write_at", False), ("write_at", True), ("sync", False), ("sync", True)}
        with pytest.raises(SessionExists):
            FileStore(root).put("s", log.lines())
    else:
        check_absent(root)
        FileStore(root).put("s", log.lines())
    # the next history in the directory removes what was left
    FileStore(root).put("t", log_of().lines())
    (root / "t.jsonl").unlink()
    check_whole(root, log)


@pytest.mark.parametrize("next_one", ["owner", "history"])
def test_a_name_that_may_not_be_durable_is_synced_before_anything_is_built_on_it(root: Path, next_one: str) -> None:
    root.mkdir()
    log = log_of()
    assert in_child(lambda: print(FileStore(root, disk=DyingDisk("link", behind=True)).put("s", log.lines()))) == 0
    part, _ = names(root)
    assert part.startswith(".turnwal-part-")
    disk = PlannedDisk()
    store = FileStore(root, disk=disk)

    if next_one == "owner":
        store.claim("s").release()
        assert disk.calls == ["sync_directory", "write_at", "sync"]
    else:
        store.put("t", log_of().lines())
        assert disk.calls[:2] == ["sync_directory", "create"]
        assert names(root) == ["s.jsonl", "t.jsonl"]


def test_a_name_that_cannot_be_synced_is_not_claimed_and_not_taken_away(root: Path) -> None:
    root.mkdir()
    log = log_of()
    assert in_child(lambda: print(FileStore(root, disk=DyingDisk("link", behind=True)).put("s", log.lines()))) == 0
    before = names(root)
    disk = PlannedDisk()
    disk.fail("sync_directory")
    store = FileStore(root, disk=disk)

    with pytest.raises(StoreFailed):
        store.claim("s")
    with pytest.raises(StoreFailed):
        store.put("t", log_of().lines())

    assert names(root) == before
    # on a disk that works again, a history that fails sweeps as well
    with pytest.raises(Refused):
        FileStore(root).put("t", [])
    check_whole(root, log)


def test_what_only_looks_like_a_leftover_is_left_alone(root: Path) -> None:
    root.mkdir()
    others = [".turnwal-part-1", ".turnwal-part-1-0123456789abcdef.jsonl", "turnwal-part-1-0123456789abcdef"]
    for name in others:
        (root / name).write_text("mine")
    (root / ".turnwal-part-2-0123456789abcdef").mkdir()
    (root / ".turnwal-part-3-0123456789abcdef").symlink_to("s.jsonl")

    FileStore(root).put("s", log_of().lines())

    assert len(names(root)) == 6


# --- who else is there


def test_nobody_owns_it_before_its_name_is_durable(root: Path) -> None:
    refused: list[SessionHeld] = []

    class Slow(Disk):
        def sync_directory(self, path: str) -> None:
            with pytest.raises(SessionHeld) as caught:
                FileStore(root).claim("s")
            refused.append(caught.value)
            # reading needs no ownership
            assert sound_lines(list(FileStore(root).read("s"))) == lines_of(log)
            super().sync_directory(path)

    root.mkdir()
    log = log_of()
    FileStore(root, disk=Slow()).put("s", log.lines())

    assert len(refused) == 1
    check_whole(root, log)


def test_of_many_at_once_one_is_stored(root: Path) -> None:
    logs = [log_of(20, text=f"{number}") for number in range(8)]
    start = threading.Barrier(len(logs))
    stored: list[Log] = []

    def store(log: Log) -> None:
        start.wait()
        try:
            FileStore(root).put("s", log.lines())
        except SessionExists:
            return
        stored.append(log)

    threads = [threading.Thread(target=store, args=(log,)) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    (log,) = stored
    check_whole(root, log)


def test_a_sweeper_that_is_quicker_than_the_lock_takes_only_an_empty_name(root: Path) -> None:
    class Swept(PlannedDisk):
        def lock(self, descriptor: int, path: str, *, shared: bool = False) -> bool:
            if self.calls.count("create") == 1:
                Path(path).unlink()
            return super().lock(descriptor, path, shared=shared)

    root.mkdir()
    log = log_of()
    disk = Swept()
    FileStore(root, disk=disk).put("s", log.lines())

    assert disk.calls.count("create") == 2
    check_whole(root, log)


def test_a_forked_child_stores_nothing_and_takes_nothing_away(root: Path) -> None:
    log = log_of()
    children: list[int] = []

    def lines() -> Iterator[bytes]:
        first, *rest = log.lines()
        yield first
        child = os.fork()
        if child:
            children.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            assert len(names(root)) == 1
        yield from rest

    parent = os.getpid()
    try:
        FileStore(root).put("s", lines())
    except OwnershipLost:
        os._exit(7 if os.getpid() != parent else 1)
    finally:
        if os.getpid() != parent:
            os._exit(1)

    assert children == [7]
    check_whole(root, log)


def test_a_forked_child_that_lives_on_does_not_keep_the_session_held(root: Path) -> None:
    read, write = os.pipe()
    log = log_of()

    def store() -> None:
        def lines() -> Iterator[bytes]:
            if not os.fork():
                os.close(write)
                os.read(read, 1)
                os._exit(0)
            yield from log.lines()

        FileStore(root, disk=DyingDisk("link", behind=True)).put("s", lines())

    root.mkdir()
    assert in_child(store) == 0
    try:
        claim = FileStore(root).claim("s")
        head = log.head
        claim.append(grow(log), head)
        claim.release()
    finally:
        os.close(read)
        os.close(write)
