"""Transcripts that do not fit into memory: what reading takes is bounded by the largest record (F26)."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.formats.transcripts import SESSION, Transcript

_PEAK_MB = 200
_READ = """
import json, pathlib, sys
from turnwal.formats import examine
(found,) = examine([pathlib.Path(sys.argv[1])])
(peak,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([found.verdict, found.calls, found.answered, len(found.open), int(peak.split()[1]) // 1000]))
"""


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A file that is removed at once, and not kept with the other files of the last runs."""
    path = tmp_path / f"{SESSION}.jsonl"
    yield path
    path.unlink(missing_ok=True)


def read(path: Path) -> list[object]:
    """What a process of its own finds, and its peak memory in MB."""
    done = subprocess.run([sys.executable, "-c", _READ, str(path)], capture_output=True, check=True, text=True)
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("where", ["prompt", "arguments", "result", "output"])
def test_f26_a_record_of_64_mb(path: Path, where: str) -> None:
    long = "x" * (64 << 20)
    made = Transcript()
    made.prompt(long if where == "prompt" else "build it")
    made.call("msg_1", "toolu_1", "Write", input={"content": long if where == "arguments" else ""})
    made.result("toolu_1", long if where == "result" else "done", toolUseResult={})
    made.text("msg_2", "Done.", toolUseResult=long if where == "output" else "")
    made.call("msg_3", "toolu_2")
    made.write(path)
    *found, peak = read(path)
    assert found == ["interrupted", 2, 1, 1]
    assert isinstance(peak, int)
    assert peak < _PEAK_MB


def test_f26_a_file_of_500_mb(path: Path) -> None:
    made = Transcript()
    made.prompt("build it")
    made.call("msg_1", "toolu_1")
    made.result("toolu_1", "x" * 4_000)
    made.text("msg_1b", "y" * 2_000)
    block = b"".join(line + b"\n" for line in made.encoded())
    old = b"00000000-0000-0001-0000-00000000"
    rounds = 500_000_000 // len(block)
    with path.open("wb") as file:
        for number in range(rounds):
            mine = block.replace(old, b"00000000-0000-0001-%04d-0000%04d" % divmod(number, 10_000))
            file.write(mine.replace(b"toolu_1", b"toolu_1%d" % number).replace(b"msg_1", b"msg_1%d" % number))
    *found, peak = read(path)
    assert found == ["clean", rounds, rounds, 0]
    assert isinstance(peak, int)
    assert peak < _PEAK_MB
