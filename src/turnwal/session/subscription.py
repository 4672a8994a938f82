"""A subscription: every event once, in order, after it is durable, synthetic ones included.

It reads what it has not heard from the store, so a slow listener costs the writer nothing.
"""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from turnwal.core.chain import Head, after, digest
from turnwal.core.line import Event
from turnwal.session.journal import Journal
from turnwal.session.opening import damaged
from turnwal.session.past import believed
from turnwal.store.protocol import Gap, Store

if TYPE_CHECKING:
    import asyncio

_RECHECK_S = 1.0
"""A waiter looks again now and then: an interrupt may have come between durability and its wake-up."""


class Subscription:
    """An iterator, sync and async, over what becomes durable; it ends when the session is closed.

    Leaving the block, or `close`, ends the subscription. The asynchronous form reads the store on the loop's thread,
    a few lines at a time.
    """

    def __init__(self, journal: Journal, store: Store, session: str, start: int, *, accept_loss: bool) -> None:
        """Hear every event from the seq `start` on.

        Iterating raises `Damaged` where stored bytes are lost, unless `accept_loss`: then it reads on past them.
        """
        self._journal = journal
        self._store = store
        self._session = session
        self._accept_loss = accept_loss
        self._next = start
        self._place: tuple[int, Head | None] = (0, None)
        self._more = threading.Condition()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signal: asyncio.Event | None = None
        self._closed = False
        self._stop = journal.listen(self._wake)
        self._seek(journal.durable)

    def __iter__(self) -> Iterator[Event]:
        """Wait for each next event; ends when the session is closed and everything was heard."""
        while True:
            ended, durable = self._ended(), self._journal.durable
            yield from self._heard(durable)
            if ended:
                return
            with self._more:
                if self._nothing_new(durable.count):
                    self._more.wait(_RECHECK_S)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """As the sync iterator, without stopping the event loop while it waits."""
        import asyncio  # noqa: PLC0415 - a synchronous program never pays for it

        self._loop, self._signal = asyncio.get_running_loop(), asyncio.Event()
        while True:
            self._signal.clear()
            ended, durable = self._ended(), self._journal.durable
            for event in self._heard(durable):
                yield event
            if ended:
                return
            if self._nothing_new(durable.count):
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._signal.wait(), _RECHECK_S)

    def close(self) -> None:
        """Hear no more; idempotent."""
        self._closed = True
        self._stop()
        self._wake()

    def __enter__(self) -> Self:
        """Begin a block that ends the subscription."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the subscription."""
        self.close()

    def _seek(self, durable: Head) -> None:
        """Begin behind the last durable line where nothing before it is to be heard; else at the beginning.

        The line is known by its hash: what merely parses may stand inside damage.
        """
        if self._next < durable.count:
            return
        for record in self._store.newest(self._session):
            if record is not None and digest(record.line) == durable.hash:
                self._place = record.position + len(record.line) + 1, durable
                return

    def _nothing_new(self, durable: int) -> bool:
        """Whether to wait: everything was heard, or what should have come did not."""
        return not self._ended() and (self._next >= self._journal.durable.count or self._next < durable)

    def _heard(self, durable: Head) -> Iterator[Event]:
        """What was durable up to a head and is not heard yet."""
        if self._next >= durable.count or self._left():
            return
        position, head = self._place
        items = self._store.read(self._session, position, after=head, past_damage=self._accept_loss)
        for item in believed(items, durable) if self._accept_loss else items:
            if isinstance(item, Gap):
                if self._accept_loss:
                    continue
                raise damaged(self._session, item)
            if item.event.seq >= durable.count:
                return
            self._place = item.position + len(item.line) + 1, after(item.line, item.event)
            if item.event.seq >= self._next:
                self._next = item.event.seq + 1
                yield item.event
            if self._left():
                return

    def _left(self) -> bool:
        return self._closed

    def _ended(self) -> bool:
        return self._closed or self._journal.closed

    def _wake(self) -> None:
        with self._more:
            self._more.notify_all()
        loop, signal = self._loop, self._signal
        if loop is not None and signal is not None and not loop.is_closed():
            loop.call_soon_threadsafe(signal.set)
