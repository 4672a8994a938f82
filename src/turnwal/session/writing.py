"""How turns, steps and calls write: every event through one journal, and read by the scan as it gets its place.

What a verb decides on is thus what recovery would see. Knows neither how a session opens nor what its verbs are.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from turnwal.core.chain import Head
from turnwal.core.errors import SessionClosed
from turnwal.core.line import Event
from turnwal.core.scan import Scan
from turnwal.core.types import FORMAT
from turnwal.session.journal import Journal
from turnwal.session.redaction import Redaction
from turnwal.session.settings import Settings
from turnwal.store.owner import describe, told
from turnwal.store.protocol import Claim, Store

P = ParamSpec("P")
T = TypeVar("T")


class Writing(ABC):
    """The journal of a session and the scan that follows it. Everything is safe from any thread."""

    def __init__(self, store: Store, id: str, settings: Settings) -> None:
        """Prepare; nothing is read or written."""
        self._store = store
        self._settings = settings
        self.scan = Scan()
        """What recovery would read up to now; for turns, steps and calls to decide on, not to change."""
        self._journal: Journal | None = None
        self._resume_due = False
        self._redaction = None if settings.redact is None else Redaction(settings.redact)
        self.id = id
        self.watch = settings.watch
        """What runs in place of each tool's body; None for the body itself."""

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

    @property
    def closed(self) -> bool:
        """Whether nothing can be written: not opened, closed, or closed by a failure."""
        return self._journal is None or self._journal.closed

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

    def pending(self) -> list[Event]:
        """The events that are not known to be durable."""
        journal = self._live
        return [event for event in journal.newest() if event.seq >= journal.durable.count]

    def check_open(self) -> None:
        """Return if an event would be accepted: that the session is closed is said before anything else is refused."""
        self._live.check_open()

    def check(self, type: str, data: Mapping[str, Any], *, run: str) -> None:
        """Return if `note` would take the event; raise what it would raise, with nothing appended."""
        self._live.check(type, data, run=run)

    def redacted(self, type: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """The data as it is recorded; the same object where the session redacts nothing."""
        return data if self._redaction is None else self._redaction(type, data)

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

    @abstractmethod
    def _observe(self, event: Event) -> None:
        """Have the scan, and whatever else follows the log, take an event in that has its place."""

    def _new_journal(self, claim: Claim, head: Head, *, skip_to: int = 0) -> Journal:
        settings = self._settings
        return Journal(
            claim, head, clock=settings.clock, observe=self._observe, redact=self._redaction, skip_to=skip_to
        )

    def _store_data(self) -> dict[str, str]:
        return {"kind": self._store.kind, "durability": self._store.durability}
