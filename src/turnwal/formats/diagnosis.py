"""The diagnosis of one foreign session: what is open in it, what is wrong with it, what its tool will do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from turnwal.core.rules import Risk
from turnwal.formats.items import Evidence, Fault

Verdict = Literal["clean", "interrupted", "waiting", "blind", "damaged", "too_new", "busy", "unreadable"]
"""What is said of a session in a word.

`clean`: every call has its own result. `interrupted`: a call has no result, or only an invented one. `waiting`: nothing
is open but calls that wait by design. `blind`: a call may have been in flight, and this format cannot show it.
`damaged`: nothing is open in what can be read, but not all can be. `too_new`: written by a newer version than is known.
`busy`: its tool holds it. `unreadable`: it could not be read at all.
"""

OnResume = Literal["continues", "refused", "hides", "runs_again", "invents_answer", "unknown"]
"""What the tool does when the session is resumed as it is.

`continues`: nothing is in the way, or only answers that it invented. `refused`: the provider refuses the history.
`hides`: the calls are left out of what the model sees. `runs_again`: the calls are executed again. `invents_answer`:
the tool writes an answer that it cannot know. `unknown`: the application decides, or it differs between versions.
"""


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call without a true outcome."""

    id: str
    name: str | None
    evidence: Evidence
    risk: Risk | None
    """By the rules of recovery; None for a call that waits."""
    because: tuple[str, ...]
    """The records that show it, then the rule: `line 12: asked for`, `line 14: bash_progress …`."""
    place: str
    """Where it was asked for."""
    arguments: str | None = None
    """What it was to do, as JSON text."""
    run: str = "main"

    def to_json(self) -> dict[str, Any]:
        """The call as plain values."""
        return {
            "id": self.id,
            "name": self.name,
            "evidence": self.evidence,
            "risk": self.risk,
            "because": list(self.because),
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What can be said of one session of another tool."""

    path: str
    format: str | None
    verdict: Verdict
    version: str | None = None
    session: str | None = None
    calls: int = 0
    answered: int = 0
    """How many of the calls have a result that is theirs, or the truthful one of a repair."""
    open: tuple[OpenCall, ...] = ()
    damage: tuple[Fault, ...] = ()
    on_resume: OnResume = "continues"
    unknown: Mapping[str, int] = field(default_factory=dict)
    """How many records of each type that this version does not know."""
    problem: str = ""
    """Why it is blind, busy or unreadable, or is refused with nothing open in it, in a sentence."""

    def to_json(self) -> dict[str, Any]:
        """The diagnosis as plain values."""
        return {
            "path": self.path,
            "format": self.format,
            "version": self.version,
            "session": self.session,
            "calls": self.calls,
            "answered": self.answered,
            "verdict": self.verdict,
            "open": [call.to_json() for call in self.open],
            "damage": [{"kind": fault.kind, "place": fault.place, "what": fault.what} for fault in self.damage],
            "on_resume": self.on_resume,
            "unknown": dict(self.unknown),
            "problem": self.problem,
        }
