"""A subscription: every event once, in order, after it is durable, synthetic ones included."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from turnwal.core.line import Event
from turnwal.session.journal import Journal

if TYPE_CHECKING:
    import asyncio

_RECHECK_S = 1.0
"""A waiter looks again now and then: an interrupt may have come between durability and its wake-up."""


class Subscription:
    """An iterator, sync and async, over what becomes durable; it ends when the session is closed.

    Events wait in memory until they are heard. Leaving the block, or `close`, ends the subscription.
    """

    def __init__(self, journal: Journal, start: int, stored: Callable[[int], Iterator[Event]]) -> None:
        """Hear every event from the seq `start` on; `stored` reads those that were durable before."""
        self._journal = journal
        self._stored = stored
        self._next = start
        self._more = threading.Condition()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signal: asyncio.Event | None = None
        self._closed = False
        self._stop = journal.listen(self._wake, lambda: self._next)
        self._held_from = journal.durable.count

    def __iter__(self) -> Iterator[Event]:
        """Wait for each next event; ends when the session is closed and everything was heard."""
        yield from self._backlog()
        while True:
            ended = self._ended()
            heard = False
            for event in self._journal.heard(self._next):
                heard = True
                self._next = event.seq + 1
                yield event
            if not heard:
                if ended:
                    return
                with self._more:
                    if not self._ended():
                        self._more.wait(_RECHECK_S)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """As the sync iterator, without stopping the event loop."""
        import asyncio  # noqa: PLC0415 - a synchronous program never pays for it

        self._loop, self._signal = asyncio.get_running_loop(), asyncio.Event()
        for event in self._backlog():
            yield event
        while True:
            self._signal.clear()
            ended = self._ended()
            heard = False
            for event in self._journal.heard(self._next):
                heard = True
                self._next = event.seq + 1
                yield event
            if not heard:
                if ended:
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._signal.wait(), _RECHECK_S)

    def _backlog(self) -> Iterator[Event]:
        """What was durable before the subscription began and is not held in memory for it."""
        if self._next >= self._held_from:
            return
        for event in self._stored(self._next):
            if event.seq >= self._held_from:
                return
            self._next = event.seq + 1
            yield event

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

    def _ended(self) -> bool:
        return self._closed or self._journal.closed

    def _wake(self) -> None:
        with self._more:
            self._more.notify_all()
        loop, signal = self._loop, self._signal
        if loop is not None and signal is not None and not loop.is_closed():
            loop.call_soon_threadsafe(signal.set)
