"""The bytes of a part, as base64 that every provider takes.

Promises: white space, which many encoders put in, is taken out, the alphabet of URLs becomes the usual one, and what
lacks its padding gets it; what holds nothing, or is no base64, is none: a provider refuses the whole request for it.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

_BASE64: Final = re.compile(r"[a-zA-Z0-9+/]+={0,2}")
_USUAL: Final = str.maketrans("-_", "+/")


def base64_of(part: Mapping[str, Any]) -> str | None:
    """The base64 of a blob; None for a part that is none, and for one whose content is empty or no base64."""
    content = part.get("content")
    if part.get("type") != "blob" or not isinstance(content, str):
        return None
    if len(content) % 4 == 0 and _BASE64.fullmatch(content):
        return content
    bare = "".join(content.split()).translate(_USUAL).rstrip("=")
    padded = bare + "=" * (-len(bare) % 4)
    return padded if _BASE64.fullmatch(padded) else None
