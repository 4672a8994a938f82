"""Looking at a stored session: its state, its plan and the balanced history, with nothing written."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from turnwal.core.chain import EMPTY, Head, after
from turnwal.core.errors import DamagedStart, HeadMismatch, TooNew
from turnwal.core.kept import lacks
from turnwal.core.line import Event, make
from turnwal.core.log import draft
from turnwal.core.recovery import Plan, plan_of
from turnwal.core.rules import NOT_STARTED
from turnwal.core.surface import Surface
from turnwal.session.opening import Opening, check_start, damage_data, damaged, is_empty, open_tail
from turnwal.store.protocol import Gap, Store
from turnwal.transcript.conversation import Outcomes, Waiting
from turnwal.transcript.render import Rendering, render

State = Literal["clean", "waiting", "open", "interrupted", "damaged", "empty", "too_new", "unreadable"]
"""What can be said of a session at a glance.

`clean`: nothing is open. `waiting`: nothing is open, but calls wait to be answered. `open`: an owner is alive.
`interrupted`: work is open, or a torn tail stands, and nobody owns it. `damaged`: bytes were lost before readable
records. `empty`: it never began. `too_new`: a newer turnwal wrote it. `unreadable`: the store could not read it; only
a listing says so, where others raise.
"""


@dataclass(frozen=True, slots=True)
class Glance:
    """What a listing says of one session; costs what is open."""

    id: str
    state: State
    events: int = 0
    head: Head | None = None
    time: int = 0
    """The time of the last real event, 0 where there is none."""
    turns: tuple[int, ...] = ()
    """The seqs of the open turns."""
    owed: int = 0
    """Calls that recovery would answer."""
    not_started: int = 0
    """Of these, the calls that it would call *not started*; the outcome of the others is unknown."""
    waiting: int = 0
    owner: str | None = None
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """The glance as plain values."""
        return {
            "session": self.id,
            "state": self.state,
            "events": self.events,
            "head": None if self.head is None else str(self.head),
            "time": self.time,
            "open_turns": list(self.turns),
            "owed": self.owed,
            "not_started": self.not_started,
            "unknown": self.owed - self.not_started,
            "waiting": self.waiting,
            "owner": self.owner,
            "problem": self.problem,
        }


def glance(store: Store, session: str) -> Glance:
    """Say what state a session is in. Raises only `SessionNotFound` and what a failing store raises."""
    presence = store.probe(session)
    try:
        if presence.empty and is_empty(store, session):
            return Glance(session, "empty", owner=presence.owner)
        opening = open_tail(store, session, accept_loss=True, newer=True)
    except (DamagedStart, HeadMismatch, TooNew) as error:
        state: State = "too_new" if isinstance(error, TooNew) else "damaged"
        return Glance(session, state, problem=error.message, owner=presence.owner)
    damage = pending_damage(opening)
    if damage is not None:
        opening.scan.feed(damage)
    planned = plan_of(opening.scan)
    lost = planned.lost_calls()
    waiting = len(opening.scan.waiting())
    state, problem = _state(opening, planned, owned=presence.owner is not None, waits=waiting > 0)
    return Glance(
        session,
        state,
        events=opening.head.count,
        head=opening.head,
        time=opening.scan.time,
        turns=tuple(opening.scan.open_seqs()),
        owed=len(lost),
        not_started=sum(repair.data["metadata"]["risk"] == NOT_STARTED for repair in lost),
        waiting=waiting,
        owner=presence.owner,
        problem=problem,
    )


def _state(opening: Opening, planned: Plan, *, owned: bool, waits: bool) -> tuple[State, str]:
    gap = opening.gap
    if gap is not None and gap.corrupt:
        behind = f"a line {gap.reason}, and {gap.readable} readable records follow"
        return "damaged", behind if gap.kept is None else f"it {lacks(gap.after + 1, gap.kept)}"
    if opening.newer:
        return "too_new", opening.newer[0].message
    if owned:
        return "open", ""
    if gap is not None:
        return "interrupted", f"a tail of {gap.length:,} bytes is no record ({gap.kind})"
    if planned:
        return "interrupted", ""
    return "waiting" if waits else "clean", ""


class Inspection:
    """The balanced view of a session: what it would be after recovery, without writing anything."""

    def __init__(self, store: Store, session: str, *, strict: bool = False) -> None:
        """Read what is open. Raises as `open_tail` does, `Damaged` excepted: the plan says what accepting it means."""
        self._store = store
        self.id = session
        check_start(store, session)
        self._opening: Opening = open_tail(store, session, accept_loss=True)
        damage = pending_damage(self._opening)
        if damage is not None:
            self._opening.scan.feed(damage)
        self.plan: Plan = plan_of(self._opening.scan, strict=strict)
        """What recovery would append."""

    @property
    def head(self) -> Head:
        """The head of what is stored."""
        return self._opening.head

    @property
    def gap(self) -> Gap | None:
        """The tail that is no record, if there is one."""
        return self._opening.gap

    def __iter__(self) -> Iterator[Event]:
        """The events stored when the view was made, then the pending damage and the repairs as recovery would number
        them. Raises `Damaged` where bytes before the open part are lost, which recovery leaves as they are.
        """
        head, gap = EMPTY, self._opening.gap
        for item in self._store.read(self.id):
            if item.position == (gap.position if gap is not None else -1):
                break
            if isinstance(item, Gap):
                raise damaged(self.id, item, action="read")
            head = after(item.line, item.event)
            yield item.event
            if head == self._opening.head:
                break
        damage = pending_damage(self._opening)
        if damage is not None:
            line, _ = make(damage)
            head = after(line, damage)
            yield damage
        for repair in self.plan.repairs:
            drafted = draft(repair.type, repair.data, run=repair.run, time=self.plan.time, ignorable=False, head=head)
            line, event = make(drafted)
            head = after(line, event)
            yield event

    def render(
        self,
        target: str,
        run: str = "main",
        *,
        model: str | None = None,
        waiting: Waiting = "refuse",
        outcomes: Outcomes = "note",
        partial: bool = False,
    ) -> Rendering:
        """The request-ready messages of a run as they would be after recovery; the options are `turnwal.render`'s."""
        return render(self, target, run, model=model, waiting=waiting, outcomes=outcomes, partial=partial)

    def surface(self, run: str = "main") -> list[Event]:
        """The events of a run that a model would see after recovery."""
        surface = Surface()
        for event in self:
            if event.run == run:
                surface.add(event)
        return list(surface)


def pending_damage(opening: Opening) -> Event | None:
    """The `damage` event that the next owner would append for the tail, or None."""
    gap = opening.gap
    if gap is None:
        return None
    seq = max(opening.head.count, gap.seq_max + 1) if gap.corrupt else opening.head.count
    data = damage_data(gap, accept_loss=gap.corrupt)
    return Event(seq=seq, prev=opening.head.hash, time=opening.scan.time, type="damage", data=data)
