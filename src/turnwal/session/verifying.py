"""Verifying a stored session from its first byte to its last.

Promises:
- Reads through the same framing as opening and recovering, so that they cannot disagree about where a log ends (F23).
- The chain and the seqs of every record; every `open` and `waiting` that a boundary carries, recomputed; bytes that no
  `damage` event covers; every finding of the whole log; the head, and whether an expected head and the kept one are of
  its past.
- A log is called intact only where a head from elsewhere names its last line. A shorter chain is a valid chain, so
  without one nobody can say that nothing is missing at the end.
- One pass, with memory bounded by what is open and a few bytes for each call.

Does not: write, own, or vouch for what follows a gap. What is open behind one is told as opening would find it from the
end backwards, and is not told where that reading meets the gap as well: nobody says *open* of a log that was not read
to its end (F12).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal

from turnwal.core.breaks import PIECES_MAX, Look, look
from turnwal.core.chain import EMPTY, Head, after, check_expected
from turnwal.core.errors import HeadMismatch, TooNew, TurnwalError
from turnwal.core.findings import Finding
from turnwal.core.kept import has, lacks, newest
from turnwal.core.line import Event
from turnwal.core.recovery import final_findings
from turnwal.core.scan import Scan
from turnwal.core.types import BOUNDARIES, FORMAT, TYPES, check_known
from turnwal.session.opening import check_start, open_tail
from turnwal.store.covering import short_of
from turnwal.store.names import not_found
from turnwal.store.protocol import Gap, Record, Store

_PLAIN: Final = frozenset(type for type, fields in TYPES.items() if "format" not in fields)
"""The types of which nothing is checked but their place: no format, and so no `open` and `waiting` either."""


Verdict = Literal["intact", "tail_not_verifiable", "damaged", "not_the_history"]
"""What can be said of a log.

