"""A history that a database is given: where the disk of its gathering place is full."""

import resource
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.building import file_of, grow, lines_of, log_of
from tests.store.processes import in_child
from tests.store.server import fresh_schema
from turnwal.core.errors import StoreFull
from turnwal.core.limits import PENDING_BYTES_MAX
from turnwal.core.log import Log
from turnwal.store.gathering import gathered
from turnwal.store.postgres import PostgresStore
from turnwal.store.protocol import Store
from turnwal.store.sqlite import SqliteStore


def big_log() -> Log:
    """More than is held in memory, and a short end that stays in the buffer of the file until it is read back."""
    log = log_of(1)
    grow(log, 20, "x" * (PENDING_BYTES_MAX // 8))
    grow(log, 1)
    return log


LIMITS = {"as it leaves memory": PENDING_BYTES_MAX // 2, "later": 2 * PENDING_BYTES_MAX, "where it is read back": -10}
"""How much fits: from the beginning, or up to so much before the end."""


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_a_full_gathering_place_is_named_and_nothing_is_stored(limit: int, tmp_path: Path) -> None:
    lines = lines_of(big_log())
    most = limit if limit > 0 else len(file_of(lines)) + limit

    def put_into(open_store: Callable[[], Store]) -> None:
        with closing(open_store()) as store:
            assert not store.probe("s").exists
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
            with pytest.raises(StoreFull, match="cannot be gathered in ") as caught:
                store.put("s", iter(lines))
            assert "TMPDIR" in caught.value.hint
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            assert not store.probe("s").exists
            store.put("s", iter(lines))
            assert [record.line for record in store.newest("s") if record] == lines[::-1]

    with fresh_schema() as url:
        assert in_child(lambda: put_into(lambda: PostgresStore(url))) == 0
    assert in_child(lambda: put_into(lambda: SqliteStore(tmp_path / "a.db"))) == 0


def test_what_is_gathered_is_given_back_line_by_line() -> None:
    log = big_log()
    with gathered(log.lines(), session="s", subject="store") as (rows, head):
        assert head == log.head
        assert list(rows) == [line + b"\n" for line in log.lines()]
