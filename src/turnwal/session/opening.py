"""Opening a stored session: where to begin reading, and what its tail says.

Promises:
- Costs what is open, not what is stored: the last boundary names the open turns and the waiting calls, so reading
  begins at the oldest open turn. Logs without that hint, or with anything irregular near the end, are read whole.
- The hint is checked, not believed: what it points at must be a `turn_start`, and every line from before it to the end
  must chain.
- The last batch is read from its first line, since power may be lost while it is written: what stands behind a hole in
  it is a torn tail, and no history.
- Looks only; writes nothing.
"""

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from turnwal.core.chain import EMPTY, Head, after, digest
from turnwal.core.errors import Damaged, DamagedStart, EmptySession, HistoryError, TooNew
from turnwal.core.line import Event
from turnwal.core.scan import Scan
from turnwal.core.types import BOUNDARIES, check_known, is_seqs
from turnwal.core.values import number_of
from turnwal.store.covering import short_of
from turnwal.store.protocol import Gap, Record, Store


@dataclass(slots=True)
class Opening:
    """What reading the open part of a session found."""

    scan: Scan
    head: Head
    """The head behind the last sound record."""
    last_turn: int = 0
    """The number of the newest turn of run `main`, 0 where there is none."""
    gap: Gap | None = None
    """A tail that is no record and that the next owner covers with a `damage` event."""
    began_at: int = 0
    """The seq that reading began at."""
    newer: list[TooNew] = field(default_factory=list)
    """What a newer turnwal wrote, when asked to read on past it."""

    def damage_data(self) -> dict[str, Any] | None:
        """The data of the `damage` event that covers the tail, or None when there is nothing to cover."""
        return None if self.gap is None else damage_data(self.gap)


def damage_data(gap: Gap, *, accept_loss: bool = False) -> dict[str, Any]:
    """The data of a `damage` event for bytes that are no record."""
    data: dict[str, Any] = {"after": gap.after, "length": gap.length, "sha256": gap.sha256}
    data["kind"] = "lost" if accept_loss else gap.kind
    data["raw"] = b64encode(gap.raw).decode("ascii")
    if accept_loss:
        data["lost"] = list(gap.seqs)
    if gap.kept is not None:
        data["head"] = str(gap.kept)
    return data


def damaged(session: str, gap: Gap, *, action: str = "open", hint: str = "") -> HistoryError:
    """The refusal to write behind damage that is no torn tail, or to read on as if it were not there."""
    if gap.kept is not None:
        return short_of(gap, action, session)
    line = f"line {gap.line_number}" if gap.line_number else f"the line after seq {gap.after}"
    message = f"{line}, at offset {gap.position:,}, {gap.reason}, and {gap.readable} readable records follow"
    hint = hint or (
        "`turnwal show` reads on past it; where open work reaches it, `turnwal recover --accept-loss` goes on behind "
        "it; a session opened with `accept_loss=True` is read without what is lost"
    )
    return Damaged(message, action=action, subject=session, hint=hint)


def open_tail(store: Store, session: str, *, accept_loss: bool = False, newer: bool = False) -> Opening:
    """Read what is open at the end of a session.

    Raises `EmptySession`, `SessionNotFound`, `DamagedStart`, `Damaged` and `HeadMismatch` unless `accept_loss` (a log
    of which nothing is left has no way on), and `TooNew` unless
    `newer` asks to read on past records of a newer turnwal.
    """
    first = check_start(store, session, newer=newer)
    start = _find_start(store, session)
    if start is None:
        return _read_on(store, session, 0, None, accept_loss=accept_loss, newer=newer)
    position, head, last_turn = start
    opening = _read_on(store, session, position, head, accept_loss=accept_loss, newer=newer)
    opening.last_turn = max(opening.last_turn, last_turn)
    if newer:
        # reading began behind the first line, which has a format of its own
        try:
            check_known(first)
        except TooNew as error:
            opening.newer.insert(0, error)
    return opening


