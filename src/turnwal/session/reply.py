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
        if recorded is not data:
            _check_apart(session, data, recorded, run)
        event = session.note("assistant_message", recorded, run=run, ignorable=ignorable, redact=False)
        asked = session.scan.asked_last
        parts = dict(values.asking_parts(data))
        return event, [session.asked(_found(session, event, key, parts[index])) for index, key in asked.items()]


def _found(session: "Session", event: Event, key: int, part: Mapping[str, Any]) -> Found:
    found = Found(key, event.run)
    found.ask(part)
    if keys.seq_of(key) == event.seq:
        found.idempotency_key = keys.idempotency_key(session.head.hash, keys.index_of(key))
    else:
        met = session.scan.run(event.run).find(key)
        found.idempotency_key = (met.idempotency_key if met is not None else None) or ""
    return found


def _check_apart(session: "Session", data: Mapping[str, Any], recorded: Mapping[str, Any], run: str) -> None:
    state = session.scan.run(run)
    plain = dict(values.asking_parts(data))
    earlier = asking.earlier_parts(state, data, session.next_seq)
    taken: set[int] = set()
    for index, part in values.asking_parts(recorded):
        met = None if index in earlier else asking.met_before(state.turn, part, taken)
        if index in earlier:
            taken.add(earlier[index])
        elif met is not None:
            taken.add(met.key)
            arguments = session.arguments_of(met.key)
            if arguments is not None and arguments != values.arguments_of(plain[index]):
                raise Refused(
                    "redaction makes two different calls of the step equal",
                    action="record",
                    subject=f"call {keys.text(met.key)}",
                    hint="let `redact` leave what differs, say a digest with a secret key, the same each time",
                )
