"""Chained lines whose data is not what their type says: nothing that reads a log may raise on them."""

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from turnwal.core.chain import Head, after
from turnwal.core.errors import CallNotFound
from turnwal.core.line import Event, make
from turnwal.core.log import Log
from turnwal.core.recovery import interrupted, open_turns, plan
from turnwal.core.surface import Surface
from turnwal.core.types import TYPES
from turnwal.session.sessions import Sessions
from turnwal.store.memory import MemoryStore

SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 4) | st.sampled_from(["", "1.0", "2.d", "text", "durable", "k", "main"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "id", "name", "call", "arguments", "run", "synthetic", "read_only"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
FIELDS = sorted(
    {field for fields in TYPES.values() for field in fields} | {"parts", "metadata", "keyed", "hints_from"} - {"format"}
)


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    head, events = Head(0, "0" * 64), []
    for _ in range(draw(st.integers(1, 12))):
        type = draw(st.sampled_from(sorted(TYPES)))
        data: dict[str, Any] = draw(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6))
        if type == "turn_start" and draw(st.booleans()):
            data = {"turn": 1, "dispatch": "durable"} | data
        data.pop("replace", None)
        run = draw(st.sampled_from(["main", "1.0"]))
        line, event = make(Event(seq=head.count, prev=head.hash, time=0, type=type, run=run, data=data))
        head = after(line, event)
        events.append(event)
    return events


@settings(max_examples=300, derandomize=True, deadline=None)
@given(histories())
def test_reading_never_raises_and_what_recovery_appends_is_valid(events: list[Event]) -> None:
    planned = plan(events)
    assert interrupted(events) == bool(open_turns(events))
    surface = Surface()
    for event in events:
        surface.add(event)
    log = Log()
    for repair in planned.repairs:
        log.append(repair.type, repair.data, run=repair.run)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(histories())
def test_a_stored_session_of_odd_data_opens_and_is_recovered(events: list[Event]) -> None:
    sessions = Sessions(MemoryStore())
    lines = []
    head = Head(0, "0" * 64)
    start = Event(seq=0, prev=head.hash, time=0, type="session_start", data={"id": "s", "format": 1})
    for event in (start, *(event for event in events if not event.type.startswith("session_"))):
        line, made = make(
            Event(seq=head.count, prev=head.hash, time=0, type=event.type, run=event.run, data=event.data)
        )
        head = after(line, made)
        lines.append(line)
    sessions.take_in("s", lines)

    sessions.glance("s")
    list(sessions.inspect("s"))
    with sessions.session("s") as session:
        session.append("x.note", {})
        for call in ("1.0", "2.d", "3.0"):
            with suppress(CallNotFound):
                session.call(call)
    assert not interrupted(item.event for item in sessions.store.read("s") if hasattr(item, "event"))
