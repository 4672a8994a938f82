"""What every store checks of a batch before it writes: that it builds on the head, line by line.

Promises:
- A batch that passes reads back as the next records behind `after`: seqs without gaps, each `prev` the hash of the line
  before; only a `damage` event of kind `lost` may leave seqs out.
- Costs little more than the hashes: what one producer of bytes wrote is not parsed again value by value.

Does not: write, or judge what the data means.
"""

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from turnwal.core.chain import Head, admit
from turnwal.core.chain import after as after_line
from turnwal.core.errors import OverLimit, OwnershipLost, Refused
from turnwal.core.limits import LINE_BYTES_MAX
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
            raise OverLimit(
                f"line {index} of the batch has {len(line):,} bytes, the limit is {LINE_BYTES_MAX:,}",
                action="append",
                subject=session,
                hint="keep large bodies elsewhere and record a reference",
            )
        head = _quickly(line, head) or _carefully(line, head, index, session)
    return head


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
    try:
        envelope = _envelope(line)
    except (ValueError, RecursionError):
        return None
    if envelope.seq != head.count or envelope.prev != head.hash or b"\n" in line:
        return None
    return Head(head.count + 1, sha256(line).hexdigest())


def _carefully(line: bytes, head: Head, index: int, session: str) -> Head:
    if b"\n" in line:
        reason = "holds a newline"
    else:
        try:
            return after_line(line, admit(line, head))
        except Unreadable as error:
            reason = error.reason
    raise Refused(
        f"line {index} of the batch {reason}; nothing was written",
        action="append",
        subject=session,
        hint="a batch holds the next lines of the session, in order, as one log made them",
    )
