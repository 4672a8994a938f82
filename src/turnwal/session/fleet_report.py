"""What became of the sessions of a fleet, and the figures of a run.

Promises: memory does not grow with the number of sessions or tools that are counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from turnwal.core.errors import TurnwalError
from turnwal.core.rules import NOT_STARTED

Outcome = Literal["recovered", "nothing_to_do", "elsewhere", "alive", "damaged", "failed"]
"""What became of one session.

`recovered`: this run closed what was open. `nothing_to_do`: nothing was open. `elsewhere`: it was held when this run
came to it, and later nothing was open any more: another run, or its owner, had finished it. `alive`: an owner holds it,
so nothing is interrupted. `damaged`: a person decides. `failed`: everything else; the error says what.
"""

TOOLS_MAX: Final = 1_000
"""Tool names that a report keeps apart. Models make names up, and a report must not grow with that."""

OTHER_TOOLS: Final = "(other tools)"


@dataclass(frozen=True, slots=True)
class LostCall:
    """A call that recovery answered, with what a person needs to find it and to decide about it."""

    call: str
    id: str
    name: str | None
    run: str
    risk: str
    """`tool_not_started` or `tool_outcome_unknown`."""
    basis: str | None
    """What *not started* rests on: `declared` or `inferred`."""
    retry: str
    """How it may be repeated, as in the metadata of its result."""
    rule: int | None
    because: tuple[int, ...]
    attempt: int = 1
    """2 and up for a repeated dispatch that was left open."""
    key: str | None = None
    """The idempotency key that was dispatched."""
    child: str | None = None
    """The session of the sub-agent that served it; that one is recovered on its own."""

    @property
    def may_have_run(self) -> bool:
        """Whether its outcome is unknown."""
        return self.risk != NOT_STARTED

    def to_json(self) -> dict[str, Any]:
        """The call as plain values."""
        return {
            "call": self.call,
            "id": self.id,
            "name": self.name,
            "run": self.run,
            "risk": self.risk,
            "basis": self.basis,
            "retry": self.retry,
            "rule": self.rule,
            "because": list(self.because),
            "attempt": self.attempt,
            "key": self.key,
            "child": self.child,
        }


@dataclass(frozen=True, slots=True)
class Recovery:
    """What became of one session in a run."""

    session: str
    outcome: Outcome
    head: str = ""
    """The head behind what was appended."""
    turns: int = 0
    """How many turns were closed."""
    calls: tuple[LostCall, ...] = ()
    holder: str = ""
    error: Exception | None = None

    def to_json(self) -> dict[str, Any]:
        """The recovery as plain values."""
        return {
            "session": self.session,
            "outcome": self.outcome,
            "head": self.head,
            "turns": self.turns,
            "calls": [call.to_json() for call in self.calls],
            "holder": self.holder,
            "error": error_to_json(self.error),
        }


@dataclass(slots=True)
class FleetReport:
    """A run in figures: sessions by what became of them, calls by class and tool."""

    sessions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(get_args(Outcome), 0))
    tools: dict[str, dict[str, int]] = field(default_factory=dict)
    """Tool to class to count; the classes are `unknown`, `declared` and `inferred`."""

    def add(self, recovery: Recovery) -> None:
        """Count one session."""
        self.sessions[recovery.outcome] += 1
        for call in recovery.calls:
            name = call.name or ""
            if name not in self.tools and len(self.tools) >= TOOLS_MAX:
                name = OTHER_TOOLS
            counts = self.tools.setdefault(name, {"unknown": 0, "declared": 0, "inferred": 0})
            counts["unknown" if call.may_have_run else call.basis or "inferred"] += 1

    @property
    def looked_at(self) -> int:
        """How many sessions were looked at."""
        return sum(self.sessions.values())

    def calls(self) -> list[tuple[str, Mapping[str, int]]]:
        """The tools with their calls by class, those that may have run most often first."""
        return sorted(self.tools.items(), key=lambda item: (-item[1]["unknown"], -sum(item[1].values()), item[0]))

    def to_json(self) -> dict[str, Any]:
        """The figures as plain values."""
        tools = [
            {
                "name": name,
                "unknown": counts["unknown"],
                "not_started_declared": counts["declared"],
                "not_started_inferred": counts["inferred"],
            }
            for name, counts in self.calls()
        ]
        return {"looked_at": self.looked_at, **self.sessions, "tools": tools}


def named(error: TurnwalError, name: str) -> TurnwalError:
    """The error, with the session as its subject where it has none."""
    error.subject = error.subject or name
    return error


def error_to_json(error: Exception | None) -> dict[str, Any] | None:
    """An error as plain values; one that nobody foresaw has the code `unexpected`."""
    if error is None:
        return None
    if isinstance(error, TurnwalError):
        return dict(error.to_json())
    return {"code": "unexpected", "message": f"{type(error).__name__}: {error}"}
