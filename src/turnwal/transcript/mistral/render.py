"""Requests of the Mistral chat completions API.

Rules, with their sources, beside those of `transcript/chat/render.py`. The order of roles is that of Mistral's own
validator (mistralai/mistral-common, protocol/instruct/validator.py), read up to version 1.13; where a later version
allows more, the models of before still refuse it, so the stricter rule holds.
- behind `tool` stands `tool` or `assistant`: "Unexpected role 'user' after role 'tool'" (MI1, F32;
  mistralai/mistral-common#169); a bridge is put there that no log holds;
- behind `assistant` stands no `system` ("Unexpected role 'system' after role 'assistant'"): such text is the user's;
- the last message is not the assistant's, unless it is a prefix, and a prefix is the last ("Expected last role User or
  Tool (or Assistant with prefix True) for serving but got assistant"; "… with prefix True must be last message");
- the first message asks for no calls (the validator counts calls from the second on, so the results of the first are
  "Unexpected tool call id"), and a message alone is no prefix;
- equal neighbours are allowed, and joined by the server itself (protocol/instruct/normalize.py, "Aggregate consecutive
  messages of the same role"), so nothing is merged here;
- as many results as calls, with their ids ("Not the same number of function calls and responses"; "Unexpected tool call
  id"), an id being nine letters and digits (F40; "Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9");
- `thinking` goes back as it came to the model that wrote it (docs.mistral.ai, "Reasoning"), else it stays out.

Content and calls may stand together: the service, which once said "either content or tool_calls, but not both", has
said "but not none" since 2025 (OpenHands/OpenHands#8685); that validator still refuses both for tokenizers up to v3.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from turnwal.transcript.binary import base64_of
from turnwal.transcript.chat.render import Chat, content_of
from turnwal.transcript.ids import IdRule
from turnwal.transcript.message import Asked
from turnwal.transcript.target import Notes, Wire
from turnwal.transcript.words import BRIDGE

_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_IMAGE_CHARS_MAX: Final = 10_000_000 * 4 // 3
"""Base64 of one image (docs.mistral.ai, "Vision": 10 MB a file)."""

_GIVEN: Final = {
    "text": "text",
    "image_url": "image_url",
    "document_url": "document_url",
    "input_audio": "input_audio",
    "file": "file_id",
    "reference": "reference_ids",
    "resource": "uri",
    "resource_link": "uri",
}
_THINKING: Final = {"thinking": "thinking"}


class Mistral(Chat):
    """Mistral chat completions."""

    name: ClassVar[str] = "mistral"
    ids: ClassVar[IdRule] = IdRule(re.compile(r"[a-zA-Z0-9]{9}"), "", 9)
    roles: ClassVar[Mapping[str, frozenset[str]]] = {
        "system": frozenset({"system"}),
        "user": frozenset({"user"}),
        "assistant": frozenset({"assistant"}),
        "note": frozenset(),
    }
    told: ClassVar[Mapping[str, str]] = {"text": "text"} | _THINKING
    given: ClassVar[Mapping[str, str]] = _GIVEN
    said: ClassVar[Mapping[str, str]] = _GIVEN | _THINKING
    only_calls: ClassVar[str | None] = ""

    @staticmethod
    def media(part: Mapping[str, Any]) -> Wire | None:
        """A chunk for an image, a sound or a document."""
        kind, mime, content, uri = part.get("type"), part.get("mime_type"), base64_of(part), part.get("uri")
        if kind == "uri" and isinstance(uri, str) and uri.startswith(("https://", "data:")):
            field = _URLS.get(str(part.get("modality")))
            return None if field is None else {"type": field, field: uri}
        if content is None:
            return None
        if str(mime) in _IMAGES and len(content) <= _IMAGE_CHARS_MAX:
            return {"type": "image_url", "image_url": f"data:{mime};base64,{content}"}
        if mime == "application/pdf":
            return {"type": "document_url", "document_url": f"data:{mime};base64,{content}"}
        return {"type": "input_audio", "input_audio": content} if part.get("modality") == "audio" else None

    def arguments(self, asked: Asked, came: object, seq: int, notes: Notes) -> Any:
        """The arguments of a call: text, or an object where Mistral sent one."""
        return came if isinstance(came, dict) else super().arguments(asked, came, seq, notes)

    def finish(self, messages: list[Wire], notes: Notes) -> list[Wire]:
        """The list in the order of roles that Mistral takes; what stands before a place decides about it alone."""
        ordered: list[Wire] = []
        role = None
        for message in messages:
            if role == "tool" and message["role"] not in ("tool", "assistant"):
                _bridge(ordered, "assistant", "a result is followed by the assistant", notes)
                role = "assistant"
            if role == "assistant" and message["role"] == "system":
                notes.add("system_in_place", f"messages[{len(ordered)}]: system text behind an answer is the user's")
                if not _to_user(message, notes):
                    continue
            if message.get("prefix") and message is not messages[-1]:
                notes.add("part_left_out", f"messages[{len(ordered)}]: only the last message is a prefix")
                del message["prefix"]
            ordered.append(message)
            role = message["role"]
        if role == "assistant" and not ordered[-1].get("prefix"):
            _bridge(ordered, "user", "the last message is not the assistant's", notes)
        if ordered and ordered[0]["role"] == "assistant" and (len(ordered) == 1 or ordered[0].get("tool_calls")):
            ordered.insert(0, {"role": "user", "content": BRIDGE})
            notes.add("bridge_added", "messages[0]: the list begins with no calls, and with no prefix")
        return ordered


TARGET: Final = Mistral

_URLS: Final = {"image": "image_url", "document": "document_url", "audio": "input_audio"}


def _to_user(message: Wire, notes: Notes) -> bool:
    """Make a system message one of the user, who holds no thinking; returns whether anything is left of it."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    told = [block for block in blocks if block["type"] != "thinking"]
    if len(told) < len(blocks):
        notes.add("reasoning_left_out", "thinking in system text does not stand in the user's")
    if not told:
        notes.add("empty_message", "nothing of the system text can be sent")
        return False
    message |= {"role": "user", "content": content_of(told)}
    return True


def _bridge(messages: list[Wire], role: str, why: str, notes: Notes) -> None:
    notes.add("bridge_added", f"messages[{len(messages)}]: {why}")
    messages.append({"role": role, "content": BRIDGE})
