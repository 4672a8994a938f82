"""Finding a call in a stored session, whatever became of it."""

from dataclasses import dataclass, field

from turnwal.core import keys
from turnwal.core.chain import digest
from turnwal.core.errors import CallNotFound, InvalidName
from turnwal.core.line import Event
from turnwal.core.values import Question, arguments_of, asking_parts, attempt_of, decision_of, id_of, name_of, text_of
from turnwal.store.protocol import Store


@dataclass(slots=True)
class Found:
    """A call as the log has it."""

    key: int
    run: str = "main"
    id: str = ""
    name: str | None = None
    arguments: str | None = None
    free_text: bool = False
    idempotency_key: str = ""
    dispatched: Event | None = None
    """The first dispatch."""
    result: Event | None = None
    """The first result that is no replacement of another."""
    question: Question | None = None
    """What became of its approval, as of the last record about it."""
    attempts: int = 0
    """The greatest attempt that was dispatched; 0 where none was."""
    outcomes: list[Event] = field(default_factory=list)
    """Oldest first."""


def find(store: Store, session: str, key: str) -> Found:
    """Return the call of a key. Reads backwards from the end to the line that asks.

    Raises `InvalidName` for what is no key and `CallNotFound` when nothing asks for or dispatches it.
    """
    packed = keys.parse(key)
    if packed is None:
        raise InvalidName(f"{key!r} is no key of a call", action="find", subject=session, hint='a key is like "12.1"')
    found = Found(packed)
    for record in store.newest(session):
        if record is None or record.event.seq > keys.seq_of(packed):
            if record is not None and record.event.data.get("call") == key:
                _note(found, record.event)
            continue
        event = record.event
        if event.seq < keys.seq_of(packed):
            break
        if keys.index_of(packed) == keys.DISPATCH_INDEX:
            if event.type == "tool_call":
                _note(found, event)
                return found
            break
        index = keys.index_of(packed)
        part = dict(asking_parts(event)).get(index) if event.type == "assistant_message" else None
        if part is None:
            break
        found.run, found.id, found.name = event.run, id_of(part), name_of(part)
        found.arguments, found.free_text = arguments_of(part), part.get("format") == "text"
        found.idempotency_key = found.idempotency_key or keys.idempotency_key(digest(record.line), index)
        return found
    hint = "`turnwal show` lists the calls of a session with their keys"
    raise CallNotFound(f"nothing asks for the call {key}", action="find", subject=session, hint=hint)


def _note(found: Found, event: Event) -> None:
    """Take in an event about the call; they come newest first."""
    data = event.data
    if event.type == "tool_call":
        found.attempts = max(found.attempts, attempt_of(data))
        found.run, found.id, found.name = event.run, id_of(data), name_of(data)
        found.arguments = arguments_of(data)
        found.idempotency_key = text_of(data, "key") or found.idempotency_key
        found.dispatched = event
    elif event.type == "tool_result" and "replace" not in data:
        found.result = event
    elif event.type == "approval_request":
        found.question = found.question or "pending"
    elif event.type == "approval_response":
        found.question = found.question or decision_of(data)
    elif event.type == "tool_outcome":
        found.outcomes.insert(0, event)
