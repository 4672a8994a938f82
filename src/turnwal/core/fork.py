"""Where a session may be forked, and the event that begins the fork.

A fork copies a prefix byte for byte. It must owe nothing for work that runs elsewhere, so a boundary inside an open
turn is refused (F34).
"""

from collections.abc import Iterable
from typing import Any

from turnwal.core.chain import Head
from turnwal.core.errors import Refused
from turnwal.core.line import Event
from turnwal.core.scan import Scan


def check_boundary(prefix: Iterable[Event], at: object) -> None:
    """Return if a session may be forked after its first `at` events; raise `Refused` otherwise.

    `prefix` yields those events, or all of them. A boundary past the end is refused, never clamped.
    """
    if not isinstance(at, int) or isinstance(at, bool):
        raise _refusal(f"{at!r:.80} is no number of events", "say how many events the fork keeps, as an integer")
    if at < 1:
        raise _refusal(f"{at} events are no beginning of a session", "a fork keeps at least the first event")
    scan = Scan()
    count = 0
    for event in prefix:
        if event.seq >= at:
            break
        scan.feed(event)
        count = event.seq + 1
    if count < at:
        raise _refusal(f"the session has {count} events, {at} were asked for", f"fork at {count} or before")
    turns = scan.open_turns()
    if turns:
        run, turn = min(turns, key=lambda pair: pair[1].seq)
        name = f"turn {turn.number}" if turn.number is not None else "a turn"
        where = "" if run.name == "main" else f" of run {run.name!r}"
        message = f"{name}{where}, started at seq {turn.seq}, is open after {at} events"
        raise _refusal(message, f"fork at {turn.seq}, before it began, or after its end")


def fork_data(*, id: str, nonce: str, parent: str, head: Head) -> dict[str, Any]:
    """The data of `session_fork`: who this is from now on, and the history it grew from."""
    return {"id": id, "nonce": nonce, "parent": {"session": parent, "seq": head.count - 1, "head": head.hash}}


def _refusal(message: str, hint: str) -> Refused:
    return Refused(message, action="fork", hint=hint)
