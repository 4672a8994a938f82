"""The table that says what a lost call may have done. The first rule that matches decides.

Each rule carries the sentence that `plan` prints. The table is pessimistic on purpose: a wrong *may have run* costs a
person one look, a wrong *did not run* is a second charge.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from turnwal.core.calls import Call, Turn
from turnwal.core.state import State
from turnwal.core.values import parse_arguments

Risk = Literal["tool_not_started", "tool_outcome_unknown"]
Basis = Literal["declared", "inferred"]
Retry = Literal["safe", "same_arguments", "same_key", "verify_first"]

NOT_STARTED: Final[Risk] = "tool_not_started"
UNKNOWN: Final[Risk] = "tool_outcome_unknown"


@dataclass(frozen=True, slots=True)
class Lost:
    """An owed call with what surrounds it."""

    scan: State
    turn: Turn
    call: Call

    @property
    def durable(self) -> bool:
        """The writer guarantees a durable dispatch before each body."""
        return self.turn.dispatch == "durable" and not self.weak

    @property
    def weak(self) -> bool:
        """The step that asked takes that guarantee back."""
        return self.call.step is not None and self.call.step.weak

    @property
    def telling(self) -> bool:
        """The absence of a dispatch record means something: nothing shows a writer that logs none."""
        return self.turn.dispatch != "none" and not self.weak and self.turn.blind is None


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: its number, when it matches (with the seqs that show it), and what it says."""

    number: int
    sentence: str
    risk: Risk
    basis: Basis | None
    shows: Callable[[Lost], Sequence[int] | None]
    """The seqs that the rule rests on besides the call itself, or None where it does not match."""


def _dispatched(lost: Lost) -> Sequence[int] | None:
    seq = lost.call.dispatched if lost.call.dispatched is not None else lost.call.maybe
    return None if seq is None else (seq,)


def _bytes_lost(lost: Lost) -> Sequence[int] | None:
    scan, asked_at = lost.scan, lost.call.asked_at
    if scan.lost_after >= asked_at:
        return (scan.lost_seq,)
    if scan.torn_after >= asked_at and not lost.durable:
        return (scan.torn_seq,)
    return () if lost.call.doubt else None


def _copied(lost: Lost) -> Sequence[int] | None:
    return (lost.scan.copied_seq,) if lost.scan.copied_seq > lost.call.asked_at else None


def _declared(lost: Lost) -> Sequence[int] | None:
    return (lost.turn.seq,) if lost.durable else None


def _not_approved(lost: Lost) -> Sequence[int] | None:
    call = lost.call
    if call.question in ("pending", "denied") and not call.granted and call.question_seq is not None:
        return (call.question_seq,)
    return None


def _bad_arguments(lost: Lost) -> Sequence[int] | None:
    call = lost.call
    if call.free_text or call.redacted:
        return None
    return () if parse_arguments(call.arguments) is None else None


def _other_dispatched(lost: Lost) -> Sequence[int] | None:
    seq = lost.turn.first_dispatch
    return (seq,) if lost.telling and seq is not None else None


def _step_closed(lost: Lost) -> Sequence[int] | None:
    step = lost.call.step
    return (
        (step.seq,) if lost.telling and lost.turn.first_dispatch is None and step is not None and step.closed else None
    )


def _anything(_: Lost) -> Sequence[int]:
    return ()


RULES: Final = (
    Rule(1, "The call was dispatched, or may have been the one that was.", UNKNOWN, None, _dispatched),
    Rule(
        2, "Bytes were lost after the call was asked for; they may have been its dispatch.", UNKNOWN, None, _bytes_lost
    ),
    Rule(3, "The log was copied while the call was open; the original may have gone on.", UNKNOWN, None, _copied),
    Rule(
        4,
        "The writer declares a durable dispatch before each call, and there is none.",
        NOT_STARTED,
        "declared",
        _declared,
    ),
    Rule(5, "Its approval was asked for and never granted.", NOT_STARTED, "inferred", _not_approved),
    Rule(
        6,
        "Its arguments do not parse to an object, so no tool could take them.",
        NOT_STARTED,
        "inferred",
        _bad_arguments,
    ),
    Rule(7, "Another call of its turn was dispatched, this one was not.", NOT_STARTED, "inferred", _other_dispatched),
    Rule(8, "The step that asked for it is closed, and nothing was dispatched.", NOT_STARTED, "inferred", _step_closed),
    Rule(9, "Nothing in the log says whether it was dispatched.", UNKNOWN, None, _anything),
)
"""The table of the design, in order."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of one owed call, by which rule, resting on which lines."""

    risk: Risk
    basis: Basis | None
    rule: int
    because: tuple[int, ...]


def judge(scan: State, turn: Turn, call: Call, *, strict: bool = False) -> Verdict:
    """The class of an owed call. `strict` says *unknown* wherever the table would only infer *not started*."""
    lost = Lost(scan, turn, call)
    for rule in RULES:
        seqs = rule.shows(lost)
        if seqs is not None:
            because = tuple(sorted({seq for seq in (call.asked_at, *seqs) if seq >= 0}))
            if strict and rule.basis == "inferred":
                return Verdict(UNKNOWN, None, rule.number, because)
            return Verdict(rule.risk, rule.basis, rule.number, because)
    raise AssertionError("the last rule always matches")


def retry_of(call: Call, verdict: Verdict) -> Retry:
    """How the call may be repeated. Only hints that the application declared or confirmed soften anything."""
    if verdict.basis == "declared" or _vouched(call, "read_only"):
        return "safe"
    if _vouched(call, "idempotent"):
        return "same_arguments"
    return "same_key" if call.keyed else "verify_first"


def _vouched(call: Call, hint: str) -> bool:
    if call.hints is None or call.hints.get(hint) is not True:
        return False
    source: Any = call.hints_from
    return (source.get(hint) if isinstance(source, dict) else source) in ("declared", "confirmed")


_STARTS: Final = {
    "declared": "This call did not run: it was never handed to the tool.",
    "inferred": "The log shows no sign that this call started, which is not proof that it did not.",
    None: "No result of this call was recorded: it may have run fully, partly or not at all.",
}

_ADVICE: Final[dict[Retry, str]] = {
    "safe": "It is safe to make it again.",
    "same_arguments": "The tool is idempotent: repeating it with exactly the same arguments is safe.",
    "same_key": "Check the state it would have changed before asking for it again; the application can repeat it "
    "safely with its idempotency key.",
    "verify_first": "Check the state it would have changed before repeating it.",
}


def text_for_model(verdict: Verdict, retry: Retry, *, interrupted: bool) -> str:
    """What the model reads. It says neither who interrupted nor that the call failed (F13, F15)."""
    sentences = ["The turn was interrupted."] if interrupted else []
    return " ".join([*sentences, _STARTS[verdict.basis], _ADVICE[retry]])
