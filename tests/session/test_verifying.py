"""The pass that vouches for all of a session, as a library calls it."""

import json
from pathlib import Path

import pytest

from tests.cli.worlds import chain_anew
from tests.session.helpers import DONE, asks, reply
from turnwal.core.chain import EMPTY, Head, after
from turnwal.core.errors import SessionNotFound
from turnwal.session.sessions import Sessions
from turnwal.session.verifying import verify
from turnwal.store.file import FileStore
from turnwal.store.plain import PlainFile
from turnwal.store.protocol import Record


def write(sessions: Sessions, id: str = "s", turns: int = 3) -> Head:
    with sessions.session(id) as session:
        for _ in range(turns):
            with session.turn(user="go") as turn, turn.step() as step:
                (call,) = step.assistant(reply(asks("pay")))
                call.ask("May I?")
        session.call("4.0").grant()
        with session.turn(resumes="4.0") as turn, turn.step() as step:
            assert turn.resumed is not None
            turn.resumed.dispatch()
            turn.resumed.result("paid")
            step.assistant(DONE)
    with sessions.session(id) as session:
        session.append("x.note", {})
        return session.flush()


def test_a_written_session_is_intact_in_every_store(sessions: Sessions) -> None:
    head = write(sessions)

    report = verify(sessions.store, "s", expect=head)

    assert (report.head, report.events, report.gap, report.findings) == (head, head.count, None, ())
    assert report.sound
    assert not report.interrupted


def test_every_head_on_the_way_is_one_of_its_past(sessions: Sessions) -> None:
    write(sessions)
    heads = [EMPTY]
    for record in sessions.store.read("s"):
        assert isinstance(record, Record)
        heads.append(after(record.line, record.event))

    for head in heads:
        assert verify(sessions.store, "s", expect=head).mismatch is None
        if head.count:
            assert verify(sessions.store, "s", expect=Head(head.count, "f" * 64)).mismatch is not None
    assert verify(sessions.store, "s", expect=Head(len(heads), "f" * 64)).mismatch is not None


def test_an_absent_session_is_not_found(sessions: Sessions) -> None:
    with pytest.raises(SessionNotFound):
        verify(sessions.store, "nobody")


def change(path: Path, type: str, number: int, **fields: object) -> None:
    """Change the data of the n-th event of a type, and chain what follows anew."""
    lines = path.read_bytes().splitlines()
    at = [index for index, line in enumerate(lines) if json.loads(line)["type"] == type][number]
    event = json.loads(lines[at])
    event["data"] |= fields
    lines[at] = json.dumps(event, separators=(",", ":")).encode()
    path.write_bytes(b"\n".join(lines) + b"\n")
    chain_anew(path)


@pytest.mark.parametrize(
    ("type", "fields"),
    [
        ("turn_start", {"open": []}),
        ("turn_start", {"open": "odd"}),
        ("turn_end", {"open": [1]}),
        ("turn_end", {"waiting": []}),
        ("turn_end", {"waiting": 7}),
        ("turn_end", {"waiting": [{"call": "4.0", "id": "another"}]}),
        ("session_resume", {"open": [1]}),
    ],
)
def test_a_hint_that_the_log_does_not_bear_out_is_found(tmp_path: Path, type: str, fields: dict[str, object]) -> None:
    store = FileStore(tmp_path)
    write(Sessions(store))
    assert verify(store, "s").findings == ()
    change(tmp_path / "s.jsonl", type, 0, **fields)

    (finding,) = verify(PlainFile(tmp_path / "s.jsonl"), "s").findings

    assert finding.code == "wrong_hint"
    assert type in finding.message


def test_a_boundary_without_hints_is_no_finding(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    write(Sessions(store))
    path = tmp_path / "s.jsonl"
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for event in lines:
        event["data"].pop("open", None)
        event["data"].pop("waiting", None)
    path.write_bytes(b"\n".join(json.dumps(event, separators=(",", ":")).encode() for event in lines) + b"\n")
    chain_anew(path)

    assert verify(store, "s").findings == ()
