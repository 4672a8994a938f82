"""The fault plan: what it lets fail, and that turnwal hears of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

import turnwal
from turnwal.core.errors import ClosedAfterFailure, StoreFailed, StoreFull, TurnwalError
from turnwal.session.sessions import Sessions
from turnwal.store.disk import Disk
from turnwal.store.file import FileStore
from turnwal.testing.faults import CALLS, Fault, FaultPlan, every_fault

LONG = "x" * 10_000


def write(root: Path, plan: FaultPlan) -> list[str]:
    """A session of two turns, opened twice, and a whole history; returns the codes of the errors that came."""
    codes = []
    for text in ("first", "second"):
        try:
            sessions = Sessions(FileStore(root, disk=plan.disk()))
            with sessions.session("s") as session, session.turn(user=text) as turn, turn.step() as step:
                step.assistant({"parts": [{"type": "text", "content": LONG}]})
        except TurnwalError as error:
            codes.append(error.code)
    try:
        FileStore(root, disk=plan.disk()).put("copy", [line.encode() for line in HISTORY])
    except TurnwalError as error:
        codes.append(error.code)
    return codes


HISTORY = [
    '{"seq":0,"prev":"' + "0" * 64 + '","time":0,"type":"session_start","data":{"id":"copy","format":1}}',
]


def test_an_empty_plan_counts_and_changes_nothing(tmp_path: Path) -> None:
    plan = FaultPlan()

    assert write(tmp_path / "store", plan) == []
    assert set(plan.counts) >= {"open", "write", "sync", "mkdir"}
    assert plan.fired == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("write#2=EIO", "store_failed"),
        ("write#2=ENOSPC", "store_full"),
        ("write#3=EDQUOT", "store_full"),
        ("sync#2=EIO", "store_failed"),
        ("open#1=EMFILE", "store_failed"),
        ("mkdir#1=EROFS", "store_failed"),
    ],
)
def test_a_planned_fault_takes_place_once_and_is_heard(tmp_path: Path, text: str, code: str) -> None:
    plan = FaultPlan(text)

    assert write(tmp_path / "store", plan) == [code]
    assert [str(fault) for fault in plan.fired] == [text]


def test_a_lasting_fault_stays_until_it_is_mended(tmp_path: Path) -> None:
    plan = FaultPlan("write#1=ENOSPC+")

    assert write(tmp_path / "store", plan) == ["store_full"] * 3
    assert len(plan.fired) > 3
    plan.mend()
    assert write(tmp_path / "store", plan) == []


def test_a_short_write_is_gone_on_with_and_nobody_hears_of_it(tmp_path: Path) -> None:
    plan = FaultPlan("write#2=short", "write#4=short+")

    assert write(tmp_path / "store", plan) == []
    assert len(plan.fired) > 2
    texts = [
        event.data["parts"][0]["content"] for event in turnwal.open_store(tmp_path / "store").inspect("s").surface()
    ]
    assert texts == ["first", LONG, "second", LONG]


def test_a_full_disk_as_it_is_a_short_write_and_then_no_room(tmp_path: Path) -> None:
    plan = FaultPlan("write#3=short", "write#4=ENOSPC+")
    sessions = Sessions(FileStore(tmp_path, disk=plan.disk()))

    with sessions.session("s") as session:
        session.append("x.note", {"text": LONG})
        with pytest.raises(StoreFull):
            session.flush()
        with pytest.raises(ClosedAfterFailure):
            session.append("x.note", {})
    torn = (tmp_path / "s.jsonl").read_bytes()
    assert not torn.endswith(b"\n")

    plan.mend()
    with sessions.session("s") as session:
        assert [event.type for event in session][1:] == ["damage", "session_resume"]


def test_every_fault_of_a_workload_ends_in_an_error_or_in_what_was_asked_for(tmp_path: Path) -> None:
    counting = FaultPlan()
    write(tmp_path / "counting", counting)
    faults = list(every_fault(counting.counts, ["EIO", "short"]))
    assert {fault.call for fault in faults} == set(counting.counts)

    for number, fault in enumerate(faults):
        plan = FaultPlan(fault)
        root = tmp_path / str(number)
        codes = write(root, plan)
        assert plan.fired, fault
        sessions = turnwal.open_store(root)
        with sessions.session("s") as session:
            said = [event.type for event in session.surface()]
        assert said == ["user_message", "assistant_message"] * 2 or codes, fault
        assert fault.how == "EIO" or not codes, fault


def test_a_fault_is_text_and_back() -> None:
    for text in ("write#3=EIO", "sync#1=ENOSPC+", "write#12=short"):
        assert str(Fault.parse(text)) == text
    assert str(FaultPlan("write#3=EIO", Fault("open", 1, "EMFILE", lasting=True))) == "write#3=EIO open#1=EMFILE+"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("write", "is no fault"),
        ("write#0=EIO", "is no fault"),
        ("read#1=EIO", "no call that a plan knows"),
        ("sync#1=short", "only a write can be short"),
        ("sync#1=EWHAT", "no error of this system"),
    ],
)
def test_what_is_no_fault_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        FaultPlan(text)
    with pytest.raises(ValueError, match="counted from 1"):
        Fault("write", 0, "EIO")


@pytest.mark.parametrize("call", CALLS)
def test_each_kind_of_call_can_fail(tmp_path: Path, call: str) -> None:
    plan = FaultPlan(f"{call}#1=EIO+")
    disk = plan.disk()
    real = Disk()
    (tmp_path / "file").write_bytes(b"")
    descriptor = real.open(str(tmp_path / "file"), write=True)
    assert descriptor is not None
    acts: dict[str, Callable[[], object]] = {
        "open": lambda: disk.open(str(tmp_path / "file")),
        "write": lambda: disk.write(descriptor, b"data", "file"),
        "sync": lambda: disk.sync(descriptor, "file"),
        "link": lambda: disk.link(str(tmp_path / "file"), str(tmp_path / "other")),
        "mkdir": lambda: disk.make_directory(str(tmp_path / "directory")),
    }
    if call == "unlink":
        disk.discard(str(tmp_path / "file"))  # as well as it goes
        assert (tmp_path / "file").exists()
    else:
        with pytest.raises(StoreFailed):
            acts[call]()
    real.close(descriptor)
    assert plan.counts == {call: 1}
