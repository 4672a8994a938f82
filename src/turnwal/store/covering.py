"""Whether a batch may go on behind bytes that are no record.

Promises: it begins with the `damage` event of exactly these bytes, of kind `lost` and numbered above every seq that may
have existed where readable records stand in them, and naming the kept head that the log has lost; otherwise the refusal
says what is wrong with which line.

Does not: find the gap.
"""

from turnwal.core.chain import EMPTY
from turnwal.core.errors import Damaged, HeadMismatch
from turnwal.core.kept import gives_up, lacks
from turnwal.core.line import Unreadable, read
from turnwal.store.protocol import Gap


def check_covered(first: bytes, gap: Gap, *, session: str) -> None:
    """Return if the first line of a batch covers a gap; raise `Damaged` or `HeadMismatch` otherwise."""
    if _covers(first, gap):
        return
    if gap.kept is not None:
        raise short_of(gap, "append", session)
    raise Damaged(
        f"{gap.length:,} bytes at offset {gap.position:,} behind line {gap.after} {_told(gap)}",
        action="append",
        subject=session,
        hint="recover the session first" if not gap.corrupt else "`recover --accept-loss` is the way out",
    )


def short_of(gap: Gap, action: str, session: str) -> HeadMismatch:
    """The refusal to go on with a log that has its kept head not in its past."""
    where = f", and {gap.length:,} bytes at its end are no record" if gap.length else ""
    hint = "restore a copy that has them, or go on without them: `turnwal recover --accept-loss` says so in the log"
    if gap.after < 0:
        hint = "restore a copy; where the session was removed on purpose, remove the file of its head as well"
    return HeadMismatch(
        f"the log {lacks(gap.after + 1, gap.kept or EMPTY)}{where}", action=action, subject=session, hint=hint
    )


def _covers(line: bytes, gap: Gap) -> bool:
    """Whether a line is the `damage` event of a gap; only a person's word (`lost`) goes on behind readable records."""
    try:
        event = read(line)
    except Unreadable:
        return False
    data = event.data
    return (
        event.type == "damage"
        and (data.get("after"), data.get("length"), data.get("sha256")) == (gap.after, gap.length, gap.sha256)
        and (not gap.corrupt or (data.get("kind") == "lost" and event.seq > gap.seq_max))
        and (gap.kept is None or gives_up(event, gap.kept))
    )


def _told(gap: Gap) -> str:
    where = f"the first bad line, number {gap.line_number}, {gap.reason}" if gap.line_number else gap.reason
    if gap.corrupt:
        return f"are damaged, and {gap.readable} readable records stand in them; {where}"
    return f"are no record and no `damage` event covers them; {where}"
