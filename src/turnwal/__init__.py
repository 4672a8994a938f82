"""turnwal: the write-ahead log of agent turns."""

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
