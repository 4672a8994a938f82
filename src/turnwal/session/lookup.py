"""What a session's log says of one call, and finding that in a stored session.

A scan says which records are about the call, so one that carries only a provider's id counts like one with our key.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from turnwal.core import keys
from turnwal.core.chain import EMPTY, Head, after
from turnwal.core.errors import CallNotFound, InvalidName
from turnwal.core.line import Event
from turnwal.core.scan import Scan
from turnwal.core.values import (
    Question,
    arguments_of,
    asking_parts,
    attempt_of,
    decision_of,
    id_of,
    is_redacted,
    is_synthetic,
    name_of,
    text_of,
)
from turnwal.session.opening import Beginning, contiguous, damaged
from turnwal.session.past import believed
from turnwal.store.protocol import Gap, Record, Store

_SHOW: Final = "`turnwal show` reads on past it"
_PAST: Final = f"{_SHOW}; with `--accept-loss`, or in a session opened with `accept_loss=True`, calls are found past it"


@dataclass(slots=True)
class Found:
    """A call as the log has it so far."""

    key: int
    run: str = "main"
    id: str = ""
    name: str | None = None
    arguments: str | None = None
    free_text: bool = False
    redacted: bool = False
    """The arguments are not those that the model wrote."""
    idempotency_key: str = ""
    result: Event | None = None
    """The first result that is no replacement of another."""
    question: Question | None = None
    """What became of its approval, as of the last record about it."""
    attempts: int = 0
    """The greatest attempt that was dispatched; 0 where none was."""
    learnt: str = ""
    """The last outcome that decides: `happened` or `did_not_happen`."""
    outcomes: list[Event] = field(default_factory=list)
    """Oldest first."""
    doubtful: bool = False
    """Records about the call may be lost in bytes that nothing covers: a dispatch, a result, a deciding outcome."""
    hidden: bool = False
    """A dispatch or an outcome of the call may be among bytes that a `damage` event covers."""

    def ask(self, part: Mapping[str, Any]) -> None:
        """Take in what a message asks for, or a dispatch hands over; once dispatched, a call stays what it was."""
        if not self.attempts:
            self.id, self.name, self.arguments = id_of(part), name_of(part), arguments_of(part)
            self.free_text, self.redacted = part.get("format") == "text", is_redacted(part)

    def take(self, event: Event) -> None:
        """Take in the next event about the call."""
        data = event.data
        match event.type:
            case "tool_call":
                self.attempts = max(self.attempts, attempt_of(data))
                self.idempotency_key = text_of(data, "key") or self.idempotency_key
            case "tool_result" if data.get("replace") is None and self.result is None:
                self.result, self.hidden = event, False  # its class was decided on with the damage in sight
            case "approval_request":
                self.question = "pending"
            case "approval_response":
                self.question = decision_of(data)
            case "tool_outcome":
                self.outcomes.append(event)
                if data.get("outcome") in ("happened", "did_not_happen"):
                    self.learnt, self.doubtful, self.hidden = data["outcome"], False, False
            case _:
                return

    @property
    def lost(self) -> bool:
        """Whether its result only stands in for one that was lost."""
        return self.result is not None and is_synthetic(self.result.data)


class Lookup:
    """What a log says of some calls, read on event by event."""

    def __init__(self, wanted: Iterable[int]) -> None:
        """Know nothing yet."""
        self._wanted = frozenset(wanted)
        self._asking = {keys.seq_of(key) for key in self._wanted}
        self._hashes: dict[int, str] = {}
        """By seq: the hashes of the lines that the keys name."""
        self._last = -1
        self._scan = Scan()
        self._met: dict[int, Found] = {}
        self.gap: Gap | None = None
        """The first that was read past."""
        self.position = 0
        self.head = EMPTY
        """Where the next record stands, and the head before it."""

    def read(self, store: Store, session: str, begin: Record | None, head: Head) -> bool:
        """Read from a line on, None for the first; whether the lines lead to that head."""
        if begin is not None:
            self.position, self.head = begin.position, Head(begin.event.seq, begin.event.prev)
        for item in store.read(session, self.position, after=None if begin is None else self.head):
            if isinstance(item, Gap) or item.event.seq >= head.count:
                break
            self._take(item)
        return self.head == head

    def read_past(self, store: Store, session: str, begin: Record | None, head: Head) -> None:
        """Read as `read`, on past damage, which leaves doubt about every call that was met before it."""
        start = 0 if begin is None else begin.position
        for item in believed(store.read(session, past_damage=True), head):
            if isinstance(item, Gap):
                self.gap = self.gap or item
                for found in self._met.values():
                    found.doubtful = True
            elif item.event.seq < head.count and item.position >= start:
                self._take(item)

    def feed(self, event: Event) -> None:
        """Take in the next event of the log."""
        if self._last in self._asking:
            self._hashes.setdefault(self._last, event.prev)
        self._last = event.seq
        scan = self._scan
        scan.feed(event)
        if event.type == "assistant_message":
            for index, part in asking_parts(event.data):
                key = scan.asked_last.get(index)
                if key in self._wanted:
                    self._meet(key, event).ask(part)
        elif event.type == "damage":
            for key, found in self._met.items():
                found.hidden = found.hidden or scan.hides(scan.run(found.run), keys.seq_of(key))
        elif scan.about in self._wanted:
            key = scan.about
            if key not in self._met:
                self._meet(key, event).ask(event.data)
            self._met[key].take(event)

    def met(self, key: int) -> bool:
        """Whether something asked for a call or dispatched it."""
        return key in self._met

    def found(self, head: Head) -> dict[int, Found]:
        """The calls by key, those that nothing asks for left out; `head` is the one behind the last event."""
        if self._last in self._asking:
            self._hashes.setdefault(self._last, head.hash)
        known = {key: found for key, found in self._met.items() if keys.seq_of(key) in self._hashes}
        for key, found in known.items():
            if not found.idempotency_key:
                found.idempotency_key = keys.idempotency_key(self._hashes[keys.seq_of(key)], keys.index_of(key))
        return known

    def _take(self, record: Record) -> None:
        self.feed(record.event)
        self.position, self.head = record.position + len(record.line) + 1, after(record.line, record.event)
        if record.event.seq in self._asking:
            self._hashes[record.event.seq] = self.head.hash

    def _meet(self, key: int, event: Event) -> Found:
        found = self._met.get(key)
        if found is None:
            found = self._met[key] = Found(key, event.run)
            index = keys.index_of(key)
            if index == keys.DISPATCH_INDEX:
                found.idempotency_key = keys.idempotency_key(event.prev, index)
        return found


def packed_key(key: object, session: str) -> int:
    """The key of a call as one integer; raises `InvalidName` for what is none."""
    packed = keys.parse(key)
    if packed is None:
        raise InvalidName(f"{key!r} is no key of a call", action="find", subject=session, hint='a key is like "12.1"')
    return packed


def find(store: Store, session: str, wanted: Collection[int], head: Head, *, accept_loss: bool = False) -> Lookup:
    """Return what the log up to `head` says of some calls; the caller feeds it what came behind that.

    Looks backwards for the first line that asks and reads on from the oldest turn that was open there, so that records
    are paired as a scan of the whole pairs them, and what stands inside damage is never taken for a record. Where what
    stands before that line is lost, reading begins with it. Where something behind it is lost, raises `Damaged`, or
    reads past that with `accept_loss`. Raises `CallNotFound` when nothing asks for any of the calls.
    """
    first = min(wanted)
    lookup = Lookup(wanted)
    begin: Record | None = None
    for asking in _asking(store, session, first, head):
        for begin in _beginnings(store, session, asking, head):
            lookup = Lookup(wanted)
            if lookup.read(store, session, begin, head):
                if asking is None or lookup.met(first):
                    return lookup
                break
    gap = next((item for item in store.read(session) if isinstance(item, Gap)), None)
    if gap is None or gap.after + 1 >= head.count:
        rest = [key for key in wanted if key != first]
        if not rest:
            raise not_found(session, first)
        return find(store, session, rest, head, accept_loss=accept_loss)
    if not accept_loss:
        raise damaged(session, gap, action="find a call in", hint=_PAST)
    lookup = Lookup(wanted)
    lookup.read_past(store, session, begin, head)
    return lookup


def told_of(scan: Scan, session: str, key: int, lookup: Lookup) -> Found:
    """What an open session's scan says of a call whose own line was not found: enough to decide and to answer it.

    Raises `CallNotFound` where it says nothing, and `Damaged` where that may be since something was lost.
    """
    for run in scan.runs.values():
        call = run.find(key)
        if call is not None:
            return Found(key, run.name, call.id, call.name, doubtful=True)
    raise (
        not_found(session, key)
        if lookup.gap is None
        else damaged(session, lookup.gap, action="find a call in", hint=_SHOW)
    )


def not_found(session: str, key: int) -> CallNotFound:
    """The refusal of a key that names no call."""
    hint = "`turnwal show` lists the calls of a session with their keys"
    return CallNotFound(f"nothing asks for the call {keys.text(key)}", action="find", subject=session, hint=hint)


def _asking(store: Store, session: str, key: int, head: Head) -> Iterator[Record | None]:
    """The lines that may be the one that a key names; None where that one is not stored yet."""
    if keys.seq_of(key) >= head.count:
        yield None
        return
    for record in store.newest(session):
        if record is not None and record.event.seq == keys.seq_of(key) and _names(record.event, key):
            yield record


def _names(event: Event, key: int) -> bool:
    """Whether a line may be the one that a key names."""
    index = keys.index_of(key)
    if index == keys.DISPATCH_INDEX:
        return event.type == "tool_call"
    return event.type == "assistant_message" and any(index == at for at, _ in asking_parts(event.data))


def _beginnings(store: Store, session: str, asking: Record | None, head: Head) -> Iterator[Record | None]:
    """Where to begin reading for what happened to a call, the best place first."""
    beginning = Beginning()
    for record in contiguous(_from(store.newest(session), asking, head)):
        if record is None or beginning.misled:
            break
        beginning.look(record)
        if beginning.record is not None:
            yield beginning.record
            break
    if beginning.record is None:
        yield None
    if asking is not None:
        yield asking


def _from(records: Iterator[Record | None], first: Record | None, head: Head) -> Iterator[Record | None]:
    """The records from one on, or from the last one before a head."""
    begun = False
    for record in records:
        if record is not None and not begun:
            begun = record.event.seq < head.count if first is None else record.position == first.position
        if begun:
            yield record
