"""Images, files and text of the Responses API, as blocks and as neutral parts."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from turnwal.transcript.binary import base64_of
from turnwal.transcript.openai_responses.items import Item
from turnwal.transcript.target import Wire

_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_CHARS_MAX: Final = 20_000_000 * 4 // 3
"""Base64 of one image ("Images and vision": up to 20 MB an image) or file."""

_URLS: Final = ("image_url", "file_data", "file_url")


def media(part: Item) -> Wire | None:
    """A block for an image or a PDF, or None for what is not taken."""
    maker = _MAKERS.get(str(part.get("type")))
    return None if maker is None else maker(part)


def _of_file(part: Item) -> Wire | None:
    id = part.get("file_id")
    known = isinstance(id, str) and id.startswith("file-")
    return _referred("file_id", id, part.get("modality")) if known else None


def _of_uri(part: Item) -> Wire | None:
    uri = part.get("uri")
    if not isinstance(uri, str) or not uri.startswith(("https://", "http://")):
        return None
    if part.get("mime_type") == "application/pdf":
        return _referred("file_url", uri, "document")
    return _referred("image_url", uri, "image") if part.get("modality") == "image" else None


def _of_blob(part: Item) -> Wire | None:
    mime, content = part.get("mime_type"), base64_of(part)
    if content is None or len(content) > _CHARS_MAX:
        return None
    url = f"data:{mime};base64,{content}"
    if mime == "application/pdf":
        return {"type": "input_file", "filename": "document.pdf", "file_data": url}
    return _referred("image_url", url, "image") if str(mime) in _IMAGES else None


_MAKERS: Final[Mapping[str, Callable[[Item], Wire | None]]] = {"blob": _of_blob, "file": _of_file, "uri": _of_uri}


def _referred(field: str, to: object, modality: object) -> Wire:
    if modality == "image":
        return {"type": "input_image", "detail": "auto", field: to}
    return {"type": "input_file", field: to}


def part_of(block: Item) -> dict[str, Any]:
    """What a block says, in a neutral part."""
    text = block.get("text", block.get("refusal"))
    if isinstance(text, str):
        return {"type": "text", "content": text}
    kind = str(block.get("type"))
    modality = "image" if kind in ("input_image", "computer_screenshot") else "document"
    for field in _URLS:
        if isinstance(block.get(field), str):
            return _at(block[field], modality, field)
    if isinstance(block.get("file_id"), str):
        return {"type": "file", "modality": modality, "file_id": block["file_id"]}
    sound = block.get("input_audio")
    if isinstance(sound, dict) and isinstance(sound.get("data"), str):
        mime = f"audio/{sound.get('format', 'wav')}"
        return {"type": "blob", "modality": "audio", "mime_type": mime, "content": sound["data"]}
    return {"type": kind}


def _at(url: str, modality: str, field: str) -> dict[str, Any]:
    head, comma, content = url.partition(";base64,")
    if comma and head.startswith("data:") and ";" not in head:
        return {"type": "blob", "modality": modality, "mime_type": head.removeprefix("data:"), "content": content}
    if field == "file_data":
        return {"type": "blob", "modality": modality, "content": url}
    part = {"type": "uri", "modality": modality, "uri": url}
    if modality == "document":
        part["mime_type"] = "application/pdf"
    return part
