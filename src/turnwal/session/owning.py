"""Opening and closing a session: ownership, and recovery before anything else."""

from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from turnwal.core.chain import EMPTY
from turnwal.core.errors import EmptySession, Interrupted, SessionClosed, TurnwalError
from turnwal.core.recovery import Plan, plan_of
from turnwal.core.types import FORMAT
from turnwal.session.background import in_thread
from turnwal.session.opening import Opening, damage_data, open_tail
from turnwal.session.reason import TurnReason, reason_of
from turnwal.session.settings import Settings
from turnwal.session.writing import Writing
from turnwal.store.protocol import Claim, Store
from turnwal.store.surely import surely

T = TypeVar("T")


class Owning(Writing):
    """A block, sync and async; `open` and `close` are its plain verbs."""

    def __init__(self, store: Store, id: str, settings: Settings) -> None:
        """Prepare a session; nothing is read or written until it is opened."""
        super().__init__(store, id, settings)
        self._last_turns: dict[str, int] = {}
        self.recovered: Plan | None = None
        """What recovery appended when the session was opened; None when there was nothing to do."""

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
            surely(claim.release)
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
        """Append what closes every open turn."""
        raise NotImplementedError

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

    def _give_up(self) -> None:
        if self._journal is not None:
            surely(self._journal.close)

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
