"""What opening, recovering and verifying cost, by the length of what is stored."""

import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.logs import TURN, write
from bench.rows import Row, peak_mb
from turnwal.session.sessions import Sessions
from turnwal.session.verifying import verify
from turnwal.store.file import FileStore

MANY = 1_000_000 // TURN
FEW = 1_000 // TURN


def measure(folder: Path) -> Iterator[Row]:
    """The rows of this module; needs 4 GB of disk for a while."""
    yield from _opening(folder / "opening")
    for name, one_turn in (("many turns", False), ("one long turn", True)):
        yield from _verifying(folder / "verifying", name, one_turn=one_turn)


def _opening(folder: Path) -> Iterator[Row]:
    spent: dict[int, list[float]] = {FEW: [], MANY: []}
    for turns in (FEW, MANY):
        write(folder / f"{turns}.jsonl", turns, crashed=True)
    for n in range(15):
        for turns, times in spent.items():
            work = folder / "work"
            work.mkdir(exist_ok=True, mode=0o700)
            source, copy = folder / f"{turns}.jsonl", work / "s.jsonl"
            if n == 0:
                shutil.copyfile(source, work / f"{turns}.jsonl")
            (work / f"{turns}.jsonl").rename(copy)
            size = source.stat().st_size
            sessions = Sessions(FileStore(work))
            started = time.perf_counter()
            with sessions.session("s") as session:
                assert session.recovered
                times.append((time.perf_counter() - started) * 1e6)
            with copy.open("r+b") as file:
                file.truncate(size)
            copy.rename(work / f"{turns}.jsonl")
    few, many = (sorted(spent[turns])[7] for turns in (FEW, MANY))
    shutil.rmtree(folder)
    what = "open and recover behind 1,000,000 closed events"
    yield Row(what, many, "behind 1,000", few, "1.2 ×", many <= 1.2 * few)


def _verifying(folder: Path, name: str, *, one_turn: bool) -> Iterator[Row]:
    path = folder / "s.jsonl"
    events, size = write(path, MANY if not one_turn else 1_000_000 // 5, one_turn=one_turn)
    code = "import sys; from bench.reading import child; child(*sys.argv[1:])"

    def run(how: str) -> dict[str, float]:
        command = [sys.executable, "-c", code, str(path), how]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)  # type: ignore[no-any-return]

    found = [(run("bare"), run("verify")) for _ in range(3)]
    bare = min(before["s"] for before, _ in found)
    verified = min(after["s"] for _, after in found)
    peak = max(after["mb"] for _, after in found)
    shutil.rmtree(folder)
    each = 1e6 / events
    yield Row(
        f"verify a line, {name}", verified * each, "SHA-256 + decode", bare * each, "1.5 ×", verified <= 1.5 * bare
    )
    what = f"peak memory of verifying {size / 1e9:.2f} GB, {name}"
    yield Row(what, peak, "the allowance", 100.0, "at most 100 MB", peak <= 100, unit="MB")


def child(path: str, how: str) -> None:
    """Read a log in a process of its own and print the seconds and the peak memory it took."""
    started = time.perf_counter()
    if how == "bare":
        decode = msgspec.json.Decoder().decode
        with Path(path).open("rb") as file:
            for line in file:
                hashlib.sha256(line[:-1]).hexdigest()
                decode(line)
    else:
        report = verify(FileStore(Path(path).parent), Path(path).stem)
        assert report.sound
    spent = time.perf_counter() - started
    print(json.dumps({"s": spent, "mb": peak_mb()}))
