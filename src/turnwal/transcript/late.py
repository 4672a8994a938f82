"""Outcomes that were learnt after the results of their calls (F16), by call.

Promises: of several the newest that is still visible counts; one that a summary hides is told no more.

Does not: say whether an outcome is a note or stands in place of the result.
"""

from collections.abc import Container, Mapping
from typing import Any, Final

from turnwal.core import values
from turnwal.core.line import Event

_WORDS: Final = {"happened": "it happened", "did_not_happen": "it did not happen"}


class Late:
    """The outcomes of one run that came behind a result."""

    def __init__(self) -> None:
        """Begin with none."""
        self._seqs: dict[int, list[int]] = {}
        """By key of the call: the seqs of its outcomes, in order."""
        self._keys: dict[int, int] = {}
        """The other way round."""

    def add(self, key: int, seq: int) -> None:
        """Take in that the event of a seq says how a call ended."""
        self._seqs.setdefault(key, []).append(seq)
        self._keys[seq] = key

    def newest(self, key: int, visible: Container[int]) -> int:
        """The seq of the newest outcome of a call that is visible, or -1."""
        return next((seq for seq in reversed(self._seqs.get(key, ())) if seq in visible), -1)

    def told_by(self, seq: int) -> int | None:
        """The key of the call whose outcome the event of a seq says, or None."""
        return self._keys.get(seq)


def outcome_parts(event: Event) -> list[Mapping[str, Any]]:
    """What a model reads of an outcome that was learnt after the result (F16)."""
    said = _WORDS.get(str(event.data.get("outcome")), "it is still unknown whether it happened")
    name = values.name_of(event.data) or "this call"
    about = f"{name} (call id {values.id_of(event.data)})" if values.id_of(event.data) else name
    parts = event.data.get("parts")
    return [
        {"type": "text", "content": f"Learnt later about {about}: {said}."},
        *(parts if isinstance(parts, list) else ()),
    ]


def is_failure(event: Event) -> bool:
    """Whether a result that an outcome stands for is an error: it did not happen, or nobody knows."""
    return event.data.get("outcome") != "happened"
