"""Moving histories: the lines of a session out of a store, into one, and a fork's prefix from one to another.

Bytes are never made anew, so a log keeps its hashes wherever it lives.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from turnwal.core.chain import EMPTY, Head, admit, after
from turnwal.core.errors import Damaged, DamagedStart, Refused, SessionExists
from turnwal.core.fork import check_boundary, fork_data
from turnwal.core.limits import PENDING_BYTES_MAX
from turnwal.core.line import Unreadable, make
from turnwal.core.log import draft
from turnwal.core.types import check_known
from turnwal.session.inspection import glance
from turnwal.session.opening import damage_data, damaged
from turnwal.store.protocol import Claim, Gap, Record, Store


def lines_of(store: Store, session: str, *, copied_at: int | None = None) -> Iterator[bytes]:
    """Yield the lines of a session as they are stored.

    A session with open work is owned while it is read, so that nobody goes on with it meanwhile: raises `SessionHeld`
    when it has an owner. With `copied_at` (Unix milliseconds) nothing is owned and the copy of such a session ends
    with `session_copied`: in the copy, calls open there are never said to be *not started*. Bytes of a torn tail are no
    line; in their place stands the `damage` event that the next owner would write. Raises `Damaged` where bytes are
    lost.
    """
    open_work = bool(glance(store, session).turns)
    with _owned(store, session, needed=open_work and copied_at is None):
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
            head, time = after(item.line, item.event), item.event.time
            yield item.line
        if open_work and copied_at is not None:
            yield make(draft("session_copied", {}, run="main", time=copied_at, ignorable=False, head=head))[0]


def take_in(store: Store, session: str, lines: Iterable[bytes], *, owner: str = "") -> Head:
    """Store a history under a new id, byte for byte, and return its head.

    Raises `SessionExists` when the id is taken, and `Damaged` or `DamagedStart` for lines that do not chain or begin a
    session; what came before the bad line is stored then, and nothing of it is lost at the source.
    """
    claim = _claim_new(store, session, owner)
    try:
        head, batch, size, stored = EMPTY, [], 0, EMPTY
        for number, line in enumerate(lines):
            try:
                event = admit(line, head)
            except Unreadable as error:
                raise Damaged(f"line {number} {error.reason}", action="import", subject=session) from None
            if number == 0 and event.type != "session_start":
                raise DamagedStart("the first line is no session_start", action="import", subject=session)
            check_known(event)
            head = after(line, event)
            batch.append(line)
            size += len(line)
            if size >= PENDING_BYTES_MAX:
                claim.append(batch, stored)
                batch, size, stored = [], 0, head
        if head == EMPTY:
            raise Refused("there is not a single line", action="import", subject=session, hint="pass a session's JSONL")
        if batch:
            claim.append(batch, stored)
        return head
    finally:
        claim.release()


def fork_into(source: Store, session: str, at: int, target: Store, id: str, *, nonce: str, time: int) -> Head:
    """Copy the first `at` events byte for byte under a new id and append `session_fork`; returns the fork's head.

    Raises `Refused` for a boundary inside an open turn or past the end (F34), and `SessionExists`.
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


def _claim_new(store: Store, session: str, owner: str) -> Claim:
    claim = store.claim(session, create=True, owner=owner)
    if store.probe(session).empty:
        return claim
    claim.release()
    raise SessionExists("it is there already", action="create", subject=session, hint="choose another id")


@contextmanager
def _owned(store: Store, session: str, *, needed: bool) -> Iterator[None]:
    if not needed:
        yield
        return
    claim = store.claim(session, create=False)
    try:
        yield
    finally:
        claim.release()
