"""Answering what is unanswered, for providers whose results stand first in the message behind the calls.

Promises: what has its answer is untouched; an answer that is lacking stands behind those that are there, before the
rest.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Wire = Mapping[str, Any]


class Shape(NamedTuple):
    """Where a provider's messages have their calls and results."""

    body: str
    """The field that holds the blocks of a message."""
    asker: str
    """The role that asks for calls; every other one answers."""
    answerer: str
    asked: Callable[[Wire], object]
    """What names the call that a block asks for; None for any other block."""
    answered: Callable[[Wire], object]
    """What names the call that a block answers; None for any other block."""
    answer: Callable[[Wire, str], Wire]
    """The block that answers a call with a text."""
    text: Callable[[str], Wire]
    """The block that a text alone stands for."""
    unanswered: Callable[[Sequence[Wire], Sequence[Wire]], list[Wire]] | None = None
    """Which of the calls none of the results answers, where names alone do not tell."""


def filled(messages: Sequence[Wire], shape: Shape, text: str) -> list[Wire]:
    """The messages, with an answer for each call that the message behind it does not answer."""
    made: list[Wire] = []
    calls: list[Wire] = []
    for message in messages:
        if calls and message.get("role") == shape.asker:
            made.append({"role": shape.answerer, shape.body: [shape.answer(call, text) for call in calls]})
            calls = []
        made.append(_with_answers(message, calls, shape, text) if calls else message)
        calls = []
        if message.get("role") == shape.asker:
            calls = [block for block in _blocks(message, shape) if shape.asked(block) is not None]
    if calls:
        made.append({"role": shape.answerer, shape.body: [shape.answer(call, text) for call in calls]})
    return made


def _with_answers(message: Wire, calls: Sequence[Wire], shape: Shape, text: str) -> Wire:
    blocks = _blocks(message, shape)
    results = [block for block in blocks if shape.answered(block) is not None]
    unanswered = _unanswered(calls, results, shape) if shape.unanswered is None else shape.unanswered(calls, results)
    if not unanswered:
        return message
    lacking = [shape.answer(call, text) for call in unanswered]
    others = [block for block in blocks if shape.answered(block) is None]
    return {**message, shape.body: [*results, *lacking, *others]}


def _unanswered(calls: Sequence[Wire], results: Sequence[Wire], shape: Shape) -> list[Wire]:
    there = Counter(shape.answered(block) for block in results)
    lacking = []
    for call in calls:
        name = shape.asked(call)
        if there[name] > 0:
            there[name] -= 1
        else:
            lacking.append(call)
    return lacking


def _blocks(message: Wire, shape: Shape) -> list[Wire]:
    body = message.get(shape.body)
    if isinstance(body, str):
        return [shape.text(body)] if body else []
    return [block for block in body if isinstance(block, Mapping)] if isinstance(body, list) else []
