"""Session files: what is made, what is written, what is refused, and what is left when it fails."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store.building import (
    batch_behind,
    damage_line,
    file_of,
    gap_in,
    grow,
    head_of,
    lines_of,
    log_of,
    sound_lines,
)
from tests.store.faults import PlannedDisk
from tests.store.processes import in_child
from turnwal.core.chain import EMPTY
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
from turnwal.core.log import Log
from turnwal.store.disk import Disk
from turnwal.store.file import FileStore
from turnwal.store.frames import frames
from turnwal.store.plain import PlainFile
from turnwal.store.protocol import Presence, Record


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


def put(root: Path, data: bytes, name: str = "s.jsonl") -> Path:
    root.mkdir(exist_ok=True)
    path = root / name
    path.write_bytes(data)
    return path


# --- what is made


def test_naming_a_store_touches_nothing(root: Path) -> None:
    store = FileStore(root)

    assert list(store.sessions()) == []
    assert not store.probe("s").exists
    with pytest.raises(SessionNotFound, match="there is no"):
        store.claim("s", create=False)
    assert not root.exists()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_nobody_else_may_read_a_session_whatever_the_umask(root: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        claim = FileStore(root / "deeper").claim("s")
    finally:
        os.umask(before)

    assert stat.S_IMODE((root / "deeper" / "s.jsonl").stat().st_mode) == 0o600
    assert stat.S_IMODE((root / "deeper" / "s.owner").stat().st_mode) & 0o077 == 0
    if umask != 0o777:
        assert stat.S_IMODE(root.stat().st_mode) == stat.S_IMODE((root / "deeper").stat().st_mode) == 0o700
    claim.release()


def test_a_session_file_is_its_lines_and_nothing_else(root: Path) -> None:
    log = log_of()
    claim = FileStore(root).claim("a/b")
    claim.append(lines_of(log), EMPTY)
    claim.release()

    assert sorted(path.name for path in root.iterdir()) == ["a%2fb.jsonl"]
    assert (root / "a%2fb.jsonl").read_bytes() == file_of(lines_of(log))


def test_a_relative_store_stays_where_it_was_when_the_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = FileStore("sessions")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.claim("s").release()

    assert (tmp_path / "sessions" / "s.jsonl").exists()


def test_a_new_name_is_synced_before_it_is_claimed(root: Path) -> None:
    disk = PlannedDisk()
    FileStore(root, disk=disk).claim("s").release()

    # the directory above the store, then the store's
    assert disk.calls[:3] == ["sync_directory", "create", "sync_directory"]
    # and the names of the directories above it, which somebody else may have made and not synced
    assert set(disk.calls[3:]) == {"sync_directory"}


def test_a_name_that_could_not_be_synced_is_no_session(root: Path) -> None:
    root.mkdir()
    disk = PlannedDisk()
    disk.fail("sync_directory")
    store = FileStore(root, disk=disk)

    with pytest.raises(StoreFailed):
        store.claim("s")
    assert list(root.iterdir()) == []
    disk.mend()
    store.claim("s").release()
    assert disk.calls[-2:] == ["create", "sync_directory"]


def test_two_that_make_the_same_session_do_not_overwrite_each_other(root: Path) -> None:
    class Late(PlannedDisk):
        """Somebody else makes the file between our look and our making it."""

        def create(self, path: str) -> int | None:
            Path(path).write_bytes(file_of(lines_of(log_of())))
            return super().create(path)

    store = FileStore(root, disk=Late())
    claim = store.claim("s")

    assert sound_lines(list(store.read("s"))) == lines_of(log_of())
    claim.release()


def test_f22_an_empty_file_that_nobody_holds_is_taken_over(root: Path) -> None:
    put(root, b"")
    disk = PlannedDisk()
    store = FileStore(root, disk=disk)

    assert store.probe("s") == Presence(exists=True, empty=True, owner=None)
    claim = store.claim("s", create=False)
    claim.append(lines_of(log_of()), EMPTY)

    assert disk.calls == ["sync_directory", "write", "sync"]
    assert sound_lines(list(store.read("s"))) == lines_of(log_of())
    claim.release()


# --- what is written


def test_a_batch_is_one_write_and_one_sync(root: Path) -> None:
    disk = PlannedDisk()
    log = log_of(5)
    claim = FileStore(root, disk=disk).claim("s")
    disk.calls.clear()

    claim.append(lines_of(log), EMPTY)
    claim.append(grow(log, 3), head_of(lines_of(log)[:-3]))

    assert disk.calls == ["write", "sync", "write", "sync"]
    claim.release()


def test_a_short_write_goes_on_where_it_stopped(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data[:7])))
    claim = FileStore(root).claim("s")
    claim.append(lines_of(log_of()), EMPTY)
    claim.release()

    assert (root / "s.jsonl").read_bytes() == file_of(lines_of(log_of()))


def test_f19_the_newline_that_a_last_record_lacks_comes_with_the_next_batch(root: Path) -> None:
    log = log_of()
    path = put(root, file_of(lines_of(log))[:-1])
    store = FileStore(root)

    claim = store.claim("s")
    assert sound_lines(list(store.read("s"))) == lines_of(log)
    assert [record.line for record in store.newest("s") if record] == lines_of(log)[::-1]
    head = log.head
    claim.append(grow(log), head)
    head = log.head
    claim.append(grow(log), head)
    claim.release()

    assert path.read_bytes() == file_of(lines_of(log))


@pytest.mark.parametrize("tail", [b'{"seq":4,"pre', b'{"seq":4,"pre\n', b"\0\0", b"\n\n", b"garbage"])
def test_f17_a_tail_stays_byte_for_byte_and_is_covered(root: Path, tail: bytes) -> None:
    log = log_of()
    path = put(root, before := file_of(lines_of(log)) + tail)
    store = FileStore(root)
    claim = store.claim("s")

    with pytest.raises(Damaged, match="no `damage` event covers them"):
        claim.append(grow(Log.read(lines_of(log))), log.head)
    assert path.read_bytes() == before
    gap = gap_in(list(store.read("s")))
    batch = [damage_line(log.head, tail, gap.kind)]
    batch += batch_behind(head_of(batch), 1)
    claim.append(batch, log.head)
    claim.release()

    assert path.read_bytes() == before + (b"" if tail.endswith(b"\n") else b"\n") + file_of(batch)
    assert sound_lines(found := list(store.read("s"))) == [*lines_of(log), *batch]
    assert len(found) == len(log) + 2


def test_f18_f21_nothing_is_appended_behind_damage_without_a_persons_word(root: Path) -> None:
    lines = lines_of(log_of(5))
    bad = b"\0\0\0\n" + file_of(lines[3:])
    path = put(root, file_of(lines[:2]) + bad)
    store = FileStore(root)
    claim = store.claim("s")
    gap = gap_in(list(store.read("s")))
    head = head_of(lines[:2])

    for wrong in (
        damage_line(head, bad, "corrupt"),
        damage_line(head, bad, "lost", seq=gap.seq_max),
        damage_line(head, bad[:-1], "lost", seq=gap.seq_max + 1),
        batch_behind(head, 1)[0],
    ):
        with pytest.raises(Damaged, match="3 readable records stand in them"):
            claim.append([wrong], head)
    assert path.read_bytes() == file_of(lines[:2]) + bad

    lost = damage_line(head, bad, "lost", seq=gap.seq_max + 1)
    claim.append([lost], head)
    claim.append(batch_behind(head_of([lost]), 2), head_of([lost]))
    claim.release()
    assert [each.event.seq for each in store.read("s") if isinstance(each, Record)] == [0, 1, 6, 7, 8]


def test_a_copy_of_the_last_line_behind_it_is_no_head(root: Path) -> None:
    lines = lines_of(log_of())
    put(root, file_of([*lines, lines[-1]]))
    claim = FileStore(root).claim("s")

    with pytest.raises(Damaged):
        claim.append(batch_behind(head_of(lines), 1), head_of(lines))
    claim.release()


@pytest.mark.parametrize("start", [b"\0\0\0", b'{"type":"sess\n', b"\n", b"junk", b'{"seq":0,"prev":"'])
def test_f22_a_damaged_start_is_never_written_to(root: Path, start: bytes) -> None:
    lines = lines_of(log_of())
    path = put(root, data := start + file_of(lines[1:]))
    disk = PlannedDisk()
    store = FileStore(root, disk=disk)

    claim = store.claim("s")
    with pytest.raises(DamagedStart):
        list(store.read("s"))
    for head in (EMPTY, head_of(lines)):
        with pytest.raises(DamagedStart):
            claim.append(batch_behind(head, 1), head)
    claim.release()

    assert path.read_bytes() == data
    assert disk.calls == []


def test_f39_a_file_that_begins_newer_is_never_written_to(root: Path) -> None:
    path = put(root, data := lines_of(log_of(0))[0][:-1] + b',"signature":"x"}\n')
    claim = FileStore(root).claim("s")

    with pytest.raises(TooNew):
        claim.append(batch_behind(EMPTY, 1), EMPTY)
    claim.release()
    assert path.read_bytes() == data


# --- what the last owner left


def test_the_last_batch_is_written_once_more_before_it_is_believed(root: Path) -> None:
    lines = lines_of(log_of())
    batch = batch_behind(head_of(lines), 3)
    path = put(root, data := file_of(lines + batch))
    disk = PlannedDisk()
    store = FileStore(root, disk=disk)

    store.claim("s").release()
    assert disk.written == [(len(file_of(lines)), file_of(batch))]
    assert disk.calls == ["write_at", "sync"]

    path.write_bytes(data + b'{"seq":7,"pr')
    disk.written.clear()
    store.claim("s").release()
    assert disk.written == [(len(file_of(lines)), file_of(batch) + b'{"seq":7,"pr')]
    assert path.read_bytes() == data + b'{"seq":7,"pr'


def test_a_hole_in_the_last_batch_is_written_once_more_with_all_of_it(root: Path) -> None:
    lines = lines_of(log_of())
    batch = batch_behind(head_of(lines), 4)
    tail = file_of(batch[:1]) + b"\0" * 9 + b"\n" + file_of(batch[2:])
    put(root, file_of(lines) + tail)
    disk = PlannedDisk()

    FileStore(root, disk=disk).claim("s").release()

    assert disk.written == [(len(file_of(lines)), tail)]


def test_reading_writes_nothing(root: Path) -> None:
    put(root, file_of(lines_of(log_of())) + b"torn")
    disk = PlannedDisk()
    store = FileStore(root, disk=disk)

    list(store.read("s"))
    list(store.read("s", past_damage=True))
    list(store.newest("s"))
    store.probe("s")
    list(store.sessions())

    assert disk.calls == []
    assert [path.name for path in root.iterdir()] == ["s.jsonl"]


def test_a_session_whose_tail_cannot_be_adopted_is_not_claimed(root: Path) -> None:
    put(root, file_of(lines_of(log_of())))
    disk = PlannedDisk()
    disk.fail("sync")
    store = FileStore(root, disk=disk)

    with pytest.raises(StoreFailed):
        store.claim("s")
    assert store.probe("s").owner is None
    disk.mend()
    store.claim("s").release()


# --- failures


@pytest.mark.parametrize("call", ["write", "sync"])
@pytest.mark.parametrize("error", [None, KeyboardInterrupt(), MemoryError()])
def test_a_failed_append_closes_the_session_and_is_never_retried(
    root: Path, call: str, error: BaseException | None
) -> None:
    log = log_of()
    disk = PlannedDisk()
    store = FileStore(root, disk=disk)
    claim = store.claim("s")
    claim.append(lines_of(log), EMPTY)
    head = log.head
    batch = grow(log, 2)
    disk.fail(call, error)
    with pytest.raises(StoreFailed if error is None else type(error)):
        claim.append(batch, head)
    disk.mend()
    disk.calls.clear()

    for lines, after in ((batch, head), (grow(log), head_of(batch))):
        with pytest.raises(ClosedAfterFailure):
            claim.append(lines, after)
    assert disk.calls == []
    # what was not acknowledged is not shown to the process that could not write it
    assert len(list(store.read("s"))) == 4
    claim.release()

    with pytest.raises(OwnershipLost):
        claim.append(batch, head)
    disk.calls.clear()
    store.claim("s").release()
    assert disk.calls == ["write_at", "sync"]


def test_f38_a_full_disk_leaves_the_partial_bytes_and_closes_the_session(root: Path) -> None:
    log = log_of()
    lines = lines_of(log)
    store = FileStore(root)
    claim = store.claim("s")
    claim.append(lines, EMPTY)
    claim.release()
    limit = len(file_of(lines)) + 40

    def fill_up() -> None:
        import resource  # noqa: PLC0415 - the limit is set in the child alone

        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        claim = FileStore(root).claim("s")
        head = log.head
        with pytest.raises(StoreFull) as caught:
            claim.append(grow(log), head)
        assert caught.value.retriable
        assert "make room" in caught.value.hint
        with pytest.raises(ClosedAfterFailure):
            claim.append(grow(log), log.head)

    assert in_child(fill_up) == 0
    assert (root / "s.jsonl").stat().st_size == limit
    torn = (root / "s.jsonl").read_bytes()[len(file_of(lines)) :]
    claim = store.claim("s")
    gap = gap_in(list(store.read("s")))
    assert (gap.kind, gap.length, gap.raw) == ("torn", 40, torn)
    batch = [damage_line(log.head, torn), *batch_behind(head_of([damage_line(log.head, torn)]), 1)]
    claim.append(batch, log.head)
    claim.release()
    assert sound_lines(list(store.read("s"))) == [*lines, *batch]


def test_f38_recovery_on_a_full_disk_changes_nothing_that_is_there(root: Path) -> None:
    lines = lines_of(log_of())
    path = put(root, data := file_of(lines) + b'{"seq":4')

    def fill_up() -> None:
        import resource  # noqa: PLC0415 - the limit is set in the child alone

        resource.setrlimit(resource.RLIMIT_FSIZE, (len(data), len(data)))
        claim = FileStore(root).claim("s")
        with pytest.raises(StoreFull):
            claim.append([damage_line(head_of(lines), b'{"seq":4')], head_of(lines))

    assert in_child(fill_up) == 0
    assert path.read_bytes() == data


def test_a_file_that_was_replaced_under_its_owner_is_not_written_to(root: Path) -> None:
    log = log_of()
    store = FileStore(root)
    claim = store.claim("s")
    claim.append(lines_of(log), EMPTY)
    path = root / "s.jsonl"
    other = put(root, data := path.read_bytes(), "other")
    other.rename(path)
    head = log.head
    batch = grow(log)

    for _ in range(2):
        with pytest.raises(OwnershipLost, match="replaced or removed"):
            claim.append(batch, head)
    assert path.read_bytes() == data
    # the new file is nobody's, and the owner of the old one does not come back through it
    store.claim("s").release()
    with pytest.raises(OwnershipLost):
        claim.append(batch, head)
    claim.release()


def test_a_file_replaced_while_it_is_written_is_not_acknowledged(root: Path) -> None:
    log = log_of()
    disk = PlannedDisk()
    claim = FileStore(root, disk=disk).claim("s")
    claim.append(lines_of(log), EMPTY)
    head = log.head
    disk.plans["sync"] = (root / "s.jsonl").unlink

    with pytest.raises(OwnershipLost):
        claim.append(grow(log), head)
    claim.release()


def test_bytes_that_somebody_else_appended_are_not_written_behind_or_over(root: Path) -> None:
    log = log_of()
    store = FileStore(root)
    claim = store.claim("s")
    claim.append(lines_of(log), EMPTY)
    with (root / "s.jsonl").open("ab") as file:
        file.write(b"foreign\n")
    head = log.head

    with pytest.raises(OwnershipLost, match="somebody else wrote"):
        claim.append(grow(log), head)
    claim.release()
    assert (root / "s.jsonl").read_bytes() == file_of(lines_of(log)[:-1]) + b"foreign\n"


def test_bytes_appended_while_we_write_are_kept_and_nothing_is_acknowledged(root: Path) -> None:
    log = log_of()
    disk = PlannedDisk()
    claim = FileStore(root, disk=disk).claim("s")
    claim.append(lines_of(log), EMPTY)

    def interfere() -> None:
        with (root / "s.jsonl").open("ab") as file:
            file.write(b"foreign\n")

    disk.plans["write"] = interfere
    head = log.head
    with pytest.raises(OwnershipLost, match="somebody else wrote"):
        claim.append(grow(log), head)
    claim.release()

    assert (root / "s.jsonl").read_bytes() == file_of(lines_of(log)[:-1]) + b"foreign\n" + file_of(lines_of(log)[-1:])


# --- what is no session file


def test_a_directory_in_the_place_of_a_session_is_a_clear_error(root: Path) -> None:
    (root / "s.jsonl").mkdir(parents=True)
    store = FileStore(root)

    for act in (store.claim, store.probe, lambda session: list(store.read(session))):
        with pytest.raises((StoreFailed, StoreUnsupported)) as caught:
            act("s")
        assert "a session is a file" in caught.value.hint
        assert str(root / "s.jsonl") in str(caught.value)


def test_a_pipe_in_the_place_of_a_session_holds_nobody_up(root: Path) -> None:
    root.mkdir()
    os.mkfifo(root / "s.jsonl")
    store = FileStore(root)

    for act in (store.claim, store.probe, lambda session: list(store.read(session))):
        with pytest.raises(StoreUnsupported, match="no regular file"):
            act("s")


def test_a_symbolic_link_is_refused_by_the_store_and_followed_by_hand(root: Path, tmp_path: Path) -> None:
    real = put(tmp_path, file_of(lines_of(log_of())), "real.jsonl")
    root.mkdir()
    (root / "s.jsonl").symlink_to(real)
    store = FileStore(root)

    for act in (store.claim, store.probe, lambda session: list(store.read(session))):
        with pytest.raises(StoreUnsupported) as caught:
            act("s")
        assert "symbolic link" in caught.value.hint
    plain = PlainFile(root / "s.jsonl")
    assert plain.session == "real"
    assert sound_lines(list(plain.read("real"))) == lines_of(log_of())


def test_a_file_in_the_place_of_the_store_is_a_clear_error(root: Path) -> None:
    root.write_bytes(b"")

    with pytest.raises(StoreFailed, match="Not a directory"):
        FileStore(root).claim("s")
    with pytest.raises(StoreFailed, match="Not a directory"):
        FileStore(root / "deeper").claim("s")
    with pytest.raises(StoreFailed, match="Not a directory"):
        list(FileStore(root).read("s"))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("verb", ["claim", "read", "probe", "list", "make"])
def test_what_one_may_not_touch_is_a_clear_error(root: Path, verb: str) -> None:
    claim = FileStore(root).claim("s")
    claim.release()
    root.chmod(0o000 if verb == "list" else 0o755)
    shut = {path: path.stat().st_mode for path in root.parents if not path.stat().st_mode & stat.S_IXOTH}
    for path, mode in shut.items():
        path.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)
    store = FileStore(root)
    verbs: dict[str, Callable[[], object]] = {
        "claim": lambda: store.claim("s"),
        "read": lambda: list(store.read("s")),
        "probe": lambda: store.probe("s"),
        "list": lambda: list(store.sessions()),
        "make": lambda: store.claim("t"),
    }

    def act() -> None:
        os.seteuid(65534)
        with pytest.raises(StoreFailed, match="Permission denied") as caught:
            verbs[verb]()
        assert "mode" in caught.value.hint

    try:
        assert in_child(act) == 0
    finally:
        for path, mode in shut.items():
            path.chmod(stat.S_IMODE(mode))


def test_a_network_file_system_is_refused_unless_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnwal.store.file.network_type", lambda _: "nfs4")

    with pytest.raises(StoreUnsupported, match="network file system"):
        FileStore(root).claim("s")
    FileStore(root, network=True).claim("s").release()


# --- listing


def test_f22_one_bad_session_stops_no_listing(root: Path) -> None:
    store = FileStore(root)
    long = "long " * 100
    for session in ("b", "a", long):
        claim = store.claim(session)
        claim.append(lines_of(log_of(session=session)), EMPTY)
        claim.release()
    put(root, b"\0\0", "damaged.jsonl")
    put(root, b"", "empty.jsonl")
    put(root, b"\0", "x" * 100 + "~" + "0" * 64 + ".jsonl")
    put(root, b"", "No-Name-Of-Ours.jsonl")
    put(root, b"", "%zz.jsonl")
    put(root, b"", "notes.txt")
    put(root, b"", ".jsonl")
    (root / "directory.jsonl").mkdir()
    (root / ("y" * 100 + "~" + "1" * 64 + ".jsonl")).mkdir()

    assert list(store.sessions()) == ["a", "b", "damaged", "directory", "empty", long]
    assert [Path(path).name for path in store.strays()] == [
        ".jsonl",
        "%zz.jsonl",
        "No-Name-Of-Ours.jsonl",
        "x" * 100 + "~" + "0" * 64 + ".jsonl",
        "y" * 100 + "~" + "1" * 64 + ".jsonl",
    ]


def test_a_fork_under_a_long_id_is_listed_under_its_own(root: Path) -> None:
    store = FileStore(root)
    fork = "fork of " * 50
    log = log_of(3, session="parent " * 50)
    log.append("session_fork", {"id": fork})
    grow(log)
    claim = store.claim(fork)
    claim.append(lines_of(log), EMPTY)
    claim.release()

    assert list(store.sessions()) == [fork]
    assert list(store.strays()) == []


# --- reading


def test_reading_while_somebody_writes_sees_a_growing_log(root: Path) -> None:
    log = log_of(0)
    store = FileStore(root)
    claim = store.claim("s")
    claim.append(lines_of(log), EMPTY)
    reader = FileStore(root)
    seen = 1
    for _ in range(50):
        head = log.head
        claim.append(grow(log, 2), head)
        found = list(reader.read("s"))
        assert sound_lines(found) == lines_of(log)
        assert len(found) > seen
        seen = len(found)
    claim.release()


def test_a_reader_that_began_before_an_append_goes_on_into_it(root: Path) -> None:
    log = log_of()
    store = FileStore(root)
    claim = store.claim("s")
    claim.append(lines_of(log), EMPTY)
    reading = store.read("s")
    first = next(reading)
    head = log.head
    claim.append(grow(log), head)

    assert sound_lines([first, *reading]) == lines_of(log)
    claim.release()


def test_newest_costs_what_is_consumed(root: Path) -> None:
    class Counting(PlannedDisk):
        read = 0

        def read_at(self, descriptor: int, length: int, offset: int, path: str) -> bytes:
            data = super().read_at(descriptor, length, offset, path)
            self.read += len(data)
            return data

    log = log_of(2)
    long = "x" * 3_000_000
    log.append("user_message", {"parts": [{"type": "text", "content": long}]})
    grow(log, 3)
    put(root, file_of(lines_of(log)))
    disk = Counting()
    store = FileStore(root, disk=disk)

    newest = store.newest("s")
    next(newest)
    assert disk.read < 20_000
    assert [record.event.seq for record in newest if record] == [5, 4, 3, 2, 1, 0]
    disk.read = 0
    assert [record.event.seq for record in store.newest("s") if record] == [6, 5, 4, 3, 2, 1, 0]
    assert disk.read < 2 * len(file_of(lines_of(log)))


# --- a file by its path


def test_a_plain_path_and_the_store_are_the_same_lock(root: Path) -> None:
    store = FileStore(root)
    claim = store.claim("a/b", owner="the store")
    plain = PlainFile(root / "a%2fb.jsonl")
    assert plain.session == "a/b"
    with pytest.raises(SessionHeld, match="the store"):
        plain.claim("a/b")
    owner = plain.probe("a/b").owner
    assert owner is not None
    assert owner.startswith("the store")
    claim.release()

    claim = plain.claim("a/b", owner="by hand")
    with pytest.raises(SessionHeld, match="by hand"):
        store.claim("a/b")
    claim.append(lines_of(log_of()), EMPTY)
    claim.release()
    assert sound_lines(list(store.read("a/b"))) == lines_of(log_of())


@pytest.mark.parametrize("name", ["log.jsonl", "log.txt", "Old Log", "x" * 100 + "~" + "0" * 64 + ".jsonl", ".jsonl"])
def test_a_plain_file_has_any_name(tmp_path: Path, name: str) -> None:
    plain = PlainFile(tmp_path / name)

    assert list(plain.sessions()) == []
    claim = plain.claim(plain.session)
    claim.append(lines_of(log_of()), EMPTY)
    assert (tmp_path / name).read_bytes() == file_of(lines_of(log_of()))
    assert list(plain.sessions()) == [plain.session]
    assert list(plain.strays()) == []
    claim.release()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_plain_file_holds_one_session(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound, match="the one session 'log'"):
        PlainFile(tmp_path / "log.jsonl").claim("other")


def test_frames_of_the_file_are_what_the_store_reads(root: Path) -> None:
    data = file_of(lines_of(log_of(50))) + b'{"seq'
    put(root, data)

    def source(position: int) -> list[bytes]:
        return [data[position:]]

    assert list(FileStore(root).read("s")) == list(frames(source))


class Syncs(Disk):
    """Keeps which directories were synced, and refuses one of the syncs."""

    def __init__(self, refused: int = -1) -> None:
        self.synced: list[str] = []
        self._refused = refused

    def sync_directory(self, path: str) -> None:
        self.synced.append(path)
        if len(self.synced) - 1 == self._refused:
            raise StoreFailed("Input/output error", action="sync", subject=path, hint="")
        super().sync_directory(path)


@pytest.mark.parametrize("refused", [0, 1])
def test_a_directory_whose_name_may_not_be_durable_is_made_again(tmp_path: Path, refused: int) -> None:
    root = tmp_path / "a" / "b"
    with pytest.raises(StoreFailed):
        FileStore(root, disk=Syncs(refused)).claim("s")

    again = Syncs()
    FileStore(root, disk=again).claim("s").release()
    made = root if (tmp_path / "a").exists() and refused else root.parent
    assert str(made.parent) in again.synced


def test_the_first_session_makes_the_names_above_it_durable_whoever_made_them(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b"
    for directory in (root.parent, root):
        directory.mkdir(0o700)  # by somebody who died before it was durable
    disk = Syncs()
    store = FileStore(root, disk=disk)

    for session in ("s", "t"):
        store.claim(session).release()

    assert [disk.synced.count(str(path)) for path in (root, root.parent, tmp_path)] == [2, 1, 1]
