"""Which call a record without a key means.

Provider ids repeat, so a record that carries only an id is paired within its run: among the unanswered calls of the
open turns and among the calls that wait, innermost open step first, then its turn, then outwards; equal name and
arguments before merely equal id; newest message first, then by position.
"""

from collections.abc import Callable
from typing import NamedTuple

from turnwal.core.calls import Call, Run
from turnwal.core.keys import index_of, seq_of

_FAR = 1 << 30


class Match(NamedTuple):
    """A call that a record may mean; a smaller one fits better."""

    distance: int
    """0 for the innermost open step, 1 for the rest of its turn, and so outwards; waiting calls come last."""
    inexact: bool
    age: int
    position: int
    call: Call

    def fits_like(self, other: "Match") -> bool:
        """Whether nothing but the tie-breakers, age and position, tells the two apart."""
        return (self.distance, self.inexact) == (other.distance, other.inexact)


def matches(run: Run, id: str, name: str | None, arguments: str | None, wanted: Callable[[Call], bool]) -> list[Match]:
    """The calls of that provider id for which `wanted` holds, best first."""
    found: list[Match] = []

    def consider(call: Call, distance: int) -> None:
        if wanted(call):
            exact = (name is None or call.name == name) and (arguments is None or call.arguments == arguments)
            exact = exact and not (name is None and arguments is None)
            found.append(Match(distance, not exact, -seq_of(call.key), index_of(call.key), call))

    for outward, turn in enumerate(run.scope()):
        for call in turn.by_id.get(id, {}).values():
            near = call.step is not None and call.step is turn.step
            consider(call, 2 * outward + (0 if near else 1))
    for call in run.kept.values():
        if call.id == id and call.stays:
            consider(call, _FAR)
    return sorted(found, key=lambda match: match[:4])


def anything(_: Call) -> bool:
    """Let every unanswered call be meant."""
    return True
