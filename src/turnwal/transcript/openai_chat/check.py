r"""What OpenAI Chat Completions refuses, beside the rules of `transcript/chat/check.py`.

Sources: the API reference, "Create chat completion", and the words of its errors: "string too long. Expected a string
with maximum length 40", "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1",
"Invalid 'messages[0].name': string does not match pattern. Expected a string that matches the pattern
'^[^\s<|\\/>]+$'".
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from turnwal.transcript.chat import check as chat
from turnwal.transcript.check import Problem

_TEXT: Final = {"text": "text"}
_NAME: Final = re.compile(r"[^\s<|\\/>]{1,64}")


def _more(messages: Sequence[Any], index: int) -> Iterator[Problem]:
    message, where = messages[index], f"messages[{index}]"
    if message.get("tool_calls") == []:
        yield Problem("bad_shape", f"{where}.tool_calls", "the list of calls is empty")
    if message["role"] == "function" and message.get("name") is None:
        yield Problem("bad_name", f"{where}.name", "the result of a function has its name")
    name = message.get("name")
    if message["role"] != "tool" and name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        yield Problem("bad_name", f"{where}.name", r"a name is 1 to 64 characters, and no space, <, |, \, / or >")


_RULES: Final = chat.Rules(
    id=re.compile(r"(?s:.){1,40}"),
    id_words="1 to 40 characters",
    content={
        "system": _TEXT,
        "developer": _TEXT,
        "user": _TEXT | {"image_url": "image_url", "input_audio": "input_audio", "file": "file"},
        "assistant": _TEXT | {"refusal": "refusal"},
        "tool": _TEXT,
        "function": {},
    },
    more=_more,
    custom=True,
    speaking=frozenset({"refusal", "audio", "function_call"}),
)


def problems(messages: Sequence[Any], system: object = None) -> Iterator[Problem]:
    """Every broken rule, in the order of the messages."""
    return chat.problems(messages, system, _RULES)
