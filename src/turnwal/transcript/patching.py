"""Patching: a list of messages that nobody kept a log of, with every unanswered call answered.

Promises: a call that has no result where its provider wants one is answered as of unknown outcome, in place; every
other message is the one that was given. It knows no turns and no dispatches: where there is a log, recover that.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from turnwal.core.errors import InvalidEvent
from turnwal.core.rules import UNKNOWN, Verdict, text_for_model
from turnwal.transcript.targets import package_of

LOST: Final = text_for_model(Verdict(UNKNOWN, None, 9, ()), "verify_first", interrupted=False)
"""What the model reads of a call whose result was never recorded."""


def patch(target: str, messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the messages of a request with an answer for each call that has none.

    A healthy list comes back equal. The messages that were given are not changed. Raises `InvalidName` for an unknown
    target and `InvalidEvent` for what is no list of messages.
    """
    package = package_of(target)
    if not isinstance(messages, (list, tuple)) or not all(isinstance(message, Mapping) for message in messages):
        raise InvalidEvent(
            "it is no list of messages", action="patch", subject=target, hint="pass the messages as a request has them"
        )
    patched: list[Any] = import_module(f"{package}.patch").patched(list(messages), LOST)
    return patched
