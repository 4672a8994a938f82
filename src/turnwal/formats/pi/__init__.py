"""Sessions of pi: `~/.pi/agent/sessions/--<cwd>--/<time>_<uuid>.jsonl`.

Source: badlogic/pi-mono, `packages/coding-agent` (`docs/session.md`; `src/core/session-manager.ts`, versions 1 to 3)
and `packages/ai` (what is done about calls without results before a request). A session has no dispatch records.
"""

from typing import Any, Final

from turnwal.formats.format import Format, Sample
from turnwal.formats.pi.reading import ROLES, TYPES, read
from turnwal.formats.pi.repair import repair


def _recognises(sample: Sample) -> bool:
    """The header of this tool, or where that is lost, entries of it."""
    if sample.kind != "lines" or not sample.records:
        return False
    head, rest = sample.records[0], sample.records[1:]
    if head.get("type") == "session":
        named = isinstance(head.get("id"), str) and isinstance(head.get("timestamp"), str) and "cwd" in head
        # that of another tool counts its time, and has events with numbers behind it
        return named and "createdAt" not in head and not any("seq" in record for record in rest)
    return all(record.get("type") in TYPES for record in sample.records) and any(map(_is_message, sample.records))


def _is_message(record: dict[str, Any]) -> bool:
    message = record.get("message")
    return record["type"] == "message" and isinstance(message, dict) and message.get("role") in ROLES


FORMAT: Final = Format(
    name="pi",
    title="pi",
    on_resume="invents_answer",
    resume_text='pi answers a call without a result with "No result provided" in each request, without recording that.',
    recognises=_recognises,
    read=read,
    repair=repair,
    places=("$PI_CODING_AGENT_DIR/sessions", "~/.pi/agent/sessions"),
)
