"""The stores that agents are killed on, each empty at first.

What a store holds is read here without any code of turnwal. No connection to a database is carried over a fork: whoever
looks opens the store, looks, and closes it; a child opens its own.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final, NamedTuple

import apsw
import psycopg

from tests.crash.forking import without_threads
from tests.store.server import fresh_schema
from turnwal.session.sessions import Sessions
from turnwal.store.protocol import Store
from turnwal.store.urls import open_store

LEASE_S: Final = 1.0
"""So short that the dead of PostgreSQL are succeeded soon; so long that a machine that is busy renews in time."""


class Place(NamedTuple):
    """One store and a directory for what is kept outside it."""

    name: str
    root: Path
    url: str
    options: Mapping[str, Any]
    make: Callable[..., Store]
    """A store of it, as `url` and `options` say; a planted defect stands here in its place."""
    bytes_of: Callable[[str], bytes]
    """What is stored of a session, line by line, each with its newline; nothing where there is no such session."""
    life_s: float
    """How long a life lasts at most."""
    recovery_s: float
    """Within which a recovery is killed."""
    bury: Callable[[], None] = lambda: None
    """Do what time would: end the leases of the dead. Only to be called while nobody lives."""

    @contextmanager
    def sessions(self) -> Iterator[Sessions]:
        """The sessions for a block, behind which this process may fork again."""
        with closing(Sessions(self.make())) as sessions:
            yield sessions
        without_threads()


@contextmanager
def files(root: Path) -> Iterator[Place]:
    directory = root / "sessions"

    def bytes_of(session: str) -> bytes:
        path = directory / f"{session}.jsonl"
        return path.read_bytes() if path.exists() else b""

    yield _place("file", root, str(directory), bytes_of, life_s=0.09, recovery_s=0.004)


@contextmanager
def sqlite(root: Path) -> Iterator[Place]:
    path = root / "agents.db"
    yield _place("sqlite", root, f"sqlite:{path}", lambda session: _rows(path, session), life_s=0.12, recovery_s=0.015)


@contextmanager
def postgres(root: Path) -> Iterator[Place]:
    statement = (
        "SELECT line FROM turnwal_line JOIN turnwal_session ON turnwal_line.session = turnwal_session.number "
        "WHERE turnwal_session.id = %s ORDER BY position"
    )
    with fresh_schema() as url:

        def bytes_of(session: str) -> bytes:
            with psycopg.connect(url) as connection:
                return b"".join(line + b"\n" for (line,) in connection.execute(statement, (session.encode(),)))

        def bury() -> None:
            with psycopg.connect(url) as connection:
                connection.execute("UPDATE turnwal_lease SET expires = CURRENT_TIMESTAMP")

        place = _place("postgres", root, url, bytes_of, life_s=0.25, recovery_s=0.04, lease_s=LEASE_S)
        yield place._replace(bury=bury)


PLACES: Final[Mapping[str, Callable[[Path], AbstractContextManager[Place]]]] = {
    "file": files,
    "sqlite": sqlite,
    "postgres": postgres,
}


@contextmanager
def place_in(name: str, root: Path | None = None) -> Iterator[Place]:
    """A store, in a directory of its own unless one is given; whoever uses it removes it."""
    with PLACES[name](Path(mkdtemp(prefix=f"turnwal-{name}-")) if root is None else root) as place:
        yield place


def _place(
    name: str,
    root: Path,
    url: str,
    bytes_of: Callable[[str], bytes],
    *,
    life_s: float,
    recovery_s: float,
    **options: Any,
) -> Place:
    def make(**more: Any) -> Store:
        return open_store(url, **{**options, **more})

    return Place(name, root, url, options, make, bytes_of, life_s, recovery_s)


def _rows(path: Path, session: str) -> bytes:
    """The lines of a session in a SQLite file, through a connection that can neither write nor checkpoint."""
    if not path.exists():
        return b""
    statement = (
        "SELECT line FROM line JOIN session ON line.session = session.number WHERE session.id = ? ORDER BY position"
    )
    connection = apsw.Connection(f"file:{path}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        connection.set_busy_timeout(10_000)
        if not connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'line'").get:
            return b""
        return b"".join(line + b"\n" for (line,) in connection.execute(statement, (session.encode(),)))
    except apsw.ReadOnlyError as error:
        # a reader may not undo what a death left of the making of the file; nothing was committed yet
        if getattr(error, "extendedresult", 0) != apsw.SQLITE_READONLY_ROLLBACK:
            raise
        return b""
    finally:
        connection.close(True)
