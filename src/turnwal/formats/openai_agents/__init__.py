"""Sessions of the OpenAI Agents SDK in SQLite: plain ones, those of SQLAlchemy, and those with branches.

Source: openai/openai-agents-python at 7f7a44f8 (MIT), run as 0.24. Where they are kept is the application's choice.
"""

from collections.abc import Iterator
from typing import Final

from turnwal.formats.database import reading
from turnwal.formats.format import Depth, Format, Found, Sample
from turnwal.formats.items import Item
from turnwal.formats.openai_agents.copying import repair
from turnwal.formats.openai_agents.session import items
from turnwal.formats.openai_agents.tables import are_there, table_of, tables_of


def _recognises(sample: Sample) -> bool:
    return sample.kind == "sqlite" and are_there(sample.tables)


def _sessions(sample: Sample) -> Iterator[Found]:
    with reading(sample.path) as connection:
        tables = tables_of(connection)
        found = [
            session if len(tables) == 1 else f"{table.name}/{session}"
            for table in tables
            for (session,) in connection.execute(
                f"SELECT DISTINCT session_id FROM {table.quoted} ORDER BY session_id"  # noqa: S608 - quoted
            )
        ]
    for session in found:
        yield Found(FORMAT, sample.path, str(session))


def _read(found: Found, depth: Depth) -> Iterator[Item]:
    with reading(found.path) as connection:
        table, session = table_of(connection, found)
        yield from items(connection, table, session, depth)


FORMAT: Final = Format(
    name="openai_agents",
    title="OpenAI Agents SDK",
    on_resume="hides",
    resume_text="The SDK leaves unanswered calls out of what the model sees, and says nothing.",
    recognises=_recognises,
    read=_read,
    sessions=_sessions,
    repair=repair,
)
