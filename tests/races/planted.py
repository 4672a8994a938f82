"""Stores with a planted defect. A campaign that does not catch a planted defect proves nothing.

What they open lives in a process that was forked for it, so nothing of it is put back.
"""

from collections.abc import Callable, Sequence
from unittest import mock

from tests.races.places import Place
from turnwal.core.chain import Head
from turnwal.store.lifelock import LifeLock
from turnwal.store.protocol import Store
from turnwal.store.rows import end_of
from turnwal.store.sqlite import SqliteClaim, SqliteStore
from turnwal.store.sqlite_append import LAST

FORGETFUL_AFTER = 3


def unfenced(place: Place, *, locked: bool = False) -> Callable[[], Store]:
    """SQLite without epochs, as many such stores are: an append compares the end of the session and nothing else."""

    def append(claim: SqliteClaim, lines: Sequence[bytes], after: Head) -> None:
        store = claim._store
        assert isinstance(store, SqliteStore)
        ((claim._epoch,),) = store._reader.rows("SELECT epoch FROM session WHERE number = ?", (claim._number,))
        last = store._reader.rows(LAST, (claim._number,))
        claim._size, claim._head = end_of(*last[0]) if last else 0, None
        real(claim, lines, after)

    def opened() -> Store:
        mock.patch.object(SqliteClaim, "append", append).start()
        if not locked:
            mock.patch.object(LifeLock, "take", return_value=True).start()
        return place.open()

    real = SqliteClaim.append
    return opened


def forgetful(place: Place) -> Callable[[], Store]:
    """SQLite that acknowledges the last appends of an ownership without writing them."""
    appends: dict[int, int] = {}

    def append(claim: SqliteClaim, lines: Sequence[bytes], after: Head) -> None:
        appends[claim._epoch] = appends.get(claim._epoch, 0) + 1
        if appends[claim._epoch] <= FORGETFUL_AFTER:
            real(claim, lines, after)

    def opened() -> Store:
        mock.patch.object(SqliteClaim, "append", append).start()
        return place.open()

    real = SqliteClaim.append
    return opened
