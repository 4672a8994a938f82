"""Order and barriers of one owned session.

Promises:
- `append` gives an event its place, at once and without touching the disk; what was appended is never reordered.
- `flush` returns the head up to which everything is durable. Barriers that wait at the same time share one write and
  one sync, made by the caller that came first.
- An interrupt at any instruction leaves the log dense. A write or an append found half-done closes the session; the
  next owner recovers it.
- After a failed barrier nothing more is accepted: the outcome is unknown until the session is opened anew (F38).

Does not: know what a turn is. Whoever does hands in an `observe` that sees every event in order.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from turnwal.core.chain import Chained, Head
from turnwal.core.errors import ClosedAfterFailure, OverLimit, OwnershipLost, SessionClosed, TurnwalError
from turnwal.core.limits import PENDING_BYTES_MAX, PENDING_EVENTS_MAX
from turnwal.core.line import Event, make
from turnwal.core.log import draft
from turnwal.session.background import forks, in_barrier_thread, loop_is_running
from turnwal.store.protocol import Claim


class Journal:
    """The one writer of an owned session; every method may be called from any thread of the owning process."""

    def __init__(
        self,
        claim: Claim,
        head: Head,
        *,
        clock: Callable[[], int],
        observe: Callable[[Event], None],
        redact: Callable[[str, Mapping[str, Any]], Mapping[str, Any]] | None = None,
        skip_to: int = 0,
    ) -> None:
        """Go on behind `head`, which is durable. `clock` gives Unix milliseconds; `redact` sees all data first (F37).

        `skip_to` is the least seq of the next event: behind lost bytes numbering goes on above all that may have been.
        """
        self.order = threading.RLock()
        """Held while an event gets its place; hold it to append several without another between them."""
        self._claim = claim
        self._clock = clock
        self._observe = observe
        self._redact = redact
        self._barrier = threading.Lock()
        self._entries: deque[Chained] = deque()
        self._durable = head
        self._skip_to = skip_to
        self._taken = head.count
        self._batch = head.count
        self._observed = head.count
        self._pending_bytes = 0
        self._failure: BaseException | None = None
        self._forks = forks()
        self._closed = False
        self._given_up = False
        self._listeners: list[Callable[[], None]] = []

    @property
    def head(self) -> Head:
        """The head of everything appended, durable or not."""
        try:
            return self._entries[-1].head
        except IndexError:
            # a barrier of another thread may have taken the last entry out between a look and the access
            return self._durable

    @property
    def durable(self) -> Head:
        """The head of everything durable."""
        return self._durable

    @property
    def closed(self) -> bool:
        """Whether nothing more is accepted."""
        return self._closed or self._failure is not None

    @property
    def given_up(self) -> bool:
        """Whether the session was closed and its ownership given up."""
        return self._given_up

    def newest(self) -> list[Event]:
        """The newest events: all that are not known to be durable, and perhaps some that are."""
        with self.order:
            return [entry.event for entry in self._entries]

    def append(
        self,
        type: str,
        data: Mapping[str, Any],
        *,
        run: str = "main",
        ignorable: bool = False,
        time: int | None = None,
        redact: bool = True,
    ) -> Event:
        """Give an event its place and return it. Never waits for the disk.

        Raises `InvalidEvent`, `OverLimit` or `InvalidName` and changes nothing when the event is none, and
        `SessionClosed` or `ClosedAfterFailure` when nothing more is accepted.
        """
        if self._forks != forks():
            self._check_process()
        if redact and self._redact is not None:
            data = self._redact(type, data)
        with self.order:
            entries = self._entries
            head = entries[-1].head if entries else self._durable
            if self._closed or self._failure is not None or self._observed != head.count:
                self.check_open()
            pending = head.count > self._taken
            if not pending:
                self._batch = max(head.count, self._skip_to)
            event = draft(
                type,
                data,
                run=run,
                time=self._clock() if time is None else time,
                ignorable=ignorable,
                head=head if head.count >= self._skip_to else Head(self._skip_to, head.hash),
                batch=self._batch if pending else None,
            )
            line, made = make(event)
            entry = Chained.of(line, made)
            self._pending_bytes += len(line)
            self._entries.append(entry)
            self._observe(made)
            self._observed = entry.head.count
            return made

    def check(self, type: str, data: Mapping[str, Any], *, run: str) -> None:
        """Return if `append` would take the event; raise what it would raise, with nothing changed."""
        if self._redact is not None:
            data = self._redact(type, data)
        make(draft(type, data, run=run, time=0, ignorable=False, head=self.head))

    def make_room(self) -> None:
        """Bound what is not yet durable; call it before a verb that appends, without holding `order`.

        Over the bound it is a barrier. Under a running event loop, which a barrier would stop, it raises `OverLimit`.
        """
        if self._has_room():
            return
        # an interrupt may have left what is durable by now
        self._trim()
        if self._has_room():
            return
        if loop_is_running():
            pending = len(self._entries)
            message = f"{self._pending_bytes:,} bytes in {pending:,} events are not yet durable"
            raise OverLimit(message, action="append", hint="`await session.aflush()` now and then")
        self.flush()

    def _has_room(self) -> bool:
        return self._pending_bytes < PENDING_BYTES_MAX and len(self._entries) < PENDING_EVENTS_MAX

    def flush(self) -> Head:
        """Wait until everything appended before the call is durable; return the durable head.

        Raises what the store raised; the session is closed then, since the outcome is unknown.
        """
        wanted = self.head.count
        while self._durable.count < wanted:
            with self._barrier:
                if self._durable.count < wanted:
                    self._write()
        return self._durable

    async def aflush(self) -> Head:
        """As `flush`, without stopping the event loop. Cancelling the wait does not cancel the write."""
        if self._durable.count < self.head.count:
            await in_barrier_thread(self.flush)
        return self._durable

    def _write(self) -> None:
        """Write and sync what is pending. One thread at a time gets here."""
        with self.order:
            batch = list(self._entries)
            reached = batch[-1].head
            if self._closed or self._failure is not None or self._observed != reached.count or self._forks != forks():
                self.check_open()
            if self._taken != self._durable.count:
                self._fail(None)
            if batch[0].event.seq < self._taken:
                # an interrupt left what is durable
                batch = [entry for entry in batch if entry.event.seq >= self._taken]
            self._taken = reached.count
        try:
            self._claim.append(batch, self._durable)
        except BaseException as error:
            self._failure = error
            self._wake()
            raise
        self._durable = reached
        self._trim()
        self._wake()

    def _trim(self) -> None:
        """Forget entries that are durable."""
        with self.order:
            entries, durable = self._entries, self._durable.count
            while entries and entries[0].event.seq < durable:
                entries.popleft()
            self._pending_bytes = sum([len(entry) for entry in entries]) if entries else 0

    def check_open(self) -> None:
        """Return if an append would be accepted; raise what it would raise otherwise."""
        self._check_process()
        with self.order:
            if self._closed:
                raise SessionClosed("the session was closed", action="append", hint="open it again")
            if self._failure is not None or self._observed != self.head.count:
                self._fail(self._failure)

    def _check_process(self) -> None:
        """Refuse a forked child before it waits for a lock that a thread of its parent may have held."""
        if self._forks != forks():
            hint = "open the session in the child by itself"
            raise OwnershipLost("this process was forked from the owner", action="append", hint=hint)

    def _fail(self, cause: BaseException | None) -> NoReturn:
        if self._failure is None:
            self._failure = cause or InterruptedError("an interrupt came in the middle of a write")
        why = f"{self._failure.message}" if isinstance(self._failure, TurnwalError) else f"{self._failure!r}"
        raise ClosedAfterFailure(
            f"an earlier write did not come to its end ({why})",
            action="append",
            hint="open the session anew; what was acknowledged is there, and recovery closes the rest",
        ) from self._failure

    def close(self) -> None:
        """Accept nothing more and give the session up. Does not flush; may be repeated when it was interrupted."""
        self._closed = True
        self._claim.release()
        self._given_up = True
        self._wake()

    def abandon(self, cause: BaseException) -> None:
        """Close to writes since an operation came to no known end."""
        if self._failure is None:
            self._failure = cause

    # Subscribers

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Have `wake` called when more is durable or nothing more will come; returns what ends that."""
        with self.order:
            self._listeners.append(wake)

        def stop() -> None:
            with self.order:
                if wake in self._listeners:
                    self._listeners.remove(wake)

        return stop

    def _wake(self) -> None:
        if self._listeners:
            for wake in tuple(self._listeners):
                wake()
