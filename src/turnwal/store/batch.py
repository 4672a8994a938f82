"""What every store checks before it writes: that a batch builds on the head, and a history on nothing, line by line.

Promises:
- What passes reads back as the next records behind `after`: seqs without gaps, each `prev` the hash of the line
  before; only a `damage` event of kind `lost` may leave seqs out.
- Costs little more than the hashes: what one producer of bytes wrote is not parsed again value by value. A line that
  was made in this process and says so (`Chained`) is not hashed a second time.

Does not: write, or judge what the data means.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

import msgspec

from turnwal.core.chain import EMPTY, Chained, Head, admit
from turnwal.core.chain import after as after_line
from turnwal.core.errors import OverLimit, OwnershipLost, Refused, SessionExists
from turnwal.core.limits import LINE_BYTES_MAX, PENDING_BYTES_MAX, PENDING_EVENTS_MAX
from turnwal.core.line import Unreadable


class _Envelope(msgspec.Struct, gc=False):
    """What the chain needs of a line. Keys of a newer version pass: a log moves between stores whoever wrote it."""

    seq: int
    prev: str
    time: int
    type: str
    data: msgspec.Raw


_envelope = msgspec.json.Decoder(_Envelope).decode


def check_batch(lines: Sequence[bytes], after: Head, *, session: str) -> Head:
    """Return the head after these lines. Raises `Refused` for a line that is not the next one, and `OverLimit`."""
    head = after
    for index, line in enumerate(lines):
        if len(line) > LINE_BYTES_MAX:
            raise _too_long(f"line {index} of the batch", line, "append", session)
        reached = _quickly(line, head)
        if reached is None:
            try:
                reached = _carefully(line, head)
            except Unreadable as error:
                raise Refused(
                    f"line {index} of the batch {error.reason}; nothing was written",
                    action="append",
                    subject=session,
                    hint="a batch holds the next lines of the session, in order, as one log made them",
                ) from None
        head = reached
    return head


def check_history(lines: Iterable[bytes], *, session: str) -> Iterator[tuple[list[bytes], Head]]:
    """Yield a history piece by piece, each with the head that it reaches, holding no more than what may be pending.

    Raises `Refused` for a line that does not chain from nothing, and where there is no line at all, and `OverLimit`.
    """
    head = EMPTY
    piece: list[bytes] = []
    size = 0
    for number, line in enumerate(lines):
        if len(line) > LINE_BYTES_MAX:
            raise _too_long(f"line {number}", line, "create", session)
        reached = _quickly(line, head)
        if reached is None:
            try:
                reached = _carefully(line, head)
            except Unreadable as error:
                raise _no_history(f"line {number} {error.reason}", session) from None
        head = reached
        piece.append(line)
        size += len(line)
        if size >= PENDING_BYTES_MAX or len(piece) >= PENDING_EVENTS_MAX:
            yield piece, head
            piece, size = [], 0
    if head == EMPTY:
        raise _no_history("there is not a single line", session)
    if piece:
        yield piece, head


def taken(session: str) -> SessionExists:
    """The error for a history whose id is that of a session, be it an empty one."""
    return SessionExists("it is there already", action="create", subject=session, hint="choose another id")


def check_head(after: Head, known: Head, *, session: str) -> None:
    """Return if the batch builds on the head that the store has; raise `OwnershipLost` otherwise."""
    if after != known:
        raise OwnershipLost(
            f"the batch builds on head {after}, the store has {known}",
            action="append",
            subject=session,
            hint="another owner has appended since: open the session anew",
        )


def _quickly(line: bytes, head: Head) -> Head | None:
    if line.__class__ is Chained and line.event.seq == head.count and line.event.prev == head.hash:
        return line.head
    try:
        envelope = _envelope(line)
    except (ValueError, RecursionError):
        return None
    if envelope.seq != head.count or envelope.prev != head.hash or b"\n" in line:
        return None
    return Head(head.count + 1, sha256(line).hexdigest())


def _carefully(line: bytes, head: Head) -> Head:
    if b"\n" in line:
        raise Unreadable("holds a newline")
    return after_line(line, admit(line, head))


def _too_long(which: str, line: bytes, action: str, session: str) -> OverLimit:
    return OverLimit(
        f"{which} has {len(line):,} bytes, the limit is {LINE_BYTES_MAX:,}",
        action=action,
        subject=session,
        hint="keep large bodies elsewhere and record a reference",
    )


def _no_history(reason: str, session: str) -> Refused:
    return Refused(
        f"{reason}; nothing was stored",
        action="create",
        subject=session,
        hint="pass every line of one session, from its first, in order, as one log made them",
    )
