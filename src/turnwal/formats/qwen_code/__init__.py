"""Transcripts of Qwen Code: `~/.qwen/projects/<slug>/chats/<session id>.jsonl`.

Source: QwenLM/qwen-code, `packages/core/src/services/chatRecordingService.ts` (records and their subtypes) and its
converters, which leave calls without a response out of a request; its issue #9573 for the response that it invents.
A transcript has no dispatch records.
"""

from typing import Any, Final

from turnwal.formats.format import Format, Sample
from turnwal.formats.qwen_code.reading import SUBTYPES, TYPES, read
from turnwal.formats.qwen_code.repair import repair


def _recognises(sample: Sample) -> bool:
    """Records of a tree whose messages have the parts of Gemini's API, or system records of this tool alone."""
    if sample.kind != "lines":
        return False
    found = [record for record in sample.records if isinstance(record.get("uuid"), str)]
    known = any(record.get("type") in TYPES for record in found)  # others may be of a later version
    if not known or not all("sessionId" in record for record in found):
        return False
    said = [record["message"] for record in found if isinstance(record.get("message"), dict)]
    if said:
        return all(isinstance(message.get("parts"), list) and "content" not in message for message in said)
    return any(_is_system(record) for record in found)


def _is_system(record: dict[str, Any]) -> bool:
    return record.get("type") == "system" and record.get("subtype") in SUBTYPES and "systemPayload" in record


FORMAT: Final = Format(
    name="qwen_code",
    title="Qwen Code",
    on_resume="hides",
    resume_text="Qwen Code leaves a call without a response out of what the model sees, and shows it as failed.",
    recognises=_recognises,
    read=read,
    repair=repair,
    places=("$QWEN_RUNTIME_DIR/projects", "$QWEN_HOME/projects", "~/.qwen/projects"),
)