def check_start(store: Store, session: str, *, newer: bool = False) -> Event:
    """Return the first event of a stored session, which must be a `session_start` of a format we know."""
    if is_empty(store, session):
        raise EmptySession("it never began", action="open", subject=session, hint="`store.session` may begin it")
    first = next(iter(store.read(session)), None)
    if not isinstance(first, Record) or first.event.type != "session_start":
        raise DamagedStart(
            "the first line is no session_start",
            action="open",
            subject=session,
            hint="this is no session of turnwal, or its beginning was lost; it is never written to",
        )
    if not newer:
        check_known(first.event)
    return first.event


def is_empty(store: Store, session: str, action: str = "open") -> bool:
    """Whether a session never began. Raises `HeadMismatch` where one that holds nothing has a kept head."""
    if not store.probe(session).empty:
        return False
    gap = next(iter(store.read(session)), None)
    if isinstance(gap, Gap):
        raise damaged(session, gap, action=action)
    return gap is None


class Beginning:
    """Where reading may begin so that everything behind is read as a scan of the whole reads it.

    Is shown records from some place backwards. The last boundary before that place names the turns that are open there;
    `record` is the start of the oldest one, or that boundary where it names none.
    """

    def __init__(self) -> None:
        """Look from nowhere yet."""
        self.record: Record | None = None
        self.misled = False
        """The boundaries do not say; reading must begin with line 0."""
        self._opened: list[int] | None = None

    def look(self, record: Record) -> None:
        """Look at the record before the one that was looked at last."""
        event, data = record.event, record.event.data
        if event.type not in BOUNDARIES or self.record is not None:
            return
        if self._opened is None and is_seqs(data.get("open")):
            self._opened = data["open"] or [event.seq]
        if self._opened is None or min(self._opened) > event.seq:
            self.misled = True
        elif event.seq == min(self._opened):
            if isinstance(data.get("waiting"), list) and (not data.get("open") or event.type == "turn_start"):
                self.record = record
            else:
                self.misled = True


def _find_start(store: Store, session: str) -> tuple[int, Head, int] | None:
    """Position and head before the line to begin at, and the newest turn number; None to read from line 0."""
    last_turn = 0
    beginning = Beginning()
    format_seen = False
    whole_from: int | None = None
    for record in contiguous(store.newest(session)):
        if record is None or beginning.misled:
            return None
        if whole_from is None:
            whole_from = _first_of_batch(record.event)
        begin = beginning.record
        # what is before the last batch was durable when that was written; in it a line may be lost before others
        if begin is not None and last_turn and format_seen and record.event.seq <= whole_from:
            return begin.position, Head(begin.event.seq, begin.event.prev), last_turn
        beginning.look(record)
        event = record.event
        if event.type in BOUNDARIES:
            if event.run == "main" and not last_turn:
                last_turn = number_of(event.data, "turn") or 0
            format_seen = format_seen or "format" in event.data
    return None


def _first_of_batch(event: Event) -> int:
    return event.batch if isinstance(event.batch, int) else event.seq


def contiguous(newest: Iterator[Record | None]) -> Iterator[Record | None]:
    """The records from the newest on, each one the predecessor of the one before; None where that ends.

    Unreadable lines at the very end are a torn tail and are passed over: reading forward judges them.
    """
    later: Record | None = None
    for record in newest:
        if record is None:
            if later is None:
                continue
            yield None
            return
        if later is not None and (record.event.seq != later.event.seq - 1 or digest(record.line) != later.event.prev):
            yield None
            return
        yield record
        later = record


def _read_on(
    store: Store, session: str, position: int, head: Head | None, *, accept_loss: bool, newer: bool
) -> Opening:
    scan = Scan()
    opening = Opening(scan, head or EMPTY, began_at=0 if head is None else head.count)
    last: Record | None = None
    for item in store.read(session, position, after=head):
        if isinstance(item, Gap):
            if item.corrupt and not accept_loss:
                raise damaged(session, item)
            opening.gap = item
            break
        last = item
        try:
            check_known(item.event)
        except TooNew as error:
            if not newer:
                raise
            opening.newer.append(error)
        scan.feed(item.event)
        if item.event.run == "main" and item.event.type == "turn_start":
            opening.last_turn = number_of(item.event.data, "turn") or opening.last_turn
    if last is not None:
        opening.head = after(last.line, last.event)
    return opening
