"""opencode (anomalyco/opencode, formerly sst/opencode): its database, its older tree of JSON files, and its exports.

A call and its result are one part, overwritten in place: `pending` while the model writes it, `running` once it was
handed over (which may come before permission is granted), then `completed` or `error`. An error "Tool execution
aborted" was written by a later clean-up and says nothing of what happened (anomalyco/opencode#10616, #2720, #21489).
The second version of the database keeps messages in `session_message`: that they are there is seen, not what they say.
A repaired copy is an export, which `opencode import` takes; nothing is ever written into its database.

Sources: packages/opencode/src/{session,storage} of the repository; its `export` and `import` commands.
"""

from collections.abc import Iterator
from typing import Final

from turnwal.formats.format import Format, Found, Sample
from turnwal.formats.opencode.reading import read
from turnwal.formats.opencode.repair import repair
from turnwal.formats.opencode.stores import ids


def _recognises(sample: Sample) -> bool:
    if sample.kind == "sqlite":
        tables = sample.tables
        old = "data" in tables.get("part", ()) and "data" in tables.get("message", ())
        newer = tables.get("session_message", frozenset()) >= {"session_id", "type", "seq", "data"}
        return "id" in tables.get("session", ()) and (old or newer)
    if sample.kind == "directory":
        return sample.names >= {"session", "message", "part"}
    return len(sample.records) == 1 and _is_export(sample.records[0])


def _is_export(value: object) -> bool:
    info = value.get("info") if isinstance(value, dict) else None
    return (
        isinstance(info, dict)
        and str(info.get("id")).startswith("ses")
        and isinstance(value, dict)
        and "messages" in value
    )


def _sessions(sample: Sample) -> Iterator[Found]:
    for id in ids(sample):
        yield Found(FORMAT, sample.path, id)


FORMAT: Final = Format(
    name="opencode",
    title="opencode",
    on_resume="invents_answer",
    resume_text="opencode marks such a call as aborted, or leaves it running for ever.",
    recognises=_recognises,
    read=read,
    sessions=_sessions,
    repair=repair,
    places=("~/.local/share/opencode/opencode.db", "~/.local/share/opencode/storage", "$OPENCODE_DB"),
)
