"""What is recorded of a workload, held against what the workload left."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from turnwal.testing.power import Recording, Unrecordable, record
from turnwal.testing.power.operations import SyncEnds, SyncFails

PRELUDE = "import os, shutil, subprocess, sys, threading\nfrom pathlib import Path\nroot = Path(sys.argv[1])\n"


def recorded(directory: Path, code: str, **options: list[str]) -> Recording:
    return record([sys.executable, "-c", PRELUDE + code, str(directory)], directory, inject=options.get("inject", ()))


def left(directory: Path) -> dict[str, bytes | None]:
    found = sorted(directory.rglob("*"))
    return {str(path.relative_to(directory)): None if path.is_dir() else path.read_bytes() for path in found}


@pytest.mark.parametrize(
    "code",
    [
        "(root / 'a').write_bytes(b'one'); (root / 'a').write_bytes(b'2')",
        "(root / 'd' / 'e').mkdir(parents=True); (root / 'd' / 'e' / 'f').write_text('x' * 100_000)",
        "open(root / 'a', 'ab').write(b'x'); f = open(root / 'a', 'ab'); f.write(b'y'); f.close()",
        "f = open(root / 'old', 'r+b'); f.read(3); f.write(b'XYZ'); f.seek(1); f.write(b'-'); f.truncate(); f.close()",
        "os.truncate(root / 'old', 2); os.truncate(root / 'old', 6)",
        "os.link(root / 'old', root / 'b'); os.unlink(root / 'old'); open(root / 'b', 'ab').write(b'!')",
        "os.rename(root / 'old', root / 'new'); (root / 'd').mkdir(); os.rename(root / 'new', root / 'd' / 'x')",
        "(root / 'tmp').write_bytes(b'new'); os.replace(root / 'tmp', root / 'old')",
        (
            "f = os.open(root / 'a', os.O_RDWR | os.O_CREAT); os.unlink(root / 'a'); os.write(f, b'gone');"
            "(root / 'a').write_bytes(b'another')"
        ),
        (
            "f = os.open(root / 'a', os.O_RDWR | os.O_CREAT); os.write(f, b'1'); g = os.dup(f); os.write(g, b'2');"
            "os.pwrite(f, b'0', 0); os.writev(f, [b'3', b'4'])"
        ),
        (
            "f = os.open(root / 'a', os.O_RDWR | os.O_CREAT); os.write(f, b'mine')\n"
            "if os.fork() == 0: os.write(f, b'child'); os._exit(0)\n"
            "os.wait(); os.write(f, b'mine again')"
        ),
        (
            "f = os.open(root / 'a', os.O_WRONLY | os.O_CREAT)\n"
            "subprocess.run(['/bin/sh', '-c', 'echo hidden'], stdout=subprocess.PIPE)\n"
            "subprocess.run(['/bin/sh', '-c', 'echo told; echo more >> ' + str(root / 'b')], stdout=f)"
        ),
        "os.chdir(root); os.mkdir('rel'); os.chdir('rel'); Path('x').write_text('y'); Path('../z').write_text('w')",
        (
            "threads = [threading.Thread(target=(root / str(n)).write_text, args=(str(n) * 999,)) for n in range(8)]\n"
            "[thread.start() for thread in threads]; [thread.join() for thread in threads]"
        ),
        "shutil.copy(root / 'old', root / 'copy'); shutil.copytree(root / 'tree', root / 'trees')",
        "os.posix_fallocate(os.open(root / 'old', os.O_RDWR), 0, 100)",
        "shutil.rmtree(root / 'tree')",
    ],
)
def test_what_is_recorded_is_what_was_done(tmp_path: Path, code: str) -> None:
    (tmp_path / "old").write_bytes(b"abcdefgh")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "leaf").write_bytes(b"leaf")

    recording = recorded(tmp_path, code)

    assert recording.after() == left(tmp_path)
    assert recording.before.files() == {"old": b"abcdefgh", "tree": None, "tree/leaf": b"leaf"}


def test_what_it_says_is_in_order_with_what_it_does(tmp_path: Path) -> None:
    code = (
        "f = os.open(root / 'a', os.O_RDWR | os.O_CREAT); print('ACK 1', flush=True); os.write(f, b'x'); os.fsync(f)\n"
        "print('ACK', 2, flush=True); subprocess.run(['echo', 'hidden'], stdout=subprocess.DEVNULL)"
    )
    recording = recorded(tmp_path, code)

    assert [type(operation).__name__ for operation in recording.operations] == [
        "Name",
        "Mark",
        "Write",
        "SyncBegins",
        "SyncEnds",
        "Mark",
    ]
    assert recording.marks == ("ACK 1", "ACK 2")


def test_a_sync_that_is_made_to_fail_or_to_do_nothing_is_recorded_as_such(tmp_path: Path) -> None:
    code = (
        "f = os.open(root / 'a', os.O_RDWR | os.O_CREAT)\n"
        "for _ in range(2):\n  try: os.fsync(f)\n  except OSError: print('failed', flush=True)"
    )

    failing = recorded(tmp_path, code, inject=["fsync:error=EIO:when=1"])
    assert [type(each) for each in failing.operations if isinstance(each, SyncEnds | SyncFails)] == [
        SyncFails,
        SyncEnds,
    ]
    assert failing.marks == ("failed",)

    lying = recorded(tmp_path, code, inject=["fsync:retval=0"])
    assert not any(isinstance(each, SyncEnds) for each in lying.operations)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import mmap; f = open(root / 'old', 'r+b'); mmap.mmap(f.fileno(), 0)[0:1] = b'!'", "mapped memory"),
        ("os.open(root / 'old', os.O_RDWR | os.O_SYNC)", "O_SYNC"),
        ("os.symlink('old', root / 'link')", "symbolic link"),
        ("os.rename(sys.argv[0] if False else str(root) + '-beside', root / 'in')", "moved here"),
        ("sys.exit('it broke')", "it broke"),
    ],
)
def test_what_cannot_be_recorded_is_refused(tmp_path: Path, code: str, why: str) -> None:
    (tmp_path / "old").write_bytes(b"abcdefgh")
    Path(f"{tmp_path}-beside").write_bytes(b"")

    with pytest.raises(Unrecordable, match=why):
        recorded(tmp_path, code)


def test_mapped_memory_may_be_left_out_by_name(tmp_path: Path) -> None:
    (tmp_path / "db-shm").write_bytes(b"abcdefgh")
    code = "import mmap; f = open(root / 'db-shm', 'r+b'); mmap.mmap(f.fileno(), 0)[0:1] = b'!'; os.unlink(f.name)"

    assert recorded(tmp_path, code).operations == ()


def test_without_strace_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(Unrecordable, match="install it"):
        record([sys.executable, "-c", ""], tmp_path)


def test_a_workload_may_fail_where_that_is_looked_for(tmp_path: Path) -> None:
    code = "import os; os.write(1, b'ACK\\n'); os._exit(3)"
    recording = record([sys.executable, "-c", code], tmp_path, check=False)

    assert (recording.code, recording.marks) == (3, ("ACK",))
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 3
    assert os.listdir(tmp_path) == []  # noqa: PTH208
