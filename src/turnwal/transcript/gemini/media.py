"""Images, sound and documents as Gemini takes them.

Sources: ai.google.dev, "Image understanding" (PNG, JPEG, WebP, HEIC, HEIF), "Document understanding", "Audio
understanding", "Video understanding", "File input methods" (100 MB inline in a request; public HTTPS addresses, `gs://`
and files of the Files API by `fileUri`), "Function calling" (media inside a function response).
"""

from collections.abc import Mapping
from typing import Any, Final

from turnwal.transcript.binary import base64_of
from turnwal.transcript.target import Wire

_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
_KINDS: Final = ("audio/", "video/", "text/")
_NESTED: Final = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
_CHARS_MAX: Final = 100 * 1024 * 1024
"""Base64 of one part; what is larger is refused with the whole request."""

_OWN: Final = (
    "https://generativelanguage.googleapis.com/",
    "https://www.youtube.com/",
    "https://youtu.be/",
)
"""Addresses whose kind Gemini knows."""


def media_of(part: Mapping[str, Any]) -> Wire | None:
    """The part of a content for a blob or an address, or None for what Gemini does not take."""
    media = part.get("mime_type")
    media = media if isinstance(media, str) and _is_taken(media) else None
    content, uri = base64_of(part), part.get("uri")
    if content is not None and media is not None:
        small = len(content) <= _CHARS_MAX
        return {"inlineData": {"mimeType": media, "data": content}} if small else None
    if part.get("type") == "uri" and isinstance(uri, str):
        if media is not None and uri.startswith(("https://", "gs://")):
            return {"fileData": {"mimeType": media, "fileUri": uri}}
        if "mime_type" not in part and uri.startswith(_OWN):
            return {"fileData": {"fileUri": uri}}
    return None


def nests(source: Wire) -> bool:
    """Whether media may stand inside a function response."""
    return source.get("inlineData", {}).get("mimeType") in _NESTED


def _is_taken(media: str) -> bool:
    return media in _IMAGES or media == "application/pdf" or media.startswith(_KINDS)
