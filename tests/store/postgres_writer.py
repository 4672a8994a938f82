"""A process that owns sessions in PostgreSQL: `python -m tests.store.postgres_writer URL SESSION APPENDS LEASE_S`.

Says `ready` when it owns the session, appends until it has done so APPENDS times, and ends with what stopped it: `done`
or the code of an error.
"""

import sys
from contextlib import closing

from tests.store.building import batch_behind, head_of
from turnwal.core.chain import EMPTY, Head
from turnwal.core.errors import TurnwalError
from turnwal.store.postgres import PostgresClaim, PostgresStore
from turnwal.store.protocol import Record


class Writer:
    """An owner that appends batch after batch."""

    def __init__(self, store: PostgresStore, session: str = "s", *, wait: float = 0.0) -> None:
        self.claim: PostgresClaim = store.claim(session, wait=wait)
        self.head: Head = EMPTY
        for found in store.read(session):
            assert isinstance(found, Record)
            self.head = head_of([found.line])

    def write(self, count: int = 1) -> None:
        lines = batch_behind(self.head, count)
        self.claim.append(lines, self.head)
        self.head = head_of(lines)


def main(url: str, session: str, appends: int, lease_s: float) -> str:
    with closing(PostgresStore(url, lease_s=lease_s)) as store:
        try:
            writer = Writer(store, session, wait=50)
            print("ready", flush=True)
            for _ in range(appends):
                writer.write()
        except TurnwalError as error:
            return error.code
        return "done"


if __name__ == "__main__":
    print(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])), flush=True)
