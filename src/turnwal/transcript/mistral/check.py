"""What the Mistral chat completions API refuses, beside the rules of `transcript/chat/check.py`.

Source: Mistral's own validator (mistralai/mistral-common, protocol/instruct/validator.py), in its serving mode, and its
words: "Unexpected role 'user' after role 'tool'", "Expected last role User or Tool (or Assistant with prefix True) for
serving", "Assistant message with prefix True must be last message", "Conversation must start with a user message or
system message", "Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9". Where its versions differ, the
stricter one counts: each stands for models that are served.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from turnwal.transcript.chat import check as chat
from turnwal.transcript.check import Problem

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
_AFTER: Final = {
    "system": frozenset({"system", "user", "assistant"}),
    "user": frozenset({"system", "user", "assistant"}),
    "assistant": frozenset({"user", "assistant", "tool"}),
    "tool": frozenset({"assistant", "tool"}),
}
"""For each role those that may stand behind it; a `tool` message without its call is an orphan, wherever it stands."""


def _more(messages: Sequence[Any], index: int) -> Iterator[Problem]:
    message, where = messages[index], f"messages[{index}]"
    before = chat.role_of(messages[index - 1]) if index else ""
    role = message["role"]
    if before in _AFTER and role != "tool" and role not in _AFTER[before]:
        yield Problem("role_order", where, f"the role {role!r} stands behind {before!r}")
    last = index == len(messages) - 1
    if role == "assistant" and bool(message.get("prefix")) is not last:
        if last:
            yield Problem("last_role", where, "the last message is the assistant's, and no prefix")
        else:
            yield Problem("role_order", f"{where}.prefix", "only the last message is a prefix")
    if index == 0 and role == "assistant" and (last or message.get("tool_calls")):
        yield Problem("first_role", where, "the first message asks for calls, or is alone and the assistant's")


_RULES: Final = chat.Rules(
    id=re.compile(r"[a-zA-Z0-9]{9}"),
    id_words="exactly 9 letters and digits",
    content={
        "system": {"text": "text", "thinking": "thinking"},
        "user": _GIVEN,
        "assistant": _GIVEN | {"thinking": "thinking"},
        "tool": {"text": "text"},
    },
    more=_more,
    objects=True,
)


def problems(messages: Sequence[Any], system: object = None) -> Iterator[Problem]:
    """Every broken rule, in the order of the messages."""
    return chat.problems(messages, system, _RULES)
