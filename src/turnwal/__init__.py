"""turnwal: the write-ahead log of agent turns.

The public names, nothing else. Each is loaded when it is first asked for, so that importing turnwal costs next to
nothing in a process that may never need it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnwal.core.errors import OutcomeUnknown, TurnwalError
    from turnwal.core.line import Event
    from turnwal.core.recovery import interrupted, open_turns, plan, recover
    from turnwal.session.heeding import TranscriptWarning
    from turnwal.session.sessions import fork, open_store
    from turnwal.session.tools import tool
    from turnwal.transcript.check import check
    from turnwal.transcript.parsing import Log, parse
    from turnwal.transcript.patching import patch
    from turnwal.transcript.render import render

__version__ = "0.1.0"

__all__ = [
    "Event",
    "Log",
    "OutcomeUnknown",
    "TranscriptWarning",
    "TurnwalError",
    "check",
    "fork",
    "interrupted",
    "open_store",
    "open_turns",
    "parse",
    "patch",
    "plan",
    "recover",
    "render",
    "tool",
]

_HOMES = {
    "Event": "turnwal.core.line",
    "Log": "turnwal.transcript.parsing",
    "OutcomeUnknown": "turnwal.core.errors",
    "TranscriptWarning": "turnwal.session.heeding",
    "TurnwalError": "turnwal.core.errors",
    "check": "turnwal.transcript.check",
    "fork": "turnwal.session.sessions",
    "interrupted": "turnwal.core.recovery",
    "open_store": "turnwal.session.sessions",
    "open_turns": "turnwal.core.recovery",
    "parse": "turnwal.transcript.parsing",
    "patch": "turnwal.transcript.patching",
    "plan": "turnwal.core.recovery",
    "recover": "turnwal.core.recovery",
    "render": "turnwal.transcript.render",
    "tool": "turnwal.session.tools",
}


def __getattr__(name: str) -> object:
    """Load a public name from its home (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'turnwal' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only when a name is asked for

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted([*globals(), *_HOMES])
