"""Google ADK (google/adk-python at 7c670f63, and 2.13.0 as it runs): the events of its session databases.

A database is that of a `DatabaseSessionService`, in its present schema or in the older one, or of a
`SqliteSessionService`. What is stored in PostgreSQL and elsewhere is not read.
"""

from typing import Final

from turnwal.formats.format import Format
from turnwal.formats.google_adk.answering import repair
from turnwal.formats.google_adk.reading import read
from turnwal.formats.google_adk.rows import recognises, sessions

FORMAT: Final = Format(
    name="google_adk",
    title="Google ADK",
    on_resume="hides",
    resume_text="ADK leaves such a call out of what the model sees, so the model forgets it.",
    recognises=recognises,
    read=read,
    sessions=sessions,
    repair=repair,
)
