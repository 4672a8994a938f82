"""Findings: what is wrong or odd in a history without being owed. They never raise and never block opening."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

from turnwal.core.limits import FINDINGS_PER_CODE_MAX

CODES: Final = {
    "clock_went_back": "an event is stamped earlier than the one before it; order comes from seq alone",
    "damage": "bytes of the log are no record",
    "dangling_attempt": "a repeated dispatch outside any turn has no outcome",
    "dangling_call": "a call of a closed turn, or outside any turn, has no result",
    "dispatch_without_request": "a call was dispatched that no message asked for by the end of its turn",
    "doubtful_call": "a call waits or was granted, and its dispatch or its answer may be among lost bytes",
    "duplicate_call": "a message repeats a call that was asked for before",
    "duplicate_result": "a call that has a result got another",
    "nested_turn": "a turn started while another of its run was open",
    "orphan_result": "a result fits no call that could be answered there",
    "partial_message": "text was shown while it streamed in, and no message took its place",
    "step_open_at_turn_end": "a turn ended while a step of it was open",
    "stray_step_end": "a step end closes no step",
    "stray_turn_end": "a turn end closes no turn",
    "turns_overlap": "a turn ended while one that started inside it was open",
    "unknown_call": "a result, approval or suspension names a call that its run does not have",
    "wrong_hint": "a boundary says other turns or waiting calls than the log shows; opening trusts it, so verify tells",
}
"""Every code, with what it means."""


class Finding(Struct, frozen=True, gc=False):
    """One finding: its code, the seqs it is about, and a sentence."""

    code: str
    seqs: tuple[int, ...]
    message: str

    def to_json(self) -> dict[str, Any]:
        """The finding as plain values."""
        return {"code": self.code, "seqs": list(self.seqs), "message": self.message}


@dataclass(slots=True)
class Findings:
    """A bounded collection: the first of each code are kept, the rest counted."""

    kept: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, code: str, seqs: tuple[int, ...], message: str) -> None:
        """Note one finding."""
        self.counts[code] += 1
        if self.counts[code] <= FINDINGS_PER_CODE_MAX:
            self.kept.append(Finding(code, seqs, message))

    def __iter__(self) -> Iterator[Finding]:
        """What was kept, in the order found, then one line for each code that has more."""
        yield from self.kept
        for code, count in sorted(self.counts.items()):
            if count > FINDINGS_PER_CODE_MAX:
                yield Finding(code, (), f"{count - FINDINGS_PER_CODE_MAX} more of this kind")

    def copy(self) -> "Findings":
        """An independent copy."""
        return Findings(list(self.kept), Counter(self.counts))
