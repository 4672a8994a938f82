"""Replies and histories of the Mistral chat completions API, as events."""

from typing import Any, Final

from turnwal.transcript.chat.parse import Block, Form, media, text
from turnwal.transcript.chat.stream import assembled, shown
from turnwal.transcript.mistral.render import TARGET

__all__ = ["assembled", "history", "reply_data", "shown"]


def _thinking(block: Block) -> dict[str, Any]:
    told = "".join(inner["text"] for inner in block["thinking"] if inner.get("type") == "text")
    return {"type": "reasoning", "content": told} if told else {"type": "reasoning"}


def _image(block: Block) -> dict[str, Any]:
    image = block["image_url"]
    return media(image if isinstance(image, str) else image["url"], "image")


def _document(block: Block) -> dict[str, Any]:
    return media(block["document_url"], "document")


def _sound(block: Block) -> dict[str, Any]:
    sound = block["input_audio"]
    if sound.startswith(("https:", "data:")):
        return media(sound, "audio")
    return {"type": "blob", "modality": "audio", "content": sound}


def _file(block: Block) -> dict[str, Any]:
    return {"type": "file", "modality": "document", "file_id": block["file_id"]}


_FORM: Final = Form(
    TARGET,
    {
        "text": text,
        "thinking": _thinking,
        "image_url": _image,
        "document_url": _document,
        "input_audio": _sound,
        "file": _file,
    },
)
reply_data: Final = _FORM.reply_data
history: Final = _FORM.history
