"""Rollouts of the Codex command line: `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-<time>-<uuid>.jsonl`, `.jsonl.zst` too.

Sources: openai/codex, `codex-rs/protocol` and `codex-rs/rollout` (line types, which events are persisted, history
modes), its issues #32653 (a missing output panics in debug builds) and #42088 (a call id must not be empty), and real
rollouts of versions 0.2 to 0.149.

A rollout has no dispatch records: `*_begin` events are never persisted. Its writer queues a call before it runs and
flushes without a sync, so that even a call that is not there may have run. An approval that was being asked for is not
recorded either: an unanswered call may have waited for a person.
"""

from typing import Final

from turnwal.formats.codex.reading import read
from turnwal.formats.codex.repair import repair
from turnwal.formats.codex.rollout import ITEMS, TYPES
from turnwal.formats.format import Format, Sample


def _recognises(sample: Sample) -> bool:
    """Lines with a known type and a payload, or the bare head and items of early versions."""
    if sample.kind not in ("lines", "zstd") or not sample.records:
        return False
    wrapped = [
        record
        for record in sample.records
        if isinstance(record.get("payload"), dict) and isinstance(record.get("timestamp"), str)
    ]
    if wrapped:
        return any(record.get("type") in TYPES for record in wrapped)
    head, rest = sample.records[0], sample.records[1:]
    return (
        "type" not in head
        and isinstance(head.get("id"), str)
        and isinstance(head.get("timestamp"), str)
        and ("instructions" in head or "git" in head)
        and all(record.get("type") in ITEMS or "record_type" in record for record in rest)
    )


FORMAT: Final = Format(
    name="codex",
    title="Codex",
    on_resume="invents_answer",
    resume_text='Codex answers a call without an output with "aborted" in each request, without having recorded it.',
    recognises=_recognises,
    read=read,
    repair=repair,
    places=("$CODEX_HOME/sessions", "$CODEX_HOME/archived_sessions", "~/.codex/sessions", "~/.codex/archived_sessions"),
)
