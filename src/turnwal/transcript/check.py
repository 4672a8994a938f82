"""Checking: what a provider would refuse of a list of messages, whoever made it.

Promises: every rule that is known is looked at, and each break is said with its position; nothing is raised for odd
messages, and nothing changed. It shares no code with rendering: each holds the other.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from math import isfinite
from typing import Any, Final

from turnwal.core.errors import InvalidEvent
from turnwal.transcript.plain import opened
from turnwal.transcript.targets import package_of

CODES: Final = {
    "bad_arguments": "the arguments of a call are not what the provider takes",
    "bad_id": "a call id is empty, too long, or has characters that are not allowed",
    "bad_name": "the name of a tool is empty, too long, or has characters that are not allowed",
    "bad_shape": "a message or a part of it has not the form that the provider knows",
    "duplicate_id": "two calls of the request have the same id",
    "duplicate_name": "two documents of the request have the same name",
    "duplicate_result": "a call has two results",
    "empty_message": "a message, or a text in it, is empty",
    "first_role": "the first message is not the user's",
    "last_role": "the last message is not one that the model can answer",
    "no_json": "a number is none that JSON can hold",
    "orphan_result": "a result has no call where it should have one",
    "reasoning_alone": "reasoning stands without what it belongs to, or the other way round",
    "reasoning_not_first": "words of another reply stand before the reasoning that a message has to begin with",
    "results_apart": "the results of one message's calls do not stand together",
    "results_not_first": "something stands before a result in its message",
    "role_order": "the roles do not follow each other as the provider wants",
    "surrogate": "a text holds half a character",
    "too_large": "an image or a document is larger than the provider takes",
    "unanswered_call": "a call has no result where it must have one",
    "unsigned_reasoning": "reasoning is not signed, or has lost what it held",
}
"""Every code of a broken rule, with what it means."""

_HALF: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule: its code, where, and a sentence."""

    code: str
    position: str
    """A path into the list that was given: `messages[3].content[0]`."""
    message: str

    def to_json(self) -> dict[str, Any]:
        """The problem as plain values."""
        return {"code": self.code, "position": self.position, "message": self.message}


def check(target: str, messages: object, *, system: object = None) -> list[Problem]:
    """Return every rule of a target that a list of request messages breaks, in the order of the list.

    `messages` is what the request has under `messages` (Responses: `input`, Gemini: `contents`). Raises `InvalidName`
    for an unknown target and `InvalidEvent` for what is no list.
    """
    return list(problems(target, messages, system=system))


def problems(target: str, messages: object, *, system: object = None) -> Iterator[Problem]:
    """The same one at a time, for a list that may break more rules than memory holds. Raises before the first."""
    package = package_of(target)
    if not isinstance(messages, list):
        raise InvalidEvent(
            f"a {type(messages).__name__} is no list of messages",
            action="check",
            subject=target,
            hint="pass what the request has under `messages`, `input` or `contents`",
        )
    rules = import_module(f"{package}.check")
    seen, system = opened(messages), opened(system)
    found: Iterator[Problem] = rules.problems(seen, system)
    return chain(_nothing(messages), found, _unsendable(seen, "messages"), _unsendable(system, "system"))


def _nothing(messages: list[Any]) -> Iterator[Problem]:
    if not messages:
        yield Problem("empty_message", "messages", "there is nothing to answer: a request has a message at least")


def _unsendable(value: Any, position: str) -> Iterator[Problem]:
    """What no request can hold wherever it stands, however deep: half a character, and a number that is none."""
    inside: list[Iterator[tuple[Any, str]]] = [iter([(value, position)])]
    while inside:
        found = next(inside[-1], None)
        if found is None:
            inside.pop()
            continue
        item, where = found
        if isinstance(item, str):
            if not _is_whole(item):
                yield Problem("surrogate", where, "it holds half a character, which no JSON parser must take")
        elif isinstance(item, float):
            if not isfinite(item):
                yield Problem("no_json", where, f"JSON cannot hold {item}")
        elif isinstance(item, dict):
            if not all(map(_is_whole, item)):
                yield Problem("surrogate", where, "a name in it holds half a character")
            inside.append(_fields(item, where))
        elif isinstance(item, list):
            inside.append(_items(item, where))


def _fields(value: dict[Any, Any], where: str) -> Iterator[tuple[Any, str]]:
    for name, inner in value.items():
        yield inner, f"{where}.{name}"


def _items(value: list[Any], where: str) -> Iterator[tuple[Any, str]]:
    for index, inner in enumerate(value):
        yield inner, f"{where}[{index}]"


def _is_whole(text: object) -> bool:
    return not isinstance(text, str) or text.isascii() or _HALF.search(text) is None
