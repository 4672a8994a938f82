"""The rows of one thread, wherever they are kept.

Promises: no row is read that is not asked for; a value over the limit is not fetched.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

import apsw
import msgspec

from turnwal.formats.langgraph.decoding import BLOB_MAX, Sealed, value_of

Place = tuple[str, str]
"""A checkpoint: its namespace and its id."""


class Checkpoint(NamedTuple):
    """One checkpoint, decoded."""

    version: int
    channels: Mapping[str, Any]
    sealed: Mapping[str, Sealed]
    """The channels that cannot be decoded, with the reason."""
    metadata: Mapping[str, Any]


class Write(NamedTuple):
    """One value that a task wrote, which the next checkpoint takes up."""

    task: str
    path: str
    """How the task came to be: `~__pregel_push, 0000000001, …` for the second call that was sent. Empty where an older
    version did not record it."""
    channel: str
    type: str | None
    blob: bytes | None

    def value(self) -> Any:
        """The value. Raises `Sealed`."""
        return value_of(self.type, self.blob)


class Rows(Protocol):
    """The rows of one thread."""

    def order(self) -> Iterator[tuple[str, str, str | None]]:
        """The checkpoints in the order of their ids: namespace, id and parent."""
        ...

    def checkpoint(self, place: Place) -> Checkpoint:
        """One checkpoint. Raises `Sealed`."""
        ...

    def step(self, place: Place) -> tuple[str | None, int | None]:
        """Where a checkpoint came from (`input`, `loop`, `update`, `fork`) and the number of its step."""
        ...

    def writes(self, place: Place) -> Iterable[Write]:
        """What tasks wrote at a checkpoint: by task, the special ones in the order in which they were recorded."""
        ...


_ORDER: Final = (
    "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id FROM checkpoints WHERE thread_id = ? "
    "ORDER BY checkpoint_id, checkpoint_ns"
)
_CHECKPOINT: Final = (
    "SELECT type, CASE WHEN length(checkpoint) <= ? THEN checkpoint END, metadata FROM checkpoints "
    "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
)
_METADATA: Final = "SELECT metadata FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"


class SqliteRows:
    """The rows of a thread in a SQLite database."""

    def __init__(self, connection: apsw.Connection, thread: str) -> None:
        """Read through a connection, which stays open as long as this is used."""
        self._connection = connection
        self._thread = thread
        columns = connection.execute("SELECT name FROM pragma_table_info('writes')").fetchall()
        path = "task_path" if ("task_path",) in columns else "''"
        self._writes = (
            f"SELECT task_id, {path}, channel, type, CASE WHEN length(value) <= ? THEN value END "  # noqa: S608 - a name of ours
            "FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? "
            f"ORDER BY idx < 0, CASE WHEN idx < 0 THEN rowid END, {path}, task_id, idx"
        )

    def order(self) -> Iterator[tuple[str, str, str | None]]:
        """As `Rows` has it."""
        for ns, id, parent in self._connection.execute(_ORDER, (self._thread,)):
            yield str(ns), str(id), None if parent is None else str(parent)

    def checkpoint(self, place: Place) -> Checkpoint:
        """As `Rows` has it."""
        row = self._connection.execute(_CHECKPOINT, (BLOB_MAX, self._thread, *place)).fetchone()
        if row is None:
            raise Sealed("it is not there any more", "gap")
        type, blob, metadata = row
        value = value_of(type, _bytes(blob))
        if not isinstance(value, dict):
            raise Sealed("it is no checkpoint", "corrupt")
        channels = value.get("channel_values")
        return Checkpoint(
            version=value["v"] if isinstance(value.get("v"), int) else 1,
            channels=channels if isinstance(channels, dict) else {},
            sealed={},
            metadata=metadata_of(_bytes(metadata)),
        )

    def step(self, place: Place) -> tuple[str | None, int | None]:
        """As `Rows` has it."""
        row = self._connection.execute(_METADATA, (self._thread, *place)).fetchone()
        return step_of(metadata_of(_bytes(row[0])) if row else {})

    def writes(self, place: Place) -> Iterable[Write]:
        """As `Rows` has it."""
        for task, path, channel, type, blob in self._connection.execute(self._writes, (BLOB_MAX, self._thread, *place)):
            yield Write(str(task), str(path or ""), str(channel), type, _bytes(blob))


def metadata_of(value: object) -> Mapping[str, Any]:
    """The metadata of a checkpoint, which is JSON or already a dict."""
    if isinstance(value, (bytes, str)):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.MsgspecError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def step_of(metadata: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """The source and the step that metadata has."""
    source, step = metadata.get("source"), metadata.get("step")
    return (source if isinstance(source, str) else None), (step if isinstance(step, int) else None)


def _bytes(value: object) -> bytes | None:
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, bytes) else None
