"""Who owns a session, seen from other processes: real ones, really killed."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from tests.store.building import file_of, grow, lines_of, log_of, sound_lines
from tests.store.processes import holder, in_child
from turnwal.core.chain import EMPTY
from turnwal.core.errors import OwnershipLost, SessionHeld
from turnwal.store import owner as owners
from turnwal.store.file import FileStore
from turnwal.store.memory import MemoryStore
from turnwal.store.owner import Description, describe, told, written
from turnwal.store.protocol import Gap

FORK = """
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
with open(sys.argv[1] + "/child", "w") as file:
    file.write(str(child))
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


def test_f24_another_process_is_refused_at_once_and_after_a_wait_with_the_holders_words(root: Path) -> None:
    store = FileStore(root)
    with holder(root) as process:
        for wait, least, most in ((0.0, 0.05, 1.0), (0.4, 0.4, 2.0)):
            started = time.monotonic()
            with pytest.raises(SessionHeld, match="held by the holder") as caught:
                store.claim("s", wait=wait)
            assert least <= time.monotonic() - started <= most
            assert f"pid {process.pid} on {os.uname().nodename}" in caught.value.holder
        presence = store.probe("s")
        assert presence.exists
        assert presence.empty
        assert presence.owner is not None
        assert str(process.pid) in presence.owner


def test_f24_a_claim_that_waits_is_granted_when_the_holder_ends(root: Path) -> None:
    with holder(root) as process:
        timer = threading.Timer(0.2, process.kill)
        timer.start()
        FileStore(root).claim("s", wait=30).release()
        timer.join()


def test_f25_the_lock_ends_with_a_killed_process_and_its_description_proves_nothing(root: Path) -> None:
    store = FileStore(root)
    with holder(root) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (root / "s.owner").exists()
        assert store.probe("s").owner is None
        store.claim("s").release()


def test_f25_a_description_that_names_a_living_process_is_no_proof(root: Path) -> None:
    root.mkdir()
    log = log_of()
    (root / "s.jsonl").write_bytes(file_of(lines_of(log)))
    for pid in (os.getppid(), os.getpid(), 1):
        (root / "s.owner").write_bytes(written(Description(pid=pid, owner="somebody alive")))
        store = FileStore(root)
        assert store.probe("s").owner is None
        store.claim("s").release()


def test_f25_a_live_owner_without_a_description_is_an_owner(root: Path) -> None:
    store = FileStore(root)
    with holder(root):
        for content in (None, b"", b"\xff{", b"[]", b'{"pid":"x"}'):
            if content is None:
                (root / "s.owner").unlink()
            else:
                (root / "s.owner").write_bytes(content)
            assert store.probe("s").owner == "an owner that does not say who it is"
            with pytest.raises(SessionHeld, match="does not say who it is"):
                store.claim("s")


def test_a_description_that_cannot_be_written_is_no_failure(root: Path) -> None:
    (root / "s.owner").mkdir(parents=True)
    claim = FileStore(root).claim("s")
    claim.append(lines_of(log_of()), EMPTY)
    claim.release()

    assert (root / "s.owner").is_dir()


