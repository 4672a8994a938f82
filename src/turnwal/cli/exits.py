"""The exit codes, and which of them an error has."""

from collections.abc import Collection
from typing import Final

from turnwal.core.errors import Damaged, DamagedStart, HeadMismatch, Interrupted, SessionHeld, TurnwalError

OK: Final = 0
ERROR: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 3
DAMAGED: Final = 4
HELD: Final = 5
CTRL_C: Final = 130
CLOSED_PIPE: Final = 141

MEANINGS: Final = {
    OK: "nothing to do, or done",
    ERROR: "an error, or a session that a newer turnwal wrote",
    USAGE: "the command was not understood",
    INTERRUPTED: "interrupted work was found",
    DAMAGED: "damage was found",
    HELD: "a live owner holds the session",
    CTRL_C: "ended by Ctrl-C",
    CLOSED_PIPE: "whoever read the output went away",
}
"""Every exit code with what it says. The last two are what a shell reports for the signals of that meaning."""


def worst(codes: Collection[int]) -> int:
    """The exit code of a command that met several: damage before a live owner before any other error."""
    return next((code for code in (DAMAGED, HELD, ERROR) if code in codes), OK)


def worst_found(codes: Collection[int]) -> int:
    """The same, where interrupted work is among what is looked for."""
    return next((code for code in (DAMAGED, INTERRUPTED, HELD, ERROR) if code in codes), OK)


def exit_code(error: TurnwalError) -> int:
    """The exit code of an error."""
    if isinstance(error, SessionHeld):
        return HELD
    if isinstance(error, (Damaged, DamagedStart, HeadMismatch)):
        return DAMAGED
    return INTERRUPTED if isinstance(error, Interrupted) else ERROR
