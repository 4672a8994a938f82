"""What a session's log says of one call, and finding that in a stored session."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from turnwal.core import keys
from turnwal.core.chain import Head, after, digest
from turnwal.core.errors import CallNotFound, InvalidName
from turnwal.core.line import Event
from turnwal.core.values import (
    Question,
    arguments_of,
    asking_parts,
    attempt_of,
    decision_of,
    id_of,
    is_synthetic,
    name_of,
    text_of,
)
from turnwal.store.protocol import Gap, Record, Store

ABOUT_CALLS: Final = frozenset({"tool_call", "tool_result", "tool_outcome", "approval_request", "approval_response"})
"""The types that change what is known of a call."""


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
    """The arguments in the log are not those that the model wrote."""
    idempotency_key: str = ""
    result: Event | None = None
    """The first result that is no replacement of another."""
    question: Question | None = None
    """What became of its approval, as of the last record about it."""
    attempts: int = 0
    """The greatest attempt that was dispatched; 0 where none was."""
    running: int = 0
    """The repeated attempt whose outcome is not recorded yet; 0 where there is none."""
    learnt: str = ""
    """The last outcome that decides: `happened` or `did_not_happen`."""
    outcomes: list[Event] = field(default_factory=list)
    """Oldest first."""

    def ask(self, id: str, name: str | None, arguments: str | None, *, free_text: bool) -> None:
        """Take in what a later version of the message says; once dispatched, a call stays what it was."""
        if not self.attempts:
            self.id, self.name, self.arguments, self.free_text = id, name, arguments, free_text

    def take(self, event: Event) -> None:
        """Take in the next event about the call."""
        data = event.data
        match event.type:
            case "tool_call":
                self.attempts = max(self.attempts, attempt_of(data))
                self.running = attempt_of(data) if attempt_of(data) > 1 else self.running
                self.idempotency_key = text_of(data, "key") or self.idempotency_key
            case "tool_result" if data.get("replace") is None and self.result is None:
                self.result = event
            case "approval_request":
                self.question = "pending"
            case "approval_response":
                self.question = decision_of(data)
            case "tool_outcome":
                self.outcomes.append(event)
                if attempt_of(data) == self.running:
                    self.running = 0
                if data.get("outcome") in ("happened", "did_not_happen"):
                    self.learnt = data["outcome"]
            case _:
                return

    @property
    def lost(self) -> bool:
        """Whether its result only stands in for one that was lost."""
        return self.result is not None and is_synthetic(self.result.data)


def find(store: Store, session: str, key: str, head: Head) -> Found:
    """Return the call of a key, as the log up to `head` has it.

    Looks backwards for the line that asks and reads on from there, so that what stands inside damage is never taken
    for a record. Raises `InvalidName` for what is no key and `CallNotFound` when nothing asks for or dispatches it.
    """
    packed = keys.parse(key)
    if packed is None:
        raise InvalidName(f"{key!r} is no key of a call", action="find", subject=session, hint='a key is like "12.1"')
    for record in store.newest(session):
        found = None if record is None or record.event.seq != keys.seq_of(packed) else _asked(record, packed)
        if record is not None and found is not None:
            later = _sound_after(store, session, record, key, head)
            if later is not None:
                _take_all(found, later, record.event.seq)
                return found
    hint = "`turnwal show` lists the calls of a session with their keys"
    raise CallNotFound(f"nothing asks for the call {key}", action="find", subject=session, hint=hint)


def _sound_after(store: Store, session: str, asked: Record, key: str, head: Head) -> list[Event] | None:
    """What may concern the call after the line that asks; None when that line does not lead to the head."""
    later: list[Event] = []
    reached: Record | None = None
    for item in store.read(session, asked.position, after=Head(asked.event.seq, asked.event.prev)):
        if isinstance(item, Gap) or item.event.seq >= head.count:
            break
        reached = item
        data = item.event.data
        if "completes" in data or (data.get("call") == key and item.event.type in ABOUT_CALLS):
            later.append(item.event)
    return later if reached is not None and after(reached.line, reached.event) == head else None


def _take_all(found: Found, events: Iterable[Event], asked_at: int) -> None:
    """Take in what came after the line that asks, later versions of that message included."""
    versions = {asked_at}
    for event in events:
        if event.type == "assistant_message":
            part = dict(asking_parts(event)).get(keys.index_of(found.key))
            if event.run == found.run and event.data.get("completes") in versions and part is not None:
                versions.add(event.seq)
                if not found.attempts:
                    found.redacted = part.get("redacted") is True
                found.ask(id_of(part), name_of(part), arguments_of(part), free_text=part.get("format") == "text")
        elif event.data.get("call") == keys.text(found.key) and event.seq != asked_at:
            found.take(event)


def _asked(record: Record, packed: int) -> Found | None:
    """The call as the line that asks for it has it, None when that line asks for no such call."""
    event, index = record.event, keys.index_of(packed)
    if index == keys.DISPATCH_INDEX:
        if event.type != "tool_call":
            return None
        data = event.data
        found = Found(packed, event.run, id_of(data), name_of(data), arguments_of(data))
        found.redacted = data.get("redacted") is True
        found.take(event)
        return found
    part = dict(asking_parts(event)).get(index) if event.type == "assistant_message" else None
    if part is None:
        return None
    found = Found(packed, event.run, id_of(part), name_of(part), arguments_of(part), part.get("format") == "text")
    found.redacted = part.get("redacted") is True
    found.idempotency_key = keys.idempotency_key(digest(record.line), index)
    return found
