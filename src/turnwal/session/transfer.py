"""Moving histories: the lines of a session out of a store, into one, and a fork's prefix from one to another.

Promises:
- Bytes are never made anew, so a log keeps its hashes wherever it lives.
- A copy is whole or not there: what ends an import or a fork halfway, be it a full disk or the death of the process,
  leaves no part of a session behind, and the same call can be made again. Where a store failed, all may be there.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from turnwal.core.chain import EMPTY, Head, admit, after
from turnwal.core.errors import Damaged, DamagedStart, Refused
from turnwal.core.fork import check_boundary, fork_data
from turnwal.core.line import Unreadable, make
from turnwal.core.log import draft
from turnwal.core.types import check_known
from turnwal.session.inspection import glance
from turnwal.session.opening import damage_data, damaged
from turnwal.store.protocol import Gap, Record, Store
from turnwal.store.surely import surely

_FROM_START: Final = "a history begins with its session_start: pass every line from the first, as an export has them"
_WHOLE: Final = "pass every line of one session, in order and unchanged, as an export has them; nothing was stored"


def lines_of(store: Store, session: str, *, copied_at: int | None = None) -> Generator[bytes, None, None]:
    """Yield the lines of a session as they are stored, up to where it stood when the first was asked for.

    A session with open work is owned while it is read, so that nobody goes on with it meanwhile: raises `SessionHeld`
    when it has an owner. With `copied_at` (Unix milliseconds) nothing is owned and the copy of such a session ends
    with `session_copied`: in the copy, calls open there are never said to be *not started*. Bytes of a torn tail are no
    line; in their place stands the `damage` event that the next owner would write. Raises `Damaged` where bytes are
    lost.
    """
    seen = glance(store, session)
    with _owned(store, session, needed=bool(seen.turns) and copied_at is None) as owned:
        if owned:
            seen = glance(store, session)  # what was open may have been closed before it could be owned
        head, time = EMPTY, 0
        for item in store.read(session):
            if isinstance(item, Gap):
                if item.corrupt:
                    raise damaged(session, item)
                line, event = make(
                    draft("damage", damage_data(item), run="main", time=time, ignorable=False, head=head)
                )
                head = after(line, event)
                yield line
                break
            if seen.head is not None and item.event.seq >= seen.head.count:
                break
            head, time = after(item.line, item.event), item.event.time
            yield item.line
        if seen.turns and copied_at is not None:
            yield make(draft("session_copied", {}, run="main", time=copied_at, ignorable=False, head=head))[0]


def take_in(store: Store, session: str, lines: Iterable[bytes]) -> Head:
    """Store a history under a new id, byte for byte and all or nothing, and return its head.

    Raises `SessionExists` when the id is taken, `DamagedStart` or `Damaged` for lines that do not begin a session or do
    not chain, `TooNew`, `Refused` when there is no line, and what `Store.put` raises. Nothing of it is stored then, or,
    where that was `StoreFailed`, all of it or nothing.
    """
    return store.put(session, _checked(session, lines))


def fork_into(source: Store, session: str, at: int, target: Store, id: str, *, nonce: str, time: int) -> Head:
    """Copy the first `at` events byte for byte under a new id and append `session_fork`; returns the fork's head.

    All or nothing: what shares the parent's history under an id of its own has an identity of its own. Raises `Refused`
    for a boundary inside an open turn or past the end (F34), `SessionExists`, and what `Store.put` raises.
    """
    check_boundary((item.event for item in source.read(session) if isinstance(item, Record)), at)
    head = EMPTY

    def prefix() -> Iterator[bytes]:
        nonlocal head
        for item in source.read(session):
            if not isinstance(item, Record) or item.event.seq >= at:
                break
            head = after(item.line, item.event)
            yield item.line
        data = fork_data(id=id, nonce=nonce, parent=session, head=head)
        yield make(draft("session_fork", data, run="main", time=time, ignorable=False, head=head))[0]

    return take_in(target, id, prefix())


def _checked(session: str, lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a history, each checked to be the next one of a session that this version knows."""
    head = EMPTY
    for number, line in enumerate(lines):
        try:
            event = admit(line, head)
        except Unreadable as error:
            reason = f"line {number} {error.reason}"
            raise Damaged(reason, action="import", subject=session, hint=_WHOLE if number else _FROM_START) from None
        if number == 0 and event.type != "session_start":
            raise DamagedStart("the first line is no session_start", action="import", subject=session, hint=_FROM_START)
        check_known(event)
        head = after(line, event)
        yield line
    if head == EMPTY:
        raise Refused("there is not a single line", action="import", subject=session, hint="pass a session's JSONL")


@contextmanager
def _owned(store: Store, session: str, *, needed: bool) -> Iterator[bool]:
    if not needed:
        yield False
        return
    claim = store.claim(session, create=False)
    try:
        yield True
    finally:
        surely(claim.release)
