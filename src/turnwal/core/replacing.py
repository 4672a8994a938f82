"""When a replace may stand: the rules that keep a compaction from making the surface a lie (F27).

Promises: a replace that parts a call from its result, hides an owed or waiting call, cuts through an earlier replace,
covers nothing, or reaches past the end of the log is refused with the seqs. The log is unchanged then.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from turnwal.core import keys
from turnwal.core.errors import InvalidEvent
from turnwal.core.line import Event
from turnwal.core.pairs import Pairs
from turnwal.core.surface import range_of
from turnwal.core.types import SURFACE
from turnwal.core.values import id_of


def check_replace(events: Iterable[Event], type: str, data: Mapping[str, Any], run: str) -> None:
    """Return if an event with a `replace` may come after `events`; raise `InvalidEvent` naming the seqs if not."""
    if type not in SURFACE:
        message = f"a {type} is not on the surface, so it replaces nothing"
        raise InvalidEvent(message, action="append", hint=f"only these replace: {', '.join(sorted(SURFACE))}")
    first, last = _bounds(data)
    seen = Pairs(run)
    end = -1
    for event in events:
        seen.feed(event)
        end = event.seq
    if last > end:
        _refuse(first, last, f"reaches past the last event, which has seq {end}")
    covered = seen.surface.within(first, last)
    if not covered:
        _refuse(first, last, "covers nothing that is visible in its run")
    for event in seen.surface:
        earlier = range_of(event.data)
        if earlier is not None and (earlier[0] < first <= earlier[1] or earlier[0] <= last < earlier[1]):
            _refuse(first, last, f"cuts through the replace of [{earlier[0]}, {earlier[1]}] at seq {event.seq}")
    if type == "tool_result":
        _check_same_call(seen, first, last, data, covered)
        return
    inside = {event.seq for event in covered}
    _check_pairs(seen, first, last, inside)
    hidden = {key for seq in inside for key in seen.asks.get(seq, {}).values()}
    for call in seen.scan.run(run).unanswered():
        owed = call.owed and call.turn is not None and call.turn.seq >= 0
        if (call.key in hidden or keys.seq_of(call.key) in inside) and (owed or call.waiting is not None):
            state = "waiting" if call.waiting is not None else "owed a result"
            _refuse(first, last, f"covers the call {keys.text(call.key)}, which is {state}")


def _bounds(data: Mapping[str, Any]) -> tuple[int, int]:
    bounds = range_of(data)
    if bounds is None:
        message = f"{data.get('replace')!r:.80} is no range of seqs"
        raise InvalidEvent(message, action="append", hint="say `replace: [first_seq, last_seq]`")
    return bounds


def _check_same_call(seen: Pairs, first: int, last: int, data: Mapping[str, Any], covered: list[Event]) -> None:
    named = keys.parse(data.get("call"))
    for event in covered:
        answered = seen.answers.get(event.seq) or {keys.parse(event.data.get("call"))} - {None}
        same = named in answered if answered and "call" in data else id_of(event.data) == id_of(data)
        if event.type != "tool_result" or not same:
            _refuse(first, last, f"a result may replace only a result of its own call, not seq {event.seq}")


def _check_pairs(seen: Pairs, first: int, last: int, inside: set[int]) -> None:
    outside = {event.seq for event in seen.surface} - inside
    for asking, answering in ((inside, outside), (outside, inside)):
        asked = {key for seq in asking for key in seen.asks.get(seq, {}).values()}
        for seq in sorted(answering):
            parted = asked & seen.answers.get(seq, set())
            if parted:
                _refuse(first, last, f"parts the call {keys.text(min(parted))} from its result at seq {seq}")


def _refuse(first: int, last: int, why: str) -> None:
    message = f"the replace of [{first}, {last}] {why}"
    raise InvalidEvent(message, action="append", hint="choose a range that begins and ends between steps")
