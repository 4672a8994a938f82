"""Recording what a model replied, and the handles of the calls it asks for.

Whoever records a reply, a step or `Session.append`, does it here, so a call has one handle that knows the arguments as
the model wrote them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnwal.core import asking, keys, values
from turnwal.core.errors import Refused
from turnwal.core.line import Event
from turnwal.session.call import Call
from turnwal.session.lookup import Found

if TYPE_CHECKING:
    from turnwal.session.session import Session


def note_reply(
    session: "Session", data: dict[str, Any], *, run: str, ignorable: bool = False
) -> tuple[Event, list[Call]]:
    """Append a reply; returns the event, and a handle of each call it asks for, however often that was asked for.

    Raises `Refused` where redaction makes a call equal to another one of the step: it would never run (F07).
    """
    with session.order:
        recorded = session.redacted("assistant_message", data)
        met = _met_before(session, recorded, run)
        if recorded is not data:
            _check_apart(session, data, recorded, run, met)
        # held until the end: a call met before has its handle, which knows what became of it, before this is recorded
        known = session.calls(sorted(set(met.values())))
        event = session.note("assistant_message", recorded, run=run, ignorable=ignorable, redact=False)
        asked = session.scan.asked_last
        parts = dict(values.asking_parts(data))
        handles = [session.asked(_found(session, event, key, parts[index])) for index, key in asked.items()]
        del known
        return event, handles


def _found(session: "Session", event: Event, key: int, part: Mapping[str, Any]) -> Found:
    found = Found(key, event.run)
    found.ask(part)
    if keys.seq_of(key) == event.seq:
        found.idempotency_key = keys.idempotency_key(session.head.hash, keys.index_of(key))
    return found


def _met_before(session: "Session", message: Mapping[str, Any], run: str) -> dict[int, int]:
    """Part index to key of the calls of a message that were met before it."""
    state = session.scan.run(run)
    met: dict[int, int] = {}
    earlier = asking.earlier_parts(state, message, session.next_seq)
    for index, part in values.asking_parts(message):
        key = earlier.get(index)
        if key is None:
            call = asking.met_before(state.turn, part, set(met.values()))
            key = None if call is None else call.key
        if key is not None:
            met[index] = key
    return met


def _check_apart(
    session: "Session", data: Mapping[str, Any], recorded: Mapping[str, Any], run: str, met: Mapping[int, int]
) -> None:
    earlier = asking.earlier_parts(session.scan.run(run), recorded, session.next_seq)
    plain = dict(values.asking_parts(data))
    for index, key in met.items():
        arguments = None if index in earlier else session.arguments_of(key)
        if arguments is not None and arguments != values.arguments_of(plain[index]):
            raise Refused(
                "redaction makes two different calls of the step equal",
                action="record",
                subject=f"call {keys.text(key)}",
                hint="let `redact` leave what differs, say a digest with a secret key, the same each time",
            )
