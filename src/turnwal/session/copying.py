"""Copying sessions from one store to another, and what is to be told of each.

Promises:
- Bytes are never made anew. The chain of what is copied is checked on the way, and the head that the other store has
  afterwards is read back and compared.
- Nothing in the other store is written over. What is there with the head it should have is done; anything else under
  the same id is a conflict that is named.
- So a copy that was stopped or killed anywhere is made again by the same call, and sessions that were finished cost a
  look at their ends.
- One bad session ends no copy.

Does not: delete what was copied, or keep two stores alike afterwards.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from turnwal.core.chain import Head, after
from turnwal.core.errors import (
    Damaged,
    DamagedStart,
    HeadMismatch,
    HistoryError,
    InvalidName,
    SessionExists,
    SessionHeld,
    TurnwalError,
)
from turnwal.core.line import read
from turnwal.session.fleet_report import error_to_json, named
from turnwal.session.inspection import glance
from turnwal.session.opening import is_empty, open_tail
from turnwal.session.transfer import lines_of, take_in
from turnwal.store.protocol import Gap, Record, Store

Outcome = Literal["copied", "there", "empty", "alive", "conflict", "damaged", "failed"]
"""What became of one session.

`copied`: all of it is in the other store. `there`: it was there already, with the same head. `empty`: it never began,
so there is nothing to copy. `alive`: it has open work and a live owner. `conflict`: the other store has another history
under its id. `damaged`: bytes of it are lost. `failed`: everything else; the error says what.
"""

_BLOCKED: Final = (
    "a copy writes over nothing, and only an owner can begin it, with a history of its own: copy to another store, or "
    "`turnwal export` it here and `turnwal import` it there under another id"
)
_KEPT: Final = "nothing was written over: look at both with `turnwal show`, and keep one of them under another id"


@dataclass(frozen=True, slots=True)
class Copy:
    """What became of one session."""

    session: str
    outcome: Outcome
    head: str = ""
    """The head that the other store has, of `copied` and `there`."""
    events: int = 0
    """How many lines were copied."""
    bytes: int = 0
    """Their size, newlines included."""
    holder: str = ""
    error: Exception | None = None

    def to_json(self) -> dict[str, Any]:
        """The copy as plain values."""
        return {
            "session": self.session,
            "outcome": self.outcome,
            "head": self.head,
            "events": self.events,
            "bytes": self.bytes,
            "holder": self.holder,
            "error": error_to_json(self.error),
        }


@dataclass(slots=True)
class CopyReport:
    """A copy of many sessions in figures."""

    sessions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(get_args(Outcome), 0))
    events: int = 0
    bytes: int = 0

    def add(self, copy: Copy) -> None:
        """Count one session."""
        self.sessions[copy.outcome] += 1
        self.events += copy.events
        self.bytes += copy.bytes

    def to_json(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {
            "looked_at": sum(self.sessions.values()),
            **self.sessions,
            "events": self.events,
            "bytes": self.bytes,
        }


class _Stopped(Exception):
    """The caller asked to stop in the middle of a session, of which nothing is stored."""


def copy_all(
    source: Store,
    target: Store,
    ids: Iterable[str] | None = None,
    *,
    copied_at: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Copy]:
    """Copy all sessions of a store, or those that are named, and yield what became of each.

    A session with open work is owned while it is read; where its owner is alive it is left out (`alive`), unless
    `copied_at` (Unix milliseconds) asks for a copy that ends with `session_copied`. In the place of a torn tail stands
    the `damage` event, as in an export. Once `stop` says so, the session under way is given up, with nothing of it
    stored. Raises what listing the store raises.
    """
    try:
        for id in source.sessions() if ids is None else ids:
            yield _copy(source, target, id, copied_at=copied_at, stop=stop)
        if ids is None:
            yield from _strays(source)
    except _Stopped:
        return


class _NotAsWritten(HeadMismatch):
    """The other store does not read back what it was given."""


def _copy(source: Store, target: Store, id: str, *, copied_at: int | None, stop: Callable[[], bool]) -> Copy:
    """Copy one session if it is not there; whatever goes wrong is in the answer."""
    try:
        return _attempt(source, target, id, copied_at=copied_at, stop=stop)
    except _Stopped:
        raise
    except SessionHeld as error:
        return Copy(id, "alive", holder=error.holder)
    except _NotAsWritten as error:
        return Copy(id, "failed", error=named(error, id))
    except (Damaged, DamagedStart, HeadMismatch) as error:
        return Copy(id, "damaged", error=named(error, id))
    except TurnwalError as error:
        return Copy(id, "failed", error=named(error, id))
    except Exception as error:  # noqa: BLE001 - one session that is odd in a way nobody foresaw must not end the copy
        return Copy(id, "failed", error=error)


def _attempt(source: Store, target: Store, id: str, *, copied_at: int | None, stop: Callable[[], bool]) -> Copy:
    if is_empty(source, id, "copy"):
        return Copy(id, "empty")
    seen = glance(source, id)
    if copied_at is None and seen.owner is not None and seen.turns:
        return Copy(id, "alive", holder=seen.owner)
    if not target.probe(id).exists:
        # where another copy was quicker, what it made is compared
        with suppress(SessionExists):
            return _take(source, target, id, copied_at=copied_at, stop=stop)
    return _compare(source, target, id, copied=copied_at is not None)


def _take(source: Store, target: Store, id: str, *, copied_at: int | None, stop: Callable[[], bool]) -> Copy:
    """Copy a session that the other store does not have, and read its head back."""
    events = size = 0

    def counted(lines: Iterable[bytes]) -> Iterator[bytes]:
        nonlocal events, size
        for line in lines:
            if stop():
                raise _Stopped
            events, size = events + 1, size + len(line) + 1
            yield line

    if stop():
        raise _Stopped
    with closing(lines_of(source, id, copied_at=copied_at)) as lines:
        head = take_in(target, id, counted(lines))
    if not _went_through(target, id, head):
        raise _NotAsWritten(
            f"the copy does not read back with the head {head} that was written",
            action="copy",
            subject=id,
            hint="`turnwal verify` it in the other store, and look at that store's disk",
        )
    return Copy(id, "copied", str(head), events, size)


def _compare(source: Store, target: Store, id: str, *, copied: bool) -> Copy:
    """What is there already: the same history, or which other one."""
    presence = target.probe(id)
    if presence.empty:
        owned = "" if presence.owner is None else f", and {presence.owner} owns it now"
        return _conflict(id, f"an empty session is there under this id: it never began{owned}", _BLOCKED)
    wanted = _head_to_copy(source, id)
    try:
        found = open_tail(target, id)
    except HistoryError as error:
        return _conflict(id, f"what is there under this id cannot be compared ({error.message})")
    there = found.head
    if found.gap is None and (there == wanted or (copied and _is_snapshot(target, id, there, wanted))):
        return Copy(id, "there", str(there))
    if there.count < wanted.count and _went_through(source, id, there):
        return _conflict(id, f"only its first {there.count:,} events are there")
    if there.count >= wanted.count and _went_through(target, id, wanted):
        return _conflict(id, f"it went on there: it has {there.count:,} events, here {wanted.count:,}")
    return _conflict(id, f"another history is there under this id (head {there}, here {wanted})")


def _head_to_copy(source: Store, id: str) -> Head:
    """The head of the lines that a copy of a session consists of, `session_copied` left aside."""
    opening = open_tail(source, id)
    if opening.gap is None:
        return opening.head
    head = opening.head
    with closing(lines_of(source, id)) as lines:
        for line in lines:
            head = after(line, read(line))
    return head


def _is_snapshot(target: Store, id: str, there: Head, wanted: Head) -> bool:
    """Whether the other store has the history with nothing but a `session_copied` behind it."""
    newest = next(iter(target.newest(id)), None)
    return (
        newest is not None
        and newest.event.type == "session_copied"
        and there.count == wanted.count + 1
        and newest.event.prev == wanted.hash
    )


def _went_through(store: Store, id: str, head: Head) -> bool:
    """Whether a stored history has, or once had, a head; costs what stands behind that head."""
    later: Record | None = None
    for record in store.newest(id):
        if record is None:
            break
        if record.event.seq < head.count:
            return after(record.line, record.event) == head and (later is None or later.event.prev == head.hash)
        later = record
    # something unreadable stands in between, so the log is read as an owner would read it
    return _passed(store, id, head)


def _passed(store: Store, id: str, head: Head) -> bool:
    last: Record | None = None
    for item in store.read(id):
        if isinstance(item, Gap):
            break
        if item.event.seq >= head.count:
            return item.event.prev == head.hash
        last = item
    return last is not None and after(last.line, last.event) == head


def _conflict(id: str, message: str, hint: str = _KEPT) -> Copy:
    return Copy(id, "conflict", error=SessionExists(message, action="copy", subject=id, hint=hint))


def _strays(source: Store) -> Iterator[Copy]:
    """Files of a directory whose id nobody knows: named, since nobody else would miss them."""
    strays: Callable[[], Iterator[str]] | None = getattr(source, "strays", None)
    for path in () if strays is None else strays():
        error = InvalidName(
            "its name is that of no session",
            action="copy",
            subject=path,
            hint="`turnwal import` stores it under the id that it gives itself",
        )
        yield Copy(path, "failed", error=error)
