"""What a session is opened with."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from turnwal.session.handle import Handle
    from turnwal.session.session import Session
    from turnwal.session.tools import Ready

    Watch = Callable[[Handle, Ready], Callable[..., Any]]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is opened with."""

    recover: bool | str = True
    """True recovers interrupted work at opening; `"refuse"` raises `Interrupted` instead."""
    create: bool = True
    wait: float = 0.0
    """Seconds to wait for another owner to go."""
    owner: str = ""
    """Describes this process to those it keeps out."""
    accept_loss: bool = False
    """Go on behind damage that lost something: in open work, saying so in the log; in ended turns, reading past it."""
    dispatch: str = "durable"
    """What turns declare: `durable`, or `none` for a writer that does not record each dispatch before its body."""
    redact: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    clock: Callable[[], int]
    nonce: Callable[[], str]
    writer: dict[str, Any]
    start: dict[str, Any] = {}
    """Optional fields of `session_start`: agent, cwd, tags, parent."""
    after: "Session | None" = None
    """A session whose head at making must be durable before this one is created."""
    watch: "Watch | None" = None
    """What runs in place of each tool's body, given the call; None runs the body itself."""


def system_clock() -> int:
    """The wall clock in Unix milliseconds."""
    return time.time_ns() // 1_000_000
