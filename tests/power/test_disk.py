"""Which states a disk may have, told by small recordings that are made by hand."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from turnwal.testing.power import Exploration, Names, Recording, explore, points, record
from turnwal.testing.power.disk import PAGE
from turnwal.testing.power.operations import (
    ROOT,
    Mark,
    Move,
    Name,
    Operation,
    Resize,
    SyncBegins,
    SyncEnds,
    SyncFails,
    Tree,
    Unname,
    Write,
)
from turnwal.testing.power.states import SECTOR, by_chance, systematic, torn

A, B, D = 1, 2, 3
BOTH = tuple(Names)
STRICT = (Names.WITH_DIRECTORY,)
USUAL = (Names.WITH_FILE,)


def recording(*operations: Operation, named: Iterable[str] = ()) -> Recording:
    """Files A and B, which have names from the beginning where they are told."""
    nodes = {"a": A, "b": B}
    before = Tree({(ROOT, name): nodes[name] for name in named}, {A: b"", B: b""})
    return Recording(before, operations, 0)


def synced(number: int, node: int | None) -> tuple[Operation, Operation]:
    return SyncBegins(number, node), SyncEnds(number)


def outcomes(recorded: Recording, names: tuple[Names, ...] = BOTH, mark: str = "now", **options: Any) -> set[str]:
    """What the disk may have at a mark, each as text."""
    found: set[str] = set()

    def judge(root: Path, marks: Any) -> None:
        if marks and marks[-1] == mark:
            files = sorted(path for path in root.rglob("*") if path.is_file())
            found.add(" ".join(f"{path.relative_to(root)}={path.read_bytes().decode()}" for path in files))

    explore(recorded, judge, names=names, subsets=options.get("subsets", 20))
    return found


def test_what_was_synced_is_there_and_what_was_not_may_be() -> None:
    recorded = recording(Write(A, 0, b"1"), *synced(1, A), Write(A, 1, b"2"), Mark("now"), named="a")

    assert outcomes(recorded) == {"a=1", "a=12", "a=1\0"}


def test_a_sync_covers_what_was_done_when_it_began() -> None:
    recorded = recording(SyncBegins(1, A), Write(A, 0, b"1"), SyncEnds(1), Mark("now"), named="a")

    assert outcomes(recorded) == {"a=", "a=1", "a=\0"}


def test_a_sync_of_one_file_says_nothing_of_another() -> None:
    recorded = recording(Write(A, 0, b"1"), Write(B, 0, b"2"), *synced(1, B), Mark("now"), named="ab")

    assert outcomes(recorded) == {"a= b=2", "a=1 b=2", "a=\0 b=2"}


def test_writes_may_be_lost_in_any_order() -> None:
    recorded = recording(Write(A, 0, b"1"), Write(A, 1, b"2"), Mark("now"), named="a")

    assert {"a=", "a=1", "a=12", "a=\0" + "2"} <= outcomes(recorded)


def test_a_sync_of_everything_is_one() -> None:
    recorded = recording(Name(ROOT, "a", A), Write(A, 0, b"1"), *synced(1, None), Mark("now"))

    assert outcomes(recorded) == {"a=1"}


def test_a_new_name_lives_with_its_directory_or_with_its_file() -> None:
    recorded = recording(Name(ROOT, "a", A), Write(A, 0, b"1"), *synced(1, A), Mark("now"))

    assert outcomes(recorded, USUAL) == {"a=1"}
    assert outcomes(recorded, STRICT) == {"", "a=1"}
    assert outcomes(recording(*recorded.operations[:-1], *synced(2, ROOT), Mark("now")), STRICT) == {"a=1"}


def test_a_file_in_a_new_directory_needs_the_names_of_both() -> None:
    made = (Name(ROOT, "d", D), Name(D, "a", A), Write(A, 0, b"1"), *synced(1, A))

    assert outcomes(recording(*made, *synced(2, D), Mark("now")), STRICT) == {"", "d/a=1"}
    assert outcomes(recording(*made, *synced(2, ROOT), Mark("now")), STRICT) == {"", "d/a=1"}
    assert outcomes(recording(*made, *synced(2, D), *synced(3, ROOT), Mark("now")), STRICT) == {"d/a=1"}
    assert outcomes(recording(*made, Mark("now")), USUAL) == {"d/a=1"}


def test_a_rename_is_done_or_not() -> None:
    recorded = recording(
        Write(A, 0, b"new"),
        *synced(1, A),
        Write(B, 0, b"old"),
        *synced(2, B),
        Move(ROOT, "a", ROOT, "b", A),
        Mark("now"),
        named="ab",
    )

    assert outcomes(recorded) == {"a=new b=old", "b=new"}


def test_a_removed_name_may_come_back_with_what_the_file_held() -> None:
    recorded = recording(Write(A, 0, b"1"), *synced(1, A), Unname(ROOT, "a"), Mark("now"), named="a")

    assert outcomes(recorded) == {"", "a=1"}
    assert outcomes(recording(*recorded.operations[:-1], *synced(2, ROOT), Mark("now"), named="a")) == {""}


def test_what_a_failed_sync_was_to_write_is_not_written_by_the_next_one() -> None:
    failed = (Write(A, 0, b"1"), SyncBegins(1, A), SyncFails(1))

    assert outcomes(recording(*failed, *synced(2, A), Mark("now"), named="a")) == {"a=", "a=1", "a=\0"}
    again = (*failed, Write(A, 0, b"1"), *synced(2, A), Mark("now"))
    assert outcomes(recording(*again, named="a")) == {"a=1"}


def test_a_write_to_a_page_takes_with_it_what_a_failed_sync_left_in_it() -> None:
    failed = (Write(A, 0, b"1"), SyncBegins(1, A), SyncFails(1))

    beside = recording(*failed, Write(A, 1, b"2"), *synced(2, A), Mark("now"), named="a")
    assert outcomes(beside) == {"a=12"}
    far = recording(*failed, Write(A, PAGE, b"2"), *synced(2, A), Mark("now"), named="a")
    assert {text[:3] for text in outcomes(far)} == {"a=1", "a=\0"}


def test_what_is_synced_later_stays_over_what_a_failed_sync_may_have_written() -> None:
    failed = (Write(A, 0, b"old"), SyncBegins(1, A), SyncFails(1))

    assert outcomes(recording(*failed, Write(A, 0, b"new"), *synced(2, A), Mark("now"), named="a")) == {"a=new"}


def test_the_last_write_is_torn_at_every_sector() -> None:
    recorded = recording(Write(A, 100, b"x" * 1200), Mark("now"), named="a")
    (point,) = [point for point in points(recorded) if point.marks]

    sizes = {len(state.tree().contents[A].rstrip(b"\0")) for state in systematic(point)}

    assert sizes == {0, SECTOR, 2 * SECTOR, 1300}


def test_a_write_keeps_the_sectors_that_reached_the_disk() -> None:
    write = Write(A, 100, bytes(range(256)) * 8)

    assert torn(write, lambda sector: sector % 2 == 1) == [
        Write(A, 512, write.data[412:924]),
        Write(A, 1536, write.data[1436:1948]),
    ]
    assert torn(write, lambda _: True) == [write]
    assert torn(write, lambda _: False) == []


def test_chance_repeats_itself() -> None:
    recorded = recording(Write(A, 0, b"x" * 9000), Write(B, 0, b"y" * 9000), Resize(A, 5), named="ab")
    point = list(points(recorded))[-1]

    first, again, other = ([state.changes for state in by_chance(point, seed, 30)] for seed in ("1", "1", "2"))

    assert first == again != other


def test_a_complaint_names_the_moment_and_can_be_built_again(tmp_path: Path) -> None:
    recorded = recording(Write(A, 0, b"1"), Mark("ACK"), named="a")

    def judge(root: Path, marks: Any) -> Iterable[str]:
        return ["it is lost"] if marks and (root / "a").read_bytes() != b"1" else []

    found = explore(recorded, judge)

    assert isinstance(found, Exploration)
    assert found.failed == len(found.failures) == 2
    assert {failure.marks for failure in found.failures} == {("ACK",)}
    assert "kept: nothing: it is lost" in str(found)
    found.failures[0].build(tmp_path)
    assert (tmp_path / "a").read_bytes() == b""
    assert found.judged + found.equal == found.states


def test_what_a_judge_raises_is_a_complaint() -> None:
    def judge(root: Path, marks: Any) -> None:
        raise AssertionError(f"{root.name} {len(marks)}")

    found = explore(recording(Mark("ACK"), named="a"), judge)

    assert found.failures[0].complaints == ("AssertionError: 1 1",)


@pytest.mark.parametrize(("sync", "lost"), [("os.fsync(f)", False), ("pass", True)])
def test_a_real_program_that_does_not_sync_is_caught(tmp_path: Path, sync: str, lost: bool) -> None:
    code = (
        "import os, sys\n"
        "f = os.open(sys.argv[1] + '/log', os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
        "d = os.open(sys.argv[1], os.O_RDONLY); os.fsync(d)\n"
        "for n in range(5):\n"
        f"  os.write(f, b'x' * 700); {sync}; print('ACK', n + 1, flush=True)\n"
    )

    def judge(root: Path, marks: Any) -> None:
        acknowledged = int(marks[-1].split()[1]) if marks else 0
        data = (root / "log").read_bytes() if (root / "log").exists() else b""
        assert data[: 700 * acknowledged] == b"x" * 700 * acknowledged

    recorded = record([sys.executable, "-c", code, str(tmp_path)], tmp_path)

    assert (explore(recorded, judge).failed > 0) is lost
