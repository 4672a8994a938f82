"""turnwal: the write-ahead log of agent turns.

The public names, nothing else. Each is loaded when it is first asked for, so that importing turnwal costs next to
nothing in a process that may never need it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnwal.core.errors import OutcomeUnknown, TurnwalError
    from turnwal.core.line import Event
    from turnwal.core.log import Log
    from turnwal.core.recovery import interrupted, open_turns, plan, recover
    from turnwal.session.sessions import fork, open_store
    from turnwal.session.tools import tool

__version__ = "0.1.0"

__all__ = [
    "Event",
    "Log",
    "OutcomeUnknown",
    "TurnwalError",
    "fork",
    "interrupted",
    "open_store",
    "open_turns",
    "plan",
    "recover",
    "tool",
]

_HOMES = {
    "Event": "turnwal.core.line",
    "Log": "turnwal.core.log",
    "OutcomeUnknown": "turnwal.core.errors",
    "TurnwalError": "turnwal.core.errors",
    "fork": "turnwal.session.sessions",
    "interrupted": "turnwal.core.recovery",
    "open_store": "turnwal.session.sessions",
    "open_turns": "turnwal.core.recovery",
    "plan": "turnwal.core.recovery",
    "recover": "turnwal.core.recovery",
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
