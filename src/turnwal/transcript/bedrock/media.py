"""Images and documents as Converse takes them.

Sources: API reference, ImageBlock, DocumentBlock, S3Location; Message ("Each image's size … must be no more than
3.75 MB", "Each document's size must be no more than 4.5 MB").
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from turnwal.transcript.binary import base64_of
from turnwal.transcript.target import Wire

IMAGES: Final = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
DOCUMENTS: Final = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}
NAME: Final = re.compile(r"(?=.{1,200}$)[a-zA-Z0-9()\[\]-]+(?: [a-zA-Z0-9()\[\]-]+)*")
"""A document's name."""

_IMAGE_CHARS_MAX: Final = 5 * 1024 * 1024
"""Base64 of 3.75 MB."""
_DOCUMENT_CHARS_MAX: Final = 6 * 1024 * 1024
"""Base64 of 4.5 MB."""


def media_of(part: Mapping[str, Any], name: str) -> Wire | None:
    """The block for a blob or an address in S3, or None for what Converse does not take.

    `name` is for a document that has none of its own.
    """
    media = part.get("mime_type")
    if not isinstance(media, str):
        return None
    source = _source(part, _IMAGE_CHARS_MAX if media in IMAGES else _DOCUMENT_CHARS_MAX)
    if source is None:
        return None
    if media in IMAGES:
        return {"image": {"format": IMAGES[media], "source": source}}
    if media in DOCUMENTS:
        own = part.get("name")
        called = own if isinstance(own, str) and NAME.fullmatch(own) else name
        return {"document": {"format": DOCUMENTS[media], "name": called, "source": source}}
    return None


def _source(part: Mapping[str, Any], chars_max: int) -> Wire | None:
    content, uri = base64_of(part), part.get("uri")
    if content is not None:
        return {"bytes": content} if len(content) <= chars_max else None
    if part.get("type") == "uri" and isinstance(uri, str) and uri.startswith("s3://"):
        return {"s3Location": {"uri": uri}}
    return None
