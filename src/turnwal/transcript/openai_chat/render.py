r"""Requests of OpenAI Chat Completions.

Rules, with their sources, beside those of `transcript/chat/render.py`:
- "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'";
  "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'" (OC1);
- an id has at most 40 characters ("string too long. Expected a string with maximum length 40": F40, vercel/ai#5171;
  one report of 2026 names 64, and what fits 40 fits both);
- a name has the letters, digits, _ and - alone, at most 64; the name of a message no space and none of <|\/>;
- `tool` messages hold text alone (API reference, "Tool message"); images, sounds and files are the user's, of the types
  and sizes that "Images and vision" and "Audio and speech" name;
- text that a tool takes as it is (`custom` tools) is a call of its own type;
- `function_call` and the role `function`, which are deprecated, go back as calls and results of today;
- an earlier answer in sound goes back as its id ("Audio and speech"); there is no form for reasoning.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from turnwal.transcript.binary import base64_of
from turnwal.transcript.chat.render import Chat
from turnwal.transcript.ids import IdRule
from turnwal.transcript.message import Asked
from turnwal.transcript.target import Notes, Wire

_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_IMAGE_CHARS_MAX: Final = 20_000_000 * 4 // 3
"""Base64 of one image ("Images and vision": up to 20 MB an image)."""

_SOUNDS: Final = {
    "audio/wav": "wav",
    "audio/wave": "wav",
    "audio/x-wav": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}
_NAME: Final = re.compile(r"[\s<|\\/>]")
_NAME_CHARS_MAX: Final = 64


class OpenAIChat(Chat):
    """OpenAI Chat Completions."""

    name: ClassVar[str] = "openai-chat"
    ids: ClassVar[IdRule] = IdRule(re.compile(r"[^\x00-\x20\x7f\ud800-\udfff]{1,40}"), "call_", 24)
    roles: ClassVar[Mapping[str, frozenset[str]]] = {
        "system": frozenset({"system", "developer"}),
        "user": frozenset({"user"}),
        "assistant": frozenset({"assistant"}),
        "note": frozenset(),
    }
    told: ClassVar[Mapping[str, str]] = {"text": "text"}
    given: ClassVar[Mapping[str, str]] = {
        "text": "text",
        "image_url": "image_url",
        "input_audio": "input_audio",
        "file": "file",
    }
    said: ClassVar[Mapping[str, str]] = {"text": "text", "refusal": "refusal"}
    only_calls: ClassVar[str | None] = None

    @staticmethod
    def media(part: Mapping[str, Any]) -> Wire | None:
        """A block for an image, a sound or a PDF."""
        kind, mime, content, uri = part.get("type"), part.get("mime_type"), base64_of(part), part.get("uri")
        if kind == "uri" and isinstance(uri, str) and part.get("modality") == "image":
            known = uri.startswith(("https://", "http://", "data:image/"))
            return {"type": "image_url", "image_url": {"url": uri}} if known else None
        if content is None:
            return None
        if str(mime) in _IMAGES and len(content) <= _IMAGE_CHARS_MAX:
            return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{content}"}}
        if isinstance(mime, str) and mime in _SOUNDS:
            return {"type": "input_audio", "input_audio": {"data": content, "format": _SOUNDS[mime]}}
        if mime == "application/pdf":
            data = f"data:application/pdf;base64,{content}"
            return {"type": "file", "file": {"filename": "document.pdf", "file_data": data}}
        return None

    def call(self, asked: Asked, kept: Wire, name: str, seq: int, notes: Notes) -> Wire:
        """A call of a function, or of a custom tool where its input is free text."""
        if not asked.free_text:
            return {"type": "function"} | super().call(asked, kept, name, seq, notes)
        custom = kept.get("custom")
        custom = custom if isinstance(custom, dict) else {}
        return {"type": "custom", **kept, "custom": {**custom, "name": name, "input": asked.arguments}}

    def returned(self, message: Wire, seq: int, notes: Notes) -> Wire:
        """The message with a name that is allowed, its sound by id, and calls in the form of today."""
        message.pop("function_call", None)
        if message.get("tool_calls") == []:
            del message["tool_calls"]
        audio = message.get("audio")
        if isinstance(audio, dict):
            message["audio"] = {"id": audio["id"]} if "id" in audio else None
        name = message.get("name")
        if isinstance(name, str):
            allowed = _NAME.sub("_", name)[:_NAME_CHARS_MAX] or "unnamed"
            if allowed != name:
                notes.add("name_rewritten", f"the name {name!r:.80} of a message is {allowed} here", seq)
                message["name"] = allowed
        return message


TARGET: Final = OpenAIChat
