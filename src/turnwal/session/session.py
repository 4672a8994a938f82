"""A session that is open for writing: one owner, its live turns, and the scan that every verb reads.

Entering opens: it becomes the owner, recovers first where a crash left work open (`recovered`), and from then on every
event goes through one journal. The scan is fed with each event as it gets its place, so what a verb decides on is what
recovery would see.
"""

import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from copy import deepcopy
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar
from weakref import WeakValueDictionary

import msgspec

from turnwal.core import keys
from turnwal.core.chain import EMPTY, Head
from turnwal.core.errors import EmptySession, Interrupted, Refused, SessionClosed, TurnwalError
from turnwal.core.line import Event
from turnwal.core.log import check_run
from turnwal.core.recovery import Plan, plan_of
from turnwal.core.scan import Scan
from turnwal.core.surface import Surface, check_replace
from turnwal.core.types import FORMAT
from turnwal.session.background import in_thread
from turnwal.session.call import Call
from turnwal.session.guard import GUARDED, check_fits
from turnwal.session.journal import Journal
from turnwal.session.lookup import ABOUT_CALLS, Found, find
from turnwal.session.opening import Opening, damage_data, open_tail
from turnwal.session.subscription import Subscription
from turnwal.session.tools import Parts
from turnwal.session.transfer import fork_into
from turnwal.session.turn import Turn, TurnReason, check_dispatch, reason_of
from turnwal.store.owner import describe, told
from turnwal.store.protocol import Claim, Record, Store

