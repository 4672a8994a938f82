"""Whether a provider takes an array of messages as it stands, and the array as it would be taken.

What a provider refuses is the transcript's part (`transcript/check.py`). Of its rules those count here that are about
calls and their results: a result that stands apart from its call is one that is there, and is refused all the same
(F09).

Promises: nothing is lost. What could be sent only without a part of it is refused by name.
"""

from collections.abc import Set as AbstractSet
from importlib import import_module
from typing import Any, Final

from turnwal.core.errors import InvalidEvent, Refused
from turnwal.transcript.check import Problem
from turnwal.transcript.parsing import Log
from turnwal.transcript.patching import patch
from turnwal.transcript.render import render
from turnwal.transcript.targets import package_of

PAIRING: Final = frozenset(
    {"unanswered_call", "orphan_result", "duplicate_result", "results_apart", "results_not_first"}
)
"""The rules that every provider has about calls and their results."""

_KEPT: Final = frozenset({"unanswered_call", "id_rewritten", "signature_bypassed"})
"""What may be changed on the way: nothing is lost by it."""


def first_problem(target: str, messages: list[Any], codes: AbstractSet[str] = PAIRING) -> Problem | None:
    """The first of these rules that decoded JSON breaks, or None."""
    rules = import_module(f"{package_of(target)}.check")
    return next((problem for problem in rules.problems(messages) if problem.code in codes), None)


def sendable(target: str, messages: list[Any], name: str, codes: AbstractSet[str] = PAIRING) -> list[Any]:
    """The messages with every call answered, each result where its provider wants it. Raises `Refused`.

    Where answers alone are missing, all other messages are the ones that were given.
    """
    patched = patch(target, messages)
    if first_problem(target, patched, codes) is None:
        return patched
    made, why = _rendered(target, messages, codes)
    if made is None:
        # a call that is asked for again while it is unanswered is the same one, and another once it has its answer
        made, _ = _rendered(target, patched, codes)
    if made is None:
        raise _refused(name, why, target)
    return made


def _rendered(target: str, messages: list[Any], codes: AbstractSet[str]) -> tuple[list[Any] | None, str]:
    """The messages as they would be sent, or None and why something would be lost by it."""
    try:
        made = render(Log.seed(target, messages), target)
    except InvalidEvent as error:
        return None, error.message
    lost = [finding for finding in made.findings if finding.code not in _KEPT]
    if lost or made.system is not None:
        return None, lost[0].message if lost else "text of the system stands among its messages"
    left = first_problem(target, made.messages, codes)
    return (made.messages, "") if left is None else (None, f"{left.position}: {left.message} ({left.code})")


def _refused(name: str, why: str, target: str) -> Refused:
    return Refused(
        f"no order of its messages is one that the provider takes: {why}",
        action="repair",
        subject=name,
        hint=f"`turnwal import` takes it over, and `export --to {target}` gives a request without it",
    )
