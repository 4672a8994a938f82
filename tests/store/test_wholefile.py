"""A file beside a store: all of it under its name, or no such name."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from turnwal.store.wholefile import whole_file


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_it_has_its_name_when_all_of_it_is_there(tmp_path: Path) -> None:
    with whole_file(tmp_path / "out") as file:
        file.write(b"all of it")
        assert not (tmp_path / "out").exists()

    assert (tmp_path / "out").read_bytes() == b"all of it"
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == ["out"]


def test_what_fails_leaves_neither_name(tmp_path: Path) -> None:
    def half(out: Path) -> None:
        with whole_file(out) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half(tmp_path / "out")

    assert names(tmp_path) == []


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_what_is_there_is_never_written_over(tmp_path: Path, when: str) -> None:
    out = tmp_path / "out"
    if when == "before":
        out.symlink_to("nowhere")
    with pytest.raises(FileExistsError) as caught, whole_file(out):
        out.write_bytes(b"mine")

    assert caught.value.filename == str(out)
    assert names(tmp_path) == ["out"]
    assert out.is_symlink() if when == "before" else out.read_bytes() == b"mine"


def test_a_directory_that_is_missing_is_told_with_the_name_that_was_given(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, whole_file(tmp_path / "no" / "out"):
        pass

    assert caught.value.filename == str(tmp_path / "no" / "out")


def test_a_file_system_without_second_names_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path, target: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM), str(self), None, str(target))

    monkeypatch.setattr(Path, "hardlink_to", refused)
    with whole_file(tmp_path / "out") as file:
        file.write(b"all of it")

    assert (tmp_path / "out").read_bytes() == b"all of it"
    assert names(tmp_path) == ["out"]


def test_a_name_that_is_not_durable_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(OSError, match="Input/output"), whole_file(tmp_path / "out") as file:
        file.write(b"all of it")

    assert names(tmp_path) == []


def test_who_is_killed_in_the_middle_leaves_no_such_name(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from turnwal.store.wholefile import whole_file\n"
        "with whole_file(Path(sys.argv[1])) as file:\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "out")], check=False)

    assert done.returncode == -signal.SIGKILL
    (left,) = names(tmp_path)
    assert left.startswith(".turnwal-part-")
