"""Session logs of deepseek-harness: `<root>/--<cwd>--/<id>/session.jsonl`, `session.jsonl.zstd` by default.

Source: deepseek-ai/deepseek-harness at b150a551, `packages/core/session` (events, packed rows, recovery) and
`packages/session/session-persistence-jsonl` (frames, torn tails, what is refused), and its later versions 3 and 4.

This writer records each dispatch durably before the body runs, so that *not started* can be told from *unknown*; see
`reading.py` for when that is believed. Does not: read its SQLite backend, which no release ships switched on.
"""

from typing import Any, Final

from turnwal.formats.deepseek_harness.events import HEADER
from turnwal.formats.deepseek_harness.reading import read
from turnwal.formats.deepseek_harness.repair import repair
from turnwal.formats.format import Format, Sample


def _recognises(sample: Sample) -> bool:
    """The header, or where that is lost, events with a number, a time in milliseconds and a type of two words."""
    if sample.kind not in ("lines", "zstd") or not sample.records:
        return False
    head = sample.records[0]
    if head.get("type") == HEADER:
        return isinstance(head.get("version"), int) and isinstance(head.get("createdAt"), int)
    return all(map(_is_event, sample.records))


def _is_event(record: dict[str, Any]) -> bool:
    numbered = isinstance(record.get("seq"), int) and isinstance(record.get("time"), int)
    return numbered and "/" in str(record.get("type")) and isinstance(record.get("data"), dict) and "prev" not in record


FORMAT: Final = Format(
    name="deepseek_harness",
    title="deepseek-harness",
    on_resume="continues",
    resume_text="It answers the open calls of the last step with TOOL_NOT_STARTED or TOOL_OUTCOME_UNKNOWN, truthfully.",
    recognises=_recognises,
    read=read,
    repair=repair,
    places=("$DSH_HOME/sessions", "~/.dsh/sessions"),
)