`intact`: every byte is accounted for, and a head from elsewhere names its last line. `tail_not_verifiable`: the
same, but nothing from elsewhere says where it ends. `damaged`: bytes are no record. `not_the_history`: a head from
elsewhere is not one of those that it went through: its end is missing, or it is another history.
"""


@dataclass(frozen=True, slots=True)
class Report:
    """What verifying found."""

    head: Head
    """The head behind the last sound record."""
    events: int
    """Sound records; fewer than the head counts where bytes were given up as lost."""
    gap: Gap | None
    """Bytes that are no record and that no event covers; what follows them was not verified."""
    findings: tuple[Finding, ...]
    open_turns: tuple[int, ...] | None
    """The seqs of the turns that are open at the end, None where a gap hides that."""
    owner: str | None
    """The live owner, at the end of the pass."""
    newer: str = ""
    """The first record of a newer turnwal, of which nothing but its place in the chain was verified."""
    mismatch: HeadMismatch | None = None
    """Why the expected head, or the kept one, is none of the heads that the log went through."""
    kept: Head | None = None
    """The head that the store keeps apart from the log."""
    doubtful: bool = False
    """Whether the file of the kept head can be read in part only, so that a newer one may be lost."""
    anchor: Head | None = None
    """The newest head from elsewhere, expected or kept, that is one of those the log went through."""
    looks: Look | None = None
    """What the place looks like where the log breaks, None where it does not, or where a write was cut off."""

    @property
    def sound(self) -> bool:
        """Whether every byte is accounted for and the log is the expected one. Interrupted work is no damage."""
        return self.gap is None and self.mismatch is None

    @property
    def verdict(self) -> Verdict:
        """What the log is, in a word."""
        if self.gap is not None and (self.gap.readable or self.gap.kind != "torn"):
            return "damaged"
        if self.mismatch is not None:
            return "not_the_history"
        if self.gap is not None:
            return "damaged"
        reached = self.head in (self.anchor, EMPTY) and not self.doubtful
        return "intact" if reached else "tail_not_verifiable"

    @property
    def interrupted(self) -> bool | None:
        """Whether work is open that nobody is doing, None where a gap hides that."""
        if self.owner is not None:
            return False
        return None if self.open_turns is None else bool(self.open_turns)

    def to_json(self) -> dict[str, Any]:
        """The report as plain values."""
        gap = self.gap
        return {
            "verdict": self.verdict,
            "events": self.events,
            "head": str(self.head),
            "interrupted": self.interrupted,
            "open_turns": None if self.open_turns is None else list(self.open_turns),
            "owner": self.owner,
            "damage": None if gap is None else gap_to_json(gap),
            "looks": self.looks,
            "newer": self.newer,
            "kept": None if self.kept is None else str(self.kept),
            "anchor": None if self.anchor is None else str(self.anchor),
            "expected": self.mismatch is None,
            "findings": [finding.to_json() for finding in self.findings],
        }


def verify(store: Store, session: str, *, expect: Head | None = None) -> Report:
    """Read all of a session and report on it; an empty one is a report on nothing.

    `expect` is a head that the log must have gone through. Raises `SessionNotFound`, `HeadMismatch` for a session that
    is gone and whose head is kept, or whose kept head cannot be read, `DamagedStart`, `OverLimit`, and
    `TooNew` for a line that this version cannot even place in the chain.
    """
    presence = store.probe(session)
    known = store.kept(session)
    kept = None if known is None else known.head
    if not presence.exists:
        raise _gone(session, kept)
    if presence.empty:
        mismatch = _mismatch(expect, EMPTY) or _mismatch(kept, EMPTY)
        return Report(EMPTY, 0, None, (), (), presence.owner, mismatch=mismatch, kept=kept)
    check_start(store, session, newer=True)
    scan = Scan()
    feed = scan.feed
    events = 0
    newer = ""
    gap: Gap | None = None
    last: Record | None = None
    passed: Head | None = None
    wanted = -1 if expect is None else expect.count
    for item in store.read(session):
        if isinstance(item, Gap):
            gap = item
            break
        event = item.event
        if event.seq == wanted and last is not None and last.event.seq == wanted - 1:
            passed = Head(wanted, event.prev)
        feed(event)
        events += 1
        if event.type not in _PLAIN:
            found = _look(scan, event)
            newer = newer or found
        last = item
    head = EMPTY if last is None else after(last.line, last.event)
    unread = gap is not None and gap.corrupt
    mismatch, anchor = _held_to(session, expect, passed or head, kept, gap)
    return Report(
        head,
        events,
        gap if gap is None or gap.length or gap.readable else None,
        tuple(scan.findings if unread else final_findings(scan)),
        _open_behind(store, session) if unread else tuple(scan.open_seqs()),
        store.probe(session).owner,
        newer,
        mismatch,
        kept,
        known is not None and not known.certain and anchor != expect,
        anchor,
        _look_of(store, session, last, gap, None if mismatch is None else (gap and gap.kept) or expect),
    )


def _look_of(store: Store, session: str, last: Record | None, gap: Gap | None, wanted: Head | None) -> Look | None:
    """What a break looks like; `wanted` is a head from elsewhere that the log did not go through.

    A cut-off write is no break as long as nothing from elsewhere misses anything.
    """
    head = EMPTY if last is None else after(last.line, last.event)
    if gap is None or not gap.length or (gap.kind == "torn" and not gap.readable):
        if wanted is None:
            return None
        return "end_missing" if wanted.count > head.count else "another_history"
    behind = (item for item in store.read(session, past_damage=True) if isinstance(item, Gap) or not item.sound)
    pieces = [
        (item.line, item.event) if isinstance(item, Record) else None
        for item in islice(behind, PIECES_MAX)
        if isinstance(item, Record) or item.length
    ]
    all_seen = wanted is not None and len(pieces) < PIECES_MAX
    lacks = all_seen and not any(has(piece[1], piece[0], wanted) for piece in pieces if piece and wanted)
    return look(None if last is None else last.event, head, pieces, lacks_kept=lacks)


def _gone(session: str, kept: Head | None) -> TurnwalError:
    """The error for a session that is not there: whether it ever was, its kept head says."""
    if kept is None:
        return not_found(session, "verify")
    hint = "restore a copy; where the session was removed on purpose, remove the file of its head as well"
    return HeadMismatch(f"the log {lacks(0, kept)}", action="verify", subject=session, hint=hint)


def _held_to(
    session: str, expect: Head | None, passed: Head, kept: Head | None, gap: Gap | None
) -> tuple[HeadMismatch | None, Head | None]:
    """What the heads from elsewhere say against the log, and the newest of those that it went through."""
    mismatch = _mismatch(expect, passed)
    met = [] if mismatch is not None else [expect]
    if gap is None:
        met.append(kept)
    elif gap.kept is not None:
        mismatch = short_of(gap, "verify", session)
    return mismatch, newest(met)


def _look(scan: Scan, event: Event) -> str:
    """Check what an event says of itself and of what is open; what only a newer turnwal writes is returned."""
    bounds = event.type in BOUNDARIES
    newer = "" if bounds and event.data.get("format", FORMAT) == FORMAT else _newer(event)
    if bounds:
        _check_hint(scan, event)
    return newer


def _open_behind(store: Store, session: str) -> tuple[int, ...] | None:
    """The turns that are open at the end of a log with a gap in it, None where reading from the end meets the gap."""
    opening = open_tail(store, session, accept_loss=True, newer=True)
    return None if opening.gap is not None and opening.gap.corrupt else tuple(opening.scan.open_seqs())


def gap_to_json(gap: Gap) -> dict[str, Any]:
    """What is said of bytes that are no record, as plain values; the bytes themselves are left out."""
    return {
        "position": gap.position,
        "line": gap.line_number or None,
        "after": gap.after,
        "length": gap.length,
        "sha256": gap.sha256,
        "kind": gap.kind,
        "reason": gap.reason,
        "readable_behind": gap.readable,
    }


def _newer(event: Event) -> str:
    try:
        check_known(event)
    except TooNew as error:
        return error.message
    return ""


def _check_hint(scan: Scan, event: Event) -> None:
    """Compare what a boundary says is open and waiting with what the log up to it shows."""
    data = event.data
    opened = data.get("open")
    if opened is not None:
        seqs = scan.open_seqs()
        if opened != seqs:
            _wrong(scan, event, "open", opened, seqs)
    waiting = data.get("waiting")
    if waiting is not None:
        shown = scan.waiting()
        if waiting != shown and _named(waiting) != _named(shown):
            _wrong(scan, event, "waiting", _named(waiting), _named(shown))
    granted = data.get("granted")
    if granted is not None and _named(granted) != _named(scan.granted()):
        _wrong(scan, event, "granted", _named(granted), _named(scan.granted()))


def _wrong(scan: Scan, event: Event, name: str, said: object, shown: object) -> None:
    message = f"`{name}` of the {event.type} is {said!r:.200}, the log shows {shown!r:.200}"
    scan.findings.add("wrong_hint", (event.seq,), message)


def _named(waiting: object) -> object:
    """What a list of waiting calls says of each, in an order of its own; the list itself where it is none."""
    if not isinstance(waiting, list) or not all(isinstance(entry, Mapping) for entry in waiting):
        return waiting
    return sorted(
        str((entry.get("call"), entry.get("id"), entry.get("run", "main"), bool(entry.get("doubt", False))))
        for entry in waiting
    )


def _mismatch(expect: Head | None, reached: Head) -> HeadMismatch | None:
    if expect is None:
        return None
    try:
        check_expected(expect, [reached])
    except HeadMismatch as error:
        return error
    return None
