"""Replies and histories of OpenAI Chat Completions, as events."""

from typing import Any, Final

from turnwal.transcript.chat.parse import Block, Form, media, text
from turnwal.transcript.chat.stream import assembled, shown
from turnwal.transcript.openai_chat.render import TARGET

__all__ = ["assembled", "history", "reply_data", "shown"]

_SOUNDS: Final = {"wav": "audio/wav", "mp3": "audio/mpeg"}


def _refusal(block: Block) -> dict[str, Any]:
    return {"type": "text", "content": block["refusal"]}


def _image(block: Block) -> dict[str, Any]:
    return media(block["image_url"]["url"], "image")


def _sound(block: Block) -> dict[str, Any]:
    sound = block["input_audio"]
    mime = _SOUNDS.get(sound["format"], f"audio/{sound['format']}")
    return {"type": "blob", "modality": "audio", "mime_type": mime, "content": sound["data"]}


def _file(block: Block) -> dict[str, Any]:
    file = block["file"]
    if isinstance(file.get("file_data"), str):
        return media(file["file_data"], "document")
    return {"type": "file", "modality": "document", "file_id": str(file.get("file_id", ""))}


_FORM: Final = Form(
    TARGET, {"text": text, "refusal": _refusal, "image_url": _image, "input_audio": _sound, "file": _file}
)
reply_data: Final = _FORM.reply_data
history: Final = _FORM.history
