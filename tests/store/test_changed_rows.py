"""Lines changed or deleted behind the back of a store that keeps them as rows."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

import apsw
import pytest

from tests.store.building import batch_behind, head_of, sound_lines
from tests.store.server import fresh_schema, shared_server
from turnwal.core.chain import EMPTY
from turnwal.core.errors import Damaged, DamagedStart, OwnershipLost
from turnwal.session.inspection import glance
from turnwal.session.sessions import Sessions
from turnwal.session.verifying import verify
from turnwal.store.postgres import PostgresStore
from turnwal.store.protocol import Gap, Record, Store
from turnwal.store.rows import Row, bytes_of
from turnwal.store.sqlite import SqliteStore


class Place(Protocol):
    def open(self) -> Store: ...

    def change(self, place: int, line: bytes) -> None: ...

    def delete(self, place: int) -> None: ...


class SqliteRows:
    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self) -> Store:
        return SqliteStore(self._path)

    def change(self, place: int, line: bytes) -> None:
        self._without_trigger("line_is_never_updated", "UPDATE line SET line = ? WHERE position = ?", line, place)

    def delete(self, place: int) -> None:
        self._without_trigger("line_is_never_deleted", "DELETE FROM line WHERE position = ?", place)

    def _without_trigger(self, name: str, statement: str, *values: object) -> None:
        with closing(apsw.Connection(str(self._path))) as connection:
            trigger = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).get
            connection.execute(f"DROP TRIGGER {name}")
            connection.execute(statement, values)
            assert connection.changes() == 1
            connection.execute(trigger)


class PostgresRows:
    def __init__(self, url: str) -> None:
        self._url = url
        self._schema = url.rpartition("%3D")[2]

    def open(self) -> Store:
        return PostgresStore(self._url)

    def change(self, place: int, line: bytes) -> None:
        statement = "UPDATE turnwal_line SET line = %s WHERE position = %s RETURNING position"
        assert shared_server().execute(statement, line, place, schema=self._schema) == [(place,)]

    def delete(self, place: int) -> None:
        statement = "DELETE FROM turnwal_line WHERE position = %s RETURNING position"
        assert shared_server().execute(statement, place, schema=self._schema) == [(place,)]


@contextmanager
def sqlite_rows(path: Path) -> Iterator[Place]:
    yield SqliteRows(path / "agents.db")


@contextmanager
def postgres_rows(path: Path) -> Iterator[Place]:
    del path
    with fresh_schema() as url:
        yield PostgresRows(url)


@pytest.fixture(params=[sqlite_rows, postgres_rows], ids=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with request.param(tmp_path) as found:
        yield found


def stored(place: Place) -> list[Record | Gap]:
    with closing(place.open()) as store:
        return list(store.read("s"))


def closed_session(place: Place) -> list[Record]:
    with Sessions(place.open()) as sessions, sessions.session("s") as session:
        for number in range(3):
            with session.turn(f"question {number}"):
                pass
    return [each for each in stored(place) if isinstance(each, Record)]


def open_session(place: Place) -> list[Record]:
    """A session whose process died in the middle of its second turn."""
    sessions = Sessions(place.open())
    session = sessions.session("s").open()
    with session.turn("first"):
        pass
    session.turn("second").__enter__()
    for number in range(3):
        session.append("x.note", {"text": f"note {number}"})
        session.flush()
    sessions.store.close()
    return [each for each in stored(place) if isinstance(each, Record)]


def spoilt(line: bytes) -> bytes:
    return line[:-9] + b"\0" + line[-8:]


def shorter(line: bytes) -> bytes:
    return line[:-40]


def longer(line: bytes) -> bytes:
    return line + b"x" * 100


@pytest.mark.parametrize(
    ("which", "change"),
    [(3, spoilt), (-2, spoilt), (3, shorter), (3, longer), (3, None)],
    ids=["changed", "changed late", "shorter", "longer", "deleted"],
)
def test_damage_is_found_where_it_stands_and_gone_past_with_a_persons_word(
    place: Place, which: int, change: Callable[[bytes], bytes] | None
) -> None:
    records = closed_session(place)
    which %= len(records)
    if change is None:
        place.delete(records[which].position)
    else:
        place.change(records[which].position, change(records[which].line))

    found = stored(place)
    assert found[:which] == records[:which]
    (gap,) = found[which:]
    assert isinstance(gap, Gap)
    assert gap.position == records[which].position
    assert gap.position + gap.length == records[-1].position + len(records[-1].line) + 1
    lines = [record.line for record in records]
    with Sessions(place.open()) as sessions:
        assert not verify(sessions.store, "s").sound
        readable = [each for each in sessions.store.read("s", past_damage=True) if isinstance(each, Record)]
        assert [each.position for each in readable[-2:]] == [record.position for record in records[-2:]] or which > 3
        claim = sessions.store.claim("s")
        with pytest.raises(Damaged, match=f"behind line {which - 1} "):
            claim.append(batch_behind(head_of(lines[:which]), 1), head_of(lines[:which]))
        with pytest.raises(OwnershipLost):
            claim.append(batch_behind(head_of(lines[:2]), 1), head_of(lines[:2]))
        claim.release()
        with sessions.session("s", accept_loss=True) as session:
            session.append("user_message", {"parts": []})
        with sessions.session("s") as session:
            assert session.append("user_message", {"parts": []}).seq > len(lines)
    again = stored(place)
    assert [each.line for each in again[:which] if isinstance(each, Record)] == lines[:which]


@pytest.mark.parametrize("change", [spoilt, shorter, longer, None], ids=["changed", "shorter", "longer", "deleted"])
def test_an_open_turn_with_damage_in_it_is_refused_until_the_loss_is_accepted(
    place: Place, change: Callable[[bytes], bytes] | None
) -> None:
    records = open_session(place)
    if change is None:
        place.delete(records[-2].position)
    else:
        place.change(records[-2].position, change(records[-2].line))

    with Sessions(place.open()) as sessions:
        assert glance(sessions.store, "s").state == "damaged"
        with pytest.raises(Damaged), sessions.session("s"):
            pass
        with sessions.session("s", accept_loss=True) as session:
            assert session.recovered
    with closing(place.open()) as store:
        assert verify(store, "s").sound
        assert glance(store, "s").state == "clean"


def test_a_session_whose_first_line_is_changed_is_never_written_to(place: Place) -> None:
    records = closed_session(place)
    place.change(0, b"\0" * len(records[0].line))

    with closing(place.open()) as store:
        claim = store.claim("s")
        for head in (EMPTY, head_of([record.line for record in records[:2]])):
            with pytest.raises(DamagedStart):
                claim.append(batch_behind(head, 1), head)


@pytest.mark.parametrize("change", [lambda line: b"\0" * len(line), shorter, longer], ids=["nul", "shorter", "longer"])
def test_a_last_line_that_is_changed_is_covered_by_the_next_owner(
    place: Place, change: Callable[[bytes], bytes]
) -> None:
    records = closed_session(place)
    place.change(records[-1].position, change(records[-1].line))

    with Sessions(place.open()) as sessions:
        sessions.session("s").open().close()
        with sessions.session("s") as session, session.turn("goes on"):
            pass
    again = stored(place)
    assert sound_lines(again)[: len(records) - 1] == [record.line for record in records[:-1]]
    assert not any(isinstance(each, Gap) for each in again)


def test_a_session_cut_off_at_its_end_is_a_shorter_session(place: Place) -> None:
    """No chain shows that; only a head that was kept elsewhere does."""
    records = closed_session(place)
    kept = head_of([records[-1].line])
    place.delete(records[-1].position)

    with Sessions(place.open()) as sessions:
        assert verify(sessions.store, "s").sound
        assert verify(sessions.store, "s", expect=kept).mismatch is not None
        with sessions.session("s") as session, session.turn("goes on"):
            pass
    assert sound_lines(stored(place))[: len(records) - 1] == [record.line for record in records[:-1]]


# --- rows as bytes


@pytest.mark.parametrize(
    ("rows", "start", "end", "expected"),
    [
        ([(0, b"ab"), (3, b"c")], 0, 5, b"ab\nc\n"),
        ([(0, b"ab"), (3, b"c")], 1, 5, b"b\nc\n"),
        ([(0, b"ab"), (3, b"c")], 2, 5, b"\nc\n"),
        ([(3, b"c")], 0, 5, b"\0\0\nc\n"),
        ([(0, b"ab"), (6, b"c")], 0, 8, b"ab\n\0\0\nc\n"),
        ([(0, b"ab"), (6, b"c")], 4, 8, b"\0\nc\n"),
        ([(0, b"abcdef"), (3, b"c")], 0, 5, b"a\0\nc\n"),
        ([(0, b"abcdef"), (1, b"c")], 0, 3, b"\nc\n"),
        ([(0, b"")], 0, 1, b"\n"),
        ([], 2, 5, b"\0\0\n"),
        ([], 2, 2, b""),
    ],
)
def test_rows_read_as_the_bytes_of_one_file(rows: list[Row], start: int, end: int, expected: bytes) -> None:
    pieces = list(bytes_of(rows, start, end))
    assert b"".join(pieces) == expected
    assert len(expected) == end - start
    assert all(pieces)


def test_a_long_gap_between_rows_is_never_held_at_once() -> None:
    end = 10_000_000
    pieces = list(bytes_of([(0, b"a"), (end - 2, b"b")], 0, end))
    assert sum(map(len, pieces)) == end
    assert max(map(len, pieces)) <= 1 << 20
