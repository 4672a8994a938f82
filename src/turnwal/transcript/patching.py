"""Patching: a list of messages that nobody kept a log of, with every unanswered call answered.

Promises: a call that has no result where its provider wants one is answered as of unknown outcome, in place; every
other message is the one that was given. It knows no turns and no dispatches: where there is a log, recover that.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from turnwal.core.errors import InvalidEvent
from turnwal.core.rules import UNKNOWN, Verdict, text_for_model
from turnwal.transcript.plain import opened
from turnwal.transcript.targets import package_of

LOST: Final = text_for_model(Verdict(UNKNOWN, None, 9, ()), "verify_first", interrupted=False)
"""What the model reads of a call whose result was never recorded."""


def patch(target: str, messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the messages of a request with an answer for each call that has none.

    Objects of the providers' packages are read as what they stand for. A healthy list comes back equal, and of any list
    the messages that needed nothing come back as they were given; none of them is changed. Raises `InvalidName` for an
    unknown target and `InvalidEvent` for what is no list of messages.
    """
    package = package_of(target)
    seen = [opened(message) for message in messages] if isinstance(messages, (list, tuple)) else [None]
    if not all(isinstance(message, Mapping) for message in seen):
        raise InvalidEvent(
            "it is no list of messages", action="patch", subject=target, hint="pass the messages as a request has them"
        )
    given = {id(view): message for view, message in zip(seen, messages, strict=True)}
    return [given.get(id(view), view) for view in import_module(f"{package}.patch").patched(seen, LOST)]
