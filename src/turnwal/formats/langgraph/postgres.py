"""The rows of threads in a PostgreSQL database.

Source: `checkpoint-postgres` of langchain-ai/langgraph at f09cfe8f (`base.py`): plain values of channels stand in the
checkpoint, all others in `checkpoint_blobs` under the version that the checkpoint names.

Promises: one read-only transaction that sees one state of the database; no wait of more than `PATIENCE_MS`.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from turnwal.formats.database import Unreachable
from turnwal.formats.langgraph.decoding import BLOB_MAX, Sealed, value_of
from turnwal.formats.langgraph.rows import Checkpoint, Place, Write, metadata_of, step_of
from turnwal.store.urls import shown

PATIENCE_MS: Final = 30_000
"""How long one statement may take."""
_CONNECT_S: Final = 10


_IS_THERE: Final = "SELECT to_regclass('checkpoints') IS NOT NULL AND to_regclass('checkpoint_blobs') IS NOT NULL"
_THREADS: Final = "SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id"
_ORDER: Final = (
    "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id FROM checkpoints WHERE thread_id = %s "
    'ORDER BY checkpoint_id COLLATE "C", checkpoint_ns COLLATE "C"'
)
_CHECKPOINT: Final = (
    "SELECT checkpoint, metadata FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s"
)
_METADATA: Final = "SELECT metadata FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s"
_BLOBS: Final = (
    "SELECT channel, type, CASE WHEN length(blob) <= %s THEN blob END FROM checkpoint_blobs "
    "WHERE thread_id = %s AND checkpoint_ns = %s "
    "AND (channel, version) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"
)
_HAS_PATH: Final = (
    "SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('checkpoint_writes') "
    "AND attname = 'task_path' AND NOT attisdropped)"
)
_WRITES: Final = (
    "SELECT task_id, {path}, channel, type, CASE WHEN length(blob) <= %s THEN blob END FROM checkpoint_writes "
    "WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s "
    # the age of the transaction that wrote a row last says which came first; where a restored dump gives all the same,
    # an answer counts as later than the question, since a tool that got it may have run
    "ORDER BY idx < 0, CASE WHEN idx < 0 THEN -age(xmin) END, CASE WHEN idx < 0 THEN -idx END, {path}, task_id, idx"
)


def threads(url: str) -> list[str]:
    """The threads of a database, none where it has no such tables. Raises `Unreachable`."""
    with _reading(url) as connection:
        if not connection.execute(_IS_THERE).fetchone()[0]:
            return []
        return [str(thread) for (thread,) in connection.execute(_THREADS)]


@contextmanager
def thread_rows(url: str, thread: str) -> Iterator["PostgresRows"]:
    """The rows of a thread. Raises `Unreachable`, in the block too."""
    with _reading(url) as connection:
        yield PostgresRows(connection, thread)


class PostgresRows:
    """The rows of a thread in a PostgreSQL database."""

    def __init__(self, connection: Any, thread: str) -> None:
        """Read through a connection, which stays open as long as this is used."""
        self._connection = connection
        self._thread = thread
        (has_path,) = connection.execute(_HAS_PATH).fetchone()
        self._writes = _WRITES.format(path="task_path" if has_path else "''")

    def order(self) -> Iterator[tuple[str, str, str | None]]:
        """As `Rows` has it."""
        yield from self._connection.execute(_ORDER, (self._thread,))

    def checkpoint(self, place: Place) -> Checkpoint:
        """As `Rows` has it."""
        row = self._connection.execute(_CHECKPOINT, (self._thread, *place)).fetchone()
        if row is None:
            raise Sealed("it is not there any more", "gap")
        value = row[0]
        if not isinstance(value, dict):
            raise Sealed("it is no checkpoint", "corrupt")
        inline, versions = value.get("channel_values"), value.get("channel_versions")
        channels: dict[str, Any] = dict(inline) if isinstance(inline, dict) else {}
        sealed: dict[str, Sealed] = {}
        if isinstance(versions, dict):
            names, numbers = list(map(str, versions)), list(map(str, versions.values()))
            for channel, type, blob in self._connection.execute(
                _BLOBS, (BLOB_MAX, self._thread, place[0], names, numbers)
            ):
                if type == "empty":
                    continue
                try:
                    channels[channel] = value_of(type, blob)
                except Sealed as why:
                    sealed[channel] = why
        version = value.get("v")
        return Checkpoint(version if isinstance(version, int) else 1, channels, sealed, metadata_of(row[1]))

    def step(self, place: Place) -> tuple[str | None, int | None]:
        """As `Rows` has it."""
        row = self._connection.execute(_METADATA, (self._thread, *place)).fetchone()
        return step_of(metadata_of(row[0]) if row else {})

    def writes(self, place: Place) -> Iterable[Write]:
        """As `Rows` has it."""
        for row in self._connection.execute(self._writes, (BLOB_MAX, self._thread, *place)):
            yield Write(*row)


@contextmanager
def _reading(url: str) -> Iterator[Any]:
    """A connection in a read-only transaction. What the driver raises in the block becomes `Unreachable`."""
    try:
        import psycopg  # noqa: PLC0415 - only who reads a server pays for the driver
    except ImportError as error:
        raise Unreachable(
            f"the driver of PostgreSQL cannot be imported ({error}): pip install 'turnwal[postgres]'"
        ) from error
    try:
        with psycopg.connect(url, connect_timeout=_CONNECT_S, fallback_application_name="turnwal") as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            connection.execute(f"SET LOCAL statement_timeout = {PATIENCE_MS}".encode())
            yield connection
    except psycopg.Error as error:
        said = " ".join(shown(str(error)).split())
        raise Unreachable(f"the server could not be read ({said})") from error
