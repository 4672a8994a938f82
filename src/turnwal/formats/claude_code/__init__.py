"""Claude Code transcripts: `projects/<folder>/<session>.jsonl` below its configuration, with sub-agents beside.

The version in a record is that of the application and says nothing about the format, so that no file is too new: types
that are not known are counted and stepped over. The vendor calls the records internal and changes them at any time.
"""

from pathlib import Path
from typing import Any, Final

from turnwal.formats.claude_code.reading import read
from turnwal.formats.claude_code.records import CHAIN
from turnwal.formats.claude_code.repair import repair
from turnwal.formats.format import Format, Sample

__all__ = ["FORMAT"]


_BESIDE: Final = ("system", "progress", "attachment")


def _recognises(sample: Sample) -> bool:
    """A record of the tree with a message as this tool has it, or of the kinds that begin a session."""
    if sample.kind not in ("lines", "json"):
        return False
    records = [record for record in sample.records if isinstance(record, dict)]
    said = (record for record in records if record.get("type") not in _BESIDE)
    # what other tools write beside the conversation looks alike
    return any(map(_is_record, said)) or (bool(records) and all(map(_is_record, records)))


def _is_record(record: dict[str, Any]) -> bool:
    kind, message = record.get("type"), record.get("message")
    if kind == "summary":
        return isinstance(record.get("leafUuid"), str)
    if kind == "file-history-snapshot":
        return isinstance(record.get("messageId"), str) and "snapshot" in record
    if kind not in CHAIN or not isinstance(record.get("uuid"), str) or "parentUuid" not in record:
        return False
    if kind in ("user", "assistant"):
        return isinstance(message, dict) and message.get("role") == kind and "content" in message
    return isinstance(record.get("sessionId"), str) and "systemPayload" not in record


def _part_of(path: Path) -> bool:
    """Whether it is the transcript of a sub-agent whose session is there."""
    for folder in path.parents:
        if folder.name == "subagents":
            return folder.parent.with_name(f"{folder.parent.name}.jsonl").is_file()
    return False


FORMAT: Final = Format(
    name="claude_code",
    title="Claude Code",
    on_resume="unknown",
    resume_text="Older versions send the history as it is, and the provider refuses it; newer ones invent a result.",
    recognises=_recognises,
    read=read,
    part_of=_part_of,
    repair=repair,
    places=("$CLAUDE_CONFIG_DIR/projects", "~/.claude/projects"),
)