def test_a_killed_holders_forked_child_does_not_keep_the_lock(root: Path) -> None:
    with holder(root, extra=FORK) as process:
        child = int((root / "child").read_text())
        try:
            with pytest.raises(SessionHeld):
                FileStore(root).claim("s")
            process.send_signal(signal.SIGKILL)
            process.wait()
            os.kill(child, 0)
            FileStore(root).claim("s").release()
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_forked_child_has_no_descriptor_of_the_session_and_the_parent_keeps_the_lock(root: Path) -> None:
    store = FileStore(root)
    claim = store.claim("s")
    log = log_of()
    claim.append(lines_of(log), EMPTY)

    inode = (root / "s.jsonl").stat().st_ino

    def child() -> None:
        assert inode not in {os.fstat(fd).st_ino for fd in range(256) if is_open(fd)}
        with pytest.raises(OwnershipLost, match="forked"):
            claim.append(grow(log), log.head)
        with pytest.raises(SessionHeld):
            FileStore(root).claim("s")
        # through the inherited store too, and nothing of it frees the parent's lock
        with pytest.raises(SessionHeld):
            store.claim("s")
        assert sound_lines(list(store.read("s"))) == lines_of(log_of())
        claim.release()
        store.close()

    assert in_child(child) == 0
    assert "SessionHeld" in said_by_another_process(root)
    head = log.head
    claim.append(grow(log), head)
    claim.release()
    assert said_by_another_process(root) == ""


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def said_by_another_process(root: Path) -> str:
    """What a process that claims the session now says on its standard error."""
    script = "import sys\nfrom turnwal.store.file import FileStore\nFileStore(sys.argv[1]).claim('s')"
    command = [sys.executable, "-c", script, str(root)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def test_a_child_forked_while_another_thread_claims_keeps_no_lock(root: Path) -> None:
    stop = threading.Event()

    def claim_and_release() -> None:
        store = FileStore(root)
        while not stop.is_set():
            store.claim("s", wait=10).release()

    thread = threading.Thread(target=claim_and_release)
    thread.start()
    children = []
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                time.sleep(30)
                os._exit(0)
            children.append(child)
    finally:
        stop.set()
        thread.join()
        try:
            FileStore(root).claim("s").release()
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def test_what_a_holder_is_still_writing_is_not_yet_there_and_then_it_is_a_tail(root: Path) -> None:
    root.mkdir()
    path = root / "s.jsonl"
    lines = lines_of(log_of())
    path.write_bytes(file_of(lines))
    store = FileStore(root)
    with holder(root) as process:
        for tail in (b'{"seq":4,"pr', b"\0\0"[:0] + lines[-1]):
            path.write_bytes(file_of(lines) + tail)
            assert sound_lines(found := list(store.read("s"))) == lines
            assert len(found) == len(lines)
            assert [record.line for record in store.newest("s") if record] == lines[::-1]
        path.write_bytes(file_of(lines) + b'{"seq":4,"pr')
        process.kill()
        process.wait()
        last = list(store.read("s"))[-1]
        assert isinstance(last, Gap)
        assert last.kind == "torn"
        assert next(store.newest("s")) is None


def test_a_first_line_that_is_still_being_written_is_no_damage(root: Path) -> None:
    store = FileStore(root)
    with holder(root):
        (root / "s.jsonl").write_bytes(b'{"seq":0')
        assert list(store.read("s")) == []
        assert list(store.newest("s")) == []


def test_a_reader_that_meets_the_end_as_the_owner_finishes_reads_on(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of()
    lines = lines_of(log)
    more = grow(log)
    root.mkdir()
    path = root / "s.jsonl"
    path.write_bytes(file_of(lines) + more[0][:10])

    def finished_meanwhile(_: object) -> bool:
        path.write_bytes(file_of(lines + more))
        return False

    monkeypatch.setattr("turnwal.store.fileview.FileView.held", finished_meanwhile)

    assert sound_lines(list(FileStore(root).read("s"))) == lines + more
    path.write_bytes(file_of(lines) + more[0][:10])
    newest = next(FileStore(root).newest("s"))
    assert newest is not None
    assert newest.line == more[0]


def test_readers_that_probe_all_the_time_do_not_keep_an_owner_out(root: Path) -> None:
    store = FileStore(root)
    store.claim("s").release()
    stop = threading.Event()

    def probe() -> None:
        while not stop.is_set():
            store.probe("s")

    threads = [threading.Thread(target=probe) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            store.claim("s").release()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_claim_that_is_dropped_is_a_claim(root: Path) -> None:
    FileStore(root).claim("s")
    gc.collect()

    with pytest.raises(SessionHeld):
        FileStore(root).claim("s")
    for claim in list(owners._live.values()):
        claim.release()  # type: ignore[attr-defined]


def test_an_owner_that_was_fenced_off_in_memory_is_refused() -> None:
    store = MemoryStore()
    log = log_of()
    stale = store.claim("s")
    stale.append(lines_of(log), EMPTY)
    store.steal("s")
    head = log.head
    batch = grow(log)

    with pytest.raises(OwnershipLost, match="fenced off"):
        stale.append(batch, head)
    fresh = store.claim("s")
    with pytest.raises(OwnershipLost, match="fenced off"):
        stale.append(batch, head)
    stale.release()
    assert store.probe("s").owner is not None
    fresh.append(batch, head)
    fresh.release()


@pytest.mark.parametrize("owner", ["", "plain", "é🙂", "\ud800", "x" * 10_000, 'quote "', "\x1b[31mred\n"])
def test_whatever_an_owner_is_called_its_description_is_one_printable_line(owner: str) -> None:
    description = describe(owner)

    text = told(written(description))

    assert text.isprintable()
    assert len(text) <= 500
    assert msgspec.json.decode(written(description))["pid"] == os.getpid()
    assert told(description).isprintable()


def test_a_description_says_what_it_knows() -> None:
    whole = Description(pid=7, host="box", program="agent", since="2026-01-02T03:04:05Z", owner="order service")

    assert told(whole) == "order service (pid 7 on box, since 2026-01-02T03:04:05Z)"
    assert told(Description(program="agent", pid=7)) == "agent (pid 7)"
    assert told(Description(host="box")) == "on box"
    assert told(b"") == "an owner that does not say who it is"
