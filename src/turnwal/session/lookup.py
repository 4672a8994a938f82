"""What a session's log says of one call, and finding that in a stored session.

A scan says which records are about the call, so one that carries only a provider's id counts like one with our key.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from turnwal.core import keys
from turnwal.core.chain import EMPTY, Head, after, digest
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
from turnwal.session.opening import Beginning, contiguous
from turnwal.store.protocol import Gap, Record, Store


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
                self.result = event
            case "approval_request":
                self.question = "pending"
            case "approval_response":
                self.question = decision_of(data)
            case "tool_outcome":
                self.outcomes.append(event)
                if data.get("outcome") in ("happened", "did_not_happen"):
                    self.learnt = data["outcome"]
            case _:
                return

    @property
    def lost(self) -> bool:
        """Whether its result only stands in for one that was lost."""
        return self.result is not None and is_synthetic(self.result.data)


class Lookup:
    """What a log says of one call, read on event by event."""

    def __init__(self, key: int, asking_line: bytes) -> None:
        """Know nothing yet; `asking_line` is the line that the key names."""
        self._key = key
        self._hash = digest(asking_line)
        self._scan = Scan()
        self.found = Found(key)
        self.met = False
        """Whether something asked for the call or dispatched it."""
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
            self.feed(item.event)
            self.position, self.head = item.position + len(item.line) + 1, after(item.line, item.event)
        return self.head == head

    def feed(self, event: Event) -> None:
        """Take in the next event of the log."""
        scan = self._scan
        scan.feed(event)
        if event.type == "assistant_message":
            for index, part in asking_parts(event.data):
                if scan.asked_last.get(index) == self._key:
                    self._meet(event)
                    self.found.ask(part)
        elif scan.about == self._key:
            if not self.met:
                self._meet(event)
                self.found.ask(event.data)
            self.found.take(event)

    def _meet(self, event: Event) -> None:
        if not self.met:
            self.met = True
            self.found.run = event.run
            index = keys.index_of(self._key)
            of_line = event.prev if index == keys.DISPATCH_INDEX else self._hash
            self.found.idempotency_key = keys.idempotency_key(of_line, index)


def packed_key(key: object, session: str) -> int:
    """The key of a call as one integer; raises `InvalidName` for what is none."""
    packed = keys.parse(key)
    if packed is None:
        raise InvalidName(f"{key!r} is no key of a call", action="find", subject=session, hint='a key is like "12.1"')
    return packed


def find(store: Store, session: str, key: int, head: Head) -> Lookup:
    """Return what the log up to `head` says of a call.

    Looks backwards for the line that asks and reads on from the oldest turn that was open there, so that records are
    paired as a scan of the whole pairs them, and what stands inside damage is never taken for a record. Where what
    stands before that line is lost, reading begins with it. Raises `CallNotFound` when nothing asks for the call.
    """
    for asking in store.newest(session):
        if asking is not None and asking.event.seq == keys.seq_of(key) and _names(asking.event, key):
            for begin in _beginnings(store, session, asking):
                lookup = Lookup(key, asking.line)
                if lookup.read(store, session, begin, head):
                    if lookup.met:
                        return lookup
                    break
    hint = "`turnwal show` lists the calls of a session with their keys"
    raise CallNotFound(f"nothing asks for the call {keys.text(key)}", action="find", subject=session, hint=hint)


def _names(event: Event, key: int) -> bool:
    """Whether a line may be the one that a key names."""
    index = keys.index_of(key)
    if index == keys.DISPATCH_INDEX:
        return event.type == "tool_call"
    return event.type == "assistant_message" and any(index == at for at, _ in asking_parts(event.data))


def _beginnings(store: Store, session: str, asking: Record) -> Iterator[Record | None]:
    """Where to begin reading for what happened to a call, the best place first."""
    beginning = Beginning()
    for record in contiguous(_from(store.newest(session), asking)):
        if record is None or beginning.misled:
            break
        beginning.look(record)
        if beginning.record is not None:
            yield beginning.record
            break
    if beginning.record is None:
        yield None
    yield asking


def _from(records: Iterator[Record | None], first: Record) -> Iterator[Record | None]:
    """The records from one on."""
    begun = False
    for record in records:
        begun = begun or (record is not None and record.position == first.position)
        if begun:
            yield record
