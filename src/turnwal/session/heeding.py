"""What becomes of what is wrong with a request: nothing, a warning, or a refusal.

Promises: what is said is bounded, however much is wrong, and a warning names the line of the application.
"""

import inspect
import warnings
from collections.abc import Sequence
from typing import Final, Literal, get_args

from turnwal.core.errors import Refused

Heed = Literal["off", "warn", "strict"]
"""`off` does not look, `warn` warns with a `TranscriptWarning`, `strict` refuses."""

_SAID_MAX: Final = 5
_CHARS_MAX: Final = 300


class TranscriptWarning(UserWarning):
    """Something is wrong with the messages that an application is about to send."""


def check_heed(heed: object) -> None:
    """Return if that is a way to heed; raise `Refused` otherwise."""
    if heed not in get_args(Heed):
        hint = f"say one of: {', '.join(get_args(Heed))}"
        raise Refused(f"check={heed!r:.80} is unknown", action="check", subject="request", hint=hint)


def heed_all(heed: Heed, said: Sequence[str], *, action: str, subject: str, hint: str) -> None:
    """Warn of what is said, or raise `Refused` with it; nothing where nothing is said."""
    if not said:
        return
    told = [text if len(text) <= _CHARS_MAX else f"{text[:_CHARS_MAX]}…" for text in said[:_SAID_MAX]]
    if len(said) > _SAID_MAX:
        told.append(f"and {len(said) - _SAID_MAX} more")
    message = "; ".join(told)
    if heed == "strict":
        raise Refused(message, action=action, subject=subject, hint=hint)
    warnings.warn(f"{action} {subject}: {message}", TranscriptWarning, stacklevel=_depth())


def _depth() -> int:
    """How far up the caller of the library is, as `warnings.warn` counts from the function that asks this."""
    depth, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("turnwal."):
        depth, frame = depth + 1, frame.f_back
    return max(depth, 1)
