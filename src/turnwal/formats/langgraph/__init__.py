"""LangGraph checkpoints: `checkpoints` and `writes` of a SQLite database, or the tables of a PostgreSQL one.

Source: langchain-ai/langgraph at f09cfe8f (MIT): `checkpoint-sqlite`, `checkpoint-postgres`, `checkpoint/serde`.
"""

from collections.abc import Iterator
from typing import Final

from turnwal.formats.database import reading
from turnwal.formats.format import Depth, Format, Found, Sample
from turnwal.formats.items import Item
from turnwal.formats.langgraph.copying import repair
from turnwal.formats.langgraph.rows import SqliteRows
from turnwal.formats.langgraph.thread import items

_CHECKPOINTS: Final = frozenset({"thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint"})
_WRITES: Final = frozenset({"thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "value"})


def _recognises(sample: Sample) -> bool:
    tables = sample.tables
    return tables.get("checkpoints", frozenset()) >= _CHECKPOINTS and tables.get("writes", frozenset()) >= _WRITES


def _sessions(sample: Sample) -> Iterator[Found]:
    with reading(sample.path) as connection:
        threads = connection.execute("SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id").fetchall()
    for (thread,) in threads:
        yield Found(FORMAT, sample.path, str(thread))


def _read(found: Found, depth: Depth) -> Iterator[Item]:
    thread = found.session or ""
    if found.url is not None:
        from turnwal.formats.langgraph.postgres import thread_rows  # noqa: PLC0415 - only who uses it pays for the driver

        with thread_rows(found.url, thread) as rows:
            yield from items(rows, thread, depth)
        return
    with reading(found.path) as connection:
        yield from items(SqliteRows(connection, thread), thread, depth)


def _serves(url: str) -> Iterator[Found]:
    from turnwal.formats.langgraph.postgres import threads  # noqa: PLC0415 - only who uses it pays for the driver

    for thread in threads(url):
        yield Found.at(FORMAT, url, thread)


FORMAT: Final = Format(
    name="langgraph",
    title="LangGraph",
    on_resume="runs_again",
    resume_text=(
        "invoke(None) runs the pending calls again; a new message leaves them unanswered, and the model refuses."
    ),
    recognises=_recognises,
    read=_read,
    sessions=_sessions,
    serves=_serves,
    repair=repair,
)
