"""What SQLite costs: one event beside a bare commit of one row, many sessions at once, and opening by stored length."""

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import apsw

from bench.appending import TEXT_BYTES, append
from bench.logs import TURN, events
from bench.rows import Row, interleaved_us
from turnwal.core.chain import EMPTY, Head, after
from turnwal.core.line import make
from turnwal.core.log import draft
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.store.sqlite import SqliteClaim, SqliteStore

FEW = 1_000
MANY = 100_000
SESSIONS = 64
TIMES = 200
ROUNDS = 15
_LINE = b"x" * 1000


def measure(folder: Path) -> Iterator[Row]:
    """The rows of this module."""
    folder.mkdir(exist_ok=True)
    store = SqliteStore(folder / "agents.db")
    yield from _durable(store, folder / "bare.db")
    yield _together(Sessions(store))
    store.close()
    yield _opening(folder / "opening")


def _bare(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    for setting in ("journal_mode = wal", "synchronous = full"):
        assert connection.execute(f"PRAGMA {setting}").get != "off"
    connection.execute("CREATE TABLE line (number INTEGER PRIMARY KEY, line BLOB NOT NULL) STRICT")
    return connection


def _durable(store: SqliteStore, path: Path) -> Iterator[Row]:
    bare = _bare(path)
    claim = store.claim("claim")
    session = Sessions(store).session("session").open()
    made = _lines(claim)

    def one_row() -> None:
        bare.execute("INSERT INTO line (line) VALUES (?)", (_LINE,))

    def appended() -> None:
        line, head = next(made)
        claim.append([line], head)

    def flushed() -> None:
        append(session)
        session.flush()

    reference, door, whole = interleaved_us([one_row, appended, flushed], TIMES, ROUNDS)
    bare.close()
    session.close()
    claim.release()
    beside = "a bare one-row commit"
    yield Row("one line made durable by the store, SQLite", door, beside, reference, "1.5 ×", door <= 1.5 * reference)
    yield Row("one event made durable, SQLite", whole, beside, reference, "1.5 ×", whole <= 1.5 * reference)


def _lines(claim: SqliteClaim) -> Iterator[tuple[bytes, Head]]:
    """Lines of 1 KB with the heads they build on, all made ahead: only storing them is measured."""
    head = EMPTY
    line, event = make(draft("session_start", {"id": "s", "format": 1}, run="main", time=1, ignorable=False, head=head))
    claim.append([line], head)
    head = after(line, event)
    data = {"parts": [{"type": "text", "content": "x" * TEXT_BYTES}]}
    made = []
    for _ in range(TIMES * ROUNDS):
        line, event = make(draft("user_message", data, run="main", time=1, ignorable=False, head=head))
        made.append((line, head))
        head = after(line, event)
    return iter(made)


def _together(sessions: Sessions) -> Row:
    each = 40

    def work(session: Session) -> None:
        for _ in range(each):
            append(session)
            session.flush()

    def spent(count: int, name: str) -> float:
        opened = [sessions.session(f"{name}-{number}").open() for number in range(count)]
        threads = [threading.Thread(target=work, args=(session,)) for session in opened]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - started
        for session in opened:
            session.close()
        return took / (count * each) * 1e6

    alone = sorted(spent(1, f"one-{n}") for n in range(9))[4]
    many = sorted(spent(SESSIONS, f"many-{n}") for n in range(5))[2]
    what = f"one event made durable, SQLite, {SESSIONS} sessions at once"
    return Row(what, many, "1 session", alone, "sessions share commits: below 1 ×", many < alone)


def _opening(folder: Path) -> Row:
    spent: dict[int, list[float]] = {FEW: [], MANY: []}
    folder.mkdir()
    for count in spent:
        store = SqliteStore(folder / f"{count}.db")
        for number in range(11):
            store.put(f"s{number}", _crashed(count // TURN))
        store.close()
    for number in range(11):
        for count, times in spent.items():
            sessions = Sessions(SqliteStore(folder / f"{count}.db"))
            times.append(_recovered_us(sessions, f"s{number}"))
            sessions.store.close()
    few, many = (sorted(times)[5] for times in spent.values())
    shutil.rmtree(folder)
    what = f"open and recover behind {MANY:,} closed events, SQLite"
    return Row(what, many, f"behind {FEW:,}", few, "1.2 ×", many <= 1.2 * few)


def _recovered_us(sessions: Sessions, id: str) -> float:
    started = time.perf_counter()
    with sessions.session(id) as session:
        assert session.recovered
    return (time.perf_counter() - started) * 1e6


def _crashed(turns: int) -> Iterator[bytes]:
    head = EMPTY
    for type, data in events(turns, one_turn=False, crashed=True):
        line, event = make(draft(type, data, run="main", time=1, ignorable=False, head=head))
        head = after(line, event)
        yield line