P = ParamSpec("P")
T = TypeVar("T")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is opened with."""

    recover: bool | str = True
    """True recovers interrupted work at opening; `"refuse"` raises `Interrupted` instead."""
    create: bool = True
    wait: float = 0.0
    """Seconds to wait for another owner to go."""
    owner: str = ""
    """Describes this process to those it keeps out."""
    accept_loss: bool = False
    """Go on behind damage that lost something, saying so in the log."""
    dispatch: str = "durable"
    """What turns declare: `durable`, or `none` for a writer that does not record each dispatch before its body."""
    redact: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    clock: Callable[[], int]
    nonce: Callable[[], str]
    writer: dict[str, Any]
    start: dict[str, Any] = {}
    """Optional fields of `session_start`: agent, cwd, tags, parent."""
    after: "Session | None" = None
    """A session whose head at making must be durable before this one is created."""


class Session:
    """A block, sync and async; `open` and `close` are its plain verbs. Everything is safe from any thread."""

    def __init__(self, store: Store, id: str, settings: Settings) -> None:
        """Prepare a session; nothing is read or written until it is opened."""
        self._store = store
        self._settings = settings
        self.scan = Scan()
        """What recovery would read up to now; for turns, steps and calls to decide on, not to change."""
        self._journal: Journal | None = None
        self._resume_due = False
        self._last_turns: dict[str, int] = {}
        self._surfaces: dict[str, Surface] | None = None
        # where the log has redacted arguments, the handle alone knows what the model wrote, so it is kept
        self._handles: MutableMapping[int, Call] = WeakValueDictionary() if settings.redact is None else {}
        self.id = id
        self.recovered: Plan | None = None
        """What recovery appended when the session was opened; None when there was nothing to do."""

    # Opening and closing

    def open(self) -> Self:
        """Become the owner, recover first if there is interrupted work, and return the session.

        Raises `SessionHeld` when another owner is alive, `SessionNotFound`, `Damaged`, `DamagedStart`, `TooNew`, and
        `Interrupted` when recovery is needed and was declined; nothing was written then.
        """
        settings = self._settings
        if self._journal is not None:
            raise SessionClosed("it was opened before", action="open", subject=self.id, hint="make another object")
        if settings.after is not None:
            settings.after.flush()
        claim = self._store.claim(self.id, create=settings.create, wait=settings.wait, owner=settings.owner)
        try:
            self._take_over(claim)
        except BaseException:
            self._journal = None
            claim.release()
            raise
        return self

    def _take_over(self, claim: Claim) -> None:
        settings = self._settings
        try:
            opening = open_tail(self._store, self.id, accept_loss=settings.accept_loss)
        except EmptySession:
            self._journal = self._new_journal(claim, EMPTY)
            data = {"id": self.id, "nonce": settings.nonce(), "format": FORMAT, "hash": "sha256"}
            data |= {"writer": settings.writer, "store": self._store_data(), **settings.start}
            self._journal.append("session_start", data)
            self._journal.flush()
            return
        self.scan = opening.scan
        self._last_turns = {"main": opening.last_turn}
        lost = opening.gap is not None and opening.gap.corrupt
        skip_to = opening.gap.seq_max + 1 if opening.gap is not None and lost else 0
        self._journal = self._new_journal(claim, opening.head, skip_to=skip_to)
        self._resume_due = True
        if opening.gap is None and not opening.scan.open_turns():
            return
        if settings.recover == "refuse":
            names = ", ".join(f"seq {seq}" for seq in opening.scan.open_seqs())
            work = f"the turn that started at {names}" if names else "a tail that is no record"
            message = f"it holds interrupted work: {work}"
            raise Interrupted(
                message, action="open", subject=self.id, hint="`turnwal plan` shows what recovery would append"
            )
        self._recover(opening)

    def _recover(self, opening: Opening) -> None:
        """Append damage, resume and repairs as one batch."""
        journal = self._live
        if opening.gap is not None:
            journal.append("damage", damage_data(opening.gap, accept_loss=opening.gap.corrupt), redact=False)
        self.make_resumed()
        planned = plan_of(self.scan)
        for repair in planned.repairs:
            journal.append(repair.type, repair.data, run=repair.run, time=planned.time, redact=False)
        journal.flush()
        self.recovered = planned

    def close(self) -> None:
        """End what is open, wait until all is durable, and give the session up; idempotent."""
        self._close("cancelled")

    def _close(self, reason: TurnReason) -> None:
        journal = self._journal
        if journal is None or journal.given_up:
            return
        try:
            if not journal.closed:
                self._end_turns(reason)
                journal.flush()
        finally:
            journal.close()

    def _end_turns(self, reason: TurnReason) -> None:
        with self.order:
            for run, state in self.scan.open_turns():
                Turn.found(self, run.name, state).note_close(reason)

    def __enter__(self) -> Self:
        """Open the session."""
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session. A failing store does not hide the exception that ended the block."""
        try:
            self._close("cancelled" if kind is None else reason_of(kind))
        except TurnwalError:
            if kind is None:
                raise
        except BaseException:
            # an interrupt in the middle must not leave the session held by this process until it ends
            self._give_up()
            raise

    async def __aenter__(self) -> Self:
        """Open the session without stopping the event loop."""
        return await self._in_background(self.open, undo=self._give_up)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session without stopping the event loop."""
        try:
            await self._in_background(lambda: self._close("cancelled" if kind is None else reason_of(kind)))
        except TurnwalError:
            if kind is None:
                raise
        except (KeyboardInterrupt, SystemExit):
            # unlike a cancelled wait, this may have come before the closing was under way
            self._give_up()
            raise

    @property
    def closed(self) -> bool:
        """Whether nothing can be written: not opened, closed, or closed by a failure."""
        return self._journal is None or self._journal.closed

    # Events

    def append(self, type: str, data: Mapping[str, Any], *, run: str = "main", ignorable: bool = False) -> Event:
        """Append an event of any type, in or out of a turn, and return it. Durable with the next barrier.

        Raises `InvalidEvent` for what is none, and `Refused` for a record that would make the history ambiguous: a
        second result, a result of a call that is not open, a turn or step that does not fit.
        """
        journal = self._live
        journal.make_room()
        replaces = isinstance(data, dict) and data.get("replace") is not None
        if type not in GUARDED and not replaces and self._settings.redact is None:
            return self.note(type, data, run=run, ignorable=ignorable)
        with journal.order:
            self.check_open()
            if type in GUARDED and isinstance(data, dict):
                check_run(run)
                check_fits(self.scan, type, data, run)
            if replaces:
                check_replace(self._all_events(), type, data, run)
            if type == "tool_call" and isinstance(data, dict) and self._settings.redact is not None:
                recorded = self.redacted(data)
                mark = {} if recorded.get("arguments") == data.get("arguments") else {"redacted": True}
                return self.note(type, {**recorded, **mark}, run=run, ignorable=ignorable, redact=False)
            return self.note(type, data, run=run, ignorable=ignorable)

    def flush(self) -> Head:
        """Wait until everything appended is durable; returns the durable head. A failure closes the session."""
        return self._live.flush()

    async def aflush(self) -> Head:
        """As `flush`, without stopping the event loop; cancelling the wait does not cancel the write."""
        return await self._live.aflush()

    @property
    def head(self) -> Head:
        """The head of everything appended."""
        return self._live.head

    def __len__(self) -> int:
        """How many events there are, durable or not; behind lost bytes the lost ones count too."""
        return self.head.count

    def __bool__(self) -> bool:
        """Always true: an empty session is a session."""
        return True

    def events(self, since: int = 0) -> Iterator[Event]:
        """Yield the events from a seq on, read from the store; what is pending is made durable first."""
        if not self.closed:
            self.flush()
        yield from self._stored(since)

    def __iter__(self) -> Iterator[Event]:
        """All events in order."""
        return self.events()

    def surface(self, run: str = "main") -> list[Event]:
        """The events of a run that a model sees, in the order it sees them."""
        with self.order:
            if self._surfaces is None:
                surfaces: dict[str, Surface] = {}
                for event in self._all_events():
                    surfaces.setdefault(event.run, Surface()).add(event)
                self._surfaces = surfaces
            return list(self._surfaces.get(run, ()))

    def subscribe(self, since: int | None = None) -> Subscription:
        """Return an iterator, sync and async, over every event from now on, or from a seq on, once it is durable."""
        return Subscription(self._live, self._store, self.id, self._live.durable.count if since is None else since)

    # Turns and calls

    def turn(
        self,
        user: Parts | str | None = None,
        *,
        run: str = "main",
        resumes: "Call | str | None" = None,
        serves: Call | None = None,
        label: str = "",
        dispatch: str | None = None,
    ) -> Turn:
        """Return a turn; entering it appends its start and the user's message.

        `resumes` is the key of a waiting or granted call that the turn goes on with; it is `turn.resumed`.
        """
        check_run(run)
        check_dispatch(dispatch)
        resumed = self.call(resumes) if isinstance(resumes, str) else resumes
        if resumed is not None and resumed.answered and not resumed.repeatable:
            raise Refused("it has a result already", action="resume", subject=f"call {resumed.call_key}")
        return Turn(
            self,
            user=user,
            run=run if resumed is None else resumed.run_name,
            resumes=resumed,
            serves=serves,
            label=label,
            dispatch=self._settings.dispatch if dispatch is None else dispatch,
        )

    def open_turn(self, user: Parts | str | None = None, **options: Any) -> Turn:
        """As `turn`, begun at once; end it with `turn.close(reason)`."""
        return self.turn(user, **options).begin()

    def call(self, key: str) -> Call:
        """Return a handle of any call of the session. Raises `InvalidName` and `CallNotFound`."""
        found = find(self._store, self.id, key, self.flush())
        return self._handles.get(found.key) or self.handle(found)

    def waiting(self) -> list[Call]:
        """The calls that are meant to be answered later, in the order of their keys."""
        return [self.call(entry["call"]) for entry in self.scan.waiting()]

    def granted(self) -> list[Call]:
        """The calls of turns that have ended which were granted and not yet run; a turn that resumes one may run it."""
        return [self.call(entry["call"]) for entry in self.scan.granted()]

    def fork(self, at: int, id: str) -> "Session":
        """Store a fork of the first `at` events under a new id and return it, to be opened (F34)."""
        self.flush()
        settings = self._settings
        fork_into(self._store, self.id, at, self._store, id, nonce=settings.nonce(), time=settings.clock())
        return Session(self._store, id, msgspec.structs.replace(settings, after=None))

    # Inside: what turns, steps and calls are written with

    @property
    def _live(self) -> Journal:
        if self._journal is None:
            raise SessionClosed(
                "it is not open", action="use", subject=self.id, hint="`with store.session(id) as session:`"
            )
        return self._journal

    @property
    def order(self) -> Any:
        """Held while events get their places."""
        return self._live.order

    @property
    def next_seq(self) -> int:
        """The seq of the next event."""
        return self._live.head.count

    def check_open(self) -> None:
        """Return if an event would be accepted: that the session is closed is said before anything else is refused."""
        self._live.check_open()

    def handle(self, found: Found) -> Call:
        """The one handle of a call, made where there is none: two would each know but half of what was done."""
        with self.order:
            handle = self._handles.get(found.key)
            if handle is None:
                handle = self._handles[found.key] = Call(self, found)
            else:
                handle.asked_anew(found)
            return handle

    def check(self, type: str, data: Mapping[str, Any], *, run: str) -> None:
        """Return if `note` would take the event; raise what it would raise, with nothing appended."""
        self._live.check(type, data, run=run)

    async def adurably(self, note: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As `durably`, without stopping the event loop."""
        self.make_room()
        noted = note(*args, **kwargs)
        await self.aflush()
        return noted

    def close_orphan(self, close: Callable[[], None], cause: BaseException) -> None:
        """Close a turn or step that nobody gets a handle of; where that fails too, take nothing more."""
        try:
            close()
        except BaseException:  # noqa: BLE001 - the cause is what the caller raises
            self._live.abandon(cause)

    def make_room(self) -> None:
        """Bound what is not yet durable."""
        self._live.make_room()

    def redacted(self, data: dict[str, Any]) -> dict[str, Any]:
        """The data as it is recorded; the same object where the session redacts nothing."""
        return data if self._settings.redact is None else self._settings.redact(deepcopy(data))

    def note(
        self,
        type: str,
        data: Mapping[str, Any],
        *,
        run: str = "main",
        ignorable: bool = False,
        redact: bool = True,
    ) -> Event:
        """Append an event whose place in the structure is right; `redact` is false for data that has been already."""
        journal = self._live
        if not self._resume_due:
            return journal.append(type, data, run=run, ignorable=ignorable, redact=redact)
        with journal.order:
            if self._resume_due:
                self.make_resumed()
            return journal.append(type, data, run=run, ignorable=ignorable, redact=redact)

    def make_resumed(self) -> None:
        """Say once, before the first event of a later owner, who goes on."""
        if not self._resume_due:
            return
        settings = self._settings
        data = {"format": FORMAT, "writer": settings.writer, "store": self._store_data()}
        data |= {"owner": {"description": told(describe(settings.owner))}}
        data |= self.scan.boundary(self.scan.open_seqs())
        self._live.append("session_resume", data, redact=False)
        self._resume_due = False

    def durably(self, note: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what appends, then wait until it is durable: what comes next may act on it."""
        self.make_room()
        noted = note(*args, **kwargs)
        self.flush()
        return noted

    def has_open_turn(self, run: str) -> bool:
        """Whether a turn of the run is open."""
        return bool(self.scan.run(run).turns)

    def next_turn_number(self, run: str) -> int:
        """Count the turns of a run."""
        number = self._last_turns.get(run, 0) + 1
        self._last_turns[run] = number
        return number

    def serves(self, run: str, other: str) -> bool:
        """Whether a run serves a call of another run, or of one that serves it in turn."""
        seen = run
        while (key := keys.parse(seen)) is not None:
            parent = next((found.name for found in self.scan.runs.values() if key in found.known), None)
            if parent is None or parent == seen:
                return False
            if parent == other:
                return True
            seen = parent
        return False

    def _observe(self, event: Event) -> None:
        self.scan.feed(event)
        if event.type in ABOUT_CALLS:
            key = keys.parse(event.data.get("call"))
            handle = None if key is None else self._handles.get(key)
            if handle is not None:
                handle.take(event)
        if self._surfaces is not None:
            self._surfaces.setdefault(event.run, Surface()).add(event)

    def _new_journal(self, claim: Claim, head: Head, *, skip_to: int = 0) -> Journal:
        settings = self._settings
        return Journal(
            claim, head, clock=settings.clock, observe=self._observe, redact=settings.redact, skip_to=skip_to
        )

    def _store_data(self) -> dict[str, str]:
        return {"kind": self._store.kind, "durability": self._store.durability}

    def _stored(self, since: int) -> Iterator[Event]:
        for item in self._store.read(self.id):
            if isinstance(item, Record) and item.event.seq >= since:
                yield item.event

    def _all_events(self) -> Iterator[Event]:
        """Every event, durable or not. Holds `order` and waits for no barrier, which another thread may be in."""
        seq = -1
        for event in self._stored(0):
            seq = event.seq
            yield event
        yield from (event for event in self._live.pending() if event.seq > seq)

    def _give_up(self) -> None:
        if self._journal is not None:
            self._journal.close()

    async def _in_background(self, work: Callable[[], T], *, undo: Callable[[], None] | None = None) -> T:
        """Do blocking work in a thread. When the wait is cancelled the work still ends, and is undone."""
        import asyncio  # noqa: PLC0415 - a synchronous program never pays for it

        future = in_thread(work)
        try:
            return await asyncio.shield(asyncio.wrap_future(future))
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            if undo is not None:
                future.add_done_callback(lambda done: None if done.cancelled() or done.exception() else undo())
            raise


def system_clock() -> int:
    """The wall clock in Unix milliseconds."""
    return time.time_ns() // 1_000_000
